"""Our data: every figure is cited, in its unit, and in the range that physics and markets allow."""

import json
import re
from pathlib import Path
from statistics import fmean
from zoneinfo import ZoneInfo

import pytest

from catalog import Catalog, UnknownName
from catalog.errors import name_key
from catalog.exchange import usd_of_one
from catalog.figures import CONFIDENCES, KINDS
from catalog.files import DATA
from catalog.schemas import SCHEMAS
from catalog.units import BILLION, GIGA, KWH_J, MEGA, MONTH_S, TERA, is_money, si_unit

CATALOG = Catalog.load()
RECORDS = [r for kind in SCHEMAS for r in CATALOG.records(kind)]
FIGURES = [(r, n, f) for r in RECORDS for n, f in r.figures.items()]
ANNOUNCEMENTS = (
    "jiuzhang-ai-factory",
    "zhu-yibo-waic-2025",
    "zuoyebang-compute-network",
    "yuntian-lifei-zhanjiang-2026",
    "orientdeck-national-llm-infrastructure",
)
LABELS = json.loads((Path(__file__).parent / "catalog_labels.json").read_text())


def where(record, name):
    return f"{record.kind}/{record.name}/{name}"


def test_there_is_data_of_every_kind():
    least = {
        "chips": 120,
        "systems": 104,
        "fabrics": 30,
        "architectures": 155,
        "regions": 56,
        "climates": 16,
        "tariffs": 35,
        "offers": 300,
        "wan": 200,
        "lines": 4,
        "power_curves": 30,
        "anchors": 6,
        "engines": 6,
        "components": 2,
        "defaults": 30,
        "constants": 30,
    }
    assert set(least) == set(SCHEMAS)
    for kind, count in least.items():
        assert len(CATALOG.records(kind)) >= count, kind


def test_every_figure_is_cited_with_a_source_that_resolves():
    for record in RECORDS:
        for name, figure in (*record.figures.items(), *record.claimed.items()):
            assert figure.source, where(record, name)
            assert figure.kind in KINDS and figure.confidence in CONFIDENCES, where(record, name)
            for id in figure.source:
                source = CATALOG.source(id)
                assert source.title and source.confidence in CONFIDENCES, where(record, name)
            if figure.source == ("unconfirmed",):
                assert figure.confidence == "C" and figure.kind in ("assumed", "claimed", "derived"), where(
                    record, name
                )


def test_a_figure_has_the_unit_of_its_schema():
    for record, name, figure in FIGURES:
        spec = SCHEMAS[record.kind].figure(name)
        assert spec is not None, where(record, name)
        if spec.units:
            allowed = set(spec.units) | {"CNY" + u[3:] for u in spec.units if u.startswith("USD")}
            if record.kind == "tariffs":
                allowed = {record.words("currency") + u[3:] if u.startswith("USD") else u for u in spec.units}
            if name == "electricity_industrial":  # in the currency of its source, for which there is a rate
                allowed |= (
                    {figure.unit} if f"exchange_{figure.unit[:3].lower()}" in CATALOG.names("defaults") else set()
                )
            assert figure.unit in allowed, where(record, name)


def test_the_unit_of_a_figure_reads_back_as_itself():
    """So that a plan can state its figures again by value and unit."""
    for record, name, figure in FIGURES:
        assert si_unit(figure.unit) == (figure.unit, 1.0), where(record, name)


def test_what_is_only_claimed_stays_apart():
    for record in RECORDS:
        assert all(f.kind != "claimed" for f in record.figures.values()), record.name
        assert all(f.kind == "claimed" and f.source[0] in ANNOUNCEMENTS for f in record.claimed.values()), record.name
        if record.announced_only:
            assert not record.figures, record.name
    assert sum(r.announced_only for r in RECORDS) >= 25


def test_only_networks_between_systems_are_bought_as_networks():
    """Links, adapters, memory, prices and services have kinds of their own, and none of them ports and switches with prices."""
    known = dict(SCHEMAS["fabrics"].text)["family"].choices
    for record in CATALOG.records("fabrics"):
        assert record.words("family") in known, record.name
        if record.words("family") not in ("infiniband", "ethernet"):
            assert record.get("switch_price") is None, record.name


def test_both_readings_of_an_announced_chip_are_kept():
    chip = CATALOG.get("chips", "MI455X")
    rates = {name: chip.figure(name) for name in ("fp8_flop_per_s", "fp4_flop_per_s", "hbm_bytes_per_s")}
    assert all(figure.low < figure.high for figure in rates.values())
    assert (rates["fp4_flop_per_s"].low, rates["fp4_flop_per_s"].high) == (20e15, 40e15)


