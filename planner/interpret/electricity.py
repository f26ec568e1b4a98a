"""Electricity of a plan, free of the solver's rounding: purchases, contracts and batteries, and their rows.

`planner.verify.electricity` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from models.arrays import Floats, Ints
from planner.formulate.electricity import charged_peaks, metered_sites
from planner.money.components import CONTRACT, GRID, PEAK, POWER, STORE, TAKEN
from planner.money.terms import CARBON, COST, ENERGY
from planner.problem.facts import ResolvedSpec
from solvers.model.block_data.electricity import MeterData

ROUNDING_TOL = 1e-9  # watts below this share of a site's largest load are rounding


class ElectricityDecisions:
    """Arrays over meters, contracts or batteries, and slots, in the order of `solvers.model.block_data.electricity`."""

    def __init__(self, problem: ResolvedSpec, meters: MeterData, values: Mapping[str, Floats], own_w: Floats):
        """`own_w` [site, slot]: power of our own systems at the meter."""
        self.problem, self.meters, self.load = problem, meters, own_w[meters.meter_site]
        metered = metered_sites(problem)
        self.sites, self.facts = [site for _, site, _ in metered], [facts for _, _, facts in metered]
        self.contracts = [contract for facts in self.facts for contract in facts.contracts]
        self.batteries = [facts.storage for facts in self.facts if facts.storage is not None]
        usual = np.maximum(self.load.max(axis=1, initial=0.0), 1.0) * ROUNDING_TOL

        def cleared(block: str, meter: Ints) -> Floats:
            return np.where(values[block] > usual[meter][:, None], values[block], 0.0)

        self.capacity_w = np.clip(values["contract"], meters.contract_least_w, meters.contract_upper_w)
        taken = np.minimum(cleared("taken", meters.contract_meter), meters.contract_share * self.capacity_w[:, None])
        self.charge, self.discharge, self.stored = self._cycles(
            cleared("charge", meters.battery_meter), cleared("discharge", meters.battery_meter)
        )
        need = self.load.copy()
        np.add.at(need, meters.battery_meter, self.charge - self.discharge)
        np.subtract.at(need, meters.contract_meter, taken)
        # take less where more than the need is taken, and no rounding's worth from the grid
        for c, m in enumerate(meters.contract_meter):
            back = np.where(np.abs(need[m]) <= usual[m], np.maximum(-taken[c], need[m]), np.minimum(need[m], 0.0))
            back = np.where(taken[c] > 0, np.maximum(back, -taken[c]), 0.0)
            taken[c] += back
            need[m] -= back
        self._shrink_unpaid_sizes(taken)
        self.taken, self.grid = taken, np.where(need > usual[:, None], need, 0.0)

    def _shrink_unpaid_sizes(self, taken: Floats) -> None:
        """Reduce sizes that cost nothing to the need."""
        meters = self.meters

        def largest(block: Floats) -> Floats:
            return np.asarray(block.max(axis=1, initial=0.0), dtype=float)

        needed = np.divide(taken, meters.contract_share, out=np.zeros_like(taken), where=meters.contract_share > 0)
        paid = np.array([contract.pays_produced for contract in self.contracts], dtype=bool)
        self.capacity_w = np.where(paid, self.capacity_w, np.maximum(meters.contract_least_w, largest(needed)))
        self.energy_j = np.maximum(meters.battery_least_j, largest(self.stored))
        self.power_w = np.maximum(meters.battery_least_w, largest(self.charge + self.discharge))

    def _cycles(self, charge: Floats, discharge: Floats) -> tuple[Floats, Floats, Floats]:
        """Scale charge to discharge in every ring of slots, and compute the energy stored at the start of each slot.

        The stored energy is the least that the cycle allows: 0 in some slot.
        """
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

    def units(self) -> dict[str, Floats]:
        """Return the units of each decision at the meters: watts from the grid and of contracts in each slot, peaks, capacities and sizes."""
        meters = self.meters
        peaks = [
            self._billed(m)[slots].max(initial=0.0)
            for m, slots in zip(meters.peak_meter.tolist(), meters.peak_slot, strict=True)
        ]
        return {
            GRID: self.grid,
            PEAK: np.array(peaks, dtype=float),
            CONTRACT: self.capacity_w,
            TAKEN: self.taken,
            STORE: self.energy_j,
            POWER: self.power_w,
        }

    def through_connection(self, m: int) -> Floats:
        """Return the power through a meter's connection in each slot [W]: purchases, and what contracts deliver over the grid."""
        passing: Floats = self.grid[m] + self.taken[self.meters.passing(m)].sum(axis=0)
        return passing

    def _billed(self, m: int) -> Floats:
        """Return the power that counts in a meter's peaks in each slot [W]."""
        return self.through_connection(m) - (0.0 if self.facts[m].purchases_peak else self.grid[m])

    # -- rows of the plan ------------------------------------------------------------------------------------------

    def of_slot(self, region: str, t: int) -> dict[str, Any]:
        """Build the part of a schedule row that concerns electricity; empty where the site has no meter of its own."""
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

    def table(self, amounts: Callable[[str, str], Floats]) -> list[dict[str, Any]]:
        """Build the rows of purchases, monthly peaks, contracts and batteries: size, energy, cost and carbon.

        `amounts`: of a functional, by decision and position.
        """
        seconds, rows, decided = self.problem.calendar.seconds, [], self.units()
        cost = {name: amounts(COST, name) for name in decided}
        kg, joules = ({name: amounts(of, name) for name in (GRID, TAKEN)} for of in (CARBON, ENERGY))
        for m, site in enumerate(self.sites):
            region, peak_w = site.region, self.grid[m].max()
            rows.append(_row(region, "grid", "", peak_w, "W", joules[GRID][m], cost[GRID][m], kg[GRID][m]))
            for name, n in self._peaks(m):
                rows.append(_row(region, "peak", name, decided[PEAK][n], "W", None, cost[PEAK][n], None))
            for c in np.flatnonzero(self.meters.contract_meter == m).tolist():
                name, size, paid = self.contracts[c].name, self.capacity_w[c], cost[CONTRACT][c] + cost[TAKEN][c]
                rows.append(_row(region, "ppa", name, size, "W", self._energy_j(c, joules[TAKEN]), paid, kg[TAKEN][c]))
            for b in np.flatnonzero(self.meters.battery_meter == m).tolist():
                given_j = float(self.discharge[b] @ seconds)
                rows.append(_row(region, "battery", "energy", self.energy_j[b], "J", given_j, cost[STORE][b], None))
                rows.append(_row(region, "battery", "power", self.power_w[b], "W", None, cost[POWER][b], None))
        return rows

    def _energy_j(self, c: int, taken_j: Floats) -> float:
        """Return the energy of a contract over the horizon [J]: all that is taken, of a financial contract all that is produced."""
        contract, calendar = self.contracts[c], self.problem.calendar
        if not contract.is_financial:
            return float(taken_j[c])
        return float(self.capacity_w[c] * (contract.share[calendar.hour] @ calendar.seconds))

    def _peaks(self, m: int) -> list[tuple[str, int]]:
        """List (name, position) of the peaks for which a meter is charged."""
        if not self.facts[m].demand_charge:
            return []
        named = [name for name, *_ in charged_peaks(self.problem.calendar, self.facts[m].timezone)]
        return list(zip(named, np.flatnonzero(self.meters.peak_meter == m).tolist(), strict=True))


def _row(
    site: str, item: str, name: str, size: float, unit: str, energy_j: float | None, cost: float, kg: float | None
) -> dict[str, Any]:
    """Build one row of the electricity table."""
    return {
        "site": site,
        "item": item,
        "name": name,
        "size": float(size),
        "unit": unit,
        "energy_j": None if energy_j is None else float(energy_j),
        "cost": float(cost),
        "carbon_kg": None if kg is None else float(kg),
    }


def rings(following: Ints) -> list[Ints]:
    """Split the slots into the rings that they form, each in the order of `following`."""
    left, found = set(range(len(following))), []
    while left:
        slot, ring = min(left), []
        while slot in left:
            left.remove(slot)
            ring.append(slot)
            slot = int(following[slot])
        found.append(np.array(ring))
    return found


def filling(charge: Floats, discharge: Floats, step_s: Floats, efficiency: float) -> list[float]:
    """Compute the energy stored at the start of each slot of a ring [J], as little as the cycle allows."""
    level, levels = 0.0, []
    for inward, outward, step in zip(charge.tolist(), discharge.tolist(), step_s.tolist(), strict=True):
        levels.append(level)
        level += step * (efficiency * inward - outward / efficiency)
    low = min(levels)
    return [value - low for value in levels]
