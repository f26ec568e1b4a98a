"""For how long a plan link opens: what the server allows, and what an owner can choose. Light, for the command line reads it."""

from __future__ import annotations

import os

KEEP_DAYS = "FLOPWATT_KEEP_DAYS"
"""Variable of the environment: days that a link may live; set by `flopwatt dashboard --keep-days N`."""
USUAL_DAYS = 90
CHOICES_DAYS = (1, 7, 30, 90, 365)
MOST_DAYS = 3650


def most_days() -> int:
    """Return for how many days a link may live."""
    try:
        return min(max(1, int(os.environ.get(KEEP_DAYS, ""))), MOST_DAYS)
    except ValueError:
        return USUAL_DAYS


def days() -> tuple[int, ...]:
    """List the lives that an owner can choose [days], the longest last."""
    most = most_days()
    return (*(each for each in CHOICES_DAYS if each < most), most)
