"""Plans at the low, typical or high figure of each price, by the way to obtain."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.plan import Plan
from planner.problem.price_levels import STATED, way_of
from planner.problem.scenarios import price_ranges
from planner.resolve.price_steps import raised
from planner.resolve.resolver import catalog_of, resolve_document
from planner.spec.model import parse_spec
from planner.spec.prices import WAYS
from planner.studies.sensitivity import sensitivity
from planner.verify.plan import verify_plan

OF_CATALOG = {"offers": [{"system": "DGX H100", "how": "buy"}]}
RANGE = {"low": "300000 USD", "high": "350000 USD"}
CONSTRUCTION = "regions/us-virginia/construction_cost"


@pytest.fixture(scope="module")
def solved(tiny) -> Callable[..., Plan]:
    return lambda **changes: planner.solve(tiny(**changes), threads=1)


def reasons(spec: dict[str, Any]) -> dict[str, str]:
    return {a.path: a.reason for a in resolve_document(spec).assumptions}


# -- prices of the catalog ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "price"), [("low", 300e3), ("typical", 310e3), ("high", 350e3)])
def test_the_figure_asked_for_is_the_one_that_counts(tiny, level, price):
    problem = resolve_document(tiny(**OF_CATALOG, prices={"level": level}))
    assert problem.offers[0].prices == {"us-virginia": price}


def test_a_way_to_obtain_may_have_a_level_of_its_own(tiny):
    problem = resolve_document(tiny(**OF_CATALOG, prices={"level": "high", "buy": "low"}))
    assert problem.offers[0].prices == {"us-virginia": 300e3}
    assert problem.sites[0].facility_cost_per_w == pytest.approx(15.0 * 1.055)
    other = resolve_document(tiny(**OF_CATALOG, prices={"facility": "low"}))
    assert (other.offers[0].prices["us-virginia"], other.sites[0].facility_cost_per_w) == (
        310e3,
        pytest.approx(9.3 * 1.055),
    )


def test_typical_prices_are_the_plan_without_the_block(solved):
    """But for the spec that it echoes."""
    plain, asked = (
        {k: v for k, v in plan.document.items() if k != "spec"}
        for plan in (solved(**OF_CATALOG), solved(**OF_CATALOG, prices={"level": "typical"}))
    )
    assert plain == asked


def test_the_assumptions_say_which_figure_counts(tiny):
    told = reasons(tiny(**OF_CATALOG, prices={"level": "low"}))
    assert told["offers/DGX H100, buy/price"] == "the low figure; the typical one is 310000 USD"
    assert told[CONSTRUCTION] == "the low figure; the typical one is 11.7 USD/W"


def test_a_price_without_the_figure_keeps_its_typical_one_and_says_so(tiny):
    plain, asked = (resolve_document(tiny(**OF_CATALOG, **more)) for more in ({}, {"prices": {"electricity": "high"}}))
    assert (plain.sites[0].price_per_j == asked.sites[0].price_per_j).all()
    assert {a.path: a.reason for a in asked.assumptions}[
        "regions/us-virginia/price_profile"
    ] == "no high figure is known: the typical one is taken"


def test_of_several_catalog_prices_the_least_at_its_level_counts(tiny, tmp_path):
    """The dearer offer has the lower low; and amounts are compared in one currency."""
    text = {"system": "DGX H100", "how": "buy"}
    overlay = tmp_path / "offers.json"
    overlay.write_text(json.dumps({"offers": [
        {"name": "dear but may fall", "text": text, "figures": {"price": {"value": "320000 USD", "low": "200000 USD"}}},
        {"name": "in yuan", "text": text, "figures": {"price": "299000 CNY"}},
    ]}))  # fmt: skip
    stated = {**OF_CATALOG, "exchange": {"CNY": {"per_usd": 1.0}}}
    least = {
        level: resolve_document(tiny(**stated, prices={"level": level}), [overlay]).offers[0].prices["us-virginia"]
        for level in ("low", "typical")
    }
    assert least == {"low": 200e3, "typical": 299e3}
    stated["exchange"]["CNY"]["per_usd"] = 0.5
    assert resolve_document(tiny(**stated), [overlay]).offers[0].prices["us-virginia"] == 310e3


def test_an_override_may_have_a_range(tiny):
    stated = {CONSTRUCTION: {"value": "10 USD/W", "low": "8 USD/W", "note": "a quote"}}
    spec = tiny(overrides=stated, prices={"level": "low"})
    assert resolve_document(spec).sites[0].facility_cost_per_w == pytest.approx(8.0)
    assert reasons(spec)[CONSTRUCTION] == "the low figure; the typical one is 10 USD/W (a quote)"
    with pytest.raises(SpecError, match="low <= value <= high"):
        resolve_document(tiny(overrides={CONSTRUCTION: {**stated[CONSTRUCTION], "low": "11 USD/W"}}))


def test_a_tariff_of_ones_own_has_a_range_hour_by_hour(tiny, tmp_path):
    overlay = tmp_path / "tariff.json"
    overlay.write_text(json.dumps({"tariffs": [{
        "name": "ours", "text": {"currency": "USD", "status": "complete", "bands": [[list(range(1, 13)), "all", 0, 24, "flat", "price_flat"]]},
        "figures": {"price_flat": {"value": "0.1 USD/kWh", "low": "0.06 USD/kWh", "high": "0.2 USD/kWh"}},
    }]}))  # fmt: skip
    spec = tiny(sites=[{"region": "us-virginia", "systems": ["DGX H100"], "tariff": "ours"}])
    prices = {
        level: resolve_document({**spec, "prices": {"electricity": level}}, [overlay]).sites[0].price_per_j * 3.6e6
        for level in ("low", "typical", "high")
    }
    assert {level: (values.min(), values.max()) for level, values in prices.items()} == {
        "low": pytest.approx((0.06, 0.06)), "typical": pytest.approx((0.1, 0.1)), "high": pytest.approx((0.2, 0.2)),
    }  # fmt: skip


def test_every_price_with_a_range_belongs_to_a_way(tiny):
    """None of the catalog's ranges is out of reach but the price of a bare chip, which no plan is made of."""
    catalog = catalog_of(parse_spec(tiny()), (), {})
    out = set()
    for kind in ("offers", "fabrics", "regions", "tariffs", "wan", "lines", "defaults", "chips"):
        for record in catalog.records(kind):
            for name, figure in record.figures.items():
                if way_of(record, name) is not None:
                    assert way_of(record, name) in WAYS
                elif "USD" in figure.unit and (figure.low, figure.high) != (None, None):
                    out.add((kind, name, record.name if kind == "defaults" else ""))
    assert out == {("chips", "price", "")}


