"""Points with pools at two sites: systems, weights and power at both, and the line between them, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.interface import Options
from solvers.model.block_data.exchange import ExchangeData
from solvers.model.block_data.lines import LineData
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.search.direct import solve_direct


def problem(limit_w: float = np.inf, usable: bool = True, upper: float = np.inf) -> PlanData:
    """3 requests/s at site 0, of which each takes a system at either site, 2 bytes/s of a line of 4, and 100 W at site 1."""
    cost = lambda *values: {"cost": np.array(values, dtype=float)}
    return PlanData(
        slot_window=np.zeros(1, dtype=np.int64),
        slot_hours_s=np.ones(1),
        site_power_limit_w=np.array([np.inf, limit_w]),
        option_site=np.array([0, 1]),
        option_group=np.array([0, 1]),
        option_fabric=np.array([-1, -1]),
        holding_option=np.array([0, 1]),
        holding_window=np.array([-1, -1]),
        holding_upper=np.array([5.0, 5.0]),
        holding_cost=cost(10.0, 10.0),
        holding_power_w=np.zeros(2),
        point_pool=np.zeros(1, dtype=np.int64),
        point_job=np.full(1, -1),
        point_uses=np.array([[0, 1], [0, 0]]),
        point_uses_systems=np.ones(2),
        point_capacity=np.ones(1),
        point_power_w=np.zeros(1),
        arc_workload=np.zeros(1, dtype=np.int64),
        arc_origin=np.zeros(1, dtype=np.int64),
        arc_site=np.zeros(1, dtype=np.int64),
        arc_pool=np.zeros(1, dtype=np.int64),
        demand=np.array([[[3.0]]]),
        host_cost={"cost": np.array([[5.0, 7.0]])},
        lines=LineData(
            line_capacity=np.array([4.0]),
            line_upper=np.array([upper]),
            line_usable=np.array([[usable]]),
            line_cost=cost(1.0),
            channel_line=np.array([0, 0]),
        ),
        exchange=ExchangeData(
            point=np.array([0]),
            site=np.array([1]),
            power_w=np.array([100.0]),
            uses=np.array([[0, 0], [0, 1]]),
            uses_rate=np.array([2.0, 0.5]),
        ),
    )


def test_systems_weights_and_line_are_paid_for_at_both_sites() -> None:
    """3 systems at 10 at either site, weights at 5 and 7, and 2 units for 6 bytes/s."""
    found = solve_direct(problem(), Options())
    assert len(build(problem()).row_blocks["hosted across"]) == 1
    assert found.status == "optimal" and found.value == pytest.approx(3 * 20 + 5 + 7 + 2)
    assert found.values["unit"].tolist() == [2] and found.values["host"].tolist() == [[1, 1]]


@pytest.mark.parametrize(("limit_w", "served"), [(300.0, True), (299.0, False)])
def test_what_pools_draw_at_the_other_site_counts_there(limit_w: float, served: bool) -> None:
    assert (solve_direct(problem(limit_w), Options()).status == "optimal") is served


def test_without_the_line_nothing_runs() -> None:
    assert solve_direct(problem(usable=False), Options()).status == "infeasible"
    assert solve_direct(problem(upper=1.0), Options()).status == "infeasible"


def test_only_points_that_are_said_to_may_stand_at_two_sites() -> None:
    with pytest.raises(ValueError, match="two sites"):
        replace(problem(), exchange=None)
    with pytest.raises(ValueError, match="exchange: without lines"):
        replace(problem(), lines=None)


def job(limit_w: float = np.inf, upper: float = np.inf, work: float = 0.5) -> PlanData:
    """A job that needs half of one of two slots, on a system at either site, 6 bytes/s of a line of 4 each way, and 100 W at site 1."""
    whole = problem(limit_w, upper=upper)
    assert whole.exchange is not None
    return replace(
        whole,
        slot_window=np.zeros(2, dtype=np.int64),
        slot_hours_s=np.ones(2),
        point_pool=np.full(1, -1),
        point_job=np.zeros(1, dtype=np.int64),
        job_work=np.array([work]),
        job_window_mask=np.ones((1, 2), dtype=bool),
        arc_workload=np.zeros(0, dtype=np.int64),
        arc_origin=np.zeros(0, dtype=np.int64),
        arc_site=np.zeros(0, dtype=np.int64),
        arc_pool=np.zeros(0, dtype=np.int64),
        demand=np.zeros((1, 1, 2)),
        host_cost={},
        exchange=replace(whole.exchange, uses_rate=np.array([6.0, 6.0])),
    )


def test_a_job_reserves_its_rate_however_short_it_is_at_work() -> None:
    """A quarter of the time at 6 bytes/s needs 2 units of 4 all the same, and the systems of both sites."""
    found = solve_direct(job(), Options())
    assert found.status == "optimal" and found.value == pytest.approx(2 * 10 + 2)
    assert len(build(job()).row_blocks["reserved"][0].index) == 2
    assert found.values["unit"].tolist() == [2] and found.values["v"].sum() == pytest.approx(0.5)
    assert solve_direct(job(upper=1.0), Options()).status == "infeasible"


@pytest.mark.parametrize(("limit_w", "work", "done"), [(50.0, 1.0, True), (49.0, 1.0, False), (49.0, 0.9, True)])
def test_a_job_is_as_wide_as_the_power_at_the_other_site(limit_w: float, work: float, done: bool) -> None:
    """With 50 of 100 W it is at work for half of each slot at most."""
    assert (solve_direct(job(limit_w, work=work), Options()).status == "optimal") is done
