"""Zones over which workloads are spread.

Not here: the re-check of that table (`planner.verify.spread`).
"""

from __future__ import annotations

from planner.problem.facts import ResolvedSpec


def zones_of(problem: ResolvedSpec) -> tuple[str, ...]:
    return tuple(dict.fromkeys(site.fails_with for site in problem.sites))


def is_asked(problem: ResolvedSpec) -> bool:
    return any(w.spec.spread is not None for w in problem.serving)
