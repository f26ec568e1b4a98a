"""The fleets that a plan's question could have in each sampled scenario, as data of `solvers.fixed_fleet.recourse`.

Layouts are those that would be chosen were all errors at one of several levels (`planner.problem.derating`); in a scenario each way to serve
takes the best of them. Not here: which measurements pay (`planner.studies.measure`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.candidates.cache import Grids
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint
from planner.formulate.formulation import Formulation, formulate
from planner.money.terms import COST
from planner.problem.derating import derating_at
from planner.problem.facts import ResolvedSpec
from planner.problem.intervals import network
from planner.problem.scenarios import Scenarios
from planner.scenarios.redispatch import BatchCurve, curve_of, worst_errors
from planner.solving.variants import points_found
from solvers.fixed_fleet.recourse import RecourseData
from solvers.fixed_fleet.redispatch import undominated_slots

LEVELS = (0.5, 0.85)  # quantiles of all errors at once, at which layouts are sought
SLOT_GROUPS = 6  # groups of slots with the same jobs
UNDONE = 3.0  # what is left undone costs so many times what the plan pays for all of the workload

OptionKey = tuple[str, str]  # name of a fleet option and path of its offer
Way = tuple[str, str, OptionKey]  # workload, site, fleet option


@dataclass(frozen=True, slots=True)
class FleetModel:
    """Fleet options, the ways to serve on them, and the layouts behind each way."""

    problem: ResolvedSpec
    options: tuple[FleetOption, ...]
    data: RecourseData
    layouts: tuple[tuple[OperatingPoint, ...], ...]  # layouts for each way to serve
    round_trips_s: tuple[float, ...]
    jobs: tuple[OperatingPoint, ...]  # points for each use by a job
    held: Floats  # [option] systems of the plan

    def efficiencies(self, scenarios: Scenarios) -> tuple[Floats, Floats]:
        """Compute requests/s [way, scenario] of one system over the growth of demand, and work units/s [use, scenario]."""
        curves: dict[Any, BatchCurve] = {}
        known: dict[Any, Floats] = {}
        found = np.zeros((len(self.layouts), scenarios.count))
        for g, (points, rtt_s) in enumerate(zip(self.layouts, self.round_trips_s, strict=True)):
            for point in points:
                key = _curve_key(point)
                if key not in curves:
                    curves[key] = curve_of(self.problem, point)
                if (key, rtt_s) not in known:
                    errors = worst_errors(scenarios, [use.option.system.chip for use in point.uses])
                    able = curves[key].capacity(point.serving.spec.limits(), rtt_s, errors)
                    systems = sum(use.systems for use in point.uses)
                    known[key, rtt_s] = able / systems / scenarios.demand[point.workload.name]
                np.maximum(found[g], known[key, rtt_s], out=found[g])
        rate = np.zeros((len(self.jobs), scenarios.count))
        for h, point in enumerate(self.jobs):
            use = point.uses[0]
            run = use.option.system.chip, network(point.workload.architecture.experts)
            rate[h] = point.capacity / use.systems / scenarios.training.get(run, np.ones(1))
        return found, rate

    def restricted(self, keep: Sequence[bool]) -> FleetModel:
        """Keep some fleet options only."""
        chosen = np.asarray(keep, dtype=bool)
        ways = [g for g in range(len(self.layouts)) if chosen[self.data.way_option[g]]]
        uses = [h for h in range(len(self.jobs)) if chosen[self.data.use_option[h]]]
        return replace(
            self, options=tuple(option for option, kept in zip(self.options, chosen, strict=True) if kept), data=self.data.restricted(chosen),
            layouts=tuple(self.layouts[g] for g in ways), round_trips_s=tuple(self.round_trips_s[g] for g in ways),
            jobs=tuple(self.jobs[h] for h in uses), held=self.held[chosen],
        )  # fmt: skip


def _curve_key(point: OperatingPoint) -> tuple[Any, ...]:
    uses = (
        (use.role, use.option.system.name, use.option.scaleout, use.choice, tuple(use.layout.items()), use.workers)
        for use in point.uses
    )
    return (point.workload.name, point.power_cap, *uses)


def _key(option: FleetOption) -> OptionKey:
    return option.name, option.offer.path


def fleet_model(problem: ResolvedSpec, document: Mapping[str, Any], until: float = math.inf) -> FleetModel:
    """Build the model of the question of a plan; `problem`: with a block `robust`. Only pools on one kind of systems are considered.

    `until`: as of `find_candidates`, which raises OutOfTime.
    """
    grids: Grids = {}
    nominal = points_found(problem, grids, until=until)
    form = formulate(problem, nominal)
    options, held = _options(form, document)
    number = {_key(option): k for k, option in enumerate(options)}
    layouts: dict[Way, dict[Any, OperatingPoint]] = {}
    jobs: dict[tuple[str, int], OperatingPoint] = {}
    for level in LEVELS:
        derated = replace(problem, derating=derating_at(problem, level), training=())
        candidates = nominal if level <= LEVELS[0] else points_found(derated, grids, until=until)
        for point in (point for pool in candidates.pools for point in pool.points):
            keys = {_key(use.option) for use in point.uses}
            if len(keys) == 1 and (key := keys.pop()) in number and point.power_cap is None:
                way = point.workload.name, point.site, key
                layouts.setdefault(way, {}).setdefault(_curve_key(point), point)
        for job, points in nominal.training.items() if level <= LEVELS[0] else ():
            for point in points:
                key = _key(point.uses[0].option)
                if len(point.uses) == 1 and key in number:
                    best = jobs.get((job, number[key]))
                    if best is None or _pace(point) > _pace(best):
                        jobs[job, number[key]] = point
    return _model(problem, document, form, options, held, layouts, jobs)


def _pace(point: OperatingPoint) -> float:
    return point.capacity / point.uses[0].systems


def _options(form: Formulation, document: Mapping[str, Any]) -> tuple[tuple[FleetOption, ...], Floats]:
    """Choose the fleet options: options of the plan, and the cheapest network of every other kind; returns also the plan's counts."""
    rows: dict[tuple[Any, ...], float] = {}
    for r in document["fleet"]:
        key = r["site"], r["system"], r["how"], r["topology"], r["network_size"], r["offer"]
        rows[key] = max(rows.get(key, 0.0), r["count"])
    cost = _throughout(form)
    cheapest: dict[tuple[str, str, str, str], int] = {}
    mine: dict[int, float] = {}
    for k, option in enumerate(form.fleet_options):
        count = rows.get(
            (option.site.region, option.system.name, option.offer.how, option.fabric, option.size, option.offer.path)
        )
        if count is not None and np.isfinite(cost[k]):
            mine[k] = float(count)
        kind = option.site.region, option.system.name, option.offer.how, option.offer.path
        if np.isfinite(cost[k]) and (kind not in cheapest or cost[k] < cost[cheapest[kind]]):
            cheapest[kind] = k
    kept = sorted({*mine, *cheapest.values()})
    return tuple(form.fleet_options[k] for k in kept), np.array([mine.get(k, 0.0) for k in kept])


