"""Synchronisation of weights: from the chips that update them to the engines that roll out, and between the layouts of one pool."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def transfer_s(
    weights_bytes: ArrayLike, senders: ArrayLike, receivers: ArrayLike, send_bytes_per_s: ArrayLike, receive_bytes_per_s: ArrayLike,
    copy_bytes_per_s: float, start_s: float,
) -> Result:  # fmt: skip
    """Predict the time to send new weights to another pool:  a + max(W / (n r_s), W / (c r_c), W / s).

    The n updating chips send one copy between them, which receivers pass on while it arrives; each of the c chips of an engine takes its part.
    Frameworks gather whole tensors, one after the other, and every chip takes in all of them at a rate s that their software sets.
    Shapes: broadcast. Units: weights W [byte], chips n, c [1], rates r of one chip and s [byte/s], start a [s], result [s]. Infinite
    without a network.
    Reference: Sanders, Speck and Träff, Parallel Computing 35 (2009) (pipelined broadcast); Sheng et al., HybridFlow, arXiv:2409.19256, section 5.

    >>> fast = float("inf")
    >>> [float(transfer_s(16e9, 8, chips, 50e9, 50e9, rate, 1.0)) for chips, rate in ((1, fast), (8, fast), (8, 16e9))]
    [1.32, 1.04, 2.0]
    """
    size = np.asarray(weights_bytes, float)
    with np.errstate(divide="ignore"):
        sent = size / (np.asarray(senders, float) * np.asarray(send_bytes_per_s, float))
        received = size / (np.asarray(receivers, float) * np.asarray(receive_bytes_per_s, float))
    return as_result(start_s + np.maximum(np.maximum(sent, received), size / copy_bytes_per_s))


def reshard_s(
    weights_bytes: ArrayLike, copy_chips: ArrayLike, engine_chips: ArrayLike, scaleup_chips: ArrayLike, rates: tuple[ArrayLike, ArrayLike],
    copy_bytes_per_s: float, start_s: float,
) -> Result:  # fmt: skip
    """Predict the change of weights from the layout of training to that of an engine on the same chips:  a + max(W/c (1 - c/p) / r, W / s), c < p.

    Each of the c chips of an engine gathers its part from the p chips that hold a copy in training; of a copy on no more chips than
    the engine has, nothing travels. The scale-up rate r holds where such a copy lies within a domain, else that of scale-out.
    All tensors pass each chip at a rate s that software sets, as in `transfer_s`.
    Shapes: broadcast. Units: weights W [byte], chips p, c [1], rates (scale-up, scale-out) r of a chip and s [byte/s], start a [s], result [s].
    Reference: Sheng et al., HybridFlow, arXiv:2409.19256, section 5.3 (3D-HybridEngine).

    >>> fast = float("inf")
    >>> [float(reshard_s(16e9, 8, chips, 8, (400e9, 50e9), rate, 0.5)) for chips, rate in ((2, fast), (8, fast), (8, 16e9))]
    [0.515, 0.5, 1.5]
    """
    size, copy, engine = (np.asarray(a, float) for a in (weights_bytes, copy_chips, engine_chips))
    rate = np.where(copy <= scaleup_chips, *(np.asarray(a, float) for a in rates))
    moved = size / engine * np.maximum(1.0 - engine / copy, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        travelling = np.where(moved > 0, moved / rate, 0.0)
    return as_result(start_s + np.maximum(travelling, size / copy_bytes_per_s))


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