@pytest.mark.parametrize("name", [
    "MI325X node", "8x MI350X", "AMD Helios", "Trn3 UltraServer", "DGX Station", "RTX PRO server", "p5.4xlarge", "u-p6e-gb300x72", "p6-b300.48xlarge",
    "Standard_ND128isr_GB300_v6", "a4x-maxgpu-4g-metal", "a4-highgpu-8g", "Standard_NC40ads_H100_v5", "a3-highgpu-4g", "g7e.2xlarge",
])  # fmt: skip
def test_systems_of_2026_have_chips_links_and_a_power(name):
    system = CATALOG.get("systems", name)
    chip = CATALOG.get("chips", system.words("chip"))
    assert system.value("chips") >= 1 and chip.value("hbm_bytes") > 0
    missing = system.get("power_w") is None and chip.get("tdp_w") is None
    assert not missing or chip.name in ("MI455X", "Trainium3"), name  # the makers of these two publish none


def test_chips_with_four_bits_say_whose_block_scales_they_apply():
    """A recipe in MX or NV formats needs them (`SystemFacts.trains`); no chip without 8 or 4 bits has any."""
    formats = {"mxfp8", "mxfp4", "nvfp4"}
    for chip in CATALOG.records("chips"):
        scaled = {name.strip() for name in (chip.words("block_scaled") or "").split(",") if name.strip()}
        assert scaled <= formats, chip.name
        if chip.get("fp4_flop_per_s"):
            assert scaled & {"mxfp4", "nvfp4"}, chip.name
        elif not chip.get("fp8_flop_per_s") and chip.words("family") != "bwrtx":
            assert not scaled, chip.name


def test_names_and_aliases_are_unique_within_a_kind():
    for kind in SCHEMAS:
        seen = {}
        for record in CATALOG.records(kind):
            for label in {name_key(n) for n in (record.name, *record.aliases)}:
                assert label not in seen, f"{kind}: {label} is {seen.get(label)} and {record.name}"
                seen[label] = record.name


@pytest.mark.parametrize(("kind", "label", "name"), LABELS["known"])
def test_labels_of_published_measurements_resolve(kind, label, name):
    assert CATALOG.get(kind, label).name == name


@pytest.mark.parametrize(("kind", "label"), LABELS["unknown"])
def test_what_has_no_record_is_not_guessed(kind, label):
    with pytest.raises(UnknownName):
        CATALOG.get(kind, label)


def test_references_between_records_resolve():
    for kind, schema in SCHEMAS.items():
        for key, spec in schema.text.items():
            for record in CATALOG.records(kind) if spec.refers else ():
                value = record.words(key)
                if value and ":" not in value:
                    assert CATALOG.get(spec.refers, value).name == value, where(record, key)
    for record in CATALOG.records("wan"):
        for end in record.text.get("ends", ()):
            assert CATALOG.get("regions", end).name == end


# Ranges wide enough for everything ever sold, narrow enough that a slip of a prefix falls out.
RANGES = {
    ("chips", r"(bf16|fp16|fp8|fp4|int8|int4|tf32)_flop_per_s"): (0.5 * TERA, 40_000 * TERA),
    ("chips", "fp32_flop_per_s"): (1 * TERA, 1000 * TERA),
    ("chips", "hbm_bytes"): (4 * GIGA, 800 * GIGA),
    ("chips", "hbm_bytes_per_s"): (15 * GIGA, 25 * TERA),
    ("chips", "scaleup_bytes_per_s"): (20 * GIGA, 2.5 * TERA),
    ("chips", "tdp_w"): (8, 2000),
    ("chips", "price"): (200, 70_000),
    ("chips", "rent_.*"): (0.5 / 3600, 15 / 3600),
    ("chips", "embodied_carbon_kg"): (50, 1000),
    ("systems", "nic_bytes_per_s"): (1 * GIGA, 300 * GIGA),
    ("systems", "power_w"): (10, 15 * MEGA),
    ("fabrics", "port_bytes_per_s"): (20 * GIGA, 1 * TERA),
    ("fabrics", "switch_price"): (10_000, 300_000),
    ("fabrics", "link_price_.*"): (500, 10_000),
    ("fabrics", "hop_latency_s|alpha_s"): (0, 20e-6),
    ("architectures", "(total|active)_parameters"): (0.25 * BILLION, 3000 * BILLION),
    ("architectures", "mmlu.*|gpqa.*|swe.*"): (0.1, 1),
    ("regions", "electricity_price"): (0.02 / KWH_J, 0.3 / KWH_J),
    ("regions", "carbon_intensity"): (0.001 / KWH_J, 0.9 / KWH_J),
    ("regions", "pue_reported"): (1.0, 2.0),
    ("climates", "pue_.*"): (1.0, 1.5),
    ("regions", "construction_cost"): (5, 20),
    ("regions", "latitude"): (-60, 70),
    ("regions", "longitude"): (-180, 180),
    ("tariffs", "multiplier_.*"): (0.1, 3),
    ("wan", "rtt_s"): (0.0002, 0.5),
    ("wan", "price_per_byte"): (0.01 / GIGA, 1 / GIGA),
    ("lines", "rtt_factor"): (1, 2),
    ("lines", "availability"): (0.99, 0.99999),
    ("lines", "unit_bytes_per_s"): (1 * MEGA, 10 * GIGA),
    ("lines", "unit_price"): (5 / MONTH_S, 100_000 / MONTH_S),
}


