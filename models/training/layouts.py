"""Parallel layouts of a training run: a struct of arrays, and the enumeration of the legal ones. No times, no memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Ints
from models.transformer.architecture import Architecture

RECOMPUTE = ("none", "selective", "full")  # by code 0, 1, 2
ZERO = ("none", "zero1", "zero2", "zero3")  # optimizer, + gradients, + weights sharded over data-parallel ranks


@dataclass(frozen=True, slots=True)
class Layouts:
    """Training layouts, one per entry; all arrays of one length [1].

    tp tensor, pp pipeline, dp data, cp context, ep expert parallel ranks (ep lies within tp x cp x dp; with ep > 1 an expert
    is not split by tp); vpp model chunks per stage; micro_batch sequences [1]; zero 0..3; recompute 0 none, 1 selective,
    2 full; sequence_parallel 0 or 1.
    """

    tp: Ints
    pp: Ints
    dp: Ints
    cp: Ints
    ep: Ints
    vpp: Ints
    micro_batch: Ints
    zero: Ints
    recompute: Ints
    sequence_parallel: Ints

    def __post_init__(self) -> None:
        arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(getattr(self, f.name))) for f in fields(self)))
        for field, array in zip(fields(self), arrays, strict=True):
            if array.ndim != 1:
                raise ValueError(f"layouts: {field.name} must be a number or a list of numbers")
            if np.any(array < (0 if field.name in ("zero", "recompute", "sequence_parallel") else 1)):
                raise ValueError(f"layouts: {field.name} is too small")
            # The frozen dataclass is bent once here, so that every reader can count on integer arrays of one length.
            object.__setattr__(self, field.name, array.astype(np.int64, copy=False))

    @classmethod
    def of(
        cls, *, tp: ArrayLike = 1, pp: ArrayLike = 1, dp: ArrayLike = 1, cp: ArrayLike = 1, ep: ArrayLike = 1, vpp: ArrayLike = 1,
        micro_batch: ArrayLike = 1, zero: ArrayLike = 1, recompute: ArrayLike = 0, sequence_parallel: ArrayLike | None = None,
    ) -> Layouts:  # fmt: skip
        """Build layouts from numbers or lists; parallel degrees default to 1, ZeRO to 1, sequence parallelism to on where tp > 1.

        Shapes: broadcast to one axis. Units: [1]. Reference: as `Layouts`.

        >>> layouts = Layouts.of(tp=[1, 8], dp=[8, 1])
        >>> len(layouts), layouts.chips.tolist(), layouts.sequence_parallel.tolist()
        (2, [8, 8], [0, 1])
        """
        if sequence_parallel is None:
            sequence_parallel = np.asarray(tp) > 1
        return cls(*(np.asarray(a) for a in (tp, pp, dp, cp, ep, vpp, micro_batch, zero, recompute, sequence_parallel)))

    @property
    def chips(self) -> Ints:
        """Chips of a run [1]."""
        return self.tp * self.pp * self.dp * self.cp

    def micro_batches(self, global_batch_sequences: float) -> Floats:
        """Count the micro-batches of a pipeline per step [1]; a fraction where the batch does not divide."""
        return global_batch_sequences / (self.dp * self.micro_batch)

    def __len__(self) -> int:
        return len(self.tp)

    def take(self, index: ArrayLike | slice) -> Layouts:
        """Pick the layouts at an index, mask or slice."""
        return Layouts(*(np.atleast_1d(getattr(self, f.name)[index]) for f in fields(self)))

    def row(self, index: int) -> dict[str, int]:
        """Give one layout as plain numbers."""
        return {f.name: int(getattr(self, f.name)[index]) for f in fields(self)}


def divisors(number: int) -> Ints:
    """List all divisors, ascending.

    Shapes: a scalar in, one axis out. Units: [1]. Valid for number >= 1.
    Reference: Hardy and Wright, An Introduction to the Theory of Numbers, section 16.7.

    >>> divisors(12).tolist()
    [1, 2, 3, 4, 6, 12]
    """
    small = np.arange(1, int(number**0.5) + 1)
    small = small[number % small == 0]
    return np.unique(np.concatenate([small, number // small]))


def is_legal(
    arch: Architecture, layouts: Layouts, *, global_batch_sequences: int, sequence_tokens: int, scaleup_chips: int
) -> Bools:
    """Tell which layouts a framework would accept.

    tp divides the heads and stays inside a scale-up domain; no pipeline stage is empty; chunks divide the layers evenly and,
    interleaved, p divides m; cp cuts the sequence in 2 cp equal parts; ep divides the experts and the ranks tp cp dp; the
    batch divides; ZeRO-2 and -3 come without pipeline.
    Shapes: one axis. Units: batch [1], sequence [token], domain [1], result boolean.
    Reference: Narayanan et al., arXiv:2104.04473, section 2; Rajbhandari et al., arXiv:1910.02054; Llama 3,
    arXiv:2407.21783, section 3.3.2 (2 cp chunks).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> is_legal(arch, Layouts.of(tp=[8, 3], dp=8), global_batch_sequences=64, sequence_tokens=4096, scaleup_chips=8).tolist()
    [True, False]
    """
    tp, pp, cp, ep, vpp = layouts.tp, layouts.pp, layouts.cp, layouts.ep, layouts.vpp
    replicas = layouts.dp * layouts.micro_batch
    micro_batches = global_batch_sequences // replicas
    stage = -(-arch.layers // pp)
    legal = (arch.heads % tp == 0) & (tp <= scaleup_chips) & (stage * (pp - 1) < arch.layers)
    legal &= (cp == 1) | (sequence_tokens % (2 * cp) == 0)
    legal &= (global_batch_sequences % replicas == 0) & (micro_batches >= 1)
    legal &= (vpp == 1) | ((pp > 1) & (arch.layers % (pp * vpp) == 0) & (micro_batches % pp == 0))
    legal &= (ep == 1) if not arch.experts else (arch.experts % ep == 0) & ((tp * cp * layouts.dp) % ep == 0)
    legal &= (layouts.zero <= 3) & (layouts.recompute <= 2) & ((layouts.zero <= 1) | (pp == 1))
    accepted: Bools = legal & ((layouts.sequence_parallel == 0) | (tp > 1))
    return accepted


@dataclass(frozen=True, slots=True)
class LayoutSpace:
    """The choices that an enumeration of layouts crosses."""

    micro_batches: Sequence[int] = (1, 2, 4, 8, 16)  # sizes of a micro-batch [sequence]
    interleaves: Sequence[int] = (1, 2, 3, 4, 6, 8)  # chunks of layers per pipeline stage [1]
    zeros: Sequence[int] = (1, 3)  # ZeRO levels
    recomputes: Sequence[int] = (0, 1, 2)  # recompute levels
    largest_cp: int = 16
    largest_pp: int = 128


DEFAULT_SPACE = LayoutSpace()


def enumerate_layouts(
    arch: Architecture,
    chips: int,
    global_batch_sequences: int,
    *,
    sequence_tokens: int,
    scaleup_chips: int,
    space: LayoutSpace = DEFAULT_SPACE,
) -> Layouts:
    """Enumerate all legal layouts of a run over exactly `chips`, possibly none.

    Products tp pp cp dp = chips with the micro-batch sizes [sequences], chunks, ZeRO and recompute levels of `space`, kept where
    `is_legal`. Context parallelism in powers of two; sequence parallelism wherever tp > 1.
    Shapes: scalars in, `Layouts` out. Units: chips, batch [1], sequence [token].
    Reference: Narayanan et al., arXiv:2104.04473, section 3 (the space of layouts).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> layouts = enumerate_layouts(arch, 64, 512, sequence_tokens=8192, scaleup_chips=8)
    >>> len(layouts) > 1000, bool((layouts.chips == 64).all())
    (True, True)
    """
    ways = divisors(chips)
    tp = ways[(ways <= scaleup_chips) & (arch.heads % ways == 0)]
    pp = ways[(ways <= arch.layers) & (ways <= space.largest_pp)]
    cp = 2 ** np.arange(int(np.log2(space.largest_cp)) + 1)
    tp, pp, cp = (grid.ravel() for grid in np.meshgrid(tp, pp, cp, indexing="ij"))
    whole = chips % (tp * pp * cp) == 0
    tp, pp, cp = tp[whole], pp[whole], cp[whole]
    ep = divisors(arch.experts) if arch.experts else np.array([1])
    limits = {
        "global_batch_sequences": global_batch_sequences,
        "sequence_tokens": sequence_tokens,
        "scaleup_chips": scaleup_chips,
    }
    axes = (
        np.arange(len(tp)),
        ep,
        *(np.array(sorted(set(a)), dtype=np.int64) for a in (space.interleaves, space.micro_batches)),
    )
    place, ep, vpp, micro_batch = (grid.ravel() for grid in np.meshgrid(*axes, indexing="ij"))
    tp, pp, cp = tp[place], pp[place], cp[place]
    # Neither ZeRO without pipeline nor recompute can make a layout illegal, so they are crossed in last.
    plain = Layouts.of(tp=tp, pp=pp, dp=chips // (tp * pp * cp), cp=cp, ep=ep, vpp=vpp, micro_batch=micro_batch, zero=0)
    plain = plain.take(is_legal(arch, plain, **limits))
    levels = np.array(
        [(z, r) for z in sorted(set(space.zeros)) for r in sorted(set(space.recomputes))], dtype=np.int64
    ).reshape(-1, 2)
    which, level = (grid.ravel() for grid in np.meshgrid(np.arange(len(plain)), np.arange(len(levels)), indexing="ij"))
    zero, recompute = levels[level].T
    kept = (zero <= 1) | (plain.pp[which] == 1)
    which, zero, recompute = which[kept], zero[kept], recompute[kept]
    sizes = {
        name: getattr(plain, name)[which]
        for name in ("tp", "pp", "dp", "cp", "ep", "vpp", "micro_batch", "sequence_parallel")
    }
    return Layouts(**sizes, zero=zero, recompute=recompute)
