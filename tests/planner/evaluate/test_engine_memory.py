"""Memory of engines against public logs: tokens of KV cache, and what runs where the data sheet's memory would not hold it."""

from __future__ import annotations

import pytest

from catalog.lookup import Catalog
from models.serving.decode import ServingLayouts
from models.serving.examples import DENSE, MOE, ONE, SERVING
from models.serving.kv_cache import cache_bytes_per_chip, kv_bytes_per_chip, reserve_bytes
from planner.calibration.architectures import shape_of_record
from planner.estimate.answer import estimate
from planner.evaluate.engine_memory import LOGIT_BYTES, static_share, with_memory
from planner.problem.engine import EngineSettings
from planner.resolve.chip_rates import chip_rates, memory_figure
from planner.resolve.ledger import Ledger
from planner.resolve.stack.engines import memory_of

GIB = 2.0**30
CATALOG = Catalog.load()

# (chip, architecture, weights, KV cache, engine, stated share, tp, tokens of KV cache in the log, where it is logged)
LOGGED = [
    ("H100 SXM5 80GB", "Llama-3-8B", "bf16", "bf16", "vllm", 0.9, 1, 53.29 * GIB / 131072, "vllm-project/vllm pull 10511"),
    ("A100 SXM 80GB", "Llama-2-7B", "bf16", "bf16", "vllm", 0.9, 1, 7351 * 16, "vllm-project/vllm pull 2031"),
    ("L40S", "Qwen2.5-32B", "bf16", "bf16", "vllm", 0.9, 2, 3947 * 16, "vllm-project/vllm issue 15815"),
    ("MI300X", "MiniMax-M2", "fp8", "bf16", None, None, 2, 497600, "vllm-project/recipes pull 273"),
    ("H100 NVL 94GB", "Llama-3.1-8B", "bf16", "bf16", None, None, 1, 542960, "helium.constants"),
    ("H100 NVL 94GB", "Qwen3-8B", "bf16", "bf16", None, None, 1, 478560, "helium.constants"),
    ("H100 NVL 94GB", "Qwen3-14B", "bf16", "bf16", None, None, 1, 350304, "helium.constants"),
    ("H100 NVL 94GB", "Qwen3-32B", "bf16", "bf16", None, None, 1, 81648, "helium.constants"),
    ("H100 SXM5 80GB", "Qwen3-235B-A22B", "fp8", "bf16", "sglang", 0.93, 4, 367404, "vllm-project/vllm issue 21348"),
    ("A100 SXM 80GB", "Llama-2-7B", "int8", "bf16", "tensorrt_plan", None, 1, 132608, "NVIDIA/TensorRT-LLM issue 1400"),
    ("A100 SXM 80GB", "gpt-oss-20b", "fp4", "bf16", "vllm", 0.65, 1, 36.56 * GIB / 49152, "myoceane.fr, ai-vllm-a100-gemma-4"),
]  # fmt: skip


# Runs that were reported to work: (system, chips, architecture, weights, layout, where).
RAN = [
    ("AWS p4d.24xlarge", 4, "Llama-2-70B", "bf16", {"tp": 4}, "four A100 of 40 GB"),
    ("DGX H100", 2, "Llama-3.1-70B", "bf16", {"tp": 2}, "vllm-project/vllm issue 10517"),
]


def cache(chip: str, architecture: str, weights: str, engine: str | None, share: float | None, tp: int) -> float:
    record = CATALOG.get("chips", chip)
    family = record.words("family") or ""
    rates = chip_rates(record, "bf16", scaleup_bytes_per_s=1.0, scaleup_chips=8, scaleout_bytes_per_s=1.0)
    found = memory_of(Ledger(CATALOG), engine, share, "workload")
    settings = EngineSettings(found[0], memory_rule=found[1], reserved_bytes=found[2])
    known = with_memory(SERVING, family, rates.hbm_bytes, settings)
    arch = shape_of_record(CATALOG.get("architectures", architecture))
    return float(cache_bytes_per_chip(arch, rates, ServingLayouts(tp, 1, 1, 1), weights, known))


def per_token(architecture: str, tp: int, kv: str) -> float:
    arch = shape_of_record(CATALOG.get("architectures", architecture))
    return float(kv_bytes_per_chip(arch, ServingLayouts(tp, 1, 1, 1), 1.0, kv))


@pytest.mark.parametrize("chip, architecture, weights, kv, engine, share, tp, tokens, source", LOGGED)
def test_tokens_of_cache_are_those_of_logged_runs(chip, architecture, weights, kv, engine, share, tp, tokens, source):
    predicted = cache(chip, architecture, weights, engine, share, tp) / per_token(architecture, tp, kv)
    assert predicted == pytest.approx(tokens, rel=0.05), source


