"""From a problem to its operating points: evaluates all layouts in arrays, drops what cannot be used, counts why.

The closed forms are in `models`; choosing among the points that are left is the program's work.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from catalog.units import MILLI
from planner import disaggregated_points, serving_points, training_points
from planner.lots import Lot, build_lots
from planner.networks import uneven
from planner.points import Candidates, Point, Pool
from planner.power_caps import capped_points, with_caps
from planner.problem import Problem, ServingFacts, TrainingFacts, permitted

LATENCY_STEP_S = 5 * MILLI  # round trips are rounded up to this, so that near origins share their points


Grids = dict[tuple, list[serving_points.Grid]]


def find_candidates(problem: Problem, grids: Grids | None = None) -> Candidates:
    """Lots, serving points by pool and training points by job; every dropped candidate is counted by its reason.

    `grids`: filled and read, for variants of one question that differ in limits only.
    """
    lots, dropped_lots = build_lots(problem)
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    if dropped_lots:
        dropped["(systems)"] = dropped_lots
    finder = _Finder(problem, dropped, {} if grids is None else grids)
    pools = [with_caps(pool, workload.spec.slo.limits()) for workload in problem.serving for pool in finder.serving(workload, lots)]
    training = {job.name: tuple(p for point in finder.training(job, lots) for p in (point, *capped_points(point))) for job in problem.training}
    used = {id(use.lot) for point in (*(p for pool in pools for p in pool.points), *(p for ps in training.values() for p in ps)) for use in point.uses}
    return Candidates(
        lots=tuple(lot for lot in lots if id(lot) in used),
        pools=tuple(pools),
        training=training,
        dropped={name: +counts for name, counts in dropped.items()},
        evaluated=finder.evaluated,
    )


class _Finder:
    """Remembers grids, since one system stands at many sites."""

    def __init__(self, problem: Problem, dropped: dict[str, Counter[str]], grids: Grids):
        self.problem, self.dropped, self.evaluated = problem, dropped, 0
        self._grids = grids
        self._choices: dict[tuple, list[serving_points.Choice]] = {}
        self._told: dict[int, Point] = {}
        self._groups: dict[tuple, list[disaggregated_points.Groups]] = {}
        self._pairs: dict[tuple, list[disaggregated_points.PairChoice]] = {}

    # -- serving ---------------------------------------------------------------------------------------------------

    def serving(self, workload: ServingFacts, lots: Sequence[Lot]) -> Iterable[Pool]:
        for site in self.problem.sites:
            if not permitted(workload, site):
                self.dropped[workload.name]["site barred by residency"] += 1
                continue
            here = [lot for lot in lots if lot.site is site]
            classes: dict[float, list[tuple[str, str]]] = defaultdict(list)
            for origin in workload.spec.origins:
                for kind, way in self.problem.routes(workload.name, origin.region, site.region).items():
                    classes[math.ceil(way.rtt_s / LATENCY_STEP_S - 1e-9) * LATENCY_STEP_S].append((origin.region, kind))
            yield from self._pools(workload, site.region, here, classes)

    def _pools(self, workload: ServingFacts, site: str, lots: Sequence[Lot], classes: dict[float, list[tuple[str, str]]]) -> Iterable[Pool]:
        """One pool per latency class; classes that admit just the same points share one."""
        merged: dict[tuple, tuple[float, list[tuple[str, str]], list[Point]]] = {}
        for allowance, ways in sorted(classes.items()):
            points = [point for lot in lots for point in self._points(workload, lot, allowance)]
            points += self._paired(workload, lots, allowance, points)
            if not points:
                self.dropped[workload.name]["origin-site pair too far apart for the latency limits"] += len(ways)
                continue
            key = tuple((id(use.lot), use.role, tuple(use.layout.items()), use.batch, use.workers, point.capacity) for point in points for use in point.uses)
            previous = merged.get(key, (0.0, [], []))
            merged[key] = (max(previous[0], allowance), previous[1] + ways, points)
        for allowance, ways, points in merged.values():
            origins, kinds = zip(*ways)
            yield Pool(workload, site, origins, allowance, tuple(points), kinds)

    def _points(self, workload: ServingFacts, lot: Lot, allowance: float) -> list[Point]:
        if workload.spec.disaggregation == "always":
            return []
        key = (workload.name, lot.system.name, lot.scaleout_bytes_per_s, allowance)
        if key not in self._choices:
            counts = self.dropped[workload.name] if not any(k[:3] == key[:3] for k in self._choices) else Counter()
            self._choices[key] = serving_points.choose(workload, self._grid(workload, lot), allowance, self.problem, counts)
        power = self.problem.constants.power
        return [self._on((lot,), choice, lambda choice=choice: serving_points.as_point(workload, lot, choice, power)) for choice in self._choices[key]]

    def _grid(self, workload: ServingFacts, lot: Lot) -> list[serving_points.Grid]:
        key = (workload.name, *workload.spec.precision, lot.system.name, lot.scaleout_bytes_per_s)
        if key not in self._grids:
            able = [p for p in workload.spec.precision if p in lot.system.flop_per_s]
            if not able:
                self.dropped[workload.name]["system has none of the asked precisions"] += 1
            constants = self.problem.constants.serving
            self._grids[key] = [serving_points.make_grid(workload, lot.system, p, lot.scaleout_bytes_per_s, constants) for p in able]
            self.evaluated += sum(grid.point.requests_per_s.size for grid in self._grids[key])
        return self._grids[key]

    def _paired(self, workload: ServingFacts, lots: Sequence[Lot], allowance: float, alone: Sequence[Point]) -> list[Point]:
        if workload.spec.disaggregation == "never":
            return []
        found = []
        for first, second in disaggregated_points.pairs_of(lots):
            key = (workload.name, first.system.name, second.system.name, first.scaleout_bytes_per_s, second.scaleout_bytes_per_s)
            if key not in self._groups:
                grids = self._grid(workload, first), self._grid(workload, second)
                self._groups[key] = disaggregated_points.groups_of(workload, *grids, first, second, self.problem)
            groups = self._groups[key]
            if (*key, allowance) not in self._pairs:
                before = sum(each.evaluated for each in groups)
                self._pairs[*key, allowance] = disaggregated_points.choose(groups, first, second, allowance)
                self.evaluated += sum(each.evaluated for each in groups) - before
            found += [disaggregated_points.Pair.of(first, second, choice) for choice in self._pairs[*key, allowance]]
        kept = disaggregated_points.not_replaceable(found, alone)
        self.dropped[workload.name]["separate pools do no more than the same systems with one pool"] += len(found) - len(kept)
        return [self._on(pair.lots, pair.choice, lambda pair=pair: disaggregated_points.as_point(workload, pair, self.problem)) for pair in kept]

    def _on(self, lots: tuple[Lot, ...], choice: object, build: Callable[[], Point]) -> Point:
        """The point of a choice on lots of its systems: worked out once, since nothing but the lots differs."""
        if id(choice) not in self._told:  # choices live as long as this
            self._told[id(choice)] = build()
        told = self._told[id(choice)]
        return replace(told, uses=tuple(replace(use, lot=lot) for use, lot in zip(told.uses, lots, strict=True)))

    # -- training --------------------------------------------------------------------------------------------------

    def training(self, job: TrainingFacts, lots: Sequence[Lot]) -> Iterable[Point]:
        cache: dict[tuple, list[training_points.Width]] = {}
        for lot in lots:
            if not permitted(job, lot.site):
                self.dropped[job.name]["lot barred by residency"] += 1
                continue
            ceiling = min(lot.largest, lot.offer.supply)
            key = (lot.system.name, lot.scaleout_bytes_per_s, uneven(lot.plant), ceiling)
            if key not in cache:
                cache[key], evaluated = training_points.widths(job, lot, ceiling, self.problem, self.dropped[job.name])
                self.evaluated += evaluated
            yield from (training_points.as_point(job, lot, width, self.problem) for width in cache[key])
