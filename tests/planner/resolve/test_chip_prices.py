"""Prices per chip: the same offer as the price of the system of so many chips, wherever a price of an offer is stated."""

from __future__ import annotations

import copy

import pytest

from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.quantities import is_purchase, offer_price

CHIPS = 8  # chips of a DGX H100
SPEC = {
    "name": "prices",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 1},
            "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}],
        }
    ],
    "sites": [{"region": "us-virginia"}],
    "phases": [{"name": "first", "start": "0 d"}, {"name": "second", "start": "180 d"}],
    "offers": [{"system": "DGX H100", "how": "on_demand", "price": "24 USD/h"}],
}  # fmt: skip


def offer_of(price: str, **other: object) -> object:
    document = copy.deepcopy(SPEC)
    document["offers"][0] |= {"price": price, **other}
    return resolve_document(document).offers[0]


@pytest.mark.parametrize(
    "price", ["3 USD/chip/h", "3 USD/gpu/h", "$3/gpu/hour", "$3/GPU-hour", "72 USD/gpu/day", "$24/hour"]
)
def test_a_rent_per_chip_is_that_of_the_system(price):
    assert offer_of(price).prices["us-virginia"] == pytest.approx(24 / 3600, rel=1e-12)


@pytest.mark.parametrize("price", ["30000 USD/chip", "$30k/gpu", "0.03M USD/accelerator", "240000 USD"])
def test_a_purchase_per_chip_is_that_of_the_system(price):
    assert offer_of(price, how="buy").prices["us-virginia"] == pytest.approx(CHIPS * 30_000, rel=1e-12)


def test_a_price_per_chip_in_the_currency_of_the_spec_is_converted():
    document = copy.deepcopy(SPEC) | {"currency": "CNY", "exchange": {"CNY": {"per_usd": 7.0}}}
    document["offers"][0]["price"] = "3 USD/gpu/h"
    assert resolve_document(document).offers[0].prices["us-virginia"] == pytest.approx(7 * 24 / 3600, rel=1e-12)


def test_prices_by_phase_and_ranges_may_be_per_chip_too():
    found = offer_of("3 USD/gpu/h", price_by_phase={"second": "2.5 USD/gpu/h"})
    assert found.phase_prices[1] == pytest.approx(20 / 3600, rel=1e-12)
    document = copy.deepcopy(SPEC)
    document["offers"][0]["price"] = "3 USD/gpu/h"
    document["prices"] = {"level": "high", "ranges": {"offers[0].price": {"high": "4 USD/gpu/h"}}}
    assert resolve_document(document).offers[0].prices["us-virginia"] == pytest.approx(32 / 3600, rel=1e-12)


@pytest.mark.parametrize(
    ("how", "price"), [("buy", "3 USD/gpu/h"), ("on_demand", "30000 USD/chip"), ("on_demand", "-3 USD/gpu/h")]
)
def test_a_price_of_the_other_kind_is_refused_at_its_place(how, price):
    with pytest.raises(SpecError) as error:
        offer_of(price, how=how)
    assert [problem.path for problem in error.value.problems] == ["offers[0].price"]


def test_an_unknown_system_is_the_only_problem_of_a_price_per_chip():
    document = copy.deepcopy(SPEC)
    document["offers"][0] |= {"system": "DGX H1000", "price": "3 USD/gpu/h"}
    with pytest.raises(SpecError) as error:
        resolve_document(document)
    assert [problem.path for problem in error.value.problems] == ["offers[0].system"]


def test_a_price_per_chip_needs_the_chips_of_its_system():
    assert offer_price("3 USD/gpu/h", bought=False, chips=8) == (pytest.approx(24 / 3600), "USD")
    with pytest.raises(ValueError, match="that of one chip"):
        offer_price("3 USD/gpu/h", bought=False)


@pytest.mark.parametrize(
    ("price", "bought"),
    [("310000 USD", True), ("$310k", True), ("30000 USD/chip", True), ("98 USD/h", False), ("3 USD/gpu/h", False)],
)
def test_a_purchase_states_no_time(price, bought):
    assert is_purchase(price) == bought


@pytest.mark.parametrize(
    ("how", "price", "of_system", "of_chip"),
    [
        ("reserved", "2.10 USD per H100 per hour", "55.04 USD/h", "6.88 USD/gpu/h"),
        ("buy", "3.1.0 USD", "310000 USD", "30000 USD/chip"),
    ],
)
def test_a_text_that_is_no_price_is_told_both_ways_to_write_one(how, price, of_system, of_chip):
    with pytest.raises(SpecError) as error:
        offer_of(price, how=how)
    assert (
        f'offers[0].price: expected a price of one system such as "{of_system}", or of one chip such as "{of_chip}", got "{price}"'
        in str(error.value)
    )
