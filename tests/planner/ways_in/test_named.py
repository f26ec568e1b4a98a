"""`hf:ORG/NAME` as the name of an architecture in specs and cases: found in the cache, told apart where it is not, and never asked for otherwise."""

from __future__ import annotations

import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.ways_in import named
from planner.ways_in.draft import DEMO
from planner.ways_in.named import with_hub_models

CONFIG = {
    "model_type": "llama", "hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "intermediate_size": 8192, "vocab_size": 32000, "max_position_embeddings": 8192, "tie_word_embeddings": False, "torch_dtype": "bfloat16",
}  # fmt: skip


@pytest.fixture
def offline(tmp_path, monkeypatch):
    """A cache with the config of org/own, and no hub behind it."""
    place = tmp_path / "hub" / "models--org--own" / "snapshots" / "ab"
    place.mkdir(parents=True)
    (place / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def spec(*architectures):
    workloads = [
        {**DEMO["workloads"][0], "name": f"w{i}", "architecture": name} for i, name in enumerate(architectures)
    ]
    return {**DEMO, "workloads": workloads}


def test_a_spec_names_a_model_of_the_hub_and_its_plan_needs_no_hub(offline, monkeypatch):
    plan = planner.solve(spec("hf:org/own"))
    assert plan.has_answer
    monkeypatch.setattr(named, "hub_config", None)
    assert planner.verify_plan(plan) == []
    assert plan.document["spec"]["workloads"][0]["architecture"] == "org/own"
    (record,) = plan.document["spec"]["catalog"]["architectures"]
    assert record["config"] == CONFIG and "cache" in record["note"]


def test_each_place_gets_the_name_of_a_record_and_one_record_is_enough(offline):
    document = spec("hf:org/own", "hf:Qwen/Qwen3-32B", " hf:org/own")
    document["workloads"][1]["alternatives"] = [{"architecture": "hf:org/own", "quality": 1}]
    found = with_hub_models(document)
    names = [workload["architecture"] for workload in found["workloads"]]
    assert names == ["org/own", "Qwen3-32B", "org/own"]
    assert found["workloads"][1]["alternatives"][0]["architecture"] == "org/own"
    assert [record["name"] for record in found["catalog"]["architectures"]] == ["org/own"]
    assert with_hub_models(found) == found
    assert document["workloads"][0]["architecture"] == "hf:org/own", "the document of the caller stays as it is"


def test_a_record_that_only_shares_the_name_stands_for_a_model_with_a_reason(offline, monkeypatch):
    monkeypatch.setattr(named, "hub_config", None)
    document = {**spec("hf:another/Qwen3-32B", "hf:qwen/qwen3-32b"), "assumptions": {"workloads[0].lengths": "ours"}}
    found = with_hub_models(document)
    assert [workload["architecture"] for workload in found["workloads"]] == ["Qwen3-32B"] * 2
    assert set(found["assumptions"]) == {"workloads[0].lengths", "workloads[0].architecture"}
    assert "catalog's Qwen3-32B stands for another/Qwen3-32B" in found["assumptions"]["workloads[0].architecture"]
    plan = planner.solve(document)
    (row,) = [row for row in plan.document["assumptions"] if row["path"] == "workloads[0].architecture"]
    assert row["value"] == "Qwen3-32B" and "stands for another/Qwen3-32B" in row["reason"]
    assert planner.verify_plan(plan) == []


def test_an_estimate_lists_the_record_that_stands_for_a_model(offline):
    workload = {"kind": "serving", "architecture": "hf:another/Qwen3-32B", "lengths": {"input": 100, "output": 50}}
    found = planner.estimate({"workload": workload, "system": "DGX H100", "chips": 8, "load": "max"})
    (row,) = [row for row in found.answer["assumptions"] if row["path"] == "workload.architecture"]
    assert row["value"] == "Qwen3-32B" and "stands for another/Qwen3-32B" in row["reason"]


def test_records_of_the_document_come_first(offline):
    document = {
        **spec("hf:org/mine"),
        "catalog": {"architectures": [{"name": "org/mine", "config": CONFIG}], "chips": []},
    }
    found = with_hub_models(document)
    assert found["workloads"][0]["architecture"] == "org/mine" and found["catalog"] == document["catalog"]


def test_names_without_the_prefix_are_never_asked_for(monkeypatch):
    monkeypatch.setattr(named, "hub_config", None)
    document = {**spec("org/own", "Qwen/Qwen3-32B"), "name": "hf:org/own", "note": "hf:org/own"}
    assert with_hub_models(document) == document


def test_every_missing_model_is_reported_at_its_places(offline):
    with pytest.raises(SpecError) as caught:
        with_hub_models(spec("hf:org/lost", "hf:org/own", "hf:org/lost", "hf:nonsense"))
    told = {problem.path: problem.message for problem in caught.value.problems}
    assert set(told) == {f"workloads[{i}].architecture" for i in (0, 2, 3)}
    assert "HF_HUB_OFFLINE" in told["workloads[0].architecture"]
    assert "expected a model as hf:ORG/NAME" in told["workloads[3].architecture"]


def test_commands_read_specs_and_cases_with_models_of_the_hub(offline, capsys, monkeypatch):
    monkeypatch.chdir(offline)
    (offline / "spec.json").write_text(json.dumps(spec("Llama-3.1-8B")))
    assert main(["check", "spec.json", "--set", "workloads[0].architecture=hf:org/own"]) == 0
    workload = {key: DEMO["workloads"][0][key] for key in ("kind", "lengths", "slo", "precision")}
    case = {"system": "DGX H100", "chips": 8, "workload": {**workload, "architecture": "hf:org/own"}}
    (offline / "case.json").write_text(json.dumps(case))
    assert main(["estimate", "case.json"]) == 0
    case["workload"]["architecture"] = "hf:org/lost"
    (offline / "case.json").write_text(json.dumps(case))
    capsys.readouterr()
    assert main(["estimate", "case.json"]) == 3
    assert "workload.architecture: org/lost is not in the cache" in capsys.readouterr().err


def test_a_function_takes_a_case_with_a_model_of_the_hub(offline):
    lengths = {"input": 100, "output": 50}
    workload = {"kind": "serving", "architecture": "hf:org/own", "lengths": lengths, "precision": ["bf16"]}
    found = planner.estimate({"workload": workload, "system": "DGX H100", "chips": 1, "load": "max"})
    assert found.answer is not None
