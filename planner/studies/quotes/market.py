"""Compare the price of a quote with the prices that the catalog knows of the same system and way to obtain, per chip."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from catalog.exchange import per_usd
from catalog.lookup import Catalog
from catalog.units import show
from planner.facts.prices import market
from planner.messages import Message
from planner.report.words import share_words
from planner.studies.quotes.quote import SECONDS, Quote


@dataclass(frozen=True, slots=True)
class Market:
    """Price of one chip in the currency of the quote [currency, or currency/s], and the least and most that the catalog knows."""

    per_chip: float
    least: float
    most: float
    unit: str
    source: str

    @property
    def message(self) -> Message:
        """Say on which side of the known range the price lies, and how far from it."""
        told = {
            name: show(value, self.unit)
            for name, value in (("price", self.per_chip), ("least", self.least), ("most", self.most))
        }
        if self.per_chip < self.least:
            return Message.of("quote.below_market", share=share_words(1 - self.per_chip / self.least, ".0%"), **told)
        if self.per_chip > self.most:
            return Message.of("quote.above_market", share=share_words(self.per_chip / self.most - 1, ".0%"), **told)
        if self.least == self.most:
            return Message.of("quote.at_market", price=told["price"])
        return Message.of("quote.within_market", **told)

    def row(self) -> dict[str, Any]:
        """Write it as JSON."""
        return {
            "per_chip": self.per_chip,
            "least": self.least,
            "most": self.most,
            "unit": self.unit,
            "source": self.source,
        }


def market_of(quote: Quote, catalog: Catalog) -> Market | None:
    """Find the known prices; None where the catalog has none, or no rate for the currency of the quote."""
    system = catalog.get("systems", quote.system)
    known, rate = market(catalog, system, quote.how), per_usd(catalog, quote.currency)
    if known is None or rate is None or known.most <= 0.0:
        return None
    chips = system.value("chips") if quote.per == "system" else 1.0
    unit = f"{quote.currency}/chip" + (" s" if quote.time else "")
    return Market(
        quote.amount / chips / SECONDS.get(quote.time, 1.0), known.least * rate, known.most * rate, unit, known.source
    )
