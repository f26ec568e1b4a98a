"""The interior-point method: its steps solve the Newton equations, its value is that of the LP, its prices prove it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers.decomposition import root_relaxation as start
from solvers.decomposition.interior_point.blocks import PRICED_ROWS
from solvers.decomposition.interior_point.iterate import dual_residual
from solvers.decomposition.interior_point.method import solve_interior_point
from solvers.decomposition.interior_point.newton import Newton
from solvers.decomposition.interior_point.starting_points import cold_start, warm_start_from
from solvers.decomposition.reformulation import Reformulation
from solvers.decomposition.root_relaxation import build_block_program
from solvers.interface import ProgressReporter
from solvers.model.build import build
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from tests.conftest import few_of
from tests.solvers.reference import SMALL
from tests.solvers.test_bruteforce import problem


def questions(seeds, dear=None):
    """(data, decomposition, the program over everything), where demand may be left at the price `dear` if there is one."""
    for seed in seeds:
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        if not (unserved(data) or unfinished(data)) and build(data).column_count:
            dec = Reformulation(data, "cost", build, 1, ProgressReporter())
            unmet = None if dear is None else np.full(dec.view.demand.shape, dear)
            yield (
                data,
                dec,
                build_block_program(dec, dec.view, np.arange(len(data.option_site)), dec.view.training, unmet=unmet),
            )


def lp_optimum(data) -> float | None:
    program = build(data)
    arrays = program.arrays()
    found = milp(
        program.functional("cost"),
        constraints=LinearConstraint(arrays.matrix, arrays.row_lower, arrays.row_upper),
        bounds=Bounds(arrays.lower, arrays.upper),
    )
    return found.fun if found.status == 0 else None


@settings(max_examples=few_of(40), **SMALL)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from([None, 2.0]))
def test_a_step_satisfies_the_equations_that_it_solves(seed, number, dear):
    """At any inner point: rows make up for what they are short, reduced costs for what they are off, each pair for what it is apart."""
    for _, _, program in questions([seed], dear):
        if program.impossible:
            continue
        rng, at = np.random.default_rng(number), cold_start(program)
        scaled = lambda values, rng=rng: {
            name: part * rng.uniform(0.5, 2.0, part.shape) for name, part in values.items()
        }
        z, w = scaled(at.z), scaled(at.w)
        short = {name: -values for name, values in program.rows(z).items()}
        off = dual_residual(program, replace(at, z=z, w=w))
        apart = {
            name: np.where(which, rng.uniform(-0.5, 0.5, z[name].shape) * z[name] * w[name], 0.0)
            for name, which in program.mask.items()
        }
        change, price, free = Newton(program, z, w).step(short, off, apart)
        rows = program.rows(change, change=True)
        worth = program.worth({name: price[name] for name in PRICED_ROWS} | free)
        size = 1 + max(np.abs(values).max(initial=0.0) for part in (change, price, free) for values in part.values())
        for name, values in rows.items():
            assert np.allclose(values, short[name], atol=1e-6 * size), name
        for name in ("x", "f", "v", "unmet", "m"):
            less = price["upper"] if name == "m" else 0.0
            assert np.allclose(
                np.where(program.mask[name], worth[name] + price[name] - less, 0.0), off[name], atol=1e-6 * size
            ), name
        for name, which in program.mask.items():
            product = np.where(which, z[name] * price[name] + w[name] * change[name], 0.0)
            assert np.allclose(product, apart[name], atol=1e-6 * size), name


def test_value_and_proof_are_those_of_the_whole_linear_program():
    compared = solved = proved = 0
    for data, dec, program in questions(range(36)):
        lower = lp_optimum(data)
        found = solve_interior_point(program, 1e-6, lambda: 1e9)
        if lower is None:
            assert found is None
            continue
        compared, solved = compared + 1, solved + (found is not None)
        if found is not None:
            near = 2e-3 * max(abs(lower), 1.0)  # what is taken where no more digits are to be had
            assert found.value == pytest.approx(lower, abs=near)
            proven = dec.lagrangian_bound(dec.extend_duals(found)).value
            assert proven <= lower + 1e-9 * max(abs(lower), 1.0)
            proved += proven >= lower - near
    assert compared > 12 and solved >= 0.95 * compared and proved >= 0.85 * solved


def elastic_optimum(data, dear: float) -> float | None:
    """The linear program with a column for what nothing carries of each demand in each slot, and what that is a price of at the best."""
    from scipy import sparse

    program = build(data)
    arrays = program.arrays()
    rows = [
        (row, index)
        for part in program.row_blocks.get("balance", ())
        for row, index in zip(range(part.rows.start, part.rows.stop), part.index.tolist())
    ]
    if not rows:
        return None
    unmet = sparse.csc_array(
        (np.ones(len(rows)), ([row for row, _ in rows], np.arange(len(rows)))),
        shape=(arrays.matrix.shape[0], len(rows)),
    )
    more = lambda values, value: np.append(values, np.full(len(rows), value))
    found = milp(more(program.functional("cost"), dear), constraints=LinearConstraint(sparse.hstack([arrays.matrix, unmet]), arrays.row_lower, arrays.row_upper),
                 bounds=Bounds(more(arrays.lower, 0.0), more(arrays.upper, np.inf)))  # fmt: skip
    return found.fun if found.status == 0 else None


@pytest.mark.parametrize("dear", [0.05, 1.0, 100.0])
def test_with_demand_that_may_be_left_at_a_price_the_value_is_that_of_such_a_program_and_its_prices_prove_no_more(dear):
    compared, unserved_cases = 0, 0
    for data, dec, program in questions(range(30), dear):
        lower, found = elastic_optimum(data, dear), solve_interior_point(program, 1e-6, lambda: 1e9)
        if lower is None or found is None:
            continue
        compared, unserved_cases = compared + 1, unserved_cases + (found.unserved_share > 0.01)
        assert found.value == pytest.approx(lower, abs=2e-3 * max(abs(lower), 1.0))
        strict = lp_optimum(data)
        if strict is not None:
            assert found.value <= strict + 2e-3 * max(abs(strict), 1.0)
            assert dec.lagrangian_bound(dec.extend_duals(found)).value <= strict + 1e-9 * max(abs(strict), 1.0)
    assert compared > 8 and (unserved_cases > 2 or dear > 1.0)


def test_a_job_that_is_sent_elsewhere_starts_on_its_way():
    """Its progress is made up for at once, where it took most steps from nothing; the answer is the same."""
    compared = 0
    for data, dec, program in questions(range(120)):
        y = dec.first_stage.columns["y"]
        for job in np.unique(data.point_job[program.placements]):
            mine = program.placements[data.point_job[program.placements] == job]
            at = []
            for p in mine[:2] if len(mine) > 1 else ():
                upper, lower = dec.first_stage.upper.copy(), np.zeros(dec.first_stage.size)
                upper[y[mine]] = 0.0
                upper[y[p]] = lower[y[p]] = 1.0
                sent = build_block_program(
                    dec,
                    dec.view,
                    np.arange(len(data.option_site)),
                    np.append(np.setdiff1d(dec.view.training, mine), p),
                    lower,
                    upper,
                )
                at.append((sent, solve_interior_point(sent, 1e-5, lambda: 1e9)))
            if len(at) < 2 or any(found is None for _, found in at):
                continue
            (_, first), (sent, second) = at
            start = warm_start_from(first.blocks, first.warm, sent, np.arange(dec.view.slots))
            here = np.flatnonzero(sent.runs & (data.point_job[sent.placements] == job))
            if (sent.done[here] >= 0).any() or sent.rate[here].sum() < 1:
                continue
            short = np.abs(sent.rows(start.z)["progress"][here])
            assert (short <= 0.11).all() and (start.free["progress"][here] >= 0).all()
            again = solve_interior_point(sent, 1e-5, lambda: 1e9, start)
            assert again is not None and again.value == pytest.approx(
                second.value, abs=2e-3 * max(abs(second.value), 1.0)
            )
            compared += 1
    assert compared > 5


def test_a_job_that_is_decided_for_a_place_where_it_ran_in_part_starts_with_the_rest_on_its_way():
    """From its part, with prices that were those of a part, looks ran out of iterations and seemed to say that there was no room."""
    compared = 0
    for data, dec, program in questions(range(200)):
        y, found = dec.first_stage.columns["y"], solve_interior_point(program, 1e-5, lambda: 1e9)
        for place in () if found is None else program.placements:
            here = int(np.flatnonzero(program.placements == place)[0])
            part = float((program.rate[here] * found.warm.z["v"][here]).sum())
            if not 0.02 < part < 0.85 or program.done[here] < 0:
                continue
            upper, lower = dec.first_stage.upper.copy(), np.zeros(dec.first_stage.size)
            upper[y[program.placements[data.point_job[program.placements] == data.point_job[place]]]] = 0.0
            upper[y[place]] = lower[y[place]] = 1.0
            decided = build_block_program(
                dec, dec.view, np.arange(len(data.option_site)), dec.view.training, lower, upper
            )
            at = int(np.flatnonzero(decided.placements == place)[0])
            if decided.impossible or decided.done[at] >= 0 or decided.rate[at].sum() < 1.2:
                continue
            start = warm_start_from(found.blocks, found.warm, decided, np.arange(dec.view.slots))
            assert abs(decided.rows(start.z)["progress"][at]) <= 1e-6
            may = decided.may_run[at]
            assert (start.z["v"][at, may] > 0).all() and (start.z["running"][at, may] > 0).all()
            standalone_job_cost, again = (
                solve_interior_point(decided, 1e-5, lambda: 1e9),
                solve_interior_point(decided, 1e-5, lambda: 1e9, start),
            )
            assert (standalone_job_cost is None) == (again is None)
            assert standalone_job_cost is None or again.value == pytest.approx(
                standalone_job_cost.value, abs=2e-3 * max(abs(standalone_job_cost.value), 1.0)
            )
            compared += 1
    assert compared > 5


def test_the_way_to_an_answer_does_not_change_it():
    """From anywhere, from itself, and from merged slots."""
    compared = 0
    for data, dec, program in questions(range(24)):
        found = solve_interior_point(program, 1e-5, lambda: 1e9)
        if found is None:
            continue
        group = np.unique(dec.view.window, return_inverse=True)[1]
        merged = solve_interior_point(
            build_block_program(dec, dec.view.merged(group), np.arange(len(data.option_site)), dec.view.training),
            1e-3,
            lambda: 1e9,
        )
        starts = [(program, found.warm, np.arange(dec.view.slots))] + (
            [(merged.blocks, merged.warm, group)] if merged is not None else []
        )
        for old, at, onto in starts:
            again = solve_interior_point(program, 1e-5, lambda: 1e9, warm_start_from(old, at, program, onto))
            assert again is not None and again.value == pytest.approx(
                found.value, abs=2e-3 * max(abs(found.value), 1.0)
            )
        compared += 1
    assert compared > 7


def test_nothing_is_found_below_a_cutoff_that_prices_rule_out():
    compared = 0
    for _, _, program in questions(range(12)):
        found = solve_interior_point(program, 1e-4, lambda: 1e9)
        if found is not None and found.value > 0.1:
            assert solve_interior_point(program, 1e-4, lambda: 1e9, None, 0.5 * found.value) is None
            compared += 1
    assert compared > 2


def test_a_job_that_may_not_run_where_it_is_to_be_done_has_no_answer():
    seen = 0
    for data, dec, program in questions(range(60)):
        run = dec.first_stage.columns["run"]
        for p in program.placements[(run[program.placements] >= 0).any(axis=1)]:
            lower, upper = np.zeros(dec.first_stage.size), dec.first_stage.upper.copy()
            lower[dec.first_stage.columns["y"][p]] = 1.0
            upper[run[p][run[p] >= 0]] = 0.0
            assert (
                solve_interior_point(
                    build_block_program(
                        dec, dec.view, np.arange(len(data.option_site)), dec.view.training, lower, upper
                    ),
                    1e-4,
                    lambda: 1e9,
                )
                is None
            )
            seen += 1
    assert seen > 3


def test_places_that_are_offered_are_the_cheapest_of_each_site(monkeypatch):
    """At random prices and open sites, against a count by hand."""
    few = replace(start.ROOT_SETTINGS, site_placements=1, job_placements=2)
    monkeypatch.setattr(start, "ROOT_SETTINGS", few)
    compared = 0
    for data, dec, _ in questions(range(60)):
        rng, points = np.random.default_rng(compared), dec.view.training
        pricing_reduced_cost, opened = rng.uniform(-1.0, 1.0, dec.first_stage.size), rng.random(data.sites) < 0.8
        jobs = np.unique(data.point_job[points])[:1]
        expected = []
        for job in jobs:
            best = {}
            for p in points[(data.point_job[points] == job) & opened[dec.view.site[points]]]:
                r, cost = dec.view.site[p], pricing_reduced_cost[dec.first_stage.columns["y"][p]]
                best[r] = min(best.get(r, (np.inf, -1)), (cost, p))
            expected += [p for _, p in sorted(best.values())[:2]]
        assert start.cheapest_open_placements(dec, pricing_reduced_cost, jobs, opened).tolist() == sorted(expected)
        compared += len(expected) > 0
    assert compared > 5
