"""Electricity at a site with an `electricity` block: the grid connection, contracts and storage, in SI and in the spec's currency.

Not here: how much of it is bought and used (`solvers.model.electricity`), and prices and carbon by hour (`planner.resolve.electricity_prices`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class CapCurve:
    """Relative speed at a relative power, both over the uncapped value; both rise to 1."""

    power: Floats
    speed: Floats


@dataclass(frozen=True, slots=True)
class ContractFacts:
    """A power purchase agreement: how much may and must be contracted, at what price, and the output of its plant."""

    path: str
    name: str
    least_w: float
    upper_w: float
    price_per_j: float
    pays_produced: bool
    share: Floats  # output over capacity in each hour of the period
    carbon_kg_per_j: float


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """A battery: `worth` is the present value over the horizon per unit, `capital` the purchase price; efficiency is one-way.

    It stands from the start, and is bought again after each `life_years` within the horizon.
    """

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
    life_years: float


@dataclass(frozen=True, slots=True)
class ElectricityFacts:
    """How a site buys, contracts and stores its electricity."""

    path: str
    timezone: str
    connection_w: float  # inf where nothing limits it
    demand_charge: float  # per watt and second of a month
    contracts: tuple[ContractFacts, ...]
    storage: StorageFacts | None


def peak_name(months: list[int], window: Ints, windows: int) -> str:
    """Name the months in which a peak is charged, such as "months 2-12 of phase 1", each month once."""
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


def idle_price_per_j(site_price_per_j: Floats, metered: bool) -> Floats:
    """Return what the energy of our own idle systems costs beside the bill of a meter: they earn nothing at a negative price.

    max(price, 0); where a meter bills all that is drawn, max(-price, 0), which takes back what it pays for idle draw. Systems without work
    could be switched off, so that holding more of them never pays. Shapes: as the price; units: currency per J.

    >>> idle_price_per_j(np.array([2.0, -3.0]), False).tolist(), idle_price_per_j(np.array([2.0, -3.0]), True).tolist()
    ([2.0, 0.0], [0.0, 3.0])
    """
    paid: Floats = np.maximum(-site_price_per_j if metered else site_price_per_j, 0.0)
    return paid
