"""Limits of time and memory: a search ends with what it has found, and counts what it left out."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

import planner.candidates.layouts as candidates
from planner.cli.main import main
from planner.design.characterise.answer import characterise
from planner.design.characterise.value import value_of_systems
from planner.errors import LimitReached
from planner.estimate.answer import estimate
from planner.estimate.case import best_layouts
from planner.estimate.limits import SearchLimits
from planner.exit_codes import INVALID, LIMIT, OK
from tests.planner.limited import after

EXAMPLES = Path(__file__).parents[3] / "examples"
TRAINING = json.loads((EXAMPLES / "cases" / "gpt3_a100.json").read_text(encoding="utf-8"))
TRAINING.pop("layout", None)
SERVING = {
    "workload": {
        "kind": "serving",
        "architecture": "Llama-3.1-8B",
        "lengths": {"input": 500, "output": 100},
        "precision": ["fp8", "bf16"],
        "disaggregation": "never",
    },
    "system": "DGX H100",
    "chips": 8,
}


def test_without_limits_a_search_goes_on():
    limits = SearchLimits()
    assert list(limits.within(range(5))) == [0, 1, 2, 3, 4] and limits.ended_by() == ""
    assert limits.left_out("layouts", 0, 7) == {"ended_by": "search", "not_tried": 0, "not_tried_words": ""}


def test_time_and_memory_end_a_search_and_stay_ended():
    short = SearchLimits(time_limit_s=0.02)
    assert short.ended_by() == ""
    time.sleep(0.03)
    assert short.ended_by() == "time" and list(short.within(range(3))) == [] and short.left_s < 0
    small = SearchLimits(memory_bytes=1e6)
    assert small.ended_by() == "memory"
    with pytest.raises(LimitReached, match=r"memory limit of 0\.001 GB"):
        small.check()
    words = short.left_out("layouts", 3, 7)["not_tried_words"]
    assert words.startswith("3 of 7 layouts") and "0.02 s" in words


def test_layouts_in_parts_are_those_of_one_search(monkeypatch):
    whole = best_layouts(TRAINING, (), 12)
    monkeypatch.setattr(candidates, "SIZES_AT_ONCE", 7)
    assert best_layouts(TRAINING, (), 12) == whole
    assert whole[1]["legal"] > whole[1]["fitting"] > 12 and whole[1]["ended_by"] == "search"


def test_layouts_at_a_limit_are_the_fastest_so_far_and_the_others_are_counted(monkeypatch):
    whole, counts = best_layouts(TRAINING, (), 1)
    monkeypatch.setattr(candidates, "SIZES_AT_ONCE", 50)
    rows, left = best_layouts(TRAINING, (), 1, after(8))
    assert left["ended_by"] == "time" and 0 < left["not_tried"] < left["legal"] == counts["legal"]
    assert rows[0]["step_s"] >= whole[0]["step_s"] and left["fitting"] < counts["fitting"]
    found = estimate(TRAINING, limits=after(9)).answer
    assert found is not None and found["layouts"]["not_tried"] > 0
    with pytest.raises(LimitReached):
        best_layouts(TRAINING, (), 1, after(0))


def test_systems_that_were_not_tried_are_no_systems_that_cannot():
    for case, looks in ((SERVING, 20), (TRAINING, 160)):
        whole, found = characterise(case), characterise(case, limits=after(looks))
        rows = {row["system"]: row for row in whole["workloads"][0]["systems"]}
        assert whole["not_tried"] == 0 and all(row["tried"] for row in rows.values())
        mine = found["workloads"][0]["systems"]
        left = [row for row in mine if not row["tried"]]
        assert {row["system"] for row in mine} == set(rows) and 0 < len(left) == found["not_tried"]
        assert all(row["why_not"] == "not tried" and not row["can"] for row in left)
        assert all(row == rows[row["system"]] for row in mine if row["tried"])
    with pytest.raises(LimitReached):
        characterise(SERVING, limits=after(0))


def test_value_of_systems_says_that_it_was_not_searched(tiny):
    with pytest.raises(LimitReached, match=r"per price, cost and watt .* the time limit"):
        value_of_systems(tiny(), limits=SearchLimits(time_limit_s=0.0))


@pytest.mark.parametrize("command", ["estimate", "layouts", "characterise"])
def test_every_command_that_searches_takes_both_limits(command, tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(TRAINING))
    assert main([command, str(path), "--time-limit", "1 ns"]) == LIMIT
    assert "time limit" in capsys.readouterr().err
    assert main([command, str(path), "--memory", "1 MB"]) == LIMIT
    assert "memory limit" in capsys.readouterr().err
    for option in ("--time-limit", "--memory"):
        for wrong in ("soon", "0", "-1 s", "nan s", "1 kg"):
            assert main([command, str(path), option, wrong]) == INVALID
            assert option in capsys.readouterr().err


def test_a_study_of_a_spec_with_a_value_not_searched_exits_with_the_code_of_a_limit(
    tiny, tmp_path, capsys, monkeypatch
):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(tiny()))
    assert main(["characterise", str(path)]) == OK
    capsys.readouterr()

    def late(document, overlays, limits):
        raise LimitReached("late")

    monkeypatch.setattr("planner.design.characterise.value.value_of_systems", late)
    assert main(["characterise", str(path), "--format", "json"]) == LIMIT
    said = capsys.readouterr()
    assert json.loads(said.out)["value"] == [] and "late" in said.err
