"""Each constraint of the lines and spread blocks alone: a problem in which it decides the answer, with the number derived beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from solvers.fixed_fleet.full_year_dispatch import dispatch
from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.data import LineData, Objective, PlanData, SpreadData
from solvers.search.joint import solve

EXACT = Options(gap=0.0)
whole, real = lambda *values: np.array(values, dtype=int), lambda *values: np.array(values, dtype=float)


def two_sites(asked=10.0, slots=1, **other):
    """Site 0 at 10 a system, site 1 at 30; each system serves 5 requests/s of the one origin."""
    return PlanData(**dict(dict(
        slot_window=np.zeros(slots, dtype=int), slot_hours_s=np.full(slots, 3600.0), site_power_limit_w=real(np.inf, np.inf),
        option_site=whole(0, 1), option_group=whole(0, 1), option_fabric=whole(-1, -1), holding_option=whole(0, 1), holding_window=whole(-1, -1),
        holding_upper=real(9, 9), holding_cost={"cost": real(10, 30)}, holding_power_w=real(0, 0), point_pool=whole(0, 1), point_job=whole(-1, -1),
        point_uses=whole([0, 0], [1, 1]), point_uses_systems=real(1, 1), point_capacity=real(5, 5), point_power_w=real(0, 0),
        point_cost={"cost": np.zeros((2, slots))}, arc_workload=whole(0, 0), arc_origin=whole(0, 0), arc_site=whole(0, 1), arc_pool=whole(0, 1),
        arc_cost={"cost": np.zeros((2, slots))}, demand=np.full((1, 1, slots), asked)), **other))  # fmt: skip


def lines(windows=1, **other):
    """One line to site 0: units of 4 bytes/s at 3; a request sends 1 byte there and 2 back."""
    return LineData(**dict(dict(
        line_capacity=real(4), line_upper=real(99), line_usable=np.ones((1, windows), dtype=bool), line_cost={"cost": real(3)},
        channel_line=whole(0, 0), window_stage=np.zeros(windows, dtype=int), arc_uses=whole([0, 0], [0, 1]), arc_uses_bytes=real(1, 2)), **other))  # fmt: skip


def test_units_carry_the_busier_direction():
    answer = solve(
        two_sites(lines=lines()), EXACT
    )  # 10 requests/s x 2 bytes on units of 4: 5 units at 3, 2 systems at 10
    assert answer.values["unit"].tolist() == [5] and answer.value == pytest.approx(35)


def test_a_scarce_line_sends_demand_elsewhere():
    answer = solve(
        two_sites(lines=lines(line_upper=real(3))), EXACT
    )  # 3 x 4 / 2 = 6 requests/s at most to site 0, 4 on a system at 30
    assert answer.value == pytest.approx(min(2 * 10 + 3 * 3 + 30, 10 + 3 * 3 + 30)) and answer.values["n"].tolist() == [
        1,
        1,
    ]


def test_a_line_without_a_capacity_is_free_of_units():
    answer = solve(two_sites(lines=lines(line_capacity=real(np.inf))), EXACT)
    assert answer.value == pytest.approx(20) and answer.values["unit"].tolist() == [0]


def test_a_line_carries_nothing_before_it_is_ready():
    two = dict(
        slots=2,
        slot_window=whole(0, 1),
        lines=lines(2, line_usable=np.array([[False, True]]), window_stage=whole(0, 1)),
    )
    answer = solve(two_sites(**two), EXACT)
    assert answer.values["f"][0].tolist() == [0, 0] and answer.value == pytest.approx(
        60
    )  # 2 systems at 30 are there anyhow
    alone = two_sites(
        **two, arc_workload=whole(0), arc_origin=whole(0), arc_site=whole(0), arc_pool=whole(0), arc_cost={}
    )
    assert solve(alone, EXACT).structural == (("balance", (0, 0)),)


def test_streams_share_the_line_with_requests():
    stream = dict(stream_workload=whole(0), stream_site=whole(0), way_stream=whole(0), way_stage=whole(0), way_cost={"cost": real(7)},
                  way_uses=whole([0, 1]), way_uses_rate=real(3))  # fmt: skip
    answer = solve(two_sites(lines=lines(**stream)), EXACT)  # 20 + 3 bytes/s on 6 units
    assert answer.values["unit"].tolist() == [6] and answer.value == pytest.approx(20 + 18 + 7)


def test_a_site_that_a_stream_cannot_reach_hosts_nothing():
    stream = dict(stream_workload=whole(0), stream_site=whole(0))
    assert solve(two_sites(lines=lines(**stream)), EXACT).values["n"].tolist() == [0, 2]


def three_sites(**other):
    """Three sites that must all serve, one for each origin; weights reach 0 for 5, or any from another for 1 and from the source for 4."""
    hops = [(-1, 0, 5.0), (-1, 1, 4.0), (-1, 2, 4.0), (0, 1, 1.0), (1, 0, 1.0), (1, 2, 1.0), (2, 1, 3.0)]
    data = dict(
        line_capacity=real(np.inf), line_upper=real(1), line_usable=np.ones((1, 1), dtype=bool), channel_line=whole(0, 0),
        needs_weights=np.ones((1, 3), dtype=bool), hop_workload=np.zeros(7, dtype=int), hop_from=whole(*[a for a, _, _ in hops]),
        hop_to=whole(*[b for _, b, _ in hops]), send_hop=np.arange(7), send_stage=np.zeros(7, dtype=int), send_channel=np.zeros(7, dtype=int),
        send_rate=np.ones(7), send_cost={"cost": real(*[c for _, _, c in hops])})  # fmt: skip
    return PlanData(
        slot_window=whole(0), slot_hours_s=real(1), site_power_limit_w=np.full(3, np.inf), option_site=np.arange(3), option_group=np.arange(3),
        option_fabric=np.full(3, -1), holding_option=np.arange(3), holding_window=np.full(3, -1), holding_upper=np.full(3, 9.0),
        holding_cost={"cost": np.zeros(3)}, holding_power_w=np.zeros(3), point_pool=np.arange(3), point_job=np.full(3, -1),
        point_uses=np.column_stack([np.arange(3), np.arange(3)]), point_uses_systems=np.ones(3), point_capacity=np.full(3, 5.0), point_power_w=np.zeros(3),
        point_cost={"cost": np.zeros((3, 1))}, arc_workload=np.zeros(3, dtype=int), arc_origin=np.arange(3), arc_site=np.arange(3), arc_pool=np.arange(3),
        arc_cost={"cost": np.zeros((3, 1))}, demand=np.ones((1, 3, 1)), lines=LineData(**(data | other)))  # fmt: skip


def test_weights_travel_along_the_cheapest_tree():
    answer = solve(three_sites(), EXACT)  # source to 1 (4), 1 to 0 (1), 1 to 2 (1)
    assert answer.value == pytest.approx(6) and answer.values["send"].tolist() == [0, 1, 0, 0, 1, 1, 0]


def test_only_a_host_relays_weights():
    answer = solve(
        replace(three_sites(), demand=np.array([[[1.0], [0.0], [1.0]]])), EXACT
    )  # nothing is served at 1: 5 to 0 and 4 to 2
    assert answer.value == pytest.approx(9) and answer.values["host"].tolist() == [[1, 0, 1]]


def test_a_host_may_serve_as_relay_only():
    data = three_sites()
    both = replace(
        data, arc_origin=whole(0, 0, 2), demand=np.array([[[1.0], [0.0], [1.0]]])
    )  # origin 0 may be served at 0 or 1
    barred = replace(both, holding_upper=real(9, 0, 9))  # but nothing can stand at 1
    assert solve(both, EXACT).value == pytest.approx(5)  # served at 1, passed on to 2
    assert solve(barred, EXACT).value == pytest.approx(6)
    unserved = replace(
        both, arc_origin=whole(0, 2), arc_workload=whole(0, 0), arc_site=whole(0, 2), arc_pool=whole(0, 2), arc_cost={}
    )
    assert solve(unserved, EXACT).value == pytest.approx(9)  # not where it could not serve


@pytest.mark.parametrize(("fixed", "least"), [(2, 6 + 2), (4, 9)])
def test_a_relay_opens_its_site(fixed, least):
    data = replace(
        three_sites(), arc_origin=whole(0, 0, 2), demand=np.array([[[1.0], [0.0], [1.0]]]), holding_upper=real(9, 0, 9)
    )
    assert solve(replace(data, site_fixed={"cost": real(0, fixed, 0)}), EXACT).value == pytest.approx(least)


def test_weights_do_not_circulate_without_a_source():
    """Sites 0 and 1 cannot give the weights to each other when neither has them from the source."""
    hops = dict(hop_workload=whole(0, 0, 0), hop_from=whole(0, 1, -1), hop_to=whole(1, 0, 2), send_hop=np.arange(3), send_stage=np.zeros(3, dtype=int),
                send_channel=np.zeros(3, dtype=int), send_rate=np.ones(3), send_cost={"cost": np.zeros(3)})  # fmt: skip
    assert solve(three_sites(**hops), EXACT).status == "infeasible"


def test_an_update_takes_its_part_of_the_line():
    data = three_sites(line_capacity=real(2), line_upper=real(9), line_cost={"cost": real(10)})
    answer = solve(data, EXACT)  # three sends of 1 byte/s on one channel: two units of 2; three sends whatever the tree
    assert answer.values["unit"].tolist() == [2] and answer.value == pytest.approx(26)


def spread(**other):
    return SpreadData(
        **dict(
            dict(
                site_zone=whole(0, 1),
                largest_share=real(1),
                zones=whole(1),
                least_share=real(0.1),
                survives=np.array([False]),
            ),
            **other,
        )
    )


def test_no_zone_serves_more_than_its_share():
    answer = solve(
        two_sites(12.0, spread=spread(largest_share=real(0.6))), EXACT
    )  # 7.2 of 12 on two systems at 10, 4.8 on one at 30
    assert answer.value == pytest.approx(50) and answer.values["f"].ravel().tolist() == pytest.approx([7.2, 4.8])


def test_enough_zones_count():
    answer = solve(two_sites(spread=spread(zones=whole(2), least_share=real(0.3))), EXACT)
    assert answer.value == pytest.approx(40) and answer.values["f"][1, 0] >= 3 - 1e-6  # 20 without
    assert solve(two_sites(spread=spread(site_zone=whole(0, 0), zones=whole(2))), EXACT).status == "infeasible"


def test_shares_apply_to_scaled_demand():
    most = two_sites(
        holding_upper=real(2, 1), objective=Objective("throughput", -1), spread=spread(largest_share=real(0.6))
    )
    assert solve(most, EXACT).value == pytest.approx(1.25)  # 5 at site 1 are 40 %, so 7.5 at site 0: 12.5 of 10
    counted = two_sites(
        holding_upper=real(2, 1),
        objective=Objective("throughput", -1),
        spread=spread(zones=whole(2), least_share=real(0.4)),
    )
    assert solve(counted, EXACT).value == pytest.approx(1.25)  # 5 at site 1 are at least 40 % of 12.5


def test_the_other_zones_serve_everything_after_a_failure():
    answer = solve(two_sites(spread=spread(survives=np.array([True]), tried_slots=whole(0))), EXACT)
    assert answer.values["n"].tolist() == [2, 2] and answer.value == pytest.approx(80)


def test_a_host_that_takes_over_exists_before_the_failure():
    data = two_sites(spread=spread(survives=np.array([True]), tried_slots=whole(0)), host_cost={"cost": real([3, 7])})
    answer = solve(data, EXACT)
    assert answer.value == pytest.approx(80 + 3 + 7) and answer.values["host"].tolist() == [[1, 1]]


@pytest.mark.parametrize("asked", [{"largest_share": real(0.6)}, {"zones": whole(2), "least_share": real(0.3)}])
def test_shares_are_of_what_is_served_in_a_slot(asked):
    """12 requests/s at once are 7 or more on 2 systems at 10 and the rest on one at 30; 6 in each of two slots take one of each."""
    data = two_sites(
        slots=2, demand=real([[12, 0]]), spread=spread(**asked), order=Chronology(next=whole(1, 0), step_s=real(1, 1))
    )
    assert solve(data, EXACT).value == pytest.approx(50)
    assert solve(replace(data, wait_slots=whole(1)), EXACT).value == pytest.approx(40)


def test_lines_carry_the_traffic_after_a_failure():
    asked = spread(survives=np.array([True]), tried_slots=whole(0))
    answer = solve(
        two_sites(spread=asked, lines=lines(line_upper=real(4))), EXACT
    )  # 8 requests/s of 10 to site 0 at most
    assert answer.status == "infeasible"
    assert solve(two_sites(spread=asked, lines=lines()), EXACT).value == pytest.approx(80 + 15)


def test_power_suffices_after_a_failure():
    asked = spread(survives=np.array([True]), tried_slots=whole(0))
    tight = two_sites(
        spread=asked, point_power_w=real(100, 100), site_power_limit_w=real(150, np.inf)
    )  # 1.5 replicas at site 0: 7.5 of 10
    assert solve(tight, EXACT).status == "infeasible"
    assert solve(replace(tight, site_power_limit_w=real(200, np.inf)), EXACT).value == pytest.approx(80)


# -- decided lines and zones in the hours of a year -----------------------------------------------------------------------


def run_through(data, **fixed):
    held = {
        "n": real(9, 9),
        "open": np.zeros(2),
        "host": np.zeros((1, 2)),
        "run": np.zeros((2, 1)),
        "unit": real(0),
        "way": real(),
        "send": real(),
    }
    return dispatch(data, held | fixed, np.zeros((0, 1)), [np.arange(data.slots)], "cost", (1.0, 1.0), EXACT)


def test_a_dispatch_keeps_to_the_units_rented():
    data = two_sites(slots=2, demand=real([[5, 10]]), lines=lines())
    found = run_through(data, n=real(9, 0), unit=real(3))  # 3 x 4 bytes/s carry 6 requests/s of 2 bytes
    assert found.unmet.ravel().tolist() == pytest.approx([0, 4]) and found.values["f"][0].tolist() == pytest.approx(
        [5, 6]
    )
    assert run_through(data, unit=real(3)).unmet.sum() == pytest.approx(0)  # the rest goes to site 1


def test_a_dispatch_leaves_room_for_streams_and_weights():
    stream = dict(stream_workload=whole(0), stream_site=whole(0), way_stream=whole(0), way_stage=whole(0), way_uses=whole([0, 1]), way_uses_rate=real(3))  # fmt: skip
    data = two_sites(lines=lines(**stream))
    placed = {"n": real(9, 0), "unit": real(3), "way": real(1)}
    assert run_through(data, **placed, host=real([1, 0])).unmet.sum() == pytest.approx(10 - (12 - 3) / 2)
    assert run_through(data, **placed, host=real([0, 0])).unmet.sum() == pytest.approx(10)  # not placed there at all


def test_a_dispatch_sends_nothing_over_a_line_that_is_not_ready():
    data = two_sites(
        slots=2,
        slot_window=whole(0, 1),
        lines=lines(2, line_usable=np.array([[False, True]]), window_stage=whole(0, 1)),
    )
    assert run_through(data, n=real(9, 0), unit=real(9), run=np.zeros((2, 2))).unmet.ravel().tolist() == pytest.approx(
        [10, 0]
    )


def test_a_dispatch_keeps_to_shares_of_what_is_served():
    limited = two_sites(20.0, spread=spread(largest_share=real(0.6)))
    assert run_through(limited, n=real(9, 1), c=np.zeros((1, 2))).unmet.sum() == pytest.approx(
        7.5
    )  # 5 at site 1 are 40 % of 12.5
    counting = two_sites(20.0, spread=spread(zones=whole(2), least_share=real(0.4)))
    assert run_through(counting, n=real(9, 1), c=np.ones((1, 2))).unmet.sum() == pytest.approx(7.5)
    assert run_through(counting, n=real(9, 1), c=real([1, 0])).unmet.sum() == pytest.approx(0)
