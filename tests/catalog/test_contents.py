"""Statements of what prices of electricity hold, and the check of the catalog's prices."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from catalog.contents import PARTS, PRICES, contents_of, malformed_contents, read_contents, written
from catalog.errors import CatalogError
from catalog.lookup import Catalog
from catalog.price_check import PriceFault, price_faults
from planner.cli.main import main
from planner.facts.offers import old_prices
from planner.version import RELEASED

CATALOG = Catalog.load()


def faults(overrides=None) -> list[PriceFault]:
    return price_faults(CATALOG.with_overrides(overrides or {}))


def test_every_price_of_electricity_states_its_contents():
    assert not [fault for fault in faults() if "contents" in fault.fault]
    stated = [record for record in CATALOG.records("regions") if record.get("electricity_price") is not None]
    assert len(stated) > 30 and all(record.words("electricity_price_contents") for record in stated)


def test_every_statement_reads_back():
    for kind in PRICES:
        for record in CATALOG.records(kind):
            assert not list(malformed_contents(record)), record.name
    for text in ("energy included, delivery unknown, demand separate, levies included",):
        assert written(read_contents(text)) == text


@pytest.mark.parametrize(
    "text", ["", "energy", "energy included", "energy included, delivery maybe, demand unknown, levies unknown"]
)
def test_a_statement_that_leaves_a_part_out_is_refused(text):
    with pytest.raises(ValueError, match="expected each of energy, delivery, demand, levies"):
        read_contents(text)


def test_a_wrong_statement_of_a_user_is_refused():
    with pytest.raises(CatalogError, match="electricity_price_contents"):
        CATALOG.with_overrides({"regions/us-ohio/electricity_price_contents": {"value": "all"}}).get(
            "regions", "us-ohio"
        )


def test_what_is_not_stated_is_energy_alone():
    region = replace(CATALOG.get("regions", "us-ohio"), text={})
    assert contents_of(region, "electricity_price") == {
        part: "included" if part == "energy" else "unknown" for part in PARTS
    }
    assert contents_of(region, "electricity_delivery")["delivery"] == "included"


def test_a_price_without_contents_is_listed(tmp_path):
    own = {"regions": [{"name": "own", "text": {"timezone": "UTC"}, "figures": {"electricity_price": {"value": "0.1 USD/kWh", "note": "bill"}}}]}  # fmt: skip
    (tmp_path / "own.json").write_text(json.dumps(own))
    found = price_faults(Catalog.load([tmp_path / "own.json"]))
    assert [fault.path for fault in found if "contents" in fault.fault] == ["regions/own/electricity_price"]


def test_figures_of_one_price_that_differ_are_listed():
    found = {fault.path: fault.fault for fault in faults() if "times" in fault.fault}
    assert found["regions/es-madrid/electricity_price"] == "price_profile is 1.38 times electricity_price"
    dear = {"regions/ca-toronto/electricity_industrial": {"value": "0.2 CAD/kWh", "note": "bill"}}
    assert "regions/ca-toronto/price_profile" in {fault.path for fault in faults(dear) if "times" in fault.fault}


def test_the_command_prints_the_faults(capsys):
    assert main(["catalog", "check", "prices", "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert any(row["in doubt"] == "price_profile is 1.38 times electricity_price" for row in rows)


def test_the_command_counts_every_old_price(capsys):
    """Figures alike share a row that says how many they are; prices of offers and defaults stand one by one."""
    assert main(["catalog", "check", "prices", "--format", "json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row["in doubt"].endswith(("months old", "no date"))]
    counts = [int(row["figure"].rpartition("(")[2].rstrip(")")) if "/*/" in row["figure"] else 1 for row in rows]
    old = dict(old_prices(CATALOG, RELEASED))
    assert sum(counts) == len(old) > len(rows)
    named = {row["figure"] for row in rows if row["figure"].startswith(("offers/", "defaults/"))}
    assert named == {path for path in old if path.startswith(("offers/", "defaults/"))}
