"""Failures, checkpoints and spares of a long run: which share of the time makes progress. Step times are in step.py."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from models.arrays import Floats, Result, as_result


def mean_time_between_interruptions_s(chips: ArrayLike, chip_interval_s: ArrayLike) -> Result:
    """Compute the mean time between interruptions of a whole run:  M = theta / N.

    Interruptions of single chips are independent and rare, so their rates add up.
    Shapes: broadcast. Units: chips N [1], chip time per interruption theta [s], result [s]. Valid for N >= 1.
    Reference: Llama 3, arXiv:2407.21783, section 3.3.4 (419 interruptions of 16,384 chips in 54 days).

    >>> round(float(mean_time_between_interruptions_s(16384, 50677 * 3600)) / 3600, 2)
    3.09
    """
    return as_result(np.asarray(chip_interval_s, float) / np.asarray(chips, float))


def checkpoint_interval_s(write_s: ArrayLike, between_s: ArrayLike) -> Result:
    """Find the interval between checkpoints that loses least time:  Daly's higher-order optimum.

    tau = sqrt(2 d M) [1 + sqrt(d / 2M) / 3 + (d / 2M) / 9] - d for d < 2M, else M; the leading term is Young's.
    Shapes: broadcast. Units: write time d [s], mean time between interruptions M [s], result [s].
    Reference: Young, CACM 17 (1974); Daly, Future Generation Computer Systems 22 (2006), eq. 37.

    >>> round(float(checkpoint_interval_s(40.0, 24.7 * 3600)) / 3600, 2)
    0.73
    """
    d, m = np.broadcast_arrays(np.asarray(write_s, float), np.asarray(between_s, float))
    ratio = d / (2.0 * m)
    tau = np.sqrt(2.0 * d * m) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - d
    return as_result(np.where(ratio < 1.0, tau, m))


def goodput(interval_s: ArrayLike, write_s: ArrayLike, restart_s: ArrayLike, between_s: ArrayLike) -> Result:
    """Compute the goodput of a run, the share of the time that makes lasting progress:  tau / (M exp(R/M) (exp((tau + d)/M) - 1)).

    Exact for exponential interruptions that may also strike while writing or restarting.
    Shapes: broadcast. Units: work between checkpoints tau, write time d, restart time R and mean time between
    interruptions M [s], result [1] in (0, 1). Valid for tau > 0.
    Reference: Daly, Future Generation Computer Systems 22 (2006), eq. 13 (expected wall-clock time).

    >>> round(float(goodput(2640.0, 40.0, 600.0, 24.7 * 3600)), 4)
    0.9638
    >>> bool(goodput(1e-3, 0.0, 0.0, 1e12) > 0.999999)
    True
    """
    tau, m = np.asarray(interval_s, float), np.asarray(between_s, float)
    return as_result(
        tau / (m * np.exp(np.asarray(restart_s, float) / m) * np.expm1((tau + np.asarray(write_s, float)) / m))
    )


def best_goodput(
    chips: ArrayLike, chip_interval_s: ArrayLike, stall_s: ArrayLike, restart_s: ArrayLike, write_s: ArrayLike = 0.0
) -> Result:
    """Compute the goodput at the best checkpoint interval.

    Where a checkpoint is written beside the computation, the run stands still for a stall d below its write time w: the next one waits until
    it is written, tau >= w - d, and an interruption before then falls back on the one before it, which adds w - d to the restart.
    Shapes: broadcast. Units: chips [1], stall d, restart and write time w [s] (0: no longer than the stall), result [1]; falls with chips,
    stall, write and restart time.
    Reference: Daly, Future Generation Computer Systems 22 (2006), eq. 13 and 37; Mohan et al., CheckFreq, FAST 2021 (pipelined checkpoints).

    >>> [float(round(best_goodput(16384, 50677 * 3600, *times), 3)) for times in ((40.0, 600.0), (2.0, 600.0, 40.0))]
    [0.869, 0.927]
    """
    return goodput(*_at_best(chips, chip_interval_s, stall_s, restart_s, write_s))


def goodput_losses(
    chips: ArrayLike, chip_interval_s: ArrayLike, stall_s: ArrayLike, restart_s: ArrayLike, write_s: ArrayLike = 0.0
) -> tuple[Result, Result, Result]:
    """Compute the shares of the time that a run at the best checkpoint interval loses (to checkpoints, to work done again, to restarts).

    Each is what the goodput falls by where it is added to those before it: d/(tau + d), then interruptions with restarts of no time, then the restarts.
    Shapes: broadcast. Units: as for `best_goodput`; the three shares and the goodput add up to 1.
    Reference: Daly, Future Generation Computer Systems 22 (2006), eq. 13.

    >>> [round(float(loss), 3) for loss in goodput_losses(16384, 50677 * 3600, 2.6, 603.0)]
    [0.011, 0.011, 0.052]
    """
    interval, stall, restart, between = _at_best(chips, chip_interval_s, stall_s, restart_s, write_s)
    undisturbed = np.asarray(interval / (interval + stall), float)
    at_once, whole = goodput(interval, stall, 0.0, between), goodput(interval, stall, restart, between)
    return as_result(1.0 - undisturbed), as_result(undisturbed - at_once), as_result(at_once - whole)


def _at_best(
    chips: ArrayLike, chip_interval_s: ArrayLike, stall_s: ArrayLike, restart_s: ArrayLike, write_s: ArrayLike
) -> tuple[Floats, Floats, Floats, Floats]:
    """Find (interval, stall, restart, mean time between interruptions) at the best checkpoint interval [s]."""
    between, stall = (
        np.asarray(a, float) for a in (mean_time_between_interruptions_s(chips, chip_interval_s), stall_s)
    )
    beside = np.maximum(np.asarray(write_s, float) - stall, 0.0)
    interval = np.maximum(checkpoint_interval_s(stall, between), beside)
    return interval, stall, np.asarray(restart_s, float) + beside, between


def preemption_s(write_s: ArrayLike, restart_s: ArrayLike) -> Result:
    """Compute the time that a run loses when it is preempted and resumed later:  d + R.

    It is told beforehand, so it saves its state and no work since the last checkpoint is lost; then it starts again.
    Shapes: broadcast. Units: write time d, restart time R [s], result [s].
    Reference: Daly, Future Generation Computer Systems 22 (2006) (dump and restart time); Xiao et al., Gandiva, OSDI 2018, section 3 (suspend and resume).

    >>> float(preemption_s(40.0, 600.0))
    640.0
    """
    return as_result(np.asarray(write_s, float) + np.asarray(restart_s, float))


def checkpoint_write_s(parameters: ArrayLike, bytes_per_parameter: ArrayLike, storage_bytes_per_s: ArrayLike) -> Result:
    """Compute the time to write a checkpoint while the run stands still:  P b / B.

    Shapes: broadcast. Units: parameters [1], [byte], aggregate storage bandwidth [byte/s], result [s].
    Reference: BLOOM chronicles (2.3 TB in 40 s); state of 14 bytes per parameter with mixed-precision Adam.

    >>> float(checkpoint_write_s(176e9, 13.07, 57.5e9)) > 39
    True
    """
    return as_result(np.asarray(parameters, float) * bytes_per_parameter / np.asarray(storage_bytes_per_s, float))


def spares_needed(
    systems: ArrayLike, system_interval_s: ArrayLike, repair_s: ArrayLike, availability: ArrayLike
) -> Result:
    """Find the fewest spare systems such that the wanted number works with the wanted probability:  smallest s with P(X <= s) >= q.

    X is the number in repair, Poisson with mean n r / theta_system.
    Shapes: broadcast. Units: systems n [1], system time per failure [s], repair time r [s], probability q [1], result [1].
    Reference: Palm (1938), repairable-item inventory theorem (number in repair is Poisson whatever the repair times).

    >>> [int(spares_needed(n, 500 * 86400, 86400, 0.95)) for n in (0, 10, 100, 2000)]
    [0, 0, 1, 8]
    """
    mean = np.asarray(systems, float) * np.asarray(repair_s, float) / np.asarray(system_interval_s, float)
    quantile = np.asarray(availability, float)
    upper = np.ceil(special.pdtrik(quantile, np.maximum(mean, 1e-300)))
    one_less = np.maximum(upper - 1.0, 0.0)
    return as_result(np.where(special.pdtr(one_less, mean) >= quantile, one_less, upper))
