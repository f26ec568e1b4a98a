"""Boundaries of pools by prompt length worth trying, and a bound of the plans with each of them.

The bound is that of divisible replicas, which no plan of whole ones beats. Operating points of a pool are searched once for all
boundaries that have it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any

from planner.candidates.cache import OutOfTime
from planner.errors import SpecError
from planner.solving.deadline import options_of
from planner.solving.replicas import asking_for
from planner.solving.variants import Variants, resolved
from planner.spec.load.length_pools import Cuts, are_filled, divided, shared_limits
from planner.spec.load.lengths import Lengths
from solvers.search.joint import solve

SHARES = (0.9, 0.75, 0.95, 0.5, 0.99)  # shares of requests, up to which a pool may take them, in the order of trial
MOST_EDGES = 8  # ends of bands of a histogram that are tried
BOUND_GAP = 1e-3  # gap of the program of divisible replicas
BOUND_SHARE = 0.25  # share of the time left for one of these programs
LEAST_S = 0.5
MOST_STEPS = 60


@dataclass(frozen=True, slots=True)
class Tried:
    """Boundaries by position of the workload, and a bound of their plans; None where none is known, infinite where there is no plan."""

    cuts: Cuts
    bound: float | None
    together: frozenset[int] = frozenset()  # workloads whose pools keep the limits on the time to first token together


def edges_of(lengths: Lengths) -> list[int]:
    """List the boundaries to be tried: ends of bands of a histogram, else the prompt lengths up to which certain shares of the requests lie."""
    if lengths.edges is not None:
        found = lengths.edges
        if len(found) > MOST_EDGES:
            found = [found[round(k * (len(found) - 1) / (MOST_EDGES - 1))] for k in range(MOST_EDGES)]
    else:
        found = [_length_at(lengths, share) for share in SHARES]
    return [edge for edge in dict.fromkeys(found) if are_filled(lengths, [edge])]


def _length_at(lengths: Lengths, share: float) -> int:
    """Find the prompt length up to which a share of the requests lies, by halving in whole tokens."""
    low, high = 1, 10_000_000
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if lengths.between(0.0, middle).share >= share else (middle + 1, high)
    return low


def choices_of(lengths: Lengths) -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
    """List the choices of boundaries for two pools, and for three."""
    edges = edges_of(lengths)
    pairs: list[tuple[int, ...]] = [pair for pair in combinations(sorted(edges), 2) if are_filled(lengths, pair)]
    return [(edge,) for edge in edges], pairs


class Divisions:
    """Problems and candidates of a document under boundaries; operating points of a pool are searched once for all."""

    def __init__(self, document: Mapping[str, Any], spec: Any, overlays: Sequence[Path], threads: int):
        """`document`, `spec`: with pools, as written and as parsed."""
        self.document, self.spec, self.overlays, self.threads = document, spec, overlays, threads
        whole = divided(document, spec, {})
        self._variants = Variants(whole, overlays, resolved(whole, overlays))

    def found(
        self, cuts: Cuts, ends_s: float, together: frozenset[int] = frozenset()
    ) -> tuple[dict[str, Any], Any, Any]:
        """Return spec, problem and candidates with these boundaries. Raises OutOfTime at `ends_s`, on the performance counter [s]."""
        asked = divided(self.document, self.spec, cuts, together)
        problem = resolved(asked, self.overlays)
        if problem.spec.solver.replicas == "auto":
            problem = asking_for(problem, "whole")
        self._variants.until = ends_s
        alone = divided(self.document, self.spec, cuts) if together else asked
        pairs = enumerate(zip(asked["workloads"], alone["workloads"], strict=True))
        edits = tuple((f"workloads[{k}].slo", one["slo"]) for k, (one, other) in pairs if one != other)
        return asked, problem, self._variants.candidates(problem, edits)

    def tried(self, cuts: Cuts, ends_s: float, together: frozenset[int] = frozenset()) -> Tried:
        """Bound the plans with these boundaries. Raises OutOfTime."""
        from planner.formulate.formulation import formulate

        if ends_s - time.perf_counter() < LEAST_S:
            raise OutOfTime
        try:
            _, problem, candidates = self.found(cuts, ends_s, together)
        except SpecError:  # a pool of the longest prompts alone is beyond the context of its network
            return Tried(cuts, math.inf, together)
        data = formulate(problem, candidates).data.divisible()
        options = replace(
            options_of(problem.spec, self.threads),
            gap=BOUND_GAP,
            enough_gap=None,
            time_limit_s=max(BOUND_SHARE * (ends_s - time.perf_counter()), LEAST_S),
        )
        solution = solve(data, options)
        return Tried(cuts, math.inf if solution.status == "infeasible" else solution.bound, together)


def ranked(
    divisions: Divisions, searched: Mapping[int, Any], fixed: Cuts, ends_s: float, first_s: float
) -> tuple[list[Tried], int]:
    """Bound the plans of all choices in turn, and sort them; with the number of choices for which the time was up.

    Each workload is divided alone, into two pools and then into three, each of which keeps the limits; then in the same way into pools
    that keep them together, where that differs; last, all that gain by it at once.
    The first choice may take until `first_s`, so that the bound of one is known, the others until `ends_s`.
    """
    tried: list[Tried] = []
    alone = list(_alone(searched, fixed))
    waiting = [(cuts, frozenset[int]()) for _, cuts in alone]
    waiting += [(cuts, frozenset([i])) for i, cuts in alone if shared_limits(searched[i], cuts[i]) is not None]
    untried = 0
    for cuts, together in waiting:
        try:
            tried.append(divisions.tried(cuts, ends_s if tried else max(first_s, ends_s), together))
        except OutOfTime:
            untried = len(waiting) - len(tried)
            break
    if len(searched) > 1 and not untried:
        best = {i: _best_alone(tried, i, fixed) for i in searched}
        try:
            cuts = {**fixed, **{i: each.cuts[i] for i, each in best.items() if each is not None}}
            together = frozenset(i for i, each in best.items() if each is not None and i in each.together)
            tried.append(divisions.tried(cuts, ends_s, together))
        except OutOfTime:
            untried += 1
    return sorted(tried, key=_order), untried


def _alone(searched: Mapping[int, Any], fixed: Cuts) -> Iterator[tuple[int, Cuts]]:
    """Yield the choices of each workload alone with its position, workloads in turn: two pools of all, then three."""
    of_all = {i: choices_of(workload.lengths) for i, workload in searched.items()}
    for pools in range(2):
        for in_turn in zip_longest(*([(i, cut) for cut in choices[pools]] for i, choices in of_all.items())):
            yield from ((each[0], {**fixed, each[0]: each[1]}) for each in in_turn if each is not None)


def _best_alone(tried: Sequence[Tried], i: int, fixed: Cuts) -> Tried | None:
    mine = [each for each in tried if set(each.cuts) == {*fixed, i}]
    return min(mine, key=_order, default=None)


def _order(each: Tried) -> float:
    return math.inf if each.bound is None else each.bound
