"""Cache evaluations within one problem and across its variants, and count each dropped candidate once per problem."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, TypeVar

from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts
from solvers.memory import MemoryWatch, most_for_a_step

T = TypeVar("T")
Key = tuple[Hashable, ...]
Grids = dict[Any, Any]
"""Evaluations by key, shared by variants of one problem that differ in prices, limits and demand only."""

LOOK_EVERY = 500  # items between two looks at the memory

FIELDS_WITHOUT_EFFECT = {
    "name",
    "grade",
    "selling_price",
    "note",
    "demand",
    "origins",
    "residency",
    "sole_tenant",
    "audit",
    "weights_from",
}  # limits of a workload on its operating points


class OutOfTime(Exception):
    """The time for the search of operating points is up; none of them may be used, since which are missing is not known."""

    def __init__(self, evaluated: int = 0) -> None:
        super().__init__(evaluated)
        self.evaluated = evaluated  # operating points


class OutOfMemory(OutOfTime):
    """The process holds as much memory as it may before all operating points were found; none of them may be used."""


class EvaluationCache:
    """Evaluations of workloads on systems, which serve many sites, and variants of the problem through `kept`."""

    def __init__(self, problem: ResolvedSpec, dropped: dict[str, Counter[str]], kept: Grids, until: float = math.inf):
        """`until`: the end of the search, on the performance counter [s]; a search without an end takes any memory."""
        self.kept, self.dropped, self._until = kept, dropped, until
        self._memory = MemoryWatch(most_for_a_step(problem.spec.solver.memory) if until < math.inf else math.inf)
        self.evaluated = 0  # operating points
        self.fastest: dict[str, float] = {}  # trained tokens/s of each job at any width
        self._counted: set[Key] = set()
        self.catalog_key: Key = (problem.catalog_digest, repr(problem.spec.overrides))
        solver = problem.spec.solver
        common = (*self.catalog_key, solver.points_per_system, solver.whole, repr(problem.derating))
        tiers = repr(problem.spec.kv_tiers)  # figures of them, which the names of systems do not tell
        maximises = bool(problem.spec.objective.maximise)
        self._serving_times: dict[str, Key] = {}
        self._workloads: dict[str, Key] = {}
        for workload in problem.serving:
            without_slo = workload.spec.model_dump_json(exclude={*FIELDS_WITHOUT_EFFECT, "slo"})
            self._serving_times[workload.name] = (*self.catalog_key, tiers, without_slo)
            peak = math.inf if maximises else workload.peak_requests_per_s
            fields = workload.spec.model_dump_json(exclude=FIELDS_WITHOUT_EFFECT)
            self._workloads[workload.name] = (*common, tiers, fields, peak)
        for job in problem.training:
            self._workloads[job.name] = (*common, job.spec.model_dump_json())

    def check_time(self) -> None:
        """Raise OutOfTime when the time is up."""
        if time.perf_counter() > self._until:
            raise OutOfTime(self.evaluated)

    def in_time(self, items: Iterable[T]) -> Iterator[T]:
        """Yield items until the time is up or the memory is used up: for loops over many offers, whose evaluations are all kept.

        Raises OutOfTime, or OutOfMemory.
        """
        for i, item in enumerate(items):
            self.check_time()
            if i % LOOK_EVERY == LOOK_EVERY - 1 and self._memory.is_full():
                raise OutOfMemory(self.evaluated)
            yield item

    def learn(self, job: str, tokens_per_s: float) -> None:
        """Keep the most that a job does at any width."""
        self.fastest[job] = max(self.fastest.get(job, 0.0), tokens_per_s)

    def times_key(self, workload: ServingFacts) -> Key:
        """Build the key of all fields that the times of a workload depend on, besides the system."""
        return self._serving_times[workload.name]

    def first(self, key: Key) -> bool:
        """Tell whether a key is met for the first time in this problem."""
        if key in self._counted:
            return False
        self._counted.add(key)
        return True

    def once(self, kind: str, workload: ServingFacts | TrainingFacts, key: Key, find: Callable[[Counter[str]], T]) -> T:
        """Return `find` for a workload, computed once for all equal workloads; what it drops is counted once per problem.

        `key`: what the result depends on beside the workload. `find` adds the candidates that it drops to the counter it is given.
        """
        full = (kind, workload.name, *key)
        shared = (kind, *key, *self._workloads[workload.name])
        if shared not in self.kept:
            self.check_time()
            counts: Counter[str] = Counter()
            self.kept[shared] = find(counts), counts
        found: T
        found, counts = self.kept[shared]
        if self.first(full):
            self.dropped[workload.name].update(counts)
        return found
