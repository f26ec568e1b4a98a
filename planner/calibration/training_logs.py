"""Read the logs that Megatron-LM, torchtitan and submitters to MLPerf Training write, as rows of a training file: one row per log.

Figures of a row are medians of the logged steps at the last global batch, without the first tenth, in which software warms up. What a log does not
say (the chip always, the architecture mostly) comes from `--set chip=... model=...` of the command.
Sources: Megatron-LM `training.py` (2026-08), torchtitan 0.3.0 `metrics.py`, mlperf-logging `mllog` (2026-07).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from catalog.units import GIGA
from planner.errors import Issue, SpecError
from planner.messages import Message

LOG_ENDINGS = (".log", ".out", ".txt")
WARM_UP = 0.1  # share of the first steps that is left out
GIB = 2**30  # byte
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_MEGATRON = re.compile(r"iteration +\d+/ *\d+ \|.*?elapsed time per iteration \(ms\): *([0-9.]+)")
_MEGATRON_RATE = re.compile(r"throughput per GPU \(TFLOP/s/GPU\): *([0-9.]+)")
_MEGATRON_BATCH = re.compile(r"global batch size: *([0-9]+)")
_ARGUMENT = re.compile(r"^(?:.*?[\]:] )? *([a-z][a-z0-9_]*) \.{2,} (.+?) *$")
_TITAN = re.compile(r"\bstep: *\d+ .*?\btps: *([0-9,]+)")
_TITAN_FIGURES = {
    "tflops": re.compile(r"\btflops: *([0-9,.]+)"),
    "mfu": re.compile(r"\bmfu: *([0-9.]+)%"),
    "memory": re.compile(r"\bmemory: *([0-9.]+)GiB"),
}
_TITAN_SETTING = re.compile(
    r"\b(data_parallel_replicate_degree|data_parallel_shard_degree|tensor_parallel_degree|pipeline_parallel_degree|context_parallel_degree"
    r"|expert_parallel_degree|local_batch_size|global_batch_size|seq_len)\b[\"']?[ =:]+(-?\d+)"
)

MEGATRON_NUMBERS = {
    "world_size": "n_chips", "seq_length": "seq_len", "tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp",
    "context_parallel_size": "cp", "expert_model_parallel_size": "ep", "data_parallel_size": "dp", "micro_batch_size": "micro_batch",
    "virtual_pipeline_model_parallel_size": "vpp", "num_layers": "layers", "hidden_size": "hidden", "num_attention_heads": "heads",
    "ffn_hidden_size": "ffn", "padded_vocab_size": "vocab", "num_experts": "n_experts", "moe_router_topk": "topk",
    "moe_ffn_hidden_size": "expert_ffn", "global_batch_size": "global_batch_sequences",
}  # fmt: skip
"""Arguments that Megatron-LM prints at the start -> columns of a training file."""
MLPERF_MARK = ":::MLLOG"
MLPERF_NUMBERS = {
    "global_batch_size": "global_batch_sequences", "max_sequence_length": "seq_len", "tensor_parallelism": "tp", "pipeline_parallelism": "pp",
    "context_parallelism": "cp", "expert_parallelism": "ep", "micro_batch_size": "micro_batch", "number_of_ranks": "n_chips",
}  # fmt: skip
"""Keys of MLPerf's log -> columns of a training file."""
OF_EXPERTS = ("topk", "expert_ffn", "ep")  # that Megatron-LM prints for dense networks too


def is_training_log(path: Path) -> bool:
    """Tell whether a file is the log of a training run, by its ending."""
    return path.suffix.lower() in LOG_ENDINGS


def log_cells(path: Path) -> list[dict[str, str]]:
    """Read the one row of a log. Raises SpecError for a file without a step of either layout, and OSError for a missing file."""
    try:
        lines = _COLOUR.sub("", path.read_text(encoding="utf-8-sig")).splitlines()
    except UnicodeDecodeError as error:
        raise SpecError([Issue(str(path), Message.of("calibration.not_a_log", error=str(error)).text())]) from None
    cells = _megatron(lines) or _titan(lines) or _mlperf(lines)
    if not cells:
        raise SpecError([Issue(str(path), Message.of("calibration.no_logged_step").text())])
    return [{"id": path.stem, "source": path.stem, **cells}]


