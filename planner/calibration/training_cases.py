"""Turn a training measurement into a case of the models: architecture, chip, layout and recipe, with a stated rule for each empty cell.

Not here: reading files (`measurements`), scoring (`scores`). Each function infers one thing, and its docstring states the rule.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import GIGA, TERA
from models.formats import FORMATS, element_bytes
from models.roofline import ChipRates
from models.training.constants import TrainingConstants
from models.training.layouts import RECOMPUTE, ZERO
from models.training.many_runs import Case
from models.training.pipeline import schedule_code
from models.training.step import FRAMEWORKS, Recipe
from models.transformer.architecture import Architecture
from planner.calibration.architectures import architecture_of
from planner.calibration.measurements import MeasuredCase, Row, RowReader, Unpredictable, chip_record
from planner.errors import words_of
from planner.messages import Message
from planner.resolve.chip_rates import UnknownRate, chip_rates, peak_flop_per_s, stated

PRECISIONS = {
    "": "bf16",
    "bf16": "bf16",
    "fp16": "fp16",
    "fp8": "fp8",
    "mxfp8": "mxfp8",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "fp4": "fp4",
    "int8": "int8",
}
# NIC of one chip where a row does not say [GB/s, one direction]: what nodes of the generation usually had.
USUAL_NIC_GBPS = {"volta": 12.5, "ampere": 25.0, "hopper": 50.0, "blackwell": 50.0, "blackwell_ultra": 100.0}
OTHER_NIC_GBPS = 25.0
UNSTATED_SCALEUP_BYTES_PER_S = 64 * GIGA  # a host link of the fifth generation, where no scale-up link is published
LARGEST_NODE_CHIPS = 16  # a scale-up domain of more chips spans nodes, so that chips_per_node does not bound it
FUSED_RACK_FROM, FUSED_FROM, FUSED_FSDP_FROM, GRAPHS_FROM = (
    2025.75,
    2026.2,
    2026.0,
    2026.45,
)  # releases of tuned software that bring a fused dispatcher, whole-iteration graphs
MEMORY_SHARE_WITHOUT_RECOMPUTE = 0.894  # share of the memory that the driver reports (0.95 of that sold), up to which a run is taken to need no recompute
USUAL_ADAPTER_RANK = 16  # that of the LoRA benchmark of MLPerf Training
DEFAULT_YEAR = 2026.0  # year of software without any date
DEFAULT_SCALEUP_CHIPS = 8


@dataclass(frozen=True, slots=True)
class MeasuredTraining(MeasuredCase):
    """A row as a case of the models, with its measured figures."""

    row: Row
    case: Case
    architecture: str
    chip: str
    chips: float
    precision: str
    capacity_bytes: float
    step_s: float | None
    tflops: float | None  # model FLOPs per chip [TFLOP/s]
    hardware_flops: bool  # whether tflops counts recomputation
    inferred: tuple[str, ...]


def measured_training(row: Row, catalog: Catalog, constants: TrainingConstants) -> MeasuredTraining:
    """Turn a row into a case of the models. Raises Unpredictable with the reason."""
    reader = RowReader(row, catalog)
    chip = chip_record(row, catalog)
    framework = framework_of(row)
    chips, sequence_tokens = row.required("n_chips"), row.required("seq_len")
    arch, name, mtp = architecture_of(row, catalog, reader.inferred)
    precision = precision_of(row, chip, arch, reader)
    degrees, per_chip = layout_degrees(row, framework, arch.experts, scaleup_domain(row, chip), reader)
    rates, family = rates_of(row, chip, precision, per_chip, reader)
    batch, micro_batch = batch_of(row, degrees, framework, reader)
    recipe = recipe_of(row, framework, family, chip, precision, arch, degrees, mtp, reader)
    degrees |= {"micro_batch": micro_batch, "vpp": interleave_of(row, degrees, framework, reader), "zero": zero_of(row, framework, reader),
                "sequence_parallel": sequence_parallel_of(row, degrees, framework, reader), "schedule": schedule_of(row)}  # fmt: skip
    plain = Case(arch, rates, {**degrees, "recompute": 0}, batch, int(sequence_tokens), precision, family, recipe)
    level, forgotten = recompute_of(row, plain, framework, reader, constants)
    recipe = replace(recipe, forgotten=forgotten)
    case = Case(arch, rates, {**degrees, "recompute": level}, batch, plain.sequence_tokens, precision, family, recipe)
    tflops, hardware = measured_tflops(row, chip)
    return MeasuredTraining(
        row=row, case=case, architecture=name, chip=chip.name, chips=chips, precision=precision,
        capacity_bytes=float(rates.hbm_bytes), step_s=measured_step_s(row, batch), tflops=tflops, hardware_flops=hardware,
        inferred=tuple(reader.inferred),
    )  # fmt: skip


def framework_of(row: Row) -> str:
    """Identify the framework: column `framework`, "other" where unknown."""
    return row.text["framework"] if row.text["framework"] in FRAMEWORKS else "other"


def release_year(row: Row) -> float:
    """Date the software [year]: column `release_date` ("2025-11" is the middle of November), else the middle of column `year`, else 2026."""
    found = re.fullmatch(r"(\d{4})(?:-(\d{2}))?(?:-\d{2})?", row.text["release_date"])
    if found:
        return int(found[1]) + ((int(found[2]) - 0.5) / 12.0 if found[2] else 0.5)
    year = row.number("year")
    return year + 0.5 if year else DEFAULT_YEAR


def precision_of(row: Row, chip: Record, arch: Architecture, reader: RowReader) -> str:
    """Infer the precision: column `dtype`; empty is 8 bit for tuned software on a chip that computes in it, else 16 bit.

    Four-bit runs with experts keep so much in eight bits that they count as MXFP8.
    """
    label = row.text["dtype"].lower()
    if label not in PRECISIONS:
        raise Unpredictable(Message.of("row.unknown_type").text())
    if not label and row.text["framework"] == "nvidia-tuned" and peak_flop_per_s(stated(chip), "fp8") is not None:
        label = "fp8"
        reader.note(Message.of("row.arithmetic_8_bit").text())
    elif not label:
        reader.note(Message.of("row.arithmetic_16_bit").text())
    precision = PRECISIONS[label]
    if FORMATS[precision].arithmetic[0] == "fp4" and arch.experts:
        reader.note(Message.of("row.experts_in_mxfp").text())
        precision = "mxfp8"
    return precision


def scaleup_domain(row: Row, chip: Record) -> float:
    """Return the chips of a scale-up domain: as many as the catalog states, bounded by `chips_per_node` within one node."""
    node = row.number("chips_per_node")
    domain = stated(chip)("scaleup_chips") or node or 1.0
    return min(node, domain) if node and domain <= LARGEST_NODE_CHIPS else domain


def rates_of(row: Row, chip: Record, precision: str, per_chip: int, reader: RowReader) -> tuple[ChipRates, str]:
    """Return the rates of one rank, and the chip generation. A rank is a chip, or one of its `per_chip` cores.

    Unstated NICs have the bandwidth usual for
    nodes of the generation.
    """
    read, family, domain = stated(chip), chip.words("family") or "other", scaleup_domain(row, chip)
    scaleup = read("scaleup_bytes_per_s")
    if scaleup is None:
        reader.note(Message.of("row.host_scale_up").text())
        scaleup = UNSTATED_SCALEUP_BYTES_PER_S
    nic = row.number("inter_node_link_GBps_per_chip")
    if nic is None:
        nic = USUAL_NIC_GBPS.get(family, OTHER_NIC_GBPS)
        if row.required("n_chips") > domain:
            reader.note(Message.of("row.nic", rate=f"{nic:g}").text())
    try:
        rates = chip_rates(
            chip, precision, arithmetic=FORMATS[precision].arithmetic[0], scaleup_bytes_per_s=scaleup, scaleup_chips=domain, scaleout_bytes_per_s=nic * GIGA,
            ranks_per_chip=per_chip,
        )  # fmt: skip
    except UnknownRate as error:
        raise Unpredictable(words_of(error)) from None
    return rates, family


def layout_degrees(
    row: Row, framework: str, experts: int, domain: float, reader: RowReader
) -> tuple[dict[str, int], int]:
    """Infer the parallel degrees, and how many ranks share a chip.

    Empty TP, PP, CP and EP are 1; with FSDP, experts spread over as many ranks as divide them, and so they do within a scale-up domain where
    neither a degree nor sharded weights are printed. Empty DP takes the remaining chips. A
    printed product that is a whole multiple of the chips counts cores, several ranks per chip. Any other DP that does not multiply up to
    the chips is replaced by the remaining chips, and a pipeline deeper than the chips allow by the deepest that they allow.
    """
    chips = row.required("n_chips")
    degrees = {name: max(1, row.count(name, 1)) for name in ("tp", "pp", "cp", "ep")}
    unstated = row.text["sharding"] != "zero3" and not any(row.number(name) for name in ("tp", "pp", "cp", "ep", "dp"))
    if experts and not row.number("ep") and (framework == "fsdp" or unstated):
        ranks = chips if framework == "fsdp" else min(chips, 2 ** int(math.log2(domain)))
        degrees["ep"] = math.gcd(experts, int(ranks // (degrees["tp"] * degrees["pp"])) or 1)
        reader.note(Message.of("row.ep", size=str(degrees["ep"])).text())
    model: float = degrees["tp"] * degrees["pp"] * degrees["cp"]
    dp, per_chip = row.number("dp"), 1
    if dp and model * dp > chips and (model * dp) % chips == 0 and degrees["cp"] == 1:
        per_chip = int(model * dp // chips)
        reader.note(Message.of("row.ranks_per_chip", count=str(per_chip)).text())
    elif not dp or model * dp != chips:
        flat = degrees["tp"] * degrees["cp"]
        if model > chips and chips % flat == 0:
            degrees["pp"], model = int(chips // flat), chips
            reader.note(Message.of("row.pp_of_chips").text())
        if chips % model:
            raise Unpredictable(Message.of("row.layout_not_dividing").text())
        dp = chips // model
        reader.note(Message.of("row.dp_of_chips").text())
    return {**degrees, "dp": int(dp)}, per_chip


def batch_of(row: Row, degrees: Mapping[str, int], framework: str, reader: RowReader) -> tuple[float, int]:
    """Infer (global batch, micro-batch) in sequences. An empty micro-batch is 1, or with XLA the whole share of a replica.

    An empty global batch is eight micro-batches per replica, or four per pipeline stage where that is more.
    """
    batch, micro_batch = row.number("global_batch_sequences"), row.number("micro_batch")
    if not micro_batch:
        micro_batch = max(1, int(batch / degrees["dp"])) if framework == "xla" and batch else 1
        reader.note(Message.of("row.micro_batch", size=str(micro_batch)).text())
    if not batch:
        batch = degrees["dp"] * micro_batch * max(8, 4 * degrees["pp"])
        reader.note(Message.of("row.global_batch", size=f"{batch:g}").text())
    return float(batch), int(max(1, micro_batch))


def interleave_of(row: Row, degrees: Mapping[str, int], framework: str, reader: RowReader) -> int:
    """Infer the interleaving: column `vpp`; empty is 1, or 2 for a pipeline of tuned software."""
    if row.number("vpp"):
        return row.count("vpp") if degrees["pp"] > 1 else 1
    if degrees["pp"] > 1:
        chunks = 2 if framework == "nvidia-tuned" else 1
        reader.note(Message.of("row.vpp", size=str(chunks)).text())
        return chunks
    return 1


def schedule_of(row: Row) -> int:
    """Read the pipeline schedule: column `schedule`, a name of `pipeline.SCHEDULES`; empty is 1F1B, interleaved or not."""
    try:
        return schedule_code(row.text["schedule"]) if row.text["schedule"] else 0
    except ValueError as error:
        raise Unpredictable(words_of(error)) from None


def adapter_rank_of(row: Row, reader: RowReader) -> int:
    """Infer the rank of the adapters on attention: 0 unless column `tuning` is "lora"; an empty `adapter_rank` is 16."""
    if row.text["tuning"].lower() != "lora":
        return 0
    if row.number("adapter_rank"):
        return row.count("adapter_rank")
    reader.note(Message.of("row.adapters", rank=str(USUAL_ADAPTER_RANK)).text())
    return USUAL_ADAPTER_RANK


def zero_of(row: Row, framework: str, reader: RowReader) -> int:
    """Infer the ZeRO stage: column `sharding`; empty is none for Megatron of 2021, ZeRO-3 for XLA, ZeRO-1 elsewhere."""
    label = row.text["sharding"]
    if label in ZERO:
        return ZERO.index(label)
    level = {"megatron-2021": 0, "xla": 3}.get(framework, 1)
    reader.note(Message.of("row.sharding", level=ZERO[level]).text())
    return level


def sequence_parallel_of(row: Row, degrees: Mapping[str, int], framework: str, reader: RowReader) -> int:
    """Infer sequence parallelism: column `sequence_parallel`; empty is on with tensor parallelism, except in Megatron of 2021."""
    if row.text["sequence_parallel"]:
        return int(row.text["sequence_parallel"].lower() in ("yes", "true", "1")) if degrees["tp"] > 1 else 0
    if degrees["tp"] == 1:
        return 0
    reader.note(Message.of(f"row.sequence_parallel_{'off' if framework == 'megatron-2021' else 'on'}").text())
    return int(framework != "megatron-2021")


def recompute_of(
    row: Row, plain: Case, framework: str, reader: RowReader, constants: TrainingConstants
) -> tuple[int, float]:
    """Infer (recompute level, share of activations recomputed beyond it) from column `recompute`.

    Empty is selective for tuned software with experts (modules that are cheap to repeat), none elsewhere; in both cases the share of
    further activations is such that the run fits into 0.894 of the memory.
    """
    if row.text["recompute"] in RECOMPUTE:
        return RECOMPUTE.index(row.text["recompute"]), 0.0
    level = 0
    if framework == "nvidia-tuned" and plain.arch.experts:
        reader.note(Message.of("row.fine_recompute").text())
        level = 1
    none, full = (plain.memory_bytes(at, constants) for at in (level, 2))
    if full >= none:
        return level, 0.0
    limit = MEMORY_SHARE_WITHOUT_RECOMPUTE * float(plain.chip.hbm_bytes)
    share = min(1.0, max(0.0, (none - limit) / (none - full)))
    reader.note(Message.of("row.recomputed_by_memory", share=f"{share:.0%}").text())
    return level, share


def recipe_of(row: Row, framework: str, family: str, chip: Record, precision: str, arch: Architecture, degrees: Mapping[str, int],
              mtp_layers: int, reader: RowReader) -> Recipe:  # fmt: skip
    """Infer the features of the software (fusion, overlap, graph capture) from framework and date.

    Attention is fused except in Megatron of 2021. Tuned software fuses the dispatcher from 2026 on, overlaps the exchange
    where it leaves the scale-up domain, captures whole iterations with experts in MXFP8 on Blackwell from mid-2026 on, but for networks
    with recurrent layers and for sharded weights, whose buffers move, and trains the layers of multi-token prediction, where the architecture has them.
    """
    year, tuned = release_year(row), framework == "nvidia-tuned"
    captures_iterations = (
        tuned
        and bool(arch.experts)
        and not (arch.state_layers or arch.linear_layers)
        and row.text["sharding"] != "zero3"
        and year >= GRAPHS_FROM
        and family in ("blackwell", "blackwell_ultra")
        and precision == "mxfp8"
    )
    domain = stated(chip)("scaleup_chips") or DEFAULT_SCALEUP_CHIPS
    beyond = degrees["ep"] > domain and degrees["pp"] > 1
    since = FUSED_RACK_FROM if domain > LARGEST_NODE_CHIPS else FUSED_FROM
    fused = year >= (since if tuned else FUSED_FSDP_FROM if framework == "fsdp" else math.inf)
    if arch.experts:
        reader.note(Message.of("row.expert_recipe").text())
    return Recipe(
        framework=framework, release_year=year, fused_attention=framework != "megatron-2021",
        fused_dispatch=fused, overlapped_exchange=captures_iterations or (tuned and beyond) or (framework == "fsdp" and fused),
        cuda_graphs="full" if captures_iterations else "partial", grace_host="C2C" in (chip.words("host_link") or ""), mtp_layers=mtp_layers if tuned else 0,
        adapter_rank=adapter_rank_of(row, reader), operand_bytes=element_bytes(precision),
    )  # fmt: skip


def measured_step_s(row: Row, batch: float) -> float | None:
    """Read the step time, else derive it from tokens per second and chip."""
    if seconds := row.number("step_time_s"):
        return seconds
    rate = row.number("tokens_per_s_per_chip")
    return batch * row.required("seq_len") / (rate * row.required("n_chips")) if rate else None


def measured_tflops(row: Row, chip: Record) -> tuple[float | None, bool]:
    """Return (TFLOP/s per chip, whether recomputation counts): as printed, else from MFU, else from HFU, at the peak of the precision."""
    if row.number("model_tflops_per_chip"):
        return row.number("model_tflops_per_chip"), False
    precision = PRECISIONS.get(row.text["dtype"].lower(), "bf16")
    rate = peak_flop_per_s(stated(chip), FORMATS[precision].arithmetic[0])
    if rate is None:
        raise Unpredictable(Message.of("row.no_rate", precision=precision).text())
    peak = rate / TERA
    if mfu_pct := row.number("mfu_pct"):
        return mfu_pct / 100.0 * peak, False
    hfu_pct = row.number("hfu_pct")
    return (hfu_pct / 100.0 * peak, True) if hfu_pct else (None, False)
