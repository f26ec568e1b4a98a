"""Closed forms of queues: waits and their spread, the number in a shared engine, closed loops. No transformer here.

Quantile functions take the quantile as a fraction (0.95). A queue that is offered as much as it can serve, or more,
has an infinite wait; that is returned, not raised, so that a mask can drop it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaincc, gammaincinv, gammaln, ndtr

from models.arrays import Bools, Floats, Result, as_result

# Powers of the chance to wait that Poisson arrivals have, for arrivals in clumps: in the mean wait, and in the chance itself.
_CLUMPED_WAIT, _CLUMPED_CHANCE = 0.4, 0.8
_ROUNDS, _CLOSE = 24, 1e-9  # rounds of Ridders' method, at most; error over the rate at which it ends
_NONE: Result = np.zeros(())
_RARE = 1.5  # think time over service and customers from which a server is rarely found at work
_TERMS = 40  # terms of the series there


def erlang_c(servers: ArrayLike, offered: ArrayLike) -> Result:
    """Compute the probability that a Poisson arrival waits for one of c servers (Erlang C).

    B = (a^c / c!) / sum_{k<=c} a^k / k!  (= pmf / cdf of a Poisson variable);  C = B / (1 - rho (1 - B)),  rho = a / c.
    Shapes: broadcast. Units: servers [1] (at least 1; fractions interpolate), offered load a = rate x service time [1], result [1].
    Exact for M/M/c; 1 where a >= c.
    Reference: Erlang (1917); Cooper, Introduction to Queueing Theory, 2nd ed. (1981), chapter 3 (Erlang B and C).

    >>> float(round(erlang_c(1, 0.7), 12)), float(round(erlang_c(2, 1.0), 6))
    (0.7, 0.333333)
    """
    c, a = np.broadcast_arrays(np.asarray(servers, float), np.asarray(offered, float))
    found = np.where(a >= c, 1.0, np.where(a <= 0, 0.0, np.nan))  # nan where the load is unknown
    queued = (a > 0) & (a < c)
    c, a = c[queued], a[queued]
    log_pmf = c * np.log(a) - a - gammaln(c + 1.0)
    blocking = np.exp(log_pmf) / gammaincc(c + 1.0, a)
    found[queued] = np.minimum(blocking / (1.0 - a / c * (1.0 - blocking)), 1.0)
    return as_result(found)


def wait_mean_s(
    rate: ArrayLike,
    service_s: ArrayLike,
    service_scv: ArrayLike,
    servers: ArrayLike = 1,
    wait_probability: ArrayLike | None = None,
    arrival_scv: ArrayLike = 1.0,
) -> Result:
    """Compute the mean wait of G/G/c:  W = [(1 + cs^2) C + (ca^2 - 1) C^0.4] / 2 x s / (c - a),  C = C(c, a);  M/G/1: Pollaczek-Khinchine.

    `wait_probability` is C(c, a) where it is known already, so that it need not be computed again. Arrivals of ca^2 > 1 come in
    clumps, in which one waits at any load: hence the power, which follows event simulations of gamma gaps of ca^2 from 2 to 6 and
    loads from 0.1 to 0.85 within 6 % (for ca^2 < 1 it is 1).
    Shapes: broadcast. Units: rate [1/s], service time [s], squared coefficients of variation of service and of the gaps between
    arrivals [1], servers [1], result [s]. Exact for M/G/1 and M/M/c; for M/G/c within a few per cent for cs^2 <= 1 at rho > 0.5.
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
    clumps = np.asarray(arrival_scv, float) - 1.0
    variety = (1.0 + np.asarray(service_scv, float)) * waiting
    if np.any(clumps):
        variety = variety + clumps * np.where(clumps > 0, waiting**_CLUMPED_WAIT, waiting)
    wait = 0.5 * variety * service / spare
    return as_result(np.where(stable, wait, np.inf))


