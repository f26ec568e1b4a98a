"""Time of a plan: windows between starts and deadlines, each with one typical day of 24 slots by UTC hour.

Not here: prices and carbon by hour (`planner.resolve`), and the schedule itself (`solvers.schedule`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

import numpy as np

from catalog.units import HOUR_S, YEAR_S
from models.economics import window_present_worth

SLOTS_PER_DAY = 24


@dataclass(frozen=True, slots=True)
class Calendar:
    """`edges_s`: window borders [s from the start]; slot t is hour `hour[t]` (UTC) of each day of `window[t]`."""

    edges_s: np.ndarray
    window: np.ndarray
    hour: np.ndarray
    seconds: np.ndarray  # how long slot t lasts in all over the horizon [s]
    discount: np.ndarray  # present worth of one unit paid evenly over slot t's window [-]
    horizon_s: float

    @property
    def slots(self) -> int:
        return len(self.window)

    @property
    def windows(self) -> int:
        return len(self.edges_s) - 1

    def window_seconds(self) -> np.ndarray:
        return np.diff(self.edges_s)

    def window_discount(self) -> np.ndarray:
        return self.discount[:: SLOTS_PER_DAY]

    def within(self, start_s: float, end_s: float) -> np.ndarray:
        """Mask of the slots whose window lies inside [start, end]."""
        inside = (self.edges_s[:-1] >= start_s - 1e-6) & (self.edges_s[1:] <= end_s + 1e-6)
        return inside[self.window]


def build_calendar(years: int, discount_rate: float, borders_s: Iterable[float]) -> Calendar:
    """Windows between 0, the `borders_s` inside the horizon and its end; each stands for its own length of time.

    A typical day repeats through a window, so each of its 24 slots lasts a 24th of the window.
    """
    horizon_s = years * YEAR_S
    inner = sorted({float(border) for border in borders_s if 0 < border < horizon_s})
    edges = np.array([0.0, *inner, horizon_s])
    windows = len(edges) - 1
    length_years = np.diff(edges) / YEAR_S
    discount = window_present_worth(discount_rate, edges[:-1] / YEAR_S, edges[1:] / YEAR_S, years) / length_years
    return Calendar(
        edges_s=edges,
        window=np.repeat(np.arange(windows), SLOTS_PER_DAY),
        hour=np.tile(np.arange(SLOTS_PER_DAY), windows),
        seconds=np.repeat(np.diff(edges) / SLOTS_PER_DAY, SLOTS_PER_DAY),
        discount=np.repeat(discount, SLOTS_PER_DAY),
        horizon_s=horizon_s,
    )


def utc_offset_s(timezone: str, day: date) -> float:
    """Local minus UTC time [s] at noon of `day` in an IANA time zone."""
    offset = datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(timezone)).utcoffset()
    return offset.total_seconds() if offset else 0.0


def local_to_utc(profile_local: np.ndarray, offset_s: float) -> np.ndarray:
    """24 values by local hour as 24 values by UTC hour; half-hour zones share neighbouring hours."""
    hours = np.arange(SLOTS_PER_DAY) + offset_s / HOUR_S
    low = np.floor(hours).astype(int)
    share = hours - low
    return (1 - share) * profile_local[low % SLOTS_PER_DAY] + share * profile_local[(low + 1) % SLOTS_PER_DAY]
