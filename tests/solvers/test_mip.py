"""What is reported is what a solver proved: status, bound, gap, polished solution and duals."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from solvers import mip
from solvers.backends.highs import solve_mip
from solvers.branch_and_bound import relaxation, run
from solvers.branch_and_bound.nodes import NodeResult
from solvers.branch_and_bound.search import BranchAndBound
from solvers.interface import ProgressReporter
from solvers.memory import TimeWatch
from solvers.mip import Options
from solvers.program import Program

BOTH = pytest.mark.parametrize("solver", ["highs", "pulp"])


def knapsack(count=25, rows=8, seed=3):
    """A set-covering program that takes many nodes."""
    rng = np.random.default_rng(seed)
    program = Program()
    n = program.add_columns(
        "n", (count,), upper=3.0, integer=True, cost={"cost": rng.integers(5, 30, count).astype(float)}
    )
    cols = np.tile(n, rows)
    program.add_rows(
        "cover",
        rng.integers(150, 220, rows).astype(float),
        np.inf,
        np.repeat(np.arange(rows), count),
        cols,
        rng.integers(0, 10, count * rows).astype(float),
    )
    return program


def small(lower, upper, cost, integer=True, high=10.0):
    """minimise cost * n with lower <= 2 n <= upper."""
    program = Program()
    n = program.add_columns("n", (1,), upper=high, integer=integer, cost={"cost": [cost]})
    program.add_rows("r", [lower], [upper], np.array([0]), n, 2.0)
    return program, program.functional("cost")


@BOTH
def test_optimal_is_proven(solver):
    program = knapsack()
    answer = mip.solve(program, program.functional("cost"), "min", Options(solver=solver, gap=0.0))
    assert answer.status == "optimal" and answer.gap <= 1e-6 and answer.bound <= answer.objective
    assert program.arrays().violation(answer.x) <= 1e-9


@BOTH
def test_within_gap_is_not_called_optimal(solver):
    program = knapsack()
    best = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0)).objective
    answer = mip.solve(program, program.functional("cost"), "min", Options(solver=solver, gap=0.2))
    assert answer.status in ("optimal", "within_gap")
    assert answer.bound <= best <= answer.objective
    assert answer.gap == abs(answer.objective - answer.bound) / answer.objective <= 0.2
    assert (answer.status == "optimal") == (answer.gap <= 1e-6)


def test_cbc_proves_no_more_than_the_gap_it_was_given():
    """CBC's log says "optimal" without a bound: then the bound is just less than the gap asked for below the value, not the value."""
    program, cost = small(3.0, np.inf, 1.0)  # n = 2
    answer = mip.solve(program, cost, "min", Options(solver="pulp", gap=0.01))
    assert (
        answer.objective == 2.0
        and answer.bound == pytest.approx(2.0 * (1 - 0.99 * 0.01))
        and answer.status == "within_gap"
    )
    assert mip.solve(program, cost, "min", Options(solver="pulp", gap=0.0)).status == "optimal"


@BOTH
def test_a_node_limit_ends_as_limit_with_an_honest_bound(solver):
    program = knapsack(60, 30)
    best = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0)).objective
    answer = mip.solve(program, program.functional("cost"), "min", Options(solver=solver, gap=0.0, node_limit=1))
    assert answer.status == "limit"
    assert answer.x is None or answer.objective >= best
    assert answer.bound is None or answer.bound <= best
    if answer.x is not None and answer.bound is not None:
        assert answer.gap > 1e-6


@BOTH
@pytest.mark.parametrize(("seconds", "nodes", "by_time"), [(0.05, None, True), (60.0, 1, False)])
def test_the_clock_is_told_of_an_end_by_time_and_of_no_other(solver, seconds, nodes, by_time):
    program, clock = knapsack(60, 30), TimeWatch()
    options = Options(solver=solver, gap=0.0, time_limit_s=seconds, node_limit=nodes, method="direct", clock=clock)
    answer = mip.solve(program, program.functional("cost"), "min", options)
    assert answer.status == "limit" and clock.was_up == by_time


