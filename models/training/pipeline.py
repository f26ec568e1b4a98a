"""Pipeline parallelism: bubbles, micro-batches in flight and stage balance of each schedule. No times of layers, no links."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


@dataclass(frozen=True, slots=True)
class Schedule:
    """A pipeline schedule relative to 1F1B [1]: its bubble, its activations in flight, its copies of the weights."""

    bubble: float
    in_flight: float
    weight_copies: float
    reference: str


# The bubble ratios are of forward : backward-input : backward-weight = 1 : 1 : 1, as the papers assume.
SCHEDULES = {
    "1f1b": Schedule(1.0, 1.0, 1.0, "Narayanan et al., arXiv:2104.04473, section 2.2"),
    "zero-bubble": Schedule(1.0 / 3.0, 1.0, 1.0, "Qi et al., arXiv:2401.10241, table 1 (ZB-H1)"),
    "v-half": Schedule(0.6, 0.5, 1.0, "Qi et al., arXiv:2405.15362, table 1 (V-Half); bubble assumed"),
    "dualpipe": Schedule(0.25, 1.0, 2.0, "DeepSeek-V3, arXiv:2412.19437, table 2; bubble assumed"),
}


def schedule(name: str) -> Schedule:
    """Look up a schedule by name. Raises ValueError naming the known ones.

    Shapes: a scalar. Units: ratios to 1F1B [1].
    Reference: each schedule names its own.

    >>> schedule("1f1b").bubble
    1.0
    """
    if name not in SCHEDULES:
        raise ValueError(f"unknown pipeline schedule {name!r}; known: {', '.join(SCHEDULES)}")
    return SCHEDULES[name]


def bubble_micro_batches(stages: ArrayLike, interleave: ArrayLike = 1, schedule_name: str = "1f1b") -> Result:
    """Compute the pipeline bubble per flush in micro-batches (forward and backward):  (p - 1)/v times the schedule's ratio.

    Shapes: broadcast. Units: stages p, model chunks per stage v [1], result [1].
    Reference: Narayanan et al., arXiv:2104.04473, sections 2.2.1 and 2.2.2.

    >>> float(bubble_micro_batches(8)), float(bubble_micro_batches(8, 2)), float(bubble_micro_batches(1))
    (7.0, 3.5, 0.0)
    """
    return as_result((np.asarray(stages, float) - 1.0) / np.asarray(interleave, float) * schedule(schedule_name).bubble)


def bubble_fraction(
    stages: ArrayLike, micro_batches: ArrayLike, interleave: ArrayLike = 1, schedule_name: str = "1f1b"
) -> Result:
    """Compute the bubble over the ideal time:  bubble / m.

    Shapes: broadcast. Units: stages, micro-batches m, chunks [1], result [1].
    Reference: Narayanan et al., arXiv:2104.04473, sections 2.2.1 and 2.2.2.

    >>> float(bubble_fraction(8, 28))
    0.25
    """
    return as_result(bubble_micro_batches(stages, interleave, schedule_name) / np.asarray(micro_batches, float))


def in_flight_stages(
    stages: ArrayLike, micro_batches: ArrayLike, interleave: ArrayLike = 1, schedule_name: str = "1f1b"
) -> Result:
    """Count the micro-batches whose activations the first stage holds at the peak, each for the layers of one stage.

    p for 1F1B and p + (p - 1)/v interleaved, times the schedule's ratio; never more than there are micro-batches m,
    never fewer than one.
    Shapes: broadcast. Units: [1] throughout.
    Reference: Narayanan et al., arXiv:2104.04473, section 2.2.1; Korthikanti et al., arXiv:2205.05198, section 4.2.3 (1 + (p - 1)/(p v)).

    >>> float(in_flight_stages(4, 100)), float(in_flight_stages(4, 100, 3)), float(in_flight_stages(4, 2))
    (4.0, 5.0, 2.0)
    """
    p, v = np.asarray(stages, float), np.asarray(interleave, float)
    held = (p + np.where(v > 1.0, (p - 1.0) / v, 0.0)) * schedule(schedule_name).in_flight
    return as_result(np.maximum(1.0, np.minimum(held, micro_batches)))


def head_layers_on_slowest_stage(layers: ArrayLike, stages: ArrayLike) -> Result:
    """Compute the share of the vocabulary head that lengthens the slowest stage.

    1 where layers divide evenly: the last stage has its full share of layers and the head; 1/p where they do not: such
    layouts leave layers out of the last stage on purpose.
    Shapes: broadcast. Units: [1] throughout.
    Reference: Llama 3, arXiv:2407.21783, section 3.3.2 (one layer removed from the first and last stage).

    >>> float(head_layers_on_slowest_stage(32, 4)), float(head_layers_on_slowest_stage(61, 4))
    (1.0, 0.25)
    """
    stages = np.asarray(stages)
    return as_result(np.where(np.mod(layers, stages) == 0, 1.0, 1.0 / stages))
