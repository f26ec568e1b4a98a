"""The dispatch of the replay against figures by hand, and against the programs by which a plan to adapt values scenarios, in trees of two scenarios."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.verify.adapt.dispatch import Dispatch, Fleet
from solvers.interface import Options
from solvers.stochastic.data import FleetData, Leaves, dearer
from solvers.stochastic.outcomes import outcomes

LACK, PRICE, HIRE = 50.0, 100.0, 3.0


def ints(*values):
    return np.array(values, dtype=np.int64)


def fleet(supply=40.0, demand=(10.0, 20.0), **changes):
    """Build a fleet of one site and two hours: systems bought at the start or for the second hour, and others hired by the hour."""
    found = Fleet(
        seconds=np.ones(2), demand=np.array([demand]), lack_price=np.full((1, 2), LACK), way_class=ints(0, 0), way_option=ints(0, 1),
        way_watts=np.array([1.0, 0.0]), way_price=np.array([[0.5, 0.5], [0.0, 0.0]]), request_price=np.array([[0.0, 0.0], [0.1, 0.1]]),
        option_site=ints(0, 0), by_use=np.array([False, True]), use_price=np.array([[0.0, 0.0], [HIRE, HIRE]]), option=ints(0, 0),
        there=np.array([[1.0, 1.0], [0.0, 1.0]]), returns=np.zeros(2, dtype=bool), price=np.array([PRICE, 60.0]), most=np.array([50.0, 50.0]),
        idle_watts=np.array([2.0, 0.0]), room_watts=np.full((1, 2), 1e6), supply=np.array([supply]), supply_of=ints(-1, 0),
        job_of=ints(), job_option=ints(), job_watts=np.zeros(0), job_price=np.zeros((0, 2)), job_work=np.zeros(0),
        job_mask=np.zeros((0, 2), dtype=bool), undone_price=np.zeros(0),
    )  # fmt: skip
    return replace(found, **changes)


def as_planned(data: Fleet):
    """Write the same fleet as the data of the programs of a plan."""
    return FleetData(
        option=data.option, stage=ints(0, 1), covers=data.there > 0, parent=ints(-1, -1), lower=np.zeros(2), upper=data.most,
        whole=np.zeros(2, dtype=bool), power_w=data.idle_watts[data.option], option_site=data.option_site, by_use=data.by_use,
        supply_limit=data.supply, supply_member=np.array([[0, 1]]), window=ints(0, 1), seconds=data.seconds, room_w=data.room_watts,
        demand=data.demand, class_workload=ints(0), arc_class=ints(0, 0), arc_pool=ints(0, 1), arc_cost=data.request_price,
        way_pool=ints(0, 1), way_option=data.way_option, way_power_w=data.way_watts, way_cost=data.way_price, use_price=data.use_price,
        lack_cost=data.lack_price, job_mask=np.zeros((0, 2), dtype=bool), job_cost=np.zeros((0, 2)),
    )  # fmt: skip


def test_two_scenarios_by_hand():
    """Ten systems are bought for 1000. As predicted they serve the first hour (10 at work, 5) and half of the second; ten are hired for 30 and 1 of traffic.

    With half the rate and twice the demand: the first hour hires 30 (90, and 1.5 for 15 requests), the second the 40 on offer (120, and 2), and
    leaves 15 requests undone.
    """
    growth, rates = np.array([np.ones((1, 2)), 2 * np.ones((1, 2))]), np.array([[1.0, 1.0], [0.5, 0.5]])
    found = Dispatch(fleet()).run(growth, rates, np.array([[10.0, 0.0], [10.0, 0.0]]), 2.0)
    assert found.cost == pytest.approx([1000 + 5 + 5 + 30 + 1, 1000 + 5 + 5 + 90 + 1.5 + 120 + 2 + 15 * LACK])
    assert found.kept.tolist() == [True, False]


def test_an_order_that_is_free_is_decided_in_its_world():
    """A system for the second hour costs 60.5: less than hiring one for 80, and than 50 for a request that is not served once that price is doubled."""
    dear = fleet(use_price=np.array([[0.0, 0.0], [80.0, 80.0]]))
    growth, rates = np.array([np.ones((1, 2)), 0.5 * np.ones((1, 2))]), np.ones((2, 2))
    for factor, ordered, cost in ((1.0, 0.0, 10 * LACK), (2.0, 10.0, 605.0)):
        found = Dispatch(dear).run(growth, rates, np.array([[10.0, np.nan], [10.0, np.nan]]), factor)
        assert found.held[:, 1] == pytest.approx([ordered, 0.0])
        assert found.cost == pytest.approx([1010.0 + cost, 1007.5])


def test_power_and_returns_bind():
    """With 30 W, ten idle systems leave 10 W; a return of four systems, of which each saves 20, gives back 8 W and leaves six of 3 W."""
    narrow = fleet(room_watts=np.full((1, 2), 25.0), supply=np.array([0.0]))
    one = Dispatch(narrow).run(np.ones((1, 1, 2)), np.ones((1, 2)), np.array([[10.0, 0.0]]), 1.0)
    assert not one.kept[0] and one.cost[0] == pytest.approx(1000 + 5 * 0.5 * 2 + (5 + 15) * LACK)
    back = fleet(
        there=np.array([[1.0, 1.0], [0.0, -1.0]]), returns=np.array([False, True]), price=np.array([PRICE, -20.0])
    )
    none = Dispatch(replace(back, demand=np.array([[10.0, 1.0]]))).run(
        np.ones((1, 1, 2)), np.ones((1, 2)), np.array([[10.0, np.nan]]), 1.0
    )
    assert none.held[0, 1] == pytest.approx(10.0)  # all go back, and one is hired for 3.1


figures = st.floats(0.0, 1.0)


@given(
    st.lists(figures, min_size=4, max_size=4),
    st.lists(figures, min_size=4, max_size=4),
    st.floats(0.0, 30.0),
    figures,
    st.booleans(),
)
@settings(max_examples=30)
def test_it_costs_what_the_programs_of_a_plan_say(grown, fast, bought, room, free):
    data = fleet(supply=20.0 * room, room_watts=np.full((1, 2), 60.0 + 40.0 * room))
    bought = min(bought, float(data.room_watts.min()) / 2.0)
    growth = 0.5 + np.array(grown).reshape(2, 1, 2)
    rates = 0.2 + np.array(fast).reshape(2, 2)
    given_units = np.array([[bought, np.nan if free else 0.0]] * 2)
    leaves = Leaves(
        weight=np.full(2, 0.5), efficiency=rates, rate=np.zeros((2, 0)), growth=growth, cost=np.tile(data.price, (2, 1)),
        use_factor=np.ones((2, 2)), node=np.array([[0, 0], [0, 1]]),
    )  # fmt: skip
    planned = [
        each.cost - each.lack * (1 - 1 / 3)
        for each in outcomes(dearer(as_planned(data), 3.0), leaves, given_units, Options())
    ]
    found = Dispatch(data).run(growth, rates, given_units, 3.0)
    assert found.cost == pytest.approx(planned, rel=1e-5, abs=1e-5)
