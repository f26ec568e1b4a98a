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
from planner.candidates import disaggregated as disaggregated_points
from planner.candidates import serving as serving_points
from planner.candidates import training as training_points
from planner.candidates.apis import api_point
from planner.candidates.fleet_options import Lot, build_lots
from planner.candidates.points import Candidates, Point, Pool
from planner.candidates.power_caps import capped_points, with_caps
from planner.problem.derating import counted_share
from planner.problem.fabrics import uneven
from planner.problem.facts import Derating, Problem, ServingFacts, TrainingFacts, permitted
from planner.problem.quality import below_floors

LATENCY_STEP_S = 5 * MILLI  # round trips are rounded up to this, so that near origins share their points
NOT_OF_POINTS = {
    "demand",
    "origins",
    "residency",
    "weights_from",
}  # words of a workload that its points do not depend on

Chosen = list[list[serving_points.Choice]]
Grids = dict[Any, Any]  # what was worked out of workloads on systems, under the keys of `_Finder`


def find_candidates(problem: Problem, grids: Grids | None = None, below_floor: bool = False) -> Candidates:
    """Lots, serving points by pool and training points by job; every dropped candidate is counted by its reason.

    `grids`: filled and read, for variants of one question that differ in prices, limits and demand only. `below_floor`: with the points
    of architectures below a quality floor, which the program then leaves out, so that the floor can be moved in a program that is kept.
    """
    lots, dropped_lots = build_lots(problem)
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    if dropped_lots:
        dropped["(systems)"] = dropped_lots
    finder = _Finder(problem, dropped, {} if grids is None else grids)
    barred = below_floors(problem, of_choices=not below_floor)
    for name in barred:
        dropped[name]["architecture below the quality floor"] += 1
    pools = [
        with_caps(pool, workload.spec.slo.limits(), problem.derating)
        for workload in problem.serving
        if workload.name not in barred
        for pool in finder.serving(workload, _open_to(problem, workload, lots))
    ]
    training = {
        job.name: tuple(
            p for point in finder.training(job, _open_to(problem, job, lots)) for p in (point, *capped_points(point))
        )
        for job in problem.training
    }
    used = {
        id(use.lot)
        for point in (*(p for pool in pools for p in pool.points), *(p for ps in training.values() for p in ps))
        for use in point.uses
    }
    return Candidates(
        lots=tuple(lot for lot in lots if id(lot) in used),
        pools=tuple(pools),
        training=training,
        dropped={name: +counts for name, counts in dropped.items()},
        evaluated=finder.evaluated,
    )


def _open_to(problem: Problem, workload: ServingFacts | TrainingFacts, lots: Iterable[Lot]) -> list[Lot]:
    tenant = problem.tenant_of(workload)
    return [lot for lot in lots if lot.tenant == tenant]


