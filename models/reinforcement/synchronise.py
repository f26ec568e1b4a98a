"""Synchronisation of weights: from the chips that update them to the engines that roll out, and between the layouts of one pool."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of a policy: as training keeps them, and as the engines read them."""

    trained_bytes: float
    rollout_bytes: float
    expert_bytes: float = 0.0  # routed experts, among the bytes of the rollout
    tensors: float = 0.0  # through which an engine goes one by one [1]


@dataclass(frozen=True, slots=True)
class Side:
    """Chips of a pool on one side of a synchronisation; numbers or arrays that broadcast."""

    chips: ArrayLike  # chips of the pool [1]
    domain_chips: ArrayLike  # chips of a scale-up domain [1]
    scaleup_bytes_per_s: ArrayLike  # rate of a chip
    scaleout_bytes_per_s: ArrayLike  # rate of a chip; 0 without a network
    hbm_bytes_per_s: ArrayLike  # rate of a chip

    @property
    def together(self) -> Floats:
        """Chips of the pool that share a domain [1]."""
        found: Floats = np.minimum(np.asarray(self.chips, float), np.asarray(self.domain_chips, float))
        return found

    @property
    def inside_bytes_per_s(self) -> Floats:
        """Rate of a chip within a domain [byte/s]: of scale-up, or of scale-out where the latter is faster."""
        found: Floats = np.maximum(
            np.asarray(self.scaleup_bytes_per_s, float), np.asarray(self.scaleout_bytes_per_s, float)
        )
        return found


def gather_s(weights_bytes: ArrayLike, copy_chips: ArrayLike, side: Side) -> Result:
    """Predict how long whole tensors take to reach each chip of a training copy:  max(W (1 - 1/p) / r_u, W (1 - d/p) / (d r_o)), d = min(p, domain).

    Each of the p chips that hold a copy between them has W/p and takes in the rest: over scale-up what lies in its domain or has come into it, and
    into a domain of d chips, over all their links of scale-out, what lies in others. A copy on one chip is whole already.
    Shapes: broadcast. Units: weights W [byte], chips p [1], result [s]; infinite where a copy spans domains without a network.
    Reference: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), section 4.1 (all-gather); Sheng et al., HybridFlow, arXiv:2409.19256, section 5.3.

    >>> side = Side(16, 8, 400e9, 50e9, 3e12)
    >>> [round(float(gather_s(16e9, chips, side)), 4) for chips in (1, 8, 16)]
    [0.0, 0.035, 0.0375]
    """
    size, copy = np.asarray(weights_bytes, float), np.asarray(copy_chips, float)
    inside = np.minimum(copy, np.asarray(side.domain_chips, float))
    within, across = size * (1.0 - 1.0 / copy), size * (1.0 - inside / copy)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(within > 0, within / side.inside_bytes_per_s, 0.0)
        out = np.where(across > 0, across / (inside * np.asarray(side.scaleout_bytes_per_s, float)), 0.0)
    return as_result(np.maximum(up, out))


def broadcast_s(weights_bytes: ArrayLike, sender: Side, receiver: Side) -> Result:
    """Predict how long all domains of another pool take to get the weights:  max(W / (d_s r_s), W / (d_r r_r), W / r_u).

    A domain of the sending pool gives one copy over the links of its d_s chips. Receiving domains pass it on while it arrives, so that their number
    does not count; each takes in one copy over the links of its d_r chips, whose parts then reach every chip over scale-up (r_u).
    Shapes: broadcast. Units: weights W [byte], rates r of a chip [byte/s], result [s]; infinite without a network on either side.
    Reference: Sanders, Speck and Träff, Parallel Computing 35 (2009) (pipelined broadcast).

    >>> side = Side(16, 8, 400e9, 50e9, 3e12)
    >>> float(broadcast_s(16e9, Side(1, 8, 400e9, 50e9, 3e12), side)), float(broadcast_s(16e9, side, side))
    (0.32, 0.04)
    """
    size = np.asarray(weights_bytes, float)
    with np.errstate(divide="ignore"):
        ends = [size / (side.together * np.asarray(side.scaleout_bytes_per_s, float)) for side in (sender, receiver)]
        inside = size / receiver.inside_bytes_per_s
    return as_result(np.maximum(np.maximum(*ends), np.where(receiver.together > 1, inside, 0.0)))