def clumped_wait_probability(wait_probability: ArrayLike, arrival_scv: ArrayLike) -> Result:
    """Compute the probability to wait where arrivals come in clumps, from that of Poisson arrivals:  C^(ca^-1.6)  for ca^2 > 1.

    Shapes: broadcast [1]. Follows event simulations of G/G/1 with gamma gaps of ca^2 from 2 to 6 within 0.03; C for ca^2 <= 1.
    Reference: Whitt, The queueing network analyzer, Bell System Technical Journal 62 (1983) (the chance grows with ca^2).

    >>> float(clumped_wait_probability(0.5, 1.0)), round(float(clumped_wait_probability(0.25, 3.0)), 2)
    (0.5, 0.56)
    """
    scv = np.asarray(arrival_scv, float)
    if not np.any(scv > 1.0):
        return as_result(np.asarray(wait_probability, float))
    return as_result(np.asarray(wait_probability, float) ** np.maximum(scv, 1.0) ** -_CLUMPED_CHANCE)


def delayed_scv(load: ArrayLike, service_scv: ArrayLike) -> Result:
    """Compute the squared coefficient of variation of the wait of those who wait:  2 rho - 1 + 4/3 (1 - rho)(1 + 2 c)/(1 + c),  c = cs^2.

    From the second moment of the wait, 2 W^2 + rate E[s^3]/(3 (1 - rho)), with gamma service times. Shapes: broadcast [1].
    Exact for M/G/1 of such times: 1 for cs^2 = 1 at any load, 1/3 for cs^2 = 0 at none.
    Reference: Takács, Introduction to the Theory of Queues (1962), chapter 1 (moments of the wait).

    >>> round(float(delayed_scv(0.3, 1.0)), 9), round(float(delayed_scv(0.0, 0.0)), 3)
    (1.0, 0.333)
    """
    rho, c = np.minimum(np.asarray(load, float), 1.0), np.asarray(service_scv, float)
    return as_result(2.0 * rho - 1.0 + 4.0 / 3.0 * (1.0 - rho) * (1.0 + 2.0 * c) / (1.0 + c))


@np.errstate(invalid="ignore", divide="ignore", over="ignore")  # queues that are offered more than they serve
def both_waits(
    first: tuple[ArrayLike, ArrayLike, ArrayLike], second: tuple[ArrayLike, ArrayLike, ArrayLike]
) -> tuple[Result, Result, Result]:
    """Add two independent waits, each (mean [s], chance to wait [1], squared coefficient of variation of those who do [1]): the same of their sum.

    p = 1 - (1 - p1)(1 - p2);  E[W^2] = sum of m^2 (1 + c)/p, and 2 m1 m2;  1 + c = p E[W^2]/m^2. Shapes: broadcast.
    Reference: Feller, An Introduction to Probability Theory 2 (1971), chapter 5 (moments of sums).

    >>> [round(float(x), 6) for x in both_waits((1.0, 0.5, 1.0), (0.0, 0.0, 1.0))]
    [1.0, 0.5, 1.0]
    """
    (m1, p1, c1), (m2, p2, c2) = ([np.asarray(part, float) for part in wait] for wait in (first, second))
    mean, chance = m1 + m2, 1.0 - (1.0 - p1) * (1.0 - p2)
    known = (mean > 0.0) & np.isfinite(mean)
    shares = [np.where(known, m / mean, 0.0) for m in (m1, m2)]
    square = 2.0 * shares[0] * shares[1]
    for share, p, c in zip(shares, (p1, p2), (c1, c2), strict=True):
        square = square + share * share * np.where(share > 0.0, (1.0 + c) / np.maximum(p, 1e-300), 0.0)
    scv = np.where(known, np.maximum(chance * square - 1.0, 0.0), c1)
    return as_result(mean), as_result(chance), as_result(scv)


def departure_scv(load: ArrayLike, service_scv: ArrayLike, servers: ArrayLike, arrival_scv: ArrayLike = 1.0) -> Result:
    """Compute the squared coefficient of variation of the gaps between departures:  1 + (1 - rho^2)(ca^2 - 1) + rho^2 (cs^2 - 1)/sqrt(c).

    Shapes: broadcast [1]. Exact for M/M/c. Reference: Whitt, The queueing network analyzer, Bell System Technical Journal 62 (1983), eq. 39.

    >>> float(departure_scv(1.0, 0.0, 1.0)), float(departure_scv(0.5, 1.0, 4.0))
    (0.0, 1.0)
    """
    square = np.asarray(load, float) ** 2
    return (
        1.0
        + (1.0 - square) * (np.asarray(arrival_scv, float) - 1.0)
        + square * (np.asarray(service_scv, float) - 1.0) / np.sqrt(servers)
    )[()]


