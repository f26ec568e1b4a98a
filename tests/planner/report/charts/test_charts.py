"""The charts as Vega-Lite specs, without Streamlit: what is drawn, in which units, and that every chart speaks."""

import copy
import re
from itertools import pairwise

import pytest

pytest.importorskip("altair")

from planner.dashboard import sources
from planner.plan import Plan
from planner.report.charts import comparison, costs, fleet, flows, hours, places
from planner.report.charts.coasts import coasts, every_line
from planner.report.charts.style import MARKS, PALETTE
from planner.report.locale import Words

PLAN = sources.stored_plan()
WORDS = Words()


def drawn(chart) -> tuple[dict, list[dict]]:
    """The spec, checked against Vega-Lite's own schema by Altair, and its inline rows."""
    spec = chart.to_dict()
    layers = spec.get("layer", [])
    marks = next((layer for layer in layers if layer.get("name") == MARKS), layers[0] if layers else {})
    data = spec.get("data") or marks["data"]
    return spec, spec["datasets"][data["name"]] if "name" in data else data["values"]


def all_charts():
    site = hours.sites_with_load(PLAN, 0)[0]
    return [
        fleet.fleet_chart(PLAN, WORDS),
        costs.cost_chart(PLAN, WORDS),
        hours.load_chart(PLAN, site, 0, WORDS),
        hours.price_chart(PLAN, site, 0, WORDS),
        flows.flow_chart(PLAN, WORDS),
        places.served_chart(PLAN, 0, WORDS),
    ]


@pytest.mark.parametrize("chart", all_charts(), ids=["fleet", "cost", "load", "price", "flows", "served"])
def test_every_chart_has_words_for_those_who_cannot_see_it_and_colours_for_all(chart):
    spec, rows = drawn(chart)
    assert len(spec["description"]) > 30 and re.search(r"\d", spec["description"])
    assert rows
    colours = set(re.findall(r"#[0-9A-F]{6}", str(spec)))
    assert colours and colours <= {*PALETTE, "#777777"}  # a grey that both pages can show


def test_the_fleet_chart_adds_up_to_the_chips_of_the_plan():
    spec, rows = drawn(fleet.fleet_chart(PLAN, WORDS))
    assert sum(row["chips"] for row in rows) == PLAN["totals"]["chips"]
    assert spec["encoding"]["x"]["title"] == "Chips" and spec["encoding"]["x"]["field"] == "chips"
    scale = spec["encoding"]["color"]["scale"]
    assert len(scale["domain"]) == len(scale["range"]) == len({row["system"] for row in PLAN["fleet"]})


def test_systems_held_in_one_phase_only_count_once_and_at_their_most():
    document = copy.deepcopy(dict(PLAN.document))
    row = {**document["fleet"][0], "count": 10}
    per_system = fleet.fleet_rows(Plan({**document, "fleet": [{**row, "count": 1}]}))[0]["chips"]
    document["fleet"] = [row, {**row, "window": 0, "count": 2}, {**row, "window": 1, "count": 3}]
    assert fleet.fleet_rows(Plan(document)) == [
        {"site": row["site"], "system": row["system"], "chips": 13 * per_system}
    ]


def test_a_system_bought_with_tiers_of_kv_cache_has_the_chips_of_the_system():
    document = copy.deepcopy(dict(PLAN.document))
    row = document["fleet"][0]
    without = fleet.fleet_rows(Plan({**document, "fleet": [row]}))[0]["chips"]
    document["fleet"] = [{**row, "system": f"{row['system']} + dram 1 TB + cxl 16 TB for 64"}]
    assert [each["chips"] for each in fleet.fleet_rows(Plan(document))] == [without] and without > 0


def test_the_cost_chart_adds_up_to_the_cost_of_the_plan():
    spec, rows = drawn(costs.cost_chart(PLAN, WORDS))
    assert sum(row["amount"] for row in rows) == pytest.approx(PLAN["totals"]["cost"])
    assert sum(row["share"] for row in rows) == pytest.approx(1)
    assert [row["amount"] for row in rows] == sorted((row["amount"] for row in rows), reverse=True)
    assert rows[0]["begin"] == 0 and rows[-1]["end"] == pytest.approx(PLAN["totals"]["cost"])
    assert [row["end"] for row in rows[:-1]] == [row["begin"] for row in rows[1:]]  # a waterfall
    assert "(USD)" in spec["layer"][0]["encoding"]["x"]["title"]


def test_load_and_price_stand_over_the_same_hours_in_their_units():
    for phase in hours.phases(PLAN):
        for site in hours.sites_with_load(PLAN, phase):
            rows = [row for row in PLAN["schedule"] if (row["site"], row["window"]) == (site, phase)]
            load, loads = drawn(hours.load_chart(PLAN, site, phase, WORDS))
            price, prices = drawn(hours.price_chart(PLAN, site, phase, WORDS))
            assert load["encoding"]["y"]["title"] == "Load (MW)" and price["encoding"]["y"]["title"] == "USD/MWh"
            assert load["encoding"]["x"]["scale"] == price["encoding"]["x"]["scale"]
            assert load["encoding"]["y"]["axis"]["minExtent"] == price["encoding"]["y"]["axis"]["minExtent"]
            assert sum(row["load"] for row in loads) == pytest.approx(sum(row["power_w"] for row in rows) / 1e6)
            assert sum(row["load"] for row in loads if row["who"] == WORDS("chart.own")) == pytest.approx(
                sum(row["own_power_w"] for row in rows) / 1e6
            )
            assert [row["price"] for row in prices[:-1]] == pytest.approx([row["price_per_j"] * 3.6e9 for row in rows])
            assert [row["start"] for row in prices] == list(range(25))


