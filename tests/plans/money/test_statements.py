"""A statement of what a price holds changes no price that was complete, wherever the price comes from; what is stated twice is refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from catalog.lookup import Catalog
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from tests.conftest import few_of
from tests.plans.one_server import question, solved

PARTS = ("energy", "delivery", "demand", "levies")
REGIONS = [
    region.name
    for region in Catalog.load().records("regions")
    if {"electricity_price", "price_profile"} & set(region.figures) or region.words("export_zone") == "CN"
]
FILE = {"own.csv": {"start": "2027-01-01T00", "columns": {"price_usd_per_mwh": [40.0] * 8760}}}
SOURCES: dict[str, dict[str, Any]] = {
    "catalog": {},
    "price": {"electricity_price": "0.05 USD/kWh"},
    "price and delivery": {"electricity_price": "0.05 USD/kWh", "delivery": "0.01 USD/kWh"},
    "price and peaks": {"electricity_price": "0.05 USD/kWh", "electricity": {"demand_charge": "9 USD/kW-month"}},
    "file": {"hourly": "own.csv"},
    "file and delivery": {"hourly": "own.csv", "delivery": "0.02 USD/kWh"},
    "file, delivery and peaks": {"hourly": "own.csv", "delivery": "0.02 USD/kWh", "electricity": {"demand_charge": "9 USD/kW-month"}},
}  # fmt: skip


def asked(region: str, source: str, **site: Any) -> dict[str, Any]:
    """Ask for a server at a site whose price comes from one of the sources."""
    document = question(overrides={}, limits={"export_control": False}, series=copy.deepcopy(FILE))
    price = copy.deepcopy(SOURCES[source])
    document["sites"] = [{"region": region, "systems": ["DGX H100"], **price, **site}]
    if "hourly" not in SOURCES[source]:
        del document["series"]
    return document


def resolved(document: dict[str, Any]) -> Any:
    return resolve_document(document).sites[0]


@settings(max_examples=few_of(60), deadline=None)
@given(st.sampled_from(REGIONS), st.sampled_from(sorted(SOURCES)), st.sets(st.sampled_from(PARTS), min_size=1))
def test_a_statement_changes_no_price_that_was_complete(region, source, parts):
    before = resolved(asked(region, source))
    assume(not before.contents.unknown)
    known = dict(before.contents.states)
    stated = {part: known[part] for part in parts if not (part == "delivery" and "delivery" in SOURCES[source])}
    assume(stated)
    after = resolved(asked(region, source, contents=stated))
    assert after.price_per_j.tolist() == before.price_per_j.tolist()
    assert dict(after.contents.states) == known
    assert (after.contents.demand_by_peak, after.contents.delivered_per_j) == (
        before.contents.demand_by_peak,
        before.contents.delivered_per_j,
    )
    if before.electricity is not None:
        assert after.electricity.demand_charge == before.electricity.demand_charge


@settings(max_examples=few_of(60), deadline=None)
@given(
    st.sampled_from(REGIONS), st.sampled_from(sorted(SOURCES)), st.floats(0.001, 0.2),
    st.one_of(st.sampled_from(["included", "separate", "unknown"]), st.floats(0.001, 0.2)),
)  # fmt: skip
def test_delivery_that_is_stated_twice_is_refused(region, source, charge, again):
    stated = again if isinstance(again, str) else f"{again:.6f} USD/kWh"
    document = asked(region, source, delivery=f"{charge:.6f} USD/kWh", contents={"delivery": stated})
    with pytest.raises(SpecError, match=r"sites\[0\].*delivery is stated twice"):
        resolve_document(document)


def test_the_plan_stays_too():
    """The market of Virginia with its delivery, said or not."""
    plain = asked("us-virginia", "catalog")
    told = asked("us-virginia", "catalog", contents=dict(resolved(plain).contents.states))
    before, after = solved(plain), solved(told)
    assert after["costs"] == before["costs"] and after.value == before.value
