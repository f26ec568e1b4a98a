"""Own runs that a workload does not use are named, and an architecture of the user's own is echoed, in plans, estimates and the catalog."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

import planner
from planner.cli.main import main
from planner.estimate.answer import estimate, sections
from planner.facts import Fact
from planner.facts.own_runs import OwnRuns, unused_runs
from planner.report.fleet import replica_words
from planner.report.notes import HEADING
from planner.resolve.constants import by_kind
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

# 4 layers of width 256: 4 heads of 64, 2 of them KV; FFN of three matrices of 512; vocabulary of 1,000, tied.
CONFIG = {
    "model_type": "llama", "num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 512,
    "vocab_size": 1000, "tie_word_embeddings": True, "hidden_act": "silu", "max_position_embeddings": 4096,
}  # fmt: skip
PARAMETERS = 4 * (2 * 256 * 256 + 2 * 256 * 128 + 3 * 256 * 512) + 1000 * 256
CASE = {
    "workload": {"kind": "serving", "architecture": "Llama-3.1-8B", "lengths": {"input": 1000, "output": 300}, "precision": ["fp8"], "disaggregation": "never"},
    "system": "DGX H100", "chips": 8, "load": {"concurrency": 8},
}  # fmt: skip


def overlay(folder: Path, chip: str, precision: str, engine: str = "vllm") -> Path:
    """An own calibration of one environment, of serving and of training."""
    figure = {"value": 1.2, "unit": "1", "source": ["OWN"], "confidence": "B", "kind": "calibrated"}
    records = [
        {"name": "serving_anchor", "figures": {f"{engine}|{chip}|{precision}|tpot": figure}},
        {"name": "training_anchor", "figures": {f"mark|{chip}|{precision}": figure}},
    ]
    document = {"sources": {"OWN": {"title": "own", "date": None, "confidence": "B"}}, "constants": records}
    folder.mkdir(exist_ok=True)
    (folder / "own.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


def codes(notes: list[dict]) -> list[str]:
    return sorted(row["code"] for row in notes if row["code"].startswith("own."))


def own_notes(document: dict, overlays: Sequence[Path] = ()) -> list[Fact]:
    """The notes on own figures in a spec, without the echoes of its prices."""
    return [fact for fact in resolve_document(document, overlays).notes if fact.message.code.startswith("own.")]


@pytest.mark.parametrize(
    ("chip", "measured", "asked", "wanted"),
    [
        ("H100 SXM5 80GB", "bf16", ["fp8"], ["own.other_precision"]),
        ("H100 SXM5 80GB", "bf16", ["fp8", "bf16"], ["own.some_precisions"]),
        ("H100 SXM5 80GB", "fp8", ["fp8"], []),
        ("B200 (per GPU)", "fp8", ["fp8"], ["own.other_chip"]),
    ],
)
def test_a_plan_names_own_runs_that_it_does_not_use(tiny, tmp_path, chip, measured, asked, wanted):
    spec = tiny()
    spec["workloads"][0]["precision"] = asked
    found = own_notes(spec, [overlay(tmp_path / "own", chip, measured)])
    assert sorted(fact.message.code for fact in found) == wanted


def test_a_run_with_another_engine_is_named(tiny, tmp_path):
    spec = tiny()
    spec["workloads"][0] |= {"precision": ["fp8"], "engine": "sglang"}
    (fact,) = own_notes(spec, [overlay(tmp_path / "own", "H100 SXM5 80GB", "fp8")])
    assert fact.message.code == "own.other_engine" and fact.path.endswith(".engine")


@pytest.mark.parametrize(
    ("measured", "asked", "used"),
    [
        ("fp4", "mxfp4", True), ("mxfp4", "fp4", True), ("fp4", "fp4", True), ("fp4", "nvfp4", True),
        ("nvfp4", "fp4", False), ("nvfp4", "mxfp4", False), ("fp8", "mxfp8", False),
    ],
)  # fmt: skip
def test_own_runs_are_those_of_the_kind_that_a_name_means(tmp_path, measured, asked, used):
    """The checkpoint of gpt-oss-120b with 4 bits is in MXFP4: `fp4` means it, and runs known as fp4 stand for both kinds."""
    inner = {**CASE["workload"], "architecture": "gpt-oss-120b", "precision": [asked], "engine": "vllm"}
    case = {**CASE, "workload": inner, "system": "DGX B200", "layout": {"tp": 8}}
    plain = estimate(case).answer
    own = estimate(case, [overlay(tmp_path / "own", "B200 SXM", measured)]).answer
    assert plain and own
    assert own["latency_s"]["tpot"]["mean"] == pytest.approx(
        (1.2 if used else 1.0) * plain["latency_s"]["tpot"]["mean"]
    )
    assert codes(own["notes"]) == ([] if used else ["own.other_precision"])
    wide, narrow = (found["interval_80"]["tpot"]["mean"] for found in (plain, own))
    assert (narrow[1] / narrow[0] < wide[1] / wide[0]) == used


def test_runs_of_a_kind_count_before_those_of_a_name_that_several_share():
    keys = ["e|chip|fp4|tpot", "e|chip|mxfp4|tpot", "e|chip|fp8|ttft"]
    assert by_kind(keys) == by_kind(keys[::-1]) == {
        "e|chip|nvfp4|tpot": keys[0], "e|chip|mxfp4|tpot": keys[1], "e|chip|fp8|ttft": keys[2]
    }  # fmt: skip


def test_without_own_runs_nothing_is_said(tiny):
    assert not own_notes(tiny())


def test_the_plan_says_so_and_is_verified_with_and_without_the_overlay(tiny, tmp_path):
    spec = tiny()
    spec["workloads"][0]["precision"] = ["fp8"]
    own = overlay(tmp_path / "own", "H100 SXM5 80GB", "bf16")
    plan = planner.solve(spec, overlays=[own], threads=1)
    assert codes(plan["notes"]) == ["own.other_precision"]
    assert verify_plan(plan, overlays=[own]) == [] and verify_plan(plan) == []


def test_an_estimate_says_so_first(tmp_path):
    own = overlay(tmp_path / "own", "H100 SXM5 80GB", "bf16")
    found = estimate(CASE, [own]).answer
    assert found and codes(found["notes"]) == ["own.other_precision"] and sections(found)[0][0] == HEADING
    plain = estimate(CASE).answer
    assert plain and not plain["notes"] and sections(plain)[0][0] != HEADING


def test_an_estimate_of_training_does_too(tmp_path):
    case = {
        "workload": {"kind": "training", "name": "run", "deadline": "60 d", "architecture": "Llama-3.1-8B", "tokens": 1e9, "sequence_tokens": 4096, "batch_tokens": 524288, "precision": ["bf16"]},
        "system": "DGX H100", "chips": 8, "topology": "scale-up",
    }  # fmt: skip
    found = estimate(case, [overlay(tmp_path / "own", "H100 SXM5 80GB", "fp8")]).answer
    assert found and codes(found["notes"]) == ["own.other_precision"]


def test_an_architecture_from_a_config_is_echoed(tiny, tmp_path, capsys):
    """By hand: 2.36M parameters; 4 layers of 2 x 2 heads x 64 in 2 byte leave 2,048 byte of cache a token."""
    (tmp_path / "house.config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    spec = tiny()
    spec["workloads"][0]["architecture"] = "house"
    (fact,) = own_notes(spec, [tmp_path])
    assert fact.path == "architectures/house" and fact.is_echo
    arguments = fact.message.arguments
    assert arguments["parameters"] == pytest.approx(PARAMETERS / 1e9)
    assert arguments["weights"] == pytest.approx(2 * PARAMETERS / 1e9)
    assert arguments["cache"] == arguments["full"] == pytest.approx(4 * 2 * 2 * 64 * 2 / 1e6)
    found = estimate({**CASE, "workload": {**CASE["workload"], "architecture": "house"}}, [tmp_path]).answer
    assert found and codes(found["notes"]) == ["own.architecture"]
    assert main(["catalog", "show", "house", "--catalog", str(tmp_path)]) == 0
    assert fact.message.text() in capsys.readouterr().out


def test_layers_with_a_window_and_experts_are_told_apart(capsys):
    assert main(["catalog", "show", "gpt-oss-120b"]) == 0
    said = capsys.readouterr().out
    assert "of them active" in said and "KV cache" in said


def test_the_line_of_a_replica_names_the_precision():
    pool = {"role": "serve", "layout": {"tp": 2, "pp": 1}, "workers": 1, "batch": 8, "precision": "fp8"}
    assert replica_words([pool]) == "fp8 tp2"
    two = [{**pool, "role": "prefill"}, {**pool, "role": "decode", "workers": 3, "precision": "bf16"}]
    assert replica_words(two) == "fp8 + bf16 prefill tp2; decode 3 x tp2"


def test_runs_of_training_have_no_engine():
    measured = {OwnRuns("chip", "bf16")}
    assert not list(unused_runs("p", "run", measured, {("chip", "bf16")}))
    (fact,) = unused_runs("p", "run", measured, {("other", "bf16")})
    assert fact.message.arguments == {"workload": "run", "measured": "chip", "asked": "other"}
