"""Compare buying with renting for each kind of system on offer: from which horizon, or from which share of the time in use, buying costs less.

A system is held from the start of the horizon to its end, and charged as in a plan: `planner.formulate.costs`. No program is solved,
so that workloads, limits and phases play no part. Not here: the chart, and frontiers of plans (`planner.studies.frontier`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from models.energy.power import training_power_w
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.errors import Issue, SpecError
from planner.formulate.costs import holding_terms, slot_rates
from planner.messages import Message
from planner.money.components import HOUR, SYSTEM
from planner.money.terms import COST, coefficients
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import BY_WINDOW, terms_of
from planner.report.words import listed, whole
from planner.solving.variants import resolved
from planner.spec.document import read_spec
from planner.spec.model import parse_spec

HORIZON, UTILISATION = AGAINST = ("horizon", "utilisation")
MOST_YEARS = 30
SYSTEMS = 32  # held together, if none are asked for
LEVELS = {  # levels of prices: as stated, and those that speak most for buying and for renting
    "typical": None,
    "for buying": ("low", "high"),
    "for renting": ("high", "low"),
}
RENTS = ("reserved", "on_demand", "spot")
KEPT = ("name", "currency", "exchange", "economics", "prices", "overrides", "catalog", "series")
IN_TIME = ("price_by_phase", "supply_by_phase", "power_by_phase", "electricity")  # keys that only plans need


@dataclass(frozen=True, slots=True)
class Balance:
    """Present value of one system over a horizon of `years`, in use for a share `utilisation` of the time, at one level of prices."""

    system: str
    how: str  # it is rented
    level: str
    years: int
    utilisation: float
    bought: float
    rented: float

    @property
    def ratio(self) -> float:
        """Return the cost of buying over that of renting."""
        return self.bought / self.rented


@dataclass(frozen=True, slots=True)
class BreakEven:
    """Where buying begins to cost less, for each kind of system and way to rent it; `status`: "optimal"."""

    against: str
    currency: str
    balances: tuple[Balance, ...]
    left_out: tuple[tuple[str, str], ...]
    seconds: float
    crossings: tuple[tuple[tuple[str, str, str], float], ...] = ()
    """(system, how, level) -> share of the time from which buying costs less, where it does; for `against` "utilisation"."""
    status: str = "optimal"

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """List the kinds of systems with the ways to rent them."""
        return list(dict.fromkeys((b.system, b.how) for b in self.balances))

    def of(self, system: str, how: str, level: str = "typical") -> list[Balance]:
        """List the balances of a kind of system and way to rent it at a level, along the range."""
        return [b for b in self.balances if (b.system, b.how, b.level) == (system, how, level)]

    def point(self, system: str, how: str, level: str = "typical") -> float | None:
        """Find where buying begins to cost less and goes on to the end of the range; None where it does not.

        The first of the range where it costs less from there on. Costs are straight lines in the share of the time, so that the point is
        where they meet; between whole years the ratio of the costs is taken as linear.
        """
        if self.against == UTILISATION:
            return dict(self.crossings).get((system, how, level))
        found = self.of(system, how, level)
        if not found or found[-1].ratio > 1:
            return None
        for before, after in reversed(list(pairwise(found))):
            if before.ratio > 1:
                one, two = self._measure(before), self._measure(after)
                return one + (two - one) * (before.ratio - 1) / (before.ratio - after.ratio)
        return self._measure(found[0])

    def _measure(self, balance: Balance) -> float:
        return float(balance.years) if self.against == HORIZON else balance.utilisation

    @property
    def points(self) -> list[dict[str, Any]]:
        """Return the break-even of each kind of system and way to rent it, with the interval that low and high prices give."""
        unit = "years" if self.against == HORIZON else "share"
        return [
            {
                "system": system,
                "how": how,
                unit: self.point(system, how),
                "earliest": self.point(system, how, "for buying"),
                "latest": self.point(system, how, "for renting"),
            }
            for system, how in self.pairs
        ]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        found = []
        for system, how in self.pairs:
            lists = [self.of(system, how, level) for level in LEVELS]
            for typical, low, high in zip(*lists, strict=True):
                found.append(
                    {
                        "system": system, "how": how, "years": typical.years, "utilisation": typical.utilisation,
                        "bought": typical.bought, "rented": typical.rented, "ratio": typical.ratio,
                        "ratio_low": low.ratio, "ratio_high": high.ratio,
                    }
                )  # fmt: skip
        return found

    @property
    def document(self) -> dict[str, Any]:
        """Return everything as JSON."""
        return {
            "against": self.against,
            "currency": self.currency,
            "status": self.status,
            "break_even": self.points,
            "points": self.rows,
            "left_out": [{"system": name, "reason": reason} for name, reason in self.left_out],
            "seconds": self.seconds,
        }

    @property
    def words(self) -> list[str]:
        """Say of each kind of system from where on buying it costs less."""
        said = []
        for row in self.points:
            system, how = row["system"], row["how"].replace("_", " ")
            start = self._measure(self.of(row["system"], row["how"])[0])
            point, earliest, latest = (
                self._where(row[key], start) for key in ("years" if "years" in row else "share", "earliest", "latest")
            )
            known = {"system": system, "how": how, "where": point.text()}
            if point == earliest == latest:
                said.append(Message.of("even.same", **known).text())
            else:
                said.append(Message.of("even.apart", **known, buying=earliest.text(), renting=latest.text()).text())
        return said or [Message.of("even.nothing").text()]

    def _where(self, point: float | None, start: float) -> Message:
        """Say where in the range, which begins at `start`, buying costs less."""
        if point is None:
            return Message.of("even.nowhere")
        if point == start:
            return Message.of("even.throughout")
        return (
            Message.of("even.years", years=point)
            if self.against == HORIZON
            else Message.of("even.share", share=f"{point:.1%}")
        )

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        points = [
            {key: self._cell(value) if key not in ("system", "how") else value for key, value in row.items()}
            for row in self.points
        ]
        rows = [
            {
                "system": row["system"], "how": row["how"], "years": row["years"], "in use": f"{row['utilisation']:.0%}",
                f"bought, {self.currency}": whole(row['bought']), f"rented, {self.currency}": whole(row['rented']),
                "ratio": f"{row['ratio']:.2f}", "low": f"{row['ratio_low']:.2f}", "high": f"{row['ratio_high']:.2f}",
            }
            for row in self.rows
        ]  # fmt: skip
        left_out = [{"system": name, "reason": reason} for name, reason in self.left_out]
        return [("Break-even", points), (Message.of("studies.head_cost_of_one").text(), rows), ("Left out", left_out)]

    @staticmethod
    def _cell(value: float | None) -> str:
        return "never" if value is None else f"{value:.2f}"


def break_even(
    source: str | Path | Mapping[str, Any], against: str = HORIZON, *, span: tuple[float, float] | None = None,
    points: int = 8, utilisation: float = 1.0, systems: int = SYSTEMS, overlays: Sequence[Path] = (), hourly: Sequence[Path] = (),
) -> BreakEven:  # fmt: skip
    """Compare buying with renting for each kind of system that a spec offers both to buy and to rent.

    horizon: whole years over `span` (1 to 6), in use for the share `utilisation` of the time. utilisation: `points` shares over `span`
    (0.1 to 1), over the horizon of the spec; rent on demand is paid for that share only. Prices between are as the spec has
    them, once all that is paid for owning but licences at its low and rent at its high figure, once the other way round.
    Bought systems stand on a network for `systems` of its kind. Raises SpecError for a study that the spec does not allow.
    """
    began, document = time.perf_counter(), read_spec(source, hourly, overlays)
    parse_spec(document)
    given = span or ((1, 6) if against == HORIZON else (0.1, 1.0))
    _check(against, given, utilisation, systems)
    if against == UTILISATION and points < 2:
        raise SpecError([Issue("--points", Message.of("option.at_least_two_points", given=str(points)).text())])
    asked: list[tuple[int, tuple[float, ...]]]
    if against == HORIZON:
        asked = [(years, (utilisation,)) for years in range(round(given[0]), round(given[1]) + 1)]
    else:
        shares = tuple(given[0] + (given[1] - given[0]) * i / (points - 1) for i in range(points))
        asked = [(int((document.get("horizon") or {}).get("years", 1)), shares)]
    found: list[Balance] = []
    left_out: dict[str, str] = {}
    crossings: dict[tuple[str, str, str], float] = {}
    for level, moved in LEVELS.items():
        for years, shares in asked:
            problem = _resolved(_question(document, years, moved), overlays)
            ways = RENTS if against == HORIZON else BY_WINDOW
            for kind in _kinds(problem, ways, systems, left_out):
                balances = list(_balances(problem, kind, (level, years), shares, left_out))
                found += balances
                if against == UTILISATION and balances:
                    bought, rented = (_lines(problem, options, given) for options in (kind.bought, kind.rented))
                    point = _crossing(bought, rented, given)
                    crossings |= {} if point is None else {(kind.system, kind.how, level): point}
    return BreakEven(
        against,
        document.get("currency", "USD"),
        tuple(found),
        tuple(left_out.items()),
        time.perf_counter() - began,
        tuple(crossings.items()),
    )


def _check(against: str, span: tuple[float, float], utilisation: float, systems: int) -> None:
    if systems < 1:
        raise SpecError([Issue("--systems", Message.of("studies.at_least_one", given=systems).text())])
    if not 0 < utilisation <= 1:
        raise SpecError(
            [Issue("--utilisation", Message.of("studies.share_above_zero", given=f"{utilisation:g}").text())]
        )
    low, high = span
    if against == HORIZON and not (1 <= low < high <= MOST_YEARS and low == round(low) and high == round(high)):
        message = Message.of("studies.two_rising_years", most=str(MOST_YEARS), low=f"{low:g}", high=f"{high:g}").text()
        raise SpecError([Issue("--span", message)])
    if against == UTILISATION and not 0 < low < high <= 1:
        message = Message.of("studies.two_rising_shares", low=f"{low:g}", high=f"{high:g}").text()
        raise SpecError([Issue("--span", message)])


def _question(document: Mapping[str, Any], years: int, moved: tuple[str, str] | None) -> dict[str, Any]:
    """Reduce a spec to its sites and offers, over a number of years, with prices at the level asked for."""
    asked = {key: document[key] for key in KEPT if key in document}
    for name in ("sites", "offers"):
        if document.get(name) is not None:
            asked[name] = [{key: value for key, value in row.items() if key not in IN_TIME} for row in document[name]]
    horizon = {
        key: value
        for key, value in (document.get("horizon") or {}).items()
        if key in ("start", "discount_rate", "payments")
    }
    asked["horizon"] = {**horizon, "years": years}
    first = document["workloads"][0]
    asked["workloads"] = [
        {
            "name": "any", "kind": "serving", "architecture": first.get("architecture", ""), "demand": {"requests_per_s": 1},
            "lengths": {"input": 1000, "output": 100}, "origins": [{"region": document["sites"][0]["region"], "share": 1}],
            "slo": {"tpot": {"p95": "10 s"}},
        }
    ]  # fmt: skip
    if moved is not None:
        owning, renting = moved
        stated = document.get("prices") or {}
        software = stated.get("software") or stated.get("level", "typical")  # licences are due on rented chips too
        prices = {"level": owning, **dict.fromkeys(RENTS, renting), "software": software}
        asked["prices"] = {"ranges": stated.get("ranges", {}), **prices}
    return asked


def _resolved(document: dict[str, Any], overlays: Sequence[Path]) -> ResolvedSpec:
    """Resolve a reduced spec, without the overrides of figures that only its workloads read."""
    try:
        return resolved(document, overlays)
    except SpecError as error:
        idle = {problem.path.removeprefix("overrides.") for problem in error.problems}
        if not idle <= set(document.get("overrides", {})):
            raise
        kept = {path: value for path, value in document["overrides"].items() if path not in idle}
        return resolved({**document, "overrides": kept}, overlays)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of system with one way to rent it: the options to buy and to rent one."""

    system: str
    how: str
    bought: Sequence[FleetOption]
    rented: Sequence[FleetOption]


