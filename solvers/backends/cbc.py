"""CBC through PuLP: a second solver, independent of HiGHS from the building of the program on. PuLP is imported when used."""

from __future__ import annotations

import math
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from solvers.arrays import Floats
from solvers.interface import Options, Outcome
from solvers.program import Scaled

if TYPE_CHECKING:
    import pulp

GAP_SHARE = 0.99  # share of the gap passed to CBC: its printed digits are rounded, and the proof must survive that
ROW_TOL = 1e-5  # violation of a scaled row that is accepted
PRINTED_TOL = 1e-7  # CBC prints columns with eight digits
BOUND_DIGITS_TOL = 5e-6  # half of the last digit: CBC's log prints bounds with six


def pulp_problem(scaled: Scaled) -> tuple[pulp.LpProblem, list[pulp.LpVariable]]:
    """Return the program as a PuLP problem, and its variables."""
    import pulp

    arrays = scaled.arrays

    def finite(value: float) -> float | None:
        return None if math.isinf(value) else float(value)

    variables = [
        pulp.LpVariable(f"x{j}", finite(low), finite(high), pulp.LpInteger if integer else pulp.LpContinuous)
        for j, (low, high, integer) in enumerate(zip(arrays.lower, arrays.upper, arrays.integer, strict=True))
    ]
    problem = pulp.LpProblem("program", pulp.LpMinimize)
    problem += pulp.LpAffineExpression([(variables[j], float(scaled.cost[j])) for j in np.flatnonzero(scaled.cost)])
    rows = arrays.matrix.tocsr()
    for i, (low, high) in enumerate(zip(arrays.row_lower, arrays.row_upper, strict=True)):
        part = slice(rows.indptr[i], rows.indptr[i + 1])
        terms = [(variables[j], float(a)) for j, a in zip(rows.indices[part], rows.data[part], strict=True)]
        if low == high:
            problem.addConstraint(
                pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintEQ, f"e{i}", float(low))
            )
            continue
        if not math.isinf(low):
            problem.addConstraint(
                pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintGE, f"g{i}", float(low))
            )
        if not math.isinf(high):
            problem.addConstraint(
                pulp.LpConstraint(pulp.LpAffineExpression(terms), pulp.LpConstraintLE, f"l{i}", float(high))
            )
    return problem, variables


def run_pulp(scaled: Scaled, options: Options, tolerance: float, start: Floats | None = None) -> Outcome:
    """Solve a scaled program with CBC.

    PuLP's status is "Optimal" at a limit too, so the status comes from `sol_status`, the solution is checked against the rows, and the
    bound is the one in CBC's log.
    """
    import pulp

    arrays = scaled.arrays
    empty = np.diff(arrays.matrix.tocsr().indptr) == 0  # PuLP drops empty rows: check them here
    if (
        (arrays.lower > arrays.upper).any()
        or (arrays.row_lower[empty] > 0).any()
        or (arrays.row_upper[empty] < 0).any()
    ):
        return Outcome("infeasible")
    problem, variables = pulp_problem(scaled)
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "cbc.log"
        command = pulp.PULP_CBC_CMD(
            msg=False,
            gapRel=GAP_SHARE * options.gap,
            timeLimit=options.time_limit_s,
            threads=options.threads,
            maxNodes=options.node_limit,
            logPath=str(log),
            options=[f"randomCbcSeed {options.seed}", f"primalTolerance {tolerance / 10:g}"],
        )
        problem.solve(command)
        text = log.read_text() if log.exists() else ""
    if "Stopped on time" in text:
        options.note_time_up()
    state = problem.sol_status
    if state in (pulp.LpSolutionInfeasible, pulp.LpSolutionUnbounded) or "infeasible or unbounded" in text:
        if not scaled.cost.any():
            return Outcome("infeasible")
        # CBC may call either by the other's name; without an objective it cannot be unbounded
        feasible = run_pulp(replace(scaled, cost=np.zeros_like(scaled.cost)), options, tolerance)
        return Outcome({"optimal": "unbounded"}.get(feasible.status, feasible.status))
    x = np.array([np.nan if variable.varValue is None else variable.varValue for variable in variables])
    x = np.where(np.isnan(x), np.clip(0.0, arrays.lower, arrays.upper), x)  # a variable in no row and no cost
    x = np.clip(np.where(arrays.integer, np.round(x), x), arrays.lower, arrays.upper)
    activity, reach = arrays.matrix @ x, abs(arrays.matrix) @ np.abs(x)
    missed = np.maximum(arrays.row_lower - activity, activity - arrays.row_upper)
    feasible_x = None if (missed > ROW_TOL + PRINTED_TOL * reach).any() else x
    stated = re.search(r"^Lower bound:\s+(\S+)", text, re.MULTILINE)
    if state == pulp.LpSolutionOptimal and feasible_x is not None and stated is None:
        value = float(scaled.cost @ x)
        # take no more as proven than the gap that was asked for, whatever the wording of the log
        return Outcome("optimal", x, value - GAP_SHARE * options.gap * abs(value))
    bound = float(stated.group(1)) if stated else None
    return Outcome("limit", feasible_x, None if bound is None else bound - BOUND_DIGITS_TOL * abs(bound))
