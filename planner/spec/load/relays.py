"""Block of a spec about changes of what a system runs in the course of a day."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import MOST_MONEY, Money, Real

LoadPrice = Annotated[tuple[float, str], Money("", "5 USD", 0, MOST_MONEY)]


class Operation(Block):
    """Cost and ceiling of changing what systems run: a worker that starts to serve loads its weights on its systems, of whole replicas only.

    Both count on every calendar; a day is 24 hours within one window."""

    relay_cost: LoadPrice | None = None
    """Cost of one system that loads the weights of another deployment, beside the work that is lost meanwhile; if omitted, what the system costs (its rent, or its price
    spread evenly over its life) in the time until the worker serves and in 1 % of an hour more. `null`: nothing."""
    relays_per_day: Annotated[Real, Field(ge=0, le=1440)] | None = 2.0
    """Most loads of a system in a day, on average over the systems of an offer at a site; systems that are paid for by the hour load as often as they
    start. 0: a deployment keeps its systems all day. `null`: any number."""
