"""Rows of every block of the program, coefficient by coefficient, from a few stated figures and the formulas in the docstrings."""

from __future__ import annotations

import numpy as np
import pytest

from solvers.model.block_data.choice import ChoiceData
from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.block_data.lines import SOURCE, LineData
from solvers.model.block_data.parts import PartLimits
from solvers.model.block_data.porting import PortData
from solvers.model.block_data.scenarios import Operation, Risk, Scenario, ScenarioData
from solvers.model.block_data.spread import SpreadData
from solvers.model.build import build
from solvers.model.data import LeastFleet
from tests.solvers.model.test_blocks import real, serving, training, two_options, whole

INF = np.inf
YES = np.ones(1, dtype=bool)
OPENING = {"cost": real(7)}  # a site that costs something to open
RING = Chronology(next=whole(1, 2, 0), step_s=real(10, 20, 40))


class Rows:
    """Rows of a program by block and index: ({column: coefficient}, lower side, upper side)."""

    def __init__(self, data):
        self.program = build(data)
        self.arrays = self.program.arrays()
        self.names = {}
        for block, index in self.program.columns.items():
            for at in np.ndindex(index.shape):
                self.names.setdefault(int(index[at]), f"{block}[{','.join(map(str, at))}]")

    def of(self, block, *index):
        """Return the row of an index; the block has one."""
        (row,) = self.all_of(block, *index)
        return row

    def all_of(self, block, *index):
        found = []
        for part in self.program.row_blocks[block]:
            for number, at in zip(range(part.rows.start, part.rows.stop), part.index.tolist(), strict=True):
                if tuple(at) == index:
                    row = self.arrays.matrix[[number], :].tocoo()
                    entries = zip(row.coords[1].tolist(), row.data.tolist(), strict=True)
                    sides = float(self.arrays.row_lower[number]), float(self.arrays.row_upper[number])
                    found.append(({self.names[column]: pytest.approx(value) for column, value in entries}, *sides))
        return found


def three_slots(**other):
    """Demands of 12, 6 and 3 requests/s in slots of 10, 20 and 40 s that form a ring and occur ten times each."""
    return serving(
        **dict(
            slot_window=whole(0, 0, 0), slot_hours_s=real(100, 200, 400), demand=real([[12, 6, 3]]), order=RING,
            point_cost={"cost": real([2, 2, 2])}, arc_cost={"cost": real([0, 0, 0])},
        )
        | other
    )  # fmt: skip


def two_sites(**other):
    """12 requests/s that either of two sites may serve."""
    return two_options(
        **dict(
            site_power_limit_w=real(INF, INF), option_site=whole(0, 1), option_group=whole(0, 1), point_pool=whole(0, 1),
            arc_workload=whole(0, 0), arc_origin=whole(0, 0), arc_site=whole(0, 1), arc_pool=whole(0, 1), arc_cost={"cost": real([0], [0])},
        )
        | other
    )  # fmt: skip


def test_systems_are_held_at_an_open_site_with_supply_power_and_racks():
    rows = Rows(
        serving(
            site_fixed=OPENING, supply_limit=real(4), supply_member=whole([0, 0]), site_power_limit_w=real(6000),
            site_racks=real(3), holding_racks=real(0.5),
        )
    )  # fmt: skip
    assert rows.of("supply", 0, 0) == ({"n[0]": 1}, -INF, 4)
    assert rows.of("opening", 0) == ({"n[0]": 1, "open[0]": -4}, -INF, 0)  # no more than the supply
    assert rows.of("racks", 0, 0) == ({"n[0]": 0.5}, -INF, 3)
    assert rows.of("installed", 0, 0) == ({"n[0]": -1, "x[0,0]": 1}, -INF, 0)
    assert rows.of("power", 0, 0, 0) == ({"n[0]": 1000, "x[0,0]": 500, "open[0]": -6000}, -INF, 0)


