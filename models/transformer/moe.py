"""Mixture of experts: which traffic and which load routing makes. Times of links and GEMMs are elsewhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from models.arrays import Result, as_result


def distinct_destinations(topk: ArrayLike, places: ArrayLike) -> Result:
    """Compute the mean number of distinct ranks that hold the k experts of a token, of n ranks:  n (1 - (1 - 1/n)^k).

    Shapes: broadcast. Units: [1] throughout. Experts are spread evenly and drawn independently. At most min(k, n).
    Reference: Feller, An Introduction to Probability Theory, volume 1, section IV.2; DeepSeek-V3, arXiv:2412.19437, section
    3.2.2 (a token crosses to a node once, however many of its experts lie there).

    >>> float(distinct_destinations(8, 1)), round(float(distinct_destinations(8, 8)), 2)
    (1.0, 5.25)
    """
    n = np.asarray(places, float)
    return as_result(n * (1.0 - (1.0 - 1.0 / n) ** np.asarray(topk, float)))


def dispatch_copies(
    topk: int, experts: int, ep: ArrayLike, domain: ArrayLike, *,
    deduplicated: bool = False, consecutive: bool = False, domain_limit: ArrayLike = 0,
) -> tuple[Result, Result]:  # fmt: skip
    """Count the copies of a token that one dispatch sends (to chips of the same domain, over the NIC).

    R = min(EP, D) ranks of the group in a domain, n = EP / R domains.
    Plain: k (R - 1)/R inside and k (n - 1)/n outside. Deduplicated: distinct ranks and distinct domains instead of k.
    Consecutive routing (neighbouring experts together): max(1, k / experts per rank) inside, 1 outside, each times the same share.
    A domain limit caps the domains that a token may visit, hence the deduplicated copies (0: no limit).
    Shapes: broadcast. Units: [1] throughout. Zero for EP 1.
    Reference: Lepikhin et al., GShard, arXiv:2006.16668, section 3.2; DeepSeek-V3, arXiv:2412.19437, section 3.2.2.

    >>> plain, fewer = dispatch_copies(8, 256, 64, 8), dispatch_copies(8, 256, 64, 8, deduplicated=True)
    >>> [round(float(copies), 2) for copies in (*plain, *fewer)]
    [7.0, 7.0, 4.59, 4.59]
    """
    ep = np.asarray(ep, float)
    ranks = np.minimum(ep, domain)
    domains = np.maximum(1.0, ep / ranks)
    inside: Result
    outside: Result
    if consecutive:
        inside, outside = np.maximum(1.0, topk * ep / experts), np.ones_like(domains)
    elif deduplicated:
        inside, outside = distinct_destinations(topk, ranks), distinct_destinations(topk, domains)
        limit = np.asarray(domain_limit, float)
        outside = np.where(limit > 0.0, np.minimum(outside, limit), outside)
    else:
        inside, outside = np.full_like(ranks, topk), np.full_like(domains, topk)
    # A rank or domain is not visited more often than there are of them, nor a token sent more often than it has experts.
    inside = np.minimum(inside, topk)
    return as_result(inside * (ranks - 1.0) / ranks), as_result(outside * (domains - 1.0) / domains)
