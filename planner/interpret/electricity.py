"""Electricity of a plan, free of the solver's rounding: purchases, contracts and batteries, their cost and carbon, and rows.

`planner.verify.electricity` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from models.arrays import Floats, Ints
from planner.formulate.electricity import MeterPayments, charged_peaks, metered_sites
from planner.problem.facts import ResolvedSpec
from solvers.model.block_data.electricity import MeterData

BOUGHT, PEAK, CONTRACT, STORAGE = ELECTRICITY_LINES = ("energy", "demand charge", "ppa", "battery")
ROUNDING_TOL = 1e-9  # watts below this share of a site's largest load are rounding

Line = tuple[str, str, str, str]  # component, site, system, how


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
        """Reduce sizes that cost nothing to what is needed."""
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

    # -- amounts ---------------------------------------------------------------------------------------------------

    def costs(self) -> Iterator[tuple[Line, float]]:
        """Yield (cost line, present value): energy, demand charges, contracts and batteries."""
        calendar = self.problem.calendar
        weight = calendar.seconds * calendar.discount
        for m, (site, facts) in enumerate(zip(self.sites, self.facts, strict=True)):
            yield (BOUGHT, site.region, "", ""), float(self.grid[m] @ (site.price_per_j[calendar.hour] * weight))
            if facts.demand_charge:
                yield (PEAK, site.region, "", ""), sum(row["cost"] for row in self._peaks(m))
        for c, m in enumerate(self.meters.contract_meter):
            yield (CONTRACT, self.sites[m].region, "", ""), self._contract_cost(c)
        for b, m in enumerate(self.meters.battery_meter):
            storage = self.batteries[b]
            cost = float(self.energy_j[b] * storage.worth_per_j + self.power_w[b] * storage.worth_per_w)
            yield (STORAGE, self.sites[m].region, "", ""), cost

    def paid(self, due: MeterPayments) -> float:
        """Add up the payments of one phase, given those per unit of each decision."""
        meters = self.meters
        peaks = [
            self.grid[m, slots].max(initial=0.0) for m, slots in zip(meters.peak_meter, meters.peak_slot, strict=True)
        ]
        return float(
            (due.grid * self.grid).sum()
            + (due.taken * self.taken).sum()
            + due.contract @ self.capacity_w
            + due.peak @ np.array(peaks, dtype=float)
            + due.battery_j @ self.energy_j
            + due.battery_w @ self.power_w
        )

    def _contract_cost(self, c: int) -> float:
        """Compute the present value of a contract, paid by the output of the plant or by the energy taken."""
        contract, calendar = self.contracts[c], self.problem.calendar
        produced = self.capacity_w[c] * self.meters.contract_share[c]
        paid = produced if contract.pays_produced else self.taken[c]
        return contract.price_per_j * float(paid @ (calendar.seconds * calendar.discount))

    def carbon(self) -> Iterator[tuple[Line, float]]:
        """Yield (carbon line, kg) of purchases and contracts."""
        calendar = self.problem.calendar
        for m, site in enumerate(self.sites):
            kg_per_w = site.carbon_kg_per_j[calendar.hour] * calendar.seconds
            yield ("operation", site.region, "", ""), float(self.grid[m] @ kg_per_w)
        for c, m in enumerate(self.meters.contract_meter):
            kg = self.contracts[c].carbon_kg_per_j * float(self.taken[c] @ calendar.seconds)
            yield (CONTRACT, self.sites[m].region, "", ""), kg

    @property
    def drawn_j(self) -> float:
        """Add up the energy bought and taken [J]."""
        return float((self.grid.sum(axis=0) + self.taken.sum(axis=0)) @ self.problem.calendar.seconds)

    @property
    def capital(self) -> float:
        """Add up the purchase price of the batteries."""
        return float(
            sum(
                self.energy_j[b] * storage.capital_per_j + self.power_w[b] * storage.capital_per_w
                for b, storage in enumerate(self.batteries)
            )
        )

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

    def table(self) -> list[dict[str, Any]]:
        """Build the rows of purchases, monthly peaks, contracts and batteries: size, energy, cost and carbon."""
        costs, carbon = dict(self.costs()), dict(self.carbon())
        seconds, rows = self.problem.calendar.seconds, []
        for m, site in enumerate(self.sites):
            region = site.region
            energy_j, kg = float(self.grid[m] @ seconds), carbon["operation", region, "", ""]
            peak_w, cost = self.grid[m].max(), costs[BOUGHT, region, "", ""]
            rows.append(_row(region, "grid", "", peak_w, "W", energy_j, cost, kg))
            for peak in self._peaks(m):
                rows.append(_row(region, "peak", peak["name"], peak["peak_w"], "W", None, peak["cost"], None))
            for c, of in enumerate(self.meters.contract_meter):
                if of == m:
                    contract, taken_j = self.contracts[c], float(self.taken[c] @ seconds)
                    kg, cost = contract.carbon_kg_per_j * taken_j, self._contract_cost(c)
                    rows.append(_row(region, "ppa", contract.name, self.capacity_w[c], "W", taken_j, cost, kg))
            for b, of in enumerate(self.meters.battery_meter):
                if of == m:
                    storage, given_j = self.batteries[b], float(self.discharge[b] @ seconds)
                    cost = float(self.energy_j[b] * storage.worth_per_j)
                    rows.append(_row(region, "battery", "energy", self.energy_j[b], "J", given_j, cost, None))
                    cost = float(self.power_w[b] * storage.worth_per_w)
                    rows.append(_row(region, "battery", "power", self.power_w[b], "W", None, cost, None))
        return rows

    def _peaks(self, m: int) -> list[dict[str, Any]]:
        """List the peaks for which a meter is charged: name, power and present value."""
        facts, found = self.facts[m], []
        for name, slots, worth_s in charged_peaks(self.problem.calendar, facts.timezone) if facts.demand_charge else ():
            peak_w = float(self.grid[m, slots].max(initial=0.0))
            found.append({"name": name, "peak_w": peak_w, "cost": peak_w * facts.demand_charge * worth_s})
        return found


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
        "energy_j": energy_j,
        "cost": cost,
        "carbon_kg": kg,
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