@pytest.mark.parametrize("work", [300.0, 3000.0])
def test_a_limit_of_work_ends_a_search_where_it_ended_before_and_by_no_clock(work):
    program, clock = knapsack(60, 30), TimeWatch()
    options = Options(gap=0.0, method="direct", work_limit=work, clock=clock)
    first, again, patient = (
        mip.solve(program, program.functional("cost"), "min", replace(options, time_limit_s=limit_s))
        for limit_s in (60.0, 60.0, 600.0)
    )
    assert first.status == "limit" and first.x is not None and not clock.was_up
    assert first.bound < first.objective
    for other in (again, patient):
        assert np.array_equal(first.x, other.x) and first.bound == other.bound


@BOTH
def test_infeasible_and_unbounded_are_told_apart(solver):
    tell = lambda *made: mip.solve(made[0], made[1], "min", Options(solver=solver)).status
    assert tell(*small(3.0, 3.0, 1.0)) == "infeasible"  # 2 n = 3 has no whole n
    assert tell(*small(30.0, np.inf, 1.0)) == "infeasible"  # 2 n >= 30 with n <= 10
    assert tell(*small(0.0, np.inf, -1.0, high=np.inf)) == "unbounded"
    assert tell(*small(0.0, np.inf, -1.0, integer=False, high=np.inf)) == "unbounded"


@BOTH
def test_unbounded_costs_do_not_hide_infeasible_rows(solver):
    program = Program()
    n = program.add_columns("n", (2,), upper=[10.0, np.inf], integer=True, cost={"cost": [0.0, -1.0]})
    program.add_rows("r", [3.0], [3.0], np.array([0]), n[:1], 2.0)
    assert mip.solve(program, program.functional("cost"), "min", Options(solver=solver)).status == "infeasible"


@BOTH
def test_a_program_without_columns_or_rows(solver):
    empty = Program()
    assert mip.solve(empty, np.zeros(0), "min", Options(solver=solver)).status == "optimal"
    empty.add_rows("r", [1.0], [np.inf], np.zeros(0, dtype=int), np.zeros(0, dtype=int), np.zeros(0), count=1)
    assert mip.solve(empty, np.zeros(0), "min", Options(solver=solver)).status == "infeasible"


@pytest.mark.parametrize("sense", ["min", "max"])
def test_duals_are_the_change_per_unit_of_the_side(sense):
    """max 3 a with a <= 4 as a row, or min -3 a: one unit more of the side changes the objective by +3, or -3."""
    program = Program()
    a = program.add_columns("a", (1,), cost={"pseudocosts": [3.0], "cost": [-3.0]})
    program.add_rows("r", -np.inf, [4e5], np.array([0]), a, 1e5)  # 1e5 a <= 4e5, so per unit of the side 3 / 1e5
    name = {"max": "pseudocosts", "min": "cost"}[sense]
    answer = mip.solve(program, program.functional(name), sense, Options())
    assert abs(answer.objective) == pytest.approx(12.0)
    assert answer.row_duals == pytest.approx([3e-5 if sense == "max" else -3e-5])


def test_a_polished_solution_is_exact():
    """n >= 2.5 x with x = 1.3: n = 4 is whole, x is 1.3 to the last digit, and rows hold to 1e-9."""
    program = Program()
    n = program.add_columns("n", (1,), upper=9.0, integer=True, cost={"cost": [1.0]})
    x = program.add_columns("x", (1,))
    program.add_rows("r", 0.0, [np.inf], np.zeros(2, dtype=int), np.concatenate([n, x]), [1.0, -2.5])
    program.add_rows("s", [1.3], [1.3], np.zeros(1, dtype=int), x, 1.0)
    answer = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0))
    assert answer.polished and answer.x[0] == 4.0 and abs(answer.x[1] - 1.3) <= 1e-9


@pytest.mark.parametrize("wrong", [{"solver": "gurobi"}, {"method": "luck"}])
def test_options_name_what_they_take(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Options(**wrong)


def test_another_number_of_threads_in_the_same_process():
    program = knapsack()
    values = {
        threads: mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, threads=threads)).objective
        for threads in (1, 2, 1)
    }
    assert len(set(values.values())) == 1


