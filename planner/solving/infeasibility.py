"""Diagnose an infeasible spec: limits in conflict, and the smallest change that gives a plan.

Every statement comes from solving. A set of limits is in conflict when the spec without all others is proven to have no
plan and each of them is needed for that; a repair says whether the repaired spec was found to have a plan.
Limits are described in `planner.limits.limits`, the search is in `planner.solving.repair_search`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.candidates.cache import OutOfTime
from planner.candidates.points import Candidates
from planner.limits.limit import Limit
from planner.limits.limits import every_limit
from planner.messages import with_codes
from planner.problem.facts import ResolvedSpec
from planner.solving.repair_search import RepairSearch
from planner.solving.trials import Trials, merged
from planner.spec.changes import change_words
from planner.spec.document import Edits, at
from solvers.interface import Options

# what a conflict was sought among: with amounts alone, all other limits are kept as stated
LIMITS, AMOUNTS = "limits", "amounts"
NOTHING_FOUND: dict[str, Any] = {"conflict_of": LIMITS, "conflict": [], "repair": [], "repair_checked": False}


def diagnose(
    problem: ResolvedSpec,
    candidates: Candidates,
    document: Mapping[str, Any],
    overlays: Sequence[Path],
    options: Options,
) -> dict[str, Any]:
    """Build the `diagnosis` of a plan document: conflict, repair, and whether the repair is known to give a plan.

    A workload that no amount would help is repaired alone, then all together. It ends at the time limit of the `options`, with the findings
    so far.
    """
    trials = Trials(problem, candidates, document, overlays, options)
    workloads = [*(w.asked for w in problem.serving), *(job.asked for job in problem.training)]
    names = list(dict.fromkeys(name for name in workloads if not _is_scaled(problem, name)))
    known: dict[str, Limit] = {}
    conflicts: list[list[Limit]] = []
    edits: Edits = ()
    hopeless = amounts_only = False
    search: RepairSearch | None = None
    checked: bool | None = None
    try:
        for group in [*(frozenset([name]) for name in names if len(names) > 1), frozenset(names)]:
            alone = len(group) < len(names)
            if alone:
                limits = every_limit(document, problem, trials.catalog, group)
                if not trials.relaxation_fails(group, edits, [limit for limit in limits if limit.is_row]):
                    continue  # amounts may help this workload, with the repair so far
            elif hopeless or (edits and trials.has_plan(group, edits) is not False):
                continue  # as a whole the spec is known to have no plan only while nothing is changed
            search = RepairSearch(trials, group, edits, [] if alone or edits else conflicts)
            edits = merged(edits, search.smallest_repair())
            known |= {limit.path: limit for limit in search.limits}
            conflicts += search.conflicts
            hopeless, amounts_only = hopeless or search.hopeless, amounts_only or search.amounts_only
            search = None
        checked = trials.has_plan(frozenset(names), edits) if edits else None
    except OutOfTime:  # conflicts that were found are whole
        conflicts += [] if search is None else search.conflicts
    conflict = {limit.path: limit for some in conflicts for limit in some}
    changes = _changes(document, problem, edits, known)
    return {
        "conflict_of": AMOUNTS if amounts_only else LIMITS,
        "conflict": [
            with_codes({"path": limit.path, "name": limit.name, "words": limit.words}, "name", "words")
            for limit in conflict.values()
        ],
        "repair": changes,
        "repair_checked": bool(changes) and checked is True,
    }


def _changes(
    document: Mapping[str, Any], problem: ResolvedSpec, edits: Edits, known: Mapping[str, Limit]
) -> list[dict[str, Any]]:
    """List the edits that change a value of the spec or its default, with the change in words."""
    defaults = problem.spec.model_dump()
    changes = []
    for path, new in edits:
        old = at(document, path)
        old = at(defaults, path) if old is None else old
        if new != old:
            unit = known[path].unit if path in known else None
            row = {"path": path, "from": old, "to": new, "unit": unit, "words": change_words(path, old, new)}
            changes.append(with_codes(row, "words"))
    return changes


def _is_scaled(problem: ResolvedSpec, name: str) -> bool:
    """Tell whether throughput is maximised over this workload: it can always be served less."""
    asked = problem.spec.objective
    return asked.maximise is not None and name in {w.asked for w in problem.serving} and asked.workload in (None, name)
