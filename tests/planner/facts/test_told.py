"""Notes are told wherever a spec or a case is answered: by `check`, `estimate`, a plan, its page, and in every language."""

from __future__ import annotations

import copy
import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.messages import Message, of_row, texts
from planner.plan import Plan
from planner.report.locale import Words
from planner.report.notes import HEADING, sentences
from planner.report.page import one_page
from planner.verify.plan import verify_plan
from tests.planner.facts.base import spec

PER_SYSTEM = [{"system": "DGX H100", "how": "on_demand", "price": "2.10 USD/h"}]
CASE = {
    "workload": {"kind": "serving", "architecture": "Qwen3-32B", "lengths": {"input": 1000, "output": 300}, "slo": {"tpot": {"p95": "50 s"}}},
    "system": "DGX H100", "chips": 8, "load": {"concurrency": 8},
}  # fmt: skip


@pytest.fixture(scope="module")
def document() -> dict:
    found = spec(offers=PER_SYSTEM, solver={"time_limit": "30 s"})
    found["workloads"][0] |= {"precision": ["fp8"], "disaggregation": "never"}
    return found


@pytest.fixture(scope="module")
def plan(document) -> Plan:
    return planner.solve(document, threads=1)


def test_the_plan_and_its_page_tell_that_a_price_is_of_one_chip(plan):
    (row,) = plan["notes"]
    assert (row["path"], row["code"]) == ("offers[0].price", "price.of_a_chip") and row["source"]
    page = one_page(plan, 100, False)
    assert HEADING in page and "0.2625 USD/chip/h" in page


def test_a_note_that_is_changed_or_missing_is_found(plan):
    for change in (
        {"notes": []},
        {"notes": [plan["notes"][0] | {"arguments": plan["notes"][0]["arguments"] | {"per_chip": "2.1 USD/chip/h"}}]},
    ):
        wrong = copy.deepcopy(plan.document) | change
        assert any("notes offers[0].price" in str(finding) for finding in verify_plan(Plan(wrong)))


def test_a_plan_tells_its_notes_in_every_language(plan):
    (english,), (chinese,) = sentences(plan), sentences(plan, "zh")
    assert english.startswith("offers[0].price: 2.1 USD/h for one DGX H100 is") and "一套 DGX H100" in chinese


def test_check_tells_the_notes(document, tmp_path, capsys):
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    assert main(["check", str(file)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("valid: 1 workloads") and HEADING in printed and "write 2.1 USD/chip/h" in printed
    assert main(["check", str(file), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [row["code"] for row in found["notes"]] == ["price.of_a_chip"]


def test_estimate_tells_the_notes(tmp_path, capsys):
    file = tmp_path / "case.json"
    file.write_text(json.dumps(CASE), encoding="utf-8")
    for form in ("table", "md"):
        assert main(["estimate", str(file), "--format", form]) == 0
        printed = capsys.readouterr().out
        assert HEADING in printed and "slower than people read" in printed
    assert main(["estimate", str(file), "--format", "csv"]) == 0
    assert capsys.readouterr().out.startswith("mode,precision")
    assert main(["estimate", str(file), "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["notes"]
    assert (row["path"], row["code"]) == ("workload.slo.tpot.p95", "load.no_limit") and of_row(row)


def test_estimate_refuses_lengths_beyond_the_context():
    case = copy.deepcopy(CASE)
    case["workload"]["lengths"] = {"input": 40_959, "output": 2}  # 40,960 is the longest
    with pytest.raises(SpecError, match=r"workload.lengths: .* 40,961, more than the 40,960 .*max_context: "):
        estimate(case)
    case["workload"]["lengths"]["input"] -= 1
    assert estimate(case).answer


def test_a_refusal_is_told_in_every_language():
    sentence = Message.of("names.alike", name="a", other="b").text()
    refused = Message.of("fact.refused", sentence=sentence, source="S1").text()
    assert Words("zh").phrase(refused) == texts("zh")["names.alike"].format(name="a", other="b") + " [S1]"
