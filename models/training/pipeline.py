"""Pipeline parallelism: bubbles, micro-batches in flight and stage balance of each schedule. No times of layers, no links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result


@dataclass(frozen=True, slots=True)
class Schedule:
    """A pipeline schedule: how much of the weight gradients fills its bubble, and what a rank holds."""

    name: str
    filled: float  # weight gradients of a stage that run in the bubble, per rank before or after it [1]
    chunks: int  # parts of the model on a rank; the first and the last one of two share a rank [1]
    copies: int  # copies of the weights: two where micro-batches enter at both ends of the pipeline [1]
    reference: str


# By code. Weight gradients wait for no other rank, so they can run where a rank would stand idle. V-Half halves the bubble of 1F1B
# where forward and both halves of backward take the same time: 3/2 of a weight gradient.
SCHEDULES = (
    Schedule("1f1b", 0.0, 1, 1, "Narayanan et al., arXiv:2104.04473, section 2.2"),
    Schedule("zero-bubble", 2.0, 1, 1, "Qi et al., arXiv:2401.10241, table 1 (ZB-H1)"),
    Schedule("v-half", 1.5, 2, 1, "Qi et al., arXiv:2405.15362, table 1 (V-Half)"),
    Schedule("dualpipe", 3.0, 1, 2, "DeepSeek-V3, arXiv:2412.19437, table 2"),
)
ONE_F_ONE_B, ZERO_BUBBLE, V_HALF, DUALPIPE = range(len(SCHEDULES))
_FILLED, _CHUNKS, _COPIES = (
    np.array([getattr(schedule, name) for schedule in SCHEDULES]) for name in ("filled", "chunks", "copies")
)


def schedule_code(name: str) -> int:
    """Return the code of a schedule, its place in SCHEDULES. Raises ValueError naming the known ones.

    Shapes: a scalar. Units: [1]. Reference: each schedule names its own.

    >>> schedule_code("dualpipe"), SCHEDULES[3].copies
    (3, 2)
    """
    names = [schedule.name for schedule in SCHEDULES]
    if name not in names:
        raise ValueError(f"unknown pipeline schedule {name!r}; known: {', '.join(names)}")
    return names.index(name)


def rank_chunks(schedule: ArrayLike) -> Result:
    """Count the chunks into which a schedule itself divides the layers of a rank, beside interleaving.

    Shapes: as schedule. Units: codes and counts [1]. Reference: each schedule names its own.

    >>> rank_chunks([0, 1, 2, 3]).tolist()
    [1.0, 1.0, 2.0, 1.0]
    """
    return as_result(_CHUNKS[np.asarray(schedule, int)].astype(float))


def weight_copies(schedule: ArrayLike) -> Result:
    """Count the copies of the weights that a schedule keeps, each with gradients of its own.

    Shapes: as schedule. Units: codes and counts [1]. Reference: DeepSeek-V3, arXiv:2412.19437, section 3.2.1.

    >>> weight_copies([0, 3]).tolist()
    [1.0, 2.0]
    """
    return as_result(_COPIES[np.asarray(schedule, int)].astype(float))


def bubble_s(
    stages: ArrayLike,
    interleave: ArrayLike,
    forward_s: ArrayLike,
    backward_s: ArrayLike,
    weights_s: ArrayLike,
    schedule: ArrayLike = ONE_F_ONE_B,
) -> Result:
    """Compute the pipeline bubble per flush:  (p - 1)/v (F + B - w W), for DualPipe  (p/2 - 1) (F + 2 B - 3 W).

    F and B are forward and backward of a stage, W the part of B that computes gradients of weights; w is 0 for 1F1B, 2 for the
    zero-bubble schedule ZB-H1, 1.5 for V-Half.
    Shapes: broadcast. Units: stages p, model chunks per stage v [1], times of one micro-batch [s], result [s]. Valid for W <= B.
    Reference: Narayanan et al., arXiv:2104.04473, sections 2.2.1 and 2.2.2; Qi et al., arXiv:2401.10241, table 1;
    DeepSeek-V3, arXiv:2412.19437, table 2, with F&B = F + B.

    >>> float(bubble_s(8, 1, 1.0, 2.0, 1.0)), float(bubble_s(8, 2, 1.0, 2.0, 1.0)), float(bubble_s(8, 1, 1.0, 2.0, 1.0, 1))
    (21.0, 10.5, 7.0)
    """
    p, f, b, w = (np.asarray(a, float) for a in (stages, forward_s, backward_s, weights_s))
    code = np.asarray(schedule, int)
    each = (p - 1.0) / np.asarray(interleave, float) * np.maximum(f + b - _FILLED[code] * w, 0.0)
    dual = np.maximum(p / 2.0 - 1.0, 0.0) * np.maximum(f + 2.0 * b - 3.0 * w, 0.0)
    return as_result(np.where(code == DUALPIPE, dual, each))


def in_flight_stages(
    stages: ArrayLike,
    micro_batches: ArrayLike,
    interleave: ArrayLike = 1,
    schedule: ArrayLike = ONE_F_ONE_B,
    rank: ArrayLike = 0.0,
) -> Result:
    """Count the micro-batches whose activations a rank holds at the peak, each for the layers of one stage.

    p - i on rank i for 1F1B and ZB-H1, p + (p - 1 - 2 i)/v interleaved (2 (p - 1 - i) + (v - 1) p + 1 chunks before its first backward), on all ranks
    floor(p/2) + 1 for V-Half and p + 1 for DualPipe; never more than there are micro-batches m, never fewer than one.
    Shapes: broadcast. Units: [1] throughout.
    Reference: Narayanan et al., arXiv:2104.04473, section 2.2.1; Korthikanti et al., arXiv:2205.05198, section 4.2.3 (1 + (p - 1)/(p v));
    Qi et al., arXiv:2405.15362, table 1; DeepSeek-V3, arXiv:2412.19437, table 2.

    >>> float(in_flight_stages(4, 100)), float(in_flight_stages(4, 100, 3)), float(in_flight_stages(4, 2))
    (4.0, 5.0, 2.0)
    """
    p, v, i = np.asarray(stages, float), np.asarray(interleave, float), np.asarray(rank, float)
    plain = p + np.where(v > 1.0, (p - 1.0 - 2.0 * i) / v, -i)
    held = np.choose(np.asarray(schedule, int), [plain, p - i, np.floor(p / 2.0) + 1.0, p + 1.0])
    return as_result(np.maximum(1.0, np.minimum(held, micro_batches)))


def slowest_stage(layers: ArrayLike, stages: ArrayLike, layer_s: ArrayLike, head_s: ArrayLike) -> tuple[Result, Result]:
    """Compute (layers, vocabulary heads) of the slowest stage.

    Where the layers divide, every stage has its full share and the last one the head besides. Where they do not, c = ceil(L/p)
    layers go to all stages but the last, which has the n that are left and the head of h layer times. With r more layers on each of the others
    the stages take c + r and max(n - (p - 1) r, 0) + h; r is the whole number, at or beside (n + h - c)/p, with the smaller maximum.
    Shapes: broadcast. Units: layers L, stages p [1], time of a layer and of the head [s], result [1]. Valid for p <= L.
    Reference: Llama 3, arXiv:2407.21783, section 3.3.2 (one layer removed from the first and last stage).

    >>> [[float(part) for part in slowest_stage(layers, stages, 1.0, head)] for layers, stages, head in ((32, 4, 1.2), (126, 16, 1.2), (101, 2, 5.0))]
    [[8.0, 1.0], [8.0, 0.0], [53.0, 0.0]]
    """
    total, p = np.asarray(layers, float), np.asarray(stages, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        head = np.where(np.asarray(head_s, float) > 0, np.asarray(head_s, float) / np.asarray(layer_s, float), 0.0)
        most = np.ceil(total / p)
        left = np.maximum(total - (p - 1.0) * most, 0.0)
        useful = np.where(left > 0, np.ceil(left / (p - 1.0)), 0.0)
        balance = np.clip((left + head - most) / p, 0.0, useful)
    balance = np.where(most * p == total, 0.0, balance)

    def split(more: Floats) -> tuple[Floats, Floats]:
        return most + more, np.maximum(left - (p - 1.0) * more, 0.0)

    less, more = split(np.floor(balance)), split(np.ceil(balance))
    gains = np.maximum(more[0], more[1] + head) < np.maximum(less[0], less[1] + head)
    others, last = (np.where(gains, one, other) for one, other in zip(more, less, strict=True))
    ends = (last + head > others) | (most * p == total)
    return as_result(np.where(ends, last, others)), as_result(ends.astype(float))


def stage_layers(layers: ArrayLike, stages: ArrayLike) -> Floats:
    """Count the layers of the fullest stage:  ceil(L / p).

    Shapes: broadcast. Units: [1]. Reference: Narayanan et al., arXiv:2104.04473, section 2.2.

    >>> stage_layers(126, [4, 16]).tolist()
    [32.0, 8.0]
    """
    fullest: Floats = np.ceil(np.asarray(layers, float) / np.asarray(stages, float))
    return fullest
