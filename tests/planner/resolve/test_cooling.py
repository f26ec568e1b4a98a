"""PUE by what cools a system and by climate: the table of the catalog, which figure wins, what the plan says, and what power and carbon count."""

from __future__ import annotations

import pytest

from catalog.lookup import shipped_catalog
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from planner.verify.fleet.options import FleetOptions, key_of

AIR, LIQUID, EITHER = "DGX H100", "GB200 NVL72", "DGX B200"
VIRGINIA = (1.155, 1.117)  # climate 4A: by air, by liquid
UPS, WIRES = (
    (0.90, 0.945, 0.99),
    (0.0, 0.01, 0.02),
)  # efficiency and losses of large halls in the table of Lei and Masanet
SHARE, WARM_WATER = (
    0.749,
    0.036,
)  # of the heat in water (NVIDIA and Vertiv); cooling over load of a hall of that kind (NREL)


def document(systems=(AIR, LIQUID, EITHER), offers=(), site=(), **changes):
    return {
        "name": "halls", "horizon": {"years": 1},
        "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 5},
            "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "100 ms"}}, "precision": ["fp8"], "disaggregation": "never",
        }],
        "sites": [{"region": "us-virginia", "topologies": ["scale-up"], "electricity_price": "0.10 USD/kWh"} | dict(site)],
        "offers": [*({"system": name, "how": "buy", "price": "300000 USD"} for name in systems), *offers],
    } | changes  # fmt: skip


def pues(spec):
    """Return the PUE of each fleet option by system and way to obtain, of the program and of the checks."""
    problem = resolve_document(spec)
    checked, found = FleetOptions(problem), {}
    for option in find_candidates(problem).fleet_options:
        row = {
            "site": option.site.region,
            "system": option.system.name,
            "how": option.offer.how,
            "offer": option.offer.path,
        }
        mine = checked[key_of(row | {"topology": option.fabric, "network_size": None})]
        assert (
            mine.pue == option.pue and mine.idle_at_meter_w == option.idle_at_meter_w == option.idle_it_w * option.pue
        )
        found[option.system.name, option.offer.how] = option.pue
    return found


def test_each_system_has_the_pue_of_what_cools_it():
    air, liquid = VIRGINIA
    assert pues(document()) == {(AIR, "buy"): air, (LIQUID, "buy"): liquid, (EITHER, "buy"): air}


def test_a_hall_with_liquid_alone_cools_by_liquid_what_takes_either_but_not_what_a_provider_has():
    rent = {"system": EITHER, "how": "on_demand", "price": "40 USD/h"}
    found = pues(document([LIQUID, EITHER], [rent], {"cooling": ["liquid"]}))
    air, liquid = VIRGINIA
    assert found == {(LIQUID, "buy"): liquid, (EITHER, "buy"): liquid, (EITHER, "on_demand"): air}


@pytest.mark.parametrize(
    ("site", "overrides"),
    [
        ({"pue": 1.4}, {}),
        ({}, {"regions/us-virginia/pue": {"value": "1.4", "note": "metered"}}),
        ({}, {"defaults/pue_default/value": {"value": "1.4", "note": "all of our halls"}}),
    ],
)
def test_a_stated_pue_always_wins_and_needs_no_note(site, overrides):
    spec = document(site=site, overrides=overrides)
    assert set(pues(spec).values()) == {1.4}
    problem = resolve_document(spec)
    assert not [note for note in problem.notes if note.message.code == "cooling.pue"]
    assert not [row for row in problem.assumptions if ".pue." in row.path]


def test_a_region_without_a_climate_has_the_default():
    problem = resolve_document(document(site={"region": "cn-national"}))
    assert (problem.sites[0].pue.air, problem.sites[0].pue.liquid) == (1.3, 1.3)
    assert "sites[0].pue" in {row.path for row in problem.assumptions}


def test_the_plan_names_each_pue_in_use_with_its_place_and_source():
    spec = document([AIR])
    spec["sites"].append(spec["sites"][0] | {"region": "sg"})
    problem = resolve_document(spec)
    (note,) = [note.message for note in problem.notes if note.message.code == "cooling.pue"]
    assert "us-virginia (zone 4A) air 1.155; sg (zone 1A) air 1.227" in note.text() and "Lei and Masanet" in note.text()
    booked = {row.path: row for row in problem.assumptions if ".pue" in row.path}
    assert set(booked) == {"sites[0].pue.air", "sites[1].pue.air"}
    assert booked["sites[1].pue.air"].scope == (("energy", "sg", AIR),)
    assert {"climates/4A/pue_air", "climates/1A/pue_air"} <= {row.path for row in problem.citations}
    assert not [row for row in problem.citations if row.path.endswith("pue_liquid")]