def _throughout(form: Formulation) -> Floats:
    """Compute the cost of one system of each fleet option from start to end, [option]; of one rented by the window, that of all windows."""
    data = form.data
    found = np.full(len(form.fleet_options), np.inf)
    cost = data.holding_cost[COST] + (0.0 if data.hourly is None else data.hourly.throughout(COST))
    for k in range(len(found)):
        mine = np.flatnonzero(data.holding_option == k)
        always = mine[data.covers()[mine].all(axis=1)]
        if len(always):
            found[k] = cost[always].min()
        elif len(mine) and data.covers()[mine].any(axis=0).all():
            found[k] = cost[mine].sum()
    return found


def _model(
    problem: ResolvedSpec,
    document: Mapping[str, Any],
    form: Formulation,
    options: tuple[FleetOption, ...],
    held: Floats,
    layouts: Mapping[Way, Mapping[Any, OperatingPoint]],
    jobs: Mapping[tuple[str, int], OperatingPoint],
) -> FleetModel:
    """Lay the ways to serve out by origin, and build the program data."""
    data = form.data
    number = {_key(option): k for k, option in enumerate(options)}
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    ways: list[tuple[int, int, float, tuple[OperatingPoint, ...]]] = []  # class, option, round trip, layouts
    demand: list[Floats] = []
    class_workload: list[int] = []
    for w, workload in enumerate(problem.serving):
        for origin, rate in zip(workload.spec.origins, workload.requests_by_slot(problem.calendar), strict=True):
            if not rate.any():
                continue
            for (name, site, key), points in layouts.items():
                if name == workload.name:
                    for route in problem.routes(name, origin.region, site).values():
                        ways.append((len(demand), number[key], route.rtt_s, tuple(points.values())))
            demand.append(rate)
            class_workload.append(w)
    demands = np.array(demand).reshape(-1, problem.calendar.slots)
    demands, seconds, mask, room = _fewer_slots(
        demands, data.power_limit()[0][:, data.slot_window], data.job_window_mask, data.slot_hours_s
    )
    option_of = {id(option): k for k, option in enumerate(form.fleet_options)}
    cost = _throughout(form)[[option_of[id(option)] for option in options]]
    uses = list(jobs.items())
    job_number = {job.name: j for j, job in enumerate(problem.training)}
    supplies = [s for s in range(len(data.supply_limit)) if np.isfinite(data.supply_limit[s])]
    member = {(s, k) for s, u in data.supply_member.tolist() if s in supplies for k in [int(data.holding_option[u])]}
    kept = {option_of[id(option)]: k for k, option in enumerate(options)}
    spent = {row["name"]: row["cost"] for row in document["workloads"]}
    undone = [UNDONE * spent[name] for name in (*(w.name for w in problem.serving), *job_number)]
    return FleetModel(
        problem, options,
        RecourseData(
            demand=demands, class_workload=_integers(class_workload), way_class=_integers([c for c, *_ in ways]), way_option=_integers([k for _, k, *_ in ways]),
            way_power_w=np.array([_power_w(points[0]) for *_, points in ways]), job_work=data.job_work, job_mask=mask,
            use_job=_integers([job_number[job] for (job, _), _ in uses]), use_option=_integers([k for (_, k), _ in uses]), use_power_w=np.array([_power_w(point) for _, point in uses]),
            option_site=_integers([site_of[option.site.region] for option in options]), option_cost=cost,
            option_idle_w=np.array([option.idle_at_meter_w if option.owned else 0.0 for option in options]), supply_limit=data.supply_limit[supplies],
            supply_member=_integers([(supplies.index(s), kept[k]) for s, k in sorted(member) if k in kept]).reshape(-1, 2),
            room_w=room, seconds=seconds, undone=np.array(undone),
        ),
        tuple(points for *_, points in ways), tuple(rtt for _, _, rtt, _ in ways), tuple(point for _, point in uses), held,
    )  # fmt: skip


