"""Check the time for which each fleet row is held against the dates of phases, offers and sites."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from catalog.units import YEAR_S
from planner.messages import Message
from planner.problem.facts import OfferFacts, PhaseFacts, ResolvedSpec
from planner.problem.owned import RentedFacts
from planner.verify.fleet.economics import NOTHING_PAID, Charged, by_annuities, owned_already
from planner.verify.fleet.options import CheckedOption
from planner.verify.timing import TIME_TOL_S

HELD_BY_PHASE = ("on_demand", "spot")
PRICE_TOL = 1e-9  # difference from a stated price, relative


@dataclass(frozen=True, slots=True)
class Holding:
    """Time for which the systems of a fleet row are held, price of one, and present value per unit of price."""

    phase: int
    windows: range
    price: float
    charged: Charged  # present value per unit of purchase price
    parts: float  # spare parts, per unit of purchase price
    owed: float  # rent due on leaving a commitment early, undiscounted
    wrong: tuple[str, ...]  # findings on what the row says of it
    longer: tuple[int, float] | None = None  # first window beyond the end of a contract, and the rent from then on

    def capital(self, option: CheckedOption) -> float:
        """Return what one system costs on delivery, with its spare parts and its share of the network."""
        return self.price * (self.charged.paid + self.parts) + option.fabric_capital if option.owned else 0.0

    def rent_in(self, window: int) -> float:
        """Return the rent of one system per second in a window."""
        return self.price if self.longer is None or window < self.longer[0] else self.longer[1]


def holding_of(problem: ResolvedSpec, option: CheckedOption, row: Mapping[str, Any], annuities: bool) -> Holding:
    """Read when a fleet row is held; `annuities`: charged as by releases up to 0.2. Raises ValueError for windows outside the horizon."""
    edges, money = [float(edge) for edge in problem.calendar.edges_s], problem.economics
    end, offer, site = edges[-1], option.offer, option.site
    if row["how"] in HELD_BY_PHASE:
        first = last = row["window"]
    else:
        first, last = row["windows"] if "windows" in row else (0, len(edges) - 2)
    if not 0 <= first <= last < len(edges) - 1:
        raise ValueError(
            Message.of(
                "verify.held_over_windows", system=row["system"], site=row["site"], first=str(first), last=str(last)
            ).text()
        )
    begin, until = edges[first], edges[last + 1]
    phases = problem.phases or (PhaseFacts("", "", 0.0, end, float("inf")),)
    p = next(i for i, phase in enumerate(phases) if phase.start_s <= begin + TIME_TOL_S < phase.end_s)
    wrong = []
    if begin + TIME_TOL_S < max(offer.from_s, site.from_s) or begin + TIME_TOL_S >= offer.until_s:
        wrong.append(Message.of("verify.cannot_come", system=row["system"], site=row["site"], time=f"{begin:g}").text())
    if row["how"] not in HELD_BY_PHASE:
        wrong += _wrong_dates(problem, phases[p], option, row, (begin, until))
        wrong += _wrong_labels(problem, phases[p], option, row, begin, (first, last))
    paid = NOTHING_PAID
    if option.owned:
        life, years = offer.life_s(money) / YEAR_S, (begin / YEAR_S, until / YEAR_S)
        if annuities:
            paid = by_annuities(money, row["system"], life, *years)
        else:
            paid = owned_already(money, option, life, *years)
    price = _price(offer, site.region, p, begin)
    rest = offer.term_s - (until - begin) if row["how"] == "reserved" else 0.0
    return Holding(
        p,
        range(first, last + 1),
        price,
        paid,
        0.0 if annuities or not option.owned or offer.owned is not None else money.spare_parts,
        price * rest * offer.exit_fee if rest > 0 else 0.0,
        tuple(wrong),
        _longer(offer, edges),
    )


def _longer(offer: OfferFacts, edges: list[float]) -> tuple[int, float] | None:
    """Return the first window beyond the end of a contract, and the rent from then on; None where it lasts, or is not extended."""
    rented = offer.rented
    if rented is None or rented.extension_price is None or rented.until_s > edges[-1] - TIME_TOL_S:
        return None
    return next(w for w, edge in enumerate(edges) if edge > rented.until_s - TIME_TOL_S), rented.extension_price


def _wrong_dates(
    problem: ResolvedSpec, phase: PhaseFacts, option: CheckedOption, row: Mapping[str, Any], held: tuple[float, float]
) -> list[str]:
    """Check that systems are delivered as early as possible and held for their service life."""
    (begin, until), offer, end = held, option.offer, float(problem.calendar.edges_s[-1])
    bought = problem.phases and row["how"] == "buy"
    retired = begin + round(offer.life_s(problem.economics)) if bought else end
    moved_s = 0.0
    if offer.owned is not None:
        retired = offer.owned.until_s
        moved_s = offer.owned.move_s if offer.owned.region != option.site.region else 0.0
    if offer.rented is not None:
        late = [Message.of("verify.comes_at_phase").text()] if begin > TIME_TOL_S else []
        return late + _wrong_return(offer.rented, until, end)
    wrong = []
    if abs(begin - max(phase.start_s, offer.from_s, option.site.from_s, moved_s)) > TIME_TOL_S:
        wrong.append(Message.of("verify.comes_at_phase").text())
    if abs(until - min(retired, end)) > TIME_TOL_S:
        wrong.append(Message.of("verify.stays_until_end").text())
    return wrong


def _wrong_return(rented: RentedFacts, gone_s: float, end_s: float) -> list[str]:
    """Find fault with a return at a moment of a horizon [s]: before the notice, or after the end of a contract without extension."""
    if gone_s < min(rented.notice_s, rented.until_s, end_s) - TIME_TOL_S:
        return [Message.of("verify.before_notice").text()]
    if rented.extension_price is None and gone_s > rented.until_s + TIME_TOL_S:
        return [Message.of("verify.beyond_contract").text()]
    return []


def _wrong_labels(
    problem: ResolvedSpec,
    phase: PhaseFacts,
    option: CheckedOption,
    row: Mapping[str, Any],
    begin: float,
    windows: tuple[int, int],
) -> list[str]:
    """Check the phase and the price of a row in a plan with dates."""
    dated = bool(problem.phases) or windows != (0, problem.calendar.windows - 1)
    if dated != ("windows" in row) or (dated and row["obtained"] != (phase.name or None)):
        return [Message.of("verify.when_obtained").text()]
    p = problem.phases.index(phase) if problem.phases else 0
    if dated and abs(row["price"] - _price(option.offer, option.site.region, p, begin)) > PRICE_TOL * abs(row["price"]):
        return [Message.of("verify.other_price_then", price=repr(row["price"])).text()]
    return []


def _price(offer: OfferFacts, region: str, p: int, begin: float) -> float:
    stated = offer.phase_prices[p] if offer.phase_prices else None
    return float(offer.prices[region] * (1 + offer.price_change) ** (begin / YEAR_S)) if stated is None else stated
