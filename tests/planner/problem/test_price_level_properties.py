"""What must hold of any small question at low, typical and high prices: dearer prices never make a cheaper plan, and none is ever out of order."""

from __future__ import annotations

import copy

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.resolve.resolver import resolve_document
from planner.spec.prices import WAYS
from planner.verify.plan import verify_plan
from tests.conftest import few_of
from tests.plans.test_plan_properties import BOTH_GAPS, cost, questions

LEVELS = ("low", "typical", "high")
CATALOG = (
    {"system": "DGX H100", "how": "buy"}, {"system": "DGX H200", "how": "buy"}, {"system": "AWS p5.48xlarge", "how": "on_demand"},
    {"system": "AWS p5.48xlarge", "how": "spot", "interruption_interval": "20 h", "restart": "10 min", "headroom": 0.1},
    {"system": "MI300X 8x OAM node", "how": "reserved", "price": "21 USD/h"},
)  # fmt: skip
RANGE = {"low": "15 USD/h", "high": "30 USD/h"}
few = settings(max_examples=few_of(8), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
many = settings(few, max_examples=few_of(40))
ways = st.dictionaries(st.sampled_from(WAYS), st.sampled_from(LEVELS), max_size=4)


def priced(spec: dict, **levels: str) -> dict:
    sites = [
        {"region": site["region"].replace("texas", "ohio")} for site in spec["sites"]
    ]  # where all of the offers have a price
    ranges = {f"offers[{i}].price": RANGE for i, offer in enumerate(spec["offers"]) if "price" in offer}
    return {**copy.deepcopy(spec), "sites": sites, "prices": {**levels, "ranges": ranges}}


@few
@given(questions(training=False, offers=CATALOG))
def test_cost_rises_with_the_level_of_all_prices(spec):
    low, typical, high = (cost(priced(spec, level=level)) for level in LEVELS)
    assert low <= typical * BOTH_GAPS and typical <= high * BOTH_GAPS


@few
@given(questions(offers=CATALOG), ways, st.sampled_from(WAYS), st.sampled_from(LEVELS[:2]))
def test_cost_rises_with_the_level_of_one_way_to_obtain(spec, levels, way, level):
    before, after = {**levels, way: level}, {**levels, way: LEVELS[LEVELS.index(level) + 1]}
    assert cost(priced(spec, **before)) <= cost(priced(spec, **after)) * BOTH_GAPS


@settings(few, max_examples=2)
@given(questions(offers=CATALOG), ways)
def test_a_plan_at_any_levels_is_verified(spec, levels):
    assert verify_plan(planner.solve(priced(spec, **levels))) == []


@many
@given(questions(offers=CATALOG))
def test_no_price_of_a_question_is_out_of_order(spec):
    low, typical, high = (resolve_document(priced(spec, level=level)) for level in LEVELS)
    for a, b in ((low, typical), (typical, high)):
        for one, other in zip(a.offers, b.offers, strict=True):
            assert all(one.prices[region] <= other.prices[region] for region in one.prices)
        for one, other in zip(a.sites, b.sites, strict=True):
            assert one.facility_cost_per_w <= other.facility_cost_per_w and np.all(one.price_per_j <= other.price_per_j)
            assert (one.fabric.switch_price, one.fabric.link_price_one_tier) <= (
                other.fabric.switch_price,
                other.fabric.link_price_one_tier,
            )
        assert all(a.paths[key].price_per_byte <= b.paths[key].price_per_byte for key in a.paths)
