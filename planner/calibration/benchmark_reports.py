"""Turn reports of AIPerf, GuideLLM and inference-perf into results with the keys of `vllm bench serve`, which `benchmark_files` reads.

Times are converted by the unit that a report states or its layout defines. None of the reports names chips, degrees or the engine; results of
InferenceX and Benchmark Reports do (`planner.calibration.published_results`).
Sources: AIPerf 0.13 `profile_export_aiperf.json`, GuideLLM 0.8 `benchmarks.json` (version 2), inference-perf 0.7 `stage_N_lifecycle_metrics.json`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from planner.calibration.published_results import (
    benchmark_report,
    inferencex,
    is_benchmark_report,
    is_inferencex,
)
from planner.messages import Message

MS_OF = {"ms": 1.0, "s": 1e3, "sec": 1e3, "seconds": 1e3, "us": 1e-3, "µs": 1e-3, "ns": 1e-6}
TOOL = "benchmark_tool"
"""Key of a converted result: the tool that wrote it, which is no engine."""
VERSION = 2  # that GuideLLM writes today


def results_in(found: Any) -> list[Any]:
    """Return the results in a parsed file: each benchmark of a report, converted; a value of another layout as it is. Raises ValueError, with the remedy."""
    if not isinstance(found, Mapping):
        return [found]
    if isinstance(found.get("benchmarks"), list) and isinstance(found.get("metadata"), Mapping):
        return _guidellm(found)
    if isinstance(found.get("time_to_first_token"), Mapping) or isinstance(found.get("request_latency"), Mapping):
        return [_aiperf(found)]
    if isinstance(found.get("load_summary"), Mapping) and isinstance(found.get("successes"), Mapping):
        return [_inference_perf(found)]
    if is_inferencex(found):
        return [inferencex(found, TOOL)]
    if is_benchmark_report(found):
        return [benchmark_report(found, TOOL)]
    return [found]


def _aiperf(report: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a report of AIPerf; its inter-token latency is the time per output token of others."""
    if report.get("was_cancelled") or report.get("is_complete") is False:
        raise ValueError(Message.of("calibration.cancelled_run", tool="AIPerf").text())
    asked = report.get("input_config")
    result: dict[str, Any] = {TOOL: "AIPerf", "date": str(report.get("start_time") or "")}
    for key, metric in (("ttft", "time_to_first_token"), ("tpot", "inter_token_latency"), ("e2el", "request_latency")):
        result |= _times(key, _block(report, metric), str(_block(report, metric).get("unit") or "ms"), "avg", "p50")
    completed = _block(report, "request_count").get("avg") or _block(report, "request_latency").get("count")
    result |= {
        "model_id": _first(asked, "model_names", "model_name", "model"),
        "request_throughput": _block(report, "request_throughput").get("avg"),
        "output_throughput": _block(report, "output_token_throughput").get("avg"),
        "request_rate": _first(asked, "request_rate"),
        "max_concurrency": _first(asked, "concurrency"),
        **_counts(completed, _block(report, "input_sequence_length").get("avg"), _block(report, "output_sequence_length").get("avg")),
    }  # fmt: skip
    return _stated(result)


