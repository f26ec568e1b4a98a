"""Dates of figures, as sources give them: a day, a month, a half year, a year, or a range of these."""

from __future__ import annotations

import re

MONTHS = 12
_PART = re.compile(r"(?P<year>\d{4})(-(?:H(?P<half>[12])|(?P<month>\d{2})(-\d{2})?))?(?: .*)?")
_YEARS = re.compile(r"\d{4}-(?P<last>\d{4}|\d{2})")


def last_month(date: str | None) -> int | None:
    """Return the last month that a date may mean, counted from the year 0; None for no date, or one that is not understood.

    >>> last_month("2026-07-20") == last_month("2026-07") == 2026 * 12 + 6
    True
    >>> [last_month(text) // 12 for text in ("2025", "2026-H1", "2025-12..2026-06", "2025-2026", "2024-25", "2025-10 dev kit")]
    [2025, 2026, 2026, 2026, 2025, 2025]
    """
    text = (date or "").rpartition("..")[2]
    years = _YEARS.fullmatch(text)
    if years is not None and (len(years["last"]) == 4 or int(years["last"]) > MONTHS):
        return int(text[:2] + years["last"][-2:]) * MONTHS + MONTHS - 1
    part = _PART.fullmatch(text)
    if part is None:
        return None
    month = int(part["month"]) if part["month"] else 6 * int(part["half"]) if part["half"] else MONTHS
    return int(part["year"]) * MONTHS + month - 1


def age_months(date: str | None, now: str) -> int | None:
    """Return how many months a date lies before another at least; 0 for a later one, None for no date.

    >>> age_months("2024-06", "2026-11"), age_months("2025", "2026-11"), age_months(None, "2026-11")
    (29, 11, None)
    """
    then, today = last_month(date), last_month(now)
    return None if then is None or today is None else max(today - then, 0)
