"""Runs a solver on a program: HiGHS through highspy here, PuLP with CBC as an independent second opinion in cbc.py.

Status, bound and gap are what the solver proved, never what was asked for. Both solvers are imported when used."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from solvers.backends.cbc import run_pulp
from solvers.backends.highs import new_highs, program_of, take_threads
from solvers.branch_and_bound.rounding import FreeChoices, whole_counts
from solvers.branch_and_bound.search import Finished, Relaxed, Search
from solvers.interface import ENUMERATION, Options, Outcome, RawSolution, SolverError, Standing
from solvers.program import Arrays, Floats, Ints, Program, Scaled

if TYPE_CHECKING:
    from solvers.reoptimize import Kept

OPTIMAL_GAP = 1e-6      # below this a gap is the solver's rounding
ROW_TOLERANCE = 1e-9    # of the polished answer, relative to the largest coefficient of the row
LP_TOLERANCE = 1e-10    # the tightest that HiGHS takes
LP_ROUNDING = 1e-7      # of a sum of terms with both signs
MIP_TOLERANCE = 1e-6
LARGE = 3000            # columns from which on the search over binaries is worth its linear programs
NODES = 100             # of that search, before HiGHS takes over
EVERY_S = 1.0           # between lines of progress


def relative_gap(objective: float, bound: float) -> float:
    return abs(objective - bound) / max(abs(objective), 1e-9)


def solve(program: Program, objective: Floats, sense: str, options: Options, *, polished: bool = True,
          start: Floats | None = None, hint: Callable[[], tuple[Floats | None, float]] | None = None, at_once: bool = False, kept: Kept | None = None) -> RawSolution:
    """Solve, then fix the integers at their whole values and re-solve the linear rest exactly. `hint`: finds a solution in another way,
    where the search over the binaries is hard, or `at_once`, and what no solution is better than; `kept`: one of a program alike, which is changed to this one and tells what it can."""
    begin = time.perf_counter()
    sign, options = -1.0 if sense == "max" else 1.0, replace(options, presolve=options.presolve and program.presolve)
    arrays = program.arrays()
    cost = sign * np.asarray(objective, dtype=float)
    scaled = arrays.scaled(cost) if kept is None else kept.change(arrays, cost)
    run, known = {"pulp": run_pulp, "highs": _run_highs}[options.solver] if kept is None else kept.run, {}
    if kept is None and options.solver == "highs" and branches(arrays, options):
        run, known = run_branch, {"hint": None if hint is None else lambda: _scaled_to(scaled, sign, *hint()), "at_once": at_once}
    if options.progress is not None and options.solver == "highs" and kept is None:
        run = partial(run, standing=Standing(options.progress, sign / scaled.objective, EVERY_S))
    outcome = partial(run, **known)(scaled, options, MIP_TOLERANCE, start=None if start is None else start / scaled.column)
    x = None if outcome.x is None else outcome.x * scaled.column
    duals, exact = None, False
    if x is not None and polished:
        fixed = _fixed_integers(arrays, x)
        answer = polish(arrays, fixed, sign * objective, options)
        if answer is None and arrays.integer.any() and options.solver == "highs":
            # whole values missed a row that the solver's tolerance forgave: solve again to the tight tolerance
            left = replace(options, time_limit_s=max(1.0, options.time_limit_s - (time.perf_counter() - begin)))
            again = run(scaled, left, LP_TOLERANCE)
            if again.x is not None:
                outcome, x = again, again.x * scaled.column
                answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
        if answer is not None:
            (x, duals), exact = answer, True
    return _report(outcome, scaled, x, sign, objective, duals, exact, options, time.perf_counter() - begin)


def _scaled_to(scaled: Scaled, sign: float, x: Floats | None, bound: float) -> tuple[float, Floats | None, float]:
    """The value and the columns of a solution in the numbers of the solver, inf and none where there is none or it does not hold; and the bound."""
    if x is None or scaled.arrays.violation(inner := x / scaled.column) > MIP_TOLERANCE:
        return math.inf, None, sign * bound * scaled.objective
    return float(scaled.cost @ inner), inner, sign * bound * scaled.objective


def polish(arrays: Arrays, fixed: tuple[Floats, Floats], cost: Floats, options: Options) -> tuple[Floats, Floats] | None:
    """(x, row duals) of the linear program with the given bounds, None where it has no solution."""
    lower, upper = fixed
    scaled = arrays.scaled(cost)  # before the bounds are fixed: the size of the objective is judged by their width
    column = scaled.column
    scaled = replace(scaled, arrays=replace(scaled.arrays, lower=lower / column, upper=upper / column,
                                            integer=np.zeros_like(arrays.integer)))
    # quick with the integers fixed, and an answer in hand is worth finishing: no limit of time
    unlimited = replace(options, solver="highs", node_limit=None, time_limit_s=math.inf)
    outcome = _run_highs(scaled, unlimited, LP_TOLERANCE)
    if outcome.status != "optimal" or outcome.x is None:
        return None
    x = np.clip(outcome.x * scaled.column, lower, upper) + 0.0  # no -0.0
    if arrays.violation(x) > ROW_TOLERANCE:
        return None
    return x, outcome.duals * scaled.row / scaled.objective


def priced(program: Program, objective: Floats, sense: str, x: Floats, options: Options) -> tuple[Floats, Floats] | tuple[None, None]:
    """(best x, row duals) of the linear program with the integers of x fixed; (None, None) where it has no solution."""
    sign = -1.0 if sense == "max" else 1.0
    arrays = program.arrays()
    answer = polish(arrays, _fixed_integers(arrays, x), sign * objective, options)
    return (None, None) if answer is None else (answer[0], sign * answer[1])


def _fixed_integers(arrays: Arrays, x: Floats) -> tuple[Floats, Floats]:
    whole = np.round(x)
    return np.where(arrays.integer, whole, arrays.lower), np.where(arrays.integer, whole, arrays.upper)


def _report(outcome: Outcome, scaled: Scaled, x: Floats | None, sign: float, objective: Floats, duals: Floats | None,
            exact: bool, options: Options, seconds: float) -> RawSolution:
    bound = None
    if outcome.bound is not None and math.isfinite(outcome.bound):
        bound = sign * outcome.bound / scaled.objective
    if x is None:
        status = "limit" if outcome.status == "optimal" else outcome.status
        return RawSolution(status, bound=bound if status == "limit" else None, seconds=seconds)
    value = float(objective @ x)
    gap = None
    if bound is not None:
        beyond = sign * (bound - value)
        terms = float(np.abs(objective) @ np.abs(x))  # where some are below 0, their rounding is not that of the value
        if beyond > max(1e-5 * abs(value), 1e-5 / scaled.objective, LP_ROUNDING * terms):
            raise SolverError(f"the bound {bound} lies beyond the value {value} of a solution")
        bound = value if beyond > 0 else bound  # by less than the solver's tolerance
        gap = relative_gap(value, bound)
    if gap is not None and gap <= OPTIMAL_GAP:
        status = "optimal"
    elif gap is not None and gap <= options.gap * (1 + OPTIMAL_GAP):  # a bound at the very gap may round beyond it
        status = "within_gap"
    else:
        status = "limit"
    return RawSolution(status, value, bound, gap, x, seconds, None if duals is None else sign * duals, exact)


# --- HiGHS -----------------------------------------------------------------------------------------------------

def _highs(options: Options, tolerance: float, scaled: Scaled):
    import highspy

    take_threads(options.threads)
    highs = new_highs()
    settings = {"random_seed": options.seed,
                "time_limit": float(options.time_limit_s), "mip_rel_gap": options.gap,
                "primal_feasibility_tolerance": min(1e-7, tolerance), "dual_feasibility_tolerance": 1e-7,
                "mip_feasibility_tolerance": tolerance, "presolve_rule_off": ENUMERATION,
                "presolve": "off" if not options.presolve and scaled.arrays.integer.any() else "choose"}
    if options.node_limit is not None:
        settings["mip_max_nodes"] = int(options.node_limit)
    for name, value in settings.items():
        if highs.setOptionValue(name, value) != highspy.HighsStatus.kOk:
            raise SolverError(f"HiGHS refused the option {name} = {value}")
    arrays = scaled.arrays
    lp = program_of(scaled.cost, arrays.matrix, (arrays.row_lower, arrays.row_upper), (arrays.lower, arrays.upper), arrays.integer)
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        raise SolverError("HiGHS refused the program")
    return highs


def _run_highs(scaled: Scaled, options: Options, tolerance: float, start: Floats | None = None,
               target: float | None = None, standing: Standing | None = None) -> Outcome:
    """`standing`: is told how a search for whole numbers goes."""
    import highspy

    if (scaled.arrays.lower > scaled.arrays.upper).any():
        return Outcome("infeasible")
    if not len(scaled.cost):  # nothing to decide: either 0 is in every row or there is no answer
        holds = scaled.arrays.violation(scaled.cost) <= tolerance
        return Outcome("optimal", np.zeros(0), 0.0, np.zeros(len(scaled.row))) if holds else Outcome("infeasible")
    highs = _highs(options, tolerance, scaled)
    if target is not None:
        highs.setOptionValue("objective_target", target)
    if start is not None:
        known = highspy.HighsSolution()
        known.col_value = list(start)
        highs.setSolution(known)
    if standing is not None and scaled.arrays.integer.any():
        highs.cbMipInterrupt.subscribe(lambda now: standing.tell(now.data_out.mip_primal_bound, now.data_out.mip_dual_bound))
    highs.run()
    status, kinds = highs.getModelStatus(), highspy.HighsModelStatus
    if status in (kinds.kUnboundedOrInfeasible, kinds.kUnbounded):
        if not scaled.cost.any():
            return Outcome("infeasible")
        # without an objective it cannot be unbounded, so the answer tells the two apart; an unbounded relaxation does
        # not mean that there is a whole answer
        feasible = _run_highs(replace(scaled, cost=np.zeros_like(scaled.cost)), options, tolerance)
        return Outcome({"optimal": "unbounded"}.get(feasible.status, feasible.status))
    if status == kinds.kInfeasible:
        return Outcome("infeasible")
    info = highs.getInfo()
    whole = bool(scaled.arrays.integer.any())
    solution = highs.getSolution()
    has_x = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    x = np.array(solution.col_value) if has_x else None
    if status == kinds.kOptimal:
        bound = info.mip_dual_bound if whole else float(scaled.cost @ x)
        duals = np.array(solution.row_dual) if not whole and solution.dual_valid else None
        return Outcome("optimal", x, bound, duals)
    if status in (kinds.kTimeLimit, kinds.kIterationLimit, kinds.kSolutionLimit, kinds.kInterrupt, kinds.kMemoryLimit,
                  kinds.kObjectiveTarget):
        return Outcome("limit", x, info.mip_dual_bound if whole else None)
    if status == kinds.kUnknown:
        return Outcome("limit", x)
    raise SolverError(f"HiGHS ended with {highs.modelStatusToString(status)}")


def branches(arrays: Arrays, options: Options) -> bool:
    binaries = int((arrays.integer & (arrays.upper - arrays.lower <= 1)).sum())
    if options.method == "auto":
        return len(arrays.integer) >= LARGE and 0 < binaries <= 400
    return options.method == "branch" and binaries > 0


def run_branch(scaled: Scaled, options: Options, tolerance: float, start: Floats | None = None,
                relaxation: Relaxation | None = None, known: Sequence[Floats] = (), hint: Callable[[], tuple[float, Floats | None, float]] | None = None,
                at_once: bool = False, standing: Standing | None = None) -> Outcome:
    """The search over the binaries; what it leaves open when its nodes are used up goes to HiGHS as a whole.
    `relaxation`: that of a program alike, changed to this one; `known`: answers of programs alike; `hint`, `at_once`: as of the search."""
    begin = time.perf_counter()
    arrays = scaled.arrays
    left = lambda: options.time_limit_s - (time.perf_counter() - begin)
    if relaxation is None:
        relaxation = Relaxation(scaled, options, left)
    relaxation.left = left

    def finish(lower: Floats, upper: Floats, known: Floats | None, target: float, gap: float, standing: Standing | None = None) -> Finished:
        part = replace(scaled, arrays=replace(arrays, lower=lower, upper=upper))
        limits = replace(options, time_limit_s=max(0.1, left()), gap=gap)
        outcome = _run_highs(part, limits, tolerance, known, target, standing)
        if outcome.status == "infeasible":
            return Finished(math.inf, None, math.inf)
        value = math.inf if outcome.x is None else float(scaled.cost @ outcome.x)
        return Finished(value, outcome.x, -math.inf if outcome.bound is None else outcome.bound)

    search = search_of(scaled, options, relaxation, finish, options.node_limit or NODES, known, None if standing is None else standing.tell, hint, at_once)
    value = math.inf if start is None else float(scaled.cost @ start)
    found = search.run(arrays.lower, arrays.upper, start, value)
    if relaxation.ended in ("infeasible", "unbounded") and found.x is None and not math.isfinite(found.bound):
        return _run_highs(scaled, options, tolerance)  # HiGHS tells the two apart, and unbounded from infeasible integers
    if not found.complete and left() > 1.0:
        answer = finish(arrays.lower, arrays.upper, found.x, found.bound, options.gap, standing)
        x = answer.x if answer.value < found.value else found.x
        return Outcome("optimal" if x is not None else "infeasible" if answer.bound == math.inf else "limit", x, max(found.bound, answer.bound))
    status = "optimal" if found.x is not None else ("infeasible" if found.bound == math.inf else "limit")
    return Outcome(status, found.x, found.bound)


def search_of(
    scaled: Scaled, options: Options, relaxation: Relaxation, finish: Callable[..., Finished], node_limit: int, known: Sequence[Floats],
    tell: Callable[[float, float], None] | None, hint: Callable[[], tuple[float, Floats | None, float]] | None = None, at_once: bool = False,
) -> Search:  # fmt: skip
    arrays = scaled.arrays
    binary = arrays.integer & (arrays.upper - arrays.lower <= 1)

    def count(lower: Floats, upper: Floats, target: float, most: float) -> Finished:
        limits = replace(options, time_limit_s=max(0.1, relaxation.left()))
        return whole_counts(scaled, lower, upper, target, most, options.gap, lambda part: Linear(part.arrays, part.cost, limits, ends=time.perf_counter() + limits.time_limit_s))

    return Search(np.flatnonzero(binary), np.flatnonzero(arrays.integer & ~binary), relaxation.solve, count, finish, FreeChoices(scaled).settled,
                  options.gap, node_limit, known, relaxation.gain, arrays.halves, hint, at_once, lambda: relaxation.iterations, tell)


class Relaxation:
    """The linear relaxation, kept in one HiGHS object so that each solve starts from the last basis."""

    def __init__(self, scaled: Scaled, options: Options, left) -> None:
        arrays = scaled.arrays
        linear = replace(scaled, arrays=replace(arrays, integer=np.zeros_like(arrays.integer)))
        self._highs = _highs(replace(options, node_limit=None), 1e-7, linear)
        self._lower, self._upper = arrays.lower.copy(), arrays.upper.copy()
        self._scaled, self.root = linear, None  # the basis of the last optimum that was not searched from another
        self.left, self.gain = left, {}  # what choices cost, learnt by searches
        self.ended, self.iterations = "", 0

    def start_from(self, other: Relaxation, columns: Ints, rows: Ints) -> None:
        from solvers.backends.persistent_lp import moved

        self.root = None if other.root is None else moved(other.root, columns, rows)

    def change(self, scaled: Scaled) -> None:
        """To another program with entries in the same places; the next solve starts from `root`."""
        old, new, highs = self._scaled.arrays, scaled.arrays, self._highs
        column = np.flatnonzero(scaled.cost != self._scaled.cost).astype(np.int32)
        highs.changeColsCost(len(column), column, scaled.cost[column])
        row = np.flatnonzero((new.row_lower != old.row_lower) | (new.row_upper != old.row_upper)).astype(np.int32)
        highs.changeRowsBounds(len(row), row, new.row_lower[row], new.row_upper[row])
        for entry in np.flatnonzero(new.matrix.data != old.matrix.data):
            at = int(np.searchsorted(new.matrix.indptr, entry, side="right")) - 1
            highs.changeCoeff(int(new.matrix.indices[entry]), at, new.matrix.data[entry])
        self._scaled = scaled

    def solve(self, lower: Floats, upper: Floats, basis: object, stop_at: float) -> Relaxed:
        import highspy

        changed = np.flatnonzero((lower != self._lower) | (upper != self._upper))
        for column in changed:
            self._highs.changeColBounds(int(column), lower[column], upper[column])
        self._lower, self._upper = lower.copy(), upper.copy()
        first, basis = basis is None, self.root if basis is None else basis
        if basis is not None:
            # weights of Devex pricing start at 1; those of steepest edge would be computed anew from the basis
            self._highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)
            self._highs.setBasis(basis)
        self._highs.setOptionValue("objective_bound", stop_at)
        self._highs.setOptionValue("time_limit", self._highs.getRunTime() + max(0.0, self.left()))
        self._highs.run()
        self.iterations += self._highs.getInfo().simplex_iteration_count
        status, kinds = self._highs.getModelStatus(), highspy.HighsModelStatus
        if status == kinds.kOptimal:
            self.ended, found = "optimal", self._highs.getBasis()
            if first:
                self.root = found
            return Relaxed(self._highs.getInfo().objective_function_value, np.array(self._highs.getSolution().col_value), found)
        if status == kinds.kObjectiveBound:
            return Relaxed(stop_at)
        if status == kinds.kInfeasible:
            self.ended = "infeasible"
            return Relaxed(math.inf)
        if status in (kinds.kUnbounded, kinds.kUnboundedOrInfeasible):
            self.ended = "unbounded"
            return Relaxed(-math.inf)
        self.ended = "limit"
        return Relaxed(None)


@dataclass(frozen=True, slots=True)
class LinearAnswer:
    """`row_duals`, `column_duals`: change of the objective per unit of a row's side, or of the bound a column is at."""

    status: str                       # optimal | infeasible | unbounded | limit
    value: float | None = None
    x: Floats | None = None
    row_duals: Floats | None = None
    column_duals: Floats | None = None


