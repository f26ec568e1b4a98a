"""Whether variants of one spec have a plan: resolves, finds points and solves each variant once, and shares what they share.

Not here: which variants to ask about (`planner.diagnosis`).
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from planner.candidates import Grids, find_candidates
from planner.document import Edits, edited
from planner.errors import SpecError
from planner.explain import rows_by_path
from planner.formulate import formulate
from planner.limits import Limit
from planner.lots import Lot, build_lots
from planner.points import Candidates, Point
from planner.problem import Problem
from planner.resolve import catalog_of, resolve_document
from planner.spec import Objective
from solvers.backends import Options
from solvers.data import PlanData
from solvers.diagnose import Elastic, Row, is_feasible, with_limits

LEAST_SECONDS = 30.0
AMPLE = 1 << 12  # times as many ports as any network has, for networks of any size
AMOUNTS = ("limits.budget", "limits.capital", "limits.carbon", "horizon.")


def merged(first: Edits, second: Edits) -> Edits:
    """Both, the second going before the first; of two horizons the longer."""
    old, new = dict(first), dict(second)
    if "horizon.years" in old and "horizon.years" in new:
        new["horizon.years"] = max(old["horizon.years"], new["horizon.years"])
    return tuple({**old, **new}.items())


@dataclass(frozen=True)
class Variant:
    """A spec with some edits and some of its workloads. `data`: None where one of them has no operating point at all."""

    data: PlanData | None
    rows: Mapping[str, Row] = field(default_factory=dict)  # the program's limits by path
    lots: tuple[Lot, ...] = ()  # those with a point
    options: Options = field(default_factory=Options)

    @cached_property
    def elastic(self) -> Elastic:
        return Elastic(self.data, list(self.rows.values()), self.options)

    def without(self, paths: Collection[str]) -> list[Row]:
        return [row for path, row in self.rows.items() if path in paths]


class Trials:
    """Asks about variants, and remembers. Answers are None once the time is up."""

    def __init__(
        self,
        problem: Problem,
        candidates: Candidates,
        document: Mapping[str, Any],
        overlays: Sequence[Path],
        options: Options,
    ):
        self.document, self.overlays, self.options = document, overlays, options
        self.catalog = catalog_of(problem.spec, overlays, {})
        self.ends = time.perf_counter() + max(options.time_limit_s, LEAST_SECONDS)
        self._grids: Grids = {}
        self._problems: dict[str, Problem] = {"[]": problem}
        self._variants: dict[tuple, Variant] = {}
        self._answers: dict[tuple, bool | None] = {}
        self._points = {
            (w.name, "[]", frozenset()): _of(candidates, w.name) for w in (*problem.serving, *problem.training)
        }

    @property
    def seconds_left(self) -> float:
        return self.ends - time.perf_counter()

    def limited_options(self) -> Options:
        return replace(self.options, time_limit_s=max(min(self.seconds_left, self.options.time_limit_s), 5.0))

    # -- questions -------------------------------------------------------------------------------------------------

    def fails(self, names: frozenset[str], edits: Edits, loose: Collection[Limit] = ()) -> bool:
        """Whether the linear relaxation proves that there is no plan without the `loose` limits."""
        if self.seconds_left <= 0:
            return False
        variant, gone = self._loosened(names, edits, loose)
        return variant.data is None or variant.elastic.fails(variant.without(gone))

    def feasible(self, names: frozenset[str], edits: Edits, loose: Collection[Limit] = ()) -> bool | None:
        """Whether there is a plan without the `loose` limits; None where that was not known in time."""
        every = json.dumps(merged(edits, _edits(loose)))
        key = (
            names,
            every,
            frozenset(limit.network_of for limit in loose),
            frozenset(limit.path for limit in loose if limit.is_row),
        )
        if key not in self._answers:
            self._answers[key] = self._solve(names, edits, loose)
        return self._answers[key]

    def has_plan(self, names: frozenset[str], edits: Edits) -> None:
        """Note that a plan of this variant is known."""
        self._answers[names, json.dumps(edits), frozenset(), frozenset()] = True

    def _solve(self, names: frozenset[str], edits: Edits, loose: Collection[Limit]) -> bool | None:
        if self.fails(names, edits, loose):
            return False
        if self.seconds_left <= 0:
            return None
        variant, gone = self._loosened(names, edits, loose)
        return is_feasible(
            with_limits(variant.data, dict.fromkeys(variant.without(gone), math.inf)), self.limited_options()
        )

    def ways_with_points(self, names: frozenset[str], edits: Edits) -> set[tuple[str, str]]:
        """(system, how) of the points with one pool; none where some workload has no point for some origin."""
        if self.seconds_left <= 0:
            return set()
        return {
            (lot.system.name, lot.offer.how) for lot in self.variant(names, merged(edits, self.one_pool(names))).lots
        }

    def one_pool(self, names: Collection[str]) -> Edits:
        """Edits that leave out separate pools, of which most are evaluated: what is found without them is there with them."""
        return tuple((f"{w.path}.disaggregation", "never") for w in self._problems["[]"].serving if w.name in names)

    # -- variants --------------------------------------------------------------------------------------------------

    def _loosened(
        self, names: frozenset[str], edits: Edits, loose: Collection[Limit]
    ) -> tuple[Variant, frozenset[str]]:
        networks = frozenset(limit.network_of for limit in loose if limit.network_of is not None)
        return self.variant(names, merged(edits, _edits(loose)), networks), frozenset(
            limit.path for limit in loose if limit.is_row
        )

    def problem(self, edits: Edits) -> Problem:
        key = json.dumps(edits)
        if key not in self._problems:
            self._problems[key] = resolve_document(edited(self.document, edits), self.overlays)
        return self._problems[key]

    def variant(self, names: frozenset[str], edits: Edits, networks: frozenset[int] = frozenset()) -> Variant:
        """The program's input with these workloads only; `networks`: sites whose networks may be of any size."""
        key = (names, json.dumps(edits), networks)
        if key not in self._variants:
            try:
                self._variants[key] = self._formulated(_some(self.problem(edits), names, networks), edits, networks)
            except SpecError:  # a figure that only the edited spec needs is not known
                self._variants[key] = Variant(None)
        return self._variants[key]

    def _formulated(self, problem: Problem, edits: Edits, networks: frozenset[int]) -> Variant:
        found = self._candidates(problem, edits, networks)
        served = {(pool.workload.name, origin) for pool in found.pools for origin in pool.origins}
        for workload in problem.serving:
            asked = (
                origin.region for origin, rate in zip(workload.spec.origins, workload.requests_per_s) if rate.any()
            )
            if any((workload.name, region) not in served for region in asked):
                return Variant(None)
        if not all(found.training.values()):
            return Variant(None)
        # whether there is a plan does not depend on what is asked for; a least cost always exists then
        cheapest = problem.spec.model_copy(update={"objective": Objective(minimise="cost")})
        form = formulate(replace(problem, spec=cheapest), found, by_need=True)
        return Variant(form.data, rows_by_path(problem, form), found.lots, self.limited_options())

    def _candidates(self, problem: Problem, edits: Edits, networks: frozenset[int]) -> Candidates:
        """Points of each workload, found once for all variants that are alike to it, on the lots of this variant."""
        lots = {_key(lot): lot for lot in build_lots(problem)[0]}
        pools, training = [], {}
        for workload in (*problem.serving, *problem.training):
            key = (workload.name, json.dumps([edit for edit in edits if _concerns(edit[0], workload)]), networks, frozenset(lots))
            if key not in self._points:
                self._points[key] = find_candidates(_some(problem, {workload.name}, ()), self._grids)
            found = self._points[key]
            pools += [
                replace(pool, workload=workload, points=tuple(_moved(p, workload, lots) for p in pool.points))
                for pool in found.pools
            ]
            if workload.name in found.training:
                training[workload.name] = tuple(_moved(p, workload, lots) for p in found.training[workload.name])
        points = [p for pool in pools for p in pool.points] + [p for of_job in training.values() for p in of_job]
        used = {id(use.lot) for point in points for use in point.uses}
        return Candidates(tuple(lot for lot in lots.values() if id(lot) in used), tuple(pools), training, {}, 0)


