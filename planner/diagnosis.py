"""Why a spec has no plan: the limits that are in conflict, and the smallest change that gives it one.

Every answer comes from solving: a set of limits is in conflict when the spec without all others is proven to have no plan
and each of them is needed for that; a repair is stated after the repaired spec was found to have a plan. What limits
there are: `planner.limits`. The mathematics of conflicts and of least relief: `solvers.diagnose`.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.candidates import Grids, find_candidates
from planner.document import Edits, at, edited
from planner.explain import rows_by_path
from planner.formulate import formulate
from planner.limits import Limit, beyond_horizon, change_words, further_offers, last_resorts, limits_of, nothing_fits, nothing_runs
from planner.points import Candidates
from planner.problem import Problem
from planner.resolve import catalog_of, resolve_document
from planner.spec import Objective
from solvers.backends import Options
from solvers.data import PlanData
from solvers.diagnose import hitting_sets, is_feasible, least_relief, smallest_conflict, with_limits

FOUND_WITHIN = 0.01  # latencies and deadlines are found to this share
STEPS = (1.05, 1.25, 2.0, 5.0, 25.0, 1e3, 1e5)  # tried in turn until one is far enough
OTHER = 1.0  # a change of what is no number counts as much as doubling one
CONFLICTS = 8  # at most so many are looked for before the smallest repair is chosen
LEAST_SECONDS = 20.0


def diagnose(problem: Problem, candidates: Candidates, document: Mapping[str, Any], overlays: Sequence[Path], options: Options) -> dict[str, Any]:
    """The `diagnosis` of a plan document: conflict, repair, and whether the repair was found to give a plan.

    Each workload is looked at alone first, then all together. As long again as the solver's time limit may be spent.
    """
    trials = _Trials(problem, candidates, document, overlays, options)
    names = [w.name for w in (*problem.serving, *problem.training) if not _scales(problem, w.name)]
    conflict: dict[str, Limit] = {}
    edits: Edits = ()
    for group in [*([name] for name in names if len(names) > 1), names]:
        if trials.feasible(frozenset(group), edits) is not False:
            continue
        found, repair = _Mending(trials, frozenset(group), edits).mend()
        conflict |= {limit.path: limit for limit in found}
        edits = merged(edits, repair)
    known, defaults = trials.limits, problem.spec.model_dump()
    changes = [(path, old, new) for path, new in edits if (old := first_of(at(document, path), at(defaults, path))) != new]
    return {
        "conflict": [{"path": limit.path, "name": limit.name, "words": limit.words} for limit in conflict.values()],
        "repair": [
            {"path": path, "from": old, "to": new, "unit": known[path].unit if path in known else None, "words": change_words(path, old, new)}
            for path, old, new in changes
        ],
        "repair_checked": bool(changes) and trials.feasible(frozenset(names), edits) is True,
    }


def first_of(given: Any, default: Any) -> Any:
    return default if given is None else given


def merged(first: Edits, second: Edits) -> Edits:
    """Both, the second going before the first; of two horizons the longer."""
    old, new = dict(first), dict(second)
    if "horizon.years" in old and "horizon.years" in new:
        new["horizon.years"] = max(old["horizon.years"], new["horizon.years"])
    return tuple({**old, **new}.items())


def _scales(problem: Problem, name: str) -> bool:
    """Whether throughput is maximised over this workload: it can always be served less."""
    asked = problem.spec.objective
    return asked.maximise is not None and name in {w.name for w in problem.serving} and asked.workload in (None, name)


@dataclass(frozen=True, slots=True)
class _Variant:
    problem: Problem
    data: PlanData | None  # None where a workload has no operating point at all
    rows: Mapping[str, tuple[str, int]]  # the program's limits by path


class _Trials:
    """Answers whether a variant of the spec has a plan, and remembers."""

    def __init__(self, problem: Problem, candidates: Candidates, document: Mapping[str, Any], overlays: Sequence[Path], options: Options):
        self.document, self.overlays, self.options = document, overlays, options
        self.catalog = catalog_of(problem.spec, overlays, {})
        self.ends = time.perf_counter() + max(options.time_limit_s, LEAST_SECONDS)
        self.limits: dict[str, Limit] = {}  # all that were looked at, by path
        self._first = problem, candidates
        self._grids: Grids = {}
        self._problems: dict[str, Problem] = {}
        self._variants: dict[tuple, _Variant] = {}
        self._answers: dict[tuple, bool | None] = {}

    @property
    def seconds_left(self) -> float:
        return self.ends - time.perf_counter()

    def limited_options(self) -> Options:
        return replace(self.options, time_limit_s=max(min(self.seconds_left, self.options.time_limit_s), 1.0))

    def problem(self, edits: Edits) -> Problem:
        key = json.dumps(edits)
        if key not in self._problems:
            self._problems[key] = resolve_document(edited(self.document, edits), self.overlays)
        return self._problems[key]

    def variant(self, names: frozenset[str], edits: Edits, networks: frozenset[int] = frozenset()) -> _Variant:
        """The program's input with these workloads only; `networks`: sites whose networks may be of any size."""
        key = (names, json.dumps(edits), networks)
        if key not in self._variants:
            problem, found = self._candidates(names, edits, networks)
            served = {(pool.workload.name, origin) for pool in found.pools for origin in pool.origins}
            asked = {(w.name, o.region) for w in problem.serving for o, rate in zip(w.spec.origins, w.requests_per_s) if rate.any()}
            if asked <= served and all(found.training.values()):
                # whether there is a plan does not depend on what is asked for; a least cost always exists then
                cheapest = problem.spec.model_copy(update={"objective": Objective(minimise="cost")})
                form = formulate(replace(problem, spec=cheapest), found, by_need=True)
                self._variants[key] = _Variant(problem, form.data, rows_by_path(problem, form))
            else:
                self._variants[key] = _Variant(problem, None, {})
        return self._variants[key]

    def _candidates(self, names: frozenset[str], edits: Edits, networks: frozenset[int]) -> tuple[Problem, Candidates]:
        if edits or networks:
            problem = _with(self.problem(edits), names, networks)
            return problem, find_candidates(problem, self._grids)
        problem, found = self._first
        training = {name: points for name, points in found.training.items() if name in names}
        return _with(problem, names, networks), replace(found, pools=tuple(p for p in found.pools if p.workload.name in names), training=training)

    def has_points(self, names: frozenset[str], edits: Edits) -> bool:
        """Whether every workload has an operating point with one pool for every origin, whatever the amounts allow."""
        single = tuple((f"{w.path}.disaggregation", "never") for w in self._first[0].serving if w.name in names)
        return self.seconds_left > 0 and self.variant(names, merged(edits, single)).data is not None

    def feasible(self, names: frozenset[str], edits: Edits, loose: Collection[Limit] = ()) -> bool | None:
        """Whether there is a plan without the `loose` limits; None where that was not known in time."""
        every = merged(edits, tuple(edit for limit in loose for edit in limit.loose))
        networks = frozenset(limit.network_of for limit in loose if limit.network_of is not None)
        gone = frozenset(limit.path for limit in loose if limit.is_row)
        key = (names, json.dumps(every), networks, gone)
        if key not in self._answers:
            self._answers[key] = self._solve(names, every, networks, gone) if self.seconds_left > 0 else None
        return self._answers[key]

    def _solve(self, names: frozenset[str], edits: Edits, networks: frozenset[int], gone: frozenset[str]) -> bool | None:
        variant = self.variant(names, edits, networks)
        if variant.data is None:
            return False
        rows = {variant.rows[path]: math.inf for path in gone if path in variant.rows}
        return is_feasible(with_limits(variant.data, rows), self.limited_options())


