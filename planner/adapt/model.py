"""The fleets that a question could have over its decision dates, as data of `solvers.stochastic`.

Holdings, their costs, supplies and room for power come from the program of the plan (`planner.formulate`) on a calendar that is cut at
the decision dates. Layouts are those that would be chosen were all errors at one of several levels (`planner.problem.derating`); in a
scenario each way to serve takes the best of them. Counts decided after the start are divisible, as are jobs over fleet options.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.adapt.dates import Dates
from planner.adapt.deliveries import Orders, orders_of
from planner.adapt.draws import Drawn
from planner.adapt.prices import Costs, MovingPrices
from planner.candidates.cache import Grids
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.formulation import Formulation, formulate
from planner.money.terms import COST
from planner.problem.derating import derating_at
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API, counted_by_hour
from planner.resolve.price_steps import Raised
from planner.scenarios.mover import Mover
from planner.scenarios.redispatch import Capacities, Curves, Deployment, deployments_of
from planner.solving.operation import replicas_price
from planner.solving.variants import points_found
from solvers.fixed_fleet.redispatch import undominated_slots
from solvers.stochastic.data import FleetData, Leaves

LEVELS = (0.5, 0.85)  # quantiles of all errors at once, at which layouts are sought
PEAKS, MEANS = 2, 3  # slots of a window that stand for its hardest hours, and for the means of groups of all hours
SHORT_SHARE = 0.1  # share of the horizon below which a window has one slot of each
RESERVED = "reserved"
ROOM = 8.0  # bound on holdings, in multiples of what carries the whole demand as predicted

OptionKey = tuple[str, str]  # name of a fleet option and path of its offer


@dataclass(frozen=True, slots=True)
class AdaptModel:
    """Fleet options, the ways to serve on them and the layouts behind each way; `holdings`: positions among the program's."""

    problem: ResolvedSpec  # cut at the decision dates
    sampled: ResolvedSpec  # the same, with the uncertainties of the spec
    form: Formulation
    candidates: Candidates
    options: tuple[FleetOption, ...]
    holdings: Ints
    data: FleetData
    layouts: tuple[tuple[Deployment, ...], ...]  # [G]
    jobs: tuple[OperatingPoint, ...]  # [H]
    dates: Dates
    moving: MovingPrices | None = None  # None: no price is uncertain
    curves: Curves = field(default_factory=dict)  # which all scenarios share

    def leaves(self, drawn: Drawn, node: Ints, weight: Floats | None = None) -> Leaves:
        """Evaluate all ways to serve and all jobs in scenarios; `node` [date, scenario]."""
        data, count, scenarios = self.data, drawn.count, drawn.scenarios
        still = replace(scenarios, demand={name: np.ones(count) for name in scenarios.demand})
        capacities = Capacities(self.sampled, self.candidates.pools, still, self.curves)
        efficiency = np.zeros((count, len(self.layouts)))
        for g, each in enumerate(self.layouts):
            for deployment in each:
                able = capacities.of(deployment) / _systems(deployment.point)
                np.maximum(efficiency[:, g], able, out=efficiency[:, g])
        rate = np.array([capacities.rate(point) / _systems(point) for point in self.jobs]).reshape(-1, count).T
        names = [w.name for w in self.problem.serving]
        windows = self.problem.calendar.windows
        growth = np.array([drawn.growth[names[w]] for w in data.class_workload]).reshape(-1, count, windows)
        cost, costs = np.repeat(self.unit_cost()[None, :], count, axis=0), None
        if self.moving is not None:
            moved, costs = self.moving.of_scenarios(drawn.prices)
            cost = np.where(data.parent >= 0, moved - moved[:, np.maximum(data.parent, 0)], moved)
        orders = self.orders()
        covers = orders.covers(data.covers, drawn.leads) if len(orders.holding) else None
        if covers is not None:  # rent is due from the delivery on
            cost = cost * np.where(self._rents(), self._share_there(covers), 1.0)
        return Leaves(
            weight=np.full(count, 1.0 / count) if weight is None else weight,
            efficiency=efficiency,
            rate=rate,
            growth=growth.transpose(1, 0, 2)[:, :, data.window],
            cost=cost,
            use_factor=np.ones((count, len(data.option_site))),
            node=node,
            covers=covers,
            costs=costs,
        )

    def _rents(self) -> Bools:
        """Tell which holdings are rents, [U]."""
        return np.array([self.options[k].offer.how == RESERVED for k in self.data.option], dtype=bool)

    def _share_there(self, covers: Bools) -> Floats:
        """Return the share of its planned time for which each holding is there in scenarios, [S, U]."""
        seconds = np.diff(self.problem.calendar.edges_s)
        found: Floats = (covers @ seconds) / np.maximum(self.data.covers @ seconds, 1.0)
        return found

    def unit_cost(self) -> Floats:
        """Return what one unit of each holding costs at typical prices, [U]."""
        cost: Floats = self.form.data.holding_cost[COST][self.holdings]
        parent = self.data.parent
        return np.where(parent >= 0, cost - cost[np.maximum(parent, 0)], cost)

    def orders(self) -> Orders:
        """List the orders of systems that may come late."""
        offers = [self.options[k].offer for k in self.data.option]
        return orders_of(self.problem.offers, offers, self.data.stage, self.dates, self.problem.calendar.edges_s)

    def restricted(self, keep: Bools) -> AdaptModel:
        """Keep some fleet options only."""
        data, number = self.data, np.cumsum(keep) - 1
        own, ways, uses = keep[data.option], keep[data.way_option], keep[data.job_option]
        place = np.cumsum(own) - 1
        member = data.supply_member[keep[data.supply_member[:, 1]]]
        some = replace(
            data, option=number[data.option[own]], stage=data.stage[own], covers=data.covers[own],
            parent=np.where(data.parent[own] >= 0, place[data.parent[own]], -1), lower=data.lower[own], upper=data.upper[own], whole=data.whole[own],
            power_w=data.power_w[own], option_site=data.option_site[keep], by_use=data.by_use[keep], size=data.size[keep],
            supply_member=np.column_stack([member[:, 0], number[member[:, 1]]]), way_pool=data.way_pool[ways],
            way_option=number[data.way_option[ways]], way_power_w=data.way_power_w[ways], way_cost=data.way_cost[ways],
            use_price=data.use_price[keep], on_offer=data.on_offer[keep], job_option=number[data.job_option[uses]], job_of=data.job_of[uses],
            job_power_w=data.job_power_w[uses], job_cost=data.job_cost[uses],
        )  # fmt: skip
        return replace(
            self, options=tuple(o for o, kept in zip(self.options, keep, strict=True) if kept), holdings=self.holdings[own],
            data=some, layouts=tuple(self.layouts[g] for g in np.flatnonzero(ways)), jobs=tuple(self.jobs[h] for h in np.flatnonzero(uses)),
            moving=None if self.moving is None else self.moving.restricted(own, ways, uses, keep),
        )  # fmt: skip


