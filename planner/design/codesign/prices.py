"""What the chips of a co-design case cost to hold and to run, and what porting an architecture to them costs.

Holding is the capital recovery of the price less its residual value, with maintenance, or the rent; running is electricity. Staff,
software, buildings and networks are left out, as they do not tell variants on one chip apart: `flopwatt plan` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from catalog.records import Record
from catalog.units import HOUR_S
from planner.design.codesign.space import Space
from planner.design.prices import converted, energy_price, held_per_s
from planner.errors import Issue, SpecError
from planner.estimate.case import CaseFacts
from planner.messages import Message
from planner.resolve.ledger import Ledger
from planner.spec.quantities import is_purchase, offer_price
from planner.spec.stack.codesign import Codesign

WAYS = ("buy", "reserved", "on_demand")  # in which a published price is looked for


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


def _holding(facts: CaseFacts, text: str | None, block: Codesign, path: str) -> Holding:
    if text is not None:
        bought = is_purchase(text)
        price = converted(offer_price(text, bought, facts.system.chips), block.currency, facts.ledger, path)
        facts.ledger.assume(path, text, "", Message.of("assumed.in_case").text())
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


def _porting(facts: CaseFacts, block: Codesign, chips: Sequence[CaseFacts]) -> float:
    """Cost of bringing one architecture to the family of a chip; 0 where the case states none."""
    families = {other.system.family for other in chips}
    if unknown := [f"{i}" for i, entry in enumerate(block.porting) if entry.family not in families]:
        known = ", ".join(sorted(families))
        raise SpecError(
            Issue(f"codesign.porting[{i}].family", Message.of("codesign.unknown_family", known=known).text())
            for i in unknown
        )
    hours = next((entry.hours for entry in block.porting if entry.family == facts.system.family), 0.0)
    if not hours or block.rate is None:
        return 0.0
    return hours * HOUR_S * converted(block.rate, block.currency, facts.ledger, "codesign.rate")