@pytest.mark.parametrize("system, chips, architecture, weights, layout, source", RAN)
def test_what_ran_fits(system, chips, architecture, weights, layout, source):
    found = estimate({
        "workload": {
            "kind": "serving", "architecture": architecture, "lengths": {"input": 500, "output": 100}, "precision": [weights],
            "disaggregation": "never",
        },
        "system": system, "chips": chips, "layout": layout, "load": {"concurrency": 1},
    })  # fmt: skip
    assert found.answer is not None, found.reason
    assert found.answer["memory"][0]["longest_context_tokens"] > 2000


def test_the_memory_of_a_chip_is_what_its_driver_reports_unless_a_user_states_it():
    own = CATALOG.with_overrides({"chips/H100 SXM5 80GB/hbm_bytes": {"value": "60 GB", "note": "a part of it"}})
    assert memory_figure(CATALOG.get("chips", "H100 SXM5 80GB")) == "driver_bytes"
    assert memory_figure(own.get("chips", "H100 SXM5 80GB")) == "hbm_bytes"
    assert memory_figure(CATALOG.get("chips", "TPU v5p")) == "hbm_bytes"
    for record in CATALOG.records("chips"):
        if reported := record.get("driver_bytes"):
            assert 0.95 < reported.number / record.figure("hbm_bytes").number < 1.08, (
                record.name
            )  # binary for decimal units


def test_the_reserve_is_the_larger_of_activations_and_logits():
    plain = reserve_bytes(DENSE, ONE, SERVING)
    assert plain == SERVING.runtime_bytes
    for family, chip_bytes in (("hopper", 85e9), ("ada", 48e9), ("cdna3", 206e9)):
        known = with_memory(SERVING, family, chip_bytes, EngineSettings(0.9, memory_rule="share", reserved_bytes=1e9))
        logits = known.step_requests * DENSE.vocab * known.logit_bytes
        layers = known.step_tokens * 2 * (3 * DENSE.ffn + 3 * DENSE.hidden)
        assert reserve_bytes(DENSE, ONE, known) == pytest.approx(1e9 + max(logits, layers))
        assert known.logit_bytes >= LOGIT_BYTES
        more = [
            float(reserve_bytes(arch, ServingLayouts(tp, 1, 1, 1), known))
            for arch in (DENSE, MOE)
            for tp in (8, 4, 2, 1)
        ]
        assert more[:4] == sorted(more[:4]) and more[4:] == sorted(more[4:])


def test_shares_of_what_is_left_and_of_the_whole():
    chip = chip_rates(
        CATALOG.get("chips", "H100 SXM5 80GB"),
        "bf16",
        scaleup_bytes_per_s=1.0,
        scaleup_chips=8,
        scaleout_bytes_per_s=1.0,
    )
    free, share = (
        with_memory(SERVING, "hopper", chip.hbm_bytes, EngineSettings(0.9, memory_rule=rule))
        for rule in ("free", "share")
    )
    weights = (
        float(chip.hbm_bytes)
        - float(cache_bytes_per_chip(DENSE, chip, ONE, "bf16", free)) / 0.9
        - float(reserve_bytes(DENSE, ONE, free))
    )
    ours = 0.9 * float(chip.hbm_bytes) - weights - float(reserve_bytes(DENSE, ONE, share))
    assert float(cache_bytes_per_chip(DENSE, chip, ONE, "bf16", share)) == pytest.approx(ours)


def test_the_static_share_is_that_of_a_logged_server():
    """0.911 on an MI355X of 287.2 GiB with one chip (sgl-project/sglang pull 18263); 8 chips reserve 896 MiB more."""
    assert static_share(309220868096) == pytest.approx(0.911, abs=0.004)


def test_an_estimate_states_memory_by_part():
    found = estimate({
        "workload": {
            "kind": "serving", "architecture": "Qwen3-32B", "lengths": {"input": 1000, "output": 200}, "precision": ["bf16"],
            "disaggregation": "never", "engine": "vllm",
        },
        "system": "DGX H100", "chips": 2, "layout": {"tp": 2}, "load": {"concurrency": 4},
    }).answer  # fmt: skip
    (row,) = found["memory"]
    assert row["weights_bytes"] + row["reserve_bytes"] + row["cache_bytes"] == pytest.approx(0.92 * row["memory_bytes"])
    assert row["cache_tokens"] == pytest.approx(row["cache_bytes"] / per_token("Qwen3-32B", 2, "bf16"))
    assert row["state_bytes"] == 0 and row["longest_context_tokens"] == int(row["cache_tokens"])
    assert row["places"] == pytest.approx(row["cache_tokens"] / 1200, rel=0.05)
    paths = {each["path"] for each in found["assumptions"]}
    assert "workload.memory_utilisation" in paths
