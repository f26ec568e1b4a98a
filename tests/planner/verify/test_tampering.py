"""Every change of a plan beyond tolerance is noticed by `verify`, or stands on the list of what it says that it did not check."""

from __future__ import annotations

import copy
import itertools
import json
from pathlib import Path

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.messages import Said
from planner.plan import Plan, load_plan, parse_plan
from planner.plan.shape import shape_problems
from planner.resolve.resolver import resolve_document
from planner.verify.claims.shortfall import shortfall
from planner.verify.claims.unchecked import pools_of
from planner.verify.plan import verified
from tests.conftest import ALL_CASES, long_run
from tests.planner.verify import tampering

CHANGES = 40  # changes of each plan; `python -m tests.planner.verify.tampering 5000` takes more


@pytest.fixture(scope="module", params=sorted(tampering.SPECS))
def document(request) -> dict:
    plan = planner.solve(tampering.SPECS[request.param]())
    return json.loads(plan.to_json())


@pytest.fixture(scope="module")
def small(small_plan) -> dict:
    return json.loads(small_plan.to_json())


def test_a_plan_as_it_was_made_holds(document):
    assert shape_problems(document) == [] and verified(Plan(document)).findings == []


def test_every_change_is_noticed_or_listed(document):
    assert tampering.unnoticed(document, CHANGES, seed=7) == []


def test_every_change_of_a_stored_plan_is_noticed_or_listed():
    stored = dict(load_plan(tampering.ROOT / "tests/golden/plan_of_release_0_1.json").document)
    assert tampering.unnoticed(stored, CHANGES, seed=7) == []


def test_what_is_not_checked_is_only_what_must_be(small):
    """The list may not grow until it excuses everything: what a reader acts on is never on it."""
    listed = [part.path for part in verified(Plan(small)).unchecked]
    for part in (
        "fleet",
        "fabrics",
        "workloads",
        "routes",
        "schedule",
        "costs",
        "cost_lines",
        "carbon_lines",
        "totals",
        "objective",
        "gap",
        "provenance",
    ):
        assert not any(path.startswith(part) for path in listed), part
    assert {"bound", "dropped", "limits[].marginal_value", "spec"} <= set(listed)


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (("provenance", 0, "source"), ["nowhere"], "provenance"),
        (("provenance", 0, "unit"), "furlong", "provenance"),
        (("assumptions", 0, "reason"), "because", "assumptions"),
        (("assumptions", 0, "share"), 0.123, "assumptions"),
        (("solver", "seed"), 77, "solver.seed"),
        (("solver", "repeatable"), None, "solver.repeatable"),
        (("name",), "another question", "name"),
        (("workloads", 0, "kind"), "training", "workloads[0]"),  # a job has a time that points of serving lack
        (("workloads", 0, "points", 0, "pools", 0, "layout", "ep"), 2, "workloads[0].points[0]"),
        (("runner_up", 0, "site"), "us-texas", "runner_up"),
        (("limits", 0, "unit"), "apples", "limits[0].unit"),
        (("status",), "limit", "status"),
        (("confidence", "workloads", "tune"), 0.9999, "confidence.workloads"),  # no share of 200 scenarios
        (("diagnosis",), {"conflict": [], "repair": [], "repair_checked": False}, "diagnosis"),
    ],
)  # fmt: skip
def test_a_finding_names_the_place(small, path, value, word):
    changed = tampering.Change(path, value, "").made(small)
    findings = verified(Plan(changed)).findings
    assert all(isinstance(finding.message, Said) for finding in findings), findings
    found = [finding.path for finding in findings]
    assert any(place.startswith(word) for place in found), found


def test_rows_of_late_jobs_that_are_missing_are_listed(small):
    assert "confidence.late_jobs" not in [part.path for part in verified(Plan(small)).unchecked]
    without = tampering.Change(("confidence", "late_jobs"), tampering.ABSENT, "").made(small)
    assert "confidence.late_jobs" in [part.path for part in verified(Plan(without)).unchecked]


def test_a_row_of_packing_that_stands_twice_is_found(small):
    changed = dict(small) | {"packing": [*small["packing"], small["packing"][0]]}
    assert [(f.path, f.message.message.code) for f in verified(Plan(changed)).findings] == [
        ("packing", "verify.row_twice")
    ]