def _fewer_slots(demand: Floats, room: Floats, mask: Bools, seconds: Floats) -> tuple[Floats, Floats, Bools, Floats]:
    """Return (demand [class, slot], seconds, mask of jobs [job, slot], room for power [site, slot]) of few slots that are no easier.

    Without jobs the undominated ones. Slots in which the same jobs may run are sorted by demand and put together in groups, each with
    the most demand and the least room of its members.
    """
    demands, lengths, masks, rooms = [], [], [], []
    for pattern in sorted({tuple(column) for column in mask.T.tolist()}):
        slots = np.flatnonzero((mask == np.array(pattern, dtype=bool)[:, None]).all(axis=0))
        if any(pattern):
            groups = np.array_split(slots[np.argsort(demand[:, slots].sum(axis=0), kind="stable")], SLOT_GROUPS)
        else:
            kept, _ = undominated_slots(demand[:, slots], room[:, slots], mask[:, slots], seconds[slots])
            groups = [slots[[i]] for i in kept.tolist()]
        for group in (group for group in groups if len(group)):
            demands.append(demand[:, group].max(axis=1))
            lengths.append(seconds[group].sum())
            masks.append(np.array(pattern, dtype=bool))
            rooms.append(room[:, group].min(axis=1))
    return (
        np.array(demands).T.reshape(len(demand), len(lengths)),
        np.array(lengths),
        np.array(masks).T.reshape(len(mask), len(lengths)),
        np.array(rooms).T,
    )


def _power_w(point: OperatingPoint) -> float:
    """Compute the power above idle of one system at work at the meter; a rented system counts nothing."""
    drawn = sum(use.extra_it_w * use.option.pue for use in point.uses if use.option.owned)
    return float(drawn / sum(use.systems for use in point.uses))


def _integers(values: Sequence[Any]) -> Ints:
    return np.array(values, dtype=np.int64)