def copy_s(weights: Weights, expert_ranks: ArrayLike, copy_bytes_per_s: float, hbm_bytes_per_s: ArrayLike) -> Result:
    """Predict how long a chip of training takes to hand over what it exports:  w / s + (w_t + w) / b,  w = W - E (1 - 1/e).

    Each chip exports whole tensors at a rate s that software sets, all of them at the same time; of the routed experts (E) each of e expert ranks
    exports its own. Where the format of the engines is not that of training, a chip also reads its part of the latter (w_t = w W_t / W) and
    writes the former, at the rate b of its memory.
    Shapes: broadcast. Units: ranks e [1], rates s, b [byte/s], result [s].
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256, section 5; Williams, Waterman and Patterson, CACM 52 (2009).

    >>> [round(float(copy_s(Weights(16e9, size, 0.75 * size), ranks, 16e9, 3e12)), 3) for size, ranks in ((16e9, 1), (16e9, 3), (8e9, 1))]
    [1.0, 0.5, 0.508]
    """
    ranks = np.maximum(np.asarray(expert_ranks, float), 1.0)
    exported = weights.rollout_bytes - weights.expert_bytes * (1.0 - 1.0 / ranks)
    read = exported * weights.trained_bytes / weights.rollout_bytes
    moved = 0.0 if weights.trained_bytes == weights.rollout_bytes else read + exported
    return as_result(exported / copy_bytes_per_s + moved / np.asarray(hbm_bytes_per_s, float))


@dataclass(frozen=True, slots=True)
class Sharding:
    """How training spreads a copy of the weights: over a number of chips, some of which hold different experts."""

    copy_chips: ArrayLike
    expert_ranks: ArrayLike = 1.0


@dataclass(frozen=True, slots=True)
class Software:
    """What the software of a synchronisation takes, whatever the links."""

    copy_bytes_per_s: float  # at which a chip hands weights to an engine
    tensor_s: float  # each tensor
    start_s: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line between the sites of two pools: the rate that a job reserves on it each way, and what comes back over it."""

    bytes_per_s: float
    rtt_s: float
    back_bytes: float = 0.0  # responses of one iteration


def over_line_s(weights_bytes: ArrayLike, line: Line) -> tuple[Result, float]:
    """Predict (how long weights take over a line, what comes on top of it):  (W / r, RTT + D / r).

    One copy of the weights passes the line while other stages work on other tensors; half a round trip later it is there, and the responses D of the
    batch come back, of which the last wait for the other half.
    Shapes: broadcast. Units: weights W, responses D [byte], rate r [byte/s], round trip [s], results [s].
    Reference: Sanders, Speck and Träff, Parallel Computing 35 (2009) (pipelined broadcast); the line is its slowest edge.

    >>> sent, more = over_line_s(16e9, Line(4e9, 0.05, back_bytes=0.2e9))
    >>> float(sent), round(more, 6)
    (4.0, 0.1)
    """
    sent = as_result(np.asarray(weights_bytes, float) / line.bytes_per_s)
    return sent, line.rtt_s + line.back_bytes / line.bytes_per_s


def synchronise_s(
    weights: Weights,
    sharding: Sharding,
    trainer: Side,
    receiver: Side | None,
    software: Software,
    line: Line | None = None,
) -> Result:
    """Predict the time until engines have new weights:  a + N tau + max(gather, copy, broadcast).

    Frameworks go through a network tensor by tensor or bucket by bucket: while one is copied to the engines the next is gathered from the chips of a
    training copy, and, where the engines are another pool (`receiver`; None where the pools take turns), the one before is sent. The slowest of
    the three sets the pace, beside the time tau of each of N tensors, all of which each engine takes in turn, and a start a.
    Each chip of an engine takes in whole tensors and keeps its part, so that the layout of the engine does not count. A `line` between the sites of
    both pools is one more stage, W / r, and adds its round trip and the way back of the responses (`over_line_s`).
    Shapes: broadcast. Units: tau, a, result [s].
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256, sections 5.2 and 5.3; `gather_s`, `copy_s`, `broadcast_s`.

    >>> side, weights, software = Side(16, 8, 400e9, 50e9, 3e12), Weights(16e9, 16e9, tensors=300), Software(16e9, 1e-3, 2.0)
    >>> slow = Side(1, 8, 400e9, 5e9, 3e12)
    >>> [round(float(synchronise_s(weights, Sharding(8), side, other, software)), 3) for other in (None, side, slow)]
    [3.3, 3.3, 5.5]
    """
    stages = [
        gather_s(weights.trained_bytes, sharding.copy_chips, trainer),
        copy_s(weights, sharding.expert_ranks, software.copy_bytes_per_s, trainer.hbm_bytes_per_s),
        0.0 if receiver is None else broadcast_s(weights.rollout_bytes, trainer, receiver),
    ]
    sent, more = (0.0, 0.0) if line is None else over_line_s(weights.rollout_bytes, line)
    slowest = np.maximum(np.maximum(stages[0], stages[1]), np.maximum(stages[2], sent))
    return as_result(software.start_s + weights.tensors * software.tensor_s + slowest + more)


def reload_s(state_bytes: ArrayLike, host_bytes_per_s: ArrayLike) -> Result:
    """Predict the time to move training state to the memory of the host before a rollout, and back after it:  2 S / r.

    Shapes: broadcast. Units: state S of a chip [byte], rate r of its link to the host [byte/s], result [s]; infinite without a link.
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256, section 5 (models take turns on one pool).

    >>> float(reload_s(30e9, 60e9)), float(reload_s(0.0, 0.0))
    (1.0, 0.0)
    """
    size = np.asarray(state_bytes, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return as_result(np.where(size > 0, 2.0 * size / np.asarray(host_bytes_per_s, float), 0.0))
