"""Polish the counts of rented line units: re-solve them to a much smaller gap with all other integers fixed.

A gap is a share of the whole objective. Lines cost next to nothing beside systems, so a solution within the gap may rent lines that
save less than they cost, which any reader of the plan would notice. Bound and status stay those of the search.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Floats
from solvers.interface import Options, RawSolution
from solvers.mip import relative_gap, solve
from solvers.program import Arrays, Program

GAP_SHARE = 0.01  # share of the asked gap to which line units are solved
LEAST_GAP = 1e-9  # smallest gap asked for
TIME_LIMIT_S = 20.0  # of that solve; a solution is at hand already


@dataclass(frozen=True, slots=True)
class _FixedProgram:
    """A program with narrower bounds, as `solvers.mip.solve` reads it."""

    fixed: Arrays
    presolve: bool

    def arrays(self) -> Arrays:
        return self.fixed


def polish_line_units(
    program: Program, objective: Floats, sense: str, raw: RawSolution, options: Options
) -> RawSolution:
    """Return the solution with the best line units for its fleet; unchanged without lines, or where nothing better is found."""
    units = program.columns.get("unit", np.zeros(0, dtype=np.int64))
    units = units[units >= 0]
    if raw.x is None or raw.objective is None or not units.size:
        return raw
    begin, arrays = time.perf_counter(), program.arrays()
    chosen = np.zeros(program.column_count, dtype=bool)
    chosen[units] = True
    fixed, integers = arrays.integer & ~chosen, np.round(raw.x)
    part = replace(
        arrays,
        lower=np.where(fixed, integers, arrays.lower),
        upper=np.where(fixed, integers, arrays.upper),
        integer=chosen,
    )
    limits = replace(
        options,
        gap=max(GAP_SHARE * options.gap, LEAST_GAP),
        time_limit_s=TIME_LIMIT_S,
        longest_s=None,
        method="direct",
        node_limit=None,
    )
    found = solve(_FixedProgram(part, program.presolve), objective, sense, limits, start=raw.x)
    sign = -1.0 if sense == "max" else 1.0
    if found.objective is None or not found.polished or sign * (found.objective - raw.objective) >= 0:
        return raw
    gap, status = None, raw.status
    if raw.bound is not None:
        gap = relative_gap(found.objective, raw.bound)
        status = "within_gap" if raw.status == "limit" and gap <= options.gap else raw.status
    return replace(
        raw,
        x=found.x,
        objective=found.objective,
        gap=gap,
        status=status,
        row_duals=found.row_duals,
        polished=True,
        seconds=raw.seconds + time.perf_counter() - begin,
    )