def test_demand_goes_to_pools_of_hosts_that_weights_reach():
    rows = Rows(
        serving(
            site_fixed=OPENING, host_cost={"cost": real([3])}, edge_workload=whole(0, 0), edge_cost={"cost": real(1, 1)},
            tree_path=whole([0, 0, 1]),
        )
    )  # fmt: skip
    assert rows.of("balance", 0, 0, 0) == ({"f[0,0]": 1}, 12, 12)
    assert rows.of("capacity", 0, 0) == ({"f[0,0]": 1, "x[0,0]": -5}, -INF, 0)
    assert rows.of("hosted", 0, 0) == ({"f[0,0]": 1, "host[0,0]": -12}, -INF, 0)
    assert rows.of("housed", 0, 0) == ({"host[0,0]": 1, "open[0]": -1}, -INF, 0)
    assert rows.of("tree", 0, 0, 1) == ({"host[0,0]": 1, "edge[1]": -1}, -INF, 0)


def test_a_job_of_an_hour_runs_at_one_point_at_full_width():
    rows = Rows(training(windows=(0, 1), site_fixed=OPENING, point_storage=real(8), site_storage=real(12)))
    assert rows.of("assigned", 0) == ({"y[0]": 1}, 1, 1)
    assert rows.of("progress", 0) == ({"v[0,0]": 3600, "v[0,1]": 3600, "y[0]": -3600}, 0, 0)
    assert rows.of("running", 0, 1) == ({"v[0,1]": 1, "run[0,1]": -1}, -INF, 0)
    assert rows.of("window", 0, 1) == ({"run[0,1]": 1, "y[0]": -1}, -INF, 0)
    assert rows.of("width", 0, 0, 1) == ({"run[0,1]": 2, "n[0]": -1}, -INF, 0)
    assert rows.of("held width", 0, 0) == ({"y[0]": 2, "n[0]": -1}, -INF, 0)
    assert rows.of("housed job", 0) == ({"y[0]": 1, "open[0]": -1}, -INF, 0)
    assert rows.of("installed", 0, 1) == ({"v[0,1]": 2, "n[0]": -1}, -INF, 0)
    assert rows.of("storage", 0, 1) == ({"v[0,1]": 8}, -INF, 12)


def test_a_job_loses_its_restart_each_time_its_width_returns():
    """Slots of 10, 20 and 40 s that stand for an hour each: they occur 360, 180 and 90 times. Running pays, so that `back` is needed."""
    rows = Rows(
        training(
            slots=3, windows=(0, 0, 0), point_restart_s=real(4), order=RING, point_cost={"cost": real([-1, -1, -1])}
        )
    )
    lost = {"rise[0,0]": -4 * 360, "rise[0,1]": -4 * 180, "rise[0,2]": -4 * 90}
    worked = {"v[0,0]": 3600, "v[0,1]": 3600, "v[0,2]": 3600, "y[0]": -3600}
    assert rows.of("progress", 0) == (worked | lost, 0, 0)
    assert rows.of("resumed", 0, 1) == ({"v[0,1]": 1, "v[0,0]": -1, "rise[0,1]": -1}, -INF, 0)
    assert rows.all_of("begins", 0, 0) == [
        ({"rise[0,0]": 1, "back[0,0]": -1}, -INF, 0),
        ({"rise[0,0]": 1, "v[0,0]": -1, "v[0,2]": 1, "back[0,0]": 1}, -INF, 1),
    ]


def test_requests_wait_one_slot_at_most():
    rows = Rows(three_slots(wait_slots=whole(1)))
    waited = {"f[0,1]": 20, "waiting[0,0,1]": 1, "waiting[0,0,0]": -1}
    assert rows.of("balance", 0, 0, 1) == (waited, 20 * 6, 20 * 6)
    assert rows.of("patience", 0, 0, 2) == ({"waiting[0,0,2]": 1}, -INF, 40 * 3)


