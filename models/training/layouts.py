"""Parallel layouts of a training run: a struct of arrays, and the enumeration of the legal ones. No times, no memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Bools, Floats, Ints
from models.training.pipeline import DUALPIPE, ONE_F_ONE_B, SCHEDULES, rank_chunks
from models.transformer.architecture import Architecture

RECOMPUTE = ("none", "selective", "full")  # by code 0, 1, 2
ZERO = ("none", "zero1", "zero2", "zero3")  # optimizer, + gradients, + weights sharded over data-parallel ranks
OFFLOAD = ("none", "optimizer", "activations", "optimizer and activations")  # kept in the memory of the host
OFFLOADS_OPTIMIZER, OFFLOADS_ACTIVATIONS = 1, 2  # bits of the code
# Fields that may be 0, with the largest code.
CODES = {"zero": 3, "recompute": 2, "sequence_parallel": 1, "schedule": len(SCHEDULES) - 1, "offload": 3}


@dataclass(frozen=True, slots=True)
class Layouts:
    """Training layouts, one per entry; all arrays of one length [1].

    tp tensor, pp pipeline, dp data, cp context, ep expert parallel ranks (ep lies within tp x cp x dp; with ep > 1 an expert
    is not split by tp); vpp model chunks per stage; micro_batch sequences [1]; zero 0..3; recompute 0 none, 1 selective,
    2 full; sequence_parallel 0 or 1; schedule by its place in `pipeline.SCHEDULES`; offload 1 optimizer state, 2 activations, 3 both.
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
    schedule: Ints
    offload: Ints

    def __post_init__(self) -> None:
        arrays = np.broadcast_arrays(*(np.atleast_1d(np.asarray(getattr(self, f.name))) for f in fields(self)))
        for field, array in zip(fields(self), arrays, strict=True):
            if array.ndim != 1:
                raise ValueError(f"layouts: {field.name} must be a number or a list of numbers")
            if np.any(array < (0 if field.name in CODES else 1)):
                raise ValueError(f"layouts: {field.name} is too small")
            if field.name in CODES and np.any(array > CODES[field.name]):
                raise ValueError(f"layouts: {field.name} is at most {CODES[field.name]}")
            # The frozen dataclass is bent once here, so that every reader can count on integer arrays of one length.
            object.__setattr__(self, field.name, array.astype(np.int64, copy=False))

    @classmethod
    def of(cls, **sizes: ArrayLike) -> Layouts:
        """Build layouts from numbers or lists of some fields; degrees default to 1, ZeRO to 1, sequence parallelism to on where tp > 1, the
        schedule to 1F1B. Raises ValueError for an unknown field.

        Shapes: broadcast to one axis. Units: [1]. Reference: as `Layouts`.

        >>> layouts = Layouts.of(tp=[1, 8], dp=[8, 1])
        >>> len(layouts), layouts.chips.tolist(), layouts.sequence_parallel.tolist()
        (2, [8, 8], [0, 1])
        """
        names = [field.name for field in fields(cls)]
        if unknown := sorted(set(sizes) - set(names)):
            raise ValueError(f"layouts: unknown {', '.join(unknown)}; known: {', '.join(names)}")
        defaults: dict[str, ArrayLike] = {"zero": 1, "sequence_parallel": np.asarray(sizes.get("tp", 1)) > 1}
        return cls(*(np.asarray(sizes.get(name, defaults.get(name, int(name not in CODES)))) for name in names))

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
        picked = object.__new__(Layouts)  # what was checked once is not checked again
        for field in fields(self):
            object.__setattr__(picked, field.name, np.atleast_1d(getattr(self, field.name)[index]))
        return picked

    def row(self, index: int) -> dict[str, int]:
        """Give one layout as plain numbers."""
        return {f.name: int(getattr(self, f.name)[index]) for f in fields(self)}


def joined(parts: Sequence[Layouts]) -> Layouts:
    """Put layouts one after another.

    Shapes: one axis each in, one axis out. Units: [1]. Reference: as `Layouts`.

    >>> joined([Layouts.of(tp=[1, 2]), Layouts.of(tp=4)]).tp.tolist()
    [1, 2, 4]
    """
    return Layouts(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Layouts)))


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


