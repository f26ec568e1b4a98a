"""Time of collective operations over two levels: chips of a scale-up domain, and domains joined by NICs.

It knows groups, bytes and bandwidths; which tensors are exchanged, and what hides behind computation, is elsewhere.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def members_per_domain(group: ArrayLike, stride: ArrayLike, domain: ArrayLike) -> Result:
    """Count the members of a group that share a scale-up domain, `stride` ranks apart:  min(g, max(1, D / stride)).

    Ranks are numbered tensor, context, data, then pipeline; the stride of a group is the product of those before it.
    Shapes: broadcast. Units: counts [1].
    Reference: Narayanan et al., arXiv:2104.04473, section 3.1 (tensor parallelism within a server first).

    >>> int(members_per_domain(16, 4, 8)), int(members_per_domain(16, 8, 8)), int(members_per_domain(2, 1, 8))
    (2, 1, 2)
    """
    inside = np.maximum(1.0, np.floor(np.divide(domain, stride)))
    return as_result(np.minimum(np.asarray(group, float), inside))


def group_bytes_per_s(
    group: ArrayLike,
    per_domain: ArrayLike,
    intra_bytes_per_s: ArrayLike,
    inter_bytes_per_s: ArrayLike,
    nic_exponent: ArrayLike = 1.0,
) -> Result:
    """Compute the bandwidth at which a rank takes part in a ring over two levels.

    beta_intra inside one domain; else min(beta_intra, beta_NIC r^x): each of the r members in a domain drives its own
    NIC with a share of the data. x below 1 says how much of those NICs a framework's rings reach.
    Shapes: broadcast. Units: counts [1], bandwidths [byte/s], exponent [1], result [byte/s].
    Reference: Jia et al., arXiv:1807.11205, section 3.3 (hierarchical all-reduce); Cho et al., BlueConnect, MLSys 2019.

    >>> [float(group_bytes_per_s(g, r, 450e9, 50e9)) / 1e9 for g, r in ((8, 8), (16, 2), (128, 8))]
    [450.0, 100.0, 400.0]
    """
    outside = np.minimum(
        intra_bytes_per_s, np.asarray(inter_bytes_per_s, float) * np.asarray(per_domain, float) ** nic_exponent
    )
    return as_result(np.where(np.asarray(group) <= np.asarray(per_domain), intra_bytes_per_s, outside))


def all_gather_s(size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, start_s: ArrayLike = 0.0) -> Result:
    """Predict the time of an all-gather of `size_bytes`, of which each rank begins with 1/g:  (g - 1)/g S / beta + alpha.

    Shapes: broadcast. Units: size [byte], group [1], bandwidth [byte/s], start-up of the whole collective [s], result [s].
    A group of one, or nothing to send, costs nothing; no bandwidth costs infinity.
    Reference: Thakur, Rabenseifner and Gropp, Int. J. High Performance Computing Applications 19 (2005), section 4.1 (ring).

    >>> float(all_gather_s(8e9, 8, 100e9)), float(all_gather_s(8e9, 1, 100e9, 1e-5))
    (0.07, 0.0)
    """
    size, group = np.asarray(size_bytes, float), np.asarray(group, float)
    active = (group > 1.0) & (size > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        moving = (group - 1.0) / group * size / bytes_per_s
    return as_result(np.where(active, moving + start_s, 0.0))


def reduce_scatter_s(
    size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, start_s: ArrayLike = 0.0
) -> Result:
    """Predict the time of a reduce-scatter of `size_bytes` per rank:  (g - 1)/g S / beta + alpha.

    Shapes: broadcast. Units: size [byte], group [1], bandwidth [byte/s], start-up [s], result [s]. The mirror image of an
    all-gather; the additions are free beside the links.
    Reference: Thakur, Rabenseifner and Gropp, Int. J. High Performance Computing Applications 19 (2005), section 4.2.

    >>> float(reduce_scatter_s(8e9, 8, 100e9)) == float(all_gather_s(8e9, 8, 100e9))
    True
    """
    return all_gather_s(size_bytes, group, bytes_per_s, start_s)


def all_reduce_s(size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, start_s: ArrayLike = 0.0) -> Result:
    """Predict the time of an all-reduce of `size_bytes` per rank: a reduce-scatter and an all-gather.

    Shapes: broadcast. Units: size [byte], group [1], bandwidth [byte/s], start-up of each half [s], result [s].
    Reference: Thakur, Rabenseifner and Gropp, Int. J. High Performance Computing Applications 19 (2005), section 4.4;
    Patarasuk and Yuan, J. Parallel and Distributed Computing 69 (2009) (2 (g - 1)/g S is optimal).

    >>> float(all_reduce_s(8e9, 8, 100e9))
    0.14
    """
    return reduce_scatter_s(size_bytes, group, bytes_per_s, start_s) + all_gather_s(
        size_bytes, group, bytes_per_s, start_s
    )


def all_to_all_s(
    inside_bytes: ArrayLike,
    outside_bytes: ArrayLike,
    intra_bytes_per_s: ArrayLike,
    inter_bytes_per_s: ArrayLike,
    start_s: ArrayLike = 0.0,
) -> Result:
    """Predict the time of an all-to-all whose traffic over the two levels runs side by side: the slower level counts.

    max(in / beta_intra, out / beta_NIC) + alpha.
    Shapes: broadcast. Units: bytes that a rank sends inside its domain and over its NIC [byte], bandwidths [byte/s],
    start-up [s], result [s]. Nothing to send costs nothing; no bandwidth costs infinity.
    Reference: DeepSeek-V3, arXiv:2412.19437, section 3.2.2 (NVLink and InfiniBand fully overlapped).

    >>> float(all_to_all_s(1e9, 1e9, 400e9, 50e9)), float(all_to_all_s(0, 0, 400e9, 50e9, 1e-5))
    (0.02, 0.0)
    """
    inside, outside = np.asarray(inside_bytes, float), np.asarray(outside_bytes, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        within = np.where(inside > 0.0, inside / intra_bytes_per_s, 0.0)
        between = np.where(outside > 0.0, outside / inter_bytes_per_s, 0.0)
    slower = np.maximum(within, between)
    return as_result(np.where(slower > 0.0, slower + start_s, 0.0))


def exposed_s(communication_s: ArrayLike, window_s: ArrayLike, overlap: ArrayLike) -> Result:
    """Compute the communication that computation does not hide:  C - f min(C, W).

    Shapes: broadcast. Units: communication and window of computation [s], overlap f within 0..1 [1], result [s].
    Reference: Rajbhandari et al., ZeRO, arXiv:1910.02054, section 7; Li et al., PyTorch Distributed, arXiv:2006.15704, section 3.2.3.

    >>> float(exposed_s(3.0, 10.0, 1.0)), float(exposed_s(3.0, 2.0, 0.5))
    (0.0, 2.0)
    """
    communication = np.asarray(communication_s, float)
    return as_result(communication - np.asarray(overlap, float) * np.minimum(communication, window_s))
