"""The block `components` of an offer: the price of a system from its parts."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from planner.messages import Message
from planner.spec.base import Block
from planner.spec.quantities import Amount, BytePrice, Name, Real

Yield = Annotated[Real, Field(gt=0, le=1)]


class Components(Block):
    """Parts of a bought system, from which its price follows."""

    dies: Amount
    """All processed dies of one chip, before they are tested."""
    die_yield: Yield = 1.0
    """Share of the dies that are good."""
    hbm: Name | None = None
    """Memory of the catalog (`components`), of a supplier; its price and yield are taken."""
    hbm_price: BytePrice | None = None
    """Price of good memory, in place of `hbm`."""
    hbm_yield: Yield | None = None
    """Yield of `hbm` in place of the supplier's, which moves its price in inverse proportion."""
    package: Amount | None = None
    """Interposer, substrate and assembly of one chip; in the other parts if omitted."""
    package_yield: Yield = 1.0
    """Share of the assembled packages that are good; a bad one loses all that is in it."""
    board: Amount | None = None
    """Card or module of one chip, without the package; in the other parts if omitted."""
    margin: Annotated[Real, Field(ge=0, le=100)] = 0.0
    """What the maker of the chip adds, as a share of its cost."""
    server: Amount | None = None
    """What a system costs beyond its chips; nothing if omitted."""

    @model_validator(mode="after")
    def _one_memory(self) -> Components:
        if (self.hbm is None) == (self.hbm_price is None):
            raise ValueError(Message.of("spec.hbm_or_price").text())
        if self.hbm_yield is not None and self.hbm is None:
            raise ValueError(Message.of("spec.hbm_yield_needs_hbm").text())
        return self