class Rule(NamedTuple):
    """A rule of frameworks on layouts: its name, and the figures that it holds a layout to."""

    name: str
    figures: Mapping[str, int] = MappingProxyType({})


def legal_rules(
    arch: Architecture, layouts: Layouts, *, global_batch_sequences: int, sequence_tokens: int, scaleup_chips: int
) -> list[tuple[Rule, Bools]]:
    """List the rules of frameworks, each with the layouts that keep it.

    Shapes: one axis. Units: batch [1], sequence [token], domain [1], result boolean.
    Reference: Narayanan et al., arXiv:2104.04473, section 2; Rajbhandari et al., arXiv:1910.02054; Llama 3,
    arXiv:2407.21783, section 3.3.2 (2 cp chunks; a first and a last chunk without layers); Qi et al., arXiv:2401.10241, section 2;
    DeepSeek-V3, arXiv:2412.19437, section 3.2.1 (both ends of the pipeline are fed).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> layouts = Layouts.of(tp=3, dp=8)
    >>> rules = legal_rules(arch, layouts, global_batch_sequences=64, sequence_tokens=4096, scaleup_chips=8)
    >>> [rule for rule, kept in rules if not kept[0]]
    [Rule(name='tp_divides_heads', figures={'heads': 32})]
    """
    tp, pp, cp, ep, vpp = layouts.tp, layouts.pp, layouts.cp, layouts.ep, layouts.vpp
    replicas = layouts.dp * layouts.micro_batch
    micro_batches = global_batch_sequences // replicas
    one = layouts.schedule == ONE_F_ONE_B
    chunks = pp * vpp * rank_chunks(layouts.schedule)
    experts = np.ones(len(layouts), bool)
    if arch.experts:
        experts = (arch.experts % ep == 0) & ((tp * cp * layouts.dp) % ep == 0)
    return [
        (Rule("tp_divides_heads", {"heads": arch.heads}), arch.heads % tp == 0),
        (Rule("tp_in_domain", {"chips": scaleup_chips}), tp <= scaleup_chips),
        (Rule("pp_in_layers", {"layers": arch.layers}), pp <= arch.layers),
        (Rule("cp_divides_sequence", {"tokens": sequence_tokens}), (cp == 1) | (sequence_tokens % (2 * cp) == 0)),
        (Rule("batch_divides", {"sequences": global_batch_sequences}), (global_batch_sequences % replicas == 0) & (micro_batches >= 1)),
        (Rule("chunks_in_layers", {"layers": arch.layers}), (chunks <= pp) | (chunks <= arch.layers + 2)),
        (Rule("vpp_needs_micro_batches"), (vpp == 1) | ((pp > 1) & (micro_batches % pp == 0))),
        (Rule("vpp_of_1f1b"), (vpp == 1) | one),
        (Rule("schedule_needs_micro_batches"), one | ((pp > 1) & (micro_batches >= pp))),
        (Rule("dualpipe_needs_micro_batches"), (layouts.schedule != DUALPIPE) | ((pp % 2 == 0) & (micro_batches % 2 == 0) & (micro_batches >= 2 * pp))),
        (Rule("ep_divides_experts", {"experts": arch.experts}) if arch.experts else Rule("ep_without_experts"), experts if arch.experts else ep == 1),
        (Rule("zero_without_pipeline"), (layouts.zero <= 1) | (pp == 1)),
        (Rule("sequence_parallel_needs_tp"), (layouts.sequence_parallel == 0) | (tp > 1)),
    ]  # fmt: skip


def is_legal(
    arch: Architecture, layouts: Layouts, *, global_batch_sequences: int, sequence_tokens: int, scaleup_chips: int
) -> Bools:
    """Tell which layouts a framework would accept: those that keep every one of `legal_rules`.

    Shapes: one axis. Units: batch [1], sequence [token], domain [1], result boolean.
    Reference: as `legal_rules`.

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> is_legal(arch, Layouts.of(tp=[8, 3], dp=8), global_batch_sequences=64, sequence_tokens=4096, scaleup_chips=8).tolist()
    [True, False]
    """
    rules = legal_rules(
        arch,
        layouts,
        global_batch_sequences=global_batch_sequences,
        sequence_tokens=sequence_tokens,
        scaleup_chips=scaleup_chips,
    )
    accepted: Bools = np.logical_and.reduce([kept for _, kept in rules])
    return accepted


