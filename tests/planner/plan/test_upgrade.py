"""Plans of schemas 1 to 3 load as plans of schema 4: every figure stays, keys and paths have today's names, and the plan holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from planner.errors import SpecError
from planner.messages import texts
from planner.plan import load_plan, parse_plan
from planner.plan.shape import shape_problems, unknown_keys
from planner.plan.upgrade import LATEST, renamed_codes, upgraded
from planner.report.report import render
from planner.verify.plan import verify_plan

PLANS = ("plan_of_release_0_1", "plan_of_schema_1", "robust_plan_of_schema_1", "plan_of_schema_2", "plan_of_schema_3")


def figures(value: Any) -> list[Any]:
    """List the numbers of a document in their order."""
    if isinstance(value, dict):
        return [figure for entry in value.values() for figure in figures(entry)]
    if isinstance(value, list):
        return [figure for entry in value for figure in figures(entry)]
    return [] if isinstance(value, str) else [value]


@pytest.fixture(params=PLANS)
def path(request, root: Path) -> Path:
    return root / f"tests/golden/{request.param}.json"


def test_no_figure_changes_but_the_version(path: Path) -> None:
    before = json.loads(path.read_text(encoding="utf-8"))
    after = dict(load_plan(path).document)
    written = int(path.stem[-1]) if "plan_of_schema" in path.stem else 1
    assert before.pop("schema_version") == written and after.pop("schema_version") == LATEST == 4
    if written == 3:  # limits on the owned systems of a phase, for which a spec has no key
        before["limits"] = [row for row in before["limits"] if "supply_by_phase" not in row["path"]]
    assert sorted(map(repr, figures(after))) == sorted(map(repr, figures(before)))


def test_it_has_the_shape_of_today_and_prints(path: Path) -> None:
    plan = load_plan(path)
    assert shape_problems(plan.document) == [] and unknown_keys(plan.document) == []
    assert "H100" in render(plan, "md")


def test_it_holds_but_for_predictions_by_the_laws_of_its_day(path: Path) -> None:
    """The fixtures of schema 1 have the version of today and its laws of the day before: `verify` compares their points exactly, and asks what loads cost and for the codes of limits."""
    found = [str(finding) for finding in verify_plan(load_plan(path))]
    known = re.compile(
        r"workloads\[0\]\.points\[|deployments\[\d+\]\.(pools\[\d+\]\.(relay_cost|loads)|weights_path): says None"
        r"|limits: must be those of the spec"
    )
    assert [words for words in found if not known.match(words)] == []


def test_keys_and_paths_have_the_names_of_today(root: Path) -> None:
    plan, robust = (load_plan(root / f"tests/golden/{name}.json") for name in PLANS[1:3])
    assert {"fabric", "topologies"} < plan["spec"]["sites"][0].keys()
    assert plan["limits"][0]["path"] == "sites[0].topologies"
    assert plan["confidence"]["scenarios"] == 200 and plan["confidence_gain"]["plans"] == 1
    assert robust["spec"]["robust"]["scenarios"] == 50 and robust["robustness"]["fresh"]["scenarios"] == 1000
    assert [row["window"] for row in robust["fleet"]] == [0] and {row["window"] for row in robust["schedule"]} == {0}


def test_names_of_schema_3(root: Path) -> None:
    """The plan of schema 2 rents lines, and a second system would raise its confidence."""
    path = root / f"tests/golden/{PLANS[3]}.json"
    old, plan = json.loads(path.read_text(encoding="utf-8")), load_plan(path)
    assert [row["topology"] for row in plan["fleet"]] == [row["fabric"] for row in old["fleet"]]
    assert [row["windows"] for row in plan["placements"]] == [row["phases"] for row in old["placements"]] != []
    assert plan["confidence"]["upgrade"] == old["confidence"]["surer"]
    pools, before = (each["workloads"][0]["points"][0]["pools"] for each in (plan, old))
    assert [pool["network_size"] for pool in pools] == [pool["fabric_size"] for pool in before]


def test_names_of_schema_4(root: Path) -> None:
    """The plan of schema 3 owns a system from the start, in two phases."""
    path = root / f"tests/golden/{PLANS[4]}.json"
    old, plan = json.loads(path.read_text(encoding="utf-8")), load_plan(path)
    assert next(row["path"] for row in old["limits"] if row["path"].startswith("owned")) == "owned[0].supply"
    assert [row["path"] for row in plan["limits"] if row["path"].startswith("owned")] == ["owned[0].count"]
    codes = set(re.findall(r'"code": "([^"]+)"', json.dumps(old)))
    assert len(codes & renamed_codes().keys()) > 5, "the plan stores codes that have another name today"
    today = set(re.findall(r'"code": "([^"]+)"', json.dumps(dict(plan.document))))
    kept = {renamed_codes().get(code, code) for code in codes} - {"limit.supply_in", "how.buy"}
    assert today <= texts("en").keys() and today == kept | {"how.owned"}


def test_codes_of_before_are_no_codes_of_today() -> None:
    assert set(renamed_codes().values()) <= texts("en").keys()
    assert not renamed_codes().keys() & texts("en").keys()


def test_a_plan_of_today_stays_as_it_is(root: Path) -> None:
    document = dict(load_plan(root / f"tests/golden/{PLANS[1]}.json").document)
    assert upgraded(document) == document
    assert parse_plan(json.dumps(document)).document == document


@pytest.mark.parametrize("version", [0, 5, 99, True, None, "1"])
def test_other_versions_are_refused(root: Path, version: Any) -> None:
    document = {**load_plan(root / f"tests/golden/{PLANS[1]}.json").document, "schema_version": version}
    with pytest.raises(SpecError, match="reads versions 1 to 4"):
        parse_plan(json.dumps(document))
