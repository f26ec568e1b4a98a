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
CASE = {"workload": WORKLOAD, "system": "DGX H100", "chips": 16, "fabric": "rail-optimised"}


def written(tmp_path, document) -> str:
    path = tmp_path / "case.json"
    path.write_text(json.dumps(document))
    return str(path)


def test_the_best_is_at_least_as_fast_as_a_finer_exhaustive_check():
    facts = resolve_case(CASE)
    job, system = facts.job, facts.system
    setup = facts.training_setup("bf16")
    found = search_layouts(setup, layout_space(job, 16, system.scaleup_chips, every=True))
    finer = enumerate_layouts(
        job.architecture, 16, job.batch_sequences, sequence_tokens=4096, scaleup_chips=8,
        space=LayoutSpace(micro_batches=range(1, 65), interleaves=range(1, 37), zeros=(0, 1, 2, 3), recomputes=(0, 1, 2)),
    )  # fmt: skip
    fits = memory_needed(job, finer, facts.constants) <= system.hbm_bytes
    step = evaluate_layouts(setup, finer).step_s
    assert len(finer) > len(found) and found.step.step_s[0] <= np.where(fits, step, np.inf).min() * (1 + 1e-9)


def test_fastest_first_with_a_breakdown_that_adds_up_and_a_reason():
    rows, counts = best_layouts(CASE, (), 6)
    assert counts["legal"] > counts["fitting"] > len(rows) == 6
    assert [row["step_s"] for row in rows] == sorted(row["step_s"] for row in rows)
    for row in rows:
        assert sum(row["breakdown_s"].values()) == pytest.approx(row["step_s"])
        assert row["memory_bytes"] <= 80e9
    assert rows[0]["why"] == "fastest" and all("slower" in row["why"] or "equal" in row["why"] for row in rows[1:])


def test_a_fixed_layout_is_the_only_one():
    rows, counts = best_layouts({**CASE, "layout": {"tp": 2, "dp": 8}}, (), 6)
    assert len(rows) == 1 and counts == {"legal": 1, "fitting": 1} and rows[0]["layout"]["tp"] == 2


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"chips": 12}, "chips"),
        ({"system": "DGX H1000"}, "system"),
        ({"fabric": "scale-up"}, "fabric"),
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


def test_exit_codes(tmp_path, capsys):
    assert main(["layouts", written(tmp_path, CASE), "--best", "2", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["layouts"]) == 2
    too_large = {**CASE, "workload": {**WORKLOAD, "architecture": "GPT-3 175B", "sequence_tokens": 2048}, "chips": 8}
    assert main(["layouts", written(tmp_path, too_large)]) == 4
    assert "none of them fits" in capsys.readouterr().err
    assert main(["layouts", written(tmp_path, {**CASE, "chips": 12})]) == 3
    assert main(["layouts", str(tmp_path / "absent.json")]) == 2
