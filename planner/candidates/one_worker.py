"""Tell where one worker of both roles does all that is asked, so that separate pools of prefill and decode need not be searched.

A whole replica of separate pools takes a prefill worker and a decode worker at least. Where one worker with a single pool serves the busiest
hour of a workload within its limits on no more systems, a plan that uses the replica is none the worse with that worker in its place. So it
is for most of many networks with little demand each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from models.arrays import sum_of
from planner.candidates.cache import EvaluationCache, Key
from planner.candidates.serving import Grid, GridChoice
from planner.messages import Message
from planner.problem.derating import counted_share
from planner.problem.facts import ResolvedSpec, ServingFacts

SIZE_TOL = 1e-9  # systems: sizes that differ less are equal
Side = tuple[Sequence[Grid], Sequence[GridChoice]]
"""A workload on one kind of system: its evaluations, and the points chosen of a single pool."""


class NeedlessPairs:
    """Pairs of systems on which separate pools of a workload need not be searched; each is looked at once and counted."""

    def __init__(self, problem: ResolvedSpec, cache: EvaluationCache):
        self.problem, self.cache = problem, cache
        self._known: dict[Key, bool] = {}

    def of(self, workload: ServingFacts, systems: Key, one_kind: bool, sides: Callable[[], Sequence[Side]]) -> bool:
        """Tell whether a pair is needless. `systems`: kinds, networks and round trip; `one_kind`: both sides are one fleet option."""
        if not may_suffice(self.problem, workload):
            return False
        key = (workload.name, *systems, one_kind)
        if key not in self._known:
            self._known[key] = found = suffices(self.problem, workload, sides(), one_kind)
            told = Message.of("dropped.one_worker_suffices").text()
            self.cache.dropped[workload.name].update({told: int(found)})
        return self._known[key]


def may_suffice(problem: ResolvedSpec, workload: ServingFacts) -> bool:
    """Tell whether a workload can never need more than its busiest hour, from whole replicas that need no spares of their own."""
    spec = workload.spec
    bounded = not (problem.spec.objective.maximise or problem.spec.robust is not None or spec.demand.deferral)
    return problem.spec.solver.whole and bounded and spec.disaggregation == "allowed" and spec.redundancy is None


def suffices(problem: ResolvedSpec, workload: ServingFacts, sides: Sequence[Side], one_kind: bool) -> bool:
    """Tell whether one worker does all on no more systems than the smallest workers of both `sides`, prefill and decode, take.

    `one_kind`: both sides are on the same systems and networks, whose parts add up; otherwise one side alone must take no more of its kind.
    """
    alone = [_smallest_for_all(problem, workload, choices) for _, choices in sides]
    least = [_smallest_worker(grids) for grids, _ in sides]
    if one_kind:
        return alone[0] <= sum_of(least) + SIZE_TOL
    return any(one <= worker + SIZE_TOL for one, worker in zip(alone, least, strict=True))


def _smallest_for_all(problem: ResolvedSpec, workload: ServingFacts, choices: Sequence[GridChoice]) -> float:
    """Find the fewest systems of a chosen point that serves the busiest hour; inf where none does."""
    sizes = [np.inf]
    for choice in choices:
        grid, at = choice.grid, (choice.layout, choice.batch)
        rates = np.asarray(grid.point.requests_per_s)
        rate = float(rates[at]) * counted_share(problem.derating, workload, [grid.system])
        encoders = float(np.broadcast_to(grid.encoders, rates.shape)[at])
        if rate >= workload.peak_requests_per_s and not encoders:
            sizes.append(float(grid.systems[choice.layout]))
    return float(min(sizes))


def _smallest_worker(grids: Sequence[Grid]) -> float:
    """Find the fewest systems on which the weights of a worker fit; inf where they never do."""
    fitting = [grid.systems[np.asarray(grid.point.fits).any(axis=1)] for grid in grids]
    return float(min((sizes.min() for sizes in fitting if sizes.size), default=np.inf))
