"""Times and annuities that several checks use."""

from __future__ import annotations

from catalog.units import YEAR_S
from planner.problem.calendar import Calendar

TIME_TOL_S = 1e-6  # moments that differ by less are one


def annuity(rate: float, years: float) -> float:
    """Compute the yearly payment that repays one unit over a number of years (capital recovery factor)."""
    return 1 / years if rate == 0 else float(rate / (1 - (1 + rate) ** -years))


def risen(escalation: float, moment_s: float) -> float:
    """Compute the factor on a price that rises by a share at the end of each year, at a moment from the start."""
    return float((1 + escalation) ** int((moment_s + TIME_TOL_S) // YEAR_S))


def risen_by_slot(calendar: Calendar, escalation: float) -> list[float]:
    """Return the factor of each slot: that at the start of its window."""
    return [risen(escalation, float(calendar.edges_s[int(w)])) for w in calendar.window]


def paid_yearly(rate: float, years: int, begin: float, end: float, times: int = 1, escalation: float = 0.0) -> float:
    """Compute the present worth of one unit per year from `begin` to `end` [years], which rises from year to year: each part of a year is paid at its end."""
    total = 0.0
    for year in range(years):
        for part in range(times):
            starts, ends = year + part / times, year + (part + 1) / times
            inside = max(min(end, ends) - max(begin, starts), 0.0)
            total += inside * (1 + escalation) ** year * (1 + rate) ** -ends
    return total
