"""Hit rates of least-recently-used caches: popular items, and sessions that come back."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Floats, Result, as_result

_GROUPS, _ROUNDS = (
    256,
    50,
)  # groups of ranks of nearly equal popularity; rounds of halving the interval of a characteristic time


def zipf_groups(prefixes: float, exponent: float) -> tuple[Floats, Floats]:
    """Group the ranks of Zipf popularity: (number of prefixes, chance of each), chances adding up to one over all prefixes:  p_k ~ k^-a.

    The first ranks stand alone, later ones in groups of growing width with their mean chance, so that any population takes
    the same time. Shapes: scalars in, two arrays out. Units: [1]. The sum over a group is the integral with half-integer ends.
    Reference: Breslau et al., Web Caching and Zipf-like Distributions, INFOCOM 1999, section 3.

    >>> number, chance = zipf_groups(1e6, 0.8)
    >>> float(number.sum()), round(float((number * chance).sum()), 12)
    (1000000.0, 1.0)
    """
    n, a = float(prefixes), float(exponent)
    alone = np.arange(1.0, min(n, _GROUPS) + 1.0)
    ends = np.unique(np.rint(np.geomspace(alone[-1], max(n, alone[-1]), _GROUPS)))
    number = np.concatenate([np.ones(alone.size), np.diff(ends)])
    low, high = ends[:-1] + 0.5, ends[1:] + 0.5
    mass = np.log(high / low) if a == 1.0 else (high ** (1.0 - a) - low ** (1.0 - a)) / (1.0 - a)
    chance = np.concatenate([alone**-a, mass / np.diff(ends)])
    return number, chance / (number * chance).sum()


def zipf_hit_rate(places: ArrayLike, prefixes: float, exponent: float) -> Result:
    """Predict the hit rate of a least-recently-used cache with room for C of N prefixes of Zipf popularity:  sum_i p_i (1 - exp(-p_i t)).

    The characteristic time t solves  sum_i (1 - exp(-p_i t)) = C;  requests are independent of each other.
    Shapes: as places [1]; prefixes N [1], exponent [1]; result [1]. Exact as N grows; within 1-2 points from N of a few hundred.
    Reference: Che, Tung and Wang, IEEE JSAC 20 (2002), section III; Fricker, Robert and Roberts, ITC 24 (2012) (why it is exact).

    >>> rate = zipf_hit_rate(np.array([0.0, 100.0, 1000.0]), 1000, 1.0)
    >>> bool(rate[0] == 0.0 and 0.5 < rate[1] < 0.7 and rate[2] == 1.0)
    True
    """
    number, chance = zipf_groups(prefixes, exponent)
    places = np.asarray(places, float)
    inside = np.clip(places, 0.0, prefixes)
    wanted = np.where((inside > 0) & (inside < prefixes), inside, 0.5 * prefixes)[..., None]
    # A cache that never forgets holds no more than t prefixes after t requests, which bounds t from below; it is near full at 50 / p_min.
    low, high = np.log(wanted), np.full_like(wanted, np.log(50.0 / chance[-1]))
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        few = (-np.expm1(-chance * np.exp(middle)) * number).sum(axis=-1, keepdims=True) < wanted
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    rate = (-np.expm1(-chance * np.exp(high)) * number * chance).sum(axis=-1)
    return as_result(np.select([inside <= 0, inside >= prefixes], [0.0, 1.0], rate))


def session_hit_rate(places: ArrayLike, requests_per_s: ArrayLike, requests: float, gap_s: float) -> Result:
    """Predict the hit rate of a least-recently-used cache under sessions:  r (1 - exp(-t / g)),  r = 1 - 1/n the share of repeats.

    A prefix stays until it is asked for again or for t: C = rate [r g (1 - exp(-t/g)) + (1 - r) t] gives the characteristic time t,
    with exponential gaps of mean g and sessions of n requests. Shapes: places C [1] and rate [1/s] broadcast; result [1].
    Exact as C grows.
    Reference: Fagin, J. Comput. Syst. Sci. 14 (1977); Garetto, Leonardi and Martina, ACM TOMPECS 1 (2016), section 3 (renewal traffic).

    >>> [round(float(session_hit_rate(c, 1.0, 5.0, 10.0)), 3) for c in (0.0, 3.0, 1e9)]
    [0.0, 0.232, 0.8]
    """
    repeats = 1.0 - 1.0 / requests
    room = np.asarray(places, float) / np.maximum(np.asarray(requests_per_s, float), 1e-300) / gap_s  # in gaps
    # The residence grows by at most 1 per t, so that t is no less than the room; and at least by 1 - r.
    low, high = room.astype(float), room / max(1.0 - repeats, 1e-12)
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        few = repeats * -np.expm1(-middle) + (1.0 - repeats) * middle < room
        low, high = np.where(few, middle, low), np.where(few, high, middle)
    return as_result(repeats * -np.expm1(-high))
