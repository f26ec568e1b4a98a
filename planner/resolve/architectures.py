"""Resolve architectures: convert catalog records into the layer sizes that the closed forms take."""

from __future__ import annotations

from collections.abc import Iterable

from catalog.records import Record
from models.roofline import BYTES_PER_ELEMENT
from models.transformer.architecture import Architecture, parameter_counts
from planner.resolve.ledger import Ledger

NEEDED = ("layers", "hidden", "heads", "vocab")
OPTIONAL = (
    "kv_heads", "head_dim", "ffn", "experts", "topk", "shared_experts", "shared_ffn", "expert_ffn", "dense_layers", "q_lora_rank", "kv_lora_rank",
    "qk_nope_dim", "qk_rope_dim", "v_head_dim", "window_tokens", "window_layers", "linear_layers", "routed_groups",
)  # fmt: skip


def shape_of(record: Record, ledger: Ledger) -> Architecture:
    """Read the layer sizes of an architecture record. Raises MissingFigure for a record without a complete shape, and ValueError for an
    impossible one."""
    if record.text.get("shape") == "incomplete":
        missing = next((name for name in (*NEEDED, *OPTIONAL) if record.get(name) is None), "layers")
        ledger.value("architectures", record.name, missing)  # raises: half a shape would give a wrong answer
    figures = {name: int(ledger.value("architectures", record.name, name)) for name in NEEDED}
    figures |= {
        name: int(value)
        for name in OPTIONAL
        if (value := ledger.optional("architectures", record.name, name)) is not None
    }
    figures.setdefault("kv_heads", figures["heads"])
    figures.setdefault("head_dim", figures["hidden"] // max(figures["heads"], 1))
    figures.setdefault("ffn", figures.get("expert_ffn", 0))
    text = record.text
    return Architecture(
        **figures,
        gated=text.get("gated", "true") == "true",
        tied=text.get("tied") == "true",
        mla=text.get("attention") == "mla",
        routing=None,
    )


def weights_bytes(shape: Architecture, precisions: Iterable[str]) -> float:
    """Return the size of the weights in the widest of the precisions, as they are distributed to the sites [byte]."""
    return parameter_counts(shape).total * max(BYTES_PER_ELEMENT[precision] for precision in precisions)
