"""Infer software, lengths and load of a serving measurement from its columns, by a stated rule for each empty one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from catalog.units import MILLI
from models.serving.constants import HOST_STARTED
from planner.calibration.benchmark_files import AS_CLIENTS
from planner.calibration.measurements import Row, Unpredictable
from planner.messages import Message

Note = Callable[[str], None]
ENGINES = (
    ("tensorrt", "tensorrt_llm"), ("vllm", "vllm"), ("sglang", "sglang"), ("llama.cpp", "local"), ("openvino", "openvino"), ("rkllm", "local"),
    ("mlx", "local"),
)  # fmt: skip
VENDOR_ENGINES = ("mindie", "cloudmatrix", "xdeepserve")  # engines by the vendors of generations in HOST_STARTED
# Release dates of minor versions [year]; other versions take the nearest before.
RELEASES = {
    "tensorrt_llm": ((0.05, 2023.8), (0.06, 2023.95), (0.09, 2024.3), (0.10, 2024.45), (0.14, 2024.85), (0.17, 2025.15), (0.20, 2025.45), (1.00, 2025.7),
                     (1.01, 2025.9), (1.02, 2026.0), (1.03, 2026.2)),
    "vllm": ((0.02, 2023.8), (0.03, 2024.2), (0.04, 2024.35), (0.05, 2024.5), (0.06, 2024.75), (0.07, 2025.1), (0.08, 2025.25), (0.09, 2025.45),
             (0.10, 2025.65), (0.11, 2025.8), (0.12, 2025.95), (0.15, 2026.1), (0.17, 2026.2), (0.19, 2026.3)),
    "sglang": ((0.02, 2024.5), (0.03, 2024.7), (0.04, 2025.1), (0.05, 2025.8)),
}  # fmt: skip
PYTORCH_SINCE = 2025.7  # release 1.0 of TensorRT-LLM [year]
# Mean lengths of the data sets of MLPerf Inference [token], and limits on the p99 of TPOT and TTFT by scenario [ms].
MLPERF_LENGTHS = {
    "llama-2-70b": (294.0, 293.0), "mixtral-8x7b": (270.0, 145.0), "llama-3.1-405b": (9400.0, 680.0), "llama-3.1-8b": (780.0, 128.0),
    "deepseek-r1": (800.0, 3880.0), "gpt-j-6b": (870.0, 69.0),
}  # fmt: skip
MLPERF_LIMITS_MS = {
    ("llama-2-70b", "Server"): (200.0, 2000.0), ("llama-2-70b", "Interactive"): (40.0, 450.0), ("mixtral-8x7b", "Server"): (200.0, 2000.0),
    ("llama-3.1-405b", "Server"): (175.0, 6000.0), ("llama-3.1-405b", "Interactive"): (80.0, 4500.0), ("llama-3.1-8b", "Server"): (100.0, 2000.0),
    ("llama-3.1-8b", "Interactive"): (30.0, 500.0), ("deepseek-r1", "Server"): (80.0, 2000.0), ("deepseek-r1", "Interactive"): (15.0, 1500.0),
}  # fmt: skip
SHAREGPT_LENGTHS = (220.0, 200.0)  # mean lengths of conversations of the ShareGPT collection [token]
# Ways in which the requests of a run may have come, beside clients that each send the next when the last ends: all at once, and at a rate.
OTHER_WAYS = ("burst", "open")
CLIENTS = re.compile(rf"{AS_CLIENTS}|max[-_ ]concurrency", re.IGNORECASE)
BURST = re.compile(r"\bburst\b", re.IGNORECASE)
DEFAULT_YEAR = 2026.0  # year of software without any date
DRAWN = re.compile(r"InferenceMAX|random range ratio 0\.8|lengths drawn 0\.8-1\.0 of nominal")
DRAWN_LENGTH_SHARE = 0.9  # mean of lengths drawn from 0.8 to 1.0 of the nominal


@dataclass(frozen=True, slots=True)
class Software:
    """Engine (one of models.serving.constants.ENGINES) and date of its release [year]."""

    engine: str
    release_year: float


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a run; `regime` as in models.serving.many_runs."""

    regime: str
    input_tokens: float
    output_tokens: float
    amount: float  # clients, requests per second, or sequences, by regime
    tpot_limit_s: float = 0.0  # on the p99; 0: none
    interactive: bool = False
    ttft_limit_s: float = 0.0  # on the p99; 0: none
    capped: bool = True  # whether the engine's usual limit on running requests applies
    requests: float = 0.0  # requests of an open run that ends; 0: no end
    running: float = 0.0  # most in flight at the client of an open run; 0: any number
    ways: tuple[str, ...] = ()  # other regimes in which the requests may have come