def test_importing_the_blocks_loads_no_solver():
    import subprocess
    import sys

    code = "import sys, solvers.search.joint; sys.exit(any(name in sys.modules for name in ('highspy', 'pulp')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def facilities(sites=8, customers=30, seed=2):
    """Place facilities at a fixed cost, with whole machines of 7 units each: binaries that matter, counts that do not."""
    rng = np.random.default_rng(seed)
    program = Program()
    opened = program.add_columns("open", (sites,), upper=1.0, integer=True, cost={"cost": rng.uniform(40, 90, sites)})
    machines = program.add_columns("n", (sites,), upper=20.0, integer=True, cost={"cost": rng.uniform(2, 4, sites)})
    demand = rng.uniform(1, 6, customers)
    flow = program.add_columns("f", (sites, customers), cost={"cost": rng.uniform(1, 9, (sites, customers))})
    site, customer = (axis.ravel() for axis in np.indices((sites, customers)))
    program.add_rows("served", demand, demand, customer, flow.ravel(), 1.0)
    program.add_rows(
        "hosted",
        -np.inf,
        np.zeros(flow.size),
        np.tile(np.arange(flow.size), 2),
        np.concatenate([flow.ravel(), opened[site]]),
        np.concatenate([np.ones(flow.size), -demand[customer]]),
    )
    program.add_rows(
        "carried",
        -np.inf,
        np.zeros(sites),
        np.concatenate([site, np.arange(sites)]),
        np.concatenate([flow.ravel(), machines]),
        np.concatenate([np.ones(flow.size), np.full(sites, -7.0)]),
    )
    return program


@pytest.mark.parametrize("seed", range(4))
def test_branch_and_bound_proves_the_same_optimum(seed):
    program = facilities(seed=seed)
    direct, branch = (
        mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method=method))
        for method in ("direct", "branch")
    )
    assert direct.status == branch.status == "optimal"
    assert branch.objective == pytest.approx(direct.objective, rel=1e-7)


def placed(seed, kinds=4, extra=6):
    """`facilities` with a job that takes one of several layouts at one of the facilities, and a machine or more there."""
    program, rng = facilities(seed=seed), np.random.default_rng(seed)
    opened, machines = program.columns["open"], program.columns["n"]
    sites = len(opened)
    y = program.add_columns(
        "y", (sites, kinds), upper=1.0, integer=True, cost={"cost": rng.uniform(3, 4, (sites, kinds))}
    )
    program.add_rows("assigned", 1.0, 1.0, np.zeros(y.size, dtype=np.int64), y.ravel(), 1.0, count=1)
    program.add_rows(
        "housed",
        -np.inf,
        np.zeros(sites),
        np.concatenate([np.repeat(np.arange(sites), kinds), np.arange(sites)]),
        np.concatenate([y.ravel(), opened]),
        np.concatenate([np.ones(y.size), -np.ones(sites)]),
    )
    program.add_rows(
        "width",
        -np.inf,
        np.zeros(sites),
        np.concatenate([np.repeat(np.arange(sites), kinds), np.arange(sites)]),
        np.concatenate([y.ravel(), machines]),
        np.concatenate([rng.uniform(1, extra, y.size), -np.ones(sites)]),
    )
    for site in range(sites):
        program.branching_sets.append((y[site], np.delete(y, site, axis=0).ravel()))
    for kind in range(kinds):
        program.branching_sets.append((y[:, kind], np.delete(y, kind, axis=1).ravel()))
    return program


def test_branching_on_sets_proves_the_same_optimum(monkeypatch):
    halved, child = 0, BranchAndBound._child

    def counted(search, node, column, side):
        nonlocal halved
        halved += column >= len(node.lower)
        return child(search, node, column, side)

    monkeypatch.setattr(BranchAndBound, "_child", counted)
    for seed in range(6):
        program = placed(seed)
        direct, branch = (
            mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method=method))
            for method in ("direct", "branch")
        )
        assert direct.status == branch.status == "optimal"
        assert branch.objective == pytest.approx(direct.objective, rel=1e-7)
    assert halved > 10


