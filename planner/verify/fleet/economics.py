"""Charge a purchase for the time for which it is held, payment by payment: a second writing of `planner.problem.economics`.

Plans of releases up to 0.2 were charged otherwise, and are checked by the rule that they were made with: the annuities of the time,
without maintenance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from planner.problem.economics import Economics
from planner.verify.fleet.options import CheckedOption
from planner.verify.timing import annuity, paid_yearly

YEAR_TOL = 1e-9  # a system whose life ends so shortly before it is sold is not replaced


@dataclass(frozen=True, slots=True)
class Charged:
    """Present value per unit of purchase price: of systems and fabric, of their maintenance, and of buildings."""

    price: float  # less residual values
    upkeep: float
    building: float
    every_year: float = 0.0  # one unit per year
    staffed: float = 0.0  # one unit per year that rises as the pay of staff does
    system: float | None = None  # systems alone, whose price changes, or that are owned already; None: as `price`
    paid: float = 1.0  # share of the price of a system, on delivery

    @property
    def of_system(self) -> float:
        """Present value of a system, without upkeep."""
        return self.price if self.system is None else self.system


NOTHING_PAID = Charged(0.0, 0.0, 0.0)


def residual_share(money: Economics, system: str, age_years: float) -> float:
    """Return the share of a price that is left at an age: on the line between the two points around it, or through the last two."""
    known = money.residual_of(system)
    points = [(0.0, 1.0), *zip(known.ages_years, known.fractions, strict=True)]
    later = next((i for i in range(1, len(points)) if age_years <= points[i][0]), len(points) - 1)
    (age, left), (next_age, next_left) = points[later - 1 : later + 1]
    return max(left + (next_left - left) * (age_years - age) / (next_age - age), 0.0)


def charged(money: Economics, system: str, life: float, begin: float, end: float, price_change: float = 0.0) -> Charged:
    """Add up the payments of a purchase held from year `begin` to `end`, bought again at the price of the time whenever its life ends."""
    price, of_system, bought = 0.0, 0.0, begin
    while bought < end - YEAR_TOL:
        sold = min(bought + life, end)
        paid = (1 + money.discount_rate) ** -bought
        paid -= residual_share(money, system, sold - bought) * (1 + money.discount_rate) ** -sold
        price += paid
        of_system += paid * (1 + price_change) ** (bought - begin)
        bought = sold
    rises, worth = money.escalation, worth_of_years(money, begin, end)
    upkeep = money.maintenance * worth_of_years(money, begin, end, rises.maintenance)
    staffed = worth_of_years(money, begin, end, rises.staff)
    return Charged(price, upkeep, _building(money, begin, end), worth, staffed, of_system)


def owned_already(money: Economics, option: CheckedOption, life: float, begin: float, end: float) -> Charged:
    """Charge a system that is owned already: what it would sell for, less what it sells for at the end, and the move."""
    owned = option.offer.owned
    bought = charged(money, option.system.name, life, begin, end, option.offer.price_change)
    if owned is None:
        return bought
    now = residual_share(money, option.system.name, owned.age_years)
    later = residual_share(money, option.system.name, owned.age_years + end)
    rate, moved = 1 + money.discount_rate, owned.move if owned.region != option.site.region else 0.0
    kept = owned.worth - (owned.worth * later / now if now else 0.0) * rate**-end
    return replace(bought, system=kept + moved, paid=moved)


def yearly_of(money: Economics, option: CheckedOption) -> dict[str, float]:
    """Return what one bought system costs per year beside maintenance, by component; components that cost nothing are left out."""
    staff = money.staff_per_system
    if option.site.facility_cost_per_w > 0:  # the staff of a rented hall is in its rent
        each_w = money.staff_beside_crew_per_w if option.site.crew_per_s > 0 else money.staff_per_w
        staff += option.nameplate_w * each_w
    yearly = (("staff", staff), ("software", licences_of(money, option)))
    return {name: amount for name, amount in yearly if amount}


def levies_of(money: Economics, price: float) -> dict[str, float]:
    """Return property tax and insurance per year of what cost a price; empty where none count."""
    return {"levies": price * money.levies} if money.levies else {}


def licences_of(money: Economics, option: CheckedOption) -> float:
    """Return the licences and the support of one system per year, bought or rented; 0 where its price includes them, and for an API."""
    if option.offer.with_software or option.offer.how == "api":
        return 0.0
    return money.software_per_chip * option.system.chips + money.software_per_system


def by_annuities(money: Economics, system: str, life: float, begin: float, end: float) -> Charged:
    """Add up the annuities of the time, as releases up to 0.2 did; `system` plays no part."""
    yearly = annuity(money.discount_rate, life)
    return Charged(yearly * worth_of_years(money, begin, end), 0.0, _building(money, begin, end))


def worth_of_years(money: Economics, begin: float, end: float, escalation: float = 0.0) -> float:
    """Compute the present worth of one unit per year from year `begin` to `end`, which rises by a share from year to year."""
    return paid_yearly(money.discount_rate, money.years, begin, end, money.payments_per_year, escalation)


def building_per_year(money: Economics) -> float:
    """Compute what repays one unit of a building in each year of its life, in as many payments as others."""
    in_first_year = paid_yearly(money.discount_rate, 1, 0.0, 1.0, money.payments_per_year)
    return annuity(money.discount_rate, money.facility_life_years) / (in_first_year * (1 + money.discount_rate))


def _building(money: Economics, begin: float, end: float) -> float:
    return building_per_year(money) * worth_of_years(money, begin, end)
