"""Compare owned and offered systems with when its kind came out, how long it lasts, and how many of it there are."""

from __future__ import annotations

import re
from datetime import date

from catalog.records import Record
from catalog.units import YEAR_S
from planner.facts import Fact
from planner.facts.ranges import Known
from planner.messages import Message

LIVES = 2.0  # service lives after which nobody keeps spare parts of a system
MADE = Known(
    0.0, 20e6, "NVIDIA, GTC Washington, October 2025: 20M Blackwell and Rubin GPUs from 2025 to the end of 2026"
)
TERMS = Known(
    0.0, 6 * YEAR_S, "longest service life that owners of accelerators state, 6 years (defaults/system_life_s)"
)


def release_year(system: Record, chip: Record | None) -> int | None:
    """Return the year in which a system came out, or its chip where the system states none; None where neither does."""
    for record in (system, chip):
        if record is not None and (found := re.match(r"\d{4}", record.words("year"))):
            return int(found[0])
    return None


def older_than_its_kind(path: str, age_years: float, start: date, system: str, year: int | None) -> Fact | None:
    """Name a system that is older than its kind: (year of the start) - age < year of release, with a year of grace for early samples."""
    if year is None or start.year - age_years >= year - 1:
        return None
    told = Message.of("owned.older_than_its_kind", age=age_years, system=system, year=str(year), start=str(start))
    return Fact(path, told, f"systems/{system}, year of its release")


def beyond_its_life(path: str, age_years: float, system: str, life_years: float) -> Fact | None:
    """Name a system of more than two service lives. `life_years`: the one that the catalog counts with."""
    if age_years < LIVES * life_years:
        return None
    told = Message.of("owned.beyond_its_life", age=age_years, system=system, life=life_years)
    return Fact(path, told, "defaults/system_life_s")


def before_release(path: str, end: date, system: str, year: int | None) -> Fact | None:
    """Name an offer of a system that comes out after the horizon has ended."""
    if year is None or end.year >= year:
        return None
    told = Message.of("offer.before_release", system=system, year=str(year), end=str(end))
    return Fact(path, told, f"systems/{system}, year of its release")


def twice(path: str, code: str, first: str) -> Fact:
    """Name an entry that stands in the input a second time, `first` its place before: its figures count twice."""
    return Fact(path, Message.of(code, first=first), "arithmetic")