def test_a_meter_balances_grid_contract_and_battery():
    slots = real([1, 1, 1])
    meters = MeterData(
        meter_site=whole(0), grid_upper_w=real(5000), grid_cost={"cost": slots},
        peak_meter=whole(0), peak_slot=np.array([[True, False, True]]), peak_cost={"cost": real(2)},
        contract_meter=whole(0), contract_least_w=real(0), contract_upper_w=real(900), contract_share=real([0.5, 0, 1]),
        contract_cost={"cost": real(1)}, taken_cost={"cost": slots},
        battery_meter=whole(0), battery_least_j=real(0), battery_upper_j=real(1e4), battery_least_w=real(0), battery_upper_w=real(1e3),
        battery_efficiency=real(0.8), battery_energy_cost={"cost": real(1)}, battery_power_cost={"cost": real(1)},
    )  # fmt: skip
    rows = Rows(three_slots(meters=meters))
    drawn = {"n[0]": 1000, "x[0,0]": 500, "charge[0,0]": 1}
    supplied = {"grid[0,0]": -1, "taken[0,0]": -1, "discharge[0,0]": -1}
    assert rows.of("metered", 0, 0) == (drawn | supplied, 0, 0)
    assert rows.of("capacity", 0, 0) == ({"f[0,0]": 1, "x[0,0]": -5}, 0, 0)  # nothing idles at a meter
    assert rows.of("connection", 0, 1) == ({"grid[0,1]": 1}, -INF, 5000)
    assert rows.of("peak", 0, 2) == ({"grid[0,2]": 1, "peak[0]": -1}, -INF, 0)
    assert rows.of("produced", 0, 0) == ({"taken[0,0]": 1, "contract[0]": -0.5}, -INF, 0)
    assert rows.of("modules", 0, 1) == ({"charge[0,1]": 1, "discharge[0,1]": 1, "power[0]": -1}, -INF, 0)
    assert rows.of("storable", 0, 1) == ({"stored[0,1]": 1, "energy[0]": -1}, -INF, 0)
    moved = {"charge[0,1]": -20 * 0.8, "discharge[0,1]": 20 / 0.8}
    assert rows.of("stored", 0, 1) == ({"stored[0,2]": 1, "stored[0,1]": -1} | moved, 0, 0)


def test_whole_replicas_of_two_workers_load_for_five_seconds_and_keep_a_spare():
    rows = Rows(three_slots(point_whole=YES, point_load_s=real(5), use_workers=whole(2), use_spares=whole(1)))
    at_work = {"x[0,1]": 2, "loading[0,1]": 5 / 20, "deployments[0,1]": 1, "residents[0,1]": -1}
    assert rows.of("resident", 0, 1) == (at_work, -INF, 0)
    assert rows.of("loading", 0, 1) == ({"residents[0,1]": 1, "residents[0,0]": -1, "loading[0,1]": -1}, -INF, 0)
    assert rows.of("one replica", 0, 1) == ({"deployments[0,1]": 1, "residents[0,1]": -1 / 3}, -INF, 0)
    assert rows.of("deployed", 0, 1) == ({"x[0,1]": 1, "deployments[0,1]": -6 / 5}, -INF, 0)
    assert rows.of("first one", 0, 1) == ({"f[0,1]": 1, "deployments[0,1]": -6}, -INF, 0)
    assert rows.of("installed", 0, 1) == ({"residents[0,1]": 1 / 2, "n[0]": -1}, -INF, 0)


def test_a_job_that_is_present_has_its_width_beside_all_residents():
    rows = Rows(
        serving(
            point_pool=whole(0, -1), point_job=whole(-1, 0), point_uses=whole([0, 0], [1, 0]), point_uses_systems=real(1, 2),
            point_capacity=real(5, 1), point_power_w=real(0, 0), point_cost={"cost": real([2], [1])}, job_work=real(1800),
            job_window_mask=np.ones((1, 1), dtype=bool), point_whole=np.array([True, False]),
        )
    )  # fmt: skip
    assert rows.of("present", 1, 0) == ({"v[1,0]": 1, "present[1,0]": -1}, -INF, 0)
    assert rows.of("beside", 0, 0, 0) == ({"residents[0,0]": 1, "present[1,0]": 2, "n[0]": -1}, -INF, 0)


