"""Turn results of InferenceX and Benchmark Reports of llm-d into results with the keys of `vllm bench serve`, which `benchmark_files` reads.

Both name chips, degrees and the engine, unlike the reports of `benchmark_reports`; what they state goes by the columns of a serving file.
Sources: InferenceX `agg_*.json` (2026-08), llmd-benchmark-report 0.2.1 (`version` 0.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from models.arrays import sum_of
from planner.messages import Message

MODE = "benchmark_mode"
"""Key of a converted result: column `mode`, which other benchmarks use for a setting of theirs."""
REPORTED = "0.2"  # versions of Benchmark Reports that are read begin so
ENGINES = {"trt": "tensorrt_llm", "tensorrt": "tensorrt_llm", "sglang": "sglang", "vllm": "vllm", "atom": "atom"}
TIMES = {"ttft": "ttft", "tpot": "tpot", "e2el": "e2el"}
STATISTICS = ("mean", "median", "p99")
SECONDS_TO_MS = 1e3
UNITS_MS = {"s": 1e3, "ms": 1.0, "s/token": 1e3, "ms/token": 1.0}
PARALLEL = ("tp", "pp", "dp", "ep")


def is_inferencex(found: Mapping[str, Any]) -> bool:
    """Tell a result of InferenceX by the keys that it alone has."""
    return {"hw", "conc", "isl", "osl"} <= set(found)


def inferencex(result: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Convert a result of InferenceX: times in seconds, rates per chip, and clients that each send the next request when the last ends.

    `tool`: key under which the tool is named. Output rates of pools apart are per chip of the decode pool. Raises ValueError for a result without
    degrees.
    """
    apart = _true(result.get("disagg"))
    pools = {name: _pool(result, f"{name}_") for name in ("prefill", "decode")} if apart else {"": _pool(result, "")}
    chips = {name: _number(result.get(f"num_{name}_gpu")) or pool["chips"] for name, pool in pools.items()}
    if not all(chips.values()):
        raise ValueError(Message.of("calibration.no_degrees", tool="InferenceX").text())
    decoding = chips["decode"] if apart else chips[""]
    found: dict[str, Any] = {
        tool: "InferenceX",
        "model_id": result.get("model"),
        "engine": _engine(str(result.get("framework") or "")),
        "weight_dtype": result.get("precision"),
        "chip": _chip(result),
        "n_chips": sum_of(chips.values()),
        MODE: "disaggregated" if apart else "aggregated",
        "max_concurrency": result["conc"],
        "isl": result["isl"],
        "osl": result["osl"],
    }
    for key in TIMES:
        seconds = {name: _number(result.get(f"{name}_{key}")) for name in STATISTICS}
        found |= {f"{name}_{key}_ms": value * SECONDS_TO_MS for name, value in seconds.items() if value}
    if rate := _number(result.get("output_tput_per_gpu")):
        found["output_throughput"] = rate * decoding
    if apart:
        found["other_metric"] = "; ".join(_worker(name, pool) for name, pool in pools.items())
    else:
        found |= {name: pools[""][name] for name in PARALLEL}
    return {key: value for key, value in found.items() if value not in (None, "")}


def _pool(result: Mapping[str, Any], before: str) -> dict[str, float]:
    """Return degrees, workers and chips of a pool; ranks that share a request's attention by data take the tensor degree as theirs."""
    ranks, stages = _number(result.get(f"{before}tp")), _number(result.get(f"{before}pp")) or 1.0
    by_data, workers = _true(result.get(f"{before}dp_attention")), _number(result.get(f"{before}num_workers")) or 1.0
    return {
        "tp": 1.0 if by_data else ranks,
        "dp": ranks if by_data else 1.0,
        "pp": stages,
        "ep": _number(result.get(f"{before}ep")) or 1.0,
        "workers": workers,
        "chips": ranks * stages * workers,
    }


def _worker(name: str, pool: Mapping[str, float]) -> str:
    """Write a pool as `pool_layouts.pools_of` reads it."""
    return f"{name} {pool['workers']:.0f}x(tp{pool['tp']:.0f} pp{pool['pp']:.0f} dp{pool['dp']:.0f} ep{pool['ep']:.0f})"


def _chip(result: Mapping[str, Any]) -> str:
    """Name the chip: "h200-nb" is an H200 of one provider."""
    return str(result["hw"]).partition("-")[0].upper()


def _engine(framework: str) -> str:
    """Name the engine in a framework such as "dynamo-trt"."""
    words = framework.lower().replace("_", "-").split("-")
    return next((ENGINES[word] for word in reversed(words) if word in ENGINES), framework)


