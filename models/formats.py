"""Formats of weights and caches: bytes of an element, which arithmetic takes it, and what a checkpoint leaves in 16 bit.

A format is added in `FORMATS`, and in the literal types above it that name it. How fast a chip computes is in models/roofline.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_args, overload

import numpy as np

from models.arrays import Floats, Ints, Result, as_result

WeightFormat = Literal[
    "bf16", "fp16", "fp8", "fp4", "int8", "int4", "mxfp8", "mxfp4", "nvfp4"
]  # formats of a checkpoint that is served
RecipeFormat = Literal[
    "bf16", "fp16", "fp8", "fp4", "int8", "mxfp8", "mxfp4", "nvfp4"
]  # formats of the products of a training step
CacheFormat = Literal["bf16", "fp8", "int8", "fp4", "int4"]
Arithmetic = Literal["bf16", "fp8", "int8", "fp4"]
WEIGHT_FORMATS: tuple[WeightFormat, ...] = get_args(WeightFormat)
RECIPE_FORMATS: tuple[RecipeFormat, ...] = get_args(RecipeFormat)
CACHE_FORMATS: tuple[CacheFormat, ...] = get_args(CacheFormat)
ARITHMETICS: tuple[Arithmetic, ...] = get_args(Arithmetic)
WIDE_BYTES = 2.0  # bytes of an element that a checkpoint leaves in 16 bit


@dataclass(frozen=True, slots=True)
class Format:
    """A format: stored bytes of an element with its scales, and the arithmetic of products with it, most direct first.

    Arithmetic wider than the elements reads them as stored and widens them on the way. `group`: elements that share a scale of
    `scale_bytes`; 0 where a tensor or a channel has one scale, which is negligible. `cache`: format of the KV cache that
    published checkpoints in it ask for.
    """

    value_bytes: float
    arithmetic: tuple[str, ...]
    group: int = 0
    scale_bytes: float = 0.0
    cache: str = "bf16"

    def element_bytes(self, group: int = 0) -> float:
        """Compute the stored bytes of an element, of which `group` share a scale (0: as many as usual) [byte]."""
        each = group or self.group
        return self.value_bytes + (self.scale_bytes / each if each else 0.0)


FORMATS: Mapping[str, Format] = {
    "fp32": Format(4.0, ("fp32",)),
    "bf16": Format(2.0, ("bf16",)),
    "fp16": Format(2.0, ("bf16",)),
    "fp8": Format(1.0, ("fp8", "bf16")),
    "mxfp8": Format(1.0, ("fp8", "bf16"), 32, 1.0),
    "int8": Format(1.0, ("int8", "bf16")),
    "fp4": Format(0.5, ("fp4", "bf16"), 16, 1.0, "fp8"),
    "nvfp4": Format(0.5, ("fp4", "bf16"), 16, 1.0, "fp8"),
    "mxfp4": Format(0.5, ("fp4", "bf16"), 32, 1.0),
    "int4": Format(0.5, ("bf16",), 128, 2.0),
}
"""By name. Sources: OCP Microscaling Formats 1.0 (2023), section 5 (MX); NVIDIA, Introducing NVFP4 (2025): an 8-bit scale for 16 elements;
Frantar et al., GPTQ, arXiv:2210.17323, section 4 (a 16-bit scale for 128); Frantar et al., MARLIN, arXiv:2408.11743 (widened on the way).
`fp4` of a checkpoint of unknown kind is that of the wider scales."""
OWN_KINDS = {"fp4": ("nvfp4", "mxfp4"), "fp8": ("fp8", "mxfp8")}
"""Names that mean the checkpoint's own kind of that number of bits, with the kinds in question; the first where it states none."""
KINDS = tuple(kind for name, kinds in OWN_KINDS.items() for kind in kinds if kind != name)
"""Formats that such a name may mean."""
PRECISIONS = tuple(FORMATS)
OPERAND_BITS = {"fp32": 16, "bf16": 16, "fp8": 8, "int8": 8, "fp4": 4}
"""Bits of the operands of an arithmetic, by which efficiencies are told apart."""
Precision = str | Ints  # a name, or an array of places in PRECISIONS


def takes(precision: str, arithmetic: str) -> bool:
    """Tell whether weights of a format can be multiplied in an arithmetic: in its own, or widened in any of more bits than its elements.

    Shapes: scalars. Units: none [1]. Reference: Frantar et al., MARLIN, arXiv:2408.11743; Lin et al., QServe, arXiv:2405.04532 (4 bits in 8).

    >>> takes("int4", "fp8"), takes("fp8", "bf16"), takes("bf16", "fp8")
    (True, True, False)
    """
    each = FORMATS[precision]
    return arithmetic in each.arithmetic or OPERAND_BITS[arithmetic] > 8.0 * each.value_bytes


