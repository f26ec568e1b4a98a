"""What makes two plans differ: the differences add up to that of the objective, and alternatives of another kind are the best of their kind."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.money.components import component_words
from planner.plan import parse_plan
from planner.report.words import with_unit
from planner.spec.changes import MISSING, spec_changes
from planner.spec.document import edited
from planner.studies.alternatives import BEYOND, FOUND, IMPOSSIBLE
from planner.verify.plan import verify_plan

CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 40_000},
    "lengths": {"input": 1000, "output": 300, "input_cv": 1, "output_cv": 1},
    "origins": [{"region": "us-texas", "share": 0.6}, {"region": "us-virginia", "share": 0.4}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
OFFERS = [
    {"system": "DGX B200", "how": "buy", "price": "700000 USD", "supply": 40},
    {"system": "DGX H100", "how": "buy", "price": "300000 USD"},
    {"system": "DGX H200", "how": "reserved", "price": "24 USD/h"},
]
SITES = [{"region": "us-texas", "power": "500 kW"}, {"region": "us-virginia", "power": "1 MW"}]
GAP = 1e-4
BASE = {
    "name": "compared",
    "horizon": {"years": 5},  # over which buying beats renting
    "workloads": [CHAT],
    "sites": SITES,
    "offers": OFFERS,
    "solver": {"gap": GAP, "time_limit": "30 s", "replicas": "divisible"},
    "simplicity": {"within": 0},
}


def spec(*edits) -> dict:
    return edited(copy.deepcopy(BASE), edits)


@pytest.fixture(scope="module")
def first():
    return planner.solve(spec())


@pytest.fixture(scope="module")
def second():
    return planner.solve(spec(("sites[0].power", "1 MW"), ("offers[0].supply", 60)))


@pytest.fixture(scope="module")
def found():
    return planner.alternatives(spec(), within=10.0)


# -- compare -----------------------------------------------------------------------------------------------------------


def test_a_plan_is_no_different_from_itself(first):
    same = planner.compare(first, first)
    assert (
        same.same
        and same.rows == []
        and same.words == [f"Both come to {with_unit(first.value, 'USD')}.", "The plans are the same."]
    )


@pytest.mark.parametrize("table", ["parts", "systems", "sites", "lines"])
def test_the_parts_add_up_to_the_difference_of_the_objective(first, second, table):
    told = planner.compare(first, second).document
    difference = second.objective["value"] - first.objective["value"]
    assert difference < 0 and told["difference"] == difference
    assert sum(row["difference"] for row in told[table]) == pytest.approx(difference, rel=1e-6)
    sizes = [abs(row["difference"]) for row in told[table]]
    assert sizes == sorted(sizes, reverse=True)
    for row in told[table]:
        assert row["share"] == pytest.approx(row["difference"] / first.objective["value"])


def test_fleets_limits_and_questions_are_told_apart(first, second):
    told = planner.compare(first, second).document
    for row in told["fleet"]:
        counts = [
            sum(
                r["count"]
                for r in plan["fleet"]
                if all(r[k] == row[k] for k in ("site", "system", "how", "topology", "window"))
            )
            for plan in (first, second)
        ]
        assert counts == [row["first"], row["second"]] and row["difference"] == counts[1] - counts[0] != 0
    assert {(row["path"], row["first"], row["second"]) for row in told["spec"]} == {
        ("sites[0].power", "500 kW", "1 MW"),
        ("offers[0].supply", 40, 60),
    }
    bound = [
        {row["path"] for row in plan["limits"] if row["marginal_unit"] and row["slack"] <= 1e-6 * row["limit"]}
        for plan in (first, second)
    ]
    assert {row["path"] for row in told["limits"]} == bound[0] ^ bound[1]
    words = " ".join(told["words"])
    top = told["parts"][0]
    assert "less than the first" in words and "What drives it" in words and "sites[0].power" in words
    assert component_words(top["component"]) in words


def test_the_other_way_round_every_difference_changes_its_sign(first, second):
    there, back = (planner.compare(*pair).document for pair in ((first, second), (second, first)))
    for table in ("parts", "fleet", "routes", "totals"):
        key = lambda row: json.dumps(
            {k: v for k, v in row.items() if k not in ("first", "second", "difference", "share")}
        )
        mine, other = ({key(row): row["difference"] for row in found[table]} for found in (there, back))
        assert mine == {name: -value for name, value in other.items()}


def test_shares_of_an_origin_shift_by_nothing_in_sum(first, second):
    for workload, origin in {
        (row["workload"], row["origin"]) for row in planner.compare(first, second).document["routes"]
    }:
        rows = [
            row
            for row in planner.compare(first, second).document["routes"]
            if (row["workload"], row["origin"]) == (workload, origin)
        ]
        assert sum(row["difference"] for row in rows) == pytest.approx(0, abs=1e-9)


def test_without_an_answer_the_questions_are_still_compared(first):
    none = planner.solve(spec(("limits.budget", "1 USD")))
    told = planner.compare(first, none).document
    assert told["difference"] is None and "infeasible" in told["words"][0]
    assert [row["path"] for row in told["spec"]] == ["limits"]


def test_plans_in_two_currencies_are_refused(first):
    document = json.loads(first.to_json())
    document["spec"]["currency"] = "CNY"
    with pytest.raises(SpecError, match="--set currency"):
        planner.compare(first, parse_plan(json.dumps(document)))


def test_entries_of_lists_are_matched_by_what_they_are_about():
    turned = spec(("sites", SITES[::-1]), ("offers", OFFERS[::-1]))
    assert spec_changes(BASE, turned) == []
    fewer = spec(("sites", SITES[1:]), ("workloads[0].slo.ttft.p95", "1 s"))
    assert spec_changes(BASE, fewer) == [
        {"path": "workloads[0].slo.ttft.p95", "first": "2 s", "second": "1 s"}, {"path": "sites[0]", "first": SITES[0], "second": MISSING},
    ]  # fmt: skip


def test_the_command_prints_every_format(first, second, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    first.save(paths[0]), second.save(paths[1])
    for form, sign in (
        ("table", "What drives it"),
        ("md", "## Fleet"),
        ("csv", "table,what"),
        ("json", '"difference"'),
    ):
        assert main(["compare", *paths, "--format", form]) == 0
        assert sign in capsys.readouterr().out
    (tmp_path / "b.json").write_text("{}")
    assert main(["compare", *paths]) == 3 and "not a whole plan" in capsys.readouterr().err
    assert main(["compare", paths[0], str(tmp_path / "none.json")]) == 2


# -- alternatives ------------------------------------------------------------------------------------------------------


def without(document: dict, name: str) -> list[dict]:
    """The questions of which the alternative is the best answer, written by hand."""
    if name == "rented only":
        return [edited(document, (("offers", OFFERS[2:]),))]
    if name == "bought only":
        return [edited(document, (("offers", OFFERS[:2]),))]
    if name.startswith("all in"):
        return [edited(document, (("sites", [site]),)) for site in SITES]
    thing = name.removeprefix("without ")
    if thing.endswith(" networks"):
        rest = [
            f
            for f in ("scale-up", "rail-only", "rail-optimised", "fat-tree", "fat-tree:2")
            if f != thing.removesuffix(" networks")
        ]
        return [edited(document, tuple((f"sites[{i}].topologies", rest) for i in range(len(SITES))))]
    if thing.startswith("us-"):
        return [edited(document, (("sites", [site for site in SITES if site["region"] != thing]),))]
    return [edited(document, (("offers", [offer for offer in OFFERS if offer["system"] != thing]),))]


def test_each_alternative_is_the_best_of_its_kind(found):
    """Against the spec with that kind taken out, solved on its own."""
    used = {row["system"] for row in found.best["fleet"]} | {row["site"] for row in found.best["fleet"]}
    assert {a.name for a in found.found if a.name.startswith("without") and "networks" not in a.name} == {
        f"without {thing}" for thing in used
    }
    for alternative in (alternative for alternative in found.found if alternative.kind != "fewer parts"):
        plans = [planner.solve(question) for question in without(spec(), alternative.name)]
        best = min((plan.objective["value"] for plan in plans if plan.has_answer), default=None)
        if alternative.status == IMPOSSIBLE:
            assert best is None
            continue
        assert alternative.status == FOUND and alternative.value == pytest.approx(best, rel=2.5 * GAP), alternative.name
        assert (
            alternative.worse == pytest.approx(alternative.value - found.best.objective["value"])
            and alternative.worse >= -2.5 * GAP * best
        )
        assert alternative.least <= alternative.worse + 1e-6 * best


def test_plans_of_fewer_parts_form_a_ladder(found):
    rungs = sorted((a for a in found.found if a.kind == "fewer parts"), key=lambda a: a.worse)
    counts = [int(a.name.split()[0]) for a in rungs]
    assert counts == sorted(counts, reverse=True)
    for rung in rungs:
        used = {(w["name"], p["site"], str(p["pools"])) for w in rung.plan["workloads"] for p in w["points"]}
        assert len(used) >= int(rung.name.split()[0])


def test_an_alternative_is_a_plan_that_holds(found):
    for alternative in found.found:
        if alternative.plan is not None:
            assert verify_plan(alternative.plan) == []
            assert (
                alternative.plan.status in ("within_gap", "limit") and alternative.plan["bound"] == found.best["bound"]
            )


def test_they_are_in_order_and_said_in_words(found):
    worse = [a.worse for a in found.found if a.worse is not None]
    assert worse == sorted(worse) and len(worse) >= 4
    assert found.found[0].name in " ".join(found.words)


def test_what_is_surely_worse_is_not_solved(found):
    for wrong in (float("nan"), -0.1, float("inf")):
        with pytest.raises(SpecError, match="--within: expected a share"):
            planner.alternatives(spec(), within=wrong)
    near = planner.alternatives(spec(), within=0.0)
    true = {a.name: a for a in found.found}
    beyond = [a for a in near.found if a.status == BEYOND]
    assert beyond
    for a in beyond:
        if a.kind in ("without a system", "without a site", "rented only", "bought only"):
            assert 0 < a.least <= true[a.name].worse * (1 + 1e-6)


def test_the_command_writes_plans_and_says_when_there_is_none(tmp_path, capsys):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    assert main(["alternatives", str(path), "--within", "0.2", "--plans", str(tmp_path / "plans"), "-q"]) == 0
    assert "of another kind" in capsys.readouterr().out
    for plan in (tmp_path / "plans").iterdir():
        assert main(["verify", str(plan)]) == 0
    capsys.readouterr()
    assert main(["alternatives", str(path), "-q", "--set", "limits.budget=1 USD", "--format", "json"]) == 4
    assert json.loads(capsys.readouterr().out) == {
        "status": "infeasible",
        "best": None,
        "within": 0.05,
        "alternatives": [],
    }
    assert main(["alternatives", str(path), "--total-time", "soon"]) == 3


def test_plans_of_different_horizons_are_compared_by_the_year(tiny):
    one, three = (planner.solve(tiny(horizon={"years": years})) for years in (1, 3))
    found = planner.compare(one, three)
    assert "horizons differ (1 and 3 years)" in found.words[0]
    row = next(row for row in found.document["totals"] if row["total"] == "cost per year")
    assert row["first"] == pytest.approx(one["totals"]["cost"]) and row["second"] == pytest.approx(
        three["totals"]["cost"] / 3
    )
    assert not any("horizons differ" in line for line in planner.compare(one, one).words)
