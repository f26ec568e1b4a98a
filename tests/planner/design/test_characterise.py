"""`flopwatt characterise`: which systems can carry a workload agrees with `estimate`, and what it prints and refuses."""

from __future__ import annotations

import copy
import csv
import io
import json
from pathlib import Path

import pytest

from planner.cli.main import main
from planner.design.characterise.answer import characterise
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INFEASIBLE, INVALID

EXAMPLES = Path(__file__).parents[3] / "examples"
CASE = {
    "workload": {
        "kind": "serving",
        "architecture": "Llama-3.1-70B",
        "lengths": {"input": 2000, "output": 300},
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "40 ms"}},
        "precision": ["fp8", "bf16"],
        "disaggregation": "never",
    },
    "system": "DGX H100",
    "chips": 8,
}


@pytest.fixture(scope="module")
def found() -> dict:
    (workload,) = characterise(CASE)["workloads"]
    return workload


def test_bandwidth_is_bytes_over_the_limit(found):
    for row in found["bandwidth"]:
        assert row["peak_bytes_per_s"] == pytest.approx(row["bytes_per_step"] / 0.04)
    assert found["bandwidth"][0]["bytes_per_step"] > found["active_parameters"]  # FP8 weights and a cache


def test_collectives_share_a_tenth_of_the_limit(found):
    row = next(row for row in found["collectives"] if row["collective"].startswith("tensor: all-reduce, decode"))
    assert row["per_step"] == 160 and row["tolerated_s"] * row["per_step"] == pytest.approx(0.004)


def test_operators_add_up(found):
    for phase in found["phases"]:
        assert sum(row["flop"] for row in phase["operators"]) == pytest.approx(phase["flop"])
        assert sum(row["share_of_bytes"] for row in phase["operators"]) == pytest.approx(1.0)


def test_networks_are_judged_by_their_latency(found):
    rows = {row["network"]: row for row in found["networks"] if "decode" in row["collective"]}
    cloud, rack = (
        rows["Public-cloud inter-node network (announced)"],
        rows["Optical CXL 3.0 / custom RDMA (Inspur, Sugon, Huawei racks)"],
    )
    assert cloud["claimed"] and cloud["waiting"] > rack["waiting"] and cloud["seconds"] > rack["seconds"]
    jitter = cloud["jitter_for_claim_s"] * sum(1 / i for i in range(1, 9)) * (6 if cloud["algorithm"] == "tree" else 14)
    assert (cloud["waiting"] * cloud["seconds"] + jitter) / (cloud["seconds"] + jitter) == pytest.approx(
        0.375, rel=1e-3
    )
    assert rack["jitter_for_claim_s"] is None
    assert not rows["InfiniBand NDR"]["claimed"] and rows["InfiniBand NDR"]["waiting"] > cloud["waiting"]
    tolerated = next(row["tolerated_s"] for row in found["collectives"] if "decode" in row["collective"])
    assert all(row["tolerated"] == (row["seconds"] <= tolerated) for row in rows.values())


def test_widths_that_make_sense(found):
    sensible = {row["width"] for row in found["ranks"] if row["sensible"]}
    assert sensible == {1, 2, 4, 8}  # beyond 8 heads of keys and values ranks keep copies
    weights = {row["width"]: row["weight_bytes"] for row in found["ranks"]}
    assert weights[1] == pytest.approx(8 * weights[8])


@pytest.mark.parametrize(
    "system", ["DGX H200", "HGX H20 8-GPU server", "Atlas 800T A2", "AWS g6e.48xlarge", "DGX A100 80GB"]
)
def test_a_system_can_where_estimate_has_an_answer(found, system):
    row = next(row for row in found["systems"] if row["system"] == system)
    chips = 8 * (row["systems"] if row["can"] else 16)
    answer = estimate({**copy.deepcopy(CASE), "system": system, "chips": chips, "load": "max"}).answer
    assert (answer is not None) == row["can"], row
    if answer:
        assert row["tokens_per_s_per_chip"] == pytest.approx(answer["tokens_per_s"] / chips, rel=1e-9)