def test_the_flows_add_up_to_the_tokens_served_and_bands_fill_their_nodes():
    rows, seconds = flows.flow_rows(PLAN), {row["slot"]: row["seconds"] for row in PLAN["schedule"]}
    served = sum(row["tokens_per_s"] * seconds[row["slot"]] for row in PLAN["routes"]) / sum(seconds.values())
    assert sum(flow for *_, flow in rows) == pytest.approx(served, rel=0.01)  # but for flows too thin to draw
    assert {origin for origin, *_ in rows} <= {row["origin"] for row in PLAN["routes"]}
    total = sum(flow for *_, flow in rows)
    columns = [flows._places(rows, i, total) for i in range(3)]
    for left in (0, 1):
        bands = flows._bands(rows, columns, left, total)
        for name, (top, bottom) in columns[left + 1].items():
            ends = sorted((row[-1]["y"], row[-1]["y2"]) for *_, target, _, row in bands if target == name)
            assert ends[0][0] == pytest.approx(top) and ends[-1][1] == pytest.approx(bottom)
            assert all(a[1] == pytest.approx(b[0]) for a, b in pairwise(ends))


def test_the_difference_of_two_plans_adds_up():
    document = copy.deepcopy(dict(PLAN.document))
    document["costs"] = {**document["costs"], "rent": document["costs"]["rent"] + 5e6, "staff": 0.0}
    other = Plan(document)
    rows = comparison.cost_differences(PLAN, other)
    assert sum(row["difference"] for row in rows) == pytest.approx(5e6 - PLAN["costs"]["staff"])
    assert comparison.cost_differences(PLAN, PLAN) == []
    assert drawn(comparison.difference_chart(PLAN, other, WORDS))[1]
    assert sum(row["chips"] for row in drawn(comparison.fleets_chart({"a": PLAN, "b": other}, WORDS))[1]) == (
        2 * PLAN["totals"]["chips"]
    )


def test_the_map_places_sites_as_large_as_their_load_at_the_hour():
    known = sources.places_of(PLAN)
    assert set(known) == set(hours.sites_with_load(PLAN, 0)) and -125 < known["us-texas"][1] < -90
    for by, unit in (("price", "USD/MWh"), ("carbon", "g/kWh")):
        spec, rows = drawn(places.map_chart(PLAN, known, 0, 18, by, WORDS))
        assert unit in spec["description"]
        for row in rows:
            slot = next(
                each
                for each in PLAN["schedule"]
                if (each["site"], each["window"], each["hour_utc"]) == (row["site"], 0, 18)
            )
            assert row["load"] == pytest.approx(slot["power_w"] / 1e6)
            assert row["price"] == pytest.approx(slot["price_per_j"] * 3.6e9)
            assert row["carbon"] == pytest.approx(slot["carbon_kg_per_j"] * 3.6e9)
    assert places.map_chart(PLAN, {}, 0, 18, "price", WORDS) is None


def test_the_map_shows_the_coasts_around_its_sites():
    spec = places.map_chart(PLAN, sources.places_of(PLAN), 0, 18, "price", WORDS).to_dict()
    outline, dots, _ = spec["layer"]
    window, same = (
        tuple(layer["encoding"][axis]["scale"]["domain"] for axis in ("x", "y")) for layer in (outline, dots)
    )
    points = [(row["longitude"], row["latitude"]) for row in spec["datasets"][outline["data"]["name"]]]
    assert len(points) > 50 and window == same
    texas = [x for x, y in points if 28 < y < 30 and -97 < x < -94]
    assert texas  # its coast runs from 97 to 94 degrees west there
    every = {point for line in every_line() for point in line}
    inside = {(x, y) for x, y in every if window[0][0] < x < window[0][1] and window[1][0] < y < window[1][1]}
    assert inside <= set(points) <= every


def test_coasts_far_from_any_are_none():
    assert coasts((-140.0, -130.0), (0.0, 10.0)) == []  # the Pacific
    assert len(every_line()) > 100


def test_what_is_served_by_hour_adds_up_to_the_routes_of_a_phase():
    rows = places.served_rows(PLAN, 0)
    slots = {row["slot"] for row in PLAN["schedule"] if row["window"] == 0}
    assert sum(row["tokens"] for row in rows) == pytest.approx(
        sum(route["tokens_per_s"] for route in PLAN["routes"] if route["slot"] in slots)
    )


def test_the_stack_of_what_is_served_has_no_gaps():
    rows = places.served_rows(PLAN, 0)
    for hour in range(24):
        stack = [row for row in rows if row["start"] == hour]
        assert stack[0]["low"] == 0 and all(a["high"] == b["low"] for a, b in pairwise(stack))
        assert all(row["high"] - row["low"] == pytest.approx(row["tokens"]) for row in stack)


def test_the_heat_map_has_a_cell_for_each_hour():
    rows = drawn(places.heat_chart(PLAN, "us-texas", 0, "price", WORDS))[1]
    assert [row["hour"] for row in rows] == list(range(24)) and len({row["day"] for row in rows}) == 1