def test_a_feasible_mip_start_becomes_the_incumbent(monkeypatch):
    monkeypatch.setattr(run, "SETTINGS", replace(run.SETTINGS, hard_iterations=0))
    program = placed(0)
    cost = program.functional("cost")
    best = mip.solve(program, cost, "min", Options(gap=0.0))
    asked = []

    def mip_start(x):
        asked.append(x)
        return x, -np.inf

    cut = Options(gap=0.0, method="branch", node_limit=1)
    told = mip.solve(program, cost, "min", cut, mip_start=mip.MipStart(lambda: mip_start(best.x)))
    assert told.objective == pytest.approx(best.objective, rel=1e-7)
    wrong = best.x.copy()
    wrong[program.columns["n"]] = 0.0
    missed = mip.solve(program, cost, "min", cut, mip_start=mip.MipStart(lambda: mip_start(wrong)))
    assert program.arrays().violation(missed.x) <= 1e-9 and missed.objective >= best.objective * (1 - 1e-9)
    none = mip.solve(program, cost, "min", cut, mip_start=mip.MipStart(lambda: mip_start(None)))
    assert none.objective == pytest.approx(missed.objective, rel=1e-9) and len(asked) == 3


def test_the_bound_of_a_mip_start_ends_the_search(monkeypatch):
    monkeypatch.setattr(run, "SETTINGS", replace(run.SETTINGS, hard_iterations=0))
    program = placed(0)
    cost = program.functional("cost")
    best = mip.solve(program, cost, "min", Options(gap=0.0))
    searched = {}
    for bound in (-np.inf, best.objective):
        lines = []
        told = mip.solve(
            program,
            cost,
            "min",
            Options(gap=1e-6, method="branch", progress=lines.append),
            mip_start=mip.MipStart(lambda bound=bound: (best.x, bound)),
        )
        assert told.status == "optimal" and told.bound == pytest.approx(best.objective, rel=1e-6)
        searched[bound] = len(lines)
    assert searched[best.objective] == 0 < searched[-np.inf]


STANDING = re.compile(
    r"(?:best (?P<best>[-\d,.e+]+)|no plan yet), (?:bound (?P<bound>[-\d,.e+]+)|no bound yet)(?:, gap (?P<gap>[\d.]+)%)?  [\d.]+ s$"
)


def stood(lines):
    """(best, bound, gap) of each line of progress, NaN where there was none yet."""
    number = lambda text: float("nan") if text is None else float(text.replace(",", ""))
    return np.array(
        [[number(found[name]) for name in ("best", "bound", "gap")] for found in map(STANDING.search, lines) if found]
    ).reshape(-1, 3)


@pytest.mark.parametrize("method", ["direct", "branch"])
@pytest.mark.parametrize("sense", ["min", "max"])
def test_progress_reports_value_and_bound_as_they_converge(method, sense, monkeypatch):
    monkeypatch.setattr(mip, "PROGRESS_EVERY_S", 0.0)
    program, lines = placed(1), []
    sign = 1.0 if sense == "min" else -1.0
    cost = sign * 3e4 * program.functional("cost")
    answer = mip.solve(program, cost, sense, Options(gap=0.0, method=method, progress=lines.append))
    best, bound, gap = stood(lines).T
    assert len(best) == len(lines) > 1 and np.isfinite(best).any() and np.isfinite(bound).any()
    known = np.isfinite(best)
    least, little = sign * answer.objective, 1e-5 * abs(answer.objective)
    assert (sign * best[known] >= least - little).all() and (np.diff(sign * best[known]) <= 0).all()
    known = np.isfinite(bound)
    assert (sign * bound[known] <= least + little).all() and (np.diff(sign * bound[known]) >= 0).all()
    known = np.isfinite(gap)
    assert gap[known] == pytest.approx(100 * np.abs(best - bound)[known] / np.abs(best)[known], abs=2e-3)