def _kinds(problem: ResolvedSpec, rents: Sequence[str], systems: int, left_out: dict[str, str]) -> Iterator[Kind]:
    """Yield each kind of system that is offered both to buy and to rent, `systems` on one network; others are booked as left out."""
    options, _ = build_fleet_options(problem)
    by_kind: dict[str, dict[str, list[FleetOption]]] = {}
    for option in options:
        by_kind.setdefault(option.system.name, {}).setdefault(option.offer.how, []).append(option)
    for system, ways in by_kind.items():
        offered = [how for how in rents if how in ways]
        if "buy" not in ways or not offered:
            left_out[system] = (
                Message.of("studies.cannot_be_rented", ways=listed(rents)).text()
                if "buy" in ways
                else Message.of("studies.cannot_be_bought").text()
            )
            continue
        owned = _on_networks(ways["buy"], systems)
        yield from (Kind(system, how, owned, ways[how]) for how in offered)


def _balances(
    problem: ResolvedSpec, kind: Kind, case: tuple[str, int], shares: Sequence[float], left_out: dict[str, str]
) -> Iterator[Balance]:
    """Yield the balance of a kind of system at each share of the time; each at the site where it costs least.

    `case`: level of prices, years.
    """
    for share in shares:
        bought = [cost for option in kind.bought if (cost := _cost(problem, option, share)) is not None]
        rented = [cost for option in kind.rented if (cost := _cost(problem, option, share)) is not None]
        if not bought or not rented:
            left_out[kind.system] = Message.of("studies.not_there_throughout").text()
            break
        yield Balance(kind.system, kind.how, *case, share, min(bought), min(rented))


