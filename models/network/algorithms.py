"""Algorithms of an all-reduce by size: ring, tree, in the network; and what jitter adds to steps in which all ranks wait for each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Ints, Result, as_result

ALGORITHMS = ("ring", "tree", "in network")


def all_reduce_times_s(size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, step_s: ArrayLike) -> Result:
    """Predict the time of an all-reduce by each of ALGORITHMS.

    ring: 2 (g - 1)(a + S/(g B));  two pipelined binary trees: 2 log2(g) a + 2 S/B;  in the network: 2 a + S/B, as switches add up.
    Shapes: arguments broadcast, algorithms on the first axis. Units: size per rank [byte], group [1], rate of a rank [byte/s], latency of
    one message with its start-up [s], result [s]. A group of one costs nothing.
    Reference: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), section 4.4; Sanders, Speck and Träff, Parallel Computing 35 (2009)
    (two trees); Graham et al., SHARP, COM-HPC 2016 (reduction in switches).

    >>> [round(1e6 * float(t), 1) for t in all_reduce_times_s(1e6, 8, 50e9, 1e-6)]
    [49.0, 46.0, 22.0]
    """
    size, g, rate, step = np.broadcast_arrays(*(np.asarray(a, float) for a in (size_bytes, group, bytes_per_s, step_s)))
    ring = 2.0 * (g - 1.0) * (step + size / (g * rate))
    tree = 2.0 * np.log2(g) * step + 2.0 * size / rate
    switch = 2.0 * step + size / rate
    return as_result(np.where(g > 1.0, np.stack([ring, tree, switch]), 0.0))


def chosen_algorithm(
    size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, step_s: ArrayLike, in_network: bool = False
) -> tuple[Ints, Result]:
    """Choose the fastest algorithm: (place in ALGORITHMS, time); `in_network`: whether switches can add up.

    Shapes: broadcast. Units: as `all_reduce_times_s`. A tree is chosen below the size S = a B (g - 1 - log2 g) g, from where the ring's
    smaller traffic outweighs its longer way.
    Reference: Thakur, Rabenseifner and Gropp, IJHPCA 19 (2005), section 5 (choice by size).

    >>> [ALGORITHMS[int(chosen_algorithm(size, 64, 50e9, 1e-6)[0])] for size in (1e3, 1e9)]
    ['tree', 'ring']
    """
    times = np.asarray(all_reduce_times_s(size_bytes, group, bytes_per_s, step_s))
    able = times if in_network else times[:2]
    place: Ints = able.argmin(axis=0)
    return place, as_result(able.min(axis=0))


def latency_share(
    size_bytes: ArrayLike, group: ArrayLike, bytes_per_s: ArrayLike, step_s: ArrayLike, in_network: bool = False
) -> Result:
    """Compute the share of an all-reduce in which no byte moves: 1 - time without latency / time, by the chosen algorithm.

    Shapes: broadcast. Units: result [1]. Reference: as `chosen_algorithm`.

    >>> round(float(latency_share(0.5e6, 8, 50e9, 550e-9)), 2)
    0.14
    """
    place, seconds = chosen_algorithm(size_bytes, group, bytes_per_s, step_s, in_network)
    moving = np.take_along_axis(
        np.asarray(all_reduce_times_s(size_bytes, group, bytes_per_s, 0.0)).reshape(len(ALGORITHMS), -1),
        np.asarray(place).reshape(1, -1),
        axis=0,
    ).reshape(np.shape(place))
    total = np.asarray(seconds, float)
    return as_result(np.where(total > 0, 1.0 - moving / np.where(total > 0, total, 1.0), 0.0))


def slowest_s(mean_s: ArrayLike, ranks: ArrayLike) -> Result:
    """Compute the mean of the largest of g delays that are exponential with a mean:  j (1 + 1/2 + ... + 1/g), which all ranks wait for.

    Shapes: broadcast. Units: mean [s], ranks [1], result [s]. The harmonic number is that of the digamma expansion, within 1e-3.
    Reference: Rényi, On the theory of order statistics, Acta Math. Acad. Sci. Hung. 4 (1953).

    >>> round(float(slowest_s(1.0, 4)), 3), float(slowest_s(1.0, 1))
    (2.083, 1.0)
    """
    g = np.asarray(ranks, float)
    harmonic = np.where(g > 1.0, np.log(g) + np.euler_gamma + 1.0 / (2.0 * g) - 1.0 / (12.0 * g**2), 1.0)
    return as_result(np.asarray(mean_s, float) * harmonic)