def dispersion(utilisation: ArrayLike, service_scv: ArrayLike, arrival_scv: ArrayLike = 1.0) -> Result:
    """Compute the index of dispersion of the requests that a server sends on, counted in the time that it leaves to others:

    I = (ca^2 + u^2 cs^2) / (1 - u)^2.  All that arrive during a service come on at one instant of that time; for Poisson arrivals
    the number in a busy period has mean 1/(1 - u) and second moment (1 + u^2 cs^2)/(1 - u)^3.
    Shapes: broadcast [1]; utilisation below 1. Reference: Takács (1962), chapter 1 (busy period); Takagi, Queueing Analysis 1 (1991).

    >>> float(dispersion(0.0, 1.0)), float(dispersion(0.5, 0.0))
    (1.0, 4.0)
    """
    u = np.minimum(np.asarray(utilisation, float), 0.999)
    return as_result((np.asarray(arrival_scv, float) + u * u * service_scv) / (1.0 - u) ** 2)


def left_behind_s(
    utilisation: ArrayLike, service_s: ArrayLike, service_scv: ArrayLike, arrival_scv: ArrayLike, steps: ArrayLike
) -> Result:
    """Compute the time that arrivals during a request's wait and service take from it once it is served, with all that follows them:

    e = u S/(1 - u) x [1 + u (ca^2 + cs^2)(u + (1 - u) min(x, 1)/2)/(1 - u^2)].  Services shorter than a step (x < 1 of it) are
    gathered and end together, so that fewer are left. Shapes: broadcast. Units: utilisation u [1], service S [s], result [s].
    Reference: Takagi, Queueing Analysis 1 (1991), chapter 2 (gated service).

    >>> float(left_behind_s(0.5, 1.0, 0.0, 0.0, 1.0)), float(left_behind_s(0.0, 1.0, 0.0, 1.0, 1.0))
    (1.0, 0.0)
    """
    u = np.minimum(np.asarray(utilisation, float), 0.999)
    gathered = u + 0.5 * (1.0 - u) * np.minimum(steps, 1.0)
    waited = u * (np.asarray(arrival_scv, float) + service_scv) * gathered / (1.0 - u * u)
    return as_result(u * service_s / (1.0 - u) * (1.0 + waited))


def shared_rate(
    occupancy: ArrayLike,
    steps: ArrayLike,
    step_s: ArrayLike,
    step_slope_s: ArrayLike,
    service_s: ArrayLike,
    service_scv: ArrayLike,
    service_steps: ArrayLike,
    output_scv: ArrayLike,
    arrival_scv: ArrayLike,
    packed: ArrayLike = 1.0,
) -> tuple[Result, Result]:
    """Solve for (rate, variance of the number in decode) at which a given number of requests decode on average, in an engine that serves prompts in between.

    In the time left to decode, requests join at g = rate/(1 - u) and step times T = a + c b give, exactly for Poisson arrivals
    (processor sharing with a rate that depends on the number, a negative binomial),  b = (n g a + n g c D)/(1 - n g c),  D = 1.
    Clumps of dispersion I widen the swings:  D = 1 + (I - 1) w,  w = n/(n + x (I - 1))/(1 + cO^2)  for outputs of cO^2 and clumps
    that take x steps a prompt; while prompts behind it are served a request stays e longer, so b = ... + rate e.
    Of prompts that attention ranks serve side by side only the share `packed` of the service adds up, and makes clumps.
    Variance b D/(1 - n g c).
    Solved for the rate to 1e-9 of it. Shapes: broadcast. Units: occupancy b [1], steps n of a request [1], step T(b) and service [s],
    slope c = dT/db [s], results [1/s] and [1]. Reference: Kelly, Reversibility and Stochastic Networks (1979), chapter 3
    (symmetric queues); Eick, Massey and Whitt, Management Science 39 (1993) (peakedness in infinite-server queues).

    >>> [round(float(x), 6) for x in shared_rate(10.0, 1.0, 2.0, 0.1, 0.0, 0.0, 1.0, 1.0, 1.0)]
    [4.761905, 19.090909]
    """
    b, n, c = np.asarray(occupancy, float), np.asarray(steps, float), np.maximum(step_slope_s, 0.0)
    base = np.maximum(np.asarray(step_s, float) - c * b, 0.05 * np.asarray(step_s, float))
    spread = 1.0 / (1.0 + np.asarray(output_scv, float))
    shared = _Shared(b, n, c, base, *(np.asarray(value, float) for value in (service_s, service_scv, service_steps, spread, arrival_scv, packed)))  # fmt: skip
    rate = shared.rate()
    _, wide, behind, left = shared.response(rate)
    own = np.maximum(b - rate * behind, 0.0)
    return as_result(rate), as_result(own * wide * (1.0 - rate * shared.service) / left)


