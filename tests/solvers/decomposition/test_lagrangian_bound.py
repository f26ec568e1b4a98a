"""What is proven at any prices, against the rows of the whole program at the same prices; and what a job is charged for the windows in which
it runs: never more than any way to do it there, and no less than without them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from solvers.backends.highs import highs_lp, new_highs, set_threads
from solvers.decomposition.lagrangian_bound import Duals, LagrangianCut, _charge_job_windows
from solvers.decomposition.reformulation import Reformulation
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.conftest import few_of
from tests.solvers.model import test_phases as phases
from tests.solvers.reference import SMALL
from tests.solvers.test_bruteforce import problem


def least_window_cost(price, work, compared, window, there) -> float:
    """Over all sets of windows, done in the cheapest slots of each."""
    best = np.inf
    for count in range(len(there) + 1):
        for chosen in itertools.combinations(there, count):
            at = np.flatnonzero(np.isin(window, chosen) & (work > 0))
            at = at[np.argsort(price[at] / work[at], kind="stable")]
            share = np.clip((1 - (np.cumsum(work[at]) - work[at])) / work[at], 0.0, 1.0)
            if (share * work[at]).sum() >= 1 - 1e-9:
                best = min(best, float((share * price[at]).sum() + compared[list(chosen)].sum()))
    return best


@settings(max_examples=few_of(80), **SMALL)
@given(st.integers(0, 2**32 - 1))
def test_a_job_is_charged_no_more_than_the_least_that_its_windows_and_slots_cost(seed):
    rng = np.random.default_rng(seed)
    data = replace(phases.phased(rng, ("cost",)), limits=())
    if unserved(data) or unfinished(data) or not build(data).column_count:
        return
    dec = Reformulation(data, "cost", build, 1, ProgressReporter())
    run, y, view = dec.first_stage.columns["run"], dec.first_stage.columns["y"], dec.view
    alpha, sigma = (
        rng.uniform(0.0, 2.0, (len(data.option_site), view.slots)),
        rng.uniform(0.0, 1.0, (data.sites, view.slots)),
    )
    reduced_cost = rng.uniform(-1.0, 4.0, dec.first_stage.size)
    points = view.training[(run[view.training] >= 0).any(axis=1)]
    standalone_job_cost = view.least_job_cost(points, alpha, sigma)
    reduced_cost[y[points]] = standalone_job_cost
    compared = np.append(reduced_cost, 0.0)
    cut = LagrangianCut(0.0, np.where(np.isin(np.arange(dec.first_stage.size), y[points]), reduced_cost, 0.0), alpha)
    _charge_job_windows(view, dec.first_stage, cut, sigma, reduced_cost)
    for p, before in zip(points.tolist(), standalone_job_cost.tolist(), strict=True):
        job = data.point_job[p]
        price = view.running_price(np.array([p]), alpha, sigma)[0]
        work = view.job_seconds[job] * data.point_capacity[p] / data.job_work[job]
        exact = least_window_cost(price, work, compared[run[p]], view.window, np.unique(view.window[work > 0]).tolist())
        found, there = reduced_cost[y[p]], np.unique(view.window[work > 0]).tolist()
        for count in range(len(there) + 1):  # what the estimate charges for any windows is no more than what they cost
            for chosen in itertools.combinations(there, count):
                charged, cost = (
                    cut.slope[y[p]] + cut.slope[run[p][list(chosen)]].sum(),
                    least_window_cost(price, work, np.zeros(data.windows), view.window, list(chosen)),
                )
                assert charged <= cost + 1e-6 * max(abs(cost), 1.0)
        assert found <= exact + 1e-6 * max(abs(exact), 1.0)
        if (compared[run[p][run[p] >= 0]] >= 0).all():
            assert found >= before - 1e-6 * max(abs(before), 1.0)
    assert (reduced_cost[run[run >= 0]] == 0).all()


def relaxed(program, data, duals: dict[str, np.ndarray]) -> float:
    """The least of the program with nothing whole where the rows of these blocks are paid for in place of being kept, with no flow above its demand:
    -inf where that has no end."""
    arrays, flow = program.arrays(), program.columns["f"]
    flow_upper, there = data.demand[data.arc_workload, data.arc_origin], flow >= 0
    upper = arrays.upper.copy()
    upper[flow[there]] = np.minimum(upper[flow[there]], flow_upper[there])
    paid, kept = np.zeros(program.row_count), np.ones(program.row_count, dtype=bool)
    for block, (index, row) in program.by_block(np.arange(program.row_count)).items():
        if block in duals:
            low, high = np.isfinite(arrays.row_lower[row]), np.isfinite(arrays.row_upper[row])
            assert (low | high).all()
            paid[row] = (
                np.where(low, 1.0, -1.0) * duals[block][tuple(index.T[: duals[block].ndim])]
            )  # per unit of the row, as in a minimisation
            kept[row] = False
    cost, given = (
        program.functional("cost") - arrays.matrix.T @ paid,
        np.where(paid >= 0, arrays.row_lower, arrays.row_upper),
    )
    highs = new_highs()
    highs.setOptionValue("threads", set_threads())
    highs.passModel(
        highs_lp(
            cost, arrays.matrix.tocsr()[kept], (arrays.row_lower[kept], arrays.row_upper[kept]), (arrays.lower, upper)
        )
    )
    highs.run()
    status = highs.modelStatusToString(highs.getModelStatus())
    if status == "Infeasible":  # then anything is proven
        return np.inf
    assert status in ("Optimal", "Unbounded", "Primal infeasible or unbounded")
    return (
        float(paid[paid != 0] @ given[paid != 0]) + highs.getInfo().objective_function_value
        if status == "Optimal"
        else -np.inf
    )


@settings(max_examples=few_of(120), **SMALL)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_no_more_is_proven_than_the_rows_of_the_whole_program_say_at_the_same_prices(seed, in_phases):
    """Its rows are put together by other code than the bound, and a solver finds what is left of it."""
    rng = np.random.default_rng(seed)
    data = replace((phases.phased if in_phases else problem)(rng, ("cost",)), limits=())
    program = build(data)
    if unserved(data) or unfinished(data) or not program.column_count:
        return
    dec, slots = Reformulation(data, "cost", build, 1, ProgressReporter()), data.slots
    some = lambda count, high: rng.uniform(0.0, high, (count, slots)) * (rng.random((count, slots)) < 0.7)
    shape = data.demand.shape
    duals = Duals(
        some(len(data.option_site), 2.0),
        some(data.sites, 1.0),
        some(data.pools, 2.0),
        some(shape[0] * shape[1], 6.0),
        rng.normal(0.0, 2.0, dec.first_stage.matrix.shape[0]),
    )
    proven = dec.lagrangian_bound(duals)
    limited = np.where(np.isfinite(data.power_limit()[0][:, data.slot_window]), duals.sigma, 0.0)
    paid = {
        "installed": proven.cut.alpha,
        "power": limited,
        "capacity": duals.beta,
        "balance": duals.delta.reshape(shape),
    }
    said = relaxed(program, data, paid)
    assert proven.value <= said + 1e-6 * max(1.0, abs(said))
