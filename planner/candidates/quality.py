"""Restrict operating points to the architectures chosen under a quality floor."""

from __future__ import annotations

from dataclasses import replace

from planner.candidates.points import Candidates
from planner.problem.facts import ResolvedSpec


def settled_points(candidates: Candidates, before: ResolvedSpec, after: ResolvedSpec) -> Candidates:
    """Restrict the candidates of a problem to the problem after its architectures are chosen; fleet options stay as they are."""
    known = {workload.name: workload for workload in after.serving}
    left = {
        facts.members[architecture]: known[name]
        for facts, kept in zip(before.quality, after.quality, strict=True)
        for architecture, name in kept.members.items()
    }
    gone = {name for facts in before.quality for name in facts.members.values()} - set(left)
    pools = tuple(
        pool if (workload := left.get(pool.workload.name)) is None
        else replace(pool, workload=workload, points=tuple(replace(point, workload=workload) for point in pool.points))
        for pool in candidates.pools
        if pool.workload.name not in gone
    )  # fmt: skip
    return replace(candidates, pools=pools)
