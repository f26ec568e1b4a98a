"""The layout search: what it ranks first, what it refuses, and the exit codes of the command."""

import json

import numpy as np
import pytest

from models.training.layouts import LayoutSpace, enumerate_layouts
from planner.candidates.layouts import layout_space, search_layouts
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.case import best_layouts, resolve_case
from planner.evaluate.layouts import evaluate_layouts, memory_needed

WORKLOAD = {
    "name": "small", "kind": "training", "architecture": "Qwen3-8B", "tokens": "100B", "deadline": "30 d",
    "sequence_tokens": 4096, "batch_tokens": "1048576", "precision": ["bf16"],
}  # fmt: skip
CASE = {"workload": WORKLOAD, "system": "DGX H100", "chips": 16, "topology": "rail-optimised"}


def written(tmp_path, document) -> str:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_the_best_is_at_least_as_fast_as_a_finer_exhaustive_check():
    facts = resolve_case(CASE)
    job, system = facts.job, facts.system
    setup = facts.training_setup("bf16")
    found = search_layouts(setup, layout_space(job, 16, system))
    finer = enumerate_layouts(
        job.architecture, 16, job.batch_sequences, sequence_tokens=4096, scaleup_chips=8,
        space=LayoutSpace(micro_batches=range(1, 65), interleaves=range(1, 37), zeros=(0, 1, 2, 3), recomputes=(0, 1, 2)),
    )  # fmt: skip
    fits = memory_needed(setup, finer) <= system.hbm_bytes
    step = evaluate_layouts(setup, finer).step_s
    assert len(finer) > (found.layouts.offload == 0).sum()
    assert found.step.step_s[0] <= np.where(fits, step, np.inf).min() * (1 + 1e-9)


def test_fastest_first_with_a_breakdown_that_adds_up_and_a_reason():
    rows, counts = best_layouts(CASE, (), 6)
    assert counts["legal"] > counts["fitting"] > len(rows) == 6
    assert [row["step_s"] for row in rows] == sorted(row["step_s"] for row in rows)
    for row in rows:
        assert sum(row["breakdown_s"].values()) == pytest.approx(row["step_s"])
        assert row["memory_bytes"] <= 85.1e9  # as the driver of an 80 GB chip reports
    assert rows[0]["why"] == "fastest" and all("slower" in row["why"] or "equal" in row["why"] for row in rows[1:])


def test_a_fixed_layout_is_the_only_one():
    stated = {"tp": 2, "dp": 8, "zero": 1, "recompute": 1, "offload": 0}  # what is left open is searched
    rows, counts = best_layouts({**CASE, "layout": stated}, (), 6)
    assert (
        len(rows) == 1
        and counts["legal"] == counts["fitting"] == 1
        and counts["not_tried"] == 0
        and rows[0]["layout"]["tp"] == 2
    )


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"chips": 12}, "chips"),
        ({"system": "DGX H1000"}, "system"),
        ({"topology": "scale-up"}, "topology"),
        ({"layout": {"tp": 3, "dp": 8}}, "layout"),
        ({"layout": {"tq": 2}}, "layout.tq"),
        ({"layout": {"tp": 0}}, "layout.tp"),
        ({"workload": {**WORKLOAD, "precision": ["fp4"]}}, "workload.precision"),
        ({"workload": {**WORKLOAD, "tokens": "many"}}, "workload.tokens"),
    ],
)
def test_a_wrong_case_is_named_with_its_place(change, path):
    with pytest.raises(SpecError) as error:
        best_layouts({**CASE, **change}, (), 1)
    assert [problem.path for problem in error.value.problems] == [path]


def test_a_batch_that_does_not_divide_is_answered_with_the_nearest_that_does():
    """16 million tokens are 1,953.1 sequences of 8,192."""
    workload = {**WORKLOAD, "architecture": "Llama-3.1-405B", "sequence_tokens": 8192, "batch_tokens": "16M"}
    case = {**CASE, "workload": workload, "chips": 16384, "layout": {"tp": 8, "pp": 16, "dp": 128, "vpp": 8}}
    with pytest.raises(SpecError) as error:
        best_layouts(case, (), 1)
    [problem] = error.value.problems
    assert problem.path == "workload.batch_tokens" and "dp x micro_batch divides the 1,984 sequences" in problem.message
    assert "the nearest batch that does has 2,048: 16,777,216 tokens" in problem.message
    nearest = {**case, "workload": {**workload, "batch_tokens": 16777216}}
    assert best_layouts(nearest, (), 1)[1]["legal"] > 0
    booked = resolve_case({**CASE, "workload": workload}).ledger.assumptions["workload.batch_tokens"]
    assert booked.value == 1984 * 8192 and "16777216 tokens (2,048 sequences)" in booked.reason


@pytest.mark.parametrize(
    ("layout", "words"),
    [
        ({"tp": 3, "dp": 8, "pp": 2}, "tp divides the 32 heads"),
        ({"pp": 2, "dp": 24, "schedule": 3}, "ep is 1 without experts"),
        ({"pp": 2, "dp": 24, "zero": 3}, "zero 2 and 3 come without pipeline"),
        ({"pp": 48, "dp": 1}, "pp is at most the 36 layers"),
        ({"pp": 3, "dp": 16, "schedule": 3}, "dualpipe needs an even pp"),
    ],
)
def test_a_broken_rule_is_named(layout, words):
    case = {**CASE, "workload": {**WORKLOAD, "batch_tokens": 4096 * 48 * 16}, "chips": 48}
    if words.startswith("ep"):
        layout = {**layout, "ep": 2}
    with pytest.raises(SpecError, match=words):
        best_layouts({**case, "layout": layout}, (), 1)


def test_no_legal_layout_is_answered_with_a_batch_that_makes_one(tmp_path, capsys):
    workload = {**WORKLOAD, "batch_tokens": 4096 * 3}
    path = written(tmp_path, {**CASE, "workload": workload, "chips": 16 * 37})
    assert main(["layouts", path]) == 4
    said = capsys.readouterr().err
    assert "no layout is legal" in said and "592 sequences" in said
    assert main(["estimate", path]) == 4 and "no layout is legal" in capsys.readouterr().err


def test_exit_codes(tmp_path, capsys):
    assert main(["layouts", written(tmp_path, CASE), "--best", "2", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["layouts"]) == 2
    too_large = {**CASE, "workload": {**WORKLOAD, "architecture": "GPT-3 175B", "sequence_tokens": 2048}, "chips": 8}
    assert main(["layouts", written(tmp_path, too_large)]) == 4
    assert "no layout fits" in capsys.readouterr().err
    assert main(["layouts", written(tmp_path, {**CASE, "chips": 12})]) == 3
    assert main(["layouts", str(tmp_path / "absent.json")]) == 2
