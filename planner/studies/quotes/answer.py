"""State the answers to quotes: the verdict on each, with saving, thresholds, what it displaces and how sure it is; and the ranking of several."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.messages import Message, enumerated, say
from planner.plan import Plan
from planner.report.words import amount, how_words, share_words, with_unit
from planner.studies.base.planned import Base
from planner.studies.quotes.market import Market
from planner.studies.quotes.quote import Quote, price_text
from planner.studies.quotes.threshold import Threshold

TAKE, UNPROVEN, LEAVE, NEEDED, NO_PLAN, OPEN = "take", "unproven", "leave", "needed", "no plan", "open"
"""Verdicts: proven to save, found to save within the gaps, not taken, without it there is no plan, with it there is none either, and search ended early."""
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """Systems of one kind at a site, obtained in one way: the most held at once without the quote, and with it."""

    site: str
    system: str
    how: str
    before: int
    after: int

    def row(self) -> Row:
        """Write it as a row."""
        change = self.after - self.before
        return {
            "site": self.site,
            "system": self.system,
            "how": self.how,
            "before": self.before,
            "after": self.after,
            "change": change,
        }


@dataclass(frozen=True, slots=True)
class Saving:
    """By how much a plan with a quote is better in the objective; it lies between `low` and `high` for certain."""

    found: float
    low: float
    high: float

    def row(self) -> Row:
        """Write it as JSON; no number for one without end."""
        return {"found": _finite(self.found), "low": _finite(self.low), "high": _finite(self.high)}


@dataclass(frozen=True, slots=True, kw_only=True)
class QuoteAnswer:
    """The answer to one quote. `taken` systems of `most`; `changes`: of the fleet beside it; `kept`: share of scenarios in which promises are kept."""

    quote: Quote
    verdict: str
    status: str
    saving: Saving
    taken: int
    most: int | None
    first: Threshold | None
    full: Threshold | None
    changes: tuple[Change, ...]
    kept: float | None
    kept_before: float | None
    market: Market | None
    notes: tuple[Message, ...]
    plan: Plan | None

    def document(self) -> Row:
        """Write it as JSON."""
        return {
            "quote": self.quote.sentence(),
            "verdict": self.verdict,
            "status": self.status,
            "saving": self.saving.row(),
            "taken": self.taken,
            "most": self.most,
            "price_unit": self.unit,
            "below": None if self.first is None else self.first.row(),
            "all_below": None if self.full is None else self.full.row(),
            "changes": [change.row() for change in self.changes],
            "confidence": {"with": self.kept, "without": self.kept_before},
            "market": None if self.market is None else {**self.market.row(), **self.market.message.row()},
            "notes": [note.row() for note in self.notes],
        }

    @property
    def unit(self) -> str:
        """Return the unit of the price, such as "USD/chip/h"."""
        return price_text(0.0, self.quote).removeprefix("0 ")

    def shown(self, price: float | None) -> str:
        """Write a price in the unit of the quote."""
        return "" if price is None or not math.isfinite(price) else with_unit(price, self.unit)

    def words(self, unit: str, without: float) -> list[str]:
        """Say what to do with the quote; `without`: the objective without it, in `unit`."""
        said = [say("quote.understood", quote=self.quote.sentence()), self._verdict(unit, without)]
        said += self._thresholds()
        moved = [
            say("quote.change", change=f"{change.after - change.before:+,d}", system=change.system, how=how_words(change.how), site=change.site)
            for change in self.changes
        ]  # fmt: skip
        if self.taken and moved:
            said.append(say("quote.displaces", changes=enumerated(moved)))
        if self.market is not None:
            said.append(self.market.message.text())
        if self.kept is not None and self.kept_before is not None:
            said.append(say("quote.confidence", kept=f"{self.kept:.0%}", before=f"{self.kept_before:.0%}"))
        return [*said, *(note.text() for note in self.notes)]

    def _verdict(self, unit: str, without: float) -> str:
        told: dict[str, str] = {"system": self.quote.system}
        if self.verdict in (NO_PLAN, OPEN):
            return say("quote.verdict_open" if self.verdict == OPEN else "quote.verdict_no_plan", **told)
        told["taken"] = self._taken()
        if self.verdict == NEEDED:
            return say("quote.verdict_needed", **told)
        saving = {
            name: _money(value, unit) for name, value in (("saving", self.saving.found), ("low", self.saving.low), ("high", self.saving.high))
        }  # fmt: skip
        share = share_words(self.saving.found / abs(without), ".2%") if without else ""
        if self.verdict == TAKE:
            return say("quote.verdict_take", **told, **saving, share=share)
        if self.verdict == UNPROVEN:
            return say("quote.verdict_unproven", **told, **saving, share=share)
        return say("quote.verdict_leave", system=self.quote.system, high=saving["high"])

    def _taken(self) -> str:
        """Say how many are taken, of how many."""
        if self.most is None:
            return say("quote.taken", count=self.taken, system=self.quote.system)
        return say("quote.taken_of", count=self.taken, most=self.most, system=self.quote.system)

    def _thresholds(self) -> list[str]:
        """Say below which price some is taken, and all."""
        said = []
        for found, code in ((self.first, "some"), (self.full, "all")):
            if found is None or (code == "all" and self.quote.is_all_or_nothing):
                continue
            code = "whole" if code == "some" and self.quote.is_all_or_nothing else code
            if found.at is None:
                said.append(say(f"quote.never_{code}"))
                continue
            told = {"at": self.shown(found.at), "low": self.shown(found.low), "high": self.shown(found.high)}
            if not told["high"]:
                said.append(say(f"quote.below_{code}_from", at=told["at"], low=told["low"]))
            elif told["low"] == told["high"]:
                said.append(say(f"quote.below_{code}_exactly", at=told["at"]))
            else:
                said.append(say(f"quote.below_{code}", **told))
        return said


@dataclass(frozen=True, slots=True)
class Together:
    """The plan with all quotes at once: how many systems of each it takes, in the order of the quotes."""

    status: str
    saving: Saving
    taken: tuple[int, ...]
    plan: Plan | None


@dataclass(frozen=True, slots=True)
class QuoteAnswers:
    """Answers to quotes, the one that saves most first; `together`: all at once, None for a single quote. `unit`: of the objective.

    `renewed`: whether a stored plan was solved anew.
    """

    base: Base
    unit: str
    found: tuple[QuoteAnswer, ...]
    together: Together | None = None
    seconds: float = 0.0
    renewed: bool = False

    @property
    def status(self) -> str:
        """Return the status of the plan with the best quote, which is the one without it where it is left."""
        return self.found[0].status

    @property
    def rows(self) -> list[Row]:
        """Return one flat row for each quote, the best first."""
        return [
            {
                "quote": each.quote.sentence(), "verdict": each.verdict, "saving": _finite(each.saving.found), "saving_low": _finite(each.saving.low),
                "saving_high": _finite(each.saving.high), "unit": self.unit, "taken": each.taken, "most": each.most,
                **{f"below_{key}": value for key, value in _row(each.first).items()},
                **{f"all_below_{key}": value for key, value in _row(each.full).items()},
                "price_unit": each.unit, "status": each.status,
            }
            for each in self.found
        ]  # fmt: skip

    @property
    def changes(self) -> list[Row]:
        """Return the changes of the fleet with each quote as one table."""
        return [{"quote": each.quote.sentence(), **change.row()} for each in self.found for change in each.changes]

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything as JSON."""
        together = None
        if self.together is not None:
            taken = [
                {"quote": each.quote.sentence(), "taken": count}
                for each, count in zip(self.found, self.together.taken, strict=True)
            ]
            together = {"status": self.together.status, "saving": self.together.saving.row(), "taken": taken}
        return {
            "base": self.base.row(),
            "solved_anew": self.renewed,
            "unit": self.unit,
            "quotes": [each.document() for each in self.found],
            "together": together,
            "seconds": self.seconds,
        }

    @property
    def words(self) -> list[str]:
        """Say what to do with each quote, the best first, and with all."""
        said = [*([say("quote.solved_anew")] if self.renewed else []), self.base.message.text()]
        without = self.base.start if self.base.start is not None else 0.0
        for each in self.found:
            said += each.words(self.unit, without)
        if self.together is not None:
            taken = [
                say("quote.taken", count=count, system=each.quote.system)
                for each, count in zip(self.found, self.together.taken, strict=True)
                if count
            ]
            if math.isfinite(self.together.saving.found) and taken:
                saving = f"{amount(self.together.saving.found)} {self.unit}"
                low, high = (_money(end, self.unit) for end in (self.together.saving.low, self.together.saving.high))
                said.append(say("quote.together", taken=enumerated(taken), saving=saving, low=low, high=high))
            else:
                said.append(say("quote.together_none"))
        return said

    @property
    def sections(self) -> Sequence[tuple[str, list[Row]]]:
        """Return (heading, rows), formatted for people."""
        ranked = [
            {
                say("quote.head_quote"): each.quote.sentence(),
                say("quote.head_verdict"): _verdict_words(each.verdict),
                say("quote.head_saving", unit=self.unit): _shown(each.saving.found),
                say("quote.head_between"): _between(each.saving),
                say("quote.head_taken"): each.taken,
                say("quote.head_below"): "" if each.first is None else each.shown(each.first.at),
                say("quote.head_all_below"): "" if each.full is None else each.shown(each.full.at),
            }
            for each in self.found
        ]
        changed = [
            {
                say("quote.head_quote"): each.quote.sentence(),
                say("quote.head_site"): change.site,
                say("quote.head_system"): change.system,
                say("quote.head_how"): how_words(change.how),
                say("quote.head_before"): change.before,
                say("quote.head_after"): change.after,
            }
            for each in self.found
            for change in each.changes
        ]
        return [(say("quote.heading_ranking"), ranked), (say("quote.heading_changes"), changed)]


def _row(found: Threshold | None) -> Row:
    return dict.fromkeys(("at", "low", "high")) if found is None else dict(found.row())


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _shown(value: float) -> str:
    return amount(value) if math.isfinite(value) else ""


def _money(value: float, unit: str) -> str:
    """Write an amount; one that no bound limits as such."""
    return f"{amount(value)} {unit}" if math.isfinite(value) else say("quote.any_amount")


def _between(saving: Saving) -> str:
    ends = [_shown(saving.low), _shown(saving.high)]
    return say("amount.range", low=ends[0], high=ends[1]) if all(ends) else ""


def _verdict_words(verdict: str) -> str:
    return say(f"quote.cell_{verdict.replace(' ', '_')}")