def _edits(loose: Collection[Limit]) -> Edits:
    return tuple(edit for limit in loose for edit in limit.loose)


def _of(candidates: Candidates, name: str) -> Candidates:
    pools = tuple(pool for pool in candidates.pools if pool.workload.name == name)
    return replace(
        candidates, pools=pools, training={job: points for job, points in candidates.training.items() if job == name}
    )


def _concerns(path: str, workload) -> bool:
    """Whether an edit may change the points of a workload: not so for what limits the whole plan, and for another workload."""
    if path.startswith("workloads["):
        return path.startswith(f"{workload.path}.")
    return not (
        path.startswith(AMOUNTS)
        or path.endswith((".power", ".connection"))
        or (path.endswith(".supply") and workload.spec.kind == "serving")
    )


def _key(lot: Lot) -> tuple[str, str]:
    return lot.name, lot.offer.path


def _moved(point: Point, workload, lots: Mapping[tuple[str, str], Lot]) -> Point:
    return replace(point, workload=workload, uses=tuple(replace(use, lot=lots[_key(use.lot)]) for use in point.uses))


def _some(problem: Problem, names: Collection[str], networks: Collection[int]) -> Problem:
    """Some workloads of the problem only, some sites' networks large enough for anything at the same price per port."""
    sites = list(problem.sites)
    for i in networks:
        n = sites[i].network
        if n is None:
            continue
        large = replace(
            n, radix=n.radix * AMPLE, switch_price=n.switch_price * AMPLE, switch_power_w=n.switch_power_w * AMPLE
        )
        sites[i] = replace(sites[i], network=large)
    return replace(
        problem,
        sites=tuple(sites),
        serving=tuple(w for w in problem.serving if w.name in names),
        training=tuple(job for job in problem.training if job.name in names),
    )
