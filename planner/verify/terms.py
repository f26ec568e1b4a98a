"""Times, annuities and shares that the checks of a plan have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from catalog.units import YEAR_S
from planner.evaluate.interruptions import preemption_s_of
from planner.problem.facts import OfferFacts, PhaseFacts, Problem, SiteFacts, TrainingFacts

if TYPE_CHECKING:
    from planner.verify.fleet import CheckedOption


SECOND = 1e-6


@dataclass(frozen=True, slots=True)
class InTime:
    """When the systems of a fleet row are held, what one costs, and what is charged per unit of price."""

    phase: int
    windows: range
    price: float
    share: float
    facility_share: float
    wrong: tuple[str, ...]  # what the row says of it and should not


def in_time(problem: Problem, option: CheckedOption, row: Mapping[str, Any]) -> InTime:
    """A fleet row against the dates of phases, offer and site."""
    edges, money = [float(edge) for edge in problem.calendar.edges_s], problem.economics
    end, offer, site = edges[-1], option.offer, option.site
    dated = "windows" in row
    if row["how"] in ("on_demand", "spot"):
        first = last = row["phase"]
    else:
        first, last = row["windows"] if dated else (0, len(edges) - 2)
    if not 0 <= first <= last < len(edges) - 1:
        raise ValueError(f"{row['system']} in {row['site']} is held over windows {first} to {last}")
    begin, until = edges[first], edges[last + 1]
    phases = problem.phases or (PhaseFacts("", "", 0.0, end, float("inf")),)
    p = next(i for i, phase in enumerate(phases) if phase.start_s <= begin + SECOND < phase.end_s)
    wrong = []
    if begin + SECOND < max(offer.from_s, site.from_s) or begin + SECOND >= offer.until_s:
        wrong.append(f"{row['system']} cannot come to {row['site']} at {begin:g} s")
    if row["how"] not in ("on_demand", "spot"):
        wrong += _held_wrongly(problem, phases[p], offer, site, row, (begin, until), (first, last))
    price = _price(offer, site.region, p, begin)
    life = offer.life_s(money) / YEAR_S
    worth = paid_yearly(money.discount_rate, money.years, begin / YEAR_S, until / YEAR_S)
    return InTime(
        p,
        range(first, last + 1),
        price,
        annuity(money.discount_rate, life) * worth,
        annuity(money.discount_rate, money.facility_life_years) * worth,
        tuple(wrong),
    )


def _held_wrongly(
    problem: Problem,
    phase: PhaseFacts,
    offer: OfferFacts,
    site: SiteFacts,
    row: Mapping[str, Any],
    held: tuple[float, float],
    windows: tuple[int, int],
) -> list[str]:
    begin, until = held
    end = float(problem.calendar.edges_s[-1])
    retired = begin + round(offer.life_s(problem.economics)) if problem.phases and row["how"] == "buy" else end
    wrong = []
    if abs(begin - max(phase.start_s, offer.from_s, site.from_s)) > SECOND:
        wrong.append("comes at the start of its phase or as soon after as the offer and the site allow")
    if abs(until - min(retired, end)) > SECOND:
        wrong.append("stays until its life or the horizon ends")
    dated = bool(problem.phases) or windows != (0, problem.calendar.windows - 1)
    if dated != ("windows" in row) or (dated and row["obtained"] != (phase.name or None)):
        wrong.append("says when it is obtained where time plays a part, and only there")
    elif dated and abs(
        row["price"] - _price(offer, site.region, problem.phases.index(phase) if problem.phases else 0, begin)
    ) > 1e-9 * abs(row["price"]):
        wrong.append(f"has another price than {row['price']!r} then")
    return wrong


def _price(offer: OfferFacts, region: str, p: int, begin: float) -> float:
    stated = offer.phase_prices[p] if offer.phase_prices else None
    return offer.prices[region] * (1 + offer.price_change) ** (begin / YEAR_S) if stated is None else stated


def annuity(rate: float, years: float) -> float:
    return 1 / years if rate == 0 else rate / (1 - (1 + rate) ** -years)


def paid_yearly(rate: float, years: int, begin: float, end: float) -> float:
    """Present worth of one unit per year from `begin` to `end`, each year's part paid at its end."""
    return sum(max(min(end, k + 1.0) - max(begin, float(k)), 0.0) * (1 + rate) ** -(k + 1) for k in range(years))


SAME = 1e-9  # widths that differ less are one


def returned(problem: Problem, active: Sequence[float]) -> list[float]:
    """How much of its width a job takes up again in each slot, after the slot that comes before it."""
    calendar, found = problem.calendar, [0.0] * problem.calendar.slots
    for t, after in enumerate(calendar.next.tolist()):
        found[after] = active[after] - active[t] if active[after] - active[t] > SAME else 0.0
    return found


def lost_share(problem: Problem, job: TrainingFacts, site: SiteFacts, active: Sequence[float]) -> list[float]:
    """Share of each slot, at full width, that goes into taking up the job again."""
    restart = preemption_s_of(job, problem.constants.reliability, site.storage_bytes_per_s)
    if not restart:
        return [0.0] * len(active)
    return [
        restart * width / float(step)
        for width, step in zip(returned(problem, active), problem.calendar.step_s, strict=True)
    ]