@dataclass(frozen=True, slots=True)
class _Shared:
    """An engine that serves prompts between the steps of b requests, as `shared_rate` states."""

    b: Floats
    n: Floats
    c: Floats
    base: Floats  # a step of none [s]
    service: Floats
    service_scv: Floats
    together: Floats  # steps of a prompt
    spread: Floats  # 1/(1 + cO^2)
    arrival_scv: Floats
    packed: Floats  # share of the service that adds up where several are served side by side

    def take(self, mask: Bools) -> _Shared:
        """Pick engines; a figure alike for all stays a number."""
        parts = (getattr(self, f.name) for f in fields(self))
        return _Shared(*(np.broadcast_to(part, mask.shape)[mask] if part.ndim else part for part in parts))

    def response(self, rate: Result) -> tuple[Result, Result, Result, Result]:
        """Evaluate (b/rate, D, e, share of time that neither prompts nor the requests' own weight takes)."""
        n, u, service = self.n, rate * self.service, self.service * self.packed
        clumps = dispersion(u * self.packed, self.service_scv, self.arrival_scv) - 1.0
        wide = 1.0 + clumps * self.spread * n / (n + np.maximum(self.together * clumps, 0.0))
        behind = left_behind_s(u * self.packed, service, self.service_scv, self.arrival_scv, self.together)
        left = np.maximum(1.0 - u - n * self.c * rate, 1e-9)
        return n * (self.base + self.c * wide) / left + behind, wide, behind, left

    def short(self, rate: Result) -> Result:
        """Compute the residual, positive where the rate keeps fewer than b requests in decode; it falls by 1/b at least as the rate grows."""
        return 1.0 / self.response(rate)[0] - rate / self.b

    def rate(self) -> Floats:
        """Solve for the rate by Ridders' method between no load and the rate without swings, which is the most, until each has converged [1/s]."""
        part, low = self, _NONE
        high: Result = self.b / (self.n * (self.base + self.c * self.b) + self.b * self.service)
        found, shape, place = np.zeros(0), (), None  # all rates, and where those stand that have not converged
        above, under = part.short(low), part.short(high)
        for _ in range(_ROUNDS):
            middle = 0.5 * (low + high)
            off = part.short(middle)
            rate = middle + (middle - low) * off / np.sqrt(np.maximum(off * off - above * under, 1e-300))
            miss = part.short(rate)
            if place is None:
                shape, found = np.shape(rate), np.array(rate).reshape(-1)
            else:
                found[place] = rate
            wrong = np.abs(miss) * part.b > _CLOSE * rate
            if not np.any(wrong):
                break
            low, above, high, under = _closer((low, above), (middle, off), (rate, miss), (high, under))
            if place is None or not np.all(wrong):
                part = part.take(wrong)
                low, above, high, under = (np.broadcast_to(a, wrong.shape)[wrong] for a in (low, above, high, under))
                place = np.flatnonzero(wrong) if place is None else place[wrong]
        return found.reshape(shape)


