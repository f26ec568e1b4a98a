"""Take past demand apart into weekly means, a shape over the day, a shape over the week, and a rest.

D = w(week) a(weekday) h(hour) r, with shapes by medians of ratios, so that single days decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from catalog.units import DAY_S, HOUR_S
from models.arrays import Floats, Ints
from planner.ways_in.history.rows import WEEK_S, History

DAYS, HOURS = 7, 24
LEAST_SHARE = 0.5  # share of its rows that a week needs; with fewer it is a gap
LEAST_DAYS = 14  # days behind a shape


@dataclass(frozen=True, slots=True)
class Weeks:
    """Past demand by weeks that end with the last row. `means` [week] of the whole weeks, NaN: gaps. Shapes have mean 1; None: not known."""

    ends: datetime
    means: Floats
    profile: Floats | None  # [24] by hour of the day
    week: Floats | None  # [7] from Monday on
    spread: tuple[float, float] | None  # 10 % and 90 % of the rows over week x weekday x hour

    @property
    def gaps(self) -> int:
        """Count the weeks without enough rows."""
        return int(np.isnan(self.means).sum())

    def filled(self) -> Floats:
        """Return the logarithms of the weekly means, gaps interpolated."""
        there = np.flatnonzero(~np.isnan(self.means))
        return np.asarray(np.interp(np.arange(len(self.means)), there, np.log(self.means[there])))


def by_week(history: History) -> Weeks:
    """Take past demand apart; weeks before the first demand, and a first week that is not whole, are left out."""
    amounts, times = np.array(history.amounts), history.times
    end = times[-1] + timedelta(seconds=history.step_s)
    age_s = np.array([(end - time) / timedelta(seconds=1) for time in times])  # to the beginning of each row
    number = np.ceil(age_s / WEEK_S - 1e-9).astype(int) - 1  # 0: the last week
    hour = np.array([time.hour for time in times])
    day = np.array([time.weekday() for time in times])
    whole = int(np.floor(age_s.max() / WEEK_S + 1e-9))
    profile = _profile(history, amounts, hour)
    shaped = amounts / _at(profile, hour)
    week = _weekdays(history, shaped, day, number, whole)
    level = shaped / _at(week, day)
    rows = round(WEEK_S / history.step_s)
    means = np.full(whole, np.nan)
    for k in range(whole):
        mine = level[number == k]
        if len(mine) >= LEAST_SHARE * rows:
            means[whole - 1 - k] = mine.mean()
    means[means <= 0] = np.nan
    there = np.flatnonzero(~np.isnan(means))
    means = means[there[0] :] if len(there) else means[:0]
    return Weeks(end, means, profile, week, _spread(history, level, number, means))


def _at(shape: Floats | None, place: Ints) -> Floats:
    """Read a shape at places; 1 where it is not known, and where it is 0."""
    if shape is None:
        return np.ones(len(place))
    found = shape[place]
    return np.where(found > 0, found, 1.0)


def _profile(history: History, amounts: Floats, hour: Ints) -> Floats | None:
    """Return the median over days of each hour's share of its day's mean, of mean 1; None without two weeks of whole days by the hour."""
    if history.step_s != HOUR_S:
        return None
    number = np.array([time.toordinal() for time in history.times])
    table = np.full((int(number.max() - number.min()) + 1, HOURS), np.nan)
    table[number - number.min(), hour] = amounts
    days = table[~np.isnan(table).any(axis=1)]
    days = days[days.mean(axis=1) > 0]
    return _of_mean_one(np.median(days / days.mean(axis=1, keepdims=True), axis=0)) if len(days) >= LEAST_DAYS else None


def _weekdays(history: History, shaped: Floats, day: Ints, number: Ints, whole: int) -> Floats | None:
    """Return the median over weeks of each weekday's share of its week's mean, of mean 1; None for weekly rows, and for under four whole weeks."""
    if history.step_s > DAY_S:
        return None
    shares = []
    for k in range(whole):
        mine = number == k
        days = [shaped[mine & (day == d)] for d in range(DAYS)]
        if all(len(values) for values in days) and (means := np.array([values.mean() for values in days])).mean() > 0:
            shares.append(means / means.mean())
    return _of_mean_one(np.median(shares, axis=0)) if len(shares) >= 4 else None


def _spread(history: History, level: Floats, number: Ints, means: Floats) -> tuple[float, float] | None:
    """Return the 10 % and 90 % quantiles of the rows over what week and shapes say; None for weekly rows."""
    place = len(means) - 1 - number
    known = (place >= 0) & (history.step_s < WEEK_S)
    ratio = level[known] / means[place[known]]
    ratio = ratio[np.isfinite(ratio)]
    return None if not len(ratio) else (float(np.quantile(ratio, 0.1)), float(np.quantile(ratio, 0.9)))


def _of_mean_one(shape: Floats) -> Floats | None:
    return np.asarray(shape / shape.mean()) if shape.mean() > 0 else None
