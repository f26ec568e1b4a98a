"""Say how a series of another year is read."""

from __future__ import annotations

from datetime import date

from planner.facts import Fact
from planner.messages import Message


def another_year(path: str, file: str, first: date, start: date) -> Fact | None:
    """Say that a file whose first hour lies on `first` is read by whole weeks, where the plan begins in another year."""
    if first.year == start.year:
        return None
    return Fact(path, Message.of("series.another_year", file=file, year=first.year, plan=start.year))
