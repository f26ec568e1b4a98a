"""What stands at the meter of a site with an `electricity` block: the connection, contracts and storage, in SI and in money.

Not here: how much of it is bought and used (`solvers.model.electricity`), and prices and carbon by hour (`planner.resolve.electricity_prices`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ContractFacts:
    path: str
    name: str
    least_w: float
    upper_w: float
    price_per_j: float
    pays_produced: bool
    share: np.ndarray  # output over capacity in each hour of the period
    carbon_kg_per_j: float


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """Prices are present values over the horizon; efficiency is that of one way."""

    path: str
    least_j: float
    upper_j: float
    least_w: float
    upper_w: float
    worth_per_j: float
    worth_per_w: float
    capital_per_j: float
    capital_per_w: float
    efficiency: float


@dataclass(frozen=True, slots=True)
class ElectricityFacts:
    path: str
    timezone: str
    connection_w: float  # inf where nothing limits it
    demand_charge: float  # per watt and second of a month
    contracts: tuple[ContractFacts, ...]
    storage: StorageFacts | None


def peak_name(months: list[int], window: np.ndarray, windows: int) -> str:
    """Such as "months 2-12 of phase 1", with each month once."""
    once = sorted(set(months))
    months_text = (
        f"months {once[0]}-{once[-1]}"
        if len(once) > 1 and once[-1] - once[0] == len(once) - 1
        else f"month{'s' * (len(once) > 1)} {', '.join(map(str, once))}"
    )
    phases = np.unique(window)
    return (
        months_text
        if windows == 1
        else f"{months_text} of phase{'s' * (len(phases) > 1)} {', '.join(map(str, phases))}"
    )
