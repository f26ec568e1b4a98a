"""Shared context of a resolution: the spec, the catalog with its ledger, the clock, and the problems found so far.

Problems of the user's making are collected, so that one report names them all; only a part that cannot go on raises SpecError.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from catalog.exchange import per_usd
from catalog.figures import Figure
from catalog.lookup import Catalog
from catalog.records import Record
from models.arrays import Ints
from planner.errors import Issue, SpecError, words_of
from planner.facts import Fact
from planner.facts.names import old_key
from planner.messages import Message
from planner.problem.calendar import DAYS_PER_YEAR, SAMPLED_DAYS, TYPICAL_DAY, Clock, sampled_days
from planner.problem.price_levels import at_stated_levels, with_level
from planner.resolve.ledger import Ledger
from planner.resolve.money.chip_prices import per_system
from planner.resolve.names import WrongName, find_record
from planner.spec.model import PlanSpec

STATED = Message.of("assumed.stated_in_spec").text()
NOT_STATED = Message.of("assumed.unstated").text()


@dataclass(frozen=True, slots=True)
class ResolveContext:
    """The spec at its price levels, and the means to look up names, convert currencies and book assumptions."""

    spec: PlanSpec
    catalog: Catalog
    ledger: Ledger
    clock: Clock
    represented_by: Ints | None  # [365] the day that stands for each day of the year; None with one typical day
    problems: list[Issue] = field(default_factory=list)
    notes: list[Fact] = field(default_factory=list)

    @classmethod
    def of(cls, spec: PlanSpec, catalog: Catalog) -> ResolveContext:
        """Set up the resolution of a spec: move its prices to their levels, and start the clock and the ledger."""
        problems: list[Issue] = []
        spec = per_system(spec, catalog)
        ledger = Ledger(catalog, spec.prices)
        spec = at_stated_levels(spec, lambda path, message: problems.append(Issue(path, message)))
        horizon = spec.horizon
        days = np.arange(DAYS_PER_YEAR)
        if horizon.calendar == SAMPLED_DAYS and horizon.days is not None:
            days = sampled_days(horizon.days)
        clock = Clock(
            horizon.start, horizon.calendar != TYPICAL_DAY, tuple(np.unique(days).tolist()), frozenset(horizon.holidays)
        )
        notes = [old_key(key.path, key.new) for key in spec.renamed]
        return cls(spec, catalog, ledger, clock, days if clock.whole_year else None, problems, notes)

    # -- problems --------------------------------------------------------------------------------------------------

    def add_problem(self, path: str, message: str) -> None:
        """Report a problem at a place of the spec, with its remedy."""
        self.problems.append(Issue(path, message))

    def add_fact(self, fact: Fact) -> None:
        """Keep a note for the plan, or report a fact that refuses as a problem of the spec."""
        if fact.refuses:
            self.problems.append(fact.problem())
        else:
            self.notes.append(fact)

    def raise_problems(self) -> None:
        """Raise SpecError with all problems found so far, if there are any."""
        if self.problems:
            raise SpecError(self.problems)

    # -- records ---------------------------------------------------------------------------------------------------

    def find(self, kind: str, name: str, path: str) -> Record | None:
        """Look up a record by its name; without one, add a problem at `path` and return None."""
        try:
            return find_record(self.catalog, kind, name, self.spec.overrides)
        except WrongName as error:
            self.add_problem(path, words_of(error))
            return None

    def find_all(self, kind: str, names: Sequence[str], path: str) -> list[Record] | None:
        """Look up the records of a list at `path`; None, with a problem for each wrong name, unless all are found."""
        found = [self.find(kind, name, f"{path}[{i}]") for i, name in enumerate(names)]
        known = [record for record in found if record is not None]
        return known if len(known) == len(found) else None

    def check_distinct(self, regions: Sequence[Record | None], path: str, remedy: str) -> None:
        """Add a problem for each region that occurs twice in the list at `path`, under whichever of its names."""
        first: dict[str, int] = {}
        for i, region in enumerate(regions):
            if region is not None and first.setdefault(region.name, i) != i:
                self.add_problem(
                    f"{path}[{i}].region",
                    Message.of(
                        "assumed.stands_at_already",
                        name=region.name,
                        place=path,
                        number=first[region.name],
                        remedy=remedy,
                    ).text(),
                )

    # -- money -----------------------------------------------------------------------------------------------------

    def per_usd(self, code: str, path: str) -> float:
        """Return the units of currency `code` for one US dollar: the spec's, or the catalog's cited mean."""
        if code == "USD":
            return 1.0
        if code in self.spec.exchange:
            stated = self.spec.exchange[code]
            reason = Message.of("assumed.stated_on", date=str(stated.date)).text() if stated.date else STATED
            self.ledger.assume(f"exchange.{code}.per_usd", stated.per_usd, "1", reason)
            return stated.per_usd
        name = f"exchange_{code.lower()}"
        if name in self.catalog.names("defaults"):
            return self.ledger.default(name, f"exchange.{code}.per_usd", Message.of("assumed.rate_unstated").text())
        self.add_problem(path, Message.of("assumed.no_exchange_rate", currency=code, code=code).text())
        return 1.0

    def rate(self, code: str) -> float | None:
        """Return the units of currency `code` for one US dollar, for comparisons: nothing is booked; None where it is not known."""
        return self.spec.exchange[code].per_usd if code in self.spec.exchange else per_usd(self.catalog, code)

    def convert(self, price: tuple[float, str], path: str = "exchange") -> float:
        """Convert (amount, currency) to the currency of the plan, in which an amount stays as it is; `path`: the place that names the currency."""
        amount, currency = price
        if currency == self.spec.currency:
            return amount
        return amount / self.per_usd(currency, path) * self.per_usd(self.spec.currency, path)

    def price(self, figure: Figure) -> float:
        """Convert a price of the catalog, whose unit begins with its currency, to the currency of the plan."""
        return self.convert((figure.number, figure.unit[:3]))

    def ceiling(self, given: tuple[float, str] | None, path: str) -> float:
        """Convert a ceiling on money to the currency of the plan; infinite where the spec states none."""
        return math.inf if given is None else self.convert(given, path)

    # -- figures of the spec ----------------------------------------------------------------------------------------

    def assume_stated(
        self, path: str, value: float | str, unit: str, *scope: tuple[str, str, str], note: str = ""
    ) -> None:
        """Book a figure of the spec as an assumption, with the user's `note` on it."""
        self.ledger.assume(path, value, unit, note or STATED, *scope)

    def assume_price(
        self, path: str, way: str, value: float | str, unit: str, *scope: tuple[str, str, str], note: str = ""
    ) -> None:
        """Book a price of the spec as an assumption, with the level (low, typical, high) of its `way` to obtain."""
        self.ledger.assume(path, value, unit, with_level(note or STATED, self.spec.prices, path, way), *scope)