def _lines(
    problem: ResolvedSpec, options: Sequence[FleetOption], span: tuple[float, float]
) -> list[tuple[float, float]]:
    """Return the present value of one system of each option at both ends of a span of shares, between which it is a straight line."""
    ends = ([_cost(problem, option, share) for share in span] for option in options)
    return [(low, high) for low, high in ends if low is not None and high is not None]


def _crossing(
    bought: Sequence[tuple[float, float]], rented: Sequence[tuple[float, float]], span: tuple[float, float]
) -> float | None:
    """Find the share of the time from which the cheapest of the lines `bought` lies below the cheapest of `rented` to the end of the span.

    The sign changes only where a line of one side meets a line of the other. None where buying costs more at the end.

    >>> round(_crossing([(10.0, 12.0)], [(2.0, 22.0)], (0.0, 1.0)), 4)
    0.4444
    >>> _crossing([(10.0, 12.0)], [(0.0, 11.0)], (0.0, 1.0)) is None
    True
    """

    def more(part: float) -> float:
        one, other = (min(low + (high - low) * part for low, high in lines) for lines in (bought, rented))
        return one - other

    if more(1.0) > 0:
        return None
    meet = set[float]()
    for low, high in bought:
        for other_low, other_high in rented:
            before, after = low - other_low, high - other_high
            if before * after < 0:
                meet.add(before / (before - after))
    parts = [0.0, *sorted(meet), 1.0]
    for one, two in reversed(list(pairwise(parts))):
        if more((one + two) / 2) > 0:
            return span[0] + (span[1] - span[0]) * two
    return span[0]


