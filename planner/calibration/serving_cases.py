"""Turn a serving measurement into a case of the models, with a stated rule for each empty cell.

Not here: reading files (`measurements`), scoring (`scores`). Each function infers one thing, and its docstring states the rule;
those about software, lengths and load are in `serving_loads`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import GIGA, MILLI
from models.formats import FORMATS, cache_format
from models.roofline import ChipRates
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import weight_bytes_per_chip
from models.serving.many_runs import Case, Pool
from models.transformer.architecture import Architecture
from planner.calibration.architectures import known_record, shape_of_record
from planner.calibration.measurements import MeasuredCase, Row, RowReader, Unpredictable, check_needed, chip_record
from planner.calibration.pool_layouts import dies_of, pools_of
from planner.calibration.serving_loads import Load, Software, drawn_prompts, eager_of, load_of, software_of
from planner.errors import words_of
from planner.evaluate.engine_memory import division
from planner.messages import Message
from planner.problem.engine import EngineSettings, MemoryRule
from planner.resolve.chip_rates import UnknownRate, chip_rates, peak_rates, stated
from planner.ways_in.formats import KV_FORMATS, UNSTATED_FORMATS, WEIGHT_FORMATS

MEMORY_RULES: Mapping[str, MemoryRule] = {
    "sglang": "static",
    "vllm": "share",
    "tensorrt_llm": "free",
    "tensorrt_plan": "free",
}
SCORED_GRADES = ("A", "B")
LEFT_OUT_KINDS = ("gpustack", "sglblog")
LEFT_OUT_BENCHMARK = "gpt-oss-120b"  # left out of MLPerf: its lengths are unknown
BENCHMARK = re.compile(r"mlperf scenario=")

# Of a name that tells the arithmetic too: the first that the chip has.
STATED_ARITHMETIC = {
    "w4a8": ("fp8", "int8"),
    "fp4-to-fp8": ("fp8",),
    "w4a16": ("bf16",),
    "w4a16-int4 (experts)": ("bf16",),
}
# Engines that quantise activations on the way where weights have 8 bit or fewer, and the arithmetic of their products.
QUANTISED_ACTIVATIONS = {"openvino": ("int8",)}
HOST_LINK_BYTES_PER_S = 64 * GIGA
SCALEOUT_BYTES_PER_S = 50 * GIGA  # NIC of one chip in nodes of these generations
TRANSFER_BYTES_PER_S = 25 * GIGA  # what moving a KV cache reaches of it
WEIGHTS_SHARE_LIMIT = 0.847  # share of the memory that the driver reports (0.9 of that sold), up to which weights may fill it in an inferred layout
WEIGHTS_SHARE_FOR_THROUGHPUT = 0.583  # the same in a run for throughput, whose batch takes the rest


@dataclass(frozen=True, slots=True)
class MeasuredServing(MeasuredCase):
    """A row as a case of the models, with its measured figures."""

    row: Row
    case: Case
    architecture: str
    chip: str
    chips: float
    measured: Mapping[
        str, float
    ]  # metric -> value: tpot, ttft and its quantiles [s], throughput [output token/s of all chips]
    inferred: tuple[str, ...]
    ways: tuple[str, ...] = ()  # regimes in which the requests may have come, beside that of the case

    @property
    def way_stated(self) -> bool:
        """Tell whether the row says how its requests came."""
        return not self.ways


@dataclass(frozen=True, slots=True)
class MeasuredAnchor(MeasuredServing):
    """A published rate of a whole system, which has a vote of its own and weighs as a group of rows."""

    @property
    def vote(self) -> str:
        """Name the anchor itself."""
        return self.row.id

    @property
    def stands_for_group(self) -> bool:
        """Tell that the rate sums up a whole system."""
        return True


def in_score(row: Row) -> bool:
    """Tell whether a row counts in the score: grade A or B, and none of the stated exclusions.

    Excluded are burst tests of one laboratory that break Little's law, a blog that measured prefill and decode separately, one MLPerf
    benchmark of unknown lengths, and rows that nobody measured: copies of others with one figure scaled (`measurements.marked`).
    """
    unknown_lengths = bool(BENCHMARK.search(row.text["other_metric"])) and row.text["model"] == LEFT_OUT_BENCHMARK
    left_out = row.kind in LEFT_OUT_KINDS or unknown_lengths or bool(row.copy_of)
    return row.grade in SCORED_GRADES and not left_out


def measured_serving(row: Row, catalog: Catalog, constants: Mapping[str, float]) -> MeasuredServing:
    """Turn a row into a case of the models. Raises Unpredictable with the reason."""
    check_needed(row, "serving")
    reader = RowReader(row, catalog)
    chip = chip_record(row, catalog)
    chips = row.required("n_chips")
    record = known_record(row.text["model"], catalog)
    if record is None:
        raise Unpredictable(Message.of("row.unknown_architecture").text())
    arch = shape_of_record(record)
    weights = weight_precision_of(row, chip, record, arch, reader)
    per_chip = ranks_per_chip(row, reader)
    software: Software = software_of(row, reader.note)
    rates, family = rates_of(row, chip, weights, per_chip, software, reader)
    load: Load = load_of(row, reader.note)
    kv = kv_precision_of(row, chip, weights, arch, reader)
    if load.regime == "disaggregated":
        prefill, decode = pools_of(row)
    else:
        prefill, decode = (
            None,
            Pool(aggregated_layout(row, rates, arch, weights, software, load, per_chip, reader), 1.0),
        )
        decode = Pool(decode.layout, max(1.0, chips * per_chip / decode.chips))
    case = Case(
        arch=arch, chip=rates, decode=decode, prefill=prefill, weight_precision=weights, kv_precision=kv, engine=software.engine,
        release_year=software.release_year, family=family, regime=load.regime, input_tokens=load.input_tokens, output_tokens=load.output_tokens,
        load=load.amount, tpot_limit_s=load.tpot_limit_s, ttft_limit_s=load.ttft_limit_s, requests=load.requests, running=load.running, capped=float(load.capped),
        link_bytes_per_s=TRANSFER_BYTES_PER_S / per_chip, eager=eager_of(row, family),
        division=memory_division(row, software, load, rates, family, catalog), median_ttft=reports_median(row),
    )  # fmt: skip
    return MeasuredServing(
        row, case, record.name, chip.name, chips, measured_figures(row, load), tuple(reader.inferred), load.ways
    )


# -- hardware ----------------------------------------------------------------------------------------------------------


def ranks_per_chip(row: Row, reader: RowReader) -> int:
    """Count the ranks per chip: a layout whose degrees multiply to a whole multiple of the chips counts cores or dies.

    That of separate pools does where the notes say of how many dies the chips consist.
    """
    if row.text["mode"] == "disaggregated":
        return max(1, int((dies_of(row) or 0) // row.required("n_chips")))
    ranks = row.count("tp", 1) * row.count("pp", 1) * max(1, row.count("dp", 1) if row.number("dp") else 1)
    chips = row.number("n_chips") or 1.0
    if ranks > chips and ranks % chips == 0 and ranks // chips <= 8 and not row.number("dp"):
        reader.note(Message.of("row.ranks_per_chip", count=str(int(ranks // chips))).text())
        return int(ranks // chips)
    return 1


def rates_of(
    row: Row, chip: Record, weights: str, per_chip: int, software: Software, reader: RowReader
) -> tuple[ChipRates, str]:
    """Return the rates of one rank, and the chip generation. A rank is a chip, or one of its `per_chip` cores.

    Chips without a scale-up domain communicate over the links of the host, within `chips_per_node`.
    """
    read = stated(chip)
    domain, scaleup = read("scaleup_chips") or 1.0, read("scaleup_bytes_per_s")
    if scaleup is None:
        scaleup = HOST_LINK_BYTES_PER_S
        reader.note(Message.of("row.host_links").text())
    if domain <= 1:
        domain = row.number("chips_per_node") or row.number("n_chips") or 1.0
    label = row.text["weight_dtype"].lower()
    asked = STATED_ARITHMETIC.get(label, ())
    if FORMATS[weights].value_bytes <= 1.0:
        asked = asked or QUANTISED_ACTIVATIONS.get(software.engine, ())
    arithmetic = next((name for name in asked if name in peak_rates(read)), "")
    try:
        rates = chip_rates(
            chip, weights, arithmetic=arithmetic, scaleup_bytes_per_s=scaleup, scaleup_chips=domain, scaleout_bytes_per_s=SCALEOUT_BYTES_PER_S,
            ranks_per_chip=per_chip,
        )  # fmt: skip
    except UnknownRate as error:
        raise Unpredictable(words_of(error)) from None
    return rates, chip.words("family") or "other"


def memory_division(row: Row, software: Software, load: Load, rates: ChipRates, family: str, catalog: Catalog) -> dict[str, float]:  # fmt: skip
    """Return how the engine of a run divides a chip's memory: as it is shipped, the constants of the models where nothing is known of it.

    Submitters of benchmarks set the division themselves, and keep no prefixes: a running request has one state then.
    """
    rule, tuned = MEMORY_RULES.get(software.engine), drawn_prompts(row) or not load.capped
    if rule is None:
        return {}
    record = catalog.get("engines", software.engine)
    share, reserved = (record.value(name) if record.get(name) else None for name in ("memory_share", "reserved_bytes"))
    shipped = division(family, float(rates.hbm_bytes), EngineSettings(share, memory_rule=rule, reserved_bytes=reserved))
    if not tuned:
        return shipped
    return {"state_share": shipped["state_share"], "state_slots": 1.0} if rule == "static" else {}


# -- precisions --------------------------------------------------------------------------------------------------------


def weight_precision_of(row: Row, chip: Record, record: Record, arch: Architecture, reader: RowReader) -> str:
    """Infer the weight format: column `weight_dtype`. Whether the chip multiplies it or widens it first follows from its rates.

    Empty: in an MLPerf run the narrowest floating format of the chip down to 4 bit; elsewhere that of the published checkpoint.
    """
    label = row.text["weight_dtype"].lower()
    if label in UNSTATED_FORMATS or label == "fp32":
        precision = (
            narrowest_format(chip) if BENCHMARK.search(row.text["other_metric"]) else checkpoint_precision(record)
        )
        reader.note(Message.of("row.weights_in", precision=precision).text())
    elif label in WEIGHT_FORMATS:
        precision = WEIGHT_FORMATS[label]
    else:
        raise Unpredictable(Message.of("row.unknown_weight_type").text())
    return precision


def narrowest_format(chip: Record) -> str:
    """Choose the narrowest floating-point format that a chip computes in, as submissions to a throughput benchmark do."""
    return next((name for name in ("fp4", "fp8") if chip.get(f"{name}_flop_per_s") is not None), "bf16")


def checkpoint_precision(record: Record) -> str:
    """Look up the format in which an architecture's weights are published; 16 bit where its record names none."""
    return record.words("weights") or "bf16"


