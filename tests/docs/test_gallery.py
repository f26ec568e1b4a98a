"""The pages of announced systems say what the stored plans give, which answer their specs and hold; gaps and contradictions are said."""

from __future__ import annotations

import csv
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from planner import verify_plan
from planner.report.outputs.html import drawing_versions
from planner.report.why.ratios import ratios

ROOT = Path(__file__).resolve().parents[2]
GAP = 0.03  # largest gap of a plan whose page need not say why


def built() -> ModuleType:
    sys.path.append(str(ROOT / "docs"))  # where the script finds its other half
    spec = importlib.util.spec_from_file_location("build_gallery", ROOT / "docs/build_gallery.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = built()
DATA = gallery.systems()
PLANS = {part["plan"]: (name, part) for name, data in DATA.items() for part in data["parts"] if "plan" in part}


@pytest.mark.parametrize("name", DATA)
def test_a_page_says_what_the_stored_plans_give(name):
    page = (ROOT / f"docs/systems/{name}.md").read_text(encoding="utf-8")
    assert page == gallery.page(name, DATA[name]), "run make gallery"


def test_the_table_lists_every_page():
    page = (ROOT / "docs/systems/README.md").read_text(encoding="utf-8")
    assert page == gallery.contents(DATA), "run make gallery"


@pytest.mark.parametrize("name", DATA)
def test_a_question_has_two_sentences_at_most(name):
    assert 1 <= len(re.findall(r"[.?](?:\s|$)", DATA[name]["question"])) <= 2


@pytest.mark.parametrize("name", DATA)
def test_the_claims_of_a_page_are_all_that_are_about_its_system(name):
    ids = {each.claim.id for each in gallery.judged().judged if name in each.claim.systems}
    assert ids == {row["claim"] for row in gallery.claim_rows(name, DATA[name])}
    assert ids >= {row["claim"] for row in DATA[name].get("beside", ())}, (
        "a figure stands beside a claim of another page"
    )


@pytest.mark.parametrize("name", PLANS)
def test_a_stored_plan_answers_its_spec(name):
    from planner.dashboard.sources import canonical
    from planner.spec.document import read_document

    plan = gallery.plan_of(name)
    assert plan.has_answer
    assert canonical(plan.document["spec"]) == canonical(read_document(gallery.spec_file(name).read_bytes()))


@pytest.mark.parametrize("name", PLANS)
def test_a_stored_plan_holds(name):
    assert verify_plan(gallery.plan_of(name)) == []


@pytest.mark.parametrize("name", PLANS)
def test_a_wide_gap_is_explained(name):
    assert gallery.plan_of(name).found_gap <= GAP or PLANS[name][1].get("gap"), "state its cause under `gap`"


@pytest.mark.parametrize("name", PLANS)
def test_every_contradiction_is_said(name):
    told = DATA[PLANS[name][0]].get("contradictions", {}).get(name, {})
    found = {gallery.key_of(row) for row in ratios(gallery.plan_of(name)) if row["verdict"] == "contradiction"}
    best = gallery.judged().one(gallery.BEST_MFU).finding.high / 100.0
    for row in gallery.plan_of(name).document["workloads"]:
        if row["kind"] == "training" and row["mfu"] > best:
            found.add(f"mfu {row['name']}")
    assert found == set(told)


def test_every_stored_plan_is_on_a_page_and_in_the_gallery_of_the_dashboard(monkeypatch):
    from planner.dashboard.frozen import shelf

    stored = {path.name.removesuffix(".json.gz") for path in (gallery.SYSTEMS / "plans").glob("*.json.gz")}
    monkeypatch.setenv(shelf.READONLY, str(gallery.SYSTEMS / "plans"))
    assert stored and stored <= set(PLANS)
    assert set(shelf.plans()) == stored


@pytest.mark.parametrize("name", DATA)
def test_the_pictures_of_a_page_are_those_of_its_plans(name):
    if not drawing_versions():
        pytest.skip("needs altair and vl-convert-python")
    for file, svg in gallery.pictures(DATA[name]):
        stored = (gallery.PAGES / "pictures" / file).read_text(encoding="utf-8")
        version = stored.rpartition("<!-- ")[2]
        assert "<svg" in stored and (stored == svg or version != svg.rpartition("<!-- ")[2]), "run make gallery"


def test_the_figures_beside_claims_are_those_of_a_plan_by_hand():
    """At a demand of 80 + 60 billion output tokens with prompts of 1,500 to 400 and of 3,000 to 500, a day has 380 + 420 billion tokens."""
    asked = {"plan": "S4_least_cost", "figure": "tokens a day"}
    assert gallery.figure(asked) == (pytest.approx(800e9, rel=1e-6), "tokens/day")
    carbon = {"plan": "S4_least_carbon", "figure": "carbon"}
    less, unit = gallery.figure({**carbon, "less than": "S4_least_cost"})
    least, most = gallery.figure(carbon)[0], gallery.figure({**carbon, "plan": "S4_least_cost"})[0]
    assert unit == "% less" and least == pytest.approx(most * (1 - less / 100))


def test_a_factor_is_the_distance_beyond_the_nearer_end_of_a_range():
    row = {"least": 2.0, "most": 8.0}
    assert [gallery.factor({**row, "value": value}) for value in (1.0, 2.0, 5.0, 16.0)] == [2.0, 1.0, 1.0, 2.0]
    assert gallery.factor({"least": None, "most": None, "value": 3.0}) == 1.0


def test_the_pages_state_the_best_published_run_of_the_910b_as_measured(measurements):
    """Of tokens/s a chip, 6 FLOP a parameter, and 6 x layers x width x length for causal attention [FLOP/token], over 320 TFLOP/s."""
    with (measurements / "training.csv").open(encoding="utf-8") as file:
        rows = [
            row for row in csv.DictReader(file) if "910B" in row["chip"] and 30 <= float(row["params_total_B"]) <= 80
        ]
    dense = [row for row in rows if not row["n_experts"]]
    per_token = [
        6e9 * float(row["params_total_B"]) + 6 * float(row["layers"]) * float(row["hidden"]) * float(row["seq_len"])
        for row in dense
    ]
    best = max(float(row["tokens_per_s_per_chip"]) * flop / 320e12 for row, flop in zip(dense, per_token, strict=True))
    chips = {int(float(row["n_chips"])) for row in dense}
    said = DATA["S11"]["contradictions"]["pathway_sovereign"]["mfu fine-tune"]
    words = (
        f"of {len(dense)} published runs of dense networks of 30 to 80 billion parameters on {min(chips)} to {max(chips)} 910B "
        f"the fastest keeps {best:.0%} of 320 TFLOP/s"
    )
    assert words.replace("%", " %") in said


@pytest.mark.parametrize("name", ["S5_token_factory", "S6_rented_fleet", "S4_least_carbon"])
def test_a_page_names_the_sites_that_a_plan_leaves_empty(name):
    plan = gallery.plan_of(name)
    idle = {site["region"] for site in plan.document["spec"]["sites"]} - {row["site"] for row in plan.document["fleet"]}
    page = (ROOT / f"docs/systems/{PLANS[name][0]}.md").read_text(encoding="utf-8")
    offered = len(plan.document["spec"]["sites"])
    assert (
        f"In use are {offered - len(idle)} of the {offered} sites on offer: nothing stands in {', '.join(sorted(idle))}."
        in page
    )


def test_the_stored_split_of_carbon_follows_from_its_amounts():
    """Savings are shares of the carbon of the plan of least cost; who may move more saves no less, within the gaps of both solves."""
    stored = gallery.study_of("S4_split")
    assert stored["command"][:2] == ["frontier", "examples/systems/S4_least_cost.json"]
    split = stored["document"]["split"]
    page = (ROOT / "docs/systems/S4.md").read_text(encoding="utf-8")
    for point in split["points"]:
        ways = {each["way"]: each for each in point["ways"]}
        assert set(ways) == {"neither", "time", "space", "both"}
        for each in ways.values():
            saved = 1 - each["carbon_kg"] / split["base_carbon_kg"]
            assert each["saving"] == pytest.approx(saved) if each["saving"] is not None else each["bound_kg"] is None
            assert ("not found in time" if each["saving"] is None else f"{each['saving']:.1%}") in page
        for less, more in (("neither", "time"), ("neither", "space"), ("time", "both"), ("space", "both")):
            assert (ways[more]["bound_kg"] or 0.0) <= ways[less]["carbon_kg"] * (1 + 1e-6)
