"""Facts of systems that are owned already."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OwnedFacts:
    """Where the systems of an offer stand, how old they are, and what they are worth, per unit of their price when new."""

    region: str
    age_years: float
    worth: float  # at the start of the horizon
    move: float  # cost of moving one to another site
    topology: str = ""  # that joins them; empty: any of the site's
    book_value: float | None = None  # book value of one system, in the spec's currency
    move_s: float = 0.0  # from the start of the horizon until moved systems run
    until_s: float = math.inf  # end of the lease

    def at_home(self, region: str) -> bool:
        """Tell whether the systems stay where they stand."""
        return region == self.region