class _Finder:
    """Remembers what it works out, since one system stands at many sites, and in `grids` for the next problem that is alike."""

    def __init__(self, problem: Problem, dropped: dict[str, Counter[str]], grids: Grids):
        self.problem, self.dropped, self.evaluated = problem, dropped, 0
        self._kept = grids
        self._counted: set[tuple] = set()
        self._points_on: dict[tuple, Point] = {}
        self._chosen_on: dict[tuple, Chosen] = {}
        self._alike: dict[tuple, Chosen] = {}
        self._pairs: dict[tuple, list[disaggregated_points.PairChoice]] = {}
        figures = problem.catalog_digest, repr(problem.spec.overrides)
        self._searches = self._kept.setdefault(("searches", *figures), training_points.Searches(problem))
        common = (*figures, problem.spec.solver.points_per_system, repr(problem.derating))
        self._times = {
            w.name: (*figures, w.spec.model_dump_json(exclude={*NOT_OF_POINTS, "slo"})) for w in problem.serving
        }
        self._work = {w.name: (*common, *self._asked(w)) for w in (*problem.serving, *problem.training)}

    def _asked(self, workload: ServingFacts | TrainingFacts) -> tuple:
        """All of a workload's words that its points depend on."""
        if isinstance(workload, TrainingFacts):
            return (workload.spec.model_dump_json(),)
        peak = math.inf if self.problem.spec.objective.maximise else workload.peak_requests_per_s
        return workload.spec.model_dump_json(exclude=NOT_OF_POINTS), peak

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

    def serving(self, workload: ServingFacts, lots: Sequence[Lot]) -> Iterable[Pool]:
        for site in self.problem.sites:
            if not permitted(workload, site):
                self.dropped[workload.name]["site barred by residency"] += 1
                continue
            here = [
                lot
                for lot in lots
                if lot.site is site and (lot.offer.spot is None or lot.offer.spot.headroom is not None)
            ]
            if barred := sum(lot.site is site for lot in lots) - len(here):
                self.dropped[workload.name]["spot offer without headroom for serving"] += barred
            classes: dict[float, list[tuple[str, str]]] = defaultdict(list)
            for origin in workload.spec.origins:
                for kind, way in self.problem.routes(workload.name, origin.region, site.region).items():
                    classes[math.ceil(way.rtt_s / LATENCY_STEP_S - 1e-9) * LATENCY_STEP_S].append((origin.region, kind))
            if site.api is None:
                yield from self._pools(workload, site.region, here, classes)
            else:
                yield from self._bought(workload, here, classes)

    def _pools(
        self, workload: ServingFacts, site: str, lots: Sequence[Lot], classes: dict[float, list[tuple[str, str]]]
    ) -> Iterable[Pool]:
        """One pool per latency class; classes that admit just the same points share one."""
        merged: dict[tuple, tuple[float, list[tuple[str, str]], list[Point]]] = {}
        kinds = tuple((lot.system.name, lot.scaleout_bytes_per_s) for lot in lots)
        built: dict[int, list[Point]] = {}
        for allowance, ways in sorted(classes.items()):
            chosen = self._chosen(workload, lots, kinds, allowance)
            if id(chosen) not in built:
                built[id(chosen)] = self._alone(workload, lots, chosen)
            alone = built[id(chosen)]
            paired = self._paired(workload, lots, allowance, alone)
            if not alone and not paired:
                self.dropped[workload.name]["origin-site pair too far apart for the latency limits"] += len(ways)
                continue
            uses = ((point.capacity, use) for point in paired for use in point.uses)
            key = (
                id(chosen),
                *(
                    (id(use.lot), use.role, tuple(use.layout.items()), use.batch, use.workers, capacity)
                    for capacity, use in uses
                ),
            )
            previous = merged.get(key, (0.0, [], []))
            merged[key] = (max(previous[0], allowance), previous[1] + ways, [*alone, *paired])
        for allowance, ways, points in merged.values():
            origins, kinds = zip(*ways)
            yield Pool(workload, site, origins, allowance, tuple(points), kinds)

    def _bought(
        self, workload: ServingFacts, lots: Sequence[Lot], classes: dict[float, list[tuple[str, str]]]
    ) -> Iterable[Pool]:
        """Tokens from an API, for the origins from which it is near enough."""
        for lot in lots:
            found = {
                allowance: point for allowance in classes if (point := api_point(workload, lot, allowance)) is not None
            }
            if not found:
                self.dropped[workload.name]["API of other workloads, or not known to keep the latency limits"] += 1
                continue
            origins, kinds = zip(*(way for allowance in found for way in classes[allowance]))
            yield Pool(workload, lot.site.region, origins, max(found), (found[max(found)],), kinds)

    def _chosen(self, workload: ServingFacts, lots: Sequence[Lot], kinds: tuple, allowance: float) -> Chosen:
        """The points that go on of each lot; one object where they are the same, for other lots of the same `kinds` or another allowance."""
        key = workload.name, kinds, allowance
        if key not in self._chosen_on:
            found = (
                []
                if workload.spec.disaggregation == "always"
                else [self._choices(workload, lot, allowance) for lot in lots]
            )
            self._chosen_on[key] = self._alike.setdefault(
                (workload.name, kinds, *(tuple(map(id, choices)) for choices in found)), found
            )
        return self._chosen_on[key]

    def _alone(self, workload: ServingFacts, lots: Sequence[Lot], chosen: Chosen) -> list[Point]:
        power = self.problem.constants.power
        return [
            self._on((lot,), workload, choice, partial(serving_points.as_point, workload, lot, choice, power))
            for lot, choices in zip(lots, chosen)
            for choice in choices
        ]

    def _choices(self, workload: ServingFacts, lot: Lot, allowance: float) -> list[serving_points.Choice]:
        kind = (workload.name, lot.system.name, lot.scaleout_bytes_per_s)
        grids = self._grid(workload, lot)
        chooser = self._once(("chooser", *kind), lambda _: serving_points.Chooser(workload, grids, self.problem))
        if first := ("dropped", *kind) not in self._counted:
            self._counted.add(("dropped", *kind))
        choices, counts = self._once(
            ("choices", *kind, allowance), lambda _: (chooser.choose(allowance, counts := Counter()), counts)
        )
        if first:
            self.dropped[workload.name].update(counts)
        return choices

    def _grid(self, workload: ServingFacts, lot: Lot) -> list[serving_points.Grid]:
        key = ("grids", lot.system.name, lot.scaleout_bytes_per_s, *self._times[workload.name])
        if key not in self._kept:
            able = [p for p in workload.spec.precision if p in lot.system.flop_per_s]
            constants = self.problem.constants.serving
            self._kept[key] = [
                serving_points.make_grid(workload, lot.system, p, lot.scaleout_bytes_per_s, constants) for p in able
            ]
            self.evaluated += sum(grid.point.requests_per_s.size for grid in self._kept[key])
        if not self._kept[key] and key not in self._counted:
            self._counted.add(key)
            self.dropped[workload.name]["system has none of the asked precisions"] += 1
        return self._kept[key]

    def _paired(
        self, workload: ServingFacts, lots: Sequence[Lot], allowance: float, alone: Sequence[Point]
    ) -> list[Point]:
        if workload.spec.disaggregation == "never":
            return []
        found = []
        for first, second in disaggregated_points.pairs_of(lots):
            key = (
                workload.name,
                first.system.name,
                second.system.name,
                first.scaleout_bytes_per_s,
                second.scaleout_bytes_per_s,
            )
            grids = self._grid(workload, first), self._grid(workload, second)
            groups_of = partial(disaggregated_points.groups_of, workload, *grids, first, second, self.problem)
            groups = self._once(("groups", *key), lambda _, find=groups_of: find())
            if (*key, allowance) not in self._pairs:
                before = sum(each.evaluated for each in groups)
                self._pairs[*key, allowance] = disaggregated_points.choose(groups, first, second, allowance)
                self.evaluated += sum(each.evaluated for each in groups) - before
            found += [disaggregated_points.Pair.of(first, second, choice) for choice in self._pairs[*key, allowance]]
        kept = disaggregated_points.not_replaceable(found, alone)
        self.dropped[workload.name]["separate pools do no more than the same systems with one pool"] += len(
            found
        ) - len(kept)
        return [
            self._on(
                pair.lots,
                workload,
                pair.choice,
                lambda pair=pair: disaggregated_points.as_point(workload, pair, self.problem),
            )
            for pair in kept
        ]

    def _on(self, lots: tuple[Lot, ...], workload: ServingFacts, choice: object, build: Callable[[], Point]) -> Point:
        """The point of a choice on lots of its systems: worked out once, since nothing but the lots differs."""
        place = (id(choice), *map(id, lots))  # choices and lots live as long as this
        if place not in self._points_on:
            if ("told", id(choice)) not in self._kept:  # with the choice, so that its id stays its own
                self._kept["told", id(choice)] = choice, build()
            told = self._kept["told", id(choice)][1]
            here = replace(
                told,
                workload=workload,
                uses=tuple(
                    replace(use, lot=lot, systems=use.systems * (1.0 + lot.headroom))
                    for use, lot in zip(told.uses, lots, strict=True)
                ),
            )
            self._points_on[place] = counted_on(here, self.problem.derating)
        return self._points_on[place]

    # -- training --------------------------------------------------------------------------------------------------

    def training(self, job: TrainingFacts, lots: Sequence[Lot]) -> Iterable[Point]:
        seen: set[tuple] = set()
        for lot in lots:
            if not permitted(job, lot.site):
                self.dropped[job.name]["lot barred by residency"] += 1
                continue
            ceiling = min(lot.largest, lot.offer.supply)
            key = (
                "widths",
                job.name,
                lot.system.name,
                lot.scaleout_bytes_per_s,
                uneven(lot.plant),
                ceiling,
                lot.offer.spot,
                lot.site.storage_bytes_per_s,
            )
            widths, evaluated = self._once(
                key,
                lambda counts, lot=lot, most=ceiling: training_points.widths(
                    job, lot, most, self.problem, counts, self._searches
                ),
            )
            self.evaluated += 0 if key in seen else evaluated
            seen.add(key)
            yield from (
                counted_on(training_points.as_point(job, lot, width, self.problem), self.problem.derating)
                for width in widths
            )


def counted_on(point: Point, derating: Derating | None) -> Point:
    """The point with the capacity that a plan counts on."""
    share = counted_share(derating, point.workload, (use.lot.system for use in point.uses))
    return point if share == 1.0 else replace(point, capacity=point.capacity * share)
