"""Predict what published rates of whole systems state, and say where prediction and publication disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from catalog.lookup import Catalog
from catalog.records import Record
from models.serving.constants import REFERENCE_YEAR, ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip
from models.serving.many_runs import Case, Pool, Predictor
from models.serving.speculation import Speculation
from models.serving.workload import Lengths, Precisions
from models.statistics.intervals import tier_of
from models.transformer.architecture import Architecture
from models.transformer.routing import Routing
from planner.facts import Fact
from planner.facts.anchors import Predicted, contradicted
from planner.problem.facts import ServingFacts, SystemFacts
from planner.problem.intervals import relatives, seen_chips
from planner.resolve.architectures import shape_of
from planner.resolve.chip_rates import chip_rates, stated
from planner.resolve.ledger import Ledger

TENSOR_RANKS = (1, 2, 4, 8)
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
            or not is_predictable(anchor)
            or _shape(catalog, anchor) != workload.architecture
        ):
            continue
        predicted = anchor_prediction(catalog, anchor)
        if predicted is not None and (fact := contradicted(f"{path}.architecture", anchor, predicted)):
            yield fact


def anchor_prediction(catalog: Catalog, anchor: Record) -> Predicted | None:
    """Predict the rate of an anchor at its own conditions [token/s per chip]; None where its source leaves out what a prediction needs.

    The bounds hold for a run of a new source.
    """
    if not is_predictable(anchor):
        return None
    best = best_case(catalog, anchor, catalog.constants("serving"))
    if best is None:
        return None
    found = best[1]
    chip, chips = anchor.words("chip"), seen_chips(catalog, "serving")
    tier = tier_of(False, chip in chips, chip in relatives(catalog, chips))
    bands = catalog.get("constants", "serving_interval")
    low, high = (bands.value(f"{tier}_throughput_{side}") for side in ("low", "high"))
    return Predicted(found, found * low, found * high)


def is_predictable(anchor: Record) -> bool:
    """Tell whether the source of an anchor states what a prediction needs."""
    return anchor.words("phase") != "training" and all(anchor.get(name) is not None for name in ASKED)


def best_case(catalog: Catalog, anchor: Record, constants: Mapping[str, float]) -> tuple[Case, float] | None:
    """Choose the layout of the highest rate: (run over all chips of the anchor, rate [token/s per chip]); None where none fits in memory.

    Of tensor-parallel degrees, each with the largest batch that memory and the limit on TPOT allow.
    """
    cases = [case for case in _cases(catalog, anchor, constants) if _fits(case, constants)]
    if not cases:
        return None
    rates = np.exp(Predictor(cases, [(i, "throughput") for i in range(len(cases))])(constants))
    best = int(np.argmax(rates))
    return cases[best], float(rates[best]) / anchor.value("chips")


def _cases(catalog: Catalog, anchor: Record, constants: Mapping[str, float]) -> list[Case]:
    """List the runs that an anchor may be, one for each way to lay a replica over all of its chips."""
    chip, arch, precision = (
        catalog.get("chips", anchor.words("chip")),
        _shape(catalog, anchor),
        anchor.words("precision"),
    )
    read, chips, prompt = stated(chip), round(anchor.value("chips")), anchor.value("input_tokens")
    rates = chip_rates(
        chip, precision, scaleup_bytes_per_s=read("scaleup_bytes_per_s") or 0.0, scaleup_chips=read("scaleup_chips") or 1.0,
        scaleout_bytes_per_s=0.0 if (wire := anchor.get("scaleout_bytes_per_s")) is None else wire.number,
    )  # fmt: skip
    alone = anchor.words("phase") == "prefill"
    if anchor.get("imbalance") is not None:
        arch = replace(arch, routing=Routing(imbalance=anchor.value("imbalance")))
    drafts, limit, answer = (anchor.get(name) for name in ("draft_tokens", "tpot_limit_s", "output_tokens"))
    layouts = [
        {"tp": tp, "pp": 1, "dp": chips // tp, "ep": chips if arch.experts else 1}
        for tp in TENSOR_RANKS
        if chips % tp == 0 and arch.heads % tp == 0
    ]
    return [
        Case(
            arch, rates, Pool(layout), None, precision, anchor.words("cache") or CACHE, engine=anchor.words("engine") or "other", eager=False,
            release_year=anchor.value("year") if anchor.get("year") else REFERENCE_YEAR, family=chip.words("family"),
            regime="prefill" if alone else "decode_maximum", input_tokens=prompt,
            output_tokens=1.0 if answer is None else answer.number, capped=0.0,
            load=constants["chunk_tokens"] * layout["dp"] / prompt if alone else 0.0,
            tpot_limit_s=0.0 if limit is None else limit.number,
            speculation=None if drafts is None else Speculation(round(drafts.number), anchor.value("acceptance")),
        )
        for layout in layouts
    ]  # fmt: skip


def _fits(case: Case, constants: Mapping[str, float]) -> bool:
    """Tell whether a request per attention rank fits in memory."""
    known, layout = ServingConstants.from_values(constants), ServingLayouts(**case.decode.layout)
    held = memory_bytes_per_chip(
        case.arch, layout, layout.dp, lengths=Lengths(case.input_tokens, case.output_tokens),
        precisions=Precisions(case.weight_precision, case.kv_precision), constants=known,
    )  # fmt: skip
    return bool(np.all(np.asarray(held) <= known.usable_memory * case.chip.hbm_bytes))


def _shape(catalog: Catalog, anchor: Record) -> Architecture:
    return shape_of(catalog.get("architectures", anchor.words("architecture")), Ledger(catalog))
