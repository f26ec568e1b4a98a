"""Prices of systems from their parts, and porting by hours and rate: by hand, and against stated prices."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from models.components import ChipParts, price_at_yield
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.document import edited
from tests.conftest import TINY

PARTS = {
    "dies": "300 USD",
    "die_yield": 0.6,
    "hbm": "HBM3, domestic supplier",
    "package": "700 USD",
    "package_yield": 0.9,
    "board": "1500 USD",
    "margin": 0.5,
    "server": "70000 USD",
}


def spec(parts: dict[str, Any], *edits: tuple[str, Any]) -> dict[str, Any]:
    offer = {"system": "DGX H100", "how": "buy", "components": parts}
    return edited(copy.deepcopy(TINY), [("offers", [offer]), *edits])


def price(parts: dict[str, Any]) -> float:
    return resolve_document(spec(parts)).offers[0].prices["us-virginia"]


@given(dies=st.floats(1, 1e4), memory=st.floats(1, 1e4), good=st.floats(0.05, 1.0), packed=st.floats(0.05, 1.0))
def test_a_better_yield_never_costs_more_and_all_good_is_the_sum(dies, memory, good, packed):
    found = ChipParts(dies, good, memory, 10.0, packed, 5.0).price
    assert found >= ChipParts(dies, 1.0, memory, 10.0, 1.0, 5.0).price * (1 - 1e-12)
    assert ChipParts(dies, 1.0, memory, 10.0, 1.0, 5.0).price == pytest.approx(dies + memory + 15.0)
    assert price_at_yield(memory, good, good) == pytest.approx(memory)


def test_the_price_of_a_node_by_hand():
    """Eight chips of 80 GB at 1,420 USD for 128 GB; at the yield of others the same memory costs 0.68/0.89 of it."""
    memory = 80 / 128 * 1420
    chip = (300 / 0.6 + memory + 700) / 0.9 + 1500
    assert price(PARTS) == pytest.approx(8 * chip * 1.5 + 70000)
    better = (300 / 0.6 + memory * 0.68 / 0.89 + 700) / 0.9 + 1500
    assert price({**PARTS, "hbm_yield": 0.89}) == pytest.approx(8 * better * 1.5 + 70000)
    own = {name: value for name, value in PARTS.items() if name != "hbm"}
    assert price({**own, "hbm_price": "11.09375 USD/GB"}) == pytest.approx(price(PARTS))


def test_a_plan_from_parts_equals_one_at_their_price_and_lists_them():
    parts = planner.solve(spec(PARTS))
    assert planner.verify_plan(parts) == []
    stated = copy.deepcopy(TINY)
    stated["offers"][0]["price"] = f"{price(PARTS)!r} USD"
    assert parts.objective["value"] == pytest.approx(planner.solve(stated).objective["value"], rel=1e-9)
    listed = {a["path"]: a["reason"] for a in parts["assumptions"]}
    assert listed["components/HBM3, domestic supplier/price"].startswith("claimed")
    assert {"offers[0].components", "offers[0].components.die_yield"} <= set(listed)


@pytest.mark.parametrize(
    "edits, path, words",
    [
        ([("offers[0].price", "1 USD")], "offers[0]", "remove it"),
        ([("offers[0].how", "reserved")], "offers[0]", "remove it"),
        ([("offers[0].components.hbm", "HBM9")], "offers[0].components.hbm", "unknown component"),
        ([("offers[0].components.hbm", None)], "offers[0].components", "hbm_price"),
        ([("offers[0].components.die_yield", 0)], "offers[0].components.die_yield", "greater"),
    ],
)
def test_what_cannot_be_is_refused(edits, path, words):
    with pytest.raises(SpecError) as caught:
        resolve_document(spec(PARTS, *edits))
    assert any(p.path == path and words in p.message for p in caught.value.problems), caught.value


def test_porting_by_hours_and_rate_is_their_product():
    entry = {"family": "hopper", "hours": 120, "rate": "100 USD/h"}
    (facts,) = resolve_document(edited(copy.deepcopy(TINY), [("porting", [entry])])).porting
    assert facts.cost == pytest.approx(12000.0)
    with pytest.raises(SpecError, match="hours"):
        resolve_document(edited(copy.deepcopy(TINY), [("porting", [{**entry, "cost": "1 USD"}])]))
