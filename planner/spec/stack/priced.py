"""What every question of `planner/design/` states of money: its currency, electricity, and prices of systems."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from planner.spec.base import Block
from planner.spec.quantities import EnergyPrice, Real, is_purchase, offer_price


class Priced(Block):
    """Currency and electricity of a design question."""

    currency: Annotated[str, Field(pattern="^[A-Z]{3}$")] = "USD"
    """Currency of what is printed."""
    electricity: EnergyPrice | None = None
    """Price of electricity; the catalog's default if omitted."""
    pue: Annotated[Real, Field(ge=1, le=5)] | None = None
    """Power at the meter over power of the systems; the catalog's default if omitted."""


def _readable(price: str) -> str:
    offer_price(price, is_purchase(price), chips=1)
    return price


SystemPrice = Annotated[str, AfterValidator(_readable)]
"""Purchase such as "310000 USD", or rent such as "98 USD/h", of one system."""