def kv_precision_of(row: Row, chip: Record, weights: str, arch: Architecture, reader: RowReader) -> str:
    """Infer the KV cache format: column `kv_dtype`, else that of the engines (`models.formats.cache_format`).

    8 bit in MLPerf runs with weights of 8 bit or fewer on chips that compute in FP8.
    """
    label = row.text["kv_dtype"].lower()
    if label in KV_FORMATS:
        return KV_FORMATS[label]
    narrow = bool(BENCHMARK.search(row.text["other_metric"])) and "fp8" in FORMATS[weights].arithmetic
    computed = narrow and "fp8" in peak_rates(stated(chip))
    precision = "fp8" if computed else cache_format(arch.checkpoints, weights)
    reader.note(Message.of("row.kv_cache_in", precision=precision).text())
    return precision


# -- layouts -----------------------------------------------------------------------------------------------------------


def aggregated_layout(row: Row, rates: ChipRates, arch: Architecture, weights: str, software: Software, load: Load, per_chip: int,
                      reader: RowReader) -> dict[str, int]:  # fmt: skip
    """Return the degrees of one replica, as printed or inferred by the rules of the functions below.

    Chips printed for the experts alone, of an architecture with latent attention, are attention ranks. Where tp and dp both count
    all chips, tp is that of the rest of the network: each chip is an attention rank.
    """
    ranks = int((row.number("n_chips") or 1) * per_chip)
    tp, pp, dp, ep = (row.count(name) for name in ("tp", "pp", "dp", "ep"))
    if arch.experts and not tp and ranks == max(dp, ep if arch.mla else 0) > 1:
        tp, dp = 1, ranks
        reader.note(Message.of("row.attention_ranks", count=str(dp)).text())
    if arch.experts and tp == dp == ranks > 1:
        tp = 1
        reader.note(Message.of("row.tp", size="1").text())
    if not tp:
        tp = inferred_tensor_parallel(rates, arch, weights, ranks, load)
        reader.note(Message.of("row.tp", size=str(tp)).text())
        alone = (
            load.regime != "maximum"
            or weight_bytes_per_chip(arch, ServingLayouts(tp, 1, 1, 1), weights) > WEIGHTS_SHARE_LIMIT * rates.hbm_bytes
        )
        if alone and ranks > tp and ranks % tp == 0:
            pp = ranks // tp
            reader.note(Message.of("row.pp", size=str(pp)).text())
    pp, dp, ep = max(pp, 1), max(dp, 1), max(ep, 1)
    if arch.experts and dp == 1:
        tp, dp = attention_ranks(row, arch, tp, pp, ranks, software, load, reader)
    if not arch.experts:
        dp = ep = 1
    return {"tp": tp, "pp": pp, "dp": dp, "ep": min(ep if ep > 1 else dp, tp * dp)}


