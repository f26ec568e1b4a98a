"""The split of what a frontier saves of carbon: who may move more saves no less, and where nothing can move nothing is saved."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from planner.cli.main import main
from planner.exit_codes import INVALID
from planner.studies.carbon.split import split_carbon, ways_of
from planner.studies.frontier import frontier

GAP = 1e-3
EVEN, PEAK = [1.0] * 24, [0.3] * 8 + [1.5] * 12 + [0.9] * 4
WAYS = ("neither", "time", "space", "both")


def spec(regions, profile=PEAK):
    return {
        "name": "split",
        "workloads": [
            {
                "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B",
                "demand": {"requests_per_s": 20000, "profile": profile, "deferral": "12 h"}, "lengths": {"input": 800, "output": 200},
                "origins": [{"region": "us-california", "share": 0.4}, {"region": "us-virginia", "share": 0.6}],
                "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["bf16"], "disaggregation": "never",
            }
        ],
        "sites": [{"region": region} for region in regions],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
        "solver": {"gap": GAP, "replicas": "divisible"},
        "simplicity": {"within": 0},
    }  # fmt: skip


def split(asked, points=2):
    return split_carbon(frontier(asked, "carbon", points), WAYS)


@pytest.fixture(scope="module")
def two_sites():
    return split(spec(("us-texas", "us-california")))


@pytest.fixture(scope="module")
def one_site():
    return split(spec(("us-california",)))


@pytest.fixture(scope="module")
def flat():
    """Nevada and Ireland have one carbon intensity for all hours in the catalog; the demand is even too."""
    return split(spec(("us-nevada", "ie-dublin"), EVEN))


@pytest.mark.parametrize("name", ["two_sites", "one_site", "flat"])
def test_who_may_move_more_saves_no_less_within_the_gaps(name, request):
    found = request.getfixturevalue(name)
    assert len(found.points) == 2
    for row in found.rows:
        for less, more in (("neither", "time"), ("neither", "space"), ("time", "both"), ("space", "both")):
            assert row[less] <= row[more] + 2 * GAP


def test_a_single_site_has_no_saving_in_space(one_site):
    for row in one_site.rows:
        assert row["space"] == pytest.approx(row["neither"], abs=2 * GAP)
        assert row["both"] == pytest.approx(row["time"], abs=2 * GAP)


def test_flat_carbon_under_an_even_demand_has_no_saving_in_time(flat):
    for row in flat.rows:
        assert row["time"] == pytest.approx(row["neither"], abs=2 * GAP)
        assert row["both"] == pytest.approx(row["space"], abs=2 * GAP)
    assert max(row["space"] for row in flat.rows) > 5 * GAP, "the sites differ in carbon"


def test_two_grids_save_in_space(two_sites):
    first = two_sites.rows[0]
    assert first["space"] > 0.1 and first["both"] > 0.1


def amounts(plan):
    """Tokens of each (site, slot), from the routes and the hours that each slot stands for."""
    seconds = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
    found = {}
    for route in plan.document["routes"]:
        key = (route["site"], route["slot"])
        found[key] = found.get(key, 0.0) + route["tokens_per_s"] * seconds[route["slot"]]
    return found


def summed(found, part):
    result = {}
    for key, tokens in found.items():
        result[key[part]] = result.get(key[part], 0.0) + tokens
    return result


def test_each_way_holds_what_it_says(two_sites):
    """Added up again from the plans: sites keep their tokens in time, hours keep theirs in space, and the other of the two moves."""
    base = amounts(two_sites.frontier.points[-1].plan)
    total = sum(base.values())
    for point in two_sites.points:
        for way, part in (("time", 0), ("space", 1), ("neither", 0), ("neither", 1)):
            found, held = summed(amounts(point.of(way).plan), part), summed(base, part)
            for key in {*found, *held}:
                assert found.get(key, 0.0) == pytest.approx(held.get(key, 0.0), abs=1e-4 * total), (way, key)
            assert point.of(way).plan.totals["cost"] <= point.cost * (1 + 1e-6)
    moved = summed(amounts(two_sites.points[0].of("space").plan), 0)
    assert abs(moved.get("us-texas", 0.0) - summed(base, 0).get("us-texas", 0.0)) > 0.1 * total


def test_the_document_and_the_words_state_the_same_savings(two_sites):
    document = json.loads(json.dumps(two_sites.document))
    first = document["split"]["points"][0]
    savings = {each["way"]: each["saving"] for each in first["ways"]}
    carbon = {each["way"]: each["carbon_kg"] for each in first["ways"]}
    base = document["split"]["base_carbon_kg"]
    assert all(saving == pytest.approx(1 - carbon[way] / base) for way, saving in savings.items())
    assert f"in both {savings['both']:.1%}" in two_sites.words[-1]
    assert [*two_sites.sections[-1][1][0]] == ["asked", "cost", "systems alone", "time", "space", "both"]


def test_ways_are_read_and_wrong_ones_are_named(capsys, tmp_path):
    assert ways_of("both, time") == ("neither", "time", "both")
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(spec(("us-california",))), encoding="utf-8")
    for more in (
        ["--against", "carbon", "--by", "weather"],
        ["--against", "carbon", "--by", ""],
        ["--against", "latency", "--by", "time"],
    ):
        assert main(["frontier", str(file), *more]) == INVALID
        assert "--by" in capsys.readouterr().err


def test_a_sentence_names_no_way_that_was_not_asked_for(one_site):
    told = one_site.words
    assert any("moving work in time saves" in words for words in told)
    some = replace(one_site, ways=("neither", "both"))
    assert not any("moving work in time saves" in words for words in some.words)
