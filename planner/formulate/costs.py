"""Terms of money, carbon and energy of holdings, operating points, arcs, sites, copies of weights and ports.

Not here: terms of lines (`planner.formulate.lines`) and of meters (`planner.formulate.electricity`), and sums of terms (`planner.money.terms`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from catalog.units import YEAR_S
from models.arrays import Bools, Floats, Ints
from models.economics import window_present_worth
from models.energy.carbon import embodied_carbon_kg
from planner.candidates.fleet_options import FleetOption, purchase_of
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.apis import request_price
from planner.money import components
from planner.money.components import COPY, HOUR, PORT, REPLICA, REQUEST, SITE, START, SYSTEM
from planner.money.owning import Purchase, owning
from planner.money.terms import CARBON, COST, ENERGY, AnyTerms, Dated, Dates, Flowing, Place
from planner.problem.calendar import Calendar
from planner.problem.electricity import idle_price_per_j, slot_prices
from planner.problem.facts import PhaseFacts, ResolvedSpec
from planner.problem.lines import NO_TREE
from planner.problem.phases import API, Term, counted_by_hour, window_at
from planner.problem.reinforcement import environments_per_s

Holding = tuple[int, Term]  # (position of the fleet option, when it is held and at what price)
Label = TypeVar("Label")
Arc = tuple[int, int, int, int]  # (workload, origin, site, pool)


@dataclass(frozen=True, slots=True)
class Rates:
    """Cost and carbon of one watt at the meter of each site, drawn throughout a slot.

    They apply to our own systems only where the site's electricity is not a decision of its own.
    """

    cost_per_w: Floats  # [site, slot]
    idle_cost_per_w: Floats  # [site, slot] of our own idle systems, beside the bill of a meter
    carbon_per_w: Floats  # [site, slot]
    seconds: Floats  # [slot]
    metered: Bools  # [site] whether electricity is a decision there
    worth: Floats  # [slot] seconds at present value
    dates: Dates


def slot_rates(problem: ResolvedSpec) -> Rates:
    """Compute cost and carbon of one watt for every site and slot."""
    calendar = problem.calendar
    price = np.array([slot_prices(site.price_per_j, calendar, problem.economics) for site in problem.sites])
    carbon = np.array([site.carbon_kg_per_j[calendar.hour] for site in problem.sites])
    metered = np.array([site.electricity is not None for site in problem.sites])
    idle = np.array([idle_price_per_j(mine, bool(billed)) for mine, billed in zip(price, metered, strict=True)])
    worth = calendar.seconds * calendar.discount
    return Rates(
        price * worth, idle * worth, carbon * calendar.seconds, calendar.seconds, metered, worth, dates_of(problem)
    )


def dates_of(problem: ResolvedSpec) -> Dates:
    """Describe when amounts of a problem may fall due."""
    calendar = problem.calendar
    phases = [(window_at(calendar, phase.start_s), window_at(calendar, phase.end_s) - 1) for phase in problem.phases]
    return Dates(
        calendar.window,
        calendar.seconds,
        calendar.discount,
        _year_worth(problem, 0.0),
        np.array(phases, dtype=np.int64).reshape(-1, 2),
    )


def holding_terms(
    problem: ResolvedSpec,
    fleet_options: Sequence[FleetOption],
    holdings: Sequence[Holding],
    site_of: Mapping[str, int],
    rates: Rates,
) -> list[AnyTerms]:
    """Build the terms of one system held, idle or not: owning or rent, licences, the hall, idle energy, and carbon. Tokens of an API are paid when used.

    Systems that are counted by the hour are paid for in the slots in which they run, and for the time that they take to start.
    """
    held = [(u, fleet_options[k], term) for u, (k, term) in enumerate(holdings) if fleet_options[k].offer.how != API]
    if not held:
        return []
    at = np.array([u for u, _, _ in held], dtype=np.int64)
    windows = np.array([(term.first, term.last) for _, _, term in held], dtype=np.int64)
    places = [(option.site.region, option.system.name, option.offer.how) for _, option, _ in held]
    site = np.array([site_of[option.site.region] for _, option, _ in held], dtype=np.int64)
    owned = np.array([option.owned for _, option, _ in held])
    idle_w = np.array([option.idle_at_meter_w for _, option, _ in held])
    nothing = np.zeros(len(held), dtype=np.int64)
    hourly = np.array([counted_by_hour(problem, option.offer) for _, option, _ in held])

    def flowing(
        name: str, rows: Bools, per_unit: Floats, profile: Floats, follows: Ints, functional: str = COST,
        decision: str = SYSTEM,
    ) -> Flowing:  # fmt: skip
        return Flowing(
            component=name,
            decision=decision,
            at=at[rows],
            places=_chosen(places, rows),
            dates=rates.dates,
            per_unit=per_unit[rows],
            profile=profile,
            follows=follows[rows],
            windows=windows[rows] if decision == SYSTEM else None,
            functional=functional,
        )

    price = np.array([term.price for _, _, term in held])
    hall = np.array([option.hall_per_s for _, option, _ in held])
    software = np.array([option.software_per_year / YEAR_S for _, option, _ in held])
    metered = owned & rates.metered[site]
    embodied = np.array(
        [
            float(embodied_carbon_kg(option.system.embodied_kg, 1.0, option.offer.life_s(problem.economics)))
            for _, option, _ in held
        ]
    )
    worth, seconds = rates.worth[None, :], rates.seconds[None, :]
    idle = rates.dates.by_window(rates.idle_cost_per_w)[site] * rates.dates.covered(windows)
    draws = owned & ((idle_w * idle.sum(axis=1) != 0) | ~metered)
    found: list[AnyTerms] = [
        *_owning_terms(problem, [part for part, own in zip(held, owned, strict=True) if own], rates.dates),
        flowing(
            components.COLOCATION.key,
            owned & (hall != 0),
            hall,
            worth * problem.calendar.risen(problem.economics.escalation.rent),
            nothing,
        ),
        *_extension_terms([part for part in held if part[2].extended is not None], rates),
        *_exit_terms(problem, [part for part in held if part[2].owed_worth_s], rates.dates),
        flowing(components.ENERGY.key, draws, idle_w, rates.idle_cost_per_w, site),
    ]
    for decision, rows in ((SYSTEM, ~hourly), (HOUR, hourly)):
        found += [
            flowing(components.RENT.key, ~owned & rows, price, worth, nothing, COST, decision),
            flowing(components.SOFTWARE.key, ~owned & rows & (software != 0), software, worth, nothing, COST, decision),
            flowing(components.ENERGY.carbon, ~metered & rows, idle_w, rates.carbon_per_w, site, CARBON, decision),
            flowing(components.SYSTEMS.carbon, (embodied != 0) & rows, embodied, seconds, nothing, CARBON, decision),
            flowing(components.ENERGY.key, ~metered & rows, idle_w, seconds, nothing, ENERGY, decision),
        ]
    start_s = np.array([option.offer.start_s for _, option, _ in held])
    starts = worth / problem.calendar.step_s  # starts in a slot, each time that it comes round
    return [*found, flowing(components.RENT.key, hourly & (start_s > 0), price * start_s, starts, nothing, COST, START)]


def _owning_terms(problem: ResolvedSpec, held: Sequence[tuple[int, FleetOption, Term]], dates: Dates) -> list[AnyTerms]:
    """Build the terms of owning one system; `held`: (position, option, term) of the holdings that are bought."""
    if not held:
        return []
    money = problem.economics
    columns = np.array([purchase_of(money, option, term).row() for _, option, term in held]).T
    at = np.array([u for u, _, _ in held], dtype=np.int64)
    windows = np.array([(term.first, term.last) for _, _, term in held], dtype=np.int64)
    phase = np.array([term.phase for _, _, term in held], dtype=np.int64)
    places = [(option.site.region, option.system.name, option.offer.how) for _, option, _ in held]
    there = phase[:, None] == np.arange(len(problem.phases))
    found: list[AnyTerms] = []
    for part in owning(Purchase(*columns)):
        worth, first, yearly = (np.asarray(x, dtype=float) for x in (part.worth, part.on_delivery, part.per_year))
        rises = money.escalation_of(part.component.key)
        years = _years_in_phases(problem, windows, rises)
        rows = np.ones(len(held), dtype=bool)
        if part.component in (components.SPARE_PARTS, components.STAFF, components.SOFTWARE, components.LEVIES):
            rows = (worth != 0) | (first != 0) | (yearly != 0)
        found.append(
            Dated(
                component=part.component.key,
                decision=SYSTEM,
                at=at[rows],
                places=_chosen(places, rows),
                dates=dates,
                worth=worth[rows],
                paid=(first[:, None] * there + yearly[:, None] * years)[rows],
                capital=first[rows] if part.component.capital else None,
                phase=phase[rows],
                windows=windows[rows],
                year_worth=_year_worth(problem, rises),
            )
        )
    return found


def _exit_terms(problem: ResolvedSpec, held: Sequence[tuple[int, FleetOption, Term]], dates: Dates) -> list[AnyTerms]:
    """Build the terms of leaving commitments early, which is paid in the last window of a holding."""
    if not held:
        return []
    last = np.array([term.last for _, _, term in held], dtype=np.int64)
    price = np.array([term.price for _, _, term in held])
    edges = problem.calendar.edges_s
    left = np.array(
        [[edges[v + 1] > phase.start_s and edges[v] < phase.end_s for phase in problem.phases] for v in last]
    ).reshape(len(held), len(problem.phases))
    return [
        Dated(
            component=components.EARLY_EXIT.key,
            decision=SYSTEM,
            at=np.array([u for u, _, _ in held], dtype=np.int64),
            places=tuple((option.site.region, option.system.name, option.offer.how) for _, option, _ in held),
            dates=dates,
            worth=price * np.array([term.owed_worth_s for _, _, term in held]),
            paid=(price * np.array([term.owed_s for _, _, term in held]))[:, None] * left,
            windows=np.array([last, last]).T,
        )
    ]


def _extension_terms(held: Sequence[tuple[int, FleetOption, Term]], rates: Rates) -> list[AnyTerms]:
    """Build the terms of a rent that changes where a contract is extended: what it is more, or less, beyond the end."""
    if not held:
        return []
    return [
        Flowing(
            component=components.RENT.key,
            decision=SYSTEM,
            at=np.array([u for u, _, _ in held], dtype=np.int64),
            places=tuple((option.site.region, option.system.name, option.offer.how) for _, option, _ in held),
            dates=rates.dates,
            per_unit=np.array([term.extension_price - term.price for _, _, term in held]),
            profile=rates.worth[None, :],
            follows=np.zeros(len(held), dtype=np.int64),
            windows=np.array([(term.extended, term.last) for _, _, term in held], dtype=np.int64),
        )
    ]


def _year_worth(problem: ResolvedSpec, escalation: float) -> Floats:
    """Compute the present value of one unit per year that flows during each window and rises by a share per year, [V]."""
    years = (problem.calendar.edges_s / YEAR_S).tolist()
    return np.array([problem.economics.worth(begin, end, escalation) for begin, end in pairwise(years)])


def _years_in_phases(problem: ResolvedSpec, windows: Ints, escalation: float) -> Floats:
    """Compute the years of each phase for which something is held over `windows` [n, 2], [n, phases]; each counts for what its price has risen to."""
    edges, total = problem.calendar.edges_s / YEAR_S, problem.economics.years
    begin = np.array([phase.start_s for phase in problem.phases], dtype=float) / YEAR_S
    end = np.array([phase.end_s for phase in problem.phases], dtype=float) / YEAR_S
    first, last = np.maximum(edges[windows[:, :1]], begin), np.minimum(edges[windows[:, 1:] + 1], end)
    if not escalation:
        return np.asarray(np.maximum(last - first, 0.0), dtype=float)
    return np.asarray(
        window_present_worth(0.0, first, np.maximum(last, first), total, escalation=escalation), dtype=float
    )


def point_terms(
    problem: ResolvedSpec, points: Sequence[OperatingPoint], site_of: Mapping[str, int], rates: Rates
) -> list[AnyTerms]:
    """Build the terms of one active replica in each slot: energy above idle, which the owner pays for rented systems, and the environment
    slots of reinforcement."""
    uses = [(p, use) for p, point in enumerate(points) for use in point.uses]
    at = np.array([p for p, _ in uses], dtype=np.int64)
    site = np.array([site_of[use.option.site.region] for _, use in uses], dtype=np.int64)
    watts = np.array([use.extra_it_w * use.option.pue for _, use in uses], dtype=float)
    owned = np.array([use.option.owned for _, use in uses], dtype=bool)
    places = [(use.option.site.region, use.option.system.name, use.option.offer.how) for _, use in uses]
    metered = owned & rates.metered[site] if uses else owned

    def flowing(name: str, rows: Bools, profile: Floats, follows: Ints, functional: str = COST) -> Flowing:
        return Flowing(
            component=name,
            decision=REPLICA,
            at=at[rows],
            places=_chosen(places, rows),
            dates=rates.dates,
            per_unit=watts[rows],
            profile=profile,
            follows=follows[rows],
            functional=functional,
        )

    slots = [(p, point, environments_per_s(point.workload)) for p, point in enumerate(points)]
    busy = [(p, point, rate) for p, point, rate in slots if rate]
    return [
        flowing(components.ENERGY.key, owned & ~metered, rates.cost_per_w, site),
        flowing(components.ENERGY.carbon, ~metered, rates.carbon_per_w, site, functional=CARBON),
        flowing(components.ENERGY.key, ~metered, rates.seconds[None, :], np.zeros_like(site), functional=ENERGY),
        Flowing(
            component=components.ENVIRONMENTS.key,
            decision=REPLICA,
            at=np.array([p for p, _, _ in busy], dtype=np.int64),
            places=tuple((point.site, "", "") for _, point, _ in busy),
            dates=rates.dates,
            workload=tuple(point.workload.name for _, point, _ in busy),
            per_unit=np.array([rate for _, _, rate in busy], dtype=float),
            profile=rates.worth[None, :],
            follows=np.zeros(len(busy), dtype=np.int64),
        ),
    ]


def arc_terms(
    problem: ResolvedSpec,
    candidates: Candidates,
    arcs: Sequence[Arc],
    origins: Sequence[str],
    arc_kinds: Sequence[str],
    rates: Rates,
) -> list[AnyTerms]:
    """Build the terms of one request per second on each arc: traffic, and tokens bought from an API."""
    places = [(problem.sites[r].region, kind, "") for (_, _, r, _), kind in zip(arcs, arc_kinds, strict=True)]
    names = [problem.serving[w].name for w, _, _, _ in arcs]
    bought = np.array([problem.sites[r].api is not None for _, _, r, _ in arcs], dtype=bool)
    traffic = np.zeros(len(arcs))
    for a, (w, o, _, q) in enumerate(arcs):
        path = problem.routes(names[a], origins[o], candidates.pools[q].site)[arc_kinds[a]]
        traffic[a] = problem.egress_bytes(problem.serving[w]) * path.price_per_byte
    sold = sorted({(w, r) for (w, _, r, _), api in zip(arcs, bought, strict=True) if api})
    row_of = {pair: k for k, pair in enumerate(sold)}
    tokens = np.array(
        [rates.worth * request_price(problem.sites[r], problem.serving[w], problem.calendar) for w, r in sold]
    ).reshape(len(sold), len(rates.worth))

    def flowing(
        name: str, rows: Bools, per_unit: Floats, profile: Floats, follows: Ints, for_bytes: bool = False
    ) -> Flowing:
        return Flowing(
            component=name,
            for_bytes=for_bytes,
            decision=REQUEST,
            at=np.flatnonzero(rows),
            places=_chosen(places, rows),
            dates=rates.dates,
            workload=_chosen(names, rows),
            per_unit=per_unit[rows],
            profile=profile,
            follows=follows[rows],
        )

    flat, alike = rates.worth[None, :], np.zeros(len(arcs), dtype=np.int64)
    of_pair = np.array([row_of.get((w, r), 0) for w, _, r, _ in arcs], dtype=np.int64)
    return [
        flowing(components.EGRESS.key, ~bought & (traffic != 0), traffic, flat, alike, for_bytes=True),
        flowing(components.API_TOKENS.key, bought & (traffic != 0), traffic, flat, alike, for_bytes=True),
        flowing(components.API_TOKENS.key, bought, np.ones(len(arcs)), tokens, of_pair),
    ]


def site_terms(problem: ResolvedSpec, rates: Rates) -> list[AnyTerms]:
    """Build the terms of what sites cost at any size, from the time at which a site exists: fixed costs, and crews, whose pay rises as that of staff does."""
    last = problem.calendar.windows - 1
    rising = rates.worth * problem.calendar.risen(problem.economics.escalation.staff)
    paid = (
        (components.SITES, [site.fixed_cost_per_s for site in problem.sites], rates.worth),
        (components.STAFF, [site.crew_per_s for site in problem.sites], rising),
    )
    found: list[AnyTerms] = []
    for component, per_s, profile in paid:
        at = [r for r, amount in enumerate(per_s) if amount]
        windows = [(window_at(problem.calendar, problem.sites[r].from_s), last) for r in at]
        found.append(
            Flowing(
                component=component.key,
                decision=SITE,
                at=np.array(at, dtype=np.int64),
                places=tuple((problem.sites[r].region, "", "") for r in at),
                dates=rates.dates,
                per_unit=np.array([per_s[r] for r in at], dtype=float),
                profile=profile[None, :],
                follows=np.zeros(len(at), dtype=np.int64),
                windows=np.array(windows, dtype=np.int64).reshape(-1, 2),
            )
        )
    return found


def copy_terms(problem: ResolvedSpec, dates: Dates) -> list[AnyTerms]:
    """Build the terms of sending weights along each edge of the trees of workloads, evenly over the horizon."""
    edges = [
        (workload.name, edge, cost)
        for workload in problem.serving
        for tree in [problem.trees.get(workload.name, NO_TREE)]
        for edge, cost in zip(tree.edges, tree.edge_cost, strict=True)
    ]
    worth = np.array([cost for _, _, cost in edges], dtype=float)
    even = np.array([paid_per_present_value(problem.calendar, phase) for phase in problem.phases], dtype=float)
    return [
        Dated(
            component=components.WEIGHTS.key,
            decision=COPY,
            at=np.arange(len(edges)),
            places=tuple((edge[1], "", "") for _, edge, _ in edges),
            dates=dates,
            workload=tuple(name for name, _, _ in edges),
            worth=worth,
            paid=worth[:, None] * even,
        )
    ]


def paid_per_present_value(calendar: Calendar, phase: PhaseFacts) -> float:
    """Compute the payment in a phase per unit of present value, for payments spread evenly over the horizon."""
    return (phase.end_s - phase.start_s) / float(calendar.window_seconds() @ calendar.window_discount())


def port_terms(problem: ResolvedSpec, dates: Dates) -> list[AnyTerms]:
    """Build the terms of ports of architectures to chip families, paid at the start."""
    cost = np.array([facts.cost for facts in problem.porting], dtype=float)
    first = np.arange(len(problem.phases)) == 0
    places: tuple[Place, ...] = tuple(("", facts.label, "") for facts in problem.porting)
    return [
        Dated(
            component=components.PORTING.key,
            decision=PORT,
            at=np.arange(len(cost)),
            places=places,
            dates=dates,
            worth=cost,
            paid=cost[:, None] * first,
        )
    ]


def _chosen(labels: Sequence[Label], rows: Bools) -> tuple[Label, ...]:
    """Return the labels of the marked rows."""
    return tuple(labels[i] for i in np.flatnonzero(rows).tolist())
