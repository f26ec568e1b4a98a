"""What a system needs of a hall, from its record: racks, power of a rack, cooling; and how many share one."""

from __future__ import annotations

import math

import pytest

from catalog.lookup import shipped_catalog
from planner.errors import SpecError
from planner.problem.facility import CANNOT_COOL, RACK_TOO_WEAK, HallFacts, RackFacts
from planner.resolve.facility import rack_facts
from planner.resolve.ledger import Ledger
from planner.resolve.resolver import resolve_document


def racks(name: str, power_w: float) -> tuple[RackFacts, Ledger]:
    ledger = Ledger(shipped_catalog())
    return rack_facts(ledger.catalog.get("systems", name), power_w, ledger), ledger


def test_nodes_share_a_rack_as_the_vendor_fills_it():
    found, ledger = racks("DGX H100", 10_200.0)
    assert found == RackFacts(("air",), 10_200.0, racks=1, in_rack=4)  # 40.8 kW a rack
    assert not ledger.assumptions


def test_how_many_nodes_share_a_rack_is_assumed_where_it_is_not_published():
    found, ledger = racks("DGX A100 80GB", 6_500.0)
    assert found.in_rack == 4
    assert list(ledger.assumptions) == ["systems/DGX A100 80GB/racks"]


@pytest.mark.parametrize(("name", "power_w"), [("GB200 NVL72", 120e3), ("GB300 NVL72", 132e3)])
def test_a_rack_is_a_rack(name, power_w):
    assert racks(name, power_w)[0] == RackFacts(("liquid",), power_w, racks=1, in_rack=1)


def test_a_system_of_many_racks_needs_its_fullest():
    found, _ = racks("CloudMatrix 384", 559e3)
    assert (found.racks, found.in_rack, found.least_rack_w) == (16, 1, 45e3)


def test_either_cooling_will_do_where_both_are_sold():
    assert racks("DGX B200", 14.3e3)[0].cooling == ("air", "liquid")


@pytest.mark.parametrize(("power_w", "cooling"), [(10e3, "air"), (60e3, "liquid")])
def test_cooling_that_is_not_published_follows_from_the_power_of_the_rack_and_is_listed(power_w, cooling):
    found, ledger = racks("Gaudi3 8x node", power_w)
    assert found.cooling == (cooling,)
    assert ledger.assumptions["systems/Gaudi3 8x node/cooling"].value == cooling


NODE, RACK = RackFacts(("air",), 10e3, racks=1, in_rack=4), RackFacts(("liquid",), 120e3)


@pytest.mark.parametrize(
    ("rack_w", "share"),
    [(math.inf, 1 / 4), (40e3, 1 / 4), (39.9e3, 1 / 3), (20e3, 1 / 2), (10e3, 1.0)],
)
def test_the_power_of_a_rack_thins_out_its_nodes(rack_w, share):
    assert HallFacts(rack_w=rack_w).racks_per_system(NODE) == share


@pytest.mark.parametrize(
    ("hall", "rack", "refusal"),
    [
        (HallFacts(), RACK, ""),
        (HallFacts(cooling=("air",)), RACK, CANNOT_COOL),
        (HallFacts(cooling=("liquid",)), RACK, ""),
        (HallFacts(cooling=("liquid",)), NODE, CANNOT_COOL),
        (HallFacts(rack_w=100e3), RACK, RACK_TOO_WEAK),
        (HallFacts(rack_w=120e3), RACK, ""),
        (HallFacts(rack_w=9e3), NODE, RACK_TOO_WEAK),
        (HallFacts(positions=0), NODE, ""),  # how many fit is for the program to decide
    ],
)
def test_a_hall_refuses_what_it_cannot_cool_or_feed(hall, rack, refusal):
    assert hall.refusal(rack) == refusal


def test_racks_are_looked_up_only_for_a_hall_that_states_a_limit(tiny):
    free = resolve_document(tiny())
    assert free.systems["DGX H100"].rack is None
    assert not any("rack" in citation.path for citation in free.citations)
    document = tiny()
    document["sites"][0]["rack_positions"] = 3
    limited = resolve_document(document)
    assert limited.systems["DGX H100"].rack is not None
    assert any(citation.path == "systems/DGX H100/rack_power_w" for citation in limited.citations)


def test_a_hall_that_states_all_there_is_limits_nothing(tiny):
    document = tiny()
    document["sites"][0]["cooling"] = ["liquid", "air"]
    assert resolve_document(document).systems["DGX H100"].rack is None


def test_racks_of_a_system_that_is_larger_than_one_must_be_known(tiny):
    document = tiny(offers=[{"system": "Atlas 900 SuperCluster", "how": "buy", "price": "100M USD"}])
    document["sites"][0] = {"region": "us-virginia", "rack_positions": 300}
    document["overrides"] = {"systems/Atlas 900 SuperCluster/power_w": {"value": "6 MW", "note": "a guess"}}
    with pytest.raises(
        SpecError, match=r'offers\[0\].system: systems: "Atlas 900 SuperCluster" has no figure racks.*overrides'
    ):
        resolve_document(document)
    document["overrides"] |= {"systems/Atlas 900 SuperCluster/racks": {"value": 140, "note": "64 chips in each"}}
    assert resolve_document(document).systems["Atlas 900 SuperCluster"].rack.racks == 140
