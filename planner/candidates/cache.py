"""Cache evaluations within one problem and across its variants, and count each dropped candidate once per problem."""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts
from solvers.memory import MemoryWatch, most_for_a_step

T = TypeVar("T")
Key = tuple[Hashable, ...]
Grids = dict[Any, Any]
"""Evaluations by key, shared by variants of one problem that differ in prices, limits and demand only."""

RECENT_SHARE = (
    0.1  # share of the memory that the spec allows: what an evaluation of groups works out later on comes on top
)

LOOK_EVERY = 500  # items between two looks at the memory

FIELDS_WITHOUT_EFFECT = {
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


class Recent:
    """The last evaluations of a kind, as many as fit into a number of bytes; the others are evaluated again when they are asked for."""

    def __init__(self, most_bytes: float):
        self.most_bytes, self.held_bytes = most_bytes, 0
        self._held: OrderedDict[Key, tuple[Any, int]] = OrderedDict()

    def get(self, key: Key, evaluate: Callable[[], T]) -> T:
        """Return the evaluation of a key. Others are dropped, the longest unused first, until all fit; the last one is always kept."""
        if key in self._held:
            self._held.move_to_end(key)
        else:
            value = evaluate()
            self._held[key] = value, array_bytes(value)
            self.held_bytes += self._held[key][1]
            while self.held_bytes > self.most_bytes and len(self._held) > 1:
                self.held_bytes -= self._held.popitem(last=False)[1][1]
        found: T = self._held[key][0]
        return found


def array_bytes(value: Any) -> int:
    """Add up the bytes of all arrays within an object, each once."""
    seen: set[int] = set()

    def add(node: Any) -> int:
        if isinstance(node, np.ndarray):
            whole = node if node.base is None else node.base
            if id(whole) in seen:
                return 0
            seen.add(id(whole))
            return int(getattr(whole, "nbytes", node.nbytes))
        if isinstance(node, Mapping):
            return sum(map(add, node.values()))
        if isinstance(node, (list, tuple)):
            return sum(map(add, node))
        names = [name for kind in type(node).__mro__ for name in getattr(kind, "__slots__", ())]
        inner = [*getattr(node, "__dict__", {}).values(), *(getattr(node, name, None) for name in names)]
        if id(node) in seen or isinstance(node, (str, bytes, type)) or not inner:
            return 0
        seen.add(id(node))
        return sum(map(add, inner))

    return add(value)


class EvaluationCache:
    """Evaluations of workloads on systems, which serve many sites, and variants of the problem through `kept`."""

    def __init__(self, problem: ResolvedSpec, dropped: dict[str, Counter[str]], kept: Grids, until: float = math.inf):
        """`until`: the end of the search, on the performance counter [s]; a search without an end takes any memory."""
        self.kept, self.dropped, self._until = kept, dropped, until
        self._memory = MemoryWatch(most_for_a_step(problem.spec.solver.memory) if until < math.inf else math.inf)
        self.evaluated = 0  # operating points
        self.fastest: dict[str, float] = {}  # trained tokens/s of each job at any width
        self.recent: Recent = kept.setdefault(("recent",), Recent(RECENT_SHARE * problem.spec.solver.memory))
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
        shared = (*full, *self._workloads[workload.name])
        if shared not in self.kept:
            self.check_time()
            counts: Counter[str] = Counter()
            self.kept[shared] = find(counts), counts
        found: T
        found, counts = self.kept[shared]
        if self.first(full):
            self.dropped[workload.name].update(counts)
        return found
