"""Chooses the units of lines once more, with every other whole number of an answer held, to a far smaller gap.

A gap is a share of the whole objective. Lines cost next to nothing beside the systems, so within the gap an answer may rent lines
that save less than they cost, which is plain to whoever reads it. Bound and status stay those of the search.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from solvers import mip
from solvers.arrays import Floats
from solvers.mip import Options, RawSolution
from solvers.program import Arrays, Program

SHARE = 0.01  # of the asked gap, to which the units are chosen
LONGEST_S = 20.0  # of that choice; an answer is in hand


@dataclass(frozen=True, slots=True)
class _Held:
    """A program with narrower bounds, as the backends read one."""

    held: Arrays
    presolve: bool

    def arrays(self) -> Arrays:
        return self.held


def polish_line_units(
    program: Program, objective: Floats, sense: str, raw: RawSolution, options: Options
) -> RawSolution:
    """The answer with the best units of lines for its fleet; as it is where there is nothing to choose or nothing better."""
    units = program.columns.get("unit", np.zeros(0, dtype=np.int64))
    units = units[units >= 0]
    if raw.x is None or not units.size:
        return raw
    begin, arrays = time.perf_counter(), program.arrays()
    chosen = np.zeros(program.column_count, dtype=bool)
    chosen[units] = True
    held = arrays.integer & ~chosen
    whole = np.round(raw.x)
    part = replace(
        arrays, lower=np.where(held, whole, arrays.lower), upper=np.where(held, whole, arrays.upper), integer=chosen
    )
    asked = replace(
        options, gap=max(SHARE * options.gap, 1e-9), time_limit_s=LONGEST_S, method="direct", node_limit=None
    )
    found = mip.solve(_Held(part, program.presolve), objective, sense, asked, start=raw.x)
    sign = -1.0 if sense == "max" else 1.0
    if found.x is None or not found.polished or sign * (found.objective - raw.objective) >= 0:
        return raw
    gap, status = None, raw.status
    if raw.bound is not None:
        gap = mip.relative_gap(found.objective, raw.bound)
        status = "within_gap" if raw.status == "limit" and gap <= options.gap else raw.status
    return replace(raw, x=found.x, objective=found.objective, gap=gap, status=status, row_duals=found.row_duals, polished=True,
                   seconds=raw.seconds + time.perf_counter() - begin)  # fmt: skip