def key_of(option: FleetOption) -> OptionKey:
    """Identify a fleet option among the options of all variants of a problem."""
    return option.name, option.offer.path


def _systems(point: OperatingPoint) -> float:
    return sum(use.systems for use in point.uses)


def build_model(
    problem: ResolvedSpec, sampled: ResolvedSpec, dates: Dates, lack: Mapping[str, float], undone: Mapping[str, float],
    planned: Sequence[OptionKey], steps: Raised,
) -> AdaptModel:  # fmt: skip
    """Build the model; `lack`: price of a request by workload, `undone`: of a job by name, `planned`: options of the plain plan, `steps`: the problem with
    each uncertain price a little higher."""
    grids: Grids = {}
    candidates = points_found(problem, grids)
    form = formulate(problem, candidates)
    chosen = _chosen_options(form, planned)
    number = {key_of(form.fleet_options[k]): i for i, k in enumerate(chosen)}
    ways, jobs = _layouts(problem, sampled, candidates, number, grids)
    places = _places(problem, form, chosen, ways, jobs)
    data = _data(problem, form, dates, chosen, ways, jobs, (lack, undone), places)
    options = tuple(form.fleet_options[k] for k in chosen)
    moving = None
    if steps:
        raised = [(path, partial(_costs_at, other, candidates, places)) for path, other in steps.items()]
        signed = (data.stage == 0) & (data.parent < 0)
        moving = MovingPrices.of(_costs(problem, form, places, places.points), raised, signed)
    return AdaptModel(
        problem, sampled, form, candidates, options, places.holdings, data, tuple(tuple(each.values()) for each in ways.values()),
        tuple(jobs.values()), dates, moving,
    )  # fmt: skip


