"""Infer the architecture of a measurement from the row's own cells, completed from the catalog and by stated rules."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from catalog.errors import UnknownName
from catalog.lookup import Catalog
from catalog.records import Record
from catalog.units import BILLION, MOST_CHARACTERS
from models.transformer import shapes
from models.transformer.architecture import Architecture, parameter_counts
from models.transformer.shapes import NEEDED, OPTIONAL
from planner.calibration.measurements import Row, Unpredictable
from planner.messages import Message
from planner.resolve.architectures import checkpoints_of

PADDED_VOCABULARY = 51200  # GPT-2's, padded as Megatron does
# Latent attention where a row says no more than that: the ranks that all published networks of the kind share.
USUAL_MLA = {"q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_dim": 128, "qk_rope_dim": 64, "v_head_dim": 128}
USUAL_HEAD, USUAL_HEADS = 128, (64, 128, 256)
UNUSUAL_SHAPE_PENALTY = 0.03  # gain in |ln(parameters)| for which an unusual shape is preferred to the usual one


def architecture_of(row: Row, catalog: Catalog, notes: list[str]) -> tuple[Architecture, str, int]:
    """Return (architecture, name, layers of multi-token prediction). A row's own cells take precedence over the catalog."""
    label = row.text["model"]
    record = known_record(label, catalog)
    mtp = int(record.value("mtp_layers")) if record and record.get("mtp_layers") else 0
    name = record.name if record else label
    if not (row.number("layers") and row.number("hidden")):
        if record is None:
            raise Unpredictable(Message.of("row.no_shape").text())
        notes.append(Message.of("row.catalog_shape").text())
        return shape_of_record(record), name, mtp
    if record and not (record.get("layers") and record.get("hidden") and record.value("layers") == row.count("layers")
                       and record.value("hidden") == row.count("hidden")):  # fmt: skip
        record = None
    return shape_of_row(row, record, notes), name, mtp


def known_record(label: str, catalog: Catalog) -> Record | None:
    """Look up the architecture by name or alias, with or without a remark in brackets or a mark of quantisation (-w8a8…) at the end, or the
    publisher in front."""
    label = label[:MOST_CHARACTERS]
    short = (re.sub(r"\s*\([^)]*\)$", "", label), re.sub(r"-w\d+a\d+.*$", "", label), label.rpartition("/")[2])
    for name in (label, *short):
        try:
            return catalog.get("architectures", name)
        except UnknownName:
            continue
    return None


def shape_of_record(record: Record) -> Architecture:
    """Read the architecture from the catalog, including hybrids whose layers hold one block each."""

    def value(name: str) -> int | None:
        figure = record.get(name)
        return None if figure is None else int(figure.number)

    found = {name: v for name in (*NEEDED, *OPTIONAL) if (v := value(name)) is not None}
    if record.words("shape") == "incomplete" or any(name not in found for name in NEEDED):
        raise Unpredictable(Message.of("row.incomplete_shape").text())
    shape = shapes.architecture_of(
        found,
        gated=record.words("gated") != "false",
        tied=record.words("tied") == "true",
        mla=record.words("attention") == "mla",
    )
    return replace(shape, checkpoints=checkpoints_of(record, shape))


def shape_of_row(row: Row, record: Record | None, notes: list[str]) -> Architecture:
    """Infer the architecture from the row's cells. Empty ones come from the catalog's record of the same layers and width, else:

    heads of 128; as many KV heads as heads; vocabulary of padded GPT-2; feed-forward width and head dimension as in
    `feed_forward_width` and `by_parameters`; latent attention with the usual ranks.
    """
    found = {"layers": row.count("layers"), "hidden": row.count("hidden"), "heads": row.count("heads")}
    known = {name: int(record.value(name)) for name in OPTIONAL if record and record.get(name) is not None}
    if not found["heads"]:
        found["heads"] = (
            int(record.value("heads")) if record and record.get("heads") else max(1, found["hidden"] // USUAL_HEAD)
        )
        notes.append(Message.of("row.heads", heads=str(found["heads"])).text())
    found["kv_heads"] = row.count("kv_heads") or known.get("kv_heads", found["heads"])
    found["vocab"] = row.count("vocab") or (int(record.value("vocab")) if record and record.get("vocab") else 0)
    if not found["vocab"]:
        found["vocab"] = PADDED_VOCABULARY
        notes.append(Message.of("row.vocabulary", size=str(PADDED_VOCABULARY)).text())
    experts = row.count("n_experts") or known.get("experts", 0)
    if experts:
        found |= {"experts": experts, "topk": row.count("topk") or known.get("topk", 0), "shared_experts": row.count("n_shared_experts", known.get("shared_experts", 0)),
                  "expert_ffn": row.count("expert_ffn") or known.get("expert_ffn", 0) or row.count("ffn"), "dense_layers": known.get("dense_layers", 0)}  # fmt: skip
        if not found["topk"] or not found["expert_ffn"]:
            raise Unpredictable(Message.of("row.experts_incomplete").text())
    found["ffn"] = (
        row.count("ffn")
        or known.get("ffn", 0)
        or found.get("expert_ffn", 0)
        or feed_forward_width(found["hidden"], notes)
    )
    mla = (row.text["attention"] or (record.words("attention") if record else "")) == "mla"
    if mla:
        found |= {name: known.get(name, usual) for name, usual in USUAL_MLA.items()}
    if record is not None:
        words = {"gated": record.words("gated") != "false", "tied": record.words("tied") == "true"}
        return shapes.architecture_of({**known, **found}, mla=mla, **words)
    return by_parameters(found, mla, row.number("params_total_B"), notes)


def feed_forward_width(hidden: int, notes: list[str]) -> int:
    """Infer the feed-forward width of a gated block: 8/3 of the hidden width, rounded up to a multiple of 256."""
    width = 256 * math.ceil(8 * hidden / 3 / 256)
    notes.append(Message.of("row.ffn_width", width=str(width)).text())
    return width


def by_parameters(found: dict[str, int], mla: bool, billions: float | None, notes: list[str]) -> Architecture:
    """Choose two or three matrices per block, and the head dimension, to fit the printed number of parameters.

    The usual shape (three matrices unless the width is four times the hidden one; head dimension hidden / heads) is kept
    unless another is nearer to the printed count by more than 3 %.
    """
    usual_gated = found["ffn"] != 4 * found["hidden"]
    usual_head = found["hidden"] // found["heads"]

    def shaped(gated: bool, head: int) -> Architecture:
        return Architecture(**found, routing=None, checkpoints=(), head_dim=head, gated=gated, tied=False, mla=mla)

    best = shaped(usual_gated, usual_head)
    if not billions:
        return best
    best_miss = math.inf
    for gated in (usual_gated, not usual_gated):
        for head in dict.fromkeys((usual_head, *USUAL_HEADS)):
            arch = shaped(gated, head)
            miss = abs(math.log(parameter_counts(arch).total / (billions * BILLION)))
            miss += UNUSUAL_SHAPE_PENALTY * ((gated != usual_gated) + 2 * (head != usual_head))
            if miss < best_miss:
                best, best_miss = arch, miss
    if best.gated != usual_gated or best.head_dim != usual_head:
        notes.append(
            Message.of("row.blocks_of_parameters", matrices="3" if best.gated else "2", size=str(best.head_dim)).text()
        )
    return best