def _steady(steps: Sequence[float]) -> float:
    """Return the median of the steps after those in which software warms up; at least the first is left out where there are others."""
    first = max(1, round(WARM_UP * len(steps))) if len(steps) > 1 else 0
    return median(steps[first:])


def _megatron(lines: Sequence[str]) -> dict[str, str]:
    """Read a log of Megatron-LM; empty for another."""
    steps = [(line, float(found[1]) / 1e3) for line in lines if (found := _MEGATRON.search(line))]
    if not steps:
        return {}
    batches = [found[1] if (found := _MEGATRON_BATCH.search(line)) else "" for line, _ in steps]
    kept = [step for step, batch in zip(steps, batches, strict=True) if batch == batches[-1]]
    rates = [float(found[1]) for line, _ in kept if (found := _MEGATRON_RATE.search(line))]
    said = {found[1]: found[2] for line in lines if (found := _ARGUMENT.match(line))}
    cells = {column: said[name] for name, column in MEGATRON_NUMBERS.items() if said.get(name, "").isdigit()}
    if not cells.get("n_experts"):
        cells = {column: value for column, value in cells.items() if column not in OF_EXPERTS}
    if said.get("group_query_attention") == "True" and said.get("num_query_groups", "").isdigit():
        cells["kv_heads"] = said["num_query_groups"]
    if said.get("multi_latent_attention") == "True":
        cells["attention"] = "mla"
    if batches[-1]:
        cells["global_batch_sequences"] = batches[-1]
    if rates:
        cells["model_tflops_per_chip"] = f"{_steady(rates):g}"
    return {
        **cells, **_megatron_words(said), "framework": "megatron", "step_time_s": f"{_steady([step for _, step in kept]):.6g}",
        "notes": Message.of("row.median_of_steps", count=str(len(kept))).text(),
    }  # fmt: skip


def _megatron_words(said: dict[str, str]) -> dict[str, str]:
    """Name the format, the sharding and the recomputation that the arguments of Megatron-LM state."""
    found: dict[str, str] = {}
    if said.get("fp4", "None") != "None":
        found["dtype"] = "nvfp4"
    elif said.get("fp8", said.get("fp8_format", "None")) != "None":
        found["dtype"] = "mxfp8" if said.get("fp8_recipe") == "mxfp8" else "fp8"
    elif "True" in (said.get("bf16"), said.get("fp16")):
        found["dtype"] = "bf16" if said.get("bf16") == "True" else "fp16"
    if said.get("use_megatron_fsdp") == "True":
        found["sharding"] = "zero3"
    elif "use_distributed_optimizer" in said:
        found["sharding"] = "zero1" if said["use_distributed_optimizer"] == "True" else "none"
    if "recompute_granularity" in said:
        found["recompute"] = said["recompute_granularity"].replace("None", "none")
    if "sequence_parallel" in said:
        found["sequence_parallel"] = "yes" if said["sequence_parallel"] == "True" else "no"
    return found


def _titan(lines: Sequence[str]) -> dict[str, str]:
    """Read a log of torchtitan; empty for another. Its rates are per device."""
    steps = [(line, float(found[1].replace(",", ""))) for line in lines if (found := _TITAN.search(line))]
    if not steps:
        return {}
    figures = {
        name: [float(found[1].replace(",", "")) for line, _ in steps if (found := pattern.search(line))]
        for name, pattern in _TITAN_FIGURES.items()
    }
    said = {name: int(value) for line in lines for name, value in _TITAN_SETTING.findall(line)}
    cells = {"tokens_per_s_per_chip": f"{_steady([rate for _, rate in steps]):g}", "framework": "fsdp"}
    for name, column in (("tflops", "model_tflops_per_chip"), ("mfu", "mfu_pct")):
        if figures[name] and _steady(figures[name]) > 0:
            cells[column] = f"{_steady(figures[name]):g}"
    if figures["memory"]:
        cells["peak_memory_GB"] = f"{max(figures['memory']) * GIB / GIGA:.4g}"
    cells["notes"] = Message.of("row.median_of_logged", count=str(len(steps))).text()
    return {**cells, **_titan_layout(said)}