def arithmetic_of(precision: str, able: Collection[str], stated: str = "") -> str | None:
    """Choose the arithmetic of products with weights of a format on a chip: the stated one, else the most direct that the chip has.

    None where the chip has none that takes the format. Shapes: scalars. Units: none [1]. Reference: `FORMATS`.

    >>> arithmetic_of("fp8", ["bf16", "fp8"]), arithmetic_of("fp8", ["bf16", "int8"]), arithmetic_of("bf16", ["fp8"])
    ('fp8', 'bf16', None)
    """
    if stated:
        return stated if stated in able and takes(precision, stated) else None
    return next((name for name in FORMATS[precision].arithmetic if name in able), None)


def computes_in(precision: str, able: Collection[str], scaled: Collection[str]) -> bool:
    """Tell whether a chip computes in a format itself: in its own arithmetic, applying its block scales where it has any.

    `scaled`: the formats whose scales the chip applies. Shapes: scalars. Units: none [1]. Reference: OCP Microscaling Formats 1.0 (2023), section 6
    (a product of blocks scales their sum).

    >>> computes_in("fp8", ["bf16", "fp8"], []), computes_in("mxfp8", ["bf16", "fp8"], []), computes_in("fp4", ["fp4"], ["mxfp4"])
    (True, False, True)
    """
    each = FORMATS[precision]
    applied = not each.group or not {*kinds_meant(precision)}.isdisjoint(scaled)
    return applied and arithmetic_of(precision, able) == each.arithmetic[0]


@overload
def element_bytes(precision: str) -> float: ...
@overload
def element_bytes(precision: Ints) -> Floats: ...
@overload
def element_bytes(precision: Precision) -> Result: ...
def element_bytes(precision: Precision) -> Result:
    """Look up the stored bytes of an element of a format, block scales included.

    Shapes: a name, or an array of places in PRECISIONS. Units: [byte].
    Reference: OCP Microscaling Formats specification 1.0 (2023), section 5 (block scales).

    >>> element_bytes("fp8"), element_bytes("int4"), element_bytes(np.array([PRECISIONS.index("bf16")])).tolist()
    (1.0, 0.515625, [2.0])
    """
    return FORMATS[precision].element_bytes() if isinstance(precision, str) else as_result(_BYTES[precision])


def operand_bits(precision: Precision) -> Result:
    """Look up the bits of the operands of a product with weights of a format, where nothing widens them further than it must.

    Shapes: a name, or an array of places in PRECISIONS. Units: [1]. Raises ValueError for an unknown name.
    Reference: Frantar et al., MARLIN, arXiv:2408.11743, section 3 (integers of 4 bits are widened to 16).

    >>> operand_bits("int4"), operand_bits("fp8")
    (16, 8)
    """
    if isinstance(precision, str):
        if precision not in FORMATS:
            raise ValueError(f"unknown precision {precision!r}; known: {', '.join(FORMATS)}")
        return OPERAND_BITS[FORMATS[precision].arithmetic[0]]
    bits: Floats = _BITS[precision]
    return bits