def _guidellm(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert each benchmark of a report of GuideLLM; its "time per output token" counts the first token too, so that its inter-token latency is taken."""
    version = report["metadata"].get("version")
    if version != VERSION:
        raise ValueError(
            Message.of("calibration.report_version", tool="GuideLLM", version=str(version), known=VERSION).text()
        )
    return [_guidellm_run(report, benchmark) for benchmark in report["benchmarks"] if isinstance(benchmark, Mapping)]


def _guidellm_run(report: Mapping[str, Any], benchmark: Mapping[str, Any]) -> dict[str, Any]:
    metrics, asked = _block(benchmark, "metrics"), _block(benchmark, "config")
    strategy = _block(asked, "strategy")
    kind = str(strategy.get("type_") or strategy.get("type") or "")
    result: dict[str, Any] = {TOOL: "GuideLLM"}
    done = {name: _block(_block(metrics, name), "successful") for name in metrics}
    for key, metric, unit in (
        ("ttft", "time_to_first_token_ms", "ms"),
        ("tpot", "inter_token_latency_ms", "ms"),
        ("e2el", "request_latency", "s"),
    ):
        found = done.get(metric, {})
        result |= _times(key, {**found, "p99": _block(found, "percentiles").get("p99")}, unit, "mean", "median")
    completed = done.get("request_latency", {}).get("count")
    result |= {
        "model_id": _first(asked, "model") or _first(report.get("config"), "model"),
        "request_throughput": done.get("requests_per_second", {}).get("mean"),
        "output_throughput": done.get("output_tokens_per_second", {}).get("mean"),
        "request_rate": strategy.get("rate") if kind in ("constant", "poisson", "async") else None,
        "max_concurrency": 1 if kind == "synchronous" else strategy.get("streams") or strategy.get("max_concurrency"),
        **_counts(completed, done.get("prompt_token_count", {}).get("mean"), done.get("output_token_count", {}).get("mean")),
    }  # fmt: skip
    return _stated(result)


def _inference_perf(report: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a stage of inference-perf, in seconds."""
    load, done = report["load_summary"], report["successes"]
    latency, rate = _block(done, "latency"), _block(done, "throughput")
    result: dict[str, Any] = {TOOL: "inference-perf"}
    for key, metric in (
        ("ttft", "time_to_first_token"),
        ("tpot", "time_per_output_token"),
        ("e2el", "request_latency"),
    ):
        result |= _times(key, _block(latency, metric), "s", "mean", "median")
    result |= {
        "request_throughput": rate.get("requests_per_sec"),
        "output_throughput": rate.get("output_tokens_per_sec"),
        "request_rate": load.get("requested_rate"),
        "max_concurrency": load.get("concurrency"),
        **_counts(done.get("count"), _block(done, "prompt_len").get("mean"), _block(done, "output_len").get("mean")),
    }
    return _stated(result)


def _times(key: str, found: Mapping[str, Any], unit: str, mean: str, median: str) -> dict[str, Any]:
    """Return mean, median and 99th percentile of a time in ms. Raises ValueError for an unknown unit."""
    if unit.lower() not in MS_OF:
        raise ValueError(Message.of("calibration.unknown_unit", unit=unit, known=", ".join(MS_OF)).text())
    pairs = (("mean", found.get(mean)), ("median", found.get(median)), ("p99", found.get("p99")))
    return {f"{name}_{key}_ms": value * MS_OF[unit.lower()] for name, value in pairs if _is_number(value)}


def _counts(completed: Any, inputs: Any, outputs: Any) -> dict[str, Any]:
    """Return the requests, and all tokens of prompts and answers from their means."""
    if not _is_number(completed):
        return {}
    totals = (("total_input_tokens", inputs), ("total_output_tokens", outputs))
    return {"completed": completed, **{name: mean * completed for name, mean in totals if _is_number(mean)}}


def _stated(result: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in result.items() if value is not None}


def _block(found: Any, name: str) -> Mapping[str, Any]:
    value = found.get(name) if isinstance(found, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _first(found: Any, *names: str) -> Any:
    """Return the first value of one of the names anywhere in a configuration, of a list its first entry; None where there is none."""
    for name in names:
        for value in _all(found, name):
            value = value[0] if isinstance(value, list) and value else value
            if isinstance(value, str | int | float) and value != "":
                return value
    return None


def _all(found: Any, name: str) -> Iterator[Any]:
    level = [found]
    while level:
        inside = [
            value
            for each in level
            for value in (each.values() if isinstance(each, Mapping) else each if isinstance(each, list) else ())
        ]
        yield from (each[name] for each in level if isinstance(each, Mapping) and name in each)
        level = inside