class Linear:
    """A linear program that is minimised again and again under other bounds or costs, each time from the last basis."""

    def __init__(self, arrays: Arrays, cost: Floats, options: Options, basis: object = None, ends: float = math.inf) -> None:
        """`basis`: of a program alike, to start from. `ends`: on the performance counter [s], when no answer is sought any longer."""
        self._scaled = replace(arrays, integer=np.zeros_like(arrays.integer)).scaled(cost)
        self._highs = _highs(replace(options, node_limit=None), 1e-7, self._scaled)
        self._highs.setOptionValue("simplex_dual_edge_weight_strategy", 1)  # Devex: steepest edge takes longer than it saves
        if not options.presolve:
            self._highs.setOptionValue("presolve", "off")
        self._lower, self._upper, self._cost, self._seconds, self._ends = arrays.lower, arrays.upper, cost, options.time_limit_s, ends
        self.start_from(basis)

    @property
    def basis(self) -> object:
        """Where the last answer stands."""
        return self._highs.getBasis()

    def start_from(self, basis: object) -> None:
        """The next answer starts there; one of another shape is passed over."""
        if basis is not None and (len(basis.row_status), len(basis.col_status)) == self._scaled.arrays.matrix.shape:
            self._highs.setBasis(basis)

    def contradiction(self) -> Floats | None:
        """Multipliers of rows that show why the last one has no answer; None where they are not known."""
        _, known, multipliers = self._highs.getDualRay()
        return multipliers * self._scaled.row if known else None

    def solve(self, lower: Floats, upper: Floats, cost: Floats | None = None, *, value_only: bool = False) -> LinearAnswer:
        import highspy

        column, highs = self._scaled.column, self._highs
        moved = cost is not None and bool((cost != self._cost).any())
        highs.setOptionValue("simplex_strategy", 4 if moved else 1)  # the last answer is still one under other costs: primal simplex goes on from it
        if moved:
            for j in np.flatnonzero(cost != self._cost):
                highs.changeColCost(int(j), cost[j] * column[j] * self._scaled.objective)
            self._cost = cost.copy()
        for j in np.flatnonzero((lower != self._lower) | (upper != self._upper)):
            highs.changeColBounds(int(j), lower[j] / column[j], upper[j] / column[j])
        self._lower, self._upper = lower.copy(), upper.copy()
        highs.setOptionValue("time_limit", highs.getRunTime() + max(min(self._seconds, self._ends - time.perf_counter()), 0.0))
        highs.run()
        kinds = highspy.HighsModelStatus
        named = {kinds.kOptimal: "optimal", kinds.kInfeasible: "infeasible", kinds.kUnbounded: "unbounded"}
        status = named.get(highs.getModelStatus(), "limit")
        if status != "optimal":
            return LinearAnswer(status)
        value, scale = highs.getInfo().objective_function_value / self._scaled.objective, self._scaled.objective
        if value_only:
            return LinearAnswer(status, value)
        solution = highs.getSolution()
        return LinearAnswer(
            status, value, np.array(solution.col_value) * column,
            np.array(solution.row_dual) * self._scaled.row / scale, np.array(solution.col_dual) / column / scale)
