"""Predict what published rates of whole systems state, and say where prediction and publication disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from catalog.lookup import Catalog
from catalog.records import Record
from models.roofline import ChipRates
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip
from models.serving.speculation import Speculation, decode_step
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths, Precisions
from models.statistics.intervals import tier_of
from models.transformer.architecture import Architecture
from planner.facts import Fact
from planner.facts.anchors import Predicted, contradicted
from planner.problem.facts import ServingFacts, SystemFacts
from planner.problem.intervals import relatives, seen_chips
from planner.resolve.architectures import shape_of
from planner.resolve.chip_rates import chip_rates, stated
from planner.resolve.ledger import Ledger

TENSOR_RANKS = (1, 2, 4, 8)
BATCHES = np.unique(np.rint(np.geomspace(1, 1024, 61)))  # of a chip
ASKED = ("chips", "input_tokens")  # without which there is no prediction
CACHE = "bf16"


def anchor_facts(catalog: Catalog, path: str, workload: ServingFacts, systems: Iterable[SystemFacts]) -> Iterator[Fact]:
    """Name the published rates of the workload's network on the chips that are offered which lie outside the interval of their prediction.

    The prediction is of the conditions of the publication, not of the workload's.
    """
    chips = {system.chip for system in systems}
    for anchor in catalog.records("anchors"):
        if (
            anchor.words("chip") not in chips
            or not _is_predictable(anchor)
            or _shape(catalog, anchor) != workload.architecture
        ):
            continue
        predicted = anchor_prediction(catalog, anchor)
        if predicted is not None and (fact := contradicted(f"{path}.architecture", anchor, predicted)):
            yield fact


def anchor_prediction(catalog: Catalog, anchor: Record) -> Predicted | None:
    """Predict the rate of an anchor at its own conditions [token/s per chip]; None where its source leaves out what a prediction needs.

    The best of all batches and tensor-parallel degrees that fit in memory and keep the limit on TPOT. The bounds are those of a run of
    a new source.
    """
    if not _is_predictable(anchor):
        return None
    chip = catalog.get("chips", anchor.words("chip"))
    read, arch = stated(chip), _shape(catalog, anchor)
    rates = chip_rates(
        chip, anchor.words("precision"), scaleup_bytes_per_s=read("scaleup_bytes_per_s") or 0.0,
        scaleup_chips=read("scaleup_chips") or 1.0, scaleout_bytes_per_s=0.0,
    )  # fmt: skip
    constants = ServingConstants.from_values(catalog.constants("serving")).profile(family=chip.words("family"))
    found = (_prefill if anchor.words("phase") == "prefill" else _decode)(anchor, arch, rates, constants)
    chips = seen_chips(catalog, "serving")
    tier = tier_of(False, chip.name in chips, chip.name in relatives(catalog, chips))
    bands = catalog.get("constants", "serving_interval")
    low, high = (bands.value(f"{tier}_throughput_{side}") for side in ("low", "high"))
    return Predicted(found, found * low, found * high)


def _is_predictable(anchor: Record) -> bool:
    return anchor.words("phase") != "training" and all(anchor.get(name) is not None for name in ASKED)


def _shape(catalog: Catalog, anchor: Record) -> Architecture:
    return shape_of(catalog.get("architectures", anchor.words("architecture")), Ledger(catalog))


def _layouts(anchor: Record, arch: Architecture) -> ServingLayouts:
    """List the ways to lay a replica over all chips of an anchor, one a row."""
    chips = round(anchor.value("chips"))
    tp = np.array([[ranks] for ranks in TENSOR_RANKS if chips % ranks == 0 and arch.heads % ranks == 0])
    return ServingLayouts(tp, np.ones_like(tp), chips // tp, np.full_like(tp, chips if arch.experts else 1))


def _decode(anchor: Record, arch: Architecture, rates: ChipRates, constants: ServingConstants) -> float:
    layouts, limit, drafts = _layouts(anchor, arch), anchor.get("tpot_limit_s"), anchor.get("draft_tokens")
    precisions = Precisions(anchor.words("precision"), CACHE)
    prompt, answer = (
        anchor.value("input_tokens"),
        0.0 if anchor.get("output_tokens") is None else anchor.value("output_tokens"),
    )
    speculation = None if drafts is None else Speculation(round(drafts.number), anchor.value("acceptance"))
    sequences = BATCHES[None, :] * anchor.value("chips")
    _, step = decode_step(
        arch, rates, layouts, speculation, decode_sequences=sequences, context_tokens=prompt + 0.5 * answer, precisions=precisions,
        constants=constants,
    )  # fmt: skip
    tpot = np.asarray(step.total_s) / (1.0 if speculation is None else speculation.tokens_per_step)
    held = memory_bytes_per_chip(
        arch, layouts, sequences, lengths=Lengths(prompt, max(answer, 1.0)), precisions=precisions, constants=constants
    )
    fits = np.asarray(held) <= constants.usable_memory * rates.hbm_bytes
    if limit is not None:
        fits = fits & (tpot <= limit.number)
    return float(np.max(np.where(fits, BATCHES[None, :] / tpot, 0.0)))


def _prefill(anchor: Record, arch: Architecture, rates: ChipRates, constants: ServingConstants) -> float:
    layouts, prompt = _layouts(anchor, arch), anchor.value("input_tokens")
    tokens = constants.chunk_tokens * layouts.dp
    step = step_time(
        arch, rates, layouts, StepLoad(0.0, prefill_tokens=tokens, prompt_tokens=prompt),
        precisions=Precisions(anchor.words("precision"), CACHE), constants=constants,
    )  # fmt: skip
    return float(np.max(tokens / np.asarray(step.total_s))) / anchor.value("chips")
