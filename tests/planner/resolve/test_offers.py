"""An offer without a price, of a system that the catalog prices nowhere, is told one of its class."""

from __future__ import annotations

import re
import statistics

import pytest

import planner
from catalog.lookup import shipped_catalog
from catalog.units import HOUR_S
from planner.errors import SpecError
from planner.resolve.resolver import resolve_document
from planner.spec.model import parse_spec


@pytest.mark.parametrize(
    ("system", "how", "chip"),
    [
        ("MI350X 8x node", "buy", "MI355X"),
        ("Inspur NF5688M7", "buy", "H100 SXM5 80GB"),
        ("MI350X 8x node", "on_demand", "MI355X"),
    ],
)
def test_the_price_in_the_remedy_is_that_of_a_similar_chip(tiny, system, how, chip):
    document = tiny(offers=[{"system": system, "how": how}])
    document["sites"][0].pop("systems")
    with pytest.raises(SpecError) as refused:
        resolve_document(document)
    message = next(problem.message for problem in refused.value.problems if problem.path == "offers[0].price")
    amount, unit, like = re.search(r'such as "([\d.]+) (USD(?:/h)?)" \((.+) costs as much per chip\)', message).groups()
    assert unit == ("USD" if how == "buy" else "USD/h")
    catalog = shipped_catalog()
    known = [
        record.value("price")
        for record in catalog.records("offers")
        if (record.words("system"), record.words("how")) == (like, how)
    ]
    per_chip = statistics.median(known) / catalog.get("systems", like).value("chips")
    assert catalog.get("systems", like).words("chip") == chip
    asked = per_chip * catalog.get("systems", system).value("chips") * (1 if how == "buy" else HOUR_S)
    assert float(amount) == pytest.approx(asked, rel=0.05)
    document["offers"][0]["price"] = f"{amount} {unit}"
    try:
        resolve_document(document)
    except SpecError as other:  # another figure may be missing, but the price is fine
        assert not any(problem.path.startswith("offers[0].price") for problem in other.problems)


@pytest.mark.parametrize("life", ["100 ms", "29 d", "101 years"])
def test_a_service_life_has_a_sensible_length(tiny, life):
    spec = tiny()
    spec["offers"][0]["life"] = life
    with pytest.raises(SpecError, match=r"offers\[0\]\.life: expected a time from 30 d to 100 years"):
        parse_spec(spec)


def test_the_shortest_service_life_is_planned_and_verified(tiny):
    spec = tiny()
    spec["offers"][0]["life"] = "30 d"
    assert planner.solve(spec).has_answer


@pytest.mark.parametrize("system", [name for name in shipped_catalog().names("systems") if name.startswith("TPU")])
def test_what_only_its_cloud_rents_out_can_neither_be_bought_nor_owned(tiny, system):
    bought = tiny(offers=[{"system": system, "how": "buy", "price": "100M USD"}])
    bought["sites"][0].pop("systems")
    with pytest.raises(SpecError, match=r"offers\[0\]\.how: .*instance of Google's cloud.*on_demand"):
        resolve_document(bought)
    owned = {"system": system, "region": bought["sites"][0]["region"], "count": 1, "age": "1 year", "price": "9M USD"}
    with pytest.raises(SpecError, match=r"owned\[0\]\.system: .*instance of Google's cloud.*rented"):
        resolve_document(tiny(owned=[owned]))
