"""What studies move, derived from what a spec may state: every amount of work, latency limit and price, and whole numbers that become fractions."""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import pytest

from planner.resolve.resolver import resolve_document
from planner.spec.apis import Api
from planner.spec.load.classes import RequestClass
from planner.spec.offers import Offer
from planner.spec.quantities import TokenPrice
from planner.spec.schema import spec_schema
from planner.spec.slo import Percentiles, Slo
from planner.spec.workloads import DEMANDS, WORK, Demand, DemandInTime
from planner.studies.base.varied import PRICES, latency_paths, price_edits, takes_fractions, times, work_path
from planner.studies.frontier import _undominated
from planner.studies.sensitivity_factors import LATENCY, PRICE, factors_of

SESSION = {"calls": 4, "growth": 100, "wait": "2 s"}
IN_TIME = {
    "how a demand is spread over time": {
        "profile",
        "week",
        "months",
        "deferral",
        "forecast",
        *DemandInTime.model_fields,
    }
}


def blocks(of: type) -> set[str]:
    """Fields of a block of the spec that hold percentiles."""
    return {name for name, kind in get_type_hints(of).items() if Percentiles in (kind, *get_args(kind))}


def test_the_demand_keys_are_those_that_a_spec_may_state():
    """Everything else in a demand is how it is spread over time."""
    assert set(Demand.model_fields) - set.union(*IN_TIME.values()) == set(DEMANDS)


def test_every_kind_of_workload_has_its_keys_of_work():
    """By the schema of a spec: of several keys none is required, for a spec states one of them."""
    schema = spec_schema()
    kinds = schema["properties"]["workloads"]["items"]["discriminator"]["mapping"]
    assert set(kinds) == set(WORK)
    for kind, place in kinds.items():
        block = schema["$defs"][place.rpartition("/")[2]]
        stated = {key.partition(".")[0] for key in WORK[kind]}
        assert stated <= set(block["properties"]) and (stated <= set(block["required"])) == (len(stated) == 1)


@pytest.mark.parametrize("key", DEMANDS)
def test_the_amount_of_work_is_found_under_whichever_key_states_it_and_takes_fractions(tiny, key):
    spec = tiny()
    written = {"users": {"count": 3, "requests_per_hour": 1}, "output_tokens": "3 token/s"}.get(key, 3)
    spec["workloads"][0] |= {"demand": {key: written}, "session": SESSION}
    path = f"workloads[0].demand.{key}" + (".count" if key == "users" else "")
    assert work_path(spec, 0) == path
    assert times(spec, path, 0.7) == ("2.1 token/s" if key == "output_tokens" else pytest.approx(2.1))


def test_every_latency_limit_that_a_spec_may_state_is_moved_as_one(tiny):
    """In a spec that states all of them, of the workload and of its classes; each by the share of latencies."""
    metrics, percentiles = blocks(Slo), set(Percentiles.model_fields)
    spec = tiny()
    spec["workloads"][0] |= {
        "session": SESSION,
        "slo": {metric: dict.fromkeys(percentiles, "20 min") for metric in metrics},
        "classes": [
            {"name": name, "share": 0.5, **{key: dict.fromkeys(percentiles, "1 min") for key in blocks(RequestClass)}}
            for name in "ab"
        ],
    }  # fmt: skip
    expected = {f"workloads[0].slo.{metric}.{name}" for metric in metrics for name in percentiles} | {
        f"workloads[0].classes[{i}].{key}.{name}" for i in range(2) for key in blocks(RequestClass) for name in percentiles
    }  # fmt: skip
    assert set(latency_paths(spec, 0)) == expected and len(expected) == (4 + 2) * 5
    moved = {
        factor.path: factor for factor in factors_of(spec, resolve_document(spec), [], True) if factor.kind == LATENCY
    }
    assert set(moved) == expected
    assert {
        moved["workloads[0].classes[0].ttft.p95"].low.words,
        moved["workloads[0].classes[0].ttft.p95"].high.words,
    } == {"0.8 min", "1.2 min"}


def test_every_price_of_an_offer_and_an_api_moves_with_it(tiny):
    per_token = {
        name for name, field in Api.model_fields.items() if str(field.annotation) == str(get_args(TokenPrice)[0])
    }
    assert {"price", *per_token} == set(PRICES) and "price" in Offer.model_fields
    later = {name for name in Offer.model_fields if name.startswith("price_by_")}
    assert later == {"price_by_phase"}
    spec = tiny(horizon={"years": 2}, phases=[{"name": "first", "start": "0 d"}, {"name": "then", "start": "365 d"}])
    spec["offers"][0] = {**spec["offers"][0], "price": "200000 USD", "price_by_phase": {"then": "100000 USD"}}
    assert dict(price_edits(spec, "offers[0]", 0.8)) == {
        "offers[0].price": "160000 USD",
        "offers[0].price_by_phase": {"then": "80000 USD"},
    }
    (factor,) = (f for f in factors_of(spec, resolve_document(spec), [], True) if f.path == "offers[0].price")
    assert factor.kind == PRICE and dict(factor.low.edits) == dict(price_edits(spec, "offers[0]", 0.8))
    bought: dict[str, Any] = {"apis": [{"input": "2 USD/1M tokens", "output": "4 USD/1M tokens"}]}
    assert dict(price_edits(bought, "apis[0]", 1.5)) == {
        "apis[0].input": "3 USD/1M tokens",
        "apis[0].output": "6 USD/1M tokens",
    }


def test_a_count_is_rounded_up(tiny):
    spec = tiny()
    spec["offers"][0]["supply"] = 7
    assert not takes_fractions(spec, "offers[0].supply")
    assert times(spec, "offers[0].supply", 0.9) == 7 and times(spec, "offers[0].supply", 0.5) == 4


class Point:
    """What a frontier reads of a point."""

    def __init__(self, measure: float, cost: float):
        self.measure, self.cost, self.name = measure, cost, f"x {measure:g}"


@pytest.mark.parametrize("against", ["throughput", "latency"])
def test_the_demand_of_the_spec_stays_on_the_frontier_and_shields_no_other_point(against):
    """Of rising demand, costs 8, 9, 10, 7: all but the last are dominated, and the spec's own stays beside it."""
    factors = (0.5, 0.75, 1.0, 1.5) if against == "throughput" else (2.0, 1.5, 1.0, 0.5)
    left_out: list[tuple[str, str]] = []
    kept = _undominated([Point(f, c) for f, c in zip(factors, (8.0, 9.0, 10.0, 7.0))], against, left_out)
    assert sorted(point.cost for point in kept) == [7.0, 10.0]
    assert {reason for _, reason in left_out} == {f'dominated by "x {factors[-1]:g}"'} and len(left_out) == 2
