"""Input of the block that limits how many parts a plan has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Bools, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLimits:
    """Limits on sites, on kinds of systems at a site, and on the systems of a kind; `counted` [U]: holdings that they concern.

    `order` [U]: the order that a holding belongs to, -1 for none; `order_least` [O]: systems that an order has at least, if it is placed;
    `order_placed` [O]: whether it is placed already. None: no order is.
    """

    counted: Bools
    most_sites: float = float("inf")
    most_kinds: float = float("inf")
    least_systems: int = 1
    order: Ints | None = None
    order_least: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    order_placed: Bools | None = None

    @property
    def limited(self) -> bool:
        """Whether sites, kinds or systems of a kind are limited."""
        return not self.most_sites == self.most_kinds == float("inf") or self.least_systems > 1

    def problems(self, holdings: int) -> Iterator[str]:
        """Describe wrong shapes and values."""
        if self.counted.shape != (holdings,):
            yield f"parts.counted: expected {holdings} values"
        if min(self.most_sites, self.most_kinds) < 0 or self.least_systems < 1:
            yield "parts: expected limits of at least 0, and at least one system"
        if self.order is not None and (
            self.order.shape != (holdings,) or self.order.max(initial=-1) >= len(self.order_least)
        ):
            yield f"parts.order: expected {holdings} indices of orders"
        if self.order_placed is not None and self.order_placed.shape != self.order_least.shape:
            yield f"parts.order_placed: expected {len(self.order_least)} values"