def test_a_layout_that_stands_by_and_runs_already_is_found():
    document = json.loads(planner.solve(tampering.SPECS["robust"]()).to_json())
    (workload,) = document["workloads"]
    (point,) = workload["points"]
    assert document["robustness"]["standing_by"] == []  # the layouts sought for slower chips are the one that runs
    document["robustness"]["standing_by"] = [
        {"workload": workload["name"], **{key: point[key] for key in ("site", "pools")}}
    ]
    assert [f.path for f in verified(Plan(document)).findings] == ["robustness.standing_by[0]"]


@pytest.mark.parametrize("value", [None, tampering.ABSENT])
def test_a_rent_of_hired_systems_that_is_missing_is_listed(value):
    document = json.loads(planner.solve(tampering.SPECS["phases"]()).to_json())
    assert document["confidence"]["hired"]
    without = tampering.Change(("confidence", "hired"), value, "").made(document)
    assert "confidence.hired" in [part.path for part in verified(Plan(without)).unchecked]
    assert "confidence.hired" not in [part.path for part in verified(Plan(document)).unchecked]


def test_a_limit_without_the_code_of_its_name_is_found(small):
    for i in range(len(small["limits"])):
        without = tampering.Change(("limits", i, "name_message"), tampering.ABSENT, "").made(small)
        assert [f.path for f in verified(Plan(without)).findings] == ["limits"]
    single = dict(small) | {
        "limits": [{k: v for k, v in row.items() if k != "name_message"} for row in small["limits"]]
    }
    assert [f.path for f in verified(Plan(single)).findings] == ["limits"]


@pytest.mark.parametrize("name", ["small", "meter", "throughput"])
def test_memory_by_pool_is_stated_of_all_pools_or_named_as_missing(name):
    """Plans of release 0.2 state it of none."""
    document = json.loads(planner.solve(tampering.SPECS[name]()).to_json())
    pools = [pool for _, pool in pools_of(document)]
    for i, pool in enumerate(pools):
        taken = pool.pop("memory_bytes")
        found = verified(Plan(document))
        if len(pools) > 1:
            assert any(finding.path.endswith("].memory_bytes") for finding in found.findings), i
        else:
            assert "workloads[].points[].pools[].memory_bytes" in [part.path for part in found.unchecked]
        pool["memory_bytes"] = taken
    assert verified(Plan(document)).findings == []


def test_the_tokens_of_an_api_are_counted_again():
    document = json.loads(planner.solve(tampering.SPECS["api"]()).to_json())
    for change in (1, -1):
        bent = copy.deepcopy(document)
        bent["fleet"][0]["count"] += change
        assert any(finding.path == "fleet[0].count" for finding in verified(Plan(bent)).findings)