@dataclass(frozen=True, slots=True)
class LayoutSpace:
    """The choices that an enumeration of layouts crosses."""

    micro_batches: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16)  # sizes of a micro-batch [sequence]
    interleaves: Sequence[int] = (
        1,
        2,
        3,
        4,
        5,
        6,
        8,
        10,
        12,
        16,
        20,
        24,
        32,
    )  # chunks of layers per pipeline stage [1]
    deepest: bool = True  # also as many chunks as a stage has layers, with and without the chunks of embedding and head
    schedules: Sequence[int] = tuple(range(len(SCHEDULES)))
    zeros: Sequence[int] = (1, 2, 3)  # ZeRO levels
    recomputes: Sequence[int] = (0, 1, 2)  # recompute levels
    offloads: Sequence[int] = (0,)  # what may be kept in the memory of the host
    largest_cp: int = 128
    least_cp_tokens: int = (
        512  # tokens of a sequence on one context-parallel rank, so that its kernels stay busy [token]
    )
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

    Products tp pp cp dp = chips with the choices of `space`, kept where `is_legal`. Context parallelism in powers of two; sequence
    parallelism wherever tp > 1.
    Shapes: scalars in, `Layouts` out. Units: chips, batch [1], sequence [token].
    Reference: Narayanan et al., arXiv:2104.04473, section 3 (the space of layouts).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> layouts = enumerate_layouts(arch, 64, 512, sequence_tokens=8192, scaleup_chips=8)
    >>> len(layouts) > 1000, bool((layouts.chips == 64).all())
    (True, True)
    """
    plain = parallel_layouts(
        arch,
        chips,
        global_batch_sequences,
        sequence_tokens=sequence_tokens,
        scaleup_chips=scaleup_chips,
        space=space,
    )
    return with_levels(plain, space)


def parallel_layouts(
    arch: Architecture,
    chips: int,
    global_batch_sequences: int,
    *,
    sequence_tokens: int,
    scaleup_chips: int,
    space: LayoutSpace = DEFAULT_SPACE,
) -> Layouts:
    """Enumerate the parallel sizes and schedules of `enumerate_layouts`, without ZeRO (level 0), recompute and offload.

    None of these can make a layout illegal, but ZeRO-2 and -3 beside a pipeline: `with_levels` crosses them in.
    Shapes: scalars in, `Layouts` out. Units: chips, batch [1], sequence [token].
    Reference: Narayanan et al., arXiv:2104.04473, section 3 (the space of layouts).

    >>> arch = Architecture(32, 4096, 32, 8, 128, 14336, 128256)
    >>> layouts = parallel_layouts(arch, 64, 512, sequence_tokens=8192, scaleup_chips=8)
    >>> sorted(set(layouts.cp.tolist())), sorted(set(layouts.schedule.tolist()))
    ([1, 2, 4, 8, 16], [0, 1, 2, 3])
    """
    ways = divisors(chips)
    tp = ways[(ways <= scaleup_chips) & (arch.heads % ways == 0)]
    pp = ways[(ways <= arch.layers) & (ways <= space.largest_pp)]
    cp = 2 ** np.arange(int(np.log2(space.largest_cp)) + 1)
    cp = cp[(cp == 1) | ((sequence_tokens % (2 * cp) == 0) & (sequence_tokens >= space.least_cp_tokens * cp))]
    tp, pp, cp = _crossed(tp, pp, cp)
    dp, rest = np.divmod(chips, tp * pp * cp)
    tp, pp, cp, dp = _kept((rest == 0) & (global_batch_sequences % np.maximum(dp, 1) == 0), tp, pp, cp, dp)
    # Each choice is crossed in where it can be legal, the most selective first: a whole grid would be a hundred times as large.
    place, micro_batch = _crossed(np.arange(len(tp)), _sizes(space.micro_batches))
    place, micro_batch = _kept(global_batch_sequences % (dp[place] * micro_batch) == 0, place, micro_batch)
    at, vpp = _crossed(np.arange(len(place)), _sizes(space.interleaves))
    if space.deepest:
        for chunks in (arch.layers, arch.layers + 2):
            deepest = chunks // pp[place]
            new = np.flatnonzero(
                ~np.isin(deepest, space.interleaves) & ((chunks == arch.layers) | (deepest != arch.layers // pp[place]))
            )
            at, vpp = np.concatenate([at, new]), np.concatenate([vpp, deepest[new]])
    m = global_batch_sequences // (dp[place] * micro_batch)
    deep = pp[place[at]]
    at, vpp = _kept((vpp == 1) | ((deep > 1) & (deep * vpp <= arch.layers + 2) & (m[at] % deep == 0)), at, vpp)
    at, schedule, vpp = _with_schedules(at, vpp, pp[place], m, space.schedules)
    place, micro_batch = place[at], micro_batch[at]
    ep = divisors(arch.experts) if arch.experts else np.array([1])
    ep = ep[ep <= chips]
    at, ep = _crossed(np.arange(len(place)), ep)
    at, ep = _kept((tp * cp * dp)[place[at]] % ep == 0, at, ep)
    place = place[at]
    plain = Layouts.of(
        tp=tp[place], pp=pp[place], dp=dp[place], cp=cp[place], ep=ep, vpp=vpp[at], micro_batch=micro_batch[at], zero=0,
        schedule=schedule[at],
    )  # fmt: skip
    legal = is_legal(
        arch,
        plain,
        global_batch_sequences=global_batch_sequences,
        sequence_tokens=sequence_tokens,
        scaleup_chips=scaleup_chips,
    )
    return plain.take(legal)


def with_levels(plain: Layouts, space: LayoutSpace = DEFAULT_SPACE) -> Layouts:
    """Cross layouts with the ZeRO levels, recompute levels and offloads of a space, ZeRO-2 and -3 without pipeline only.

    Shapes: one axis in, one axis out. Units: [1]. Reference: Rajbhandari et al., arXiv:1910.02054; Korthikanti et al., arXiv:2205.05198;
    Ren et al., ZeRO-Offload, arXiv:2101.06840.

    >>> with_levels(Layouts.of(pp=[1, 2], dp=[2, 1])).zero.tolist()
    [1, 1, 1, 2, 2, 2, 3, 3, 3, 1, 1, 1]
    """
    choices = product(*(sorted(set(c)) for c in (space.zeros, space.recomputes, space.offloads)))
    levels = np.array(list(choices), dtype=np.int64).reshape(-1, 3)
    which, level = _crossed(np.arange(len(plain)), np.arange(len(levels)))
    which, level = _kept((levels[level, 0] <= 1) | (plain.pp[which] == 1), which, level)
    zero, recompute, offload = levels[level].T
    sizes = {f.name: getattr(plain, f.name)[which] for f in fields(Layouts)}
    return Layouts(**sizes | {"zero": zero, "recompute": recompute, "offload": offload})


def _with_schedules(at: Ints, vpp: Ints, pp: Ints, m: Ints, schedules: Sequence[int]) -> tuple[Ints, Ints, Ints]:
    """Cross in the schedules; those other than 1F1B without interleaving and with a pipeline only."""
    which, schedule = _crossed(np.arange(len(at)), np.array(sorted(set(schedules)), dtype=np.int64))
    deep, count = pp[at[which]], m[at[which]]
    legal = (schedule == ONE_F_ONE_B) | ((vpp[which] == 1) & (deep > 1) & (count >= deep))
    which, schedule = _kept(legal, which, schedule)
    return at[which], schedule, vpp[which]


def _sizes(choices: Sequence[int]) -> Ints:
    return np.array(sorted(set(choices)), dtype=np.int64)


def _crossed(*axes: Ints) -> list[Ints]:
    """Cross axes, the last one fastest."""
    return [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]


def _kept(mask: Bools, *columns: Ints) -> list[Ints]:
    return [column[mask] for column in columns]
