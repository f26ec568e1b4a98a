"""What the solver chose of electricity, cleared of its rounding; what it costs and emits, and the plan's rows of it.

`planner.verify.electricity` adds the same up again from the plan document, without this code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from planner.formulate.electricity import charged_peaks
from planner.problem.facts import Problem
from solvers.model.electricity_data import MeterData

BOUGHT, PEAK, CONTRACT, STORAGE = ELECTRICITY_LINES = ("energy", "demand charge", "ppa", "battery")
SMALL = 1e-9  # watts below this share of a site's largest load are the solver's rounding

Line = tuple[str, str, str, str]  # component, site, system, how


class ElectricityDecisions:
    """Arrays over meters, contracts or batteries, and slots; the order is that of `solvers.model.electricity_data`."""

    def __init__(self, problem: Problem, meters: MeterData, values: Mapping[str, np.ndarray], own_w: np.ndarray):
        """`own_w` [site, slot]: what our own systems draw at the meter."""
        self.problem, self.meters, self.load = problem, meters, own_w[meters.meter_site]
        self.sites = [problem.sites[r] for r in meters.meter_site]
        self.contracts = [c for site in self.sites for c in site.electricity.contracts]
        usual = np.maximum(self.load.max(axis=1, initial=0.0), 1.0) * SMALL
        clear = lambda block, of: np.where(values[block] > usual[of][:, None], values[block], 0.0)
        self.capacity_w = np.clip(values["contract"], meters.contract_least_w, meters.contract_upper_w)
        taken = np.minimum(clear("taken", meters.contract_meter), meters.contract_share * self.capacity_w[:, None])
        self.charge, self.discharge, self.stored = self._cycles(
            clear("charge", meters.battery_meter), clear("discharge", meters.battery_meter)
        )
        need = self.load.copy()
        np.add.at(need, meters.battery_meter, self.charge - self.discharge)
        np.subtract.at(need, meters.contract_meter, taken)
        for c, m in enumerate(
            meters.contract_meter
        ):  # what is missing to nothing at all from the grid, for the rounding's sake
            back = np.where(np.abs(need[m]) <= usual[m], np.maximum(-taken[c], need[m]), np.minimum(need[m], 0.0))
            back = np.where(taken[c] > 0, np.maximum(back, -taken[c]), 0.0)
            taken[c] += back
            need[m] -= back
        self._as_small_as_can_be(taken)
        self.taken, self.grid = taken, np.where(need > usual[:, None], need, 0.0)

    def _as_small_as_can_be(self, taken: np.ndarray) -> None:
        """Sizes that nothing is paid for are those that are needed."""
        meters, largest = self.meters, lambda block: block.max(axis=1, initial=0.0)
        needed = np.divide(taken, meters.contract_share, out=np.zeros_like(taken), where=meters.contract_share > 0)
        paid = np.array([contract.pays_produced for contract in self.contracts], dtype=bool)
        self.capacity_w = np.where(paid, self.capacity_w, np.maximum(meters.contract_least_w, largest(needed)))
        self.energy_j = np.maximum(meters.battery_least_j, largest(self.stored))
        self.power_w = np.maximum(meters.battery_least_w, largest(self.charge + self.discharge))

    def _cycles(self, charge: np.ndarray, discharge: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Charge made to fit discharge in every ring of slots, and the energy stored at the start of each slot, 0 at the least."""
        calendar, stored = self.problem.calendar, np.zeros_like(charge)
        for b, eta in enumerate(self.meters.battery_efficiency):
            for ring in rings(calendar.next):
                step = calendar.step_s[ring]
                inward, outward = float(step @ charge[b, ring]) * eta, float(step @ discharge[b, ring]) / eta
                if inward <= 0 or outward <= 0:
                    charge[b, ring] = discharge[b, ring] = 0.0
                    continue
                charge[b, ring] *= outward / inward
                stored[b, ring] = filling(charge[b, ring], discharge[b, ring], step, float(eta))
        return charge, discharge, stored

    # -- amounts ---------------------------------------------------------------------------------------------------

    def costs(self) -> Iterator[tuple[Line, float]]:
        calendar, meters = self.problem.calendar, self.meters
        weight = calendar.seconds * calendar.discount
        for m, site in enumerate(self.sites):
            yield (BOUGHT, site.region, "", ""), float(self.grid[m] @ (site.price_per_j[calendar.hour] * weight))
            if site.electricity.demand_charge:
                yield (PEAK, site.region, "", ""), sum(row["cost"] for row in self._peaks(m))
        for c, contract in enumerate(self.contracts):
            paid = self.capacity_w[c] * meters.contract_share[c] if contract.pays_produced else self.taken[c]
            yield (
                (CONTRACT, self.sites[meters.contract_meter[c]].region, "", ""),
                contract.price_per_j * float(paid @ weight),
            )
        for b, m in enumerate(meters.battery_meter):
            storage = self.sites[m].electricity.storage
            yield (
                (STORAGE, self.sites[m].region, "", ""),
                float(self.energy_j[b] * storage.worth_per_j + self.power_w[b] * storage.worth_per_w),
            )

    def carbon(self) -> Iterator[tuple[Line, float]]:
        calendar = self.problem.calendar
        for m, site in enumerate(self.sites):
            yield (
                ("operation", site.region, "", ""),
                float(self.grid[m] @ (site.carbon_kg_per_j[calendar.hour] * calendar.seconds)),
            )
        for c, contract in enumerate(self.contracts):
            yield (
                (CONTRACT, self.sites[self.meters.contract_meter[c]].region, "", ""),
                contract.carbon_kg_per_j * float(self.taken[c] @ calendar.seconds),
            )

    @property
    def drawn_j(self) -> float:
        """Energy bought and taken."""
        return float((self.grid.sum(axis=0) + self.taken.sum(axis=0)) @ self.problem.calendar.seconds)

    @property
    def capital(self) -> float:
        """Purchase price of the batteries."""
        return sum(
            self.energy_j[b] * self.sites[m].electricity.storage.capital_per_j
            + self.power_w[b] * self.sites[m].electricity.storage.capital_per_w
            for b, m in enumerate(self.meters.battery_meter)
        )

    # -- rows of the plan ------------------------------------------------------------------------------------------

    def of_slot(self, region: str, t: int) -> dict[str, Any]:
        """What a row of the schedule says of electricity; nothing where the site has no meter of its own."""
        m = next((m for m, site in enumerate(self.sites) if site.region == region), None)
        if m is None:
            return {}
        row: dict[str, Any] = {"grid_w": float(self.grid[m, t])}
        here = [c for c, of in enumerate(self.meters.contract_meter) if of == m]
        if here:
            row["ppa_w"] = {self.contracts[c].name: float(self.taken[c, t]) for c in here}
        for b, of in enumerate(self.meters.battery_meter):
            if of == m:
                row |= {
                    "charge_w": float(self.charge[b, t]),
                    "discharge_w": float(self.discharge[b, t]),
                    "stored_j": float(self.stored[b, t]),
                }
        return row

    def table(self) -> list[dict[str, Any]]:
        """Purchases, monthly peaks, contracts and batteries: how large, how much energy, what it costs and emits."""
        costs = dict(self.costs())
        carbon = dict(self.carbon())
        seconds, rows = self.problem.calendar.seconds, []
        weight = seconds * self.problem.calendar.discount
        for m, site in enumerate(self.sites):
            region = site.region
            row = lambda item, name, size, unit, energy, cost, kg, region=region: {
                "site": region, "item": item, "name": name, "size": float(size), "unit": unit, "energy_j": energy, "cost": cost, "carbon_kg": kg,
            }  # fmt: skip
            rows.append(
                row(
                    "grid",
                    "",
                    self.grid[m].max(),
                    "W",
                    float(self.grid[m] @ seconds),
                    costs[BOUGHT, region, "", ""],
                    carbon["operation", region, "", ""],
                )
            )
            rows += [
                row("peak", peak["name"], peak["peak_w"], "W", None, peak["cost"], None) for peak in self._peaks(m)
            ]
            for c, of in enumerate(self.meters.contract_meter):
                if of == m:
                    contract, taken = self.contracts[c], float(self.taken[c] @ seconds)
                    paid = (
                        self.capacity_w[c] * self.meters.contract_share[c] if contract.pays_produced else self.taken[c]
                    )
                    rows.append(
                        row(
                            "ppa",
                            contract.name,
                            self.capacity_w[c],
                            "W",
                            taken,
                            contract.price_per_j * float(paid @ weight),
                            contract.carbon_kg_per_j * taken,
                        )
                    )
            for b, of in enumerate(self.meters.battery_meter):
                if of == m:
                    storage = site.electricity.storage
                    rows.append(
                        row(
                            "battery",
                            "energy",
                            self.energy_j[b],
                            "J",
                            float(self.discharge[b] @ seconds),
                            float(self.energy_j[b] * storage.worth_per_j),
                            None,
                        )
                    )
                    rows.append(
                        row(
                            "battery",
                            "power",
                            self.power_w[b],
                            "W",
                            None,
                            float(self.power_w[b] * storage.worth_per_w),
                            None,
                        )
                    )
        return rows

    def _peaks(self, m: int) -> list[dict[str, Any]]:
        meter = self.sites[m].electricity
        if not meter.demand_charge:
            return []
        return [
            {"name": name, "peak_w": peak, "cost": peak * meter.demand_charge * worth}
            for name, slots, worth in charged_peaks(self.problem.calendar, meter.timezone)
            for peak in (float(self.grid[m, slots].max(initial=0.0)),)
        ]


def rings(following: np.ndarray) -> list[np.ndarray]:
    """Slots in their order, one array for each ring that they form."""
    left, found = set(range(len(following))), []
    while left:
        slot, ring = min(left), []
        while slot in left:
            left.remove(slot)
            ring.append(slot)
            slot = int(following[slot])
        found.append(np.array(ring))
    return found


def filling(charge: np.ndarray, discharge: np.ndarray, step_s: np.ndarray, efficiency: float) -> list[float]:
    """Energy stored at the start of each slot of a ring [J], as little as the cycle allows."""
    level, levels = 0.0, []
    for inward, outward, step in zip(charge.tolist(), discharge.tolist(), step_s.tolist()):
        levels.append(level)
        level += step * (efficiency * inward - outward / efficiency)
    low = min(levels)
    return [value - low for value in levels]
