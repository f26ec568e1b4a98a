"""From a problem to its operating points: evaluates all layouts in arrays, drops what cannot be used, counts why.

The closed forms are in `models`; choosing among the points that are left is the program's work.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from catalog.units import MILLI
from planner.candidates.apis import api_point
from planner.candidates.disaggregated import (
    GroupChoice,
    WorkerGroup,
    choose_groups,
    connected_pairs,
    disaggregated_point,
    group_searches,
    without_replaceable,
)
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.points import Candidates, OperatingPoint, Pool
from planner.candidates.power_caps import capped_points, with_caps
from planner.candidates.serving import Grid, GridChoice, GridSelection, make_grid, serving_point
from planner.candidates.training import LayoutSearches, candidate_widths, training_point
from planner.problem.derating import counted_share
from planner.problem.fabrics import uneven
from planner.problem.facts import Derating, Problem, ServingFacts, TrainingFacts, permitted
from planner.problem.quality import below_floors

ROUND_TRIP_STEP_S = 5 * MILLI  # round trips are rounded up to this, so that near origins share their points
FIELDS_WITHOUT_EFFECT = {
    "demand",
    "origins",
    "residency",
    "weights_from",
}  # words of a workload that its points do not depend on

Chosen = list[list[GridChoice]]
Grids = dict[Any, Any]  # what was worked out of workloads on systems, under the keys of `_PointFinder`


def find_candidates(problem: Problem, grids: Grids | None = None, below_floor: bool = False) -> Candidates:
    """FleetOptions, serving points by pool and training points by job; every dropped candidate is counted by its reason.

    `grids`: filled and read, for variants of one question that differ in prices, limits and demand only. `below_floor`: with the points
    of architectures below a quality floor, which the program then leaves out, so that the floor can be moved in a program that is kept.
    """
    fleet_options, dropped_options = build_fleet_options(problem)
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    if dropped_options:
        dropped["(systems)"] = dropped_options
    finder = _PointFinder(problem, dropped, {} if grids is None else grids)
    barred = below_floors(problem, of_choices=not below_floor)
    for name in barred:
        dropped[name]["architecture below the quality floor"] += 1
    pools = [
        with_caps(pool, workload.spec.slo.limits(), problem.derating)
        for workload in problem.serving
        if workload.name not in barred
        for pool in finder.serving(workload, _open_to(problem, workload, fleet_options))
    ]
    training = {
        job.name: tuple(
            p
            for point in finder.training(job, _open_to(problem, job, fleet_options))
            for p in (point, *capped_points(point))
        )
        for job in problem.training
    }
    used = {
        id(use.option)
        for point in (*(p for pool in pools for p in pool.points), *(p for ps in training.values() for p in ps))
        for use in point.uses
    }
    return Candidates(
        fleet_options=tuple(option for option in fleet_options if id(option) in used),
        pools=tuple(pools),
        training=training,
        dropped={name: +counts for name, counts in dropped.items()},
        evaluated=finder.evaluated,
    )


def _open_to(
    problem: Problem, workload: ServingFacts | TrainingFacts, fleet_options: Iterable[FleetOption]
) -> list[FleetOption]:
    tenant = problem.tenant_of(workload)
    return [option for option in fleet_options if option.tenant == tenant]


class _PointFinder:
    """Remembers what it works out, since one system stands at many sites, and in `grids` for the next problem that is alike."""

    def __init__(self, problem: Problem, dropped: dict[str, Counter[str]], grids: Grids):
        self.problem, self.dropped, self.evaluated = problem, dropped, 0
        self._kept = grids
        self._counted: set[tuple] = set()
        self._points_on: dict[tuple, OperatingPoint] = {}
        self._chosen_on: dict[tuple, Chosen] = {}
        self._alike: dict[tuple, Chosen] = {}
        self._pairs: dict[tuple, list[GroupChoice]] = {}
        figures = problem.catalog_digest, repr(problem.spec.overrides)
        self._searches = self._kept.setdefault(("searches", *figures), LayoutSearches(problem))
        common = (*figures, problem.spec.solver.points_per_system, repr(problem.derating))
        self._times = {
            w.name: (*figures, w.spec.model_dump_json(exclude={*FIELDS_WITHOUT_EFFECT, "slo"})) for w in problem.serving
        }
        self._work = {w.name: (*common, *self._asked(w)) for w in (*problem.serving, *problem.training)}

    def _asked(self, workload: ServingFacts | TrainingFacts) -> tuple:
        """All of a workload's words that its points depend on."""
        if isinstance(workload, TrainingFacts):
            return (workload.spec.model_dump_json(),)
        peak = math.inf if self.problem.spec.objective.maximise else workload.peak_requests_per_s
        return workload.spec.model_dump_json(exclude=FIELDS_WITHOUT_EFFECT), peak

    def _once(self, key: tuple, find: Callable[[Counter[str]], Any]) -> Any:
        """What `find` returns for a workload (second in `key`): worked out once for all alike, what it drops counted once in each problem."""
        name = key[1]
        alike = (*key, *self._work[name])
        if alike not in self._kept:
            counts: Counter[str] = Counter()
            self._kept[alike] = find(counts), counts
        found, counts = self._kept[alike]
        if key not in self._counted:
            self._counted.add(key)
            self.dropped[name].update(counts)
        return found

    # -- serving ---------------------------------------------------------------------------------------------------

    def serving(self, workload: ServingFacts, fleet_options: Sequence[FleetOption]) -> Iterable[Pool]:
        for site in self.problem.sites:
            if not permitted(workload, site):
                self.dropped[workload.name]["site barred by residency"] += 1
                continue
            here = [
                option
                for option in fleet_options
                if option.site is site and (option.offer.spot is None or option.offer.spot.headroom is not None)
            ]
            if barred := sum(option.site is site for option in fleet_options) - len(here):
                self.dropped[workload.name]["spot offer without headroom for serving"] += barred
            classes: dict[float, list[tuple[str, str]]] = defaultdict(list)
            for origin in workload.spec.origins:
                for kind, way in self.problem.routes(workload.name, origin.region, site.region).items():
                    classes[math.ceil(way.rtt_s / ROUND_TRIP_STEP_S - 1e-9) * ROUND_TRIP_STEP_S].append(
                        (origin.region, kind)
                    )
            if site.api is None:
                yield from self._pools(workload, site.region, here, classes)
            else:
                yield from self._bought(workload, here, classes)

    def _pools(
        self,
        workload: ServingFacts,
        site: str,
        fleet_options: Sequence[FleetOption],
        classes: dict[float, list[tuple[str, str]]],
    ) -> Iterable[Pool]:
        """One pool per latency class; classes that admit just the same points share one."""
        merged: dict[tuple, tuple[float, list[tuple[str, str]], list[OperatingPoint]]] = {}
        kinds = tuple((option.system.name, option.scaleout_bytes_per_s) for option in fleet_options)
        built: dict[int, list[OperatingPoint]] = {}
        for allowance, ways in sorted(classes.items()):
            chosen = self._chosen(workload, fleet_options, kinds, allowance)
            if id(chosen) not in built:
                built[id(chosen)] = self._alone(workload, fleet_options, chosen)
            alone = built[id(chosen)]
            paired = self._paired(workload, fleet_options, allowance, alone)
            if not alone and not paired:
                self.dropped[workload.name]["origin-site pair too far apart for the latency limits"] += len(ways)
                continue
            uses = ((point.capacity, use) for point in paired for use in point.uses)
            key = (
                id(chosen),
                *(
                    (id(use.option), use.role, tuple(use.layout.items()), use.batch, use.workers, capacity)
                    for capacity, use in uses
                ),
            )
            previous = merged.get(key, (0.0, [], []))
            merged[key] = (max(previous[0], allowance), previous[1] + ways, [*alone, *paired])
        for allowance, ways, points in merged.values():
            origins, kinds = zip(*ways)
            yield Pool(workload, site, origins, allowance, tuple(points), kinds)

    def _bought(
        self, workload: ServingFacts, fleet_options: Sequence[FleetOption], classes: dict[float, list[tuple[str, str]]]
    ) -> Iterable[Pool]:
        """Tokens from an API, for the origins from which it is near enough."""
        for option in fleet_options:
            found = {
                allowance: point
                for allowance in classes
                if (point := api_point(workload, option, allowance)) is not None
            }
            if not found:
                self.dropped[workload.name]["API of other workloads, or not known to keep the latency limits"] += 1
                continue
            origins, kinds = zip(*(way for allowance in found for way in classes[allowance]))
            yield Pool(workload, option.site.region, origins, max(found), (found[max(found)],), kinds)

    def _chosen(
        self, workload: ServingFacts, fleet_options: Sequence[FleetOption], kinds: tuple, allowance: float
    ) -> Chosen:
        """The points that go on of each fleet option; one object where they are the same, for other fleet options of the same `kinds` or another allowance."""
        key = workload.name, kinds, allowance
        if key not in self._chosen_on:
            found = (
                []
                if workload.spec.disaggregation == "always"
                else [self._choices(workload, option, allowance) for option in fleet_options]
            )
            self._chosen_on[key] = self._alike.setdefault(
                (workload.name, kinds, *(tuple(map(id, choices)) for choices in found)), found
            )
        return self._chosen_on[key]

    def _alone(
        self, workload: ServingFacts, fleet_options: Sequence[FleetOption], chosen: Chosen
    ) -> list[OperatingPoint]:
        power = self.problem.constants.power
        return [
            self._on((option,), workload, choice, partial(serving_point, workload, option, choice, power))
            for option, choices in zip(fleet_options, chosen)
            for choice in choices
        ]

    def _choices(self, workload: ServingFacts, option: FleetOption, allowance: float) -> list[GridChoice]:
        kind = (workload.name, option.system.name, option.scaleout_bytes_per_s)
        grids = self._grid(workload, option)
        chooser = self._once(("chooser", *kind), lambda _: GridSelection(workload, grids, self.problem))
        if first := ("dropped", *kind) not in self._counted:
            self._counted.add(("dropped", *kind))
        choices, counts = self._once(
            ("choices", *kind, allowance), lambda _: (chooser.choose(allowance, counts := Counter()), counts)
        )
        if first:
            self.dropped[workload.name].update(counts)
        return choices

    def _grid(self, workload: ServingFacts, option: FleetOption) -> list[Grid]:
        key = ("grids", option.system.name, option.scaleout_bytes_per_s, *self._times[workload.name])
        if key not in self._kept:
            able = [p for p in workload.spec.precision if p in option.system.flop_per_s]
            constants = self.problem.constants.serving
            self._kept[key] = [
                make_grid(workload, option.system, p, option.scaleout_bytes_per_s, constants) for p in able
            ]
            self.evaluated += sum(grid.point.requests_per_s.size for grid in self._kept[key])
        if not self._kept[key] and key not in self._counted:
            self._counted.add(key)
            self.dropped[workload.name]["system has none of the asked precisions"] += 1
        return self._kept[key]

    def _paired(
        self,
        workload: ServingFacts,
        fleet_options: Sequence[FleetOption],
        allowance: float,
        alone: Sequence[OperatingPoint],
    ) -> list[OperatingPoint]:
        if workload.spec.disaggregation == "never":
            return []
        found = []
        for first, second in connected_pairs(fleet_options):
            key = (
                workload.name,
                first.system.name,
                second.system.name,
                first.scaleout_bytes_per_s,
                second.scaleout_bytes_per_s,
            )
            grids = self._grid(workload, first), self._grid(workload, second)
            groups_of = partial(group_searches, workload, *grids, first, second, self.problem)
            groups = self._once(("groups", *key), lambda _, find=groups_of: find())
            if (*key, allowance) not in self._pairs:
                before = sum(each.evaluated for each in groups)
                self._pairs[*key, allowance] = choose_groups(groups, first, second, allowance)
                self.evaluated += sum(each.evaluated for each in groups) - before
            found += [WorkerGroup.of(first, second, choice) for choice in self._pairs[*key, allowance]]
        kept = without_replaceable(found, alone)
        self.dropped[workload.name]["separate pools do no more than the same systems with one pool"] += len(
            found
        ) - len(kept)
        return [
            self._on(
                pair.fleet_options,
                workload,
                pair.choice,
                lambda pair=pair: disaggregated_point(workload, pair, self.problem),
            )
            for pair in kept
        ]

    def _on(
        self,
        fleet_options: tuple[FleetOption, ...],
        workload: ServingFacts,
        choice: object,
        build: Callable[[], OperatingPoint],
    ) -> OperatingPoint:
        """The point of a choice on fleet options of its systems: worked out once, since nothing but the fleet options differs."""
        place = (id(choice), *map(id, fleet_options))  # choices and fleet options live as long as this
        if place not in self._points_on:
            if ("told", id(choice)) not in self._kept:  # with the choice, so that its id stays its own
                self._kept["told", id(choice)] = choice, build()
            told = self._kept["told", id(choice)][1]
            here = replace(
                told,
                workload=workload,
                uses=tuple(
                    replace(use, option=option, systems=use.systems * (1.0 + option.headroom))
                    for use, option in zip(told.uses, fleet_options, strict=True)
                ),
            )
            self._points_on[place] = derated(here, self.problem.derating)
        return self._points_on[place]

    # -- training --------------------------------------------------------------------------------------------------

    def training(self, job: TrainingFacts, fleet_options: Sequence[FleetOption]) -> Iterable[OperatingPoint]:
        seen: set[tuple] = set()
        for option in fleet_options:
            if not permitted(job, option.site):
                self.dropped[job.name]["fleet option barred by residency"] += 1
                continue
            ceiling = min(option.largest, option.offer.supply)
            key = (
                "widths",
                job.name,
                option.system.name,
                option.scaleout_bytes_per_s,
                uneven(option.plant),
                ceiling,
                option.offer.spot,
                option.site.storage_bytes_per_s,
            )
            widths, evaluated = self._once(
                key,
                lambda counts, option=option, most=ceiling: candidate_widths(
                    job, option, most, self.problem, counts, self._searches
                ),
            )
            self.evaluated += 0 if key in seen else evaluated
            seen.add(key)
            yield from (
                derated(training_point(job, option, width, self.problem), self.problem.derating) for width in widths
            )


def derated(point: OperatingPoint, derating: Derating | None) -> OperatingPoint:
    """The point with the capacity that a plan counts on."""
    share = counted_share(derating, point.workload, (use.option.system for use in point.uses))
    return point if share == 1.0 else replace(point, capacity=point.capacity * share)
