"""Formats of weights in cases and plans: offered wherever memory holds them, multiplied in what the chip has."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.estimate.answer import estimate


def case(architecture, system, chips, precision, **workload):
    return {
        "workload": {
            "kind": "serving", "architecture": architecture, "lengths": {"input": 1000, "output": 100, "input_cv": 0, "output_cv": 0},
            "precision": [precision], "disaggregation": "never", **workload,
        },
        "system": system, "chips": chips, "load": {"concurrency": 1},
    }  # fmt: skip


def answer(*args, **workload):
    found = estimate(case(*args, **workload))
    assert found.answer is not None, found.reason
    return found.answer


def tpot_ms(answer):
    return answer["latency_s"]["tpot"]["mean"] * 1e3


@pytest.mark.parametrize(
    ("architecture", "system", "chips", "precision"),
    [
        ("gpt-oss-120b", "DGX H100", 1, "fp4"),  # 65.2 GB on one card: OpenAI, gpt-oss model card
        ("gpt-oss-120b", "DGX H100", 1, "mxfp4"),
        ("Kimi-K2.5", "DGX H200", 8, "int4"),  # 595 GB: vLLM, Kimi-K2.5 recipe
        ("DeepSeek-R1", "DGX H100", 8, "int4"),  # AWQ: vLLM issue tracker
        ("Meta-Llama-3.1-70B", "DGX A100 80GB", 1, "int4"),
        ("Meta-Llama-3.1-70B", "DGX A100 80GB", 2, "fp8"),  # widened, as by Marlin's kernels
        ("Meta-Llama-3.1-70B", "DGX H100", 1, "nvfp4"),
    ],
)
def test_weights_run_wherever_memory_holds_them(architecture, system, chips, precision):
    assert answer(architecture, system, chips, precision)


def test_narrow_weights_save_reading_and_no_arithmetic_where_they_are_widened():
    eight, sixteen = (answer("Meta-Llama-3.1-8B", "DGX A100 80GB", 1, name) for name in ("fp8", "bf16"))
    assert 1.3 < tpot_ms(sixteen) / tpot_ms(eight) < 2.0


def test_a_stated_arithmetic_holds_and_one_that_cannot_be_is_refused():
    long = {"lengths": {"input": 8000, "output": 2, "input_cv": 0, "output_cv": 0}}
    ttft = lambda **more: answer("Meta-Llama-3.1-70B", "DGX H100", 4, "int4", **long, **more)["latency_s"]["ttft"][
        "mean"
    ]
    assert ttft(arithmetic="fp8") < 0.8 * ttft()
    assert ttft(arithmetic="bf16") == ttft()
    with pytest.raises(SpecError, match=r"workload\.precision"):
        estimate(case("Meta-Llama-3.1-8B", "DGX A100 80GB", 1, "fp8", arithmetic="fp8"))
    with pytest.raises(SpecError, match=r"workload\.arithmetic"):
        estimate(case("Meta-Llama-3.1-8B", "DGX A100 80GB", 1, "fp8", arithmetic="fp12"))


@pytest.mark.parametrize(
    ("precision", "cache"), [("fp8", "bf16"), ("int8", "bf16"), ("int4", "bf16"), ("nvfp4", "fp8"), ("bf16", "bf16")]
)
def test_the_cache_is_as_engines_keep_it(precision, cache):
    assert answer("Meta-Llama-3.1-8B", "DGX H100", 1, precision)["kv_precision"] == cache
    assert answer("Meta-Llama-3.1-8B", "DGX H100", 1, precision, kv_precision=["int8"])["kv_precision"] == "int8"