def test_of_more_than_two_sites_the_plan_names_the_range():
    spec = document([AIR])
    spec["sites"] += [spec["sites"][0] | {"region": region} for region in ("sg", "us-oregon")]
    (note,) = [note.message for note in resolve_document(spec).notes if note.message.code == "cooling.pues"]
    assert "PUE of 1.139 to 1.227 at 3 sites" in note.text()


def test_power_and_carbon_of_operation_follow_the_cooling():
    """Idle power at the meter, and the carbon of a year of it, over those of the same system with a PUE of 1: the PUE of what cools it."""
    form, plain = (
        formulate(problem, find_candidates(problem))
        for problem in map(resolve_document, (document(), document(site={"pue": 1})))
    )
    air, liquid = VIRGINIA
    factors = {AIR: air, LIQUID: liquid, EITHER: air}
    for option, mine, other in zip(
        form.fleet_options, form.data.holding_power_w, plain.data.holding_power_w, strict=True
    ):
        assert mine == pytest.approx(other * factors[option.system.name], rel=1e-12)
    life = 5  # years
    mine, other = (f.data.holding_cost["carbon_kg"] for f in (form, plain))
    for option, here, there in zip(form.fleet_options, mine, other, strict=True):
        made = option.system.embodied_kg / life
        assert here - made == pytest.approx((there - made) * factors[option.system.name], rel=1e-9)


def test_a_system_without_published_cooling_is_cooled_as_racks_of_its_power_are():
    problem = resolve_document(document(["Gaudi3 8x node"]))
    assert problem.systems["Gaudi3 8x node"].cooling == ("air",)
    assert "systems/Gaudi3 8x node/cooling" in {row.path for row in problem.assumptions}
    rented = [{"system": "AWS p5.48xlarge", "how": "on_demand", "price": "50 USD/h"}]
    assert not [row for row in resolve_document(document([], rented)).assumptions if row.path.endswith("/cooling")]


def liquid_of(air, ups, wires):
    """Mix the cooling of warm water and of air; losses of the power supply as in the table."""
    losses = 1 / ups - 1 + wires
    return 1 + losses + SHARE * WARM_WATER + (1 - SHARE) * (air - 1 - losses)


def test_the_table_of_climates_is_whole_and_liquid_follows_from_air():
    catalog = shipped_catalog()
    for record in catalog.records("climates"):
        air, liquid = record.figure("pue_air"), record.figure("pue_liquid")
        assert 1 < air.low < air.number < air.high
        assert liquid.number < air.number
        assert liquid.number == pytest.approx(liquid_of(air.number, UPS[1], WIRES[1]), abs=1e-3)
        assert liquid.low == pytest.approx(liquid_of(air.low, UPS[2], WIRES[0]), abs=1e-3)
        assert liquid.high == pytest.approx(liquid_of(air.high, UPS[0], WIRES[2]), abs=1e-3)
    hot, cold = (catalog.get("climates", zone).value("pue_air") for zone in ("1A", "8"))
    assert hot - cold > 0.05
    assert [region.name for region in catalog.records("regions") if not region.words("climate")] == ["cn-national"]


def test_what_operators_report_lies_in_the_range_of_the_climates():
    catalog = shipped_catalog()
    least = min(record.figure("pue_liquid").low for record in catalog.records("climates"))
    most = max(record.figure("pue_air").high for record in catalog.records("climates"))
    reported = [figure.number for region in catalog.records("regions") if (figure := region.get("pue_reported"))]
    assert len(reported) == 18
    assert all(least <= pue <= most for pue in reported)


def test_what_is_rented_alone_needs_no_note():
    rent = {"system": AIR, "how": "on_demand", "price": "40 USD/h"}
    problem = resolve_document(document([], [rent]))
    assert not [note for note in problem.notes if note.message.code == "cooling.pue"]
    assert {row.path for row in problem.assumptions if ".pue" in row.path} == {"sites[0].pue.air"}
