"""Input of the spread and zone failure blocks: zones of sites, and how each workload must be spread over them.

Part of `solvers.model.data.PlanData`, which names the sizes. Not here: the rows (`solvers.model.spread`, `solvers.model.zone_failure`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from solvers.arrays import Bools, Floats, Ints, no_ints
from solvers.model.checks import wrong_indices, wrong_shapes


@dataclass(frozen=True, slots=True, kw_only=True)
class SpreadData:
    """How each workload [W] is spread over zones.

    `largest_share`: most of a slot's requests in one zone (1: any). `zones`: least number of zones that count. `least_share`: share of
    every slot's requests from which a zone counts. `survives`: all demand can be served without any one zone.
    """

    site_zone: Ints  # [R]
    largest_share: Floats
    zones: Ints
    least_share: Floats
    survives: Bools
    tried_slots: Ints = field(default_factory=lambda: no_ints(0))  # slots in which a zone fails

    @property
    def zone_count(self) -> int:
        """Number of zones."""
        return int(self.site_zone.max(initial=-1)) + 1

    def problems(self, workloads: int, sites: int, slots: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        if self.site_zone.shape != (sites,) or (self.site_zone < 0).any():
            yield f"spread.site_zone: expected {sites} zones"
        names = ("largest_share", "zones", "least_share", "survives")
        yield from wrong_shapes(self, dict.fromkeys(names, (workloads,)), "spread.")
        for name in ("largest_share", "least_share"):
            values = getattr(self, name)
            if values.size and not ((values > 0) & (values <= 1)).all():
                yield f"spread.{name}: expected shares above 0 and up to 1"
        yield from wrong_indices((("tried_slots", self.tried_slots, 0, slots),), "spread.")
