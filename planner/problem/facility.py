"""What a hall takes and what a system needs of it; what a place assures and a workload demands.

Only systems of our own stand in the site's hall. Rented ones, and APIs, are where their provider has them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planner.messages import Message

AIR, LIQUID = "air", "liquid"
FIT_TOL = 1e-9  # relative: so much more power than a rack may have still fits

CANNOT_COOL = Message.of("dropped.not_coolable").text()
RACK_TOO_WEAK = Message.of("dropped.rack_over_power").text()
NOT_ASSURED = Message.of("dropped.place_not_assured").text()


@dataclass(frozen=True, slots=True)
class RackFacts:
    """Racks of a system. `in_rack`: systems that one rack has room for, 1 where a system fills `racks` of them."""

    cooling: tuple[str, ...]  # any of them will do
    least_rack_w: float  # nameplate power of the fullest rack that the system cannot do without
    racks: int = 1
    in_rack: int = 1


@dataclass(frozen=True, slots=True)
class HallFacts:
    """Limits of a site's hall; `cooling`: what it has."""

    positions: float = math.inf
    rack_w: float = math.inf  # nameplate power of one rack
    cooling: tuple[str, ...] = (AIR, LIQUID)

    def cools(self, kinds: Sequence[str]) -> str:
        """Return what cools a system that takes any of these kinds: air where both take it, else liquid."""
        return AIR if AIR in kinds and AIR in self.cooling else LIQUID

    def refusal(self, rack: RackFacts) -> str:
        """Say why a system cannot stand in the hall; empty where it can."""
        if not set(rack.cooling) & set(self.cooling):
            return CANNOT_COOL
        return RACK_TOO_WEAK if rack.least_rack_w > self.rack_w * (1 + FIT_TOL) else ""

    def systems_in_rack(self, rack: RackFacts) -> int:
        """Count the systems that share one rack, by its room and its power; 1 where a system fills at least one."""
        if rack.in_rack == 1 or math.isinf(self.rack_w):
            return rack.in_rack
        return max(min(rack.in_rack, math.floor(self.rack_w * (1 + FIT_TOL) / rack.least_rack_w)), 1)

    def racks_per_system(self, rack: RackFacts) -> float:
        """Compute the racks that one system takes, below 1 where several share a rack: racks / systems in a rack."""
        return rack.racks / self.systems_in_rack(rack)


@dataclass(frozen=True, slots=True)
class Assured:
    """Assurances of a place, or demands on one."""

    sole_tenant: bool = False
    audit: tuple[str, ...] = ()

    def covers(self, demanded: Assured) -> bool:
        """Tell whether all that is demanded is assured."""
        return (self.sole_tenant or not demanded.sole_tenant) and set(demanded.audit) <= set(self.audit)


NOTHING = Assured()
OPEN = HallFacts()


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """Power usage effectiveness (PUE) of a site by what cools a system: power at the meter over power of the system."""

    air: float
    liquid: float

    def of(self, kinds: Sequence[str], hall: HallFacts) -> float:
        """Return that of a system that takes any of these kinds of cooling, in a hall."""
        return self.air if hall.cools(kinds) == AIR else self.liquid
