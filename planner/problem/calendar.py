"""The calendar of a plan: windows between starts and deadlines, and the representative days of each window.

A slot is one hour (UTC) of one such day in one window. Every series of a spec (price, carbon, demand) has one value for each
hour of a period: of one typical day, of several, or of all 365; `Calendar.hour` says which one a slot reads.
Not here: prices and carbon by hour (`planner.resolve.electricity_prices`), which days stand for a year (`planner.resolve.representative_days`), and the
schedule itself (`solvers.model.schedule`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np

from catalog.units import DAY_S, HOUR_S, YEAR_S
from models.arrays import Bools, Floats, Ints
from models.economics import discount_factor, window_present_worth

SLOTS_PER_DAY = 24
SUNDAY = 6  # where Monday is 0
BUSIEST_TOL = 1e-12  # difference from the most requests in a slot, relative, within which another is as busy
DAYS_PER_YEAR = 365
HOURS_PER_YEAR = DAYS_PER_YEAR * SLOTS_PER_DAY
BORDER_TOL_S = 1e-6  # two borders of windows closer than this are one
TYPICAL_DAY, TYPICAL_DAYS, SAMPLED_DAYS, FULL_YEAR = (
    "representative-day",
    "representative-days",
    "sampled-days",
    "full-year",
)


def sampled_days(count: int) -> Ints:
    """Choose `count` days at even distances; return the day that represents each of the 365: the middle one of its stretch.

    >>> np.unique(sampled_days(4)).tolist(), np.bincount(sampled_days(4))[[45, 136]].tolist()
    ([45, 136, 227, 319], [91, 91])
    """
    edges = np.rint(np.linspace(0, DAYS_PER_YEAR, count + 1)).astype(int)
    return np.repeat((edges[:-1] + edges[1:] - 1) // 2, np.diff(edges))


@dataclass(frozen=True, slots=True)
class Clock:
    """The instants behind a period: the chosen `days` of the 365 from `start`, hour by hour (UTC), or the calendar year of
    `start`, whose days are averaged into one typical day.

    On a typical day the clocks of all regions stand as at noon of `start`: an instant belongs to its hour by local time, so that summer
    time moves no hour against the demand of its users.
    """

    start: date
    whole_year: bool
    days: tuple[int, ...] = tuple(range(DAYS_PER_YEAR))
    holidays: frozenset[date] = frozenset()

    def weekday(self, local: datetime) -> int:
        """Return the weekday (Monday 0) whose shape a local day takes: a holiday that of Sunday."""
        return SUNDAY if local.date() in self.holidays else local.weekday()

    def read_at(self, timezone: str) -> list[datetime]:
        """List for each instant that at which a series of another year is read: on a holiday the same hour of the nearest Sunday."""
        zone = ZoneInfo(timezone)
        return [
            moment + timedelta(days=_days_to_sunday(moment.astimezone(zone), self.holidays))
            for moment in self.instants()
        ]

    @property
    def hours(self) -> int:
        """Count the hours of the period."""
        return len(self.days) * SLOTS_PER_DAY if self.whole_year else SLOTS_PER_DAY

    def instants(self) -> list[datetime]:
        """List the instants (UTC) whose values make up the period."""
        if self.whole_year:
            hours = _hours_from(self.start, HOURS_PER_YEAR)
            return [hour for day in self.days for hour in hours[day * SLOTS_PER_DAY : (day + 1) * SLOTS_PER_DAY]]
        first, after = date(self.start.year, 1, 1), date(self.start.year + 1, 1, 1)
        return list(_hours_from(first, (after - first).days * SLOTS_PER_DAY))

    def fold(self, values: Floats, timezone: str) -> Floats:
        """Reduce a value for each instant to values of the period: as they are, or means over the days of the year by local hour."""
        if self.whole_year:
            return values
        moved = (_offsets_s(self, timezone) - utc_offset_s(timezone, self.start)) / HOUR_S
        hours = np.tile(np.arange(SLOTS_PER_DAY), len(values) // SLOTS_PER_DAY) + moved
        first = np.floor(hours).astype(int)
        share = hours - first  # an hour that lies across two of the day counts in both
        total, weight = np.zeros(SLOTS_PER_DAY), np.zeros(SLOTS_PER_DAY)
        for hour, part in ((first, 1.0 - share), (first + 1, share)):
            np.add.at(total, hour % SLOTS_PER_DAY, part * values)
            np.add.at(weight, hour % SLOTS_PER_DAY, part)
        return np.asarray(total / weight)

    def repeated(self, day: Floats, timezone: str) -> Floats:
        """Repeat a day's 24 values over the period by local hour; `day` lists them by UTC hour while clocks show standard time."""
        usual_s = _standard_offset_s(timezone, self.start.year)
        hours = np.tile(np.arange(SLOTS_PER_DAY, dtype=float), self.hours // SLOTS_PER_DAY)
        if not self.whole_year:
            return at_hours(day, hours + (utc_offset_s(timezone, self.start) - usual_s) / HOUR_S)
        return at_hours(day, hours + (_offsets_s(self, timezone) - usual_s) / HOUR_S)


def at_hours(day: Floats, hours: Floats) -> Floats:
    """Read a day's 24 values at hours of the day, which repeats; between two hours, both in proportion.

    >>> at_hours(np.arange(24.0), np.array([3.0, 3.5, 25.0])).tolist()
    [3.0, 3.5, 1.0]
    """
    low = np.floor(hours).astype(int)
    share = hours - low
    return np.asarray((1.0 - share) * day[low % SLOTS_PER_DAY] + share * day[(low + 1) % SLOTS_PER_DAY])


def _days_to_sunday(local: datetime, holidays: frozenset[date]) -> int:
    """Count the days from a holiday to the nearest Sunday, -3 to 3; 0 from other days."""
    return (SUNDAY - local.weekday() + 3) % 7 - 3 if local.date() in holidays else 0


def utc_offset_s(timezone: str, day: date) -> float:
    """Return local minus UTC time [s] at noon of `day` in an IANA time zone."""
    return _offset_s(datetime(day.year, day.month, day.day, 12, tzinfo=ZoneInfo(timezone)))


def _standard_offset_s(timezone: str, year: int) -> float:
    """Return local minus UTC time [s] while clocks show standard time: the least of the year."""
    return min(utc_offset_s(timezone, date(year, month, 1)) for month in range(1, 13))


def _offset_s(moment: datetime) -> float:
    """Return local minus UTC time [s] of a moment in its zone."""
    offset = moment.utcoffset()
    return offset.total_seconds() if offset else 0.0


@lru_cache(maxsize=64)
def _offsets_s(clock: Clock, timezone: str) -> Floats:
    """Return local minus UTC time [s] at each instant of a clock."""
    zone = ZoneInfo(timezone)
    return np.array([_offset_s(moment.astimezone(zone)) for moment in clock.instants()])


@lru_cache(maxsize=16)
def _hours_from(first: date, count: int) -> tuple[datetime, ...]:
    begin = datetime(first.year, first.month, first.day, tzinfo=UTC)
    return tuple(begin + timedelta(hours=hour) for hour in range(count))


@dataclass(frozen=True, slots=True)
class Calendar:
    """`edges_s`: window borders [s from the start]; slot t is hour `hour[t]` of the period, in `window[t]`."""

    edges_s: Floats
    window: Ints
    hour: Ints
    seconds: Floats  # how long slot t lasts in all over the horizon [s]
    discount: Floats  # present worth of one unit paid evenly over slot t [-]
    horizon_s: float
    window_worth: Floats  # present worth of one unit paid evenly over each window [-]
    discount_rate: float  # per year
    kind: str
    start: date
    day_of: Ints  # [365] which day of the period stands for each day of the year
    days: tuple[str, ...]  # the date of each day of the period; none of a typical one
    next: Ints  # the slot that follows slot t; the last of a day, or of a year, is followed by its first
    step_s: Floats  # how long slot t lasts each time that it comes round [s]
    payments_per_year: int = 1

    @property
    def slots(self) -> int:
        """Count the slots."""
        return len(self.window)

    @property
    def windows(self) -> int:
        """Count the windows."""
        return len(self.edges_s) - 1

    def when(self, slot: int) -> dict[str, object]:
        """Name the day, where there are several, and the hour of a slot, for the report."""
        day, hour = divmod(int(self.hour[slot]), SLOTS_PER_DAY)
        return ({"day": self.days[day]} if self.days else {}) | {"hour_utc": hour}

    def window_seconds(self) -> Floats:
        """Return the length of each window [s]."""
        return np.diff(self.edges_s)

    def window_discount(self) -> Floats:
        """Return the present worth of one unit paid evenly over each window."""
        return self.window_worth

    def risen(self, escalation: float) -> Floats:
        """Compute the factor on prices in each slot that rise by a share at the end of each year, at the start of its window."""
        years = np.floor((self.edges_s[:-1] + BORDER_TOL_S) / YEAR_S)
        return np.asarray((1.0 + escalation) ** years, dtype=float)[self.window]

    def worth_between(self, begin_s: float, end_s: float) -> float:
        """Compute the present worth of one unit paid evenly between two moments."""
        begin, end, years = begin_s / YEAR_S, end_s / YEAR_S, round(self.horizon_s / YEAR_S)
        worth = float(window_present_worth(self.discount_rate, begin, end, years, self.payments_per_year))
        return worth / (end - begin)

    def within(self, start_s: float, end_s: float) -> Bools:
        """Return the mask of the slots whose window lies inside [start, end]."""
        inside = (self.edges_s[:-1] >= start_s - BORDER_TOL_S) & (self.edges_s[1:] <= end_s + BORDER_TOL_S)
        return inside[self.window]

    def local_months(self, timezone: str) -> Ints:
        """Return the month, from 0, of each of the 8,760 hours of the year by local time."""
        return _local_months(self.start, timezone)

    def months(self, timezone: str) -> Bools:
        """Return the mask [slot, 12] of the months that each slot represents an hour of, by local time."""
        local = self.local_months(timezone)
        of_hour = np.zeros((self.hour.max() + 1, 12), dtype=bool)
        day, hour = np.divmod(np.arange(HOURS_PER_YEAR), SLOTS_PER_DAY)
        of_hour[self.day_of[day] * SLOTS_PER_DAY + hour, local] = True
        return of_hour[self.hour]


def build_calendar(
    years: int,
    discount_rate: float,
    borders_s: Iterable[float],
    start: date = date(2027, 1, 1),
    stands_for: Ints | None = None,
    payments_per_year: int = 1,
) -> Calendar:
    """Build the calendar: windows between 0, the `borders_s` inside the horizon and its end, each cut into slots.

    `stands_for` [365]: the day that represents each day of the year. Without it one typical day repeats through a window, so that
    each of its 24 slots lasts a 24th of the window.
    """
    horizon_s = years * YEAR_S
    inner = sorted({float(border) for border in borders_s if 0 < border < horizon_s})
    edges = np.array([0.0, *inner, horizon_s])
    windows = len(edges) - 1
    begin, end = edges[:-1] / YEAR_S, edges[1:] / YEAR_S
    worth = window_present_worth(discount_rate, begin, end, years, payments_per_year) / (end - begin)
    typical = stands_for is None
    kept, day_of = np.unique(
        np.zeros(DAYS_PER_YEAR, dtype=int) if stands_for is None else stands_for, return_inverse=True
    )
    full = len(kept) == DAYS_PER_YEAR
    if typical:
        window, hour = np.repeat(np.arange(windows), SLOTS_PER_DAY), np.tile(np.arange(SLOTS_PER_DAY), windows)
        seconds, discount = np.repeat(np.diff(edges) / SLOTS_PER_DAY, SLOTS_PER_DAY), np.repeat(worth, SLOTS_PER_DAY)
    else:
        lasts = np.stack([_lasting(edges, year, day_of, full) for year in range(years)])  # [year, window, hour]
        total = lasts.sum(axis=0)
        window, hour = np.nonzero(total > 0)
        seconds = total[window, hour]
        worth_of = [_worth_of_pieces(discount_rate, year, full, payments_per_year) for year in range(years)]
        paid = np.stack([_lasting(edges, year, day_of, full, each) for year, each in enumerate(worth_of)]).sum(axis=0)
        discount = paid[window, hour] / seconds
    follows, step = _chain(window, hour, seconds, years, full)
    return Calendar(
        edges_s=edges, window=window, hour=hour, seconds=seconds, discount=discount, horizon_s=horizon_s, window_worth=worth, discount_rate=discount_rate,
        kind=TYPICAL_DAY if typical else FULL_YEAR if full else TYPICAL_DAYS, start=start, day_of=day_of,
        days=() if typical else tuple((start + timedelta(days=int(day))).isoformat() for day in kept), next=follows, step_s=step,
        payments_per_year=payments_per_year,
    )  # fmt: skip


def _worth_of_pieces(rate: float, year: int, full: bool, payments_per_year: int) -> Floats:
    """Compute the present worth of one unit in each hour of a year, or in each day: paid at the end of its part of the year."""
    part = np.arange(HOURS_PER_YEAR) * payments_per_year // HOURS_PER_YEAR
    by_hour = np.asarray(discount_factor(rate, year + (part + 1.0) / payments_per_year))
    return by_hour if full else np.asarray(by_hour.reshape(DAYS_PER_YEAR, SLOTS_PER_DAY).mean(axis=1))


def _lasting(edges: Floats, year: int, day_of: Ints, full: bool, weight: Floats | float = 1.0) -> Floats:
    """Return the seconds [window, hour of the period] of a year that lie in each window, each piece times its `weight`; a day counts evenly
    over its hours unless every hour represents itself."""
    piece = HOUR_S if full else DAY_S
    begin = year * YEAR_S + np.arange(HOURS_PER_YEAR if full else DAYS_PER_YEAR) * piece
    shared: Floats = np.minimum(edges[1:, None], begin + piece) - np.maximum(edges[:-1, None], begin)
    shared = np.maximum(shared, 0.0) * weight
    if full:
        return shared
    by_day = np.zeros((len(edges) - 1, int(day_of.max()) + 1))
    np.add.at(by_day.T, day_of, shared.T)
    return np.repeat(by_day / SLOTS_PER_DAY, SLOTS_PER_DAY, axis=1)


def _chain(window: Ints, hour: Ints, seconds: Floats, years: int, full: bool) -> tuple[Ints, Floats]:
    """Return (next slot, seconds of one occurrence). Each representative day is a cycle of its own; a full year is one cycle, or one
    per window where the horizon has several years."""
    group = (
        (np.zeros(len(window), dtype=int) if years == 1 else window)
        if full
        else window * DAYS_PER_YEAR + hour // SLOTS_PER_DAY
    )
    follows = np.arange(1, len(window) + 1)
    first = np.r_[True, group[1:] != group[:-1]]
    last = np.r_[first[1:], True]
    follows[last] = np.flatnonzero(first)
    return follows, np.minimum(seconds, HOUR_S) if full else np.full(len(window), HOUR_S)


@lru_cache(maxsize=16)
def _local_months(start: date, timezone: str) -> Ints:
    """Return the month, from 0, of each hour of the year from `start` by local time."""
    zone = ZoneInfo(timezone)
    months = np.array([moment.astimezone(zone).month - 1 for moment in _hours_from(start, HOURS_PER_YEAR)])
    months.flags.writeable = False
    return months