def _chosen_options(form: Formulation, planned: Sequence[OptionKey]) -> list[int]:
    """Choose the options of the plain plan, and the cheapest network of every other kind at every site."""
    data = form.data
    cost = np.full(len(form.fleet_options), np.inf)
    hourly = np.zeros(len(data.holding_option)) if data.hourly is None else data.hourly.throughout(COST)
    price = data.holding_cost[COST] + hourly
    np.minimum.at(cost, data.holding_option, price)
    cheapest: dict[tuple[str, str, str, str, str], int] = {}
    for k, option in enumerate(form.fleet_options):
        kind = option.site.region, option.system.name, option.offer.how, option.offer.path, option.tenant
        if np.isfinite(cost[k]) and (kind not in cheapest or cost[k] < cost[cheapest[kind]]):
            cheapest[kind] = k
    kept = {k for k, option in enumerate(form.fleet_options) if key_of(option) in planned}
    return sorted({*kept, *cheapest.values()})


WayKey = tuple[int, int]  # pool, option


def _layouts(
    problem: ResolvedSpec, sampled: ResolvedSpec, candidates: Candidates, number: Mapping[OptionKey, int], grids: Grids
) -> tuple[dict[WayKey, dict[Any, Deployment]], dict[tuple[str, int], OperatingPoint]]:
    """List layouts by pool and option, and the fastest point of each job on each option."""
    ways: dict[WayKey, dict[Any, Deployment]] = {}
    own = {key_of(option): option for option in candidates.fleet_options}
    for level in LEVELS:
        share = None if level <= LEVELS[0] else derating_at(sampled, level)
        found = candidates if share is None else points_found(replace(problem, derating=share, training=()), grids)
        for point in (point for pool in found.pools for point in pool.points):
            keys = {key_of(use.option) for use in point.uses}
            if len(keys) > 1 or point.power_cap is not None or not keys <= number.keys():
                continue
            (key,) = keys
            uses = tuple(replace(use, option=own[key]) for use in point.uses)
            counted = 1.0 if share is None else share.capacity(point.workload, (use.option.system for use in uses))
            plain = replace(point, uses=uses, capacity=point.capacity / counted)
            for each in deployments_of(replace(plain, workload=_same(candidates, plain)), candidates.pools):
                ways.setdefault((each.pool, number[key]), {}).setdefault(each.key, each)
    jobs: dict[tuple[str, int], OperatingPoint] = {}
    for job, points in candidates.training.items():
        for point in points:
            key = key_of(point.uses[0].option)
            if len(point.uses) == 1 and key in number and point.power_cap is None:
                best = jobs.get((job, number[key]))
                if best is None or point.capacity / _systems(point) > best.capacity / _systems(best):
                    jobs[job, number[key]] = point
    return ways, jobs


def _same(candidates: Candidates, point: OperatingPoint) -> Any:
    """Return the workload of a point as the candidates hold it."""
    return next(pool.workload for pool in candidates.pools if pool.workload.name == point.workload.name)


@dataclass(frozen=True, slots=True)
class Few:
    """A few slots that stand for all slots of a calendar."""

    members: tuple[Ints, ...]  # slots that each stands for
    share: tuple[float, ...]  # part of the time of its members
    demand: Floats  # [C, few]

    def summed(self, values: Floats) -> Floats:
        """Add up values of slots, such as costs and seconds, over the time that each of the few stands for."""
        parts = [values[..., slots].sum(axis=-1) * share for slots, share in zip(self.members, self.share, strict=True)]
        return np.moveaxis(np.array(parts), 0, -1)

    @property
    def first(self) -> Ints:
        """Return the first member of each, for what all members have in common."""
        return np.array([slots[0] for slots in self.members], dtype=np.int64)


