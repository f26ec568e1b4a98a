"""Cost of owning: what a purchase costs over the time for which it is held.

A purchase costs its price, less the present value of what the system is worth at the end of that time, plus maintenance, spare parts,
staff and software. What reaches the end of its life before is sold and replaced at the price of that time. Buildings outlast what stands in
them and are charged the annuities of the time. Not here: the check (`planner.verify.fleet.economics`), which writes the rule a second time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from catalog.units import HOUR_S
from models.economics import (
    annuity,
    discount_factor,
    horizon_share,
    level_payments,
    purchase_share,
    residual_value,
    window_present_worth,
)
from planner.messages import Message
from planner.problem.owned import OwnedFacts


@dataclass(frozen=True, slots=True)
class Residual:
    """Residual value of a kind of system by age: points of a curve that falls from the whole price at delivery."""

    ages_years: tuple[float, ...]
    fractions: tuple[float, ...]

    def at(self, years: float) -> float:
        """Return the share of the price that is left at an age."""
        return float(residual_value(self.ages_years, self.fractions, years))


@dataclass(frozen=True, slots=True)
class Escalation:
    """Share by which prices rise at the end of each year of the horizon."""

    electricity: float = 0.0  # energy from the grid, its delivery, demand charges, and the market's price; no contract
    staff: float = 0.0
    rent: float = 0.0  # halls, and systems without a commitment
    maintenance: float = 0.0

    @property
    def by_window(self) -> bool:
        """Tell whether prices of slots rise, so that each year needs windows of its own."""
        return self.electricity != 0.0 or self.rent != 0.0


NUISANCE_S = 0.01 * HOUR_S
"""Time of a system for which a load of weights is paid beside the time that it takes, where the spec states no cost: what a change disturbs [s]."""


@dataclass(frozen=True, slots=True)
class RelayFacts:
    """Cost of one system that loads weights, in the spec's currency (None: the system's own in the time that it takes, and in `NUISANCE_S`), and most loads a day."""

    cost: float | None = None
    per_day: float = math.inf


@dataclass(frozen=True, slots=True)
class Economics:
    """Discount rate, service lives, and the cost of owning beside the price."""

    discount_rate: float
    years: int
    system_life_years: float
    facility_life_years: float
    maintenance: float = 0.0  # maintenance of systems and fabric, per year and unit of purchase price
    residual: Mapping[str, Residual] | None = None  # by system; None where none can be bought
    spare_parts: float = 0.0  # held beside bought systems, per unit of their purchase price
    staff_per_w: float = 0.0  # per year and watt of nameplate in buildings of our own
    staff_beside_crew_per_w: float = 0.0  # the same where the site has a crew of its own
    staff_per_system: float = 0.0  # per year
    software_per_chip: float = 0.0  # per year
    software_per_system: float = 0.0  # per year
    levies: float = 0.0  # property tax and insurance of systems and fabric, per year and unit of purchase price
    payments_per_year: int = 1  # in which running costs are paid, each at the end of its part of the year
    escalation: Escalation = Escalation()
    relays: RelayFacts | None = None  # None: loads of weights only take their time

    def residual_of(self, system: str) -> Residual:
        """Return the residual value of a system. Raises ValueError for one that cannot be bought."""
        if self.residual is None or system not in self.residual:
            raise ValueError(Message.of("problem.no_residual_value", system=str(system)).text())
        return self.residual[system]

    def worth(self, begin: float, end: float, escalation: float = 0.0) -> float:
        """Compute the present worth of one unit per year from year `begin` to `end`, which rises by `escalation` per year."""
        return float(
            window_present_worth(self.discount_rate, begin, end, self.years, self.payments_per_year, escalation)
        )

    def escalation_of(self, component: str) -> float:
        """Return the share by which what a bought system costs per year rises."""
        return {"staff": self.escalation.staff, "maintenance": self.escalation.maintenance}.get(component, 0.0)

    @property
    def building_per_year(self) -> float:
        """Compute what a building costs per year, per unit of its price."""
        return _annuity(self.discount_rate, self.facility_life_years, self.payments_per_year)

    def staff_of(self, nameplate_w: float, own_building: bool, crew: bool) -> float:
        """Compute the staff of one bought system per year, beside the crew of its site; that of a rented hall is in its rent."""
        per_w = self.staff_beside_crew_per_w if crew else self.staff_per_w
        return self.staff_per_system + (per_w * nameplate_w if own_building else 0.0)

    def software_of(self, chips: int) -> float:
        """Compute the licences and the support of one system per year, bought or rented."""
        return self.software_per_system + self.software_per_chip * chips


@dataclass(frozen=True, slots=True)
class Charges:
    """Present value per unit of purchase price; `upkeep` is the part of `share` that is maintenance."""

    share: float  # systems and fabric
    upkeep: float
    facility: float
    spare_parts: float  # systems
    per_year: float  # one unit per year
    staff: float  # one unit per year that rises as the pay of staff does
    system: float  # systems, without upkeep
    paid: float  # share of the price of a system, on delivery

    @property
    def of_system(self) -> float:
        """Return the charge of a system with its upkeep and spare parts."""
        return self.system + self.upkeep + self.spare_parts


NO_CHARGES = Charges(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)  # rented systems


def charges(
    money: Economics, system: str, life_years: float, begin: float, end: float, price_change: float = 0.0
) -> Charges:
    """Compute the charges of a purchase held from year `begin` to `end`: paid on delivery, sold at the end, kept up in between.

    share = v^begin x purchase_share(end - begin) + m PW(begin, end), facility = annuity x PW(begin, end), maintenance and staff rise by their
    escalation within PW, and spare parts are bought and sold as systems are, but not maintained. `price_change` per year is that of the system, not of its network.
    """
    rate, residual = money.discount_rate, money.residual_of(system)
    worth = money.worth(begin, end)
    delivered = float(discount_factor(rate, begin))
    curve = residual.ages_years, residual.fractions
    bought = delivered * float(purchase_share(rate, life_years, end - begin, *curve))
    system_bought = delivered * float(purchase_share(rate, life_years, end - begin, *curve, price_change))
    upkeep = money.maintenance * money.worth(begin, end, money.escalation.maintenance)
    if begin == 0 and end == money.years:
        building = float(horizon_share(rate, money.facility_life_years, money.years))
    else:
        building = money.building_per_year * worth
    parts = money.spare_parts * system_bought
    staff = money.worth(begin, end, money.escalation.staff)
    return Charges(bought + upkeep, upkeep, building, parts, worth, staff, system_bought, 1.0)


@cache
def _annuity(rate: float, life_years: float, payments_per_year: int) -> float:
    """Compute the yearly cost, in equal payments, that repays one unit over a life."""
    return float(annuity(1.0, rate, life_years)) / float(level_payments(rate, payments_per_year))


def charges_of_owned(
    money: Economics, system: str, life_years: float, begin: float, end: float, owned: OwnedFacts, region: str
) -> Charges:
    """Compute the charges of a system that is owned already and kept, or moved to a region, from year `begin` to `end`.

    system = w - v^end w f(a + end) / f(a) + the move, with w its worth at the start of the horizon and f the residual value by age:
    keeping it costs what selling it at the start would have brought, less what selling it at the end brings. It is kept up from `begin`,
    it is not replaced, and its spare parts, network and building at home are there.
    """
    new = charges(money, system, life_years, begin, end)
    rate, residual = money.discount_rate, money.residual_of(system)
    now = residual.at(owned.age_years)
    left = residual.at(owned.age_years + end) / now if now > 0 else 0.0
    kept = owned.worth * (1.0 - left * float(discount_factor(rate, end)))
    move = 0.0 if owned.at_home(region) else owned.move
    return replace(new, spare_parts=0.0, system=kept + move, paid=move)