def software_of(row: Row, note: Note) -> Software:
    """Identify engine and release: column `engine` by the word it contains, else "other".

    TensorRT-LLM before release 1.0 runs compiled plans, an engine of its own here.
    """
    name = row.text["engine"].lower()
    engine = next((known for word, known in ENGINES if word in name), "other")
    year = release_year(row, engine)
    if engine == "tensorrt_llm" and year < PYTORCH_SINCE and "pytorch" not in row.text["notes"].lower():
        engine = "tensorrt_plan"
    return Software(engine, year)


def eager_of(row: Row, family: str) -> bool:
    """Tell whether the host starts each kernel of a step: on generations where ported engines do, with any but the vendor's own."""
    return family in HOST_STARTED and not any(name in row.text["engine"].lower() for name in VENDOR_ENGINES)


def release_year(row: Row, engine: str) -> float:
    """Date the software [year]: a date in the version or in the notes, else the version's release, else the middle of column `year`."""
    for text in (row.text["engine_version"], row.text["notes"]):
        if found := re.search(r"(20\d\d)-?(\d\d)-?(\d\d)(?!\d)", text):
            return int(found[1]) + (int(found[2]) - 0.5) / 12.0
    if (found := re.match(r"v?(\d+)\.(\d+)", row.text["engine_version"])) and engine in RELEASES:
        version = int(found[1]) + int(found[2]) / 100.0
        before = [year for minor, year in RELEASES[engine] if minor <= version + 1e-9]
        if before:
            return before[-1]
    year = row.number("year")
    return year + 0.5 if year else DEFAULT_YEAR


def load_of(row: Row, note: Note) -> Load:
    """Identify regime, lengths and amount of the load.

    Disaggregated or a single phase where column `mode` says so; the best batch for MLPerf scenarios and `is_max_throughput`; a static
    batch or a burst where the notes say so; open arrivals at a request rate, of as many requests as the notes say, `concurrency` of them
    in flight at most; else a closed loop of `concurrency` clients. Arrivals that would keep more in flight than the ceiling lets through
    (rate x time of a request, by Little's law) wait for it: as many clients as the ceiling.
    """
    if found := re.search(r"mlperf scenario=(\w+)", row.text["other_metric"]):
        return benchmark_load(row, found[1], note)
    if re.search(r"mlperf", row.text["other_metric"]) and row.text["model"] in MLPERF_LENGTHS:
        return benchmark_load(row, "Offline", note)
    notes, mode = row.text["notes"].lower(), row.text["mode"]
    prompt, output = row.number("isl"), row.number("osl")
    if not prompt or not output:
        if "sharegpt" in notes:
            prompt, output = SHAREGPT_LENGTHS
            note(Message.of("row.sharegpt_lengths").text())
        elif mode == "decode_only" and (row.number("concurrency") or (prompt and row.number("is_max_throughput"))):
            prompt, output = prompt or 128.0, output or 128.0
            note(Message.of("row.short_lengths").text())
        elif mode == "prefill_only" and prompt:
            output = 1.0
        elif prompt and row.number("concurrency") == 1.0:  # one client: its latencies hardly depend on the answer
            output = 128.0
            note(Message.of("row.short_answers").text())
        else:
            raise Unpredictable(Message.of("row.no_lengths").text())
    prompt, output = realised_lengths(row, prompt, output, note)
    count, rate = row.number("concurrency"), row.number("request_rate_per_s")
    if mode == "prefill_only":
        return Load("prefill", prompt, output, count or 1.0)
    if mode == "decode_only":
        if not count and row.number(
            "is_max_throughput"
        ):  # a queue that is never empty, so that the batch fills the memory
            return Load("decode_maximum", prompt, output, 0.0, capped=False)
        return Load("decode", prompt, output, count or 1.0)
    if mode == "disaggregated":
        if not count:
            raise Unpredictable(Message.of("row.no_load").text())
        return Load("disaggregated", prompt, output, count)
    if "static batch" in notes and count:
        return Load("static", prompt, output, count)
    if "static batching" in notes:
        return Load("static_maximum", prompt, output, 1.0)
    sent = re.search(r"(\d+) requests;", notes)
    if "queued at t0" in notes or (sent and row.number("is_max_throughput") and row.number("ttft_ms")):
        return burst_load(row, prompt, output, count)
    if rate and count and (held := rate * request_s(row)) >= count:
        note(Message.of("row.clients_in_flight", clients=f"{count:g}", held=f"{held:.4g}").text())
        return Load("closed", prompt, output, count)
    if rate:
        sent = re.search(r"(\d+) (?:prompts|requests)\b", notes)
        return Load("open", prompt, output, rate, requests=float(sent[1]) if sent else 0.0, running=count or 0.0)
    if row.number("is_max_throughput"):
        return Load("maximum", prompt, output, admitted(row, count))
    if count:
        return Load("closed", prompt, output, count, ways=other_ways(row, count))
    if "phase timed separately" in notes:
        return Load("static", prompt, output, 1.0)
    raise Unpredictable(Message.of("row.no_load").text())


