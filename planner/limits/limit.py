"""One limit of a spec: its path, its wording, and the edits that relax it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from catalog.units import DAY_S, YEAR_S, parse, parse_money
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, WorkloadFacts
from planner.problem.limit_labels import LimitLabel
from planner.spec.changes import written_up
from planner.spec.document import Edits, at

UNLIMITED_SUPPLY = 10_000_000  # the largest supply that a spec may state
LONGEST_YEARS = 30  # the longest horizon that a spec may state

Workload = TypeVar("Workload", bound=WorkloadFacts)


@dataclass(frozen=True, slots=True, eq=False)
class Limit:
    """One limit of a spec.

    Amounts have a `unit` and may grow; any other limit has `choices`, each of which relaxes it a little.
    """

    path: str
    name: str
    words: str
    written: Any  # as the user wrote it
    is_row: bool = False  # whether it is a row of the program
    loose: Edits = ()  # edits that take the limit away; none where relaxing its row is enough
    network_of: int | None = None  # position of the site whose networks may be of any size without the limit
    unit: str | None = None
    amount: float = math.nan  # in `unit`
    most: float = math.inf  # the amount may not grow beyond
    horizon_years: int = 0  # horizon of the spec, for a deadline
    scale: float = 1.0  # `unit` per unit of the program's row (currencies differ)
    choices: tuple[Edits, ...] = ()

    @property
    def is_number(self) -> bool:
        """Tell whether the limit is an amount, relaxed by a larger number."""
        return self.unit is not None

    def grown(self, amount: float) -> Edits:
        """Return the edits that raise the limit to `amount`, rounded up to three digits and written as the user does."""
        value = written_up(self.written, amount, self.unit or "")
        if not self.path.endswith(".deadline"):
            return ((self.path, value),)
        seconds = min(parse(value, "s"), self.most)
        if seconds == self.most:
            value = f"{seconds / DAY_S:.12g} d"
        years = math.ceil(seconds / YEAR_S - 1e-9)
        return ((self.path, value), *((("horizon.years", years),) if years > self.horizon_years else ()))

    def beyond_horizon(self) -> Limit:
        """Let a deadline lie after the horizon, which then grows with it; return any other limit as it is."""
        if not self.path.endswith(".deadline"):
            return self
        longest = LONGEST_YEARS * YEAR_S
        loose = ((self.path, f"{longest / DAY_S:g} d"), ("horizon.years", LONGEST_YEARS))
        return replace(self, loose=loose, most=longest)


def way(how: str) -> str:
    """Name the act by which systems are obtained: bought, reserved, rented."""
    return Message.of(f"way.{how}").text()


def money_limit(
    document: Mapping[str, Any], problem: ResolvedSpec, key: LimitLabel, held: float, words: str, **named: str
) -> Limit:
    """Describe a limit on an amount of money, as written in the spec; `held`: in the spec's currency, `words`: code of its wording."""
    written = at(document, key.path)
    amount, unit = parse_money(written)
    if not amount:
        written, unit = f"0 {problem.spec.currency}", problem.spec.currency
    return Limit(
        key.path,
        key.name,
        Message.of(words, money=written, **named).text(),
        written,
        is_row=True,
        unit=unit,
        amount=amount,
        scale=amount / held if held else 1.0,
    )


def of_the_spec(workloads: Iterable[Workload]) -> Iterator[Workload]:
    """Yield each workload of the spec once, under its name there: all its architectures keep the same limits."""
    seen: set[str] = set()
    for workload in workloads:
        if workload.asked in seen:
            continue
        seen.add(workload.asked)
        if workload.name == workload.asked:
            yield workload
        else:
            yield replace(workload, spec=workload.spec.model_copy(update={"name": workload.asked}))