def test_the_list_is_printed(small, tmp_path, capsys):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(small))
    assert main(["verify", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "the plan holds" in printed and "not computed again:" in printed and "limits[].marginal_value" in printed
    assert main(["verify", str(path), "--format", "json"]) == 0
    reasons = {row["path"]: row["reason_message"]["code"] for row in json.loads(capsys.readouterr().out)["unchecked"]}
    assert reasons["dropped"] == "unchecked.counts_of_candidates"


# -- plans without an answer -------------------------------------------------------------------------------------------


def too_few_systems() -> dict:
    document = tampering.small()
    document["offers"][0]["supply"], document["workloads"][0]["demand"] = 1, {"requests_per_s": 3000}
    return document


def too_many_tokens() -> dict:
    document = tampering.small()
    document["workloads"][1]["tokens"] = "80T"
    return document


def too_tight() -> dict:
    """Chips could do the work; within the limit on latency they cannot."""
    document = tampering.small()
    document["workloads"][0]["slo"]["tpot"]["p95"] = "0.1 ms"
    return document


@pytest.mark.parametrize(
    ("spec", "proof"),
    [
        (tampering.infeasible, "the requests of the busiest hour"),
        (too_few_systems, "the requests of the busiest hour"),
        (too_many_tokens, "the tokens of tune by its deadline"),
        pytest.param(too_tight, None, marks=long_run),
    ],
)
def test_that_there_is_no_plan_is_proven_again_or_listed(spec, proof, tmp_path, capsys):
    plan = planner.solve(spec())
    assert plan.status == "infeasible"
    found = verified(plan)
    assert found.findings == [] and found.proof == proof
    assert any(part.path == "status" for part in found.unchecked) == (proof is None)
    plan.save(tmp_path / "plan.json")
    assert main(["verify", str(tmp_path / "plan.json")]) == 0
    assert ("there is no plan" if proof else "was not proven again") in capsys.readouterr().out


def test_an_invented_infeasibility_is_never_proven(document):
    """Whatever has a plan passes the relaxation: peaks of different hours do not add up, and APIs are as large as they need to be."""
    if document["status"] != "infeasible":
        assert shortfall(resolve_document(document["spec"])) is None


def test_peaks_of_different_hours_do_not_add_up(small):
    """Two workloads that take turns need the systems of one."""
    spec = copy.deepcopy(small["spec"])
    chat = spec["workloads"][0]
    by_day, by_night = [1] * 12 + [0] * 12, [0] * 12 + [1] * 12
    spec["workloads"] = [
        {**copy.deepcopy(chat), "name": name, "demand": {"requests_per_s": 60, "profile": profile}}
        for name, profile in (("day", by_day), ("night", by_night))
    ]
    spec["offers"][0]["supply"] = 1
    assert planner.solve(spec).has_answer and shortfall(resolve_document(spec)) is None


# -- malformed plans ---------------------------------------------------------------------------------------------------

JUNK = (None, "x", [], {}, True, -1, 10**400, float("nan"), [[]], {"a": 1})
SLACK = 1  # junk values tried at each place


def junk(document: dict, seed: int):
    """Yield changes to junk, one kind of place after another."""
    import random

    draw, seen = random.Random(seed), set()
    for path, _ in tampering.leaves(document):
        if (shape := tampering.shape_of(path)) not in seen:
            seen.add(shape)
            for value in draw.sample(JUNK, SLACK):
                yield tampering.Change(path, value, "junk")


def run(arguments: list[str]) -> int:
    return main([*arguments, "--format", "json"])


def test_a_malformed_plan_ends_in_an_error_with_its_place(small, tmp_path, capsys):
    """In `verify`, `compare`, `roi` and side by side: a known exit code, and words, for junk in every kind of place."""
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(small))
    for change in itertools.islice(junk(small, 3), 0, None, 1 if ALL_CASES else 3):
        bad.write_text(json.dumps(change.made(small)))
        commands = [["verify", str(bad)], ["compare", str(bad), str(good)], ["compare", str(good), str(bad), str(good)], ["roi", str(bad), "--gain", "10 %"]]  # fmt: skip
        if change.path[0] == "spec" and len(change.path) > 1:
            commands = commands[1:]  # that a spec is refused in full is tested with the parser
        for command in commands:
            code = run(command)
            said = capsys.readouterr()
            assert code in (0, 3, 6), (command[0], change.place, change.value)
            assert code != 3 or (said.err.strip() and "Traceback" not in said.err), (command[0], change.place)


def test_a_wrong_type_is_told_with_its_place(small):
    for path, value, place in (
        (("provenance", 0, "unit"), 3, "provenance[0].unit: expected a text, got 3"),
        (("fleet", 0, "count"), 1.5, "fleet[0].count: expected a whole number, got 1.5"),
        (("schedule", 1, "power_w"), 10**400, "schedule[1].power_w: expected a number, got a number of over 30 digits"),
        (("workloads", 0, "points", 0, "pools", 0, "layout"), [], "workloads[0].points[0].pools[0].layout: expected an object, got a list"),
        (("versions", "python"), None, "versions.python: expected a text, got null"),
    ):  # fmt: skip
        with pytest.raises(SpecError) as error:
            parse_plan(json.dumps(tampering.Change(path, value, "").made(small)))
        assert f"plan.{place}" in str(error.value)


def test_all_places_are_told_at_once_but_no_more_than_fifty(small):
    broken = copy.deepcopy(small)
    for row in broken["schedule"]:
        row["slot"] = "x"
    found = [problem.path for problem in shape_problems(broken)]
    assert found == [f"schedule[{i}].slot" for i in range(min(len(broken["schedule"]), 50))]


def test_the_stored_plans_have_the_shape_of_one():
    for path in (Path("tests/golden/plan_of_release_0_1.json"), Path("planner/dashboard/data/mixed_fleet_plan.json")):
        assert shape_problems(load_plan(tampering.ROOT / path).document) == []