def is_benchmark_report(found: Mapping[str, Any]) -> bool:
    """Tell a Benchmark Report by its parts."""
    return isinstance(found.get("scenario"), Mapping) and isinstance(found.get("results"), Mapping)


def benchmark_report(report: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """Convert a Benchmark Report, each statistic by its own unit; `tool`: key under which the tool is named.

    Raises ValueError for another version, an unknown unit, or components with different chips.
    """
    if not str(report.get("version")).startswith(REPORTED):
        words = {"tool": "Benchmark Report", "version": str(report.get("version")), "known": REPORTED}
        raise ValueError(Message.of("calibration.report_version", **words).text())
    load = _block(report, "scenario", "load", "standardized")
    done = _block(report, "results", "request_performance", "aggregate")
    completed = (_number(_block(done, "requests").get("total")) or 0.0) - _number(
        _block(done, "requests").get("failures")
    )
    found: dict[str, Any] = {
        tool: str(load.get("tool") or "Benchmark Report"),
        "request_rate": load.get("rate_qps"),
        "max_concurrency": load.get("concurrency"),
        "isl": _mean(_block(done, "requests", "input_length")) or _block(load, "input_seq_len").get("value"),
        "osl": _mean(_block(done, "requests", "output_length")) or _block(load, "output_seq_len").get("value"),
        "completed": completed or None,
        "output_throughput": _mean(_block(done, "throughput", "output_token_rate")),
        "request_throughput": _mean(_block(done, "throughput", "request_rate")),
        **_stack(report),
    }
    for key, name in (("ttft", "time_to_first_token"), ("tpot", "time_per_output_token"), ("e2el", "request_latency")):
        found |= _statistics(key, _block(done, "latency", name))
    return {key: value for key, value in found.items() if value not in (None, "", 0.0)}


def _stack(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return model, engine, chip and degrees of the engines in the stack; empty where the report has none."""
    parts = _block(report, "scenario").get("stack")
    engines = [
        part
        for each in (parts if isinstance(parts, list) else ())
        if (part := _block(each, "standardized")).get("kind") == "inference_engine"
    ]
    if not engines:
        return {}
    chips = {str(_block(part, "accelerator").get("model") or "") for part in engines}
    if len(chips) > 1:
        raise ValueError(Message.of("calibration.several_chips", chips=", ".join(sorted(chips))).text())
    pools = {str(part.get("role") or "replica"): _engine_pool(part) for part in engines}
    apart = set(pools) == {"prefill", "decode"}
    first = engines[0]
    found: dict[str, Any] = {
        "model_id": _block(first, "model").get("name"),
        "engine": _engine(str(first.get("tool") or "")),
        "engine_version": first.get("tool_version"),
        "chip": chips.pop(),
        "n_chips": sum_of(pool["chips"] for pool in pools.values()),
        MODE: "disaggregated" if apart else "aggregated",
    }
    if apart:
        return {**found, "other_metric": "; ".join(_worker(name, pools[name]) for name in ("prefill", "decode"))}
    return found | {name: value for name, value in next(iter(pools.values())).items() if name in PARALLEL}


def _engine_pool(part: Mapping[str, Any]) -> dict[str, float]:
    """Return degrees, workers and chips of an engine's replicas; `count` of the report is the accelerators of one."""
    accelerator, degrees = _block(part, "accelerator"), _block(part, "accelerator", "parallelism")
    found = {name: _number(degrees.get(name)) or 1.0 for name in PARALLEL}
    workers = _number(part.get("replicas")) or 1.0
    each = _number(accelerator.get("count")) or found["tp"] * found["pp"] * found["dp"]
    return {**found, "workers": workers, "chips": each * workers}


def _statistics(key: str, found: Mapping[str, Any]) -> dict[str, float]:
    """Return mean, median and 99th percentile of a time in ms. Raises ValueError for an unknown unit."""
    if not found:
        return {}
    unit = str(found.get("units"))
    if unit not in UNITS_MS:
        raise ValueError(Message.of("calibration.unknown_unit", unit=unit, known=", ".join(UNITS_MS)).text())
    stated = (("mean", "mean"), ("median", "p50"), ("p99", "p99"))
    values = {name: _number(found.get(source)) for name, source in stated}
    return {f"{name}_{key}_ms": value * UNITS_MS[unit] for name, value in values.items() if value}


def _mean(found: Mapping[str, Any]) -> float:
    return _number(found.get("mean"))


def _block(found: Any, *names: str) -> Mapping[str, Any]:
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _number(value: Any) -> float:
    """Return a positive number, also one written as text; 0 for anything else."""
    try:
        number = 0.0 if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return 0.0
    return number if 0.0 < number < float("inf") else 0.0


def _true(value: Any) -> bool:
    return value is True or str(value).lower() == "true"