def few_slots(form: Formulation) -> Few:
    """Choose slots for each window and each set of jobs that may run: the hardest hours, and groups of all hours with their mean demand.

    The hardest hours are those that no other one dominates, in groups with the most demand of each class, for the time of one slot each.
    """
    data, demand = form.data, form.data.demand.reshape(-1, form.data.slots)
    masks = data.job_window_mask.astype(bool).T.reshape(data.slots, -1).tolist()
    patterns = [(int(v), *mask) for v, mask in zip(data.slot_window, masks, strict=True)]
    members, shares, asked = [], [], []
    for pattern in dict.fromkeys(patterns):
        slots = np.array([t for t, other in enumerate(patterns) if other == pattern], dtype=np.int64)
        seconds = data.slot_hours_s[slots]
        short = seconds.sum() < SHORT_SHARE * data.slot_hours_s.sum()
        mine = demand[:, slots]
        hard, _ = undominated_slots(mine, np.zeros((1, len(slots))), np.zeros((0, len(slots)), dtype=bool), seconds)
        peaks = _joined(mine[:, hard], 1 if short else PEAKS, mean=False)
        taken = min(len(peaks) * seconds.mean() / seconds.sum(), 1.0) if len(slots) > len(peaks) else 1.0
        for group in peaks:
            members.append(slots)
            shares.append(taken / len(peaks))
            asked.append(mine[:, hard[group]].max(axis=1))
        for group in _joined(mine, 1 if short else MEANS, mean=True) if taken < 1.0 else ():
            members.append(slots[group])
            shares.append(1.0 - taken)
            asked.append(mine[:, group] @ seconds[group] / seconds[group].sum())
    return Few(tuple(members), tuple(shares), np.array(asked).T.reshape(len(demand), len(members)))


def _joined(demand: Floats, most: int, mean: bool) -> list[Ints]:
    """Join the two groups of slots [class, slot] that lose least by it until few are left: variance around means, or what peaks add."""
    groups = [np.array([t]) for t in range(demand.shape[1])]
    while len(groups) > most:
        sizes = np.array([len(g) for g in groups])
        if mean:
            middle = np.array([demand[:, g].mean(axis=1) for g in groups])
            apart = ((middle[:, None, :] - middle[None, :, :]) ** 2).sum(axis=2)
            lost = apart * sizes[:, None] * sizes / (sizes[:, None] + sizes)
        else:
            peaks = np.array([demand[:, g].max(axis=1) for g in groups])
            joint = np.maximum(peaks[:, None, :], peaks[None, :, :]).sum(axis=2)
            lost = 2 * joint - peaks.sum(axis=1)[:, None] - peaks.sum(axis=1)
        np.fill_diagonal(lost, np.inf)
        i, j = sorted(int(each) for each in np.unravel_index(int(np.argmin(lost)), lost.shape))
        groups[i] = np.concatenate([groups[i], groups[j]])
        del groups[j]
    return groups


@dataclass(frozen=True, slots=True)
class _Places:
    """What the program holds of the program of the plan: its slots, holdings and arcs, the points of ways and jobs, and the number of each option."""

    few: Few
    holdings: Ints
    arcs: Ints
    points: tuple[OperatingPoint, ...]  # points of ways, then of jobs
    ways: int
    options: Mapping[int, int]  # position among all -> among the chosen


