"""Say how a series of another year is read."""

from __future__ import annotations

from datetime import date

from planner.facts import Fact
from planner.messages import Message


def another_year(path: str, file: str, first: date, start: date, holidays: int = 0) -> Fact | None:
    """Say that a file whose first hour lies on `first` is read by whole weeks, where the plan begins in another year, and how many holidays are read as Sundays."""
    if first.year == start.year:
        return None
    code = "series.another_year_with_holidays" if holidays else "series.another_year"
    counted = {"count": holidays} if holidays else {}
    return Fact(path, Message.of(code, file=file, year=first.year, plan=start.year, **counted))
