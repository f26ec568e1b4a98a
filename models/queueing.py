"""Closed forms of queues: mean wait, tail of the wait, occupancy of a delay station, closed loops. No transformer here.

Quantile functions take the quantile as a fraction (0.95). A queue that is offered as much as it can serve, or more,
has an infinite wait; that is returned, not raised, so that a mask can drop it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaincinv, gammaln, ndtri

Result = np.ndarray | float


def erlang_c(servers: ArrayLike, offered: ArrayLike) -> Result:
    """Probability that a Poisson arrival has to wait for one of c servers.

    B = (a^c / c!) / sum_{k<=c} a^k / k!  (= pmf / cdf of a Poisson variable);  C = B / (1 - rho (1 - B)),  rho = a / c.
    Shapes: broadcast. Units: servers [1] (at least 1; fractions interpolate), offered load a = rate x service time [1], result [1].
    Exact for M/M/c; 1 where a >= c.
    Reference: Erlang (1917); Cooper, Introduction to Queueing Theory, 2nd ed. (1981), chapter 3 (Erlang B and C).

    >>> float(round(erlang_c(1, 0.7), 12)), float(round(erlang_c(2, 1.0), 6))
    (0.7, 0.333333)
    """
    c, a = np.broadcast_arrays(np.asarray(servers, float), np.asarray(offered, float))
    safe = np.where((a > 0) & (a < c), a, 0.5)
    log_pmf = c * np.log(safe) - safe - gammaln(c + 1.0)
    blocking = np.exp(log_pmf) / gammaincc(c + 1.0, safe)
    waiting = blocking / (1.0 - safe / c * (1.0 - blocking))
    return np.select([a <= 0, a >= c], [0.0, 1.0], np.minimum(waiting, 1.0))[()]


def wait_mean_s(
    rate: ArrayLike, service_s: ArrayLike, service_scv: ArrayLike, servers: ArrayLike = 1, wait_probability: ArrayLike | None = None
) -> Result:
    """Mean wait of M/G/c:  W = (1 + cs^2)/2 x C(c, a) s / (c - a);  for c = 1 the Pollaczek-Khinchine formula.

    `wait_probability` is C(c, a) where it is known already, so that it need not be computed again.
    Shapes: broadcast. Units: rate [1/s], service time [s], squared coefficient of variation of the service [1],
    servers [1], result [s]. Exact for M/G/1 and M/M/c; for M/G/c within a few per cent for cs^2 <= 1 at rho > 0.5.
    Reference: Pollaczek (1930), Khinchine (1932); Allen, Probability, Statistics and Queueing Theory, 2nd ed. (1990),
    chapter 5 (Allen-Cunneen approximation); Kingman, Proc. Camb. Phil. Soc. 57 (1961) for the heavy-traffic form it tends to.

    >>> float(round(wait_mean_s(0.5, 1.0, 0.0), 12)), float(round(wait_mean_s(0.5, 1.0, 1.0), 12))
    (0.5, 1.0)
    """
    rate, service, c = (np.asarray(value, float) for value in (rate, service_s, servers))
    offered = rate * service
    stable = offered < c
    spare = np.where(stable, c - offered, 1.0)
    waiting = erlang_c(c, offered) if wait_probability is None else np.asarray(wait_probability, float)
    wait = 0.5 * (1.0 + np.asarray(service_scv, float)) * waiting * service / spare
    return np.where(stable, wait, np.inf)[()]


def wait_quantile_s(quantile: ArrayLike, wait_probability: ArrayLike, mean_wait_s: ArrayLike) -> Result:
    """Quantile of the wait with an exponential tail:  t_q = (W / p) ln(p / (1 - q)), and 0 where q <= 1 - p.

    P(wait > t) = p exp(-p t / W): right mass at zero (1 - p) and right mean (W).
    Shapes: broadcast. Units: quantile [1], probability of waiting p [1], mean wait W [s], result [s].
    Exact for M/M/c; the leading term of the tail in heavy traffic for M/G/c (Kingman); in light traffic with cs^2 < 1 it
    overestimates the far tail.
    Reference: Abate, Choudhury and Whitt, Exponential approximations for tail probabilities in queues I, Operations Research 43
    (1995); Cooper (1981), chapter 3 (M/M/c).

    >>> round(float(wait_quantile_s(0.95, 0.5, 1.0)), 6), float(wait_quantile_s(0.4, 0.5, 1.0))
    (4.60517, 0.0)
    """
    p = np.asarray(wait_probability, float)
    mean = np.asarray(mean_wait_s, float)
    exceed = 1.0 - np.asarray(quantile, float)
    waits = p > exceed
    safe = np.where(waits, p, 1.0)
    # exceed < p <= 1 wherever the logarithm is used, so the other branch may hold anything finite.
    return np.where(waits, mean / safe * np.log(safe / np.where(waits, exceed, 1.0)), 0.0)[()]


def gamma_quantile(quantile: ArrayLike, scv: ArrayLike) -> Result:
    """Quantile of a gamma variable of mean one and given squared coefficient of variation:  c^2 x G^-1(1/c^2; q).

    Stands for lengths of which only mean and spread are known: 1 for c^2 = 0, exponential for c^2 = 1.
    Shapes: broadcast. Units: quantile, scv [1], result [1].
    Reference: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 2nd ed. (1994), chapter 17.

    >>> round(float(gamma_quantile(0.95, 1.0)), 4), float(gamma_quantile(0.95, 0.0))
    (2.9957, 1.0)
    """
    scv = np.asarray(scv, float)
    varied = scv > 1e-6
    safe = np.where(varied, scv, 1.0)
    return np.where(varied, safe * gammaincinv(1.0 / safe, quantile), 1.0)[()]


def occupancy_variance(rate: ArrayLike, mean: ArrayLike, marginal_rate: ArrayLike) -> Result:
    """Variance of the number in a station that a Poisson stream feeds and that serves X(n):  rate / X'(n), at X(n) = rate.

    M/G/inf has X(n) = n/s and gets n, the Poisson variance; the slower the service grows with n, the wider the swings.
    Shapes: broadcast. Units: rate [1/s], mean occupancy n [1], marginal rate X'(n) [1/s], result [1]; never below the mean.
    Linear noise approximation: right for swings over which X is nearly straight; infinite where X' <= 0.
    Reference: van Kampen, Stochastic Processes in Physics and Chemistry, 3rd ed. (2007), chapter X (system size expansion).

    >>> float(occupancy_variance(10.0, 20.0, 0.5)), float(occupancy_variance(10.0, 20.0, 0.25))
    (20.0, 40.0)
    """
    slope = np.asarray(marginal_rate, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.maximum(np.where(slope > 0, rate / slope, np.inf), mean)[()]


def occupancy_quantile(quantile: ArrayLike, mean: ArrayLike) -> Result:
    """Quantile of the number in an M/G/inf station, which is Poisson; normal approximation  n_q = n + z_q sqrt(n).

    Shapes: broadcast. Units: quantile [1], mean occupancy [1], result [1], never below 0. Insensitive to the
    distribution of the stay. The approximation is within one unit for means above 10 and 0.01 < q < 0.99.
    Reference: Palm (1943); Takács, Introduction to the Theory of Queues (1962), chapter 3 (M/G/inf is Poisson).

    >>> round(float(occupancy_quantile(0.95, 100.0)), 3)
    116.449
    """
    mean = np.asarray(mean, float)
    return np.maximum(mean + normal_deviate(quantile) * np.sqrt(mean), 0.0)[()]


def normal_deviate(quantile: ArrayLike) -> Result:
    """Standard normal deviate  z_q.

    Shapes: as the argument. Units: quantile [1] in (0, 1), result [1].
    Reference: Abramowitz and Stegun (1964), eq. 26.2.2 inverted.

    >>> round(float(normal_deviate(0.975)), 4)
    1.96
    """
    return ndtri(np.asarray(quantile, float))[()]


def closed_loop_response_s(customers: ArrayLike, service_s: ArrayLike, think_s: ArrayLike) -> Result:
    """Wait plus service at one server visited in turn by c customers that each stay away for Z in between.

    R = [(c S - Z) + sqrt((c S - Z)^2 + 4 S Z)] / 2,  the fixed point of  R = S (1 + (c - 1) R / (R + Z)).
    Shapes: broadcast. Units: customers [1], service S and stay Z [s], result [s]. Exact for c = 1 and as c grows; in between
    a few per cent above exact mean value analysis.
    Reference: Schweitzer (1979); Reiser and Lavenberg, J. ACM 27 (1980) (mean value analysis); Lazowska et al., Quantitative
    System Performance (1984), chapter 6 (approximate solution).

    >>> round(float(closed_loop_response_s(10, 1.0, 0.0)), 6), round(float(closed_loop_response_s(10, 1.0, 1e9)), 6)
    (10.0, 1.0)
    """
    customers, service, think = (np.asarray(value, float) for value in (customers, service_s, think_s))
    surplus = customers * service - think
    root = np.sqrt(surplus * surplus + 4.0 * service * think)
    # For a negative surplus the sum cancels; the conjugate form does not.
    response = np.where(surplus < 0, 2.0 * service * think / np.maximum(root - surplus, 1e-300), 0.5 * (surplus + root))
    return response[()]
