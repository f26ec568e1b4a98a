"""Building costs are brought to the year of the release, and idle power is that of the system where it was measured."""

from __future__ import annotations

import pytest

from catalog.lookup import shipped_catalog
from planner.resolve.resolver import resolve_document
from planner.version import RELEASED
from tests.planner.facts.base import spec

BUYING = [{"system": "DGX H100", "how": "buy"}, {"system": "DGX B200", "how": "buy"}]
HERE = "regions/us-virginia/construction_cost"


def site(**changes):
    return resolve_document(spec(offers=BUYING, **changes)).sites[0]


def test_a_building_cost_grows_from_its_year():
    """11.7 USD/W of 2025 (Cushman & Wakefield) at 5.5 % a year (Turner & Townsend); Johor's 10 USD/W are of 2023."""
    assert shipped_catalog().get("defaults", "facility_cost_year").value("value") == int(RELEASED[:4]) == 2026
    assert site().facility_cost_per_w == pytest.approx(11.7 * 1.055)
    assert site(sites=[{"region": "my-johor"}]).facility_cost_per_w == pytest.approx(10 * 1.055**3)
    assert site(sites=[{"region": "ca-toronto"}]).facility_cost_per_w == pytest.approx(11.7 * 1.055)


def test_a_building_cost_of_the_user_stays():
    assert site(overrides={HERE: {"value": "9 USD/W", "note": "our bid"}}).facility_cost_per_w == pytest.approx(9)


def test_the_growth_can_be_overridden_and_is_told():
    growth = {"defaults/facility_cost_growth/value": {"value": 0.1, "note": "our builder"}}
    problem = resolve_document(spec(offers=BUYING, overrides=growth))
    assert problem.sites[0].facility_cost_per_w == pytest.approx(11.7 * 1.1)
    (told,) = [row for row in problem.assumptions if row.path == "sites[0].construction_cost"]
    assert "2025" in told.reason and "10.0%" in told.reason


def idle(name, **changes):
    system = resolve_document(spec(offers=BUYING, **changes)).systems[name]
    return system.idle_w / system.power_w


def test_idle_power_is_measured_or_assumed():
    """2.78 kW of 10.2 kW before runs of MLPerf Training v4.0 began; no server with B200 was metered at rest."""
    assert idle("DGX H100") * 10.2 == pytest.approx(2.78, rel=0.005)
    assert idle("DGX B200") == 0.25


def test_the_share_of_a_user_counts_for_every_system_unless_one_is_stated():
    every = {"defaults/idle_power_fraction/value": {"value": 0.4, "note": "metered"}}
    assert idle("DGX H100", overrides=every) == idle("DGX B200", overrides=every) == 0.4
    own = {**every, "systems/DGX H100/idle_fraction": {"value": 0.2, "note": "metered"}}
    assert (idle("DGX H100", overrides=own), idle("DGX B200", overrides=own)) == (0.2, 0.4)
