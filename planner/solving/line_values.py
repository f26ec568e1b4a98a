"""Marginal values of line units and of zone shares, with every integer fixed."""

from __future__ import annotations

import numpy as np

from planner.formulate.formulation import Formulation
from planner.problem.facts import ResolvedSpec
from solvers.solution import Solution


def line_values(problem: ResolvedSpec, form: Formulation, solution: Solution) -> dict[tuple[str, str | None], float]:
    """Compute the change of the objective per unit more of a share or of line units, by path and name of the limit.

    The dual of a share counts per request served in its slot, so it is weighted by them. More units of a line are worth
    nothing while the rented ones stay.
    """
    found: dict[tuple[str, str | None], float] = {}
    empty = np.zeros((0, 3), dtype=np.int64), np.zeros(0)
    both = [solution.row_duals.get(block, empty) for block in ("share", "share hosted")]
    index, duals = (np.concatenate(parts) for parts in zip(*both, strict=True))
    served = np.zeros((len(problem.serving), form.data.slots))
    np.add.at(served, form.data.arc_workload, solution.values["f"])
    for w, workload in enumerate(problem.serving):
        if workload.spec.spread is not None and workload.spec.spread.largest_share is not None:
            mine = index[:, 0] == w
            found[f"{workload.path}.spread.largest_share", None] = float(duals[mine] @ served[w, index[mine, 2]])
    for i, line in enumerate(problem.spec.lines or ()):
        if line.units is not None:
            found[f"lines[{i}].units", None] = 0.0
    return found
