"""What the chips of a co-design case cost to hold and to run, and what porting an architecture to them costs.

Holding is the capital recovery of the price less what is left of it, with maintenance, or the rent; running is electricity. Staff,
software, buildings and networks are left out, as they do not tell variants on one chip apart: `flopwatt plan` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.records import Record
from catalog.units import HOUR_S, YEAR_S
from models.economics import annuity
from planner.errors import Issue, SpecError
from planner.estimate.case import CaseFacts
from planner.estimate.codesign.space import Space
from planner.resolve.ledger import Ledger
from planner.spec.quantities import is_purchase, offer_price
from planner.spec.stack.codesign import Codesign

WAYS = ("buy", "reserved", "on_demand")  # in which a published price is looked for
LIFE_YEARS = 5  # age at which the residual value is taken, the catalog's life of a system


@dataclass(frozen=True, slots=True)
class Holding:
    """Cost of holding one system of a chip."""

    per_s: float | None  # None where no price is known [currency/s]
    how: str  # buy, reserved, on_demand, or "" without a price
    price: float | None  # as stated or published [currency, or currency/s]


@dataclass(frozen=True, slots=True)
class Prices:
    """All prices of a co-design case, in its currency."""

    currency: str
    holding: tuple[Holding, ...]  # by chip of the space
    electricity_per_j: float
    pue: float
    porting: tuple[float, ...]  # by chip: of one architecture to its family


def resolve_prices(space: Space) -> Prices:
    """Resolve the prices of a case; defaults are booked as assumptions. Raises SpecError for a currency without a rate."""
    block, ledger = space.block, space.chips[0].ledger
    stated = [None, *(entry.price for entry in block.systems)]
    price, pue = energy_price(block.electricity, block.pue, ledger, "codesign")
    return Prices(
        block.currency,
        tuple(_holding(facts, text, block, f"codesign.systems[{i - 1}].price") for i, (facts, text) in enumerate(zip(space.chips, stated, strict=True))),
        converted(price, block.currency, ledger, "codesign.electricity"),
        pue,
        tuple(_porting(facts, block, space.chips) for facts in space.chips),
    )  # fmt: skip


def energy_price(
    price: tuple[float, str] | None, pue: float | None, ledger: Ledger, path: str
) -> tuple[tuple[float, str], float]:
    """Return (price of electricity per joule with its currency, PUE), the catalog's defaults where they are not stated."""
    if pue is None:
        pue = ledger.default("pue_default", f"{path}.pue", "not stated")
    if price is None:
        figure = ledger.figure("defaults", "china_electricity_price", "value")
        ledger.assume(f"{path}.electricity", figure.printed, figure.unit, "not stated: the mean of China")
        price = (figure.number, figure.unit[:3])
    return price, pue


def _holding(facts: CaseFacts, text: str | None, block: Codesign, path: str) -> Holding:
    if text is not None:
        bought = is_purchase(text)
        price = converted(offer_price(text, bought, facts.system.chips), block.currency, facts.ledger, path)
        facts.ledger.assume(path, text, "", "stated in the case")
        return Holding(held_per_s(price, bought, facts.ledger), "buy" if bought else "rent", price)
    offers = [r for r in facts.ledger.catalog.records("offers") if r.words("system") == facts.system.name]
    for how in WAYS:
        found = [(_published(r, block, facts.ledger), r) for r in offers if r.words("how") == how]
        if found:
            price, record = min(found, key=lambda pair: pair[0])
            facts.ledger.figure("offers", record.name, "price")
            return Holding(held_per_s(price, how == "buy", facts.ledger), how, price)
    return Holding(None, "", None)


def _published(record: Record, block: Codesign, ledger: Ledger) -> float:
    figure = record.figure("price")
    return converted((figure.number, figure.unit[:3]), block.currency, ledger, "codesign.currency")


def held_per_s(price: float, bought: bool, ledger: Ledger) -> float:
    """Compute the cost of holding a system per second from its purchase, or its rent per second."""
    if not bought:
        return price
    reason = "not stated in the case"
    rate = ledger.default("discount_rate", "economics.discount_rate", reason)
    life = ledger.default("system_life_s", "economics.life", reason) / YEAR_S
    left = ledger.default(f"residual_{LIFE_YEARS}y", "economics.residual", reason)
    upkeep = ledger.default("maintenance_fraction", "economics.maintenance", reason)
    return (float(annuity(price, rate, life, left)) + upkeep * price) / YEAR_S


def _porting(facts: CaseFacts, block: Codesign, chips: Sequence[CaseFacts]) -> float:
    """Cost of bringing one architecture to the family of a chip; 0 where the case states none."""
    families = {other.system.family for other in chips}
    if unknown := [f"{i}" for i, entry in enumerate(block.porting) if entry.family not in families]:
        known = ", ".join(sorted(families))
        raise SpecError(
            Issue(f"codesign.porting[{i}].family", f"no chip of the case is of this family; known here: {known}")
            for i in unknown
        )
    hours = next((entry.hours for entry in block.porting if entry.family == facts.system.family), 0.0)
    if not hours or block.rate is None:
        return 0.0
    return hours * HOUR_S * converted(block.rate, block.currency, facts.ledger, "codesign.rate")


def converted(price: tuple[float, str], currency: str, ledger: Ledger, path: str) -> float:
    """Convert (amount, currency) to a currency by the catalog's rates. Raises SpecError for one without a rate."""
    amount, stated = price
    return amount / _per_usd(stated, ledger, path) * _per_usd(currency, ledger, "currency")


def _per_usd(code: str, ledger: Ledger, path: str) -> float:
    if code == "USD":
        return 1.0
    name = f"exchange_{code.lower()}"
    if name not in ledger.catalog.names("defaults"):
        raise SpecError([Issue(path, f'the catalog has no rate for {code}; state the price in "USD"')])
    return ledger.default(name, f"exchange.{code}.per_usd", "the catalog's mean rate")