def inferred_tensor_parallel(rates: ChipRates, arch: Architecture, weights: str, ranks: int, load: Load) -> int:
    """Infer the tensor parallelism.

    In a run for throughput, the smallest power of two whose weights leave room for a batch (0.583 of the memory), doubled under a tight
    limit on TPOT; at a fixed load, all ranks of a scale-up domain, with a pipeline stage per domain.
    """
    if load.regime != "maximum":
        return int(max(1, min(ranks, rates.scaleup_chips, arch.heads)))
    tp = 1
    while (
        tp < ranks
        and weight_bytes_per_chip(arch, ServingLayouts(tp, 1, 1, 1), weights)
        > WEIGHTS_SHARE_FOR_THROUGHPUT * rates.hbm_bytes
    ):
        tp *= 2
    if load.interactive:
        tp *= 2
    return int(min(tp, 2 ** int(math.log2(max(min(ranks, rates.scaleup_chips), 1)))))


def attention_ranks(
    row: Row, arch: Architecture, tp: int, pp: int, ranks: int, software: Software, load: Load, reader: RowReader
) -> tuple[int, int]:
    """Infer (tp, dp) of an architecture with experts whose row names no attention ranks.

    Chips beyond tp x pp that are named as the experts' (`moe_tp`, `moe_ep`) hold attention ranks of their own. Release 1.0 of
    TensorRT-LLM is published with attention data parallelism: all tp are attention ranks, and a note that says so counts anywhere. So
    are they in runs for throughput of unstated layout with latent attention, whose cache tensor parallelism would only copy.
    """
    experts = re.findall(r"moe_(?:tp|ep)=(\d+)", row.text["other_metric"])
    if experts and ranks > tp * pp and ranks % (tp * pp) == 0:
        dp = ranks // (tp * pp)
        reader.note(Message.of("row.attention_ranks", count=str(dp)).text())
        return tp, dp
    stated = "attention dp" in row.text["notes"].lower()
    copied = arch.mla and load.regime == "maximum" and not row.count("tp")
    default = (
        software.engine.startswith("tensorrt")
        and row.text["engine_version"] == "1.0"
        and tp > 1
        and row.number("is_max_throughput") == 1
    )
    if stated or default or copied:
        reader.note(Message.of("row.attention_ranks", count=str(tp)).text())
        return 1, tp
    return tp, 1