def test_progress_waits_between_lines_and_repeats_nothing():
    lines = []
    progress = ProgressReporter(lines.append, 2.0)
    progress.report(bound=1.0)
    progress.report(5.0, 0.5)
    progress.report(6.0, 1.0)
    assert [line.split("  ")[0] for line in lines] == ["no plan yet, bound 2", "best 10, bound 2, gap 80.000%"]
    rare = ProgressReporter(lines.append, every_s=1e3)
    rare.report(2e6)
    rare.report(1e6)
    assert len(lines) == 3 and lines[-1].startswith("best 2,000,000, no bound yet  ")


@pytest.mark.parametrize("share", [1.0, 0.995, 0.9])
def test_a_first_mip_start_within_the_gap_ends_the_solve(share):
    """Within the gap they are returned before anything else is solved; beyond it the search continues from them."""
    program = placed(0)
    cost = program.functional("cost")
    best = mip.solve(program, cost, "min", Options(gap=0.0))
    lines = []
    told = mip.solve(
        program,
        cost,
        "min",
        Options(gap=0.01, method="branch", progress=lines.append),
        mip_start=mip.MipStart(lambda: (best.x, share * best.objective), first=True),
    )
    assert told.objective == pytest.approx(best.objective, rel=1e-7) and told.gap <= 0.01
    if share > 0.99:
        assert told.bound == pytest.approx(share * best.objective, rel=1e-7) and not lines
    else:
        assert told.bound > share * best.objective * 1.05


@pytest.mark.parametrize("bound", [-np.inf, 1.0])
def test_an_empty_first_mip_start_does_not_change_the_search(bound):
    program = placed(0)
    cost = program.functional("cost")
    best = mip.solve(program, cost, "min", Options(gap=0.0))
    told = mip.solve(
        program,
        cost,
        "min",
        Options(gap=1e-6, method="branch"),
        mip_start=mip.MipStart(lambda: (None, bound), first=True),
    )
    assert told.status == "optimal" and told.objective == pytest.approx(best.objective, rel=1e-6)


def test_the_mip_start_is_not_called_while_the_search_is_easy():
    program = placed(0)
    easy = mip.solve(
        program,
        program.functional("cost"),
        "min",
        Options(gap=0.0, method="branch"),
        mip_start=mip.MipStart(lambda: pytest.fail("asked")),
    )
    assert easy.status == "optimal"


@pytest.mark.parametrize("gap", [0.2, 0.01])
def test_branch_and_bound_respects_the_gap(gap):
    program = facilities()
    best = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method="direct")).objective
    answer = mip.solve(program, program.functional("cost"), "min", Options(gap=gap, method="branch"))
    assert answer.gap <= gap and answer.bound <= best * (1 + 1e-9) and answer.objective >= best * (1 - 1e-9)


def test_branch_and_bound_hands_over_at_its_node_limit(monkeypatch):
    program = facilities()
    best = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method="direct")).objective
    monkeypatch.setattr(run, "SETTINGS", replace(run.SETTINGS, node_limit=1))
    answer = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method="branch"))
    assert answer.status == "optimal" and answer.objective == pytest.approx(best, rel=1e-7)
    cut = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method="branch", node_limit=1))
    assert cut.bound <= best * (1 + 1e-9) and cut.objective >= best * (1 - 1e-9)


@pytest.mark.parametrize("method", ["direct", "branch"])
def test_no_time_is_a_limit_and_not_an_error(method):
    program = facilities()
    answer = mip.solve(program, program.functional("cost"), "min", Options(gap=0.0, method=method, time_limit_s=0.0))
    assert answer.status == "limit"
    assert answer.gap is None or answer.gap > 1e-6


