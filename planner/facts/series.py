"""Say how a series was read: its layout, the hours that it lacks, and the year that it stands for."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from planner.facts import Fact
from planner.messages import Message


def another_year(path: str, file: str, first: date, start: date, holidays: int = 0) -> Fact | None:
    """Say that a file whose first hour lies on `first` is read by whole weeks, where the plan begins in another year, and how many holidays are read as Sundays."""
    if first.year == start.year:
        return None
    code = "series.another_year_with_holidays" if holidays else "series.another_year"
    counted = {"count": holidays} if holidays else {}
    return Fact(path, Message.of(code, file=file, year=first.year, plan=start.year, **counted))


def hours_read(path: str, file: str, layout: str, zone: str, per_hour: int, estimated: float) -> Fact | None:
    """Say as which publisher's layout a file was read, for which area, and that parts of hours were averaged; None for plain hours."""
    if not layout and per_hour == 1:
        return None
    code = "series.read_as" if layout else "series.parts_averaged"
    said = {"layout": layout, "zone": zone or "-", "estimated": f"{estimated:.0%}"} if layout else {}
    return Fact(path, Message.of(code, file=file, parts=per_hour, **said))


def blank_hours(path: str, file: str, values: Sequence[float | None], start: str) -> Fact | None:
    """Count the hours of a column without a value between its first hour and its last; None where there are none."""
    blank = [i for i, value in enumerate(values) if value is None]
    if not blank:
        return None
    first = datetime.fromisoformat(start) + timedelta(hours=blank[0])
    return Fact(path, Message.of("series.blank", file=file, count=len(blank), first=f"{first:%Y-%m-%d %H}:00"))
