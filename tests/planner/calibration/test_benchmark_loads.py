"""Files of benchmarks keep an arrival rate apart from a ceiling over what is in flight, and what was in flight follows by Little's law."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from catalog.lookup import shipped_catalog
from planner.calibration.fit import read_measurements
from planner.calibration.scores import validate
from planner.calibration.serving_cases import MeasuredServing
from planner.calibration.serving_loads import in_flight
from planner.errors import SpecError

# An open run of 400 requests at 3 per second under a ceiling of 256; times and rates are those of one run and agree by Little's law.
OPEN = {
    "date": "20261120-101500", "backend": "openai-chat", "model_id": "Qwen/Qwen3-32B", "num_prompts": 400, "request_rate": 3.0, "max_concurrency": 256,
    "duration": 141.2, "completed": 400, "total_input_tokens": 400000, "total_output_tokens": 120000, "request_throughput": 2.83, "output_throughput": 849.9,
    "max_concurrent_requests": 41, "mean_ttft_ms": 121.5, "mean_tpot_ms": 24.1, "mean_e2el_ms": 7330.0, "chip": "H100", "n_chips": 2, "tp": 2,
    "weight_dtype": "bf16",
}  # fmt: skip
SGLANG = {
    "tag": "chip=H100,n_chips=2,tp=2,weight_dtype=bf16", "backend": "sglang", "request_rate": 3.0, "max_concurrency": 256, "completed": 400,
    "server_info": {"model_path": "Qwen/Qwen3-32B"}, "total_input_tokens": 400000, "total_output_tokens": 120000, "request_throughput": 2.83,
    "output_throughput": 849.9, "mean_ttft_ms": 121.5, "mean_tpot_ms": 24.1, "mean_e2e_latency_ms": 7330.0, "concurrency": 20.74,
}  # fmt: skip
COLUMNS = "id,chip,n_chips,model,tp,weight_dtype,engine,isl,osl,concurrency,request_rate_per_s,ttft_ms,tpot_ms,output_tokens_per_s_total"
ROW = "x,H100,2,Qwen3-32B,2,bf16,vllm,1000,300,{ceiling},{rate},121.5,24.1,849.9"


def case_of(path: Path) -> MeasuredServing:
    (case,) = read_measurements(path, shipped_catalog()).cases
    assert isinstance(case, MeasuredServing)
    return case


def result(folder: Path, **changes: object) -> Path:
    path = folder / "run.json"
    path.write_text(json.dumps({**OPEN, **changes}), encoding="utf-8")
    return path


def table(folder: Path, ceiling: object, rate: object) -> Path:
    path = folder / "run.csv"
    path.write_text(f"{COLUMNS}\n{ROW.format(ceiling=ceiling, rate=rate)}\n", encoding="utf-8")
    return path


def test_a_rate_under_a_ceiling_is_open_arrivals(tmp_path):
    case = case_of(result(tmp_path))
    assert (case.case.regime, case.case.load, case.case.running, case.case.requests) == ("open", 3.0, 256.0, 400.0)
    assert in_flight(case.row) == pytest.approx(2.83 * 7.33)


def test_a_table_means_the_same_as_the_file(tmp_path):
    case = case_of(table(tmp_path, 256, 3))
    assert (case.case.regime, case.case.load, case.case.running) == ("open", 3.0, 256.0)
    assert in_flight(case.row) == pytest.approx(849.9 / 300 * (0.1215 + 299 * 0.0241))


def test_sglang_measures_what_was_in_flight_beside_its_ceiling(tmp_path):
    """Its key `concurrency` is a result, `max_concurrency` the setting."""
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(SGLANG), encoding="utf-8")
    case = case_of(path)
    assert (case.case.regime, case.case.load, case.case.running) == ("open", 3.0, 256.0)
    assert in_flight(case.row) == pytest.approx(SGLANG["concurrency"], rel=1e-3)


def test_the_ceiling_hardly_moves_what_is_predicted_of_a_light_load(tmp_path):
    """With some 20 in flight a ceiling of 256, of 1,000 or none is the same run; 256 clients would take four times as long."""
    found = []
    for ceiling in (256, 1000, None):
        scores = validate(result(tmp_path, max_concurrency=ceiling), shipped_catalog()).scores
        found.append(next(score.predicted for score in scores if score.metric == "tpot"))
    assert found == pytest.approx([found[0]] * 3, rel=0.01)
    assert found[0] == pytest.approx(0.0241, rel=0.3)
    clients = validate(result(tmp_path, request_rate="inf"), shipped_catalog()).scores
    assert next(score.predicted for score in clients if score.metric == "tpot") > 3 * found[0]


@pytest.mark.parametrize("rate", ["inf", None])
def test_without_a_finite_rate_the_limit_is_the_clients(tmp_path, rate):
    case = case_of(result(tmp_path, request_rate=rate))
    assert (case.case.regime, case.case.load) == ("closed", 256.0)


def test_a_rate_as_text_is_a_rate(tmp_path):
    assert case_of(result(tmp_path, request_rate="3.0")).case.regime == "open"


@pytest.mark.parametrize("as_table", [False, True])
def test_arrivals_beyond_the_ceiling_wait_for_it(tmp_path, as_table):
    """At 3 requests per second of 7.33 s some 22 would be in flight: under a ceiling of 16 that is 16 clients, under one of 24 it is not."""
    for ceiling, regime in ((16, "closed"), (24, "open")):
        path = table(tmp_path, ceiling, 3) if as_table else result(tmp_path, max_concurrency=ceiling)
        assert case_of(path).case.regime == regime


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"ramp_up_strategy": "linear", "ramp_up_start_rps": 1, "ramp_up_end_rps": 9}, "linear"), ({"request_rate": "trace"}, "trace")],
)  # fmt: skip
def test_what_is_no_steady_load_is_refused_with_its_place(tmp_path, changes, words):
    with pytest.raises(SpecError, match=rf"run\.json result 1: .*{words}"):
        read_measurements(result(tmp_path, **changes), shipped_catalog())
