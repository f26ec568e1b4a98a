"""Find the operating points of a problem: evaluate all layouts in arrays, drop what cannot be used, count the reasons.

The closed forms are in `models`; the program chooses among the points found here.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from catalog.units import MILLI
from models.arrays import sum_of
from planner.candidates.apis import api_point
from planner.candidates.cache import EvaluationCache, Grids, Key
from planner.candidates.disaggregated import (
    GroupChoice,
    WorkerGroup,
    choose_groups,
    disaggregated_point,
    group_searches,
    without_replaceable,
)
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.one_worker import NeedlessPairs
from planner.candidates.pairs import Joined, carried, joined_pairs
from planner.candidates.points import Candidates, Exchange, OperatingPoint, Pool
from planner.candidates.power_caps import capped_points, with_caps
from planner.candidates.reinforcement import ReinforcementSearch
from planner.candidates.serving import Grid, GridChoice, GridSelection, make_grid, serving_point
from planner.candidates.training import LayoutSearches, candidate_widths, training_point
from planner.evaluate.serving import engine_choices
from planner.evaluate.training import Width
from planner.facts.left_out import counted
from planner.messages import Message
from planner.problem.derating import counted_share
from planner.problem.fabrics import uneven
from planner.problem.facility import NOT_ASSURED
from planner.problem.facts import Derating, ResolvedSpec, ServingFacts, SiteFacts, TrainingFacts, is_assured, permitted
from planner.problem.quality import below_floors
from planner.problem.reinforcement import ReinforcementFacts

ROUND_TRIP_STEP_S = 5 * MILLI  # round trips are rounded up to this, so that near origins share their points
ROUND_TRIP_TOL = 1e-9  # in steps, before a round trip is rounded up

Route = tuple[str, str]  # origin, and line type, empty where there is no choice of lines
Choices = list[list[GridChoice]]  # by fleet option
PointsByRoundTrip = tuple[
    float, list[Route], list[OperatingPoint]
]  # round trip allowed for, routes, and points that keep the limits


def find_candidates(
    problem: ResolvedSpec, grids: Grids | None = None, below_floor: bool = False, until: float = math.inf
) -> Candidates:
    """Find fleet options, serving points by pool and training points by job, and count dropped candidates by reason.

    `grids`: cache, read and filled, for variants of one problem that differ in prices, limits and demand only. `below_floor`: keep the
    points of architectures below a quality floor; the program then leaves them out, so that the floor can be moved without a new search.
    `until`: end of the search, on the performance counter [s]. Raises OutOfTime when that comes before all points are evaluated, and
    OutOfMemory when the memory of the spec is used up by then.
    """
    fleet_options, dropped_options = build_fleet_options(problem)
    dropped: dict[str, Counter[str]] = defaultdict(Counter)
    if dropped_options := dropped_options + counted(problem.notes):
        dropped["(systems)"] = dropped_options
    cache = EvaluationCache(problem, dropped, {} if grids is None else grids, until)
    serving, jobs = _ServingSearch(problem, cache), _TrainingSearch(problem, cache)
    learning = ReinforcementSearch(problem, cache)

    def points_of(job: TrainingFacts, options: Sequence[FleetOption]) -> Iterable[OperatingPoint]:
        return learning.points(job, options) if isinstance(job, ReinforcementFacts) else jobs.points(job, options)

    barred = below_floors(problem, of_choices=not below_floor)
    for name in barred:
        dropped[name][Message.of("dropped.below_quality_floor").text()] += 1
    pools = [
        with_caps(pool, workload.spec.limits(), problem.derating)
        for workload in problem.serving
        if workload.name not in barred
        for pool in serving.pools(workload, _open_to(problem, workload, fleet_options, dropped[workload.name]))
    ]
    training = {
        job.name: tuple(
            p
            for point in points_of(job, _open_to(problem, job, fleet_options, dropped[job.name]))
            for p in (point, *(() if point.iteration else capped_points(point)))
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
        evaluated=cache.evaluated,
        fastest=cache.fastest,
    )


def _open_to(
    problem: ResolvedSpec,
    workload: ServingFacts | TrainingFacts,
    fleet_options: Iterable[FleetOption],
    dropped: Counter[str],
) -> list[FleetOption]:
    """List the fleet options that a workload's tenant may use, in places that are assured as it demands."""
    tenant = problem.tenant_of(workload)
    mine = [option for option in fleet_options if option.tenant == tenant]
    found = [option for option in mine if is_assured(workload, option.site, option.offer)]
    dropped[NOT_ASSURED] += len(mine) - len(found)
    return found