def other_ways(row: Row, count: float) -> tuple[str, ...]:
    """Name the ways in which the requests of a row may have come that states how many were in flight, beside clients in a closed loop.

    None of one request in flight, nor where the notes tell of clients ("closed loop", the benchmark's "max-concurrency", lengths that only
    one benchmark draws, which keeps its clients busy). A burst of unstated size is either of `count` requests or one that clients take from.
    """
    notes = row.text["notes"]
    if count <= 1.0 or CLIENTS.search(notes) or drawn_prompts(row):
        return ()
    return ("burst",) if BURST.search(notes) else OTHER_WAYS


def request_s(row: Row) -> float:
    """Return the measured mean time of a request [s]: column `e2e_ms`, else TTFT + (output tokens - 1) TPOT; 0 where neither is known."""
    if whole_ms := row.number("e2e_ms"):
        return whole_ms * MILLI
    ttft_ms, tpot_ms, output = (row.number(name) for name in ("ttft_ms", "tpot_ms", "osl"))
    return (ttft_ms + (output - 1.0) * tpot_ms) * MILLI if ttft_ms and tpot_ms and output else 0.0


def completed_per_s(row: Row) -> float:
    """Return the requests completed per second: column `requests_per_s`, else output tokens per second over output tokens; 0 where unknown."""
    tokens_per_s, output = row.number("output_tokens_per_s_total"), row.number("osl")
    return row.number("requests_per_s") or (tokens_per_s / output if tokens_per_s and output else 0.0)


def in_flight(row: Row) -> float:
    """Compute how many requests were in flight on average, by Little's law: completed per second times the time of one; 0 where unknown."""
    return completed_per_s(row) * request_s(row)


def benchmark_load(row: Row, scenario: str, note: Note) -> Load:
    """Describe the load of an MLPerf run: the data set's mean lengths (a printed output length counts first), the scenario's limits.

    Submitters raise the engine's limit on running requests as far as memory allows.
    """
    name = row.text["model"]
    if name not in MLPERF_LENGTHS:
        raise Unpredictable(Message.of("row.unknown_data_set").text())
    prompt, output = MLPERF_LENGTHS[name]
    note(Message.of("row.data_set_lengths").text())
    tpot, ttft = MLPERF_LIMITS_MS.get((name, scenario), (0.0, 0.0))
    return Load(
        "maximum",
        prompt,
        row.number("osl") or output,
        0.0,
        tpot * MILLI,
        scenario == "Interactive",
        ttft * MILLI,
        False,
    )


def realised_lengths(row: Row, prompt: float, output: float, note: Note) -> tuple[float, float]:
    """Return mean lengths: 0.9 of the nominal for clients whose notes say that they draw lengths from 0.8 to 1.0 of it."""
    if drawn_prompts(row):
        note(Message.of("row.drawn_lengths").text())
        return DRAWN_LENGTH_SHARE * prompt, max(DRAWN_LENGTH_SHARE * output, 2.0)
    return prompt, max(output, 2.0)


def drawn_prompts(row: Row) -> bool:
    """Tell whether the prompts of a run were drawn at random with lengths from 0.8 to 1.0 of the nominal: such clients turn prefix caches off."""
    return bool(DRAWN.search(row.text["notes"]))


def admitted(row: Row, count: float | None) -> float:
    """Return the engine's limit on running sequences in a run for throughput, 0 where the row states none."""
    return count or 0.0


def burst_load(row: Row, prompt: float, output: float, count: float | None) -> Load:
    """Describe a burst: as many requests released at once as the row says were sent."""
    found = re.search(r"requests=(\d+)", row.text["other_metric"]) or re.search(r"(\d+) requests;", row.text["notes"])
    requests = float(found[1]) if found else count
    if not requests:
        raise Unpredictable(Message.of("row.no_burst_size").text())
    return Load("burst", prompt, output, requests)