def test_every_system_is_listed_with_a_reason(found):
    assert all(row["can"] != bool(row["why_not"]) for row in found["systems"])
    reasons = " ".join(row["why_not"] for row in found["systems"])
    for part in ("has no figure", "latency: on", "at best"):
        assert part in reasons


def test_memory_and_precision_are_reasons():
    document = copy.deepcopy(CASE)
    document["workload"] |= {"architecture": "DeepSeek-V3", "precision": ["fp4"], "arithmetic": "fp4", "slo": {}}
    rows = {row["system"]: row for row in characterise(document)["workloads"][0]["systems"]}
    assert "computes in" in rows["DGX H100"]["why_not"]
    assert rows["DGX B200"]["can"]


def test_training():
    document = json.loads((EXAMPLES / "cases" / "gpt3_a100.json").read_text())
    (found,) = characterise(document)["workloads"]
    assert found["sustained_flop_per_s"] == pytest.approx(6 * 175e9 * 300e9 / (60 * 86400), rel=0.1)
    assert found["state_bytes"] == pytest.approx(18 * 175e9, rel=0.02)
    rows = {row["system"]: row for row in found["systems"]}
    assert rows["DGX A100 80GB"]["can"] and rows["DGX A100 80GB"]["systems"] >= 2
    assert rows["DGX A100 80GB"]["memory_bytes"] <= rows["DGX A100 80GB"]["hbm_bytes"]


def test_a_spec_is_characterised_on_its_own_systems():
    document = json.loads((EXAMPLES / "mixed_fleet.json").read_text())
    found = characterise(document)["workloads"]
    assert [w["name"] for w in found] == [w["name"] for w in document["workloads"]]
    named = {offer["system"] for offer in document["offers"]}
    assert all(len(w["systems"]) <= len(named) for w in found)


def one(path: str, index: int, **changed) -> tuple[dict, dict]:
    """Characterise one workload of an example alone; (its document, what was found)."""
    document = json.loads((EXAMPLES / path).read_text())
    document["workloads"] = [document["workloads"][index] | changed]
    return document["workloads"][0], characterise(document)["workloads"][0]


def as_case(workload: dict, system: str, chips: int) -> dict:
    asked = {name: value for name, value in workload.items() if name not in ("demand", "origins")}
    return {"workload": asked, "system": system, "chips": chips}


def test_sessions_are_characterised_by_their_mean_and_later_calls():
    workload, found = one("sessions.json", 0)
    phases = {phase["phase"]: phase for phase in found["phases"]}
    assert phases["prefill of the first call"]["tokens"] == 6000
    assert phases["prefill of a later call, the rest in cache"]["tokens"] == 1200
    # 15 calls with a deviation of half: (15 (1 + 0.25) - 1) / 2 calls before one on average, each of 1,200 + 400 tokens; answers half written.
    before = (15 * 1.25 - 1) / 2
    assert found["context_tokens"] == pytest.approx(6000 + before * 1600 + 200, rel=0.2)
    for row in found["systems"]:
        answer = estimate(as_case(workload, row["system"], 8) | {"load": "max"}).answer
        assert row["can"] and row["tokens_per_s_per_chip"] == pytest.approx(answer["tokens_per_s"] / 8, rel=1e-9)


def test_media_add_their_tokens_and_their_encoders():
    workload, found = one("media.json", 0)
    phases = {phase["phase"]: phase for phase in found["phases"]}
    assert phases["prefill of one prompt"]["tokens"] == 400 + 2 * 1024
    encoding = phases["encoding the image of one request"]
    assert encoding["tokens"] == 2 * 1024 and encoding["flop"] > 2 * 2 * 6.75e8 * 4096
    (row,) = found["systems"]
    answer = estimate(as_case(workload, "DGX H100", 8) | {"load": "max"}).answer
    assert row["can"] and row["tokens_per_s_per_chip"] == pytest.approx(answer["tokens_per_s"] / 8, rel=1e-9)
    _, tight = one("media.json", 0, slo={"tpot": {"p95": "1 us"}})
    assert not tight["systems"][0]["can"] and "meets all limits" in tight["systems"][0]["why_not"]


