"""Electricity at a site with an `electricity` block: the grid connection, contracts and storage, in SI and in the spec's currency.

Not here: how much of it is bought and used (`solvers.model.electricity`), and prices and carbon by hour (`planner.resolve.electricity_prices`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from catalog.contents import UNKNOWN
from models.arrays import Floats, Ints
from planner.problem.calendar import Calendar
from planner.problem.economics import Economics

ON_SITE, GRID_CONTRACT, FINANCIAL = "on-site", "grid", "financial"  # kinds of contracts


@dataclass(frozen=True, slots=True)
class CapCurve:
    """Relative speed at a relative power, both over the uncapped value; both rise to 1."""

    power: Floats
    speed: Floats


@dataclass(frozen=True, slots=True)
class PriceContents:
    """What a site's price of electricity contains: (part, included, separate or unknown) for each part (`catalog.contents`).

    `demand_by_peak`: whether a demand charge may stand beside the price, which does not hold demand already. `delivered_per_j`: delivery and levies
    on top of every hour's price. `market_per_j`: the market's price of each hour, None where the price is none. `industrial_per_j`: what industry
    pays there on average, all parts included [currency/J], where a part is unknown; its figure in words in `industrial_source`.
    """

    states: tuple[tuple[str, str], ...] = ()
    demand_by_peak: bool = True
    delivered_per_j: float = 0.0
    market_per_j: Floats | None = None
    industrial_per_j: float = 0.0
    industrial_source: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Name the parts of which nobody knows whether the price holds them."""
        return tuple(part for part, state in self.states if state == UNKNOWN)


NOT_BOUGHT = PriceContents()


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
    kind: str = GRID_CONTRACT
    delivered_per_j: float = 0.0  # delivery and levies on what is taken through the connection
    market_per_j: Floats | None = (
        None  # in each hour, what is not taken earns or, if financial, what the contract is settled against; None: nothing
    )

    @property
    def is_financial(self) -> bool:
        """Whether no energy of the plant is taken: the contract pays differences."""
        return self.kind == FINANCIAL

    @property
    def passes_connection(self) -> bool:
        """Whether its energy passes the connection and the meter."""
        return self.kind == GRID_CONTRACT


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
    purchases_peak: bool = (
        True  # whether purchases from the grid count in peaks, and not only what contracts pass through the meter
    )


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


def slot_prices(by_hour: Floats, calendar: Calendar, money: Economics) -> Floats:
    """Return a price of electricity in each slot, from that in each hour of the period: it rises at the end of each year."""
    return np.asarray(by_hour[calendar.hour] * calendar.risen(money.escalation.electricity))


def idle_price_per_j(site_price_per_j: Floats, metered: bool) -> Floats:
    """Return what the energy of our own idle systems costs beside the bill of a meter: they earn nothing at a negative price.

    max(price, 0); where a meter bills all that is drawn, max(-price, 0), which takes back what it pays for idle draw. Systems without work
    could be switched off, so that holding more of them never pays. Shapes: as the price; units: currency per J.

    >>> idle_price_per_j(np.array([2.0, -3.0]), False).tolist(), idle_price_per_j(np.array([2.0, -3.0]), True).tolist()
    ([2.0, 0.0], [0.0, 3.0])
    """
    paid: Floats = np.maximum(-site_price_per_j if metered else site_price_per_j, 0.0)
    return paid
