"""Solve a program over the operating points that plans of similar programs use, and prove by the whole program how good that is.

A program that differs from a solved one in prices, limits or demand mostly has its best plan over the same few points. Whole replicas over
these take a small search; the bound is that of the whole program, with divisible replicas on the least fleet or, where that is not near
enough, with whole replicas in the slot that decides. Where the two are further apart than asked, nothing is returned, and the program is
solved like any other: the known points change the time of a solve, and never by how much its plan may miss the best.
"""

from __future__ import annotations

from dataclasses import replace

from solvers.arrays import Bools
from solvers.bound.whole_replicas import bound_of_slot, decisive_slot
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.search.consolidation import restricted
from solvers.search.direct import solve_direct
from solvers.search.proven import is_wide, raised, rated
from solvers.solution import Solution

SHARE = 0.2  # part of the time limit that each of the three steps may take
MOST_NODES = 300  # nodes of each search; one that takes longer is left to the usual way


def over_known(data: PlanData, known: Bools, options: Options, begin: float) -> tuple[Solution, Solution] | None:
    """Return (plan with whole replicas over the known points, relaxation), None where the relaxation does not prove it good enough.

    `data`: with its least fleet; `begin`: when solving started, on the performance counter.
    """
    if not known.any() or data.hourly is not None:
        return None
    nodes = MOST_NODES if options.node_limit is None else min(options.node_limit, MOST_NODES)
    limits = replace(options, time_limit_s=SHARE * max(options.left_s(begin), 0.0), node_limit=nodes, longest_s=None)
    plan = solve_direct(restricted(data, known), replace(limits, progress=None))
    if not plan.values:
        return None
    relaxed = solve_direct(data.relaxation(), limits, start=plan.values)
    if relaxed.bound is None or not relaxed.values:
        return None
    found = rated(replace(plan, bound=relaxed.bound, structural=(), built=None), options)
    if is_wide(found, options):
        found = _bounded(data, relaxed, found, limits)
    return None if is_wide(found, options) else (found, relaxed)


def _bounded(data: PlanData, relaxed: Solution, found: Solution, options: Options) -> Solution:
    """Raise the bound by whole replicas in the slot that decides, as far as the gap asks."""
    slot = decisive_slot(data.by_use(), relaxed, options)
    if slot is None or found.value is None:
        return found
    sign = -1.0 if data.objective.maximises else 1.0
    target = found.value - sign * options.enough * abs(found.value)
    bound, _ = bound_of_slot(data.by_use(), slot, target, options)
    return raised(found, bound, options)