_BYTES = np.array([each.element_bytes() for each in FORMATS.values()])
_BITS = np.array([OPERAND_BITS[each.arithmetic[0]] for each in FORMATS.values()], float)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Weights of one network as published in one format: the share of each part that stays in 16 bit, and elements that share a scale.

    `kind`: the format that they are in, such as "mxfp4" of a checkpoint that is asked for as "fp4". `group`: 0 where it is the usual one.
    `cache`: format of the KV cache that it asks for; "" where that is the format's.
    """

    kind: str
    attention: float = 0.0
    ffn: float = 0.0  # dense blocks and shared experts
    experts: float = 0.0
    router: float = 0.0
    tables: float = 0.0  # embedding and head
    group: int = 0
    cache: str = ""

    @property
    def narrow_bytes(self) -> float:
        """Stored bytes of an element that was narrowed [byte]."""
        return FORMATS[self.kind].element_bytes(self.group)


Checkpoints = tuple[tuple[str, Checkpoint], ...]
"""Checkpoints of a network by the format that asks for them."""
PARTS = ("attention", "ffn", "experts", "router", "tables")


@dataclass(frozen=True, slots=True)
class Stored:
    """Bytes of an element by part of a network [byte], and the share of each part that is multiplied in 16 bit since it is stored so [1]."""

    attention: Result
    ffn: Result
    experts: Result
    router: Result
    tables: Result  # never below 8 bit
    narrow: Result  # an element that was narrowed
    wide: Mapping[str, Result]  # part -> share


def checkpoint_of(checkpoints: Checkpoints, precision: str) -> Checkpoint:
    """Find the checkpoint of a network in a format; one that narrows all but the tables where none is known.

    Shapes: scalars. Units: none [1]. Reference: `FORMATS`. Raises KeyError for an unknown format.

    >>> checkpoint_of((("fp4", Checkpoint("mxfp4", attention=1.0)),), "fp4").kind, checkpoint_of((), "fp4").kind
    ('mxfp4', 'nvfp4')
    """
    found = dict(checkpoints).get(precision)
    return Checkpoint(OWN_KINDS.get(precision, (precision,))[0]) if found is None else found


def kind_of(checkpoints: Checkpoints, precision: str) -> str:
    """Return the format that a name means: the checkpoint's own kind of that number of bits, or of an unknown one the first in `OWN_KINDS`.

    Shapes: scalars. Units: none [1]. Reference: `OWN_KINDS`. Raises KeyError for an unknown format.

    >>> kind_of((("fp4", Checkpoint("mxfp4")),), "fp4"), kind_of((), "fp4"), kind_of((), "int8")
    ('mxfp4', 'nvfp4', 'int8')
    """
    return checkpoint_of(checkpoints, precision).kind


def kinds_meant(precision: str) -> tuple[str, ...]:
    """List the formats that a name may mean where the network is not known: a format means itself.

    Shapes: scalars. Units: none [1]. Reference: `OWN_KINDS`.

    >>> kinds_meant("fp4"), kinds_meant("fp8")
    (('nvfp4', 'mxfp4'), ('fp8',))
    """
    kinds = OWN_KINDS.get(precision, (precision,))
    return (precision,) if precision in kinds else kinds


def cache_format(checkpoints: Checkpoints, precision: str) -> str:
    """Return the format in which engines keep the KV cache unless they are told otherwise: 16 bit, or what the checkpoint asks for.

    Shapes: scalars. Units: none [1]. Reference: vLLM and SGLang, `--kv-cache-dtype auto` (the network's own format, or `kv_cache_scheme` and
    `kv_cache_quant_algo` of a checkpoint); NVIDIA Model Optimizer writes the latter as FP8 into checkpoints in NVFP4.

    >>> cache_format((), "fp8"), cache_format((), "int8"), cache_format((), "nvfp4"), cache_format((), "mxfp4")
    ('bf16', 'bf16', 'fp8', 'bf16')
    """
    found = checkpoint_of(checkpoints, precision)
    return found.cache or FORMATS[found.kind].cache


def stored(checkpoints: Checkpoints, precision: Precision) -> Stored:
    """Look up how the parts of a network are stored at a precision:  share x 2 byte + (1 - share) x narrow bytes.

    Shapes: a name, or an array of places in PRECISIONS. Units: [byte] and shares [1].
    Reference: `quantization_config.ignore` and `modules_to_not_convert` of published checkpoints.

    >>> mixed = (("int4", Checkpoint("int4", attention=1.0, tables=1.0, group=32)),)
    >>> found = stored(mixed, "int4")
    >>> found.attention, found.experts, found.tables
    (2.0, 0.5625, 2.0)
    """
    if isinstance(precision, str):
        return _stored(checkpoints, precision)
    rows = [_stored(checkpoints, name) for name in PRECISIONS]

    def column(values: list[Any]) -> Result:
        return as_result(np.array(values, float)[precision])

    return Stored(
        **{name: column([getattr(row, name) for row in rows]) for name in (*PARTS, "narrow")},
        wide={part: column([row.wide[part] for row in rows]) for part in PARTS},
    )


@lru_cache(maxsize=1024)
def _stored(checkpoints: Checkpoints, precision: str) -> Stored:
    found = checkpoint_of(checkpoints, precision)
    narrow = found.narrow_bytes
    least = dict.fromkeys(PARTS, narrow) | {"tables": max(narrow, 1.0)}
    shares = {part: float(getattr(found, part)) for part in PARTS}
    each = {part: share * max(WIDE_BYTES, narrow) + (1.0 - share) * least[part] for part, share in shares.items()}
    return Stored(**each, narrow=narrow, wide=shares)