# -- prices that the spec states ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("level", "price"), [("low", 300e3), ("typical", 310e3), ("high", 350e3)])
def test_a_stated_price_has_the_range_that_is_stated(tiny, level, price):
    spec = tiny(prices={"buy": level, "ranges": {"offers[0].price": RANGE}})
    assert resolve_document(spec).offers[0].prices == {"us-virginia": price}
    assert reasons(spec)["offers[0].price"] == "stated in the spec" + (
        "" if level == "typical" else f"; the {level} figure"
    )


def test_a_stated_price_without_a_range_says_so(tiny):
    assert (
        reasons(tiny(prices={"level": "high"}))["offers[0].price"]
        == "stated in the spec; no high figure is stated: this one is taken"
    )


def test_halls_electricity_and_tokens_have_ranges_too(tiny):
    spec = tiny(
        sites=[
            {
                "region": "us-virginia",
                "systems": ["DGX H100"],
                "colocation": "200 USD/kW-month",
                "electricity_price": "0.08 USD/kWh",
            }
        ],
        apis=[
            {
                "name": "bought",
                "region": "us-virginia",
                "output": "0.3 USD/1M tokens",
                "latency": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "20 ms"}},
            }
        ],
    )
    ranges = {
        "sites[0].colocation": {"high": "250 USD/kW-month"},
        "sites[0].electricity_price": {"high": "0.1 USD/kWh"},
        "apis[0].output": {"high": "0.6 USD/1M tokens"},
    }
    problems = [
        resolve_document({**spec, "prices": {"level": level, "ranges": ranges}}) for level in ("typical", "high", "low")
    ]
    hall, power, tokens = ([found(p) for p in problems] for found in (
        lambda p: p.sites[0].hall_per_w_s, lambda p: p.sites[0].price_per_j[0], lambda p: next(s.api.output_price for s in p.sites if s.api)
    ))  # fmt: skip
    for values, ratio in ((hall, 1.25), (power, 1.25), (tokens, 2.0)):
        assert values[1] / values[0] == pytest.approx(ratio) and values[2] == values[0]


