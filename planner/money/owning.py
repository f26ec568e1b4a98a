"""What owning a system costs, by component: at present value, on delivery, and in each year for which it is held."""

from __future__ import annotations

from dataclasses import dataclass, fields

from models.arrays import Floats, sum_of
from planner.money.components import (
    FABRIC,
    FACILITY,
    LEVIES,
    MAINTENANCE,
    SOFTWARE,
    SPARE_PARTS,
    STAFF,
    SYSTEMS,
    Component,
)

Amount = Floats | float


@dataclass(frozen=True, slots=True)
class Purchase:
    """A system that is bought and kept for a time; numbers, or arrays of one shape over many systems."""

    # prices
    price: Amount  # the system
    fabric: Amount  # its share of the network
    building: Amount  # its building and power delivery
    staff: Amount  # per year
    software: Amount  # per year
    # present values over the time held, per unit of price
    system: Amount
    share: Amount  # network, with upkeep
    upkeep: Amount
    facility: Amount
    spare_parts: Amount
    per_year: Amount  # one unit per year
    staffed: Amount  # one unit per year that rises as the pay of staff does
    # payments, per unit of price
    paid: Amount  # on delivery of the system
    parts: Amount  # on delivery, for spare parts
    maintenance: Amount  # per year
    levies: Amount  # per year
    annuity: Amount  # building, per year

    def row(self) -> tuple[Amount, ...]:
        """Return the fields in their order."""
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True, slots=True)
class Owned:
    """A component of owning a system: its present value, and its payments on delivery and per year."""

    component: Component
    worth: Amount
    on_delivery: Amount
    per_year: Amount


def owning(bought: Purchase) -> tuple[Owned, ...]:
    """Compute the cost of owning a system: price less residual value, network, upkeep, spare parts, building, staff and software.

    A system costs price x system at present value, and price x paid on delivery; its network share x (share - upkeep), and its whole price
    on delivery; both are kept up for (price + network) x upkeep, and taxed and insured per year. Spare parts, building, staff and software are charged by their own rates.
    """
    both = bought.price + bought.fabric
    return (
        Owned(SYSTEMS, bought.price * bought.system, bought.price * bought.paid, 0.0 * both),
        Owned(FABRIC, bought.fabric * (bought.share - bought.upkeep), bought.fabric, 0.0 * both),
        Owned(MAINTENANCE, both * bought.upkeep, 0.0 * both, both * bought.maintenance),
        Owned(SPARE_PARTS, bought.price * bought.spare_parts, bought.price * bought.parts, 0.0 * both),
        Owned(FACILITY, bought.building * bought.facility, 0.0 * both, bought.building * bought.annuity),
        Owned(STAFF, bought.staff * bought.staffed, 0.0 * both, bought.staff),
        Owned(SOFTWARE, bought.software * bought.per_year, 0.0 * both, bought.software),
        Owned(LEVIES, both * bought.levies * bought.per_year, 0.0 * both, both * bought.levies),
    )


def total_worth(bought: Purchase) -> Amount:
    """Compute the present value of owning a system, without the hall and the energy."""
    return sum_of((part.worth for part in owning(bought)), 0.0)


def holding_worth(paid: Amount, per_s: Amount, held_s: Amount) -> Amount:
    """Compute the present value of holding a system: its price, and its hall or its rent per second held.

    V = P + c T, with P the present value of owning it [currency], c the cost per second [currency/s], and T the discounted time held [s].
    """
    return paid + per_s * held_s
