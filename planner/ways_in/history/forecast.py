"""Forecast a demand from its past, and write it as the block `demand` of a spec.

Weekly means are forecast in logarithms (`models.statistics.back_test`). Of the spec block, `level` has the interval of the first horizon around its
typical value; `growth` is that from there to the longest horizon, with the part of its interval that the first does not have. Draws of a spec
are triangular, so low and high lie beyond the 10 % and 90 % quantiles, where a triangular distribution has these quantiles.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from models.statistics.back_test import BackTest, back_test, steps_needed
from planner.messages import say
from planner.ways_in.history.rows import History, read_history, step_words
from planner.ways_in.history.weeks import Weeks, by_week
from planner.ways_in.problems import FileProblems

HORIZONS = (1, 4, 13, 26, 52)  # weeks ahead
COVERAGE = 0.8
LEAST_OF_GROWTH = 13  # weeks ahead from which a growth per year is told
WEEKS_PER_YEAR = 365 / 7
LEAST_GROWTH, MOST_GROWTH = -0.9, 99.0  # as the spec takes them
LEAST_WEIGHT = 1e-6
ROUND = 4  # significant digits


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the past of a demand says of its future. `horizons`: back-tests by weeks ahead; None where the history is too short."""

    history: History
    weeks: Weeks
    horizons: Mapping[int, BackTest | None]

    @property
    def level(self) -> float:
        """Return the demand at the end of the history, in the unit of its key: the typical forecast of the next week, or the last weeks' median."""
        first = self.horizons[HORIZONS[0]]
        return math.exp(float(np.median(self.weeks.filled()[-4:])) if first is None else first.typical)

    @property
    def longest(self) -> BackTest | None:
        """Return the back-test of the longest horizon that tells a growth; None where none does."""
        known = [found for ahead, found in self.horizons.items() if found is not None and ahead >= LEAST_OF_GROWTH]
        return known[-1] if known else None

    def demand(self) -> dict[str, Any]:
        """Write the block `demand` of a spec."""
        per_s = _rounded(self.level)
        key = self.history.key
        block: dict[str, Any] = {key: f"{per_s:g} tokens/s" if key == "output_tokens" else per_s}
        if self.weeks.profile is not None:
            block["profile"] = [_rounded(float(max(x, 0.0))) for x in self.weeks.profile]
        if self.weeks.week is not None:
            block["week"] = [_rounded(max(float(x), LEAST_WEIGHT)) for x in self.weeks.week]
        if (first := self.horizons[HORIZONS[0]]) is not None:
            bounds = [math.exp(x - first.typical) for x in (first.low, first.high)]
            block["forecast"] = {"level": _block(triangle_of(bounds[0], 1.0, bounds[1]))}
            if (growth := self.growth()) is not None:
                block["forecast"]["growth"] = _block(triangle_of(*growth), LEAST_GROWTH, MOST_GROWTH)
        return block

    def growth(self) -> tuple[float, float, float] | None:
        """Return (10 %, typical, 90 %) of the growth per year; None where no horizon is long enough to tell it."""
        first, last = self.horizons[HORIZONS[0]], self.longest
        if first is None or last is None:
            return None
        years = (last.ahead - first.ahead) / WEEKS_PER_YEAR
        typical = (last.typical - first.typical) / years

        def beyond(longer: float, shorter: float) -> float:
            return math.sqrt(max(longer**2 - shorter**2, 0.0)) / years

        low = typical - beyond(last.typical - last.low, first.typical - first.low)
        high = typical + beyond(last.high - last.typical, first.high - first.typical)
        bounds = [min(max(math.expm1(x), LEAST_GROWTH), MOST_GROWTH) for x in (low, typical, high)]
        return bounds[0], bounds[1], bounds[2]

    def rows(self) -> list[dict[str, Any]]:
        """List the horizons: forecast, interval, back-test error and coverage, or the weeks of history that are missing."""
        found: list[dict[str, Any]] = []
        for ahead, tested in self.horizons.items():
            row: dict[str, Any] = {"workload": self.history.name, "weeks": ahead}
            if tested is None:
                row |= {"typical": None, "low": None, "high": None, "error": None, "kept": None, "tried": 0}
            else:
                low, typical, high = (math.exp(x) for x in (tested.low, tested.typical, tested.high))
                error = float(np.median(np.abs(np.expm1(tested.errors))))
                kept = tested.kept / tested.tried if tested.tried >= tested.ahead else None
                row |= {
                    "typical": typical,
                    "low": low,
                    "high": high,
                    "error": error,
                    "kept": kept,
                    "tried": tested.tried,
                }
            found.append(row | {"needed": steps_needed(ahead)})
        return found