Bracketed = tuple[Result, Result]  # an argument and its residual


def _closer(low: Bracketed, middle: Bracketed, estimate: Bracketed, high: Bracketed) -> tuple[Result, Result, Result, Result]:  # fmt: skip
    """Narrow a bracket of a falling function by its middle and by an estimate: (low, its residual, high, its residual)."""
    (middle_at, off), (rate, miss) = middle, estimate
    below = off > 0
    inner_low, inner_above = np.where(below, middle_at, low[0]), np.where(below, off, low[1])
    inner_high, inner_under = np.where(below, high[0], middle_at), np.where(below, high[1], off)
    short = miss > 0
    return (
        np.where(short, np.maximum(rate, inner_low), inner_low), np.where(short, miss, inner_above),
        np.where(short, inner_high, np.minimum(rate, inner_high)), np.where(short, inner_under, miss),
    )  # fmt: skip


def place_wait(
    occupancy: ArrayLike,
    variance: ArrayLike,
    places: ArrayLike,
    rate: ArrayLike,
    most_rate: ArrayLike,
    arrival_scv: ArrayLike,
    stay_scv: ArrayLike,
) -> tuple[Result, Result]:
    """Predict the wait for one of a number of places whose occupancy swings about its mean: (chance, mean of those who wait [s]).

    Below the limit the number is gamma with share F and density f, above it the queue falls off exponentially with
    h = 2 (1 - rate/most)/variety per request; both join where all places are full:  p = f/(F h + f),  wait 1/(h most).
    Requests in places leave as they came, a stay earlier, so that whether one waits depends on the spread of stays hardly at all: variety ca^2 + 1.
    How long it waits does:  ca^2 + cs^2 + (1 - cs^2) q,  q = (1 - r)(n - 1)(sqrt(4 + 5 n) - 2)/(8 r n) up to 1, r = rate/most and n places, with 8 after simulations (16 is the mean over all).
    Shapes: broadcast. Units: occupancy and its variance [1], rates with so many requests and with all places full [1/s], squared
    coefficients of variation of arrivals and stays [1]. (1, inf) where rate >= most. Against simulations of M/G/n, 20 to 300 places, loads of 0.8 to 0.95, cs^2 from 0
    to 4: chance within 0.08, wait within 25 %. Tends to Erlang's formula for equal service rates and many places.
    Reference: Halfin and Whitt, Operations Research 29 (1981); Browne and Whitt, Piecewise-linear diffusion processes (1995), in
    Advances in Queueing; Cosmetatos, Opsearch 13 (1976) (M/D/n); Kimura, Queueing Systems 18 (1994) (M/G/n between M/D/n and M/M/n).

    >>> p, wait = place_wait(90.0, 90.0, 100.0, 90.0, 100.0, 1.0, 1.0)
    >>> round(float(p), 2), round(float(wait), 9), round(float(erlang_c(100, 90.0)), 2)
    (0.21, 0.1, 0.22)
    """
    rate, most = np.asarray(rate, float), np.maximum(np.asarray(most_rate, float), 1e-300)
    places = np.asarray(places, float)
    stable = (rate < most) & (np.asarray(occupancy) < places)
    load = np.where(stable, rate / most, 0.0)
    arrivals, stays = np.asarray(arrival_scv, float), np.asarray(stay_scv, float)
    fall = 2.0 * (1.0 - load) / (arrivals + 1.0)
    several = (places - 1.0) * (np.sqrt(4.0 + 5.0 * places) - 2.0) / (8.0 * places)
    fixed = np.minimum((1.0 - load) / np.maximum(load, 1e-12) * np.maximum(several, 0.0), 1.0)
    variety = np.maximum(arrivals + stays + (1.0 - stays) * fixed, 1e-6)
    deviation = np.sqrt(np.maximum(variance, 1e-12))
    k, skew = (places - np.asarray(occupancy, float)) / deviation, 2.0 * deviation / np.maximum(occupancy, 1e-12)
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        root = np.cbrt(np.maximum(1.0 + 0.5 * skew * k, 1e-12))  # Wilson and Hilferty: its cube root is nearly normal
        z = 3.0 * k / (root * root + root + 1.0) + skew / 6.0
        density = np.exp(-0.5 * z * z) / (np.sqrt(2.0 * np.pi) * deviation * root * root)
        chance = density / (ndtr(z) * fall + density)
    return as_result(np.where(stable, chance, 1.0)), as_result(
        np.where(stable, 0.5 * variety / ((1.0 - load) * most), np.inf)
    )