def _systems_of(pair: Joined) -> Key:
    """Return what groups of workers on two fleet options depend on, beside prices: systems, networks and a line between them."""
    first, second, exchange = pair
    line = None if exchange is None else exchange.line
    return first.system.name, second.system.name, first.scaleout, second.scaleout, line


def _runs(point: OperatingPoint) -> Key:
    """Return how a point runs, the same for points of several pools that differ in nothing else."""
    uses = (
        (id(use.option), use.role, use.choice, tuple(use.layout.items()), use.batch, use.workers) for use in point.uses
    )
    return (*uses, None if point.exchange is None else point.exchange.way.kind, point.capacity)


def _nested(classes: Sequence[PointsByRoundTrip]) -> Iterable[PointsByRoundTrip]:
    """Let the points of each class serve all nearer origins as well, and keep each point with its farthest class only.

    Latency limits hold at a nearer origin with time to spare, and one whole replica for all costs less than one for each class. Divisible
    replicas gain nothing from it.
    """
    known: set[Key] = set()
    for allowance_s, _, points in sorted(classes, key=lambda each: -each[0]):
        routes = [route for nearer_s, some, _ in classes if nearer_s <= allowance_s for route in some]
        kept = [point for point in points if _runs(point) not in known]
        known.update(map(_runs, kept))
        if kept:
            yield allowance_s, routes, kept


def _kept_back(problem: ResolvedSpec, workload: ServingFacts) -> tuple[float, float]:
    """Return the share of systems held beyond those at work, and the share of all that stays free."""
    redundancy = workload.spec.redundancy
    spare = 0.0 if redundancy is None or isinstance(redundancy, str) else redundancy
    return spare, problem.spec.packing.free


