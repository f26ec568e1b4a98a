"""Rack positions of a site: an instance solved by hand, its marginal value, its relief, and the bound of the decomposition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from catalog.units import HOUR_S
from solvers.analysis.marginal_values import marginal_values
from solvers.analysis.relief import least_relief, limit_value, with_limits
from solvers.decomposition.coverage import supports
from solvers.interface import Options
from solvers.model.build import build
from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper
from solvers.search.joint import solve

EXACT = Options(gap=0.0)
DECOMPOSED = Options(gap=1e-3, method="decomposed", time_limit_s=60)


def question(positions: float, *, demand: float = 20.0) -> PlanData:
    """One site, three ways to hold a system that serves 2 requests/s: two bought, of which the cheap one takes a whole rack and the dear one
    a quarter of one, and one rented elsewhere, the dearest of all."""
    return PlanData(
        slot_window=np.zeros(1, dtype=int), slot_hours_s=np.array([HOUR_S]), site_power_limit_w=np.array([np.inf]),
        option_site=np.zeros(3, dtype=int), option_group=np.arange(3), option_fabric=np.full(3, -1),
        holding_option=np.arange(3), holding_window=np.full(3, -1), holding_upper=np.full(3, 50.0), holding_power_w=np.zeros(3),
        holding_cost={"cost": np.array([100.0, 130.0, 300.0])}, site_racks=np.array([positions]), holding_racks=np.array([1.0, 0.25, 0.0]),
        point_pool=np.zeros(3, dtype=int), point_job=np.full(3, -1), point_uses=np.column_stack([np.arange(3), np.arange(3)]), point_uses_systems=np.ones(3),
        point_capacity=np.full(3, 2.0), point_power_w=np.zeros(3), point_cost={"cost": np.zeros((3, 1))},
        arc_workload=np.zeros(1, dtype=int), arc_origin=np.zeros(1, dtype=int), arc_site=np.zeros(1, dtype=int), arc_pool=np.zeros(1, dtype=int),
        arc_cost={"cost": np.zeros((1, 1))}, demand=np.full((1, 1, 1), demand),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("positions", "held"),
    [
        (np.inf, [10, 0, 0]),  # ten of the cheap ones
        (10, [10, 0, 0]),
        (4, [2, 8, 0]),  # two racks of one each, and two racks of four
        (2.5, [0, 10, 0]),  # all dense
        (1, [0, 4, 6]),  # four fit, the rest is rented
        (0, [0, 0, 10]),
    ],
)
@pytest.mark.parametrize("options", [EXACT, DECOMPOSED], ids=["whole program", "decomposition"])
def test_the_cheapest_systems_that_the_racks_have_room_for(positions, held, options):
    data = question(positions)
    found = solve(data, options)
    assert found.value == pytest.approx(np.dot(held, data.holding_cost["cost"]))
    assert found.values["n"].round().tolist() == held


def test_positions_are_a_row_for_each_site_and_window():
    data = replace(question(4), slot_window=np.arange(2), slot_hours_s=np.full(2, HOUR_S), demand=np.full((1, 1, 2), 20.0), point_cost={"cost": np.zeros((3, 2))},
                   arc_cost={"cost": np.zeros((1, 2))}, holding_window=np.array([0, 1, -1]))  # fmt: skip
    program = build(data)
    (part,) = program.row_blocks["racks"]
    assert part.index.tolist() == [[0, 0], [0, 1]]
    rows = program.arrays().matrix.tocsr()[part.rows]
    held = program.columns["n"]
    assert rows[[0], :].toarray()[0, held].tolist() == [1.0, 0.0, 0.0]  # each window counts what stands there then
    assert rows[[1], :].toarray()[0, held].tolist() == [0.0, 0.25, 0.0]


def test_a_count_is_bounded_by_the_positions():
    assert holding_upper(question(4)).tolist() == [4.0, 16.0, 50.0]
    assert holding_upper(question(np.inf)).tolist() == [50.0] * 3


def test_one_position_more_is_worth_the_dear_systems_that_it_saves():
    """Another position lets 4/3 systems be of the cheap kind, at 30 each: one more in a whole rack takes the place of a quarter rack."""
    data, found = question(4), solve(question(4), EXACT)
    worth = marginal_values(data, found.values, np.full(3, np.inf), [], EXACT)
    assert worth.rows["racks", 0] == pytest.approx(-40.0)
    step = 3.0  # after three positions counts are whole again
    more = solve(question(4 + step), EXACT)
    assert (more.value - found.value) / step == pytest.approx(-40.0)


@pytest.mark.parametrize("positions", [4.0, 1.0])
def test_the_bound_of_the_decomposition_prices_positions(positions):
    found = solve(question(positions), DECOMPOSED)
    index, duals = found.relaxed_duals["racks"]
    around = [(solve(question(positions + d), EXACT).value - found.value) / d for d in (-1.0, 3.0)]
    assert index[:, 0].tolist() == [0]
    assert around[0] - 1e-3 <= duals.sum() <= around[1] + 1e-3
    assert supports(question(positions))


def test_the_least_relief_of_positions():
    """20 requests/s need ten systems, of which 1.5 racks hold six: 2.5 are the least."""
    data = replace(question(1.5), holding_upper=np.array([50.0, 50.0, 0.0]))
    assert solve(data, EXACT).status == "infeasible"
    assert least_relief(data, [("racks", 0)], EXACT)["racks", 0] == pytest.approx(1.0, rel=1e-2)
    assert solve(with_limits(data, {("racks", 0): 2.5}), EXACT).status == "optimal"
    assert limit_value(data, ("racks", 0)) == 1.5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"holding_racks": None}, "one without the other"),
        ({"holding_racks": np.array([1.0, -1.0, 0.0])}, "holding_racks"),
        ({"site_racks": np.array([1.0, 2.0])}, "site_racks"),
        ({"site_racks": np.array([np.nan])}, "site_racks"),
    ],
)
def test_wrong_positions_are_refused(change, says):
    with pytest.raises(ValueError, match=says):
        replace(question(4), **change)
