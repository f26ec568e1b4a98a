"""The cost of pre-emption and the limit on storage against a program written a second time, in which every course of a job's width
(rising or falling in each slot) is tried and what it loses is exact."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from solvers.decomposition.coverage import supports
from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.search.joint import solve
from tests.conftest import few_of
from tests.solvers.reference import SMALL, TIMES, TOLERANCE

EXACT = Options(gap=0.0)


def problems(least_cost=0):
    return st.integers(0, 2**32 - 1).map(lambda seed: problem(np.random.default_rng(seed), least_cost))


def problem(rng, least_cost):
    """One workload and one job with one or two points on the systems of one or two sites, in rings of slots."""
    table = lambda *shape, low=0, high=5: rng.integers(low, high, shape, endpoint=True).astype(float)
    T, R = int(rng.integers(2, 4, endpoint=True)), int(rng.integers(1, 2, endpoint=True))
    jobs = int(rng.integers(1, 2, endpoint=True))
    P = R + jobs
    fleet_options = np.array([*range(R), *rng.integers(0, R, jobs)])
    following, cut = np.arange(1, T + 1), int(rng.integers(1, T, endpoint=True))
    following[cut - 1], following[T - 1] = (0, cut) if cut < T else (0, 0)
    window = np.zeros(T, dtype=int)
    if cut < T and rng.random() < 0.5:
        window[cut:] = 1
    times = table(T, low=1, high=3)
    mask = np.ones((1, T), dtype=bool)
    if rng.random() < 0.3:
        mask[0, rng.integers(0, T)] = False
    return PlanData(
        slot_window=window, slot_hours_s=times * 2, site_power_limit_w=np.full(R, np.inf),
        option_site=np.arange(R), option_group=np.arange(R), option_fabric=np.full(R, -1),
        holding_option=np.arange(R), holding_window=np.full(R, -1), holding_upper=table(R, low=1, high=3),
        holding_cost={"cost": table(R, low=2, high=9)}, holding_power_w=np.zeros(R),
        point_pool=np.array([*range(R), *[-1] * jobs]), point_job=np.array([*[-1] * R, *[0] * jobs]),
        point_uses=np.column_stack([np.arange(P), fleet_options]), point_uses_systems=np.array([*np.full(R, 0.5), *table(jobs, low=1, high=2)]),
        point_capacity=table(P, low=2, high=4), point_power_w=np.zeros(P), point_cost={"cost": table(P, T, low=least_cost, high=4)},
        arc_workload=np.zeros(R, dtype=int), arc_origin=np.zeros(R, dtype=int), arc_site=np.arange(R), arc_pool=np.arange(R),
        arc_cost={"cost": np.zeros((R, T))}, demand=table(1, 1, T, high=6), job_work=table(1, low=1, high=12), job_window_mask=mask,
        point_restart_s=np.array([*[0.0] * R, *table(jobs, high=3) / 4]), order=Chronology(next=following, step_s=np.full(T, 2.0)),
        point_storage=np.array([*[0.0] * R, *table(jobs, high=3)]), site_storage=np.where(rng.random(R) < 0.4, table(R, low=2, high=6), np.inf),
    )  # fmt: skip


def lasting(data, p):
    """Each slot in which the job may run with those whose returning width is at work there still, by the time that passes between them."""
    before = np.argsort(data.order.next)
    for t in np.flatnonzero(data.job_window_mask[0]):
        past, at, passed = [], t, 0.0
        while passed < data.point_least_run_s[p]:
            past += [at] if data.job_window_mask[0, at] else []
            passed, at = passed + data.order.step_s[at], before[at]
        yield t, past


def with_least_run(data, slots):
    least_s = np.where(data.point_job >= 0, slots * data.order.step_s[0], 0.0)
    return replace(data, point_least_run_s=least_s)


def best(data):
    """The least cost, every course of every width tried; infinite where there is no plan."""
    T, U = len(data.slot_window), len(data.holding_option)
    serving, training = np.flatnonzero(data.point_pool >= 0), np.flatnonzero(data.point_job >= 0)
    before = [int(np.flatnonzero(data.order.next == t)[0]) for t in range(T)]
    option = dict(zip(data.point_uses[:, 0].tolist(), data.point_uses[:, 1].tolist(), strict=True))
    found = np.inf
    for p in training:
        names = (
            [("n", u) for u in range(U)]
            + [("x", q, t) for q in serving for t in range(T)]
            + [("v", t) for t in range(T)]
        )
        names += [("ran", w) for w in sorted(set(data.slot_window.tolist()))]
        at = {name: i for i, name in enumerate(names)}
        upper = np.array(
            [data.holding_upper[name[1]] if name[0] == "n" else np.inf if name[0] == "x" else 1.0 for name in names]
        )
        for t in range(T):
            upper[at["v", t]] = float(data.job_window_mask[0, t])
        for q in serving:
            if not data.point_capacity[q]:
                upper[[at["x", q, t] for t in range(T)]] = 0.0
        cost = np.array([data.holding_cost["cost"][n[1]] if n[0] == "n" else data.point_cost["cost"][n[1], n[2]] if n[0] == "x"
                         else data.point_cost["cost"][p, n[1]] if n[0] == "v" else 0.0 for n in names])  # fmt: skip
        rows, low, high = [], [], []

        def row(entries, least, most, at=at, rows=rows, low=low, high=high):
            line = np.zeros(len(at))
            for name, value in entries:
                line[at[name]] += value
            rows.append(line)
            low.append(least)
            high.append(most)

        for t in range(T):
            row([(("x", q, t), data.point_capacity[q]) for q in serving], data.demand[0, 0, t], data.demand[0, 0, t])
            row([(("v", t), 1.0), (("ran", data.slot_window[t]), -1.0)], -np.inf, 0.0)
            for k in range(U):
                mine = [(("x", q, t), data.point_uses_systems[q]) for q in serving if option[q] == k]
                row(
                    [*mine, *([(("v", t), data.point_uses_systems[p])] if option[p] == k else []), (("n", k), -1.0)],
                    -np.inf,
                    0.0,
                )
                row([(("v", t), data.point_storage[p])] if option[p] == k else [], -np.inf, data.site_storage[k])
        for w in set(data.slot_window.tolist()):
            row([(("ran", w), data.point_uses_systems[p]), (("n", option[p]), -1.0)], -np.inf, 0.0)
        for course in itertools.product((1.0, 0.0), repeat=T):
            count = len(rows)
            done = []
            for t, rising in enumerate(course):
                change = [(("v", t), 1.0), (("v", before[t]), -1.0)]
                row(change, 0.0 if rising else -np.inf, np.inf if rising else 0.0)
                times = data.slot_hours_s[t] / data.order.step_s[t]
                done += [(("v", t), data.slot_hours_s[t])] + [
                    (name, -sign * data.point_restart_s[p] * times * rising) for name, sign in change
                ]
            row([(name, value * data.point_capacity[p]) for name, value in done], data.job_work[0], data.job_work[0])
            for t, past in lasting(data, p) if data.point_least_run_s is not None else ():
                width = [
                    (name, sign * course[s]) for s in past for name, sign in ((("v", s), 1.0), (("v", before[s]), -1.0))
                ]
                row([*width, (("v", t), -1.0)], -np.inf, 0.0)
            answer = milp(cost, constraints=LinearConstraint(np.array(rows), low, high), bounds=Bounds(0.0, upper),
                          integrality=np.array([name[0] in ("n", "ran") for name in names], dtype=int))  # fmt: skip
            if answer.status == 0:
                found = min(found, answer.fun)
            del rows[count:], low[count:], high[count:]
    return found


@pytest.mark.parametrize("least_cost", [0, -3])
@settings(max_examples=few_of(30) * TIMES, **SMALL)
@given(data=st.data())
def test_equals_every_course_tried(least_cost, data):
    asked = data.draw(problems(least_cost))
    expected, found = best(asked), solve(asked, EXACT)
    if np.isinf(expected):
        assert found.status == "infeasible"
    else:
        assert found.value == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)
        rise = found.values["v"] - found.values["v"][:, np.argsort(asked.order.next)]
        lost = np.where(
            found.values["y"] > 0.5,
            asked.point_restart_s * (np.maximum(rise, 0.0) @ (asked.slot_hours_s / asked.order.step_s)),
            0.0,
        )
        done = asked.point_capacity * (found.values["v"] @ asked.slot_hours_s - lost)
        assert done[asked.point_job >= 0].sum() >= asked.job_work[0] * (1 - 1e-6)


@pytest.mark.parametrize("slots", [1, 2, 3])
@settings(max_examples=few_of(25) * TIMES, **SMALL)
@given(data=problems())
def test_least_runs_equal_every_course_tried(slots, data):
    asked = with_least_run(data, slots)
    expected, found = best(asked), solve(asked, EXACT)
    if np.isinf(expected):
        assert found.status == "infeasible"
        return
    assert found.value == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)
    [p] = np.flatnonzero(found.values["y"] > 0.5)
    width = found.values["v"][p]
    back = np.maximum(width - width[np.argsort(asked.order.next)], 0.0)
    for t, past in lasting(asked, p):
        assert sum(back[s] for s in past) <= width[t] + 1e-6


def test_width_that_returned_stays_by_hand():
    """Six hours in a ring, three of them cheap and apart: one run of three hours in a row beats none of them alone."""
    prices = np.array([1.0, 9.0, 1.0, 9.0, 1.0, 9.0])
    free = problem(np.random.default_rng(0), 0)
    data = replace(
        free, slot_window=np.zeros(6, dtype=int), slot_hours_s=np.full(6, 2.0), order=Chronology(next=np.roll(np.arange(6), -1), step_s=np.full(6, 2.0)),
        site_power_limit_w=np.array([np.inf]), option_site=np.array([0]), option_group=np.array([0]), option_fabric=np.array([-1]),
        holding_option=np.array([0]), holding_window=np.array([-1]), holding_upper=np.ones(1), holding_cost={"cost": np.zeros(1)}, holding_power_w=np.zeros(1),
        point_pool=np.array([-1]), point_job=np.array([0]), point_uses=np.array([[0, 0]]), point_uses_systems=np.ones(1), point_capacity=np.array([0.5]),
        point_power_w=np.zeros(1), point_cost={"cost": prices[None, :]}, arc_workload=np.zeros(0, dtype=int), arc_origin=np.zeros(0, dtype=int),
        arc_site=np.zeros(0, dtype=int), arc_pool=np.zeros(0, dtype=int), arc_cost={"cost": np.zeros((0, 6))}, demand=np.zeros((1, 1, 6)),
        job_work=np.array([3.0]), job_window_mask=np.ones((1, 6), dtype=bool), point_restart_s=np.array([0.1]), point_storage=np.zeros(1), site_storage=np.array([np.inf]),
    )  # fmt: skip
    short, long = solve(data, EXACT), solve(with_least_run(data, 3), EXACT)
    # three runs of one cheap hour each, of which each loses 0.1 of 2 s; then a run of at least three hours, dear ones included
    assert short.value < 3 * 1.0 + 9.0 and long.value == pytest.approx(best(with_least_run(data, 3)), rel=1e-6)
    assert long.value > short.value + 1.0
    assert "lasts" in build(with_least_run(data, 3)).row_blocks and "lasts" not in build(data).row_blocks


RELAXED = {
    "restart": lambda d: replace(d, point_restart_s=d.point_restart_s / 2),
    "storage": lambda d: replace(d, site_storage=d.site_storage + 1),
    "no storage": lambda d: replace(d, site_storage=None, point_storage=None),
    "no restart": lambda d: replace(d, point_restart_s=None, order=None),
}


@pytest.mark.parametrize("limit", RELAXED)
@settings(max_examples=few_of(15) * TIMES, **SMALL)
@given(data=problems())
def test_relaxing_never_costs_more(data, limit):
    before = solve(data, EXACT)
    if before.status == "optimal":
        assert solve(RELAXED[limit](data), EXACT).value <= before.value + TOLERANCE * max(1.0, abs(before.value))


@settings(max_examples=few_of(15) * TIMES, **SMALL)
@given(data=problems())
def test_a_restart_of_no_time_is_none(data):
    free, none = (
        replace(data, point_restart_s=0.0 * data.point_restart_s),
        replace(data, point_restart_s=None, order=None),
    )
    one, other = solve(free, EXACT), solve(none, EXACT)
    assert (one.status, one.value is None) == (other.status, other.value is None)
    if one.value is not None:
        assert one.value == pytest.approx(other.value, rel=TOLERANCE, abs=TOLERANCE)


@settings(max_examples=5, **SMALL)
@given(data=problems())
def test_the_decomposition_does_not_cover_preemption(data):
    for with_one in (
        replace(data, site_storage=None, point_storage=None),
        replace(data, point_restart_s=None, order=None),
    ):
        assert not supports(with_one)
    assert solve(data, EXACT).value == solve(data, replace(EXACT, method="decomposed")).value