def _with(problem: Problem, names: Collection[str], networks: Collection[int]) -> Problem:
    """Some workloads of the problem only, some sites' networks large enough for anything at the same price per port."""
    much = 1 << 12
    sites = list(problem.sites)
    for i in networks:
        n = sites[i].network
        large = replace(n, radix=n.radix * much, switch_price=n.switch_price * much, switch_power_w=n.switch_power_w * much)
        sites[i] = replace(sites[i], network=large)
    return replace(
        problem,
        sites=tuple(sites),
        serving=tuple(w for w in problem.serving if w.name in names),
        training=tuple(job for job in problem.training if job.name in names),
    )


class _Mending:
    """Conflict and repair of some workloads of the spec, `edits` already made."""

    def __init__(self, trials: _Trials, names: frozenset[str], edits: Edits):
        self.trials, self.names, self.edits = trials, names, edits
        document, problem = edited(trials.document, edits), trials.problem(edits)
        self.limits = limits_of(document, problem, trials.catalog, names)
        if self._feasible(self.limits) is False:
            self.limits = [beyond_horizon(limit) for limit in self.limits]
        if self._feasible(self.limits) is False:
            self.limits += self._last_resort(document, problem)
        self.nothing_runs = nothing_runs(problem, names)
        trials.limits |= {limit.path: limit for limit in self.limits}

    def _last_resort(self, document: Mapping[str, Any], problem: Problem) -> list[Limit]:
        """The first further change that helps once all limits are taken away."""
        resorts = last_resorts(problem, self.names)
        for resort in resorts:
            if self._feasible([*self.limits, resort]):
                return [resort]
        offers = further_offers(document, problem, self.trials.catalog)
        loose = tuple(edit for limit in self.limits for edit in limit.loose)
        for given in ((), loose, merged(loose, tuple(edit for resort in resorts for edit in resort.loose))):
            for offer in offers:
                if self.trials.has_points(self.names, merged(merged(self.edits, given), offer)):
                    return [nothing_fits(document, problem, self.names, offer), *(resorts if given not in ((), loose) else ())]
        return []

    def mend(self) -> tuple[list[Limit], Edits]:
        if self._feasible(self.limits) is not True:
            return [self.nothing_runs], ()
        conflicts = [self._conflict(self.limits)]
        enough: list[tuple[Limit, ...]] = []
        for _ in range(CONFLICTS):
            sets = hitting_sets(conflicts)
            enough = [some for some in sets if self._feasible(some)]
            if enough or self._feasible(sets[0]) is None:
                break
            conflicts.append(self._conflict([limit for limit in self.limits if limit not in sets[0]]))
        stated = list({limit.path: limit for conflict in conflicts for limit in conflict}.values())
        best: tuple[float, Edits] = (math.inf, ())
        for some in sorted(enough, key=lambda some: sum(not limit.is_row for limit in some)):
            best = min(best, self._least(some, best[0]), key=lambda found: found[0])
        return stated, best[1]

    def _feasible(self, loose: Collection[Limit], edits: Edits = ()) -> bool | None:
        return self.trials.feasible(self.names, merged(self.edits, edits), loose)

    def _conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """A smallest set among `limits` that cannot be met, all others taken away."""
        return smallest_conflict(limits, lambda kept: self._feasible([limit for limit in self.limits if limit not in kept]) is False)

    # -- how far limits must give way ------------------------------------------------------------------------------

    def _least(self, some: Sequence[Limit], most: float) -> tuple[float, Edits]:
        """The least sum of relative changes of these limits that gives a plan, and the edits; infinite from `most` on."""
        change, edits = 0.0, ()
        rows = [limit for limit in some if limit.is_row]
        others = [limit for limit in some if not limit.is_row]
        while others:
            limit = others.pop()
            step, found = self._least_number(limit, edits, [*rows, *others], most - change) if limit.is_number else self._first_choice(limit, edits, [*rows, *others])
            change, edits = change + step, merged(edits, found)
            if change >= most:
                return math.inf, ()
        if rows:
            step, found = self._least_rows(rows, edits, most - change)
            change, edits = change + step, merged(edits, found)
        return (change, edits) if change < most else (math.inf, ())

    def _least_rows(self, rows: Sequence[Limit], edits: Edits, most: float) -> tuple[float, Edits]:
        wide = tuple(edit for limit in rows for edit in limit.loose)
        variant = self.trials.variant(self.names, merged(merged(self.edits, edits), wide))
        if variant.data is None or self.trials.seconds_left <= 0:
            return math.inf, ()
        at_row = {variant.rows[limit.path]: limit for limit in rows}
        asked = with_limits(variant.data, {row: limit.amount / limit.scale for row, limit in at_row.items()})
        relief = least_relief(asked, list(at_row), self.trials.limited_options(), most)
        if relief is None:
            return math.inf, ()
        change, found = 0.0, ()
        for row, by in relief.items():
            limit = at_row[row]
            if by > 1e-9 * max(limit.amount / limit.scale, 1.0):
                change += by * limit.scale / (limit.amount or 1.0)
                found += limit.grown(limit.amount + by * limit.scale)
        return change, found

    def _least_number(self, limit: Limit, edits: Edits, loose: Sequence[Limit], most: float) -> tuple[float, Edits]:
        """By bisection: a longer latency or a later deadline never takes a plan away."""

        def enough(amount: float) -> bool:
            return self._feasible(loose, merged(edits, limit.grown(amount))) is True

        low = limit.amount
        farthest = min(limit.amount * (1 + most), limit.most)
        tried = [] if math.isfinite(most) else [limit.amount * step for step in STEPS if limit.amount * step < farthest]
        high = next((amount for amount in (*tried, farthest) if math.isfinite(amount) and enough(amount)), None)
        if high is None:
            return math.inf, ()
        while high > low * (1 + FOUND_WITHIN) and self.trials.seconds_left > 0:
            middle = math.sqrt(low * high)
            low, high = (low, middle) if enough(middle) else (middle, high)
        return high / limit.amount - 1, limit.grown(high)

    def _first_choice(self, limit: Limit, edits: Edits, loose: Sequence[Limit]) -> tuple[float, Edits]:
        """The first way of giving way that is far enough."""
        found = next((choice for choice in limit.choices if self._feasible(loose, merged(edits, choice))), None)
        return (OTHER, found) if found is not None else (math.inf, ())