# -- figures -----------------------------------------------------------------------------------------------------------


MEDIAN = re.compile(r"\bttft(?:/tpot)? (?:are|is the|is a) medians?\b|\bmedian (?:e2e/)?ttft\b")
QUANTILE = {"ttft_p50": re.compile(r"\b(?:median|p50)_ttft_ms=([\d.]+)"), "ttft_p99": re.compile(r"\bp99_ttft_ms=([\d.]+)")}  # fmt: skip


def reports_median(row: Row) -> bool:
    """Tell whether `ttft_ms` of a row is the median of requests: its notes say so ("ttft is the median")."""
    return bool(MEDIAN.search(row.text["notes"].lower()))


def measured_figures(row: Row, load: Load) -> dict[str, float]:
    """Read the measured figures in SI by metric; a single-phase run has only the metrics of its phase.

    Quantiles of TTFT stand in column `other_metric` ("p99_ttft_ms=436"; "median_ttft_ms=" beside a mean).
    """
    found = {}
    mode = row.text["mode"]
    if (tpot_ms := row.number("tpot_ms")) and mode != "prefill_only":
        found["tpot"] = tpot_ms * MILLI
    if (ttft_ms := row.number("ttft_ms")) and mode != "decode_only":
        found["ttft"] = ttft_ms * MILLI
        for metric, pattern in QUANTILE.items():
            if figure := pattern.search(row.text["other_metric"]):
                found[metric] = float(figure[1].rstrip(".")) * MILLI
    rate, prompt = row.number("total_tokens_per_s"), row.number("isl")
    if mode == "prefill_only" and "ttft" not in found and rate and prompt:
        found["ttft"] = (
            prompt * (row.number("concurrency") or 1.0) / rate
        )  # a rate of prompt tokens is the time of a prompt
    if (tokens_per_s := row.number("output_tokens_per_s_total")) and mode != "prefill_only":
        found["throughput"] = tokens_per_s
    return found
