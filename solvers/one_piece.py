"""Counts for choices that are held: a question that is small enough is asked of the solver in one piece, which is quick at it once nothing else is open."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from solvers.backends.subprocess_mip import least_whole
from solvers.interface import SolverError
from solvers.model.data import Floats

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Decomposition

NEAR = 0.3  # of the asked gap, how near to the least the counts are to be
SETTINGS = (("mip_heuristic_run_root_reduced_cost", False), ("mip_max_nodes", 100))
# the first takes longer than it saves; the other programs within the program find what nothing else does; what is good is found early


def counts(dec: Decomposition, least: Floats, most: Floats, gap: float, seconds: float) -> Floats | None:
    """The structure's columns between these bounds that cost least, whole; None where the program is not small, where nothing is left to be counted or
    it has no answer, or not in time."""
    program = dec.program
    if program is None or not (dec.whole.integer & (most > least)).any():
        return None
    arrays = program.arrays()
    scaled = arrays.scaled(program.functional(dec.functional))
    lower, upper = scaled.arrays.lower.copy(), scaled.arrays.upper.copy()
    for block, here in dec.whole.columns.items():
        place = program.columns[block]
        both = (here >= 0) & (place >= 0)
        at = place[both]
        lower[at], upper[at] = least[here[both]] / scaled.column[at], np.minimum(most[here[both]] / scaled.column[at], upper[at])
    rows = scaled.arrays.row_lower, scaled.arrays.row_upper
    try:
        found = least_whole(scaled.cost, scaled.arrays.matrix, rows, (lower, np.maximum(lower, upper)), arrays.integer, NEAR * gap, seconds, SETTINGS)
    except SolverError:  # there is another way to counts
        return None
    if found.x is None:
        return None
    values, result = np.append(found.x * scaled.column, 0.0), np.zeros(dec.whole.size)
    for block, here in dec.whole.columns.items():
        result[here[here >= 0]] = values[program.columns[block][here >= 0]]
    return np.clip(np.where(dec.whole.integer, np.round(result), result), least, most)
