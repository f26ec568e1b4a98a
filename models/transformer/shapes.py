"""Build an architecture from its figures by name: the one place that knows which figures make a shape and what stands in for those left out.

Catalog records, config files, rows of measurements and overrides of a case all come through here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from models.transformer.architecture import Architecture

NEEDED = ("layers", "hidden", "heads", "vocab")
_FLAGS = ("gated", "tied", "mla", "routing", "checkpoints")
SHAPE = tuple(field.name for field in fields(Architecture) if field.name not in _FLAGS)  # figures of a shape, by name
# Figures that switch a block or a shape of its own on: networks with and without one are not stacked in one array.
SWITCHES = (
    "experts", "q_lora_rank", "attention_layers", "expert_hidden", "shared_ffn", "shared_kv", "state_width", "window_heads", "window_kv_heads",
    "window_head_dim", "v_head_dim", "sparse_topk", "index_heads", "sparse_layers", "index_layers", "csa_layers", "hca_layers", "o_lora_rank",
)  # fmt: skip
OPTIONAL = tuple(name for name in SHAPE if name not in (*NEEDED, "state_layers"))


def architecture_of(figures: Mapping[str, int], *, gated: bool, tied: bool, mla: bool) -> Architecture:
    """Build an architecture from figures by name; figures of other names are left alone.

    KV heads default to the heads, the width of a head to hidden / heads, the dense feed-forward width to that of an expert. With
    `attention_layers`, a layer is one block, and `linear_layers` are its state-space layers.
    Shapes: scalars. Units: [1]. Raises KeyError for a needed figure that is missing, ValueError for an impossible shape.
    Reference: Ainslie et al., GQA, arXiv:2305.13245 (heads); NVIDIA, Nemotron-H, arXiv:2504.03624, section 2 (one block per layer).

    >>> architecture_of({"layers": 2, "hidden": 64, "heads": 4, "vocab": 1000, "ffn": 256}, gated=True, tied=False, mla=False).head_dim
    16
    """
    found = {name: int(figures[name]) for name in NEEDED}
    found |= {name: int(figures[name]) for name in OPTIONAL if figures.get(name) is not None}
    found.setdefault("kv_heads", found["heads"])
    found.setdefault("head_dim", found["hidden"] // max(found["heads"], 1))
    found.setdefault("ffn", found.get("expert_ffn", 0))
    if found.get("attention_layers") and found.get("state_width"):
        found["state_layers"] = found.pop("linear_layers", 0)
    elif found.get("linear_layers"):  # states of unknown widths stay within layers of both blocks
        found.pop("attention_layers", None)
    return Architecture(**found, routing=None, checkpoints=(), gated=gated, tied=tied, mla=mla)
