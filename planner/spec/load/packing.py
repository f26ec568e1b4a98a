"""Block of a spec about how workers are packed on systems."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from planner.spec.base import Block
from planner.spec.quantities import Real


class Packing(Block):
    """Limit on how full the systems that serve may be."""

    free: Annotated[Real, Field(ge=0, le=0.9)] = 0.0
    """Share of the systems that serve which stays free, so that workers find room without others moving."""