def _on_networks(owned: Sequence[FleetOption], systems: int) -> list[FleetOption]:
    """Return the options whose network joins a number of systems, as the provider's does; the widest where none does."""
    joined = [(option.size or 1, option) for option in owned]
    enough = min(systems, max(size for size, _ in joined))
    return [option for size, option in joined if size >= enough]


def _cost(problem: ResolvedSpec, option: FleetOption, share: float) -> float | None:
    """Compute the present value of one system held throughout, in use for a share of the time; None if it is not there throughout."""
    calendar = problem.calendar
    terms = terms_of(problem, option.site, option.offer)
    if option.offer.how not in BY_WINDOW:
        terms = terms[:1]
    if sorted(w for term in terms for w in range(term.first, term.last + 1)) != list(range(calendar.windows)):
        return None
    rates = slot_rates(problem)
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    held = [(0, term) for term in terms]
    paid = [part for part in holding_terms(problem, [option], held, site_of, rates) if part.functional == COST]
    cost = float(coefficients(paid, SYSTEM, (len(held),)).sum())
    if not option.owned:
        return cost + share * float(coefficients(paid, HOUR, (len(held), calendar.slots)).sum())
    busy_w = float(training_power_w(option.system.power_w, problem.constants.power)) - option.system.idle_w
    energy = float(rates.cost_per_w[site_of[option.site.region]].sum())
    return cost + max(busy_w, 0.0) * option.pue * share * energy
