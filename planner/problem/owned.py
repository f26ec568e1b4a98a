"""Facts of systems that are owned, or rented, already, and of systems that a provider takes away."""

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

    def runs_from_s(self, region: str) -> float:
        """Return when systems run in a region [s]: at once at home, after the move elsewhere."""
        return 0.0 if self.at_home(region) else self.move_s


@dataclass(frozen=True, slots=True)
class RentedFacts:
    """When the systems of an offer may be given back; times from the start of the horizon."""

    until_s: float  # end of the contract
    notice_s: float  # from notice until they go back
    extension_price: float | None = (
        None  # per system and second beyond the end, in the spec's currency; None where there is no extension
    )

    @property
    def earliest_s(self) -> float:
        """Return the first moment at which systems may go back [s]: after the notice, or at the end of the contract."""
        return min(self.notice_s, self.until_s)

    @property
    def latest_s(self) -> float:
        """Return the last moment at which systems go back [s]; inf where they may be kept beyond the end."""
        return self.until_s if self.extension_price is None else math.inf


@dataclass(frozen=True, slots=True)
class SpotFacts:
    """Mean time until a spot system is taken away, and until another replaces it; `headroom`: None where nothing is served on it."""

    interval_s: float
    wait_s: float
    headroom: float | None