def _places(
    problem: ResolvedSpec, form: Formulation, chosen: Sequence[int], ways: Mapping[WayKey, Mapping[Any, Deployment]],
    jobs: Mapping[tuple[str, int], OperatingPoint],
) -> _Places:  # fmt: skip
    data, few, number = form.data, few_slots(form), {k: i for i, k in enumerate(chosen)}
    by_use = _by_use(problem, [form.fleet_options[k] for k in chosen])
    kept = [u for u, k in enumerate(data.holding_option) if k in number and not by_use[number[k]]]
    first = [next(iter(each.values())).point for each in ways.values()]
    asked = few.demand.max(axis=1, initial=0.0) > 0
    arcs = [
        a
        for a, (w, o) in enumerate(zip(data.arc_workload, data.arc_origin, strict=True))
        if asked[w * data.demand.shape[1] + o]
    ]
    return _Places(few, _integers(kept), _integers(arcs), (*first, *jobs.values()), len(first), number)


def _by_use(problem: ResolvedSpec, options: Sequence[FleetOption]) -> Bools:
    return np.array([o.offer.how == API or counted_by_hour(problem, o.offer) for o in options], dtype=bool)


def _costs(problem: ResolvedSpec, form: Formulation, places: _Places, points: Sequence[OperatingPoint]) -> Costs:
    """Return what holdings and work cost at the prices of a problem."""
    data, few, every = form.data, places.few, np.arange(form.data.slots)
    systems = np.array([_systems(p) for p in points])[:, None]
    priced = replicas_price(problem, data, list(points), every) / systems if len(systems) else np.zeros((0, data.slots))
    use_price = np.zeros((len(places.options), data.slots))
    if data.hourly is not None:
        for u, k in enumerate(data.holding_option):
            if k in places.options and data.hourly.holding[u]:
                paid = np.where(data.covers()[u][data.slot_window], data.hourly.cost[COST][u], 0.0)
                use_price[places.options[k]] += paid
    work = few.summed(priced)
    return Costs(
        data.holding_cost[COST][places.holdings], few.summed(data.arc_cost[COST][places.arcs]), work[: places.ways], work[places.ways :],
        few.summed(use_price),
    )  # fmt: skip


def _costs_at(problem: ResolvedSpec, candidates: Candidates, places: _Places) -> Costs:
    """Return the same costs at the prices of another problem."""
    mover = Mover.to(problem, candidates)
    return _costs(problem, formulate(problem, mover.candidates), places, mover.points(places.points))


def _data(
    problem: ResolvedSpec, form: Formulation, dates: Dates, chosen: Sequence[int], ways: Mapping[WayKey, Mapping[Any, Deployment]],
    jobs: Mapping[tuple[str, int], OperatingPoint], prices: tuple[Mapping[str, float], Mapping[str, float]], places: _Places,
) -> FleetData:  # fmt: skip
    """Build the data of the program over the tree."""
    data, few, number, kept, arcs = form.data, places.few, places.options, places.holdings, places.arcs
    options = [form.fleet_options[k] for k in chosen]
    by_use, costs = _by_use(problem, options), _costs(problem, form, places, places.points)
    parent, lower = _returns(form, kept)

    classes = np.flatnonzero(few.demand.max(axis=1, initial=0.0) > 0)
    class_number = {int(c): i for i, c in enumerate(classes)}
    origins = data.demand.shape[1]
    arc_class = [class_number.get(w * origins + o, -1) for w, o in zip(data.arc_workload, data.arc_origin, strict=True)]
    watts = [sum(u.extra_it_w * u.option.pue for u in p.uses if u.option.owned) / _systems(p) for p in places.points]
    on_offer = np.zeros((len(options), len(few.members)), dtype=bool)
    for u, k in enumerate(data.holding_option):
        if k in number:
            on_offer[number[k]] |= data.covers()[u][data.slot_window[few.first]]
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    job_number = {job.name: j for j, job in enumerate(problem.training)}
    lack = (
        np.array([prices[0][w.name] for w in problem.serving]).reshape(-1, 1)
        * problem.calendar.discount
        * data.slot_hours_s
    )
    supplies, member, most = _supplies(problem, form, number)
    count = places.ways
    stages = [
        dates.stage(
            options[number[data.holding_option[u]]].offer, form.holdings[u][1], problem.calendar, bool(parent[i] >= 0)
        )
        for i, u in enumerate(kept)
    ]
    return FleetData(
        option=_integers([number[k] for k in data.holding_option[kept]]),
        stage=_integers(stages),
        covers=_covers(form, kept, parent), parent=parent, lower=lower, upper=np.where(parent < 0, np.maximum(np.minimum(ROOM * data.holding_upper, most)[kept], lower), np.inf),
        whole=_integers(stages) == 0, power_w=data.holding_power_w[kept],
        option_site=_integers([site_of[o.site.region] for o in options]), by_use=by_use,
        size=np.array([0.0 if o.offer.how == API else o.system.chips for o in options]), supply_limit=supplies, supply_member=member,
        window=data.slot_window[few.first], seconds=few.summed(data.slot_hours_s),
        room_w=data.power_limit()[0][:, data.slot_window[few.first]],
        demand=few.demand[classes],
        class_workload=classes // origins, arc_class=_integers([arc_class[a] for a in arcs]), arc_pool=data.arc_pool[arcs],
        arc_cost=costs.arc, way_pool=_integers([q for q, _ in ways]), way_option=_integers([k for _, k in ways]),
        way_power_w=np.array(watts[:count]), way_cost=costs.way, use_price=costs.use, on_offer=on_offer, lack_cost=few.summed(lack),
        job_work=data.job_work, job_mask=data.job_window_mask.astype(bool)[:, few.first].reshape(-1, len(few.members)),
        job_option=_integers([k for _, k in jobs]), job_of=_integers([job_number[job] for job, _ in jobs]),
        job_power_w=np.array(watts[count:]), job_cost=costs.job, job_undone=np.array([prices[1][job.name] for job in problem.training]),
    )  # fmt: skip