@dataclass(frozen=True, slots=True)
class Forecasts:
    """The forecasts of all workloads of a file, in the order of their first rows."""

    file: str
    found: tuple[Forecast, ...]

    @property
    def document(self) -> dict[str, Any]:
        """Return blocks `demand` to paste into a spec, and the back-test of each horizon."""
        return {
            "workloads": [{"name": each.history.name, "demand": each.demand()} for each in self.found],
            "coverage": COVERAGE,
            "history": [
                {
                    "workload": each.history.name, "unit": each.history.key, "until": each.weeks.ends.isoformat(),
                    "weeks": len(each.weeks.means), "gaps": each.weeks.gaps, "blank_rows": each.history.blank,
                    "spread": None if each.weeks.spread is None else list(each.weeks.spread),
                    "horizons": [{key: value for key, value in row.items() if key != "workload"} for row in each.rows()],
                }
                for each in self.found
            ],
        }  # fmt: skip

    @property
    def words(self) -> list[str]:
        """Say what was read and forecast, and how many weeks are missing."""
        return [line for each in self.found for line in _words(each)]

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return the table of horizons."""
        return [(say("history.heading"), [_shown(row) for row in self.rows])]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """List the horizons of all workloads."""
        return [row for each in self.found for row in each.rows()]


def forecast(file: str | Path, zone: str = "UTC") -> Forecasts:
    """Forecast each workload of a CSV of past demand, hourly, daily or weekly. Raises SpecError with every problem by its line, or OSError."""
    path = Path(file)
    found = []
    for history in read_history(path, zone):
        weeks = by_week(history)
        if not len(weeks.means):
            raise FileProblems(path.name).refuse("history.no_demand", name=history.name)
        series = weeks.filled()
        tests = {ahead: back_test(series, ahead, COVERAGE) for ahead in HORIZONS}
        found.append(Forecast(history, weeks, tests))
    return Forecasts(path.name, tuple(found))


def triangle_of(low: float, typical: float, high: float) -> tuple[float, float, float]:
    """Return (least, typical, largest) of the triangular distribution whose 10 % and 90 % quantiles are `low` and `high`.

    With d = typical - least and e = largest - typical:  typical - low = d - sqrt((d + e) d/10),  and the same of e; solved by repetition.

    >>> [round(x, 9) for x in triangle_of(1.0 - (1.0 - 0.2**0.5), 1.0, 1.0 + (1.0 - 0.2**0.5))]
    [0.0, 1.0, 2.0]
    """
    below, above = max(typical - low, 0.0), max(high - typical, 0.0)
    d, e = below, above
    tail = (1.0 - COVERAGE) / 2.0
    for _ in range(200):
        width = d + e
        d, e = below + math.sqrt(tail * width * d), above + math.sqrt(tail * width * e)
    return typical - d, typical, typical + e


def _block(bounds: tuple[float, float, float], least: float = 1e-3, most: float = 1e3) -> dict[str, float]:
    low, typical, high = (_rounded(min(max(x, least), most)) for x in bounds)
    return {"low": low, "typical": typical, "high": high}


def _rounded(value: float) -> float:
    return float(f"{value:.{ROUND}g}")


def _words(each: Forecast) -> list[str]:
    history, weeks = each.history, each.weeks
    words = [
        say(
            "history.read", name=history.name, steps=step_words(history), weeks=len(weeks.means), until=f"{weeks.ends:%Y-%m-%d}",
            gaps=weeks.gaps, blank=history.blank,
        )
    ]  # fmt: skip
    words.append(say("history.level", name=history.name, level=f"{each.level:.4g}", unit=history.key))
    if (growth := each.growth()) is not None and each.longest is not None:
        low, typical, high = (f"{100 * x:.0f}" for x in growth)
        code = "history.growth" if each.longest.ahead == HORIZONS[-1] else "history.growth_extrapolated"
        words.append(say(code, low=low, typical=typical, high=high, weeks=each.longest.ahead))
    else:
        words.append(say("history.no_growth", needed=steps_needed(LEAST_OF_GROWTH), weeks=len(weeks.means)))
    if weeks.spread is not None:
        low, high = (f"{100 * x:.0f}" for x in weeks.spread)
        words.append(say("history.spread", low=low, high=high))
    return words


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """Write a row for people: amounts with four digits, shares in percent, the weeks that are missing in place of an interval."""
    percent = {key: "" if row[key] is None else f"{100 * row[key]:.0f} %" for key in ("error", "kept")}
    amounts = {key: "" if row[key] is None else f"{row[key]:.4g}" for key in ("typical", "low", "high")}
    if row["typical"] is None:
        amounts["typical"] = say("history.needs", needed=row["needed"])
    heads = {
        key: say(f"history.head_{key}") for key in ("workload", "weeks", "typical", "low", "high", "error", "kept")
    }
    shown = {"workload": row["workload"], "weeks": row["weeks"], **amounts, **percent}
    return {heads[key]: shown[key] for key in heads}