def gamma_quantile(quantile: ArrayLike, scv: ArrayLike) -> Result:
    """Compute the quantile of a gamma variable of mean one and given squared coefficient of variation:  c^2 x G^-1(1/c^2; q).

    Stands for lengths of which only mean and spread are known: 1 for c^2 = 0, exponential for c^2 = 1.
    Shapes: broadcast. Units: quantile, scv [1], result [1].
    Reference: Johnson, Kotz and Balakrishnan, Continuous Univariate Distributions 1, 2nd ed. (1994), chapter 17.

    >>> round(float(gamma_quantile(0.95, 1.0)), 4), float(gamma_quantile(0.95, 0.0))
    (2.9957, 1.0)
    """
    scv = np.asarray(scv, float)
    varied = scv > 1e-6
    safe = np.where(varied, scv, 1.0)
    return as_result(np.where(varied, safe * gammaincinv(1.0 / safe, np.asarray(quantile, float)), 1.0))


def closed_loop_response_s(customers: ArrayLike, service_s: ArrayLike, think_s: ArrayLike) -> Result:
    """Compute wait plus service at one server visited in turn by c customers with think time Z, by exact mean value analysis.

    R_n = S (1 + Q_(n-1)),  Q_n = n R_n/(R_n + Z)  for n = 1, ..., c, as an arrival meets the loop without itself. Of the c customers the number
    thinking is Poisson of mean Z/S cut off at c, and the server idles while all think (Erlang B):  R = c S/(1 - B(c, Z/S)) - Z,  the same for
    whole c; fractions interpolate. Where Z/S exceeds 1.5 c, by the series of 1/B, which does not cancel.
    Shapes: broadcast. Units: customers [1], service S and stay Z [s], result [s]. Exact for exponential service times and any think time.
    Reference: Reiser and Lavenberg, J. ACM 27 (1980) (mean value analysis); Gross and Harris, Fundamentals of Queueing Theory, 3rd ed. (1998),
    section 2.7 (finite sources).

    >>> round(float(closed_loop_response_s(10, 1.0, 0.0)), 6), round(float(closed_loop_response_s(2, 1.0, 1.0)), 6)
    (10.0, 1.5)
    """
    customers, service, think = np.broadcast_arrays(
        *(np.asarray(value, float) for value in (customers, service_s, think_s))
    )
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        offered = think / service
        known = np.isfinite(offered) & np.isfinite(customers)
        a, c = np.where(known, np.maximum(offered, 1e-300), 1.0), np.where(known, customers, 1.0)
        idle = gammaincc(c + 1.0, a)
        blocked = np.exp(c * np.log(a) - a - gammaln(c + 1.0)) / np.maximum(idle, 1e-300)
        found = np.clip(c / np.maximum(1.0 - blocked, 1e-300) - a, np.maximum(c - a, 1.0), c)
        # 1/B = 1 + c/a (1 + t_1),  t_1 = (c - 1)/a (1 + t_2), ...;  R/S = c - (c - 1)(1 + t_2)/(1 + t_1)
        rare = (a > _RARE * c) | ((idle < 1e-280) & (a > c))
        if np.any(rare):
            last = np.clip((c - _TERMS) / a, 0.0, 0.9999)
            second = last / (1.0 - last)  # as if all further terms were alike
            for others in range(_TERMS - 1, 1, -1):
                second = np.maximum(c - others, 0.0) / a * (1.0 + second)
            first = np.maximum(c - 1.0, 0.0) / a * (1.0 + second)
            found = np.where(rare, c - np.maximum(c - 1.0, 0.0) * (1.0 + second) / (1.0 + first), found)
        return as_result(np.where(known, service * found, np.where(service > 0.0, np.inf, service)))
