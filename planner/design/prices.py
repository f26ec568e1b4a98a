"""What a system of a design question costs to hold, and what a joule costs, in the currency of the question.

Holding is the capital recovery of the price less its residual value, with maintenance, or the rent.
"""

from __future__ import annotations

from catalog.units import YEAR_S
from models.economics import annuity
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.resolve.ledger import Ledger

LIFE_YEARS = 5  # age at which the residual value is taken, the catalog's life of a system


def energy_price(
    price: tuple[float, str] | None, pue: float | None, ledger: Ledger, path: str
) -> tuple[tuple[float, str], float]:
    """Return (price of electricity per joule with its currency, PUE), the catalog's defaults where they are not stated."""
    if pue is None:
        pue = ledger.default("pue_default", f"{path}.pue", Message.of("assumed.not_stated").text())
    if price is None:
        figure = ledger.figure("defaults", "china_electricity_price", "value")
        ledger.assume(f"{path}.electricity", figure.printed, figure.unit, Message.of("assumed.mean_of_china").text())
        price = (figure.number, figure.unit[:3])
    return price, pue


def held_per_s(price: float, bought: bool, ledger: Ledger) -> float:
    """Compute the cost of holding a system per second from its purchase, or its rent per second."""
    if not bought:
        return price
    reason = Message.of("assumed.not_in_case").text()
    rate = ledger.default("discount_rate", "economics.discount_rate", reason)
    life = ledger.default("system_life_s", "economics.life", reason) / YEAR_S
    left = ledger.default(f"residual_{LIFE_YEARS}y", "economics.residual", reason)
    upkeep = ledger.default("maintenance_fraction", "economics.maintenance", reason)
    return (float(annuity(price, rate, life, left)) + upkeep * price) / YEAR_S


def converted(price: tuple[float, str], currency: str, ledger: Ledger, path: str) -> float:
    """Convert (amount, currency) to a currency by the catalog's rates. Raises SpecError for one without a rate."""
    amount, stated = price
    return amount / _per_usd(stated, ledger, path) * _per_usd(currency, ledger, "currency")


def _per_usd(code: str, ledger: Ledger, path: str) -> float:
    if code == "USD":
        return 1.0
    name = f"exchange_{code.lower()}"
    if name not in ledger.catalog.names("defaults"):
        raise SpecError([Issue(path, Message.of("assumed.catalog_without_rate", code=code).text())])
    return ledger.default(name, f"exchange.{code}.per_usd", Message.of("assumed.mean_rate").text())
