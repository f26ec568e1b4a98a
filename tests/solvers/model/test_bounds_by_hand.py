"""Bounds and shares that the blocks put into their rows, derived by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from solvers.model.block_data.electricity import Chronology, MeterData
from solvers.model.build import build
from solvers.model.data import Objective
from solvers.model.deferral import arriving, may_wait, most_served
from solvers.model.electricity import power_may_earn
from solvers.model.facility import rack_room
from solvers.model.fleet import option_upper, system_prices
from solvers.model.preemption import predecessors, width_back, working_share
from solvers.model.residency import loading_share
from solvers.model.routing import (
    arc_most,
    arc_open,
    capacity_is_equality,
    hosting_has_cost,
    parallel_arcs,
    pool_capacity,
)
from solvers.model.storage import storage_width
from tests.solvers.model.test_blocks import real, serving, two_options, whole

RING = Chronology(next=whole(1, 2, 0), step_s=real(10, 20, 40))


def three_slots(**other):
    """Demands of 12, 6 and 3 requests/s in slots of 10, 20 and 40 s that form a ring."""
    return serving(
        **dict(
            slot_window=whole(0, 0, 0), slot_hours_s=real(100, 200, 400), demand=real([[12, 6, 3]]), order=RING,
            point_cost={"cost": real([2, 2, 2])}, arc_cost={"cost": real([0, 0, 0])},
        )
        | other
    )  # fmt: skip


def test_a_holding_is_bounded_by_supply_power_and_racks():
    assert option_upper(serving()).tolist() == [[9]]
    assert option_upper(serving(site_power_limit_w=real(4500))).tolist() == [[4]]  # 1 kW each, idle
    supplied = serving(supply_limit=real(7), supply_member=whole([0, 0]))
    assert option_upper(supplied).tolist() == [[7]]
    racks = serving(site_racks=real(3), holding_racks=real(0.5))
    assert rack_room(racks).tolist() == [6] and option_upper(racks).tolist() == [[6]]


def test_a_pool_serves_its_best_rate_on_all_systems():
    assert pool_capacity(serving()).tolist() == [[9 * 5]]
    assert pool_capacity(serving(point_uses_systems=real(2))).tolist() == [[9 * 5 / 2]]
    assert pool_capacity(two_options()).tolist() == [[2 * 9 * 5]]


def test_an_arc_carries_demand_or_what_the_pool_allows():
    assert arc_most(serving()).tolist() == [[12]] and arc_open(serving()).all()
    open_ended = serving(objective=Objective("throughput", -1))
    assert arc_most(open_ended).tolist() == [[45]]
    first, together = parallel_arcs(open_ended, real([45]))
    assert first.tolist() == [0] and together.tolist() == [[45]]


def test_idle_replicas_are_bound_where_they_would_earn():
    assert not capacity_is_equality(serving()).any()
    assert capacity_is_equality(serving(point_cost={"cost": real([-2])})).all()
    assert not hosting_has_cost(serving()).any()
    assert hosting_has_cost(serving(host_cost={"cost": real([1])})).all()


def test_power_earns_at_a_negative_price_and_with_a_battery_always():
    meters = dict(meter_site=whole(0), grid_upper_w=real(np.inf), grid_cost={"cost": real([1, -1, 1])})
    assert power_may_earn(three_slots(meters=MeterData(**meters))).tolist() == [[False, True, False]]
    battery = dict(
        battery_meter=whole(0), battery_least_j=real(0), battery_upper_j=real(1), battery_least_w=real(0), battery_upper_w=real(1),
        battery_efficiency=real(1),
    )  # fmt: skip
    assert power_may_earn(three_slots(meters=MeterData(**meters, **battery))).all()


def test_requests_that_wait_may_be_served_a_slot_later():
    data = three_slots(wait_slots=whole(1))
    assert may_wait(data).tolist() == [True]
    # 120, 120 and 120 requests arrive; each slot may serve its own and those of the slot before
    assert arriving(data, whole(2)).tolist() == [[[240, 240, 240]]]
    assert most_served(data).tolist() == [[[24, 12, 6]]]


def test_width_that_returns_costs_its_restart():
    data = three_slots(point_restart_s=real(4))
    share = real(1.0, 0.25, 0.5)
    assert predecessors(RING.next).tolist() == [2, 0, 1]
    assert width_back(data, share).tolist() == [0.5, 0.0, 0.25]
    assert working_share(data, 0, share) == pytest.approx([1 - 0.5 * 4 / 10, 0.25, 0.5 - 0.25 * 4 / 40])


def test_a_worker_that_loads_loses_a_share_of_its_slot():
    assert loading_share(three_slots(point_load_s=real(15))).tolist() == [[1.0, 0.75, 0.375]]
    assert not loading_share(serving()).any()


def test_storage_feeds_a_share_of_the_width():
    """Two jobs and a serving point at 2 GB/s of storage: 8 GB/s are fed to a quarter, 1 GB/s in full."""
    data = SimpleNamespace(
        point_pool=whole(-1, -1, 0), site_storage=real(2e9), point_storage=real(8e9, 1e9, 0), point_site=lambda: whole(0, 0, 0)
    )  # fmt: skip
    assert storage_width(data).tolist() == [0.25, 1.0, 1.0]


def test_a_system_costs_its_cheapest_holding():
    data = two_options()
    assert system_prices(build(data), data) == pytest.approx([10, 11])
