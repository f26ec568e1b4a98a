"""Input of the electricity and deferral blocks: meters with their prices, contracts and batteries, and the order of slots.

Part of `solvers.model.data.PlanData`, which names the sizes. Not here: the rows (`solvers.model.electricity`, `solvers.model.deferral`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Bools, Floats, Functionals, Ints, no_bools, no_floats, no_ints
from solvers.model.checks import wrong_costs, wrong_indices


@dataclass(frozen=True, slots=True, kw_only=True)
class Chronology:
    """`next` [T]: the slot that follows each, in rings; `step_s` [T]: length of a slot each time that it occurs."""

    next: Ints
    step_s: Floats

    def problems(self, slots: int) -> Iterator[str]:
        """Describe an order that is no permutation, and lengths that are not positive."""
        if self.next.shape != (slots,) or not np.array_equal(np.sort(self.next), np.arange(slots)):
            yield "order.next: expected every slot to follow one other"
        if self.step_s.shape != (slots,) or not (self.step_s > 0).all():
            yield f"order.step_s: expected {slots} values above 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterData:
    """Electricity of sites where it is a decision. Sizes: M meters, N monthly peaks, C contracts, B batteries, T slots.

    Powers are in W at the meter; costs of power are per W over the slot. A contract delivers at most `contract_share` of its capacity in
    each slot; the rest is curtailed.
    """

    meter_site: Ints  # [M] each site at most once
    grid_upper_w: Floats  # [M]
    grid_cost: Functionals = field(default_factory=dict)  # [M, T]

    peak_meter: Ints = field(default_factory=lambda: no_ints(0))
    peak_slot: Bools = field(default_factory=lambda: no_bools(0, 0))  # [N, T]
    peak_grid: Bools = field(
        default_factory=lambda: no_bools(0)
    )  # [N] purchases from the grid count, too; all if empty
    peak_cost: Functionals = field(default_factory=dict)  # [N] per W

    contract_meter: Ints = field(default_factory=lambda: no_ints(0))
    contract_least_w: Floats = field(default_factory=lambda: no_floats(0))
    contract_upper_w: Floats = field(default_factory=lambda: no_floats(0))
    contract_share: Floats = field(default_factory=lambda: no_floats(0, 0))  # [C, T]
    contract_passes: Bools = field(
        default_factory=lambda: no_bools(0)
    )  # [C] what is taken passes the connection; none if empty
    contract_cost: Functionals = field(default_factory=dict)  # [C] per W of capacity
    taken_cost: Functionals = field(default_factory=dict)  # [C, T]

    battery_meter: Ints = field(default_factory=lambda: no_ints(0))
    battery_least_j: Floats = field(default_factory=lambda: no_floats(0))
    battery_upper_j: Floats = field(default_factory=lambda: no_floats(0))
    battery_least_w: Floats = field(default_factory=lambda: no_floats(0))
    battery_upper_w: Floats = field(default_factory=lambda: no_floats(0))
    battery_efficiency: Floats = field(default_factory=lambda: no_floats(0))  # one way
    battery_energy_cost: Functionals = field(default_factory=dict)  # [B] per J
    battery_power_cost: Functionals = field(default_factory=dict)  # [B] per W

    def parts(self) -> tuple[Functionals, ...]:
        """All costs."""
        return (
            self.grid_cost,
            self.peak_cost,
            self.contract_cost,
            self.taken_cost,
            self.battery_energy_cost,
            self.battery_power_cost,
        )

    def passing(self, meter: int) -> Ints:
        """Return the contracts of a meter whose energy passes the connection."""
        return (
            np.flatnonzero((self.contract_meter == meter) & self.contract_passes)
            if self.contract_passes.size
            else no_ints(0)
        )

    def metered(self, sites: int) -> Bools:
        """[R]: the site has a meter."""
        result = np.zeros(sites, dtype=bool)
        result[self.meter_site] = True
        return result

    def problems(self, sites: int, slots: int) -> Iterator[str]:
        """Describe wrong shapes, indices and values."""
        M, N, C, B = len(self.meter_site), len(self.peak_meter), len(self.contract_meter), len(self.battery_meter)
        yield from self._shape_problems(M, N, C, B, slots)
        signed = {
            "grid_cost": (self.grid_cost, (M, slots)),
            "contract_cost": (self.contract_cost, (C,)),
            "taken_cost": (self.taken_cost, (C, slots)),
        }
        unsigned = {
            "peak_cost": (self.peak_cost, (N,)),
            "battery_energy_cost": (self.battery_energy_cost, (B,)),
            "battery_power_cost": (self.battery_power_cost, (B,)),
        }
        yield from wrong_costs(signed, "meters.")
        yield from wrong_costs(unsigned, "meters.", least=0.0)
        ranges = (
            ("meter_site", self.meter_site, 0, sites),
            ("peak_meter", self.peak_meter, 0, M),
            ("contract_meter", self.contract_meter, 0, M),
            ("battery_meter", self.battery_meter, 0, M),
        )
        yield from wrong_indices(ranges, "meters.")
        if len(set(self.meter_site.tolist())) < M:
            yield "meters.meter_site: a site has one meter"
        for low, high in (
            ("contract_least_w", "contract_upper_w"),
            ("battery_least_j", "battery_upper_j"),
            ("battery_least_w", "battery_upper_w"),
        ):
            if (getattr(self, low) > getattr(self, high)).any() or not np.isfinite(getattr(self, high)).all():
                yield f"meters.{high}: expected finite values of at least {low}"
        if B and not ((self.battery_efficiency > 0) & (self.battery_efficiency <= 1)).all():
            yield "meters.battery_efficiency: expected values above 0 and up to 1"

    def _shape_problems(self, meters: int, peaks: int, contracts: int, batteries: int, slots: int) -> Iterator[str]:
        shapes: dict[str, tuple[int, ...]] = {
            "grid_upper_w": (meters,),
            "peak_slot": (peaks, slots),
            "contract_share": (contracts, slots),
        }
        shapes |= {"contract_passes": (contracts,)} if self.contract_passes.size else {}
        shapes |= {"peak_grid": (peaks,)} if self.peak_grid.size else {}
        shapes |= {f"contract_{name}": (contracts,) for name in ("least_w", "upper_w")}
        shapes |= {
            f"battery_{name}": (batteries,) for name in ("least_j", "upper_j", "least_w", "upper_w", "efficiency")
        }
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values.shape != shape and (values.size or 0 not in shape):
                yield f"meters.{name}: shape {values.shape}, expected {shape}"
            elif values.size and not (values >= 0).all():
                yield f"meters.{name}: expected values of at least 0"