class _ServingSearch:
    """Search for the operating points of serving workloads, pool by pool."""

    def __init__(self, problem: ResolvedSpec, cache: EvaluationCache):
        self.problem, self.cache = problem, cache
        self._needless = NeedlessPairs(problem, cache)
        self._points: dict[Key, OperatingPoint] = {}  # by choice and fleet options
        self._choices_at: dict[Key, Choices] = {}  # by workload, system types and round trip
        self._same_choices: dict[Key, Choices] = {}  # by what was chosen
        self._groups_at: dict[Key, list[GroupChoice]] = {}
        self._asked: dict[Key, dict[float, Joined]] = {}  # by workload, systems and networks; then by round trip

    def pools(self, workload: ServingFacts, fleet_options: Sequence[FleetOption]) -> Iterable[Pool]:
        """Build the pools of a workload at all sites that it may use."""
        dropped = self.cache.dropped[workload.name]
        places: list[tuple[SiteFacts, list[FleetOption], dict[float, list[Route]]]] = []
        for site in self.problem.sites:
            if not permitted(workload, site):
                dropped[Message.of("dropped.site_outside_residency").text()] += 1
                continue
            here = [
                option
                for option in fleet_options
                if option.site is site and (option.offer.spot is None or option.offer.spot.headroom is not None)
            ]
            if barred := sum(option.site is site for option in fleet_options) - len(here):
                dropped[Message.of("dropped.spot_without_headroom").text()] += barred
            classes: dict[float, list[Route]] = defaultdict(list)  # by round trip, rounded up
            for origin in workload.spec.origins:
                for line_type, route in self.problem.routes(workload.name, origin.region, site.region).items():
                    rtt_s = math.ceil(route.rtt_s / ROUND_TRIP_STEP_S - ROUND_TRIP_TOL) * ROUND_TRIP_STEP_S
                    classes[rtt_s].append((origin.region, line_type))
            places.append((site, here, classes))
        options_at = {site.region: here for site, here, _ in places if site.api is None}
        pairs_at = {
            site.region: joined_pairs(self.problem, workload, site.region, options_at, dropped) for site, *_ in places
        }
        for site, _, classes in places:
            for pair in pairs_at[site.region]:
                self._ask(workload, pair, classes)
        for site, here, classes in places:
            if site.api is None:
                yield from self._pools_at(workload, site.region, here, classes, pairs_at[site.region])
            else:
                yield from self._api_pools(workload, here, classes)

    def _ask(self, workload: ServingFacts, pair: Joined, allowances_s: Iterable[float]) -> None:
        """Note which round trips are asked of a pair of systems and networks, and by which fleet options first: their prices count."""
        asked = self._asked.setdefault((workload.name, *_systems_of(pair)), {})
        for allowance_s in sorted(allowances_s):
            if not self._is_needless(workload, pair, allowance_s):
                asked.setdefault(allowance_s, pair)

    def _pools_at(
        self,
        workload: ServingFacts,
        site: str,
        fleet_options: Sequence[FleetOption],
        classes: dict[float, list[Route]],
        pairs: Sequence[Joined],
    ) -> Iterable[Pool]:
        """Build one pool per class of round trips; classes with the same points share a pool."""
        merged: dict[Key, PointsByRoundTrip] = {}
        built: dict[int, list[OperatingPoint]] = {}
        for allowance_s, routes in sorted(classes.items()):
            choices = self._choices(workload, fleet_options, allowance_s)
            if id(choices) not in built:
                built[id(choices)] = self._one_pool_points(workload, fleet_options, choices)
            one_pool = built[id(choices)]
            two_pools = self._two_pool_points(workload, pairs, allowance_s, one_pool)
            if not one_pool and not two_pools:
                if fleet_options:
                    dropped = self.cache.dropped[workload.name]
                    dropped[Message.of("dropped.too_far").text()] += len(routes)
                continue
            key = (id(choices), *map(_runs, two_pools))
            previous_s, shared, _ = merged.get(key, (0.0, [], []))
            merged[key] = (max(previous_s, allowance_s), shared + routes, [*one_pool, *two_pools])
        classes_of = list(merged.values())
        for allowance_s, routes, points in _nested(classes_of) if self.problem.spec.solver.whole else classes_of:
            origins, line_types = zip(*routes, strict=True)
            yield Pool(workload, site, origins, allowance_s, tuple(points), line_types)

    def _api_pools(
        self, workload: ServingFacts, fleet_options: Sequence[FleetOption], classes: dict[float, list[Route]]
    ) -> Iterable[Pool]:
        """Build the pools of tokens bought from an API, for the origins whose round trip is short enough."""
        for option in fleet_options:
            found = {
                allowance_s: point
                for allowance_s in classes
                if (point := api_point(workload, option, allowance_s)) is not None
            }
            if not found:
                dropped = self.cache.dropped[workload.name]
                dropped[Message.of("dropped.api_unfit").text()] += 1
                continue
            routes = [route for allowance_s in found for route in classes[allowance_s]]
            origins, line_types = zip(*routes, strict=True)
            yield Pool(workload, option.site.region, origins, max(found), (found[max(found)],), line_types)

    # -- one pool ------------------------------------------------------------------------------------------------------

    def _choices(self, workload: ServingFacts, fleet_options: Sequence[FleetOption], allowance_s: float) -> Choices:
        """Select the grid points of each fleet option; equal selections are one object, whatever the site and the round trip."""
        systems = tuple((option.system.name, option.scaleout) for option in fleet_options)
        key = workload.name, systems, allowance_s
        if key not in self._choices_at:
            found: Choices = []
            if workload.spec.disaggregation != "always":
                found = [self._choices_on(workload, option, allowance_s) for option in fleet_options]
            selected = tuple(tuple(map(id, choices)) for choices in found)
            self._choices_at[key] = self._same_choices.setdefault((workload.name, systems, *selected), found)
        return self._choices_at[key]

    def _choices_on(self, workload: ServingFacts, option: FleetOption, allowance_s: float) -> list[GridChoice]:
        """Select the grid points of one fleet option; dropped points are counted at the first round trip only."""
        system = (option.system.name, option.scaleout)
        grids = self._grids(workload, option)
        selection = self.cache.once("chooser", workload, system, lambda _: GridSelection(workload, grids, self.problem))
        first = self.cache.first(("dropped", workload.name, *system))

        def choose(_: Counter[str]) -> tuple[list[GridChoice], Counter[str]]:
            counts: Counter[str] = Counter()
            return selection.choose(allowance_s, counts), counts

        choices, counts = self.cache.once("choices", workload, (*system, allowance_s), choose)
        if first:
            self.cache.dropped[workload.name].update(counts)
        return choices

    def _grids(self, workload: ServingFacts, option: FleetOption) -> list[Grid]:
        """Evaluate a workload on the system of a fleet option in each way in which its engine may run there."""
        key = ("grids", option.system.name, option.scaleout, *self.cache.times_key(workload))
        if key not in self.cache.kept:
            self.cache.check_time()
            constants = self.problem.constants.serving
            self.cache.kept[key] = [
                make_grid(workload, option.system, choice, option.scaleout, constants)
                for choice in engine_choices(workload, option.system)
            ]
            self.cache.evaluated += sum_of(np.size(grid.point.requests_per_s) for grid in self.cache.kept[key])
        grids: list[Grid] = self.cache.kept[key]
        if not grids and self.cache.first(key):
            self.cache.dropped[workload.name][Message.of("dropped.no_precision").text()] += 1
        return grids

    def _one_pool_points(
        self, workload: ServingFacts, fleet_options: Sequence[FleetOption], choices: Choices
    ) -> list[OperatingPoint]:
        """Build the operating points of the selected grid points on their fleet options."""
        constants = self.problem.constants

        def point(option: FleetOption, choice: GridChoice) -> OperatingPoint:
            return self._place(workload, choice, (option,), lambda: serving_point(workload, option, choice, constants))

        return [
            point(option, choice)
            for option, selected in self.cache.in_time(
                zip(fleet_options, choices, strict=False)
            )  # no choices where pools must be separate
            for choice in selected
        ]

    # -- two pools -----------------------------------------------------------------------------------------------------

    def _two_pool_points(
        self,
        workload: ServingFacts,
        pairs: Sequence[Joined],
        allowance_s: float,
        one_pool: Sequence[OperatingPoint],
    ) -> list[OperatingPoint]:
        """Build the points with separate prefill and decode pools that serve more than the same systems with one pool; at two sites, all of them."""
        found = [
            WorkerGroup.of(pair[0], pair[1], choice, pair[2])
            for pair in self.cache.in_time(pairs)
            if not self._is_needless(workload, pair, allowance_s)
            for choice in self._groups(workload, pair, allowance_s)
        ]
        kept = without_replaceable(found, one_pool)
        dropped = self.cache.dropped[workload.name]
        dropped[Message.of("dropped.idle_pools").text()] += len(found) - len(kept)

        def point(group: WorkerGroup) -> OperatingPoint:
            build = lambda: disaggregated_point(workload, group, self.problem)
            return self._place(workload, group.choice, group.fleet_options, build, group.exchange)

        return [point(group) for group in self.cache.in_time(kept)]

    def _is_needless(self, workload: ServingFacts, pair: Joined, allowance_s: float) -> bool:
        """Tell whether one worker does what two pools on a pair of systems could do; at two sites, prices may differ."""
        sides = lambda: [
            (self._grids(workload, option), self._choices_on(workload, option, allowance_s)) for option in pair[:2]
        ]
        key = (*_systems_of(pair), allowance_s)
        return pair[2] is None and self._needless.of(workload, key, pair[0] is pair[1], sides)

    def _groups(self, workload: ServingFacts, pair: Joined, allowance_s: float) -> list[GroupChoice]:
        """Select the groups of workers on a pair of systems, for all round trips at once."""
        (first, second, exchange), systems = pair, _systems_of(pair)
        grids = self._grids(workload, first), self._grids(workload, second)
        searches = self.cache.once(
            "groups",
            workload,
            systems,
            lambda _: group_searches(workload, *grids, first, second, self.problem, exchange),
        )
        key = (workload.name, *systems)
        if (*key, allowance_s) not in self._groups_at:
            self.cache.check_time()
            before = sum_of(search.evaluated for search in searches)
            chosen, counts = choose_groups(searches, self._asked[key])
            self._groups_at.update(((*key, each_s), groups) for each_s, groups in chosen.items())
            self.cache.dropped[workload.name] += counts
            self.cache.evaluated += sum_of(search.evaluated for search in searches) - before
        return self._groups_at[*key, allowance_s]

    def _place(
        self,
        workload: ServingFacts,
        choice: GridChoice | GroupChoice,
        fleet_options: tuple[FleetOption, ...],
        build: Callable[[], OperatingPoint],
        exchange: Exchange | None = None,
    ) -> OperatingPoint:
        """Place a choice on fleet options of its systems; its point is built once, since only the fleet options differ."""
        # choices, which equal workloads share, and fleet options live as long as this object
        key = (workload.name, id(choice), *map(id, fleet_options), exchange)
        if key not in self._points:
            if (
                "point",
                id(choice),
            ) not in self.cache.kept:  # kept with the choice, so that no other object takes its id
                self.cache.kept["point", id(choice)] = choice, build()
            built: OperatingPoint = self.cache.kept["point", id(choice)][1]
            spare, free = _kept_back(self.problem, workload)
            at = (
                fleet_options if len(fleet_options) == len(built.uses) else fleet_options * len(built.uses)
            )  # encoders stand beside their pool
            uses = tuple(
                replace(
                    use, option=option, systems=use.systems * (1.0 + option.headroom) * (1.0 + spare) / (1.0 - free)
                )
                for use, option in zip(built.uses, at, strict=True)
            )
            way = exchange and carried(exchange, workload, uses[0], self.problem)
            placed = replace(built, workload=workload, uses=uses, exchange=way)
            self._points[key] = derated(placed, self.problem.derating)
        return self._points[key]