def test_systems_of_a_kind_are_few_kinds_on_one_design_in_orders_of_two():
    parts = PartLimits(
        counted=np.ones(2, dtype=bool), most_sites=1, most_kinds=1, least_systems=3, order=whole(0, -1), order_least=whole(2)
    )  # fmt: skip
    rows = Rows(two_options(option_fabric=whole(0, 1), parts=parts))
    assert rows.of("kept", 1, 0) == ({"n[1]": 1, "kept[0,0]": -9}, -INF, 0)
    assert rows.of("in use", 0, 0) == ({"kept[0,0]": 1, "occupied[0]": -1}, -INF, 0)
    assert rows.of("sites", 0) == ({"occupied[0]": 1}, -INF, 1)
    assert rows.of("kinds", 0, 0) == ({"kept[0,0]": 1}, -INF, 1)
    assert rows.of("enough", 0, 0) == ({"kept[0,0]": 3, "n[0]": -1, "n[1]": -1}, -INF, 0)
    assert rows.of("placed", 0) == ({"n[0]": 1, "placed[0]": -9}, -INF, 0)
    assert rows.of("order", 0) == ({"placed[0]": 2, "n[0]": -1}, -INF, 0)
    assert rows.of("one design", 0) == ({"z[0,0]": 1, "z[0,1]": 1}, -INF, 1)
    assert rows.of("standing", 1) == ({"n[1]": 1, "z[0,1]": -9}, -INF, 0)


def test_two_zones_serve_three_quarters_at_most_and_either_may_fail():
    spread = SpreadData(
        site_zone=whole(0, 1), largest_share=real(0.75), zones=whole(2), least_share=real(0.25), survives=YES, tried_slots=whole(0)
    )  # fmt: skip
    rows = Rows(two_sites(host_cost={"cost": real([3, 3])}, spread=spread))
    assert rows.of("zones", 0) == ({"c[0,0]": 1, "c[0,1]": 1}, 2, INF)
    assert rows.of("share", 0, 1, 0) == ({"f[1,0]": 1}, -INF, 9)
    assert rows.of("counting", 0, 1, 0) == ({"f[1,0]": 1, "c[0,1]": -3}, 0, INF)
    assert rows.of("share hosted", 0, 1, 0) == ({"f[1,0]": 1, "host[0,1]": -9}, -INF, 0)
    assert rows.of("hosts", 0) == ({"host[0,0]": 1, "host[0,1]": 1}, 2, INF)  # 1 / 0.75, rounded up
    assert rows.of("survived balance", 0, 0, 0, 0) == ({"zone 0 g[1,0]": 1}, 12, 12)
    assert rows.of("survived capacity", 0, 1, 0) == ({"zone 0 g[1,0]": 1, "zone 0 h[1,0]": -5}, -INF, 0)
    assert rows.of("survived hosted", 0, 1, 0) == ({"zone 0 g[1,0]": 1, "host[0,1]": -12}, -INF, 0)
    assert rows.of("survived installed", 0, 1, 0) == ({"zone 0 h[1,0]": 1, "n[1]": -1}, -INF, 0)


def test_a_port_is_paid_for_before_anything_runs():
    ports = PortData(member=whole([0, 0]), cost={"cost": real(5)}, groups=1)
    assert Rows(two_sites(ports=ports)).of("ported", 0, 0, 0) == ({"x[0,0]": 1, "port[0]": -12 / 5}, -INF, 0)
    assert Rows(training(ports=ports)).of("ported job", 0) == ({"y[0]": 1, "port[0]": -1}, -INF, 0)


def test_one_architecture_serves_or_the_mean_score_is_kept():
    def chosen_from(one, least):
        both = ChoiceData(
            group=whole(0, 0), one=np.array([one]), able=np.ones(2, dtype=bool), score=real(0.8, 0.5), least=real(least),
            hourly=np.array([False]),
        )  # fmt: skip
        return Rows(two_sites(arc_workload=whole(0, 1), demand=real([[12]], [[0]]), choice=both))

    rows = chosen_from(True, -INF)
    assert rows.of("one", 0) == ({"serve[0]": 1, "serve[1]": 1}, 1, 1)
    assert rows.of("chosen", 1, 0, 0) == ({"f[1,0]": 1, "serve[1]": -12}, -INF, 0)
    assert rows.of("balance", 0, 0, 0) == ({"f[0,0]": 1, "f[1,0]": 1}, 12, 12)
    mean = chosen_from(False, 0.6)
    assert mean.of("score", 0, 0) == ({"f[0,0]": 0.8 / 12, "f[1,0]": 0.5 / 12}, 0.6, INF)  # over all requests


