"""Program data of operating points with pools at two sites: what they draw at both, and what they send over lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.arrays import sum_of
from planner.candidates.points import OperatingPoint, Use
from planner.formulate.costs import Rates
from planner.money import components
from planner.money.components import REPLICA
from planner.money.terms import Flowing
from solvers.model.block_data.exchange import ExchangeData


def exchange_data(points: Sequence[OperatingPoint], site_of: Mapping[str, int]) -> ExchangeData | None:
    """Build the data of points with pools at two sites; None where there are none.

    Of what other traffic leaves of a line, caches take `CACHE_LOAD` at most, so that each counts for more than its bytes; a job takes the rate that
    it reserves.
    """
    apart = [(p, point) for p, point in enumerate(points) if point.exchange is not None]
    if not apart:
        return None
    sent = [
        (p, channel, rate)
        for p, point in apart
        if point.exchange is not None
        for line, side in point.exchange.way.uses
        for channel, rate in zip(
            (2 * line + side, 2 * line + 1 - side), point.exchange.kept(point.capacity), strict=True
        )
    ]
    return ExchangeData(
        point=np.array([p for p, _ in apart], dtype=np.int64),
        site=np.array([site_of[point.sites[1]] for _, point in apart], dtype=np.int64),
        power_w=np.array([drawn_w(point, point.sites[1]) for _, point in apart], dtype=float),
        uses=np.array([(p, channel) for p, channel, _ in sent], dtype=np.int64).reshape(-1, 2),
        uses_rate=np.array([rate for *_, rate in sent], dtype=float),
    )


def own_last(point: OperatingPoint) -> list[Use]:
    """List the pools of a point, those at its own site last."""
    return sorted(point.uses, key=lambda use: use.option.site.region == point.site)


def drawn_w(point: OperatingPoint, site: str) -> float:
    """Add up what the pools of a replica at a site draw above idle, of our own systems, at the meter [W]."""
    here = (use for use in point.uses if use.option.owned and use.option.site.region == site)
    return sum_of(use.extra_it_w * use.option.pue for use in here)


def exchange_terms(points: Sequence[OperatingPoint], rates: Rates) -> list[Flowing]:
    """Build the terms of the bytes that a replica with pools at two sites sends over lines with a price per byte: caches and prompts, or weights and responses."""
    paid = [
        (p, point, price)
        for p, point in enumerate(points)
        if point.exchange is not None and (price := point.exchange.way.price_per_byte)
    ]
    sent = {p: sum_of(point.exchange.sent(point.capacity)) for p, point, _ in paid if point.exchange}
    return [
        Flowing(
            component=components.EGRESS.key,
            for_bytes=True,
            decision=REPLICA,
            at=np.array([p for p, *_ in paid], dtype=np.int64),
            places=tuple((point.sites[1], point.exchange.way.kind, "") for _, point, _ in paid if point.exchange),
            dates=rates.dates,
            workload=tuple(point.workload.name for _, point, _ in paid),
            per_unit=np.array([sent[p] * price for p, _, price in paid], dtype=float),
            profile=rates.worth[None, :],
            follows=np.zeros(len(paid), dtype=np.int64),
        )
    ]