class _TrainingSearch:
    """Search for the operating points of training jobs."""

    def __init__(self, problem: ResolvedSpec, cache: EvaluationCache):
        self.problem, self.cache = problem, cache
        self._layouts: LayoutSearches = cache.kept.setdefault(("searches", *cache.catalog_key), LayoutSearches(problem))

    def points(self, job: TrainingFacts, fleet_options: Sequence[FleetOption]) -> Iterable[OperatingPoint]:
        """Build the points of a job on all fleet options that it may use."""
        able = [option for option in fleet_options if permitted(job, option.site)]
        self.cache.dropped[job.name][Message.of("dropped.option_outside_residency").text()] += len(fleet_options) - len(
            able
        )
        for option in self.cache.in_time(sorted(able, key=_fastest_network_first)):
            self._widths(job, option)  # slower networks are quickly searched after a faster one
        for option in able:
            for width in self._widths(job, option):
                yield derated(training_point(job, option, width, self.problem), self.problem.derating)

    def _widths(self, job: TrainingFacts, option: FleetOption) -> list[Width]:
        """Find the widths of a job on a fleet option."""
        most = min(option.largest, option.offer.supply)
        key = (
            option.system.plain_name,
            option.scaleout,
            uneven(option.plant),
            most,
            option.offer.spot,
            option.site.storage_bytes_per_s,
        )

        def find(counts: Counter[str]) -> tuple[list[Width], int, float]:
            return candidate_widths(job, option, most, self.problem, counts, self._layouts)

        widths, evaluated, fastest = self.cache.once("widths", job, key, find)
        self.cache.learn(job.name, fastest)
        if self.cache.first(("evaluated", job.name, *key)):
            self.cache.evaluated += evaluated
        return widths


def _fastest_network_first(option: FleetOption) -> tuple[bool, float, float]:
    return uneven(option.plant) is not None, -option.scaleout.bytes_per_s, option.scaleout.latency_s


def derated(point: OperatingPoint, derating: Derating | None) -> OperatingPoint:
    """Reduce the capacity of a point to the share that the plan counts on."""
    share = counted_share(derating, point.workload, (use.option.system for use in point.uses))
    return point if share == 1.0 else replace(point, capacity=point.capacity * share)
