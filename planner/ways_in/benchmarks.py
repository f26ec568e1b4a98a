"""Take from a benchmark what a spec needs: model, engine, lengths, rate, and the chips that it ran on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from catalog.lookup import Catalog
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.accelerators import chip_called, system_with
from planner.ways_in.formats import KV_FORMATS, WEIGHT_FORMATS

MOST_LENGTH = 10_000_000  # tokens


@dataclass(frozen=True, slots=True)
class Benchmark:
    """The busiest result of a benchmark: model, engine, lengths [token] and rate [request/s], 0 and empty where it has none, and systems of its chip.

    `weights`, `cache`: formats of its weights and of its KV cache; empty where the result names none.
    """

    model: str
    engine: str
    input: int
    output: int
    rate: float
    systems: tuple[str, ...]
    notes: tuple[Fact, ...]
    weights: str = ""
    cache: str = ""


def benchmark_of(results: Sequence[Mapping[str, str]], catalog: Catalog) -> Benchmark:
    """Take the result with the highest rate; `results`: cells by columns of a serving file, one or more."""
    result = max(results, key=_rate)
    chip = chip_called(result.get("chip", ""), catalog) if result.get("chip") else ""
    system = system_with(chip, round(_number(result.get("chips_per_node"))) or 8, catalog) if chip else ""
    input_tokens, output_tokens = (round(min(_number(result.get(name)), MOST_LENGTH)) for name in ("isl", "osl"))
    note = Message.of("ways_in.log_read", results=len(results), result=result.get("id", ""), rate=_rate(result))
    return Benchmark(
        result.get("model", ""), result.get("engine", ""), input_tokens, output_tokens, _rate(result), (system,) if system else (),
        (Fact("--log", note),), WEIGHT_FORMATS.get(_word(result, "weight_dtype"), ""), KV_FORMATS.get(_word(result, "kv_dtype").partition("_")[0], ""),
    )  # fmt: skip


def _word(result: Mapping[str, str], column: str) -> str:
    return (result.get(column) or "").strip().lower()


def _rate(result: Mapping[str, str]) -> float:
    """Return the rate of requests [request/s]: as answered, else as sent, else from the tokens of the answers."""
    answered, sent = (_number(result.get(name)) for name in ("requests_per_s", "request_rate_per_s"))
    tokens, output = (_number(result.get(name)) for name in ("output_tokens_per_s_total", "osl"))
    return answered or sent or (tokens / output if output else 0.0)


def _number(cell: str | None) -> float:
    try:
        value = float(cell or 0)
    except ValueError:
        return 0.0
    return value if math.isfinite(value) and value > 0 else 0.0
