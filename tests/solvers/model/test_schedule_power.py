"""Placements at sites with too little power are dropped; a reference that keeps them finds no better plan."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.mip import Options
from solvers.model import schedule
from solvers.model.routing import unserved
from solvers.model.schedule import unfinished
from solvers.search.joint import solve
from tests.solvers.reference import best, near
from tests.solvers.test_bruteforce import problem


@pytest.fixture(scope="module")
def questions():
    """(seed, question) with power so short that some place of a job is left out for it."""
    found = []
    for seed in range(400):
        data = replace(problem(np.random.default_rng(seed), ("cost",)), limits=())
        data = replace(data, site_power_limit_w=data.site_power_limit_w * 0.4)
        training = (data.point_job >= 0) & (schedule._powered(data).min(axis=1) < 1)
        if training.any() and not unserved(data):
            found.append((seed, data))
    return found[:40]


def test_a_job_without_a_feasible_point_has_no_plan(questions):
    left_out = [data for _, data in questions if unfinished(data)]
    assert len(left_out) >= 3
    assert all(best(data) is None for data in left_out)


def test_the_best_plan_is_as_before(questions):
    kept = 0
    for seed, data in questions:
        if unfinished(data):
            continue
        least, found = best(data), solve(data, Options(gap=1e-6, time_limit_s=60, method="direct"))
        assert (least is None) == (found.value is None), seed
        if least is not None:
            kept += 1
            assert near(found.value, least), seed
    assert kept >= 5


def test_half_the_width_all_the_time_is_enough():
    data = next(
        data
        for seed in range(400)
        if len((data := problem(np.random.default_rng(seed), ("cost",))).job_work) and not unfinished(data)
    )
    point = int(np.flatnonzero(schedule.can_finish(data))[0])
    job, site = int(data.point_job[point]), int(data.point_site()[point])
    mask = data.job_window_mask[job]
    work = data.job_work.copy()
    work[job] = (
        0.5 * data.point_capacity[point] * float(data.slot_hours_s[mask].sum())
    )  # at full width it is done in half its time
    power, watts = data.site_power_limit_w.astype(float).copy(), data.point_power_w.copy()
    idle = {"holding_power_w": np.zeros_like(data.holding_power_w), "power_stages": None}
    watts[point] = 100.0
    for limit, there in ((50.1, True), (49.9, False)):
        power[site] = limit
        changed = replace(data, job_work=work, site_power_limit_w=power, point_power_w=watts, **idle)
        assert schedule.can_finish(changed)[point] == there
