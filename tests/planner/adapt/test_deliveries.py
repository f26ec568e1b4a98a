"""Deliveries that may come late: windows without the systems, what each date knows, and the spec that states them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.adapt.dates import Dates
from planner.adapt.deliveries import NEVER, Orders, arrived, borders, followed, groups_of, orders_of
from planner.adapt.draws import as_predicted, drawn
from planner.adapt.plan import at_dates
from planner.errors import SpecError
from planner.solving.variants import resolved
from planner.spec.model import parse_spec
from planner.spec.offers import DeliveryTime
from planner.spec.requirements.adapt import Adapt
from planner.spec.robust import Robust

WEEK_S = 7 * 86400.0
DELIVERY = {"low": "8 weeks", "typical": "12 weeks", "high": "30 weeks"}
DATES = Dates(
    (0.0, 6 * WEEK_S, 52 * WEEK_S), (False, True, True), (False, True, True), 0.0, 0.0, unfolds=True
)  # fmt: skip


def late(tiny, **blocks):
    return tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD", "delivery": DELIVERY}, {"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
        **blocks,
    )  # fmt: skip


def test_systems_are_there_from_the_window_after_they_have_come():
    """Ordered at the start for week 12, and in week 6 for week 52: after 20 weeks the first misses the window from 12 to 21, the second none."""
    edges = np.array([0.0, 12.0, 21.0, 52.0, 104.0]) * WEEK_S
    orders = Orders(("offers[0]",), np.array([0, 1]), np.array([0, 0]), np.array([0.0, 6.0]) * WEEK_S, edges)
    planned = np.array([[False, True, True, True], [False, False, False, True]])
    found = orders.covers(planned, np.array([[12.0], [20.0], [21.0], [50.0]]) * WEEK_S)
    assert found[0].tolist() == planned.tolist()
    assert found[1].tolist() == found[2].tolist() == [[False, False, True, True], [False, False, False, True]]
    assert found[3].tolist() == [[False, False, False, True], [False, False, False, False]]


def test_a_date_knows_what_has_come_by_then():
    orders = Orders(("offers[0]",), np.array([0]), np.array([0]), np.zeros(1), np.array([0.0, 1.0]))
    leads = np.array([[5.0], [6.0], [20.0], [60.0]]) * WEEK_S
    known = orders.known(leads, DATES)[:, :, 0] / WEEK_S
    assert known.tolist() == [[NEVER] * 4, [5.0, 6.0, NEVER, NEVER], [5.0, 6.0, 20.0, NEVER]]
    assert arrived(orders.known(leads, DATES)).max(axis=1).tolist() == [0, 2, 3]


times = st.lists(st.tuples(st.floats(1, 80), st.floats(1, 80)), min_size=1, max_size=5)


@given(times, times, st.floats(1.0, 3.0))
def test_what_comes_later_changes_no_decision(groups, draws, factor):
    """Scenarios that differ only in what has not come by a date follow the same group until then, and groups follow themselves as far as they are known."""
    orders = Orders(("a", "b"), np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(1))
    leads, own = np.array(groups) * WEEK_S, np.array(draws) * WEEK_S
    known = orders.known(leads, DATES)
    found = followed(known, leads, orders.known(own, DATES))
    for d, at in enumerate(DATES.at_s):
        changed = np.where(own > at + 1.0, own * factor, own)
        other = followed(known, leads, orders.known(changed, DATES))
        assert (other[: d + 1] == found[: d + 1]).all()
    alike = arrived(known)
    for d in range(1, len(DATES.at_s)):  # a group that is followed lies in the branch of the one before
        assert (alike[d - 1][found[d]] == alike[d - 1][found[d - 1]]).all()
    itself = followed(known, leads, known)
    assert all((alike[d][itself[d]] == alike[d]).all() for d in range(len(DATES.at_s)))


def test_scenarios_that_are_alike_share_a_node():
    none = np.zeros(4, dtype=np.int64)
    come = np.array([[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 2]])
    dates = Dates((0.0, 1.0, 2.0), (False, False, False), (False, False, False), 0.0, 0.0, True, (False, False, True))
    nodes = dates.nodes(none, np.zeros((3, 4), dtype=np.int64), np.array([0, 0, 0, 1]), come)
    assert nodes.tolist() == [[0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 2, 3]]


def test_plans_count_the_typical_time_and_draws_lie_between_the_others(tiny):
    problem = resolved(late(tiny))
    assert problem.offers[0].from_s == 12 * WEEK_S and problem.offers[0].is_late
    assert any(row.path == "offers[0].delivery" for row in problem.assumptions)
    cut, dates = at_dates(late(tiny), Adapt())
    assert dates.unfolds and [phase["start"] for phase in cut["phases"]] == ["0 d", "42 d", "147 d", "210 d", "365 d"]
    problem = resolved({**cut, "robust": None})
    sampled = replace(problem, spec=problem.spec.model_copy(update={"robust": Robust(prices=False)}))
    leads = drawn(sampled, 400, 3).leads / WEEK_S
    assert 8 <= leads.min() < 9 and 28 < leads.max() <= 30
    assert leads.mean() == pytest.approx((8 + 12 + 30) / 3, abs=0.8)  # standard error 0.24
    assert as_predicted(sampled).leads.tolist() == [[12 * WEEK_S]]


def test_phases_of_the_spec_are_cut_at_late_deliveries(tiny):
    """Phases keep their figures; between them begin further ones, at 21 and 30 weeks, and no decision is made there."""
    phases = [{"name": "date 2", "start": "0 d"}, {"name": "full", "start": "1 year"}]
    cut, dates = at_dates(late(tiny, phases=phases), Adapt())
    assert [(each["name"], each["start"]) for each in cut["phases"]] == [
        ("date 2", "0 d"), ("date 2 again", "147 d"), ("date 3", "210 d"), ("full", "1 year"),
    ]  # fmt: skip
    assert dates.at_s == (0.0, 365 * 86400.0) and len(resolved(cut).phases) == 4


def test_borders_and_groups():
    stated = [DeliveryTime.model_validate(DELIVERY), DeliveryTime.model_validate({"typical": "9 weeks"})]
    assert [at / WEEK_S for at in borders(stated)] == [21.0, 30.0]
    picked, weight = groups_of(np.array([[12.0], [12.0], [30.0], [30.0]]), 3)
    assert sorted(np.array([12.0, 12.0, 30.0, 30.0])[picked]) == [12.0, 30.0] and weight.tolist() == [0.5, 0.5]
    assert groups_of(np.zeros((5, 0)), 3)[1].tolist() == [1.0]


def test_systems_with_tiers_of_kv_cache_come_with_their_offer(tiny):
    """All orders of an offer take the same time in a scenario, whatever tiers the systems have."""
    spec = late(tiny, kv_tiers=[{"tiers": [{"name": "dram", "sizes": ["1 TB"], "bandwidth": "200 GB/s", "latency": "1 us", "price": "4 USD/GB", "power_per_tb": "40 W"}]}])  # fmt: skip
    spec["workloads"][0]["cache"] = {"prefix_tokens": 200, "reuse": {"requests": 12, "gap": "120 s"}}
    problem = resolved(spec)
    assert [offer.path for offer in problem.offers if offer.is_late] == ["offers[0]", "offers[0] + dram 1 TB"]
    sampled = replace(problem, spec=problem.spec.model_copy(update={"robust": Robust(prices=False)}))
    leads = drawn(sampled, 20, 3).leads
    assert leads.shape == (20, 1) and as_predicted(sampled).leads.shape == (1, 1)
    bought = [offer for offer in problem.offers if offer.is_late]
    orders = orders_of(problem.offers, bought, np.zeros(2, dtype=np.int64), DATES, np.arange(4) * 10 * WEEK_S)
    there = orders.covers(np.ones((2, 3), dtype=bool), leads)
    assert orders.offers == ("offers[0]",) and (there[:, 0] == there[:, 1]).all()


def test_what_cannot_take_late_deliveries_says_so(tiny):
    with pytest.raises(SpecError, match='"adapt" instead') as caught:
        resolved(late(tiny, robust={"confidence": 0.8}))
    assert [issue.path for issue in caught.value.problems] == ["offers[0].delivery"]
    certain = late(tiny, robust={"confidence": 0.8})
    certain["offers"][0]["delivery"] = {"typical": "12 weeks"}
    assert not resolved(certain).offers[0].is_late
    hourly = late(tiny)
    hourly["offers"][1]["delivery"] = DELIVERY
    with pytest.raises(SpecError, match="start_time"):
        parse_spec(hourly)
    wrong = late(tiny)
    wrong["offers"][0]["delivery"] = {"low": "13 weeks", "typical": "12 weeks"}
    with pytest.raises(SpecError, match="delivery"):
        parse_spec(wrong)