@pytest.mark.parametrize(
    ("prices", "words"),
    [
        ({"level": "lowest"}, "prices.level: expected 'low', 'typical' or 'high'"),
        ({"bye": "low"}, 'prices.bye: unknown key; close names: "buy"'),
        ({"ranges": {"offers[0].price": {}}}, 'prices.ranges.offers[0].price: expected "low", "high" or both'),
        (
            {"ranges": {"offers[0].price": {"low": "320000 USD"}}},
            "prices.ranges.offers[0].price.low: expected at most the price at offers[0].price, in USD",
        ),
        (
            {"ranges": {"offers[0].price": {"high": "350000 CNY"}}},
            "prices.ranges.offers[0].price.high: expected at least the price at offers[0].price, in USD",
        ),
        (
            {"ranges": {"offers[0].price": {"low": "dear"}}},
            "prices.ranges.offers[0].price.low: expected a price of one system",
        ),
        (
            {"ranges": {"offers[0].supply": RANGE}},
            'prices.ranges.offers[0].supply: expected the place of a price such as "offers[0].price"',
        ),
        ({"ranges": {"offers[3].price": RANGE}}, "prices.ranges.offers[3].price: the spec states no price there"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tiny, prices, words):
    with pytest.raises(SpecError) as error:
        resolve_document(tiny(prices=prices))
    assert words in str(error.value)


def test_levels_and_sampled_prices_exclude_each_other(tiny):
    spec = tiny(prices={"level": "high"}, robust={"confidence": 0.9})
    with pytest.raises(SpecError, match=r"set robust\.prices to false"):
        resolve_document(spec)
    assert resolve_document({**spec, "robust": {"prices": False}}).offers[0].prices == {"us-virginia": 310e3}
    assert resolve_document({**spec, "prices": {"level": "typical"}}).offers[0].prices == {"us-virginia": 310e3}


def test_sampled_prices_reach_an_override_with_a_range(tiny):
    spec = tiny(
        overrides={CONSTRUCTION: {"value": "10 USD/W", "low": "8 USD/W", "high": "13 USD/W", "note": "a quote"}},
        robust={"confidence": 0.9},
    )
    problem = resolve_document(spec)
    assert {row["path"]: (row["low"], row["high"]) for row in price_ranges(problem)}[CONSTRUCTION] == pytest.approx(
        (8.0, 13.0)
    )
    assert raised(problem, ())[CONSTRUCTION].sites[0].facility_cost_per_w == pytest.approx(10.1)


def test_what_has_one_figure_only_says_so(tiny):
    """Lines and demand charges as the spec states them."""
    spec = tiny(
        sites=[{"region": "us-virginia", "systems": ["DGX H100"], "delivery": "0.03 USD/kWh", "electricity": {"demand_charge": "15 USD/kW-month"}}],
        lines=[{"kind": "SD-WAN", "price": "750 USD/month"}], prices={"level": "high"},
    )  # fmt: skip
    told = reasons(spec)
    for path in ("lines[0].price", "sites[0].electricity.demand_charge"):
        assert told[path].endswith("; no high figure is stated: this one is taken")


# -- around a plan -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def low(solved) -> Plan:
    return solved(prices={"level": "low", "ranges": {"offers[0].price": RANGE}})


def test_verify_holds_every_price_against_the_catalog_and_the_spec(low):
    assert verify_plan(low) == []


@pytest.mark.parametrize(
    ("table", "path", "key", "value"),
    [
        ("assumptions", "offers[0].price", "value", "310000 USD"),
        ("assumptions", "offers[0].price", "reason", "stated in the spec"),
        ("assumptions", CONSTRUCTION, "reason", "no low figure is known: the typical one is taken"),
        ("provenance", CONSTRUCTION, "value", 11.7),
    ],
)
def test_verify_finds_another_figure(low, table, path, key, value):
    document = json.loads(low.to_json())
    next(row for row in document[table] if row["path"] == path)[key] = value
    assert f"{table} {path}" in {finding.path for finding in verify_plan(Plan(document))}


@pytest.mark.parametrize("path", ["offers[0].price", CONSTRUCTION])
def test_verify_compares_the_code_of_the_level(low, path):
    """The English text alone does not say at which level a price counts."""
    document = json.loads(low.to_json())
    row = next(row for row in document["assumptions"] if row["path"] == path)
    row["reason_message"]["arguments"]["level"] = "high"
    told = {(finding.path, finding.row()["text_message"]["code"]) for finding in verify_plan(Plan(document))}
    assert (f"assumptions {path}", "verify.price_words") in told


def test_verify_finds_a_plan_made_at_another_level(low):
    document = json.loads(low.to_json())
    document["spec"]["prices"]["level"] = "high"
    found = {finding.path for finding in verify_plan(Plan(document))}
    assert {"objective.value", f"provenance {CONSTRUCTION}", "assumptions offers[0].price"} <= found


def test_a_sensitivity_study_moves_levels_and_ranges(tiny):
    """With divisible replicas, as studies solve."""
    solver = {"gap": 1e-6, "replicas": "divisible"}
    low = planner.solve(tiny(prices={"level": "low", "ranges": {"offers[0].price": RANGE}}, solver=solver))
    spec = tiny(prices={"level": "low", "ranges": {"offers[0].price": RANGE}}, solver=solver)
    by_name = {
        bar.factor.path: bar for bar in sensitivity(spec, vary=["prices.level=low:high"], defaults=True, threads=1).bars
    }
    levels, price = by_name["prices.level"], by_name["offers[0].price"]
    assert levels.low.value == pytest.approx(low.objective["value"], rel=1e-12) and levels.low.value < levels.high.value
    assert (price.low.words, price.high.words) == ("300000 USD", "350000 USD")
    assert (
        price.low.value == pytest.approx(low.objective["value"])
        and low.objective["value"] < price.high.value < levels.high.value
    )


def test_sampled_worlds_leave_the_prices_of_a_plan_at_their_level(low, tmp_path, capsys):
    path = tmp_path / "plan.json"
    low.save(path)
    assert main(["robust", str(path), "--scenarios", "20", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["prices"] == {}


def test_a_plan_on_another_catalog_is_checked_on_what_it_recorded(low):
    document = json.loads(low.to_json()) | {"catalog_digest": "another"}
    next(row for row in document["provenance"] if row["path"] == CONSTRUCTION)["value"] = 9.3
    assert verify_plan(Plan(document)) == []
    next(row for row in document["provenance"] if row["path"] == CONSTRUCTION)["value"] = 11.7
    assert verify_plan(Plan(document)) != []


def test_every_stated_place_is_one_of_the_spec(tiny):
    fields = {"offers": "Offer", "sites": "Site", "apis": "Api"}
    import planner.spec.model as blocks

    for place in STATED:
        block, name = place.split(".")
        assert name in getattr(blocks, fields[block]).model_fields