def test_reinforcement_is_generation_and_update():
    changed = {"architecture": "Llama-3.1-8B", "ways": ["colocated"], "prompts": 32, "samples": 4, "mini_batches": 2}
    workload, found = one("reinforcement.json", 1, **changed)
    phases = {phase["phase"]: phase for phase in found["phases"]}
    update, decode = phases["update: one mini-batch"], phases["rollout: decode, batch 1"]
    assert update["flop"] == pytest.approx(6 * 8.03e9 * 64 * 3312, rel=0.15)
    passes = 1 + workload.get("reference", True)
    training = 2 * update["flop"] * (1 + passes / 3)
    rolled = 32 * phases["rollout: prefill of one prompt"]["flop"] + 128 * 3000 * decode["flop"]
    assert found["iteration_flop"] == pytest.approx(training + rolled)
    assert found["sustained_flop_per_s"] == pytest.approx(found["iteration_flop"] / 300)  # twelve an hour
    for row in found["systems"]:
        answer = estimate(as_case(workload, row["system"], 8 * row["systems"])).answer
        assert row["can"] and row["iteration_s"] == pytest.approx(answer["iteration_s"])


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_every_format(form, tmp_path, capsys):
    path = tmp_path / "case.json"
    path.write_text(json.dumps(CASE))
    assert main(["characterise", str(path), "--format", form]) == 0
    out = capsys.readouterr().out
    if form == "json":
        assert json.loads(out)["kind"] == "characterisation"
    elif form == "csv":
        assert {"system", "can", "why_not"} <= set(next(csv.DictReader(io.StringIO(out))))
    else:
        assert "systems that cannot" in out


def test_exit_codes_and_places(tmp_path, capsys):
    path = tmp_path / "case.json"
    slow = copy.deepcopy(CASE)
    slow["workload"]["slo"] = {"tpot": {"p95": "1 us"}}
    path.write_text(json.dumps(slow))
    assert main(["characterise", str(path)]) == INFEASIBLE
    path.write_text(json.dumps({**CASE, "workload": {**CASE["workload"], "architecture": "Lama"}}))
    assert main(["characterise", str(path)]) == INVALID
    capsys.readouterr()
    spec = json.loads((EXAMPLES / "mixed_fleet.json").read_text())
    spec["workloads"][0]["architecture"] = "Lama"
    with pytest.raises(SpecError) as caught:
        characterise(spec)
    assert caught.value.problems[0].path == "workloads[0].architecture"


def test_state_and_collectives_are_those_of_the_steps_of_training():
    """Bytes by optimizer and gradients as the memory of a step has them; gradients travel in 16 bit, whatever they are kept in."""
    document = json.loads((EXAMPLES / "cases" / "gpt3_a100.json").read_text())
    for optimizer, gradients, each in (("adam", "fp32", 18), ("adam", "bf16", 16), ("adam_fp32", "bf16", 14)):
        document["workload"] |= {"optimizer": optimizer, "gradients": gradients}
        (found,) = characterise(document)["workloads"]
        assert found["state_bytes"] == pytest.approx(each * found["parameters"])
        (row,) = [row for row in found["collectives"] if row["collective"].startswith("data: gradients")]
        assert row["bytes"] == pytest.approx(2 * found["parameters"])


def test_what_stays_wider_is_what_the_checkpoint_leaves_so():
    """gpt-oss-120b in MXFP4: 2.1B of 116.8B parameters stay in 16 bit (model card); of weights all in 8 bit nothing does."""
    document = {**copy.deepcopy(CASE)}
    document["workload"]["architecture"] = "gpt-oss-120b"
    rows = {row["precision"]: row for row in characterise(document)["workloads"][0]["precisions"]}
    assert rows["mxfp4"]["kept_wider"] == pytest.approx(2.1 / 116.8, rel=0.03)
    assert rows["fp8"]["kept_wider"] == 0.0
