"""Bytes between storage and chips: what a run reads and writes, how long weights take to load, and when compute waits for data.

All rates are means; how often checkpoints are written and what interruptions cost is in reliability.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def reading_bytes_per_s(tokens_per_s: ArrayLike, bytes_per_token: ArrayLike) -> Result:
    """Compute the rate at which a run reads while it computes:  q b.

    Every replica reads samples of its own, so the rate grows with the width of the run.
    Shapes: broadcast. Units: tokens q [token/s], stored size of a token b [byte/token], result [byte/s].
    Reference: MLPerf Storage, rules of the training benchmark (samples per second times bytes per sample).

    >>> float(reading_bytes_per_s(16e6, 4.0))
    64000000.0
    """
    return as_result(np.asarray(tokens_per_s, float) * np.asarray(bytes_per_token, float))


def checkpoint_bytes_per_s(checkpoint_bytes: ArrayLike, interval_s: ArrayLike, write_s: ArrayLike = 0.0) -> Result:
    """Compute the mean rate at which checkpoints are written:  C / (tau + d).

    Written in the background (d = 0) it is also the least bandwidth at which one is done before the next begins; a run that
    stands still while it writes needs the mean only.
    Shapes: broadcast. Units: checkpoint C [byte], work between two tau [s], time d for which the run stands still [s],
    result [byte/s]. Valid for tau + d > 0.
    Reference: Mohan et al., CheckFreq, FAST 2021 (how often checkpoints may run beside the computation).

    >>> float(checkpoint_bytes_per_s(2.3e12, 2640.0, 40.0)) < float(checkpoint_bytes_per_s(2.3e12, 2640.0))
    True
    """
    return as_result(np.asarray(checkpoint_bytes, float) / (np.asarray(interval_s, float) + np.asarray(write_s, float)))


def checkpoint_stall_s(
    checkpoint_bytes: ArrayLike,
    storage_bytes_per_s: ArrayLike,
    host_bytes_per_s: ArrayLike = 0.0,
    interval_s: ArrayLike = np.inf,
) -> Result:
    """Compute the time for which a run stands still for a checkpoint:  C / B, or in the background  C / H + max(0, C / B - tau).

    In the background the run waits for the copy to the memory of the hosts (H > 0), and for the last checkpoint where storage is
    too slow to have taken it in.
    Shapes: broadcast. Units: checkpoint C [byte], storage B and links to the hosts of the whole run H [byte/s] (0: blocking),
    work between two tau [s], result [s]. Valid for B > 0.
    Reference: Jiang et al., MegaScale, arXiv:2402.15627, section 4.4 (two stages: to the hosts, then to storage).

    >>> [round(float(checkpoint_stall_s(2.3e12, 57.5e9, host, 2640.0)), 2) for host in (0.0, 384 * 25e9)]
    [40.0, 0.24]
    """
    size, host = np.asarray(checkpoint_bytes, float), np.asarray(host_bytes_per_s, float)
    write = size / np.asarray(storage_bytes_per_s, float)
    copy = np.divide(size, host, out=np.zeros(np.broadcast(size, host).shape), where=host > 0)
    return as_result(np.where(host > 0, copy + np.maximum(write - np.asarray(interval_s, float), 0.0), write))


def load_s(
    size_bytes: ArrayLike,
    shares: Sequence[ArrayLike],
    bytes_per_s: Sequence[ArrayLike],
    last_bytes_per_s: ArrayLike = np.inf,
) -> Result:
    """Compute the time to load weights that lie in several tiers into the chips:  max(W max_i s_i / B_i, W / L).

    Tiers are read beside one another and what arrives is passed on at once, so the slowest part decides. Weights that lie in one
    place only have one share of 1; a cache that is warm has the whole.
    Shapes: broadcast, `shares` and `bytes_per_s` one entry per tier. Units: weights W [byte], shares s_i [1] that add up to 1,
    bandwidth of a tier B_i that this replica gets and of the last way into the chips L [byte/s], result [s].
    Reference: Fu et al., ServerlessLLM, OSDI 2024 (arXiv:2401.14351), section 4 (loading through all tiers as a pipeline).

    >>> float(load_s(140e9, [1.0], [5e9])), float(load_s(140e9, [0.9, 0.1], [50e9, 5e9], 100e9))
    (28.0, 2.8)
    """
    size = np.asarray(size_bytes, float)
    parts = [
        size * np.asarray(share, float) / np.asarray(rate, float)
        for share, rate in zip(shares, bytes_per_s, strict=True)
    ]
    return as_result(
        np.maximum(np.max(np.broadcast_arrays(*parts), axis=0), size / np.asarray(last_bytes_per_s, float))
    )


def computing_share(needed_bytes_per_s: ArrayLike, storage_bytes_per_s: ArrayLike) -> Result:
    """Compute the share of the time in which compute does not wait for data:  min(1, B / q).

    Reading runs ahead of the computation, so the slower of the two sets the pace.
    Shapes: broadcast. Units: bytes that the computation asks for at full pace q, storage B [byte/s], result [1] in [0, 1].
    Reference: MLPerf Storage, rules (accelerator utilisation: time of computing over the whole time).

    >>> [float(computing_share(q, 10e9)) for q in (5e9, 40e9)]
    [1.0, 0.25]
    """
    needed = np.asarray(needed_bytes_per_s, float)
    rate = np.asarray(storage_bytes_per_s, float)
    unbounded = np.full(np.broadcast(rate, needed).shape, np.inf)
    return as_result(np.minimum(1.0, np.divide(rate, needed, out=unbounded, where=needed > 0)))


def warm_up_loss_s(warm_up_s: ArrayLike, slower: ArrayLike) -> Result:
    """Compute what an empty cache costs while it fills, as time of a warm worker:  w (1 - ln r / (r - 1)).

    The hit rate rises evenly from 0 during w, and with it the time per request falls evenly from r times that of a warm worker to that
    itself; the mean rate over w is then ln r / (r - 1) of the warm one.
    Shapes: broadcast. Units: time w until the cache is full [s], time per request of an empty cache over that of a full one r [1],
    result [s]. Valid for r >= 1; 0 for r = 1, below w for any.
    Reference: the mean of 1 / (r - (r - 1) x) over x in [0, 1].

    >>> float(warm_up_loss_s(600.0, 1.0)), round(float(warm_up_loss_s(600.0, 2.0)), 1)
    (0.0, 184.1)
    """
    more = np.maximum(np.asarray(slower, float) - 1.0, 0.0)
    mean = np.divide(np.log1p(more), more, out=np.ones_like(more), where=more > 0)
    return as_result(np.asarray(warm_up_s, float) * (1.0 - mean))
