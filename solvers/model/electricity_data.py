"""The input of the electricity and the deferral blocks: meters with their prices, contracts and batteries, and the order of slots.

Part of `solvers.model.data.PlanData`, where the sizes are named. Not here: what is made of it (`solvers.model.electricity`, `solvers.model.deferral`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from solvers.arrays import Bools, Floats, Ints

Functionals = Mapping[str, Floats]


def _ints(*shape: int) -> Ints:
    return np.zeros(shape, dtype=np.int64)


def _floats(*shape: int) -> Floats:
    return np.zeros(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chronology:
    """`next` [T]: the slot after each, in rings; `step_s` [T]: how long a slot lasts each time that it comes round."""

    next: Ints
    step_s: Floats

    def problems(self, slots: int) -> Iterator[str]:
        if self.next.shape != (slots,) or not np.array_equal(np.sort(self.next), np.arange(slots)):
            yield "order.next: expected every slot to follow one other"
        if self.step_s.shape != (slots,) or not (self.step_s > 0).all():
            yield f"order.step_s: expected {slots} values above 0"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeterData:
    """Sizes: M meters, N monthly peaks, C contracts, B batteries, T slots. Powers in W at the meter; costs per W over the slot.

    A contract delivers at most `contract_share` of its capacity in each slot; what is not taken is curtailed.
    """

    meter_site: Ints  # [M] each site at most once
    grid_upper_w: Floats  # [M]
    grid_cost: Functionals = field(default_factory=dict)  # [M, T]

    peak_meter: Ints = field(default_factory=lambda: _ints(0))
    peak_slot: Bools = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))  # [N, T]
    peak_cost: Functionals = field(default_factory=dict)  # [N] per W

    contract_meter: Ints = field(default_factory=lambda: _ints(0))
    contract_least_w: Floats = field(default_factory=lambda: _floats(0))
    contract_upper_w: Floats = field(default_factory=lambda: _floats(0))
    contract_share: Floats = field(default_factory=lambda: _floats(0, 0))  # [C, T]
    contract_cost: Functionals = field(default_factory=dict)  # [C] per W of capacity
    taken_cost: Functionals = field(default_factory=dict)  # [C, T]

    battery_meter: Ints = field(default_factory=lambda: _ints(0))
    battery_least_j: Floats = field(default_factory=lambda: _floats(0))
    battery_upper_j: Floats = field(default_factory=lambda: _floats(0))
    battery_least_w: Floats = field(default_factory=lambda: _floats(0))
    battery_upper_w: Floats = field(default_factory=lambda: _floats(0))
    battery_efficiency: Floats = field(default_factory=lambda: _floats(0))  # of one way
    battery_energy_cost: Functionals = field(default_factory=dict)  # [B] per J
    battery_power_cost: Functionals = field(default_factory=dict)  # [B] per W

    def parts(self) -> tuple[Functionals, ...]:
        return (
            self.grid_cost,
            self.peak_cost,
            self.contract_cost,
            self.taken_cost,
            self.battery_energy_cost,
            self.battery_power_cost,
        )

    def metered(self, sites: int) -> Bools:
        """[R]"""
        result = np.zeros(sites, dtype=bool)
        result[self.meter_site] = True
        return result

    def problems(self, sites: int, slots: int) -> Iterator[str]:
        """Words for every broken shape, index or number."""
        M, N, C, B = len(self.meter_site), len(self.peak_meter), len(self.contract_meter), len(self.battery_meter)
        shapes: dict[str, tuple[int, ...]] = {
            "grid_upper_w": (M,),
            "peak_slot": (N, slots),
            "contract_share": (C, slots),
        }
        shapes |= {f"contract_{name}": (C,) for name in ("least_w", "upper_w")}
        shapes |= {f"battery_{name}": (B,) for name in ("least_j", "upper_j", "least_w", "upper_w", "efficiency")}
        for name, shape in shapes.items():
            values = getattr(self, name)
            if values.shape != shape and (values.size or 0 not in shape):
                yield f"meters.{name}: shape {values.shape}, expected {shape}"
            elif values.size and not (values >= 0).all():
                yield f"meters.{name}: expected values of at least 0"
        costs = (
            ("grid_cost", (M, slots), True), ("peak_cost", (N,), False), ("contract_cost", (C,), True), ("taken_cost", (C, slots), True),
            ("battery_energy_cost", (B,), False), ("battery_power_cost", (B,), False),
        )  # fmt: skip
        for name, shape, signed in costs:
            for functional, values in getattr(self, name).items():
                if values.shape != shape or not np.isfinite(values).all() or (not signed and (values < 0).any()):
                    yield f"meters.{name}[{functional}]: expected finite values of shape {shape}" + (
                        "" if signed else ", at least 0"
                    )
        for name, values, high in (
            ("meter_site", self.meter_site, sites), ("peak_meter", self.peak_meter, M), ("contract_meter", self.contract_meter, M),
            ("battery_meter", self.battery_meter, M),
        ):  # fmt: skip
            if values.size and (values.min() < 0 or values.max() >= high):
                yield f"meters.{name}: index outside [0, {high})"
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