def _returns(form: Formulation, kept: Ints) -> tuple[Ints, Floats]:
    """Return for each holding of a contract that ends early the one that lasts longest, -1 for all others; and least counts."""
    parent, lower = np.full(len(kept), -1), np.zeros(len(kept))
    longest: dict[int, int] = {}
    for i, u in enumerate(kept):
        k, term = form.holdings[u]
        if form.fleet_options[k].offer.rented is not None:
            best = longest.get(k)
            if best is None or term.last > form.holdings[kept[best]][1].last:
                longest[k] = i
    for i, u in enumerate(kept):
        k = form.holdings[u][0]
        if k in longest and longest[k] != i:
            parent[i] = longest[k]
        elif k in longest:  # all of them are there, needed or not
            lower[i] = form.fleet_options[k].offer.supply
    return parent, lower


def _covers(form: Formulation, kept: Ints, parent: Ints) -> Bools:
    """[U, V]: windows of each holding; of a return, windows of its parent without its own."""
    covers = form.data.covers()[kept]
    found: Bools = np.where((parent >= 0)[:, None], covers[np.maximum(parent, 0)] & ~covers, covers)
    return found


def _supplies(problem: ResolvedSpec, form: Formulation, number: Mapping[int, int]) -> tuple[Floats, Ints, Floats]:
    """List the limits on the systems of an offer, (limit, option) pairs, and the most of each of the program's holdings.

    A limit on some holdings of an option alone, such as the supply of a phase, bounds each of them, not the option.
    """
    data = form.data
    finite = [s for s in range(len(data.supply_limit)) if math.isfinite(data.supply_limit[s])]
    place = {s: i for i, s in enumerate(finite)}
    most = np.full(len(data.holding_option), np.inf)
    of_option = np.bincount(data.holding_option, minlength=len(form.fleet_options))
    counts: dict[tuple[int, int], list[int]] = {}
    for s, u in data.supply_member.tolist():
        counts.setdefault((s, int(data.holding_option[u])), []).append(u)
    pairs = set()
    for (s, k), members in counts.items():
        if s not in place:
            continue
        if len(set(members)) < of_option[k]:
            most[members] = np.minimum(most[members], data.supply_limit[s])
        elif k in number:
            pairs.add((place[s], number[k]))
    return data.supply_limit[finite], _integers(sorted(pairs)).reshape(-1, 2), most


def _integers(values: Sequence[Any]) -> Ints:
    return np.array(values, dtype=np.int64)
