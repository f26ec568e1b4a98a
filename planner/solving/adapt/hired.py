"""Estimate the cost of keeping more scenarios for a plan that may rent by the hour later: systems on demand, where a scenario needs them.

A scenario in which the fleet falls short hires systems on demand or on the spot market in the hours in which it needs them, in whole
systems, at typical prices, with starts and least runs as their offers state. The fleet stays, and jobs stay on it, so that an adaptive plan
(`planner.adapt`) of the same promise may cost less. Rents alone are counted: traffic to hired systems and the electricity of a fleet that
works more are not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, Ints, sum_of
from planner.candidates.points import OperatingPoint
from planner.formulate.formulation import Formulation
from planner.money.terms import COST
from planner.plan.rows.robust import Hired, HiredSystem
from planner.problem.derating import scaled
from planner.problem.phases import BY_WINDOW
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import BatchCurve, curve_of, layout_key, left_out, worst_errors
from planner.solving.held_fleet import demand_classes, routed_fleet
from planner.solving.variants import Answer
from solvers.fixed_fleet.many_scenarios import Settled
from solvers.fixed_fleet.redispatch import FixedFleet, OperatingCost, Redispatch, alike_slots
from solvers.model.preemption import predecessors

KEPT_SHARE = 0.8  # share of the scenarios: the promise that is priced
WAYS = 2  # ways to serve on hired systems that each class of demand has
MOST_COLUMNS = 400_000  # columns of the programs of all scenarios together
WHOLE_TOL = 1e-6  # part of a system, or share of a demand


@dataclass(frozen=True, slots=True)
class _Way:
    """Serve a class of demand at a site on systems of one option, by any of its layouts."""

    place: int  # class of demand
    rtt_s: float
    option: int
    layouts: tuple[tuple[OperatingPoint, BatchCurve], ...]

    def rates(self, answer: Answer, scenarios: Scenarios) -> Floats:
        """Compute what a system does with its best layout over the growth of demand, [scenario] [request/s]."""
        found = np.zeros(scenarios.count)
        for point, curve in self.layouts:
            errors = worst_errors(scenarios, [use.option.system.chip for use in point.uses])
            able = curve.capacity(point.serving.spec.limits(), self.rtt_s, errors) / _systems(point)
            np.maximum(found, able, out=found)
        workload = self.layouts[0][0].workload
        grown = scenarios.demand[workload.name]
        return found if scaled(answer.problem, workload.asked) else found / grown


@dataclass(frozen=True, slots=True)
class _Rent:
    """Prices of the options on offer by the hour, [K, T] of a system over a slot and at its start, and the systems that the plan leaves of each; 0 of
    options that are not there."""

    slot: Floats
    start: Floats
    least_slots: Ints  # [K]
    left: Floats  # [K, T] of the offer, at all sites together
    offer: Ints  # [K]
    before: Ints  # [T] slot before each


def hired_promise(answer: Answer, scenarios: Scenarios, settled: Settled, rate: Floats) -> Hired | None:
    """Estimate the expected cost of hiring systems by the hour so that `KEPT_SHARE` of the scenarios are kept.

    None where the plan keeps the share already, where nothing is on offer by the hour, where a ceiling on totals or a goal other than cost
    makes the price of one system more than its rent, or where too few scenarios can be kept so.
    """
    count = scenarios.count
    wanted = int(np.ceil(KEPT_SHARE * count - WHOLE_TOL)) - int(settled.kept.sum())
    limits = answer.problem.spec.limits
    bound = answer.form.data.objective.maximises or any((limits.budget, limits.capital, limits.carbon))
    if (
        wanted <= 0
        or settled.open.any()
        or left_out(answer.problem, pauses=True)
        or bound
        or answer.form.data.hourly is None
    ):
        return None
    rent = _rent(answer.form, answer)
    ways = _ways(answer, rent)
    if not ways:
        return None
    costs, used = _outcomes(answer, scenarios, ~settled.kept, rate, rent, ways, wanted)
    if len(costs) < wanted:
        return None
    cheapest = np.argsort(costs, kind="stable")[:wanted]
    options = [answer.form.fleet_options[k] for k in range(len(rent.slot))]
    systems = used[cheapest]  # [scenario, K] most at once
    rows: list[HiredSystem] = [
        {
            "site": option.site.region, "system": option.system.name, "how": option.offer.how, "offer": option.offer.path,
            "most": int(systems[:, k].max()),
        }
        for k, option in enumerate(options) if systems[:, k].any()
    ]  # fmt: skip
    return {
        "share": KEPT_SHARE,
        "cost": float(costs[cheapest].sum()) / count,
        "used_in": wanted / count,
        "systems": rows,
    }


def _systems(point: OperatingPoint) -> float:
    return sum_of(use.systems for use in point.uses)


def _rent(form: Formulation, answer: Answer) -> _Rent:
    """Read the prices of systems by the hour; of holdings of one option the cheapest counts in each slot."""
    data, hourly = form.data, form.data.hourly
    assert hourly is not None
    shape = len(form.fleet_options), data.slots
    slot, start, least = np.full(shape, np.inf), np.zeros(shape), np.ones(shape[0], dtype=np.int64)
    covers = data.covers()[:, data.slot_window]
    planned: dict[str, Floats] = {}
    for u, k in enumerate(data.holding_option):
        if hourly.holding[u]:
            cheaper = covers[u] & (hourly.cost[COST][u] < slot[k])
            slot[k] = np.where(cheaper, hourly.cost[COST][u], slot[k])
            starts = hourly.start_cost.get(COST)
            start[k] = np.where(cheaper, 0.0 if starts is None else starts[u], start[k])
            least[k] = max(int(least[k]), int(hourly.least_slots[u]))
        held = np.where(covers[u], np.ceil(answer.solution.values["n"][u] - WHOLE_TOL), 0.0)
        order = form.fleet_options[k].offer.order
        planned[order] = planned.get(order, np.zeros(data.slots)) + held
    offers = [option.offer for option in form.fleet_options]
    left = np.array([np.maximum(offer.supply - planned.get(offer.order, 0.0), 0.0) for offer in offers]).reshape(shape)
    shared = np.unique([offer.order for offer in offers], return_inverse=True)[1].ravel()
    there = np.isfinite(slot)
    before = predecessors(np.asarray(answer.problem.calendar.next, dtype=np.int64))
    return _Rent(np.where(there, slot, 0.0), start, least, np.where(there, left, 0.0), shared, before)


def _ways(answer: Answer, rent: _Rent) -> list[_Way]:
    """List for each class of demand the ways that serve a request at the least rent, as predicted."""
    form, problem = answer.form, answer.problem
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    layouts: dict[tuple[str, str, int], dict[object, OperatingPoint]] = {}
    for point in (point for pool in answer.candidates.pools for point in pool.points):
        options = {id(use.option): use.option for use in point.uses}
        (option, *others) = options.values()
        k = option_of.get(id(option))
        if (
            others
            or k is None
            or option.offer.how not in BY_WINDOW
            or not rent.left[k].any()
            or point.power_cap is not None
        ):
            continue
        layouts.setdefault((point.workload.name, point.site, k), {}).setdefault(layout_key(point), point)
    known: dict[tuple[object, ...], BatchCurve] = {}  # the same system does the same at every site

    def curve(point: OperatingPoint) -> BatchCurve:
        uses = (
            (use.option.system.name, use.option.scaleout, use.role, use.choice, tuple(use.layout.items()), use.workers)
            for use in point.uses
        )
        key = (point.workload.name, *uses)
        if key not in known:
            known[key] = curve_of(problem, point)
        return known[key]

    curves = {key: [(point, curve(point)) for point in found.values()] for key, found in layouts.items()}
    ways: list[_Way] = []
    for c, (w, o) in enumerate(demand_classes(answer)):
        workload, mine = problem.serving[w], []
        for (name, site, k), found in curves.items():
            routes = problem.routes(name, form.origins[o], site).values() if name == workload.name else ()
            for route in routes:
                price = float(rent.slot[k].sum())
                best = max(point.capacity / _systems(point) for point, _ in found)
                mine.append((price / best, _Way(c, route.rtt_s, k, tuple(found))))
        ways += [way for _, way in sorted(mine, key=lambda pair: pair[0])[:WAYS]]
    return ways


def _outcomes(
    answer: Answer, scenarios: Scenarios, fails: Bools, rate: Floats, rent: _Rent, ways: list[_Way], wanted: int
) -> tuple[Floats, Floats]:
    """Return the rent [scenario] and the most systems at once [scenario, K] in scenarios that hired systems keep; the easiest scenarios are tried first."""
    routed = routed_fleet(answer, reduced=False)
    fleet, groups = _with_ways(routed.fleet, rent, ways)
    program = Redispatch(fleet)
    own = routed.capacities(answer.problem, scenarios)
    capacity = np.vstack([own, *(way.rates(answer, scenarios)[None] for way in ways)])
    lost = np.flatnonzero(fails)
    order = lost[np.argsort(-capacity[:, lost].sum(axis=0), kind="stable")]
    costs, used = [], []
    growth = np.ones(len(fleet.demand))
    most = MOST_COLUMNS // program.columns
    for s in order[:most] if most >= wanted else ():
        undone = program.shortfall(capacity[:, s], rate[:, s])
        if undone.max(initial=0.0) > WHOLE_TOL:
            continue
        program.operate(growth, {})
        few = np.zeros((len(rent.slot), len(fleet.seconds)))
        np.add.at(few, [way.option for way in ways], program.replicas()[len(own) :])
        systems = np.ceil(few - WHOLE_TOL)[:, groups]
        cost, held = _paid(rent, systems)
        if _is_supplied(rent, held):
            costs.append(cost)
            used.append(held.max(axis=1, initial=0.0))
    return np.array(costs), np.array(used).reshape(len(costs), len(rent.slot))


def _with_ways(fleet: FixedFleet, rent: _Rent, ways: list[_Way]) -> tuple[FixedFleet, Ints]:
    """Add the ways to a fleet, whose dispatch then costs their rent, in one slot of each group alike; return also the group of each slot."""
    options, own, pools = len(fleet.option_count), len(fleet.point_pool), fleet.pools
    hired, arc = np.arange(len(ways)), np.zeros((len(fleet.arcs) + len(ways), len(fleet.seconds)))
    price = np.array([rent.slot[way.option] for way in ways])
    uses = np.column_stack([own + hired, options + np.array([way.option for way in ways])])
    arcs = np.column_stack([[way.place for way in ways], pools + hired])
    operating = OperatingCost(np.vstack([np.zeros((own, len(fleet.seconds))), price]), arc)
    whole = replace(
        fleet, arcs=np.vstack([fleet.arcs, arcs]), pools=pools + len(ways), point_pool=np.concatenate([fleet.point_pool, pools + hired]),
        point_uses=np.vstack([fleet.point_uses, uses]), point_systems=np.concatenate([fleet.point_systems, np.ones(len(ways))]),
        point_power_w=np.concatenate([fleet.point_power_w, np.zeros(len(ways))]),
        point_site=np.concatenate([fleet.point_site, np.zeros(len(ways), dtype=np.int64)]),
        option_count=np.vstack([fleet.option_count, rent.left]),
        operating=operating,
    ).without_idle_options()  # fmt: skip
    tables = whole.demand, whole.option_count, whole.room_w, whole.job_mask, price / whole.seconds
    groups = alike_slots(tables)
    number = np.zeros(len(whole.seconds), dtype=np.int64)
    for i, group in enumerate(groups):
        number[group] = i
    first = np.array([group[0] for group in groups], dtype=np.int64)
    few = replace(
        whole, demand=whole.demand[:, first], job_mask=whole.job_mask[:, first], option_count=whole.option_count[:, first],
        room_w=whole.room_w[:, first], seconds=np.array([whole.seconds[group].sum() for group in groups]), operating=operating.merged(groups),
    )  # fmt: skip
    return few, number


def _is_supplied(rent: _Rent, held: Floats) -> bool:
    """Tell whether the supply that the plan leaves of each offer is enough for the systems held at all sites, [K, T]."""
    total = np.zeros(held.shape)
    np.add.at(total, rent.offer, held)
    return bool((total[rent.offer] <= rent.left + WHOLE_TOL).all(where=held > 0))


def _paid(rent: _Rent, systems: Floats) -> tuple[float, Floats]:
    """Return the rent of whole systems [K, T], due at each start and for their least runs, and the systems so held."""
    held = systems.copy()
    for k, slots in enumerate(rent.least_slots.tolist()):
        at = rent.before
        for _ in range(slots - 1):
            np.maximum(held[k], systems[k][at], out=held[k])
            at = rent.before[at]
    starts = np.maximum(held - held[:, rent.before], 0.0)
    return float((held * rent.slot).sum() + (starts * rent.start).sum()), held