def _mlperf(lines: Sequence[str]) -> dict[str, str]:
    """Read a log of MLPerf Training, evaluation left out; empty for another. The log names no chip."""
    events = [event for line in lines if (event := _event(line))]
    said = {event["key"]: event.get("value") for event in events}
    batch = _positive(said.get("global_batch_size"))
    steps = _mlperf_steps(events, batch) if batch else []
    if not steps:
        return {}
    cells = {
        column: f"{number:g}" for key, column in MLPERF_NUMBERS.items() if (number := _positive(said.get(key))) > 0.0
    }
    steps_of = Message.of("calibration.mlperf_steps", count=len(steps)).text()
    return {
        **cells, "model": str(said.get("submission_benchmark") or ""), "step_time_s": f"{_steady(steps):.6g}", "notes": steps_of,
        "source": f"MLPerf Training, {said.get('submission_org') or ''}",
    }  # fmt: skip


def _mlperf_steps(events: Sequence[Mapping[str, Any]], batch: float) -> list[float]:
    """Return step times [s]: batch over the throughput that the log states in samples/s, else from the samples between events of training.

    Samples are counted from the start of a block to its end, so that evaluation between blocks is left out.
    """
    stated = [
        _positive(event["value"].get("throughput"))
        for event in events
        if event["key"] == "tracked_stats" and isinstance(event.get("value"), Mapping)
    ]
    if rates := [rate for rate in stated if rate > 0.0]:
        return [batch / rate for rate in rates]
    marks = [event for event in events if event["key"] in ("block_start", "block_stop")]
    found = []
    for first, last in pairwise(marks):
        samples = _samples(last) - _samples(first)
        if (first["key"], last["key"]) == ("block_start", "block_stop") and samples > 0.0:
            found.append((last["time_ms"] - first["time_ms"]) / 1e3 * batch / samples)
    return [step for step in found if step > 0.0]


def _samples(event: Mapping[str, Any]) -> float:
    """Return the samples that an event counts; 0 where it counts none."""
    told = event.get("metadata")
    return _positive(told.get("samples_count")) if isinstance(told, Mapping) else 0.0


def _event(line: str) -> Mapping[str, Any]:
    """Parse a line of MLPerf's log; empty for any other."""
    _, mark, text = line.partition(MLPERF_MARK)
    try:
        found = json.loads(text) if mark else {}
    except (ValueError, RecursionError):
        return {}
    has_time = isinstance(found, dict) and isinstance(found.get("time_ms"), int | float)
    return found if has_time and isinstance(found.get("key"), str) else {}


def _positive(value: Any) -> float:
    """Return a positive number; 0 for anything else."""
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
        else 0.0
    )


def _titan_layout(said: dict[str, int]) -> dict[str, str]:
    """Return degrees, chips and batch of the settings of torchtitan, as far as they are stated; a shard degree of -1 takes what chips remain."""
    cells = {
        column: f"{said[f'{name}_degree']}"
        for name, column in (("tensor_parallel", "tp"), ("pipeline_parallel", "pp"), ("context_parallel", "cp"), ("expert_parallel", "ep"))
        if said.get(f"{name}_degree", 0) > 0
    }  # fmt: skip
    if "seq_len" in said:
        cells["seq_len"] = f"{said['seq_len']}"
    shard, copies = said.get("data_parallel_shard_degree", -1), said.get("data_parallel_replicate_degree", 1)
    replicas = shard * copies if shard > 0 else 0
    if replicas:
        model = (
            said.get("tensor_parallel_degree", 1)
            * said.get("pipeline_parallel_degree", 1)
            * said.get("context_parallel_degree", 1)
        )
        cells |= {"dp": f"{replicas}", "n_chips": f"{replicas * model}"}
    cells["sharding"] = "none" if shard == 1 else "zero3"
    if said.get("global_batch_size", 0) > 0:
        cells["global_batch_sequences"] = f"{said['global_batch_size']}"
    elif replicas and "local_batch_size" in said:
        cells["global_batch_sequences"] = f"{replicas * said['local_batch_size']}"
    if said.get("local_batch_size", 0) > 0 and said.get("pipeline_parallel_degree", 1) == 1:
        cells["micro_batch"] = f"{said['local_batch_size']}"
    return cells