@pytest.mark.parametrize(("kind", "pattern"), RANGES)
def test_figures_are_of_the_size_that_exists(kind, pattern):
    low, high = RANGES[kind, pattern]
    found = [(r, n, f) for r, n, f in FIGURES if r.kind == kind and re.fullmatch(pattern, n)]
    assert found
    for record, name, figure in found:
        usd = usd_of_one(CATALOG, figure) if is_money(figure.unit) else 1.0
        assert usd is not None and low <= figure.number * usd <= high, f"{where(record, name)}: {figure.printed}"


def test_offers_cost_what_a_chip_costs_times_its_count():
    for offer in CATALOG.records("offers"):
        price = offer.figure("price")
        bought = offer.words("how") == "buy"
        assert price.unit[3:] == ("" if bought else "/s"), offer.name
        usd = usd_of_one(CATALOG, price)
        assert usd is not None, offer.name
        per_chip = price.number * usd / CATALOG.get("systems", offer.words("system")).value("chips")
        low, high = (10_000, 100_000) if bought else (0.3 / 3600, 60 / 3600)
        assert low <= per_chip <= high, offer.name


def test_an_offer_of_a_foreign_region_is_not_one_for_anywhere():
    for offer in CATALOG.records("offers"):
        if offer.words("provider_region"):
            assert offer.words("region"), offer.name


def test_a_region_knows_its_clock_and_profiles_have_one_value_per_hour():
    for region in CATALOG.records("regions"):
        ZoneInfo(region.words("timezone"))
        assert region.words("residency") and region.words("export_zone"), region.name
        for name in ("price_profile", "carbon_profile"):
            if region.get(name):
                assert len(region.series(name)) == 24, region.name


# Annual means as the collection's own index prints them: USD/MWh of 2024, g/kWh of 2022.
@pytest.mark.parametrize(
    ("region", "profile", "mean", "per"),
    [
        ("us-virginia", "price_profile", 36.18, 1e-6 * KWH_J * 1e3),
        ("us-texas", "price_profile", 28.09, 1e-6 * KWH_J * 1e3),
        ("us-california", "price_profile", 40.67, 1e-6 * KWH_J * 1e3),
        ("sg", "price_profile", 121.67, 1e-6 * KWH_J * 1e3),
        ("us-virginia", "carbon_profile", 363, 1000 * KWH_J),
        ("us-texas", "carbon_profile", 347, 1000 * KWH_J),
        ("us-california", "carbon_profile", 256, 1000 * KWH_J),
        ("us-oregon", "carbon_profile", 55, 1000 * KWH_J),
        ("us-iowa", "carbon_profile", 441, 1000 * KWH_J),
        ("us-georgia", "carbon_profile", 423, 1000 * KWH_J),
        ("us-arizona", "carbon_profile", 575, 1000 * KWH_J),
    ],
)
def test_a_typical_day_has_the_mean_of_its_year(region, profile, mean, per):
    if profile == "price_profile":
        per = 1000 * KWH_J  # USD/J to USD/MWh: 3.6e9 J
    assert fmean(CATALOG.get("regions", region).series(profile)) * per == pytest.approx(mean, rel=0.01)


def test_solar_shows_in_california_at_noon():
    """20 h UTC is 12 h Pacific standard time: price and carbon are below the evening peak at 3 h UTC."""
    region = CATALOG.get("regions", "us-california")
    for name in ("price_profile", "carbon_profile"):
        day = region.series(name)
        assert day[20] < 0.7 * day[3]


def test_carbon_profiles_rest_on_the_open_series_only():
    for region in CATALOG.records("regions"):
        figure = region.get("carbon_profile")
        assert figure is None or (figure.date == "2022" and figure.source == ("E-EIA930",))
        mean = region.get("carbon_intensity")
        assert mean is None or "Electricity Maps" not in CATALOG.source(mean.source[0]).title


def test_the_brief_stands_beside_the_maker():
    announced = CATALOG.get("chips", "BR100")
    assert announced.claimed["bf16_flop_per_s"].value == 256 * TERA
    assert announced.value("bf16_flop_per_s") == 1024 * TERA
    assert CATALOG.get("systems", "Atlas 900 Pro").announced_only


def test_files_have_one_figure_a_line():
    for path in DATA.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        assert all(line.count('"confidence"') <= 1 for line in text.splitlines()), path.name
        assert "index id" not in text, path.name
    assert {p.stem for p in DATA.glob("*.json")} == {*SCHEMAS, "sources", "claims"}  # claims have a schema of their own


def test_every_source_is_used():
    used = {id for r in RECORDS for f in (*r.figures.values(), *r.claimed.values()) for id in f.source}
    text = "".join(json.dumps(dict(r.text), ensure_ascii=False) for r in RECORDS)
    ids = json.loads((DATA / "sources.json").read_text())["sources"]
    unused = {id for id in ids if id not in used and not re.search(rf"\b{id}\b", text)}
    assert not unused
