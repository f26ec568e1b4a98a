"""Results of InferenceX and Benchmark Reports, made here in their layouts, as rows of a serving file."""

from __future__ import annotations

import json
import sys

import pytest

from catalog.lookup import Catalog
from planner.calibration.measurements import SERVING_NUMBERS, SERVING_TEXT, read_rows
from planner.calibration.pool_layouts import pools_of
from planner.calibration.serving_cases import measured_serving
from planner.errors import SpecError

AGGREGATED = {
    "hw": "h200-nb", "conc": 64, "model": "openai/gpt-oss-120b", "framework": "vllm", "precision": "fp4", "spec_decoding": "none",
    "disagg": False, "isl": 1024, "osl": 1024, "tp": 8, "pp": 1, "ep": 1, "dp_attention": "false",
    "tput_per_gpu": 1000.0, "output_tput_per_gpu": 500.0, "mean_ttft": 0.2, "median_ttft": 0.18, "p99_ttft": 0.4, "mean_tpot": 0.015, "mean_e2el": 15.0,
}  # fmt: skip
APART = {
    "hw": "gb200", "conc": 512, "model": "deepseek-ai/DeepSeek-R1-0528", "framework": "dynamo-trt", "precision": "fp4", "disagg": True,
    "isl": 8192, "osl": 1024, "prefill_tp": 4, "prefill_ep": 4, "prefill_dp_attention": "true", "prefill_num_workers": 2,
    "decode_tp": 8, "decode_ep": 8, "decode_dp_attention": "false", "decode_num_workers": 1, "output_tput_per_gpu": 900.0, "mean_tpot": 0.02,
}  # fmt: skip


def report(**stack):
    def told(unit, mean, **more):
        return {"units": unit, "mean": mean, **more}

    return {
        "version": "0.2.1",
        "scenario": {"load": {"standardized": {"tool": "vllm-benchmark", "rate_qps": 3.0, "concurrency": 256}}, **stack},
        "results": {"request_performance": {"aggregate": {
            "requests": {"total": 400, "failures": 0, "input_length": told("count", 1000.0), "output_length": told("count", 300.0)},
            "latency": {"time_to_first_token": told("ms", 120.0, p50=108.0, p99=300.0), "time_per_output_token": told("s/token", 0.024)},
            "throughput": {"output_token_rate": told("tokens/s", 850.0), "request_rate": told("queries/s", 2.83)},
        }}},
    }  # fmt: skip


def engine(role, replicas, count, **degrees):
    accelerator = {"model": "NVIDIA-H100-80GB-HBM3", "count": count, "parallelism": degrees}
    return {"standardized": {"kind": "inference_engine", "role": role, "replicas": replicas, "model": {"name": "Qwen/Qwen3-32B"},
                             "accelerator": accelerator, "tool": "vllm", "tool_version": "0.33.0"}}  # fmt: skip


def rows(tmp_path, document, further=None, ending="json"):
    path = tmp_path / f"result.{ending}"
    path.write_text(json.dumps(document))  # JSON is YAML too
    return read_rows(path, "serving", further or {})


def test_inferencex_states_chips_degrees_and_times_in_seconds(tmp_path):
    (row,) = rows(tmp_path, AGGREGATED)
    named = ("model", "chip", "engine", "weight_dtype", "mode")
    assert [row.text[name] for name in named] == ["openai/gpt-oss-120b", "H200", "vllm", "fp4", "aggregated"]
    numbers = ("n_chips", "tp", "dp", "concurrency", "isl", "osl", "ttft_ms", "tpot_ms", "e2e_ms")
    assert [row.numbers[name] for name in numbers] == pytest.approx([8, 8, 1, 64, 1024, 1024, 200, 15, 15000])
    assert row.numbers["output_tokens_per_s_total"] == pytest.approx(8 * 500.0)
    assert "median_ttft_ms=180" in row.text["other_metric"]


def test_attention_by_data_takes_the_ranks(tmp_path):
    (row,) = rows(tmp_path, {**AGGREGATED, "dp_attention": "true", "ep": 8})
    assert [row.numbers[name] for name in ("tp", "dp", "ep", "n_chips")] == [1, 8, 8, 8]


def test_pools_apart_count_output_per_decode_chip(tmp_path):
    (row,) = rows(tmp_path, APART)
    prefill, decode = pools_of(row)
    assert (row.text["mode"], row.text["engine"], row.numbers["n_chips"]) == ("disaggregated", "tensorrt_llm", 16)
    assert (prefill.workers, prefill.layout["dp"], decode.workers, decode.layout["tp"]) == (2, 4, 1, 8)
    assert row.numbers["output_tokens_per_s_total"] == pytest.approx(8 * 900.0)
    assert measured_serving(row, Catalog.load(), {}).chips == 16


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_a_report_keeps_the_rate_beside_its_ceiling(tmp_path, ending):
    further = {"chip": "H100", "n_chips": "2", "model": "Qwen3-32B", "engine": "vllm"}
    (row,) = rows(tmp_path, report(), further, ending)
    numbers = ("request_rate_per_s", "concurrency", "isl", "osl", "ttft_ms", "tpot_ms", "output_tokens_per_s_total")
    assert [row.numbers[name] for name in numbers] == pytest.approx([3, 256, 1000, 300, 120, 24, 850])
    assert "p99_ttft_ms=300" in row.text["other_metric"]


def test_a_report_names_its_stack(tmp_path):
    (row,) = rows(tmp_path, report(stack=[engine("replica", 2, 4, tp=4)]))
    assert [row.text[name] for name in ("model", "engine", "engine_version", "mode")] == [
        "Qwen/Qwen3-32B", "vllm", "0.33.0", "aggregated",
    ]  # fmt: skip
    assert (row.numbers["n_chips"], row.numbers["tp"]) == (8, 4)
    assert measured_serving(row, Catalog.load(), {}).chip == "H100 SXM5 80GB"
    (apart,) = rows(tmp_path, report(stack=[engine("prefill", 2, 2, tp=2), engine("decode", 1, 4, tp=4)]))
    prefill, decode = pools_of(apart)
    assert (prefill.workers, prefill.chips, decode.workers, decode.chips, apart.numbers["n_chips"]) == (2, 2, 1, 4, 8)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({**AGGREGATED, "tp": None}, "InferenceX without degrees"),
        ({**report(), "version": "0.1"}, "Benchmark Report in version 0.1; expected version 0.2"),
        (
            report(
                stack=[
                    engine("prefill", 1, 8, tp=8),
                    {"standardized": {"kind": "inference_engine", "accelerator": {"model": "L4"}}},
                ]
            ),
            "different chips",
        ),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, document, words):
    with pytest.raises(SpecError, match=words):
        rows(tmp_path, document)


def test_yaml_that_is_none_or_without_its_reader_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "result.yaml"
    path.write_text("a: [1,")
    with pytest.raises(SpecError, match="cannot be read as YAML"):
        read_rows(path, "serving")
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SpecError, match=r"pip install \"flopwatt\[logs\]\""):
        read_rows(path, "serving")


def test_columns_are_those_of_a_serving_file():
    assert {"mode", "chip", "other_metric"} <= set(SERVING_TEXT) and {"tp", "dp", "n_chips"} <= set(SERVING_NUMBERS)
