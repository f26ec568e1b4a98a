"""Polish the counts of rented line units: re-solve them to a much smaller gap with all other integers fixed.

A gap is a share of the whole objective. Lines cost next to nothing beside systems, so a solution within the gap may rent lines that
save less than they cost, which any reader of the plan would notice. Bound and status still refer to the search.

A plan that was found in one piece is solved over all continuous columns. One that was put together from parts belongs to a program whose LP
alone takes longer than its lines are worth: all but the traffic is held as well, so that the work is that of sending what the plan serves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.interface import Options, RawSolution
from solvers.mip import relative_gap, solve
from solvers.program import Arrays, Program

GAP_SHARE = 0.01  # share of the asked gap to which line units are solved
LEAST_GAP = 1e-9  # smallest gap asked for
NODES = 1_000  # nodes of that search, so that it ends where it ended before
TIME_LIMIT_S = 20.0  # limit of that solve; a solution is at hand already
TRAFFIC = ("way", "send", "pass")  # blocks of what travels on lines, beside the columns in the rows of the units


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
    fixed = arrays.integer & ~chosen
    if not raw.polished:
        arrays, fixed = _as_far_as_held(arrays, raw.x), ~chosen & ~_traffic(program, units)
    held = np.where(arrays.integer, np.round(raw.x), raw.x)
    part = replace(
        arrays,
        lower=np.where(fixed, held, arrays.lower),
        upper=np.where(fixed, held, arrays.upper),
        integer=chosen,
    )
    limits = replace(
        options,
        gap=max(GAP_SHARE * options.gap, LEAST_GAP),
        time_limit_s=TIME_LIMIT_S,
        longest_s=None,
        method="direct",
        node_limit=NODES,
    )
    found = solve(_FixedProgram(part, program.presolve), objective, sense, limits, start=raw.x)
    if options.progress is not None and found.gap is not None:
        options.progress(f"line units within {found.gap:.2%} of the least that this fleet needs")
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
        row_duals=found.row_duals if raw.polished else raw.row_duals,
        seconds=raw.seconds + time.perf_counter() - begin,
    )


def _traffic(program: Program, units: Ints) -> Bools:
    """Select the continuous columns of what travels on lines [columns]."""
    arrays = program.arrays()
    found = np.zeros(program.column_count, dtype=bool)
    for block in TRAFFIC:
        columns = program.columns.get(block, units[:0])
        found[columns[columns >= 0]] = True
    rows = np.unique(arrays.matrix[:, units].indices)
    found[arrays.matrix.tocsr()[rows].indices] = True
    return found & ~arrays.integer


def _as_far_as_held(arrays: Arrays, x: Floats) -> Arrays:
    """Widen the sides of rows to what x makes of them, where that is beyond by the tolerance of the search."""
    activity = arrays.matrix @ np.where(arrays.integer, np.round(x), x)
    return replace(
        arrays, row_lower=np.minimum(arrays.row_lower, activity), row_upper=np.maximum(arrays.row_upper, activity)
    )