def test_a_line_carries_requests_streams_and_weights_each_way():
    """Weights come from elsewhere to site 0 over channel 0, and on to site 1 over channel 1."""
    lines = LineData(
        line_capacity=real(100), line_upper=real(4), line_usable=np.ones((1, 1), dtype=bool), line_cost={"cost": real(9)},
        channel_line=whole(0, 0), window_stage=whole(0), arc_uses=whole([1, 0]), arc_uses_bytes=real(3),
        stream_workload=whole(0), stream_site=whole(1), way_stream=whole(0), way_stage=whole(0), way_cost={"cost": real(1)},
        way_uses=whole([0, 1]), way_uses_rate=real(6), needs_weights=np.ones((1, 2), dtype=bool),
        hop_workload=whole(0, 0), hop_from=whole(SOURCE, 0), hop_to=whole(0, 1), send_hop=whole(0, 1), send_stage=whole(0, 0),
        send_channel=whole(0, 1), send_rate=real(20, 30), send_cost={"cost": real(2, 2)},
    )  # fmt: skip
    rows = Rows(two_sites(lines=lines))
    assert rows.of("line", 0, 0) == ({"f[1,0]": 3, "send[0]": 20, "unit[0]": -100}, -INF, 0)
    assert rows.of("line", 1, 0) == ({"way[0]": 6, "send[1]": 30, "unit[0]": -100}, -INF, 0)
    assert rows.of("streamed", 0, 1, 0, 0) == ({"way[0]": 1, "host[0,1]": -1}, 0, 0)
    there, on = "pass[0,1,0,0]", "pass[0,1,1,0]"
    assert rows.of("arriving", 0, 1, 0, 0) == ({there: 1, on: -1}, 0, 0)
    assert rows.of("arriving", 0, 1, 1, 0) == ({on: 1, "host[0,1]": -1}, 0, 0)
    assert rows.of("sent", 0, 1, 1, 0) == ({on: 1, "send[1]": -1}, -INF, 0)
    assert rows.of("relayed", 1, 0) == ({"send[1]": 1, "host[0,0]": -1}, -INF, 0)


def test_a_fleet_holds_what_whole_replicas_take_at_least():
    rows = Rows(serving(least_fleet=LeastFleet(weight=real([2]), window=whole(0), least=real(3))))
    assert rows.of("least fleet", 0) == ({"n[0]": 2}, 3, INF)


def test_a_scenario_serves_with_its_own_points_and_prices():
    """4 requests/s on two systems in place of 5 on one; at the prices of scenario 0, a system is 6, in scenario 1 it is 8."""
    slow = Scenario(
        point_pool=whole(0), point_uses=whole([0, 0]), point_systems=real(2), point_power_w=real(600), capacity=real(4), pace=real(0),
        operation=Operation(0, point=real([3]), arc=real([1]), missing=real([100])),
    )  # fmt: skip
    blocks = ScenarioData([slow], whole(0), real(3600), Risk(real([6], [8]), 0.5))
    rows = Rows(serving(scenarios=blocks, site_power_limit_w=real(9000)))
    flow, active, missing = (f"scenario 0 {name}[0,0]" for name in ("f", "x", "missing"))
    assert rows.of("scenario 0 demand", 0) == ({flow: 1, missing: 1}, 12, INF)
    assert rows.of("scenario 0 pool", 0) == ({active: 4, flow: -1}, 0, INF)
    assert rows.of("scenario 0 installed", 0) == ({active: 2, "n[0]": -1}, -INF, 0)
    assert rows.of("scenario 0 power", 0) == ({active: 600, "n[0]": 1000}, -INF, 9000)
    assert rows.of("planned", 0) == ({"x[0,0]": 2, "planned[0]": -1}, 0, 0)
    dispatch = {flow: 1, active: 3, missing: 100, "planned[0]": -1}
    assert rows.of("risk", 0) == ({"n[0]": 6, "quantile[0]": -1, "beyond[0]": -1} | dispatch, -INF, 0)
    assert rows.of("risk", 1) == ({"n[0]": 8, "quantile[0]": -1, "beyond[1]": -1}, -INF, 0)
