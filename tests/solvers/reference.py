"""Brute force for the joint program, and how answers are held against it.

`best(data)` tries every whole-numbered plan. What is left when all whole numbers are fixed is a linear program
(`tests/solvers/reference_program.py`); with only some of them fixed and the others anywhere between their bounds, the same linear
program bounds every plan below, which saves most of them.
"""

from __future__ import annotations

import math

import highspy
import numpy as np
from hypothesis import HealthCheck
from scipy import sparse

from solvers.backends.highs import highs_lp, new_highs, set_threads
from tests.conftest import ALL_CASES
from tests.solvers.reference_program import Reference

SMALL = {"deadline": None, "derandomize": True, "suppress_health_check": list(HealthCheck)}
TIMES = 8 if ALL_CASES else 1  # as many problems as usual
TOLERANCE = 1e-6


def near(a, b):
    return abs(a - b) <= TOLERANCE * max(1.0, abs(a), abs(b))


def agree(solution, expected):
    """An answer of `solvers` against the value of `best`."""
    if expected is None:
        assert solution.status == "infeasible" and solution.value is solution.bound is solution.gap is None
    elif math.isinf(expected):
        assert solution.status == "unbounded"
    else:
        assert solution.status == "optimal" and near(solution.value, expected), (
            solution.status,
            solution.value,
            expected,
        )


def agree_with_each_other(one, other):
    assert one.status == other.status and (one.value is None or near(one.value, other.value)), (one.value, other.value)


class Linear:
    """The rows of a table with a cost, for one pair of bounds after another."""

    def __init__(self, table, cost):
        matrix = sparse.csc_array(np.array([row for row, _, _ in table.rows]))
        lower, upper = (np.array([row[k] for row in table.rows], dtype=float) for k in (1, 2))
        lp = highs_lp(
            cost, matrix, (lower, upper), (np.array(table.low, dtype=float), np.array(table.high, dtype=float))
        )
        self.highs, self.cost, self.all = new_highs(), cost, np.arange(len(cost), dtype=np.int32)
        for name, value in (
            ("threads", set_threads()),
            ("presolve", "off"),
            ("primal_feasibility_tolerance", 1e-9),
            ("dual_feasibility_tolerance", 1e-9),
        ):
            self.highs.setOptionValue(name, value)
        self.highs.passModel(lp)

    def best(self, lower, upper):
        """(value, columns); (inf, None) where nothing fits, (-inf, None) where there is no least value."""
        self.highs.changeColsBounds(len(self.all), self.all, lower, upper)
        for tolerance in (1e-9, 1e-9, 1e-7):  # the basis may have led astray, or the tolerance be too strict
            self.highs.setOptionValue("primal_feasibility_tolerance", tolerance)
            self.highs.run()
            status = self.highs.getModelStatus()
            if status != highspy.HighsModelStatus.kUnknown:
                break
            self.highs.clearSolver()
        if status in (highspy.HighsModelStatus.kUnbounded, highspy.HighsModelStatus.kUnboundedOrInfeasible):
            self.highs.changeColsCost(len(self.all), self.all, 0 * self.cost)
            self.highs.run()
            fits = self.highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
            self.highs.changeColsCost(len(self.all), self.all, self.cost)
            return (-math.inf if fits else math.inf), None
        if status == highspy.HighsModelStatus.kInfeasible:
            return math.inf, None
        assert status == highspy.HighsModelStatus.kOptimal, status
        return self.highs.getInfo().objective_function_value, np.array(self.highs.getSolution().col_value)


def best(data, target=None, held=None):
    """The best value of the objective (or the least of the functional `target`), None where there is no plan, infinite where there
    is no best. `held` = (functional or "throughput", value) must be kept."""
    program = Reference(data)
    table, throughput = program.table, np.zeros(len(program.table.low))
    throughput[table.at["factor",]] = 1.0
    vector = lambda name: throughput if name == "throughput" else program.functional(name)
    for limit in data.limits:
        table.rows.append((vector(limit.functional), -np.inf, limit.upper))
    if held is not None:
        name, value = held
        table.rows.append(
            (vector(name), value if name == "throughput" else -np.inf, np.inf if name == "throughput" else value)
        )
    target = target or data.objective.functional
    sign = -1.0 if target == "throughput" else 1.0
    cost = sign * vector(target)
    whole = np.array(program.whole, dtype=int)
    found, linear = [math.inf], Linear(table, cost)

    def search(low, high):
        bounds = program.bounds(low, high)
        if bounds is None or (bounds[0] > bounds[1]).any():
            return
        value, x = linear.best(*bounds)
        endless = value == -math.inf
        if found[0] == -math.inf or value >= found[0] - 1e-9 * max(1.0, min(abs(found[0]), 1e9)):
            return
        open_ = np.flatnonzero(low < high)
        if not len(open_):
            found[0] = value
            return
        at = (low if endless else x[whole])[open_]
        apart = np.abs(at - np.round(at))
        which = int(apart.argmax()) if apart.max() > 1e-6 else 0
        i, split = open_[which], at[which] if apart.max() > 1e-6 else round(at[which])
        below, above = high.copy(), low.copy()
        below[i], above[i] = math.floor(split), math.floor(split) + 1
        if below[i] == high[i]:  # a whole value at the top: itself, and all below
            below[i], above[i] = high[i] - 1, high[i]
        halves = [(low, below), (above, high)]
        for half in halves if split - below[i] < 0.5 else halves[::-1]:
            search(*half)

    search(np.array(table.low, dtype=float)[whole], np.array(table.high, dtype=float)[whole])
    return None if found[0] == math.inf else sign * found[0]