def lost_in_presolve() -> Program:
    """A program, cut down from one of throughput, of which HiGHS 1.15 with all rules of its presolve says that 0 is the best value.
    The v add up to 1 and need open0, which bars open1, x7 and f5; of the 15.75 that leaves 13.75 for x6, half of which is served."""
    whole = ["n2", "n3", "open0", "open1", "host", "y0", "y1", "run0", "run1", "run2", "run3"]
    reals = ["f4", "f5", "x6", "x7", "served", "waits", "v0", "v1", "v2", "v3", "day", "night"]
    program, at = Program(), {}
    for name in whole + reals:
        low = -np.inf if name in ("day", "night") else 0.0
        at[name] = program.add_columns(
            name,
            (1,),
            low,
            1.0 if name in whole or name[0] == "v" else np.inf,
            integer=name in whole,
            cost={"served": [float(name == "served")]},
        )
    rows = (
        ("n2 n3", 1.0), ("open0 -n2", 0.0), ("open1 -n3", 0.0), ("f5 -x7 -x7", 0.0), ("f4 -host", 0.0), ("v0 -run0", 0.0), ("v1 -run1", 0.0),
        ("v2 -run2", 0.0), ("v3 -run3", 0.0), ("run0 run2 -open0", 0.0), ("run1 run3 -open0", 0.0), ("x7 -open1 -open1", 0.0),
        ("open0 open1 host day night", 15.75), ("= f4 x6 -served -waits", 0.0), ("= f5 -served waits", 0.0), ("= y0 y1", 1.0),
        ("= v0 v1 -y0", 0.0), ("= v2 v3 -y1", 0.0), ("= x6 v0 v2 -day", 0.0), ("= x7 v1 v3 -night", 0.0),
    )  # fmt: skip
    for row, (text, side) in enumerate(rows):
        names = text.replace("= ", "").split()
        program.add_rows(
            f"r{row}",
            side if text[0] == "=" else -np.inf,
            [side],
            np.zeros(len(names), dtype=int),
            np.concatenate([at[name.lstrip("-")] for name in names]),
            [-1.0 if name[0] == "-" else 1.0 for name in names],
        )
    return program


def test_no_optimum_is_lost_in_presolve():
    program = lost_in_presolve()
    answer = mip.solve(program, program.functional("served"), "max", Options(gap=0.0))
    assert answer.status == "optimal" and answer.objective == pytest.approx(6.875)


def test_no_optimum_is_lost_in_solve_mip():
    program = lost_in_presolve()
    arrays = program.arrays()
    found = solve_mip(
        -program.functional("served"),
        arrays.matrix,
        (arrays.row_lower, arrays.row_upper),
        (arrays.lower, arrays.upper),
        arrays.integer,
        0.0,
        10.0,
    )
    assert found.x is not None and found.bound == pytest.approx(-6.875)


def test_the_bound_of_a_linear_program_is_its_value():
    found = solve_mip(
        np.array([-1.0, -1.0]),
        sparse.csc_array([[1.0, 2.0]]),
        (np.array([-np.inf]), np.array([3.0])),
        (np.zeros(2), np.ones(2)),
        np.zeros(2, dtype=bool),
        0.0,
        10.0,
    )
    assert found.bound == pytest.approx(-2.0)


def test_a_relaxation_without_a_result_is_settled_by_highs(monkeypatch):
    """An LP may end without a result where a row is violated by very little; the program is infeasible."""
    program = facilities()
    program.add_rows(
        "too few", -np.inf, 0.5, np.zeros(8, dtype=np.int64), program.columns["open"].ravel(), 1.0, count=1
    )
    monkeypatch.setattr(relaxation.NodeLp, "solve", lambda *_: NodeResult(None))
    answer = mip.solve(program, program.functional("cost"), "min", Options(method="branch"))
    assert answer.status == "infeasible" and answer.x is None and answer.bound is None


@pytest.mark.parametrize("method", ["direct", "branch"])
def test_a_search_without_a_solution_goes_on_until_its_first_one(method):
    """And ends there: the knapsack takes many more nodes to its optimum."""
    program = knapsack(count=60, rows=20)
    options = Options(gap=0.0, method=method, time_limit_s=1e-3)
    ended = mip.solve(program, program.functional("cost"), "min", options)
    further = mip.solve(program, program.functional("cost"), "min", replace(options, longest_s=120.0))
    assert ended.x is None and further.x is not None
    assert further.status == "limit"
