"""Reports of AIPerf, GuideLLM and inference-perf, made here in their layouts, as rows of a serving file."""

from __future__ import annotations

import json

import pytest

from planner.calibration.benchmark_files import benchmark_cells
from planner.calibration.measurements import read_rows
from planner.errors import SpecError

COLUMNS = (
    "chip",
    "n_chips",
    "engine",
    "model",
    "concurrency",
    "request_rate_per_s",
    "isl",
    "osl",
    "ttft_ms",
    "tpot_ms",
    "e2e_ms",
)


def metric(unit, avg, **more):
    return {"unit": unit, "avg": avg, **more}


AIPERF = {
    "aiperf_version": "0.13.0", "start_time": "2026-11-26T10:00:00", "was_cancelled": False,
    "input_config": {"endpoint": {"model_names": ["Qwen/Qwen3-32B"]}, "loadgen": {"concurrency": 64}},
    "time_to_first_token": metric("ms", 200.0, p50=180.0, p99=400.0), "inter_token_latency": metric("ms", 20.0, p50=19.0),
    "request_latency": metric("s", 6.2, count=500), "request_throughput": metric("requests/sec", 10.0),
    "output_token_throughput": metric("tokens/sec", 3000.0), "input_sequence_length": metric("tokens", 1000.0),
    "output_sequence_length": metric("tokens", 300.0),
}  # fmt: skip


def split(**statistics):
    return {"successful": statistics, "errored": {"mean": 1e9}, "total": {"mean": 1e9}}


def guidellm(**strategy):
    return {
        "config": {"strategy": strategy},
        "metrics": {
            "requests_per_second": split(mean=10.0), "request_latency": split(mean=6.2, count=500), "output_tokens_per_second": split(mean=3000.0),
            "prompt_token_count": split(mean=1000.0), "output_token_count": split(mean=300.0),
            "time_to_first_token_ms": split(mean=200.0, median=180.0, percentiles={"p99": 400.0}),
            "inter_token_latency_ms": split(mean=20.0), "time_per_output_token_ms": split(mean=20.7),
        },
    }  # fmt: skip


GUIDELLM = {
    "metadata": {"version": 2, "guidellm_version": "0.8.1"},
    "config": {"backend": {"model": "Qwen/Qwen3-32B"}},
    "benchmarks": [
        guidellm(type_="concurrent", streams=64),
        guidellm(type_="poisson", rate=10.0),
        guidellm(type_="synchronous"),
    ],
}
STAGE = {
    "load_summary": {"count": 500, "requested_rate": 10.0, "achieved_rate": 9.9},
    "successes": {
        "count": 500, "latency": {"request_latency": {"mean": 6.2}, "time_to_first_token": {"mean": 0.2, "median": 0.18, "p99": 0.4}, "time_per_output_token": {"mean": 0.02}},
        "throughput": {"requests_per_sec": 10.0, "output_tokens_per_sec": 3000.0}, "prompt_len": {"mean": 1000.0}, "output_len": {"mean": 300.0},
    },
}  # fmt: skip


def cells(tmp_path, document):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    return [
        {key: float(value) if value.replace(".", "").isdecimal() else value for key, value in row.items()}
        for row in benchmark_cells(path, COLUMNS)
    ]


@pytest.mark.parametrize("report", [AIPERF, GUIDELLM, STAGE], ids=["AIPerf", "GuideLLM", "inference-perf"])
def test_each_report_states_the_same_figures(tmp_path, report):
    row = cells(tmp_path, report)[0]
    assert (row["ttft_ms"], row["tpot_ms"], row["e2e_ms"]) == pytest.approx((200.0, 20.0, 6200.0))
    assert (row["isl"], row["osl"], row["output_tokens_per_s_total"]) == pytest.approx((1000.0, 300.0, 3000.0))
    assert "median_ttft_ms=180" in row["other_metric"] and "p99_ttft_ms=400" in row["other_metric"]
    assert "engine" not in row


def test_loads_are_clients_or_a_rate(tmp_path):
    assert cells(tmp_path, AIPERF)[0]["concurrency"] == 64.0
    clients, rate, single = cells(tmp_path, GUIDELLM)
    assert (clients["concurrency"], rate["request_rate_per_s"], single["concurrency"]) == (64.0, 10.0, 1.0)
    assert clients.get("request_rate_per_s") is None and rate.get("concurrency") is None
    assert cells(tmp_path, STAGE)[0]["request_rate_per_s"] == 10.0
    assert clients["model"] == "Qwen/Qwen3-32B"


def test_what_no_report_states_is_set(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(GUIDELLM))
    rows = read_rows(path, "serving", {"chip": "H100 SXM5 80GB", "n_chips": "2", "engine": "sglang"})
    assert [(row.text["chip"], row.text["engine"], row.numbers["n_chips"]) for row in rows] == [
        ("H100 SXM5 80GB", "sglang", 2.0)
    ] * 3


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ({**AIPERF, "was_cancelled": True}, "AIPerf was cancelled"),
        ({**AIPERF, "time_to_first_token": metric("fortnights", 1)}, 'unknown unit of time "fortnights"'),
        ({**GUIDELLM, "metadata": {"version": 1}}, "GuideLLM in version 1; expected version 2"),
        ({**GUIDELLM, "benchmarks": []}, "holds no result"),
        ({"load_summary": {}, "successes": {}}, "expected a benchmark result"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path, report, words):
    with pytest.raises(SpecError, match=words):
        cells(tmp_path, report)
