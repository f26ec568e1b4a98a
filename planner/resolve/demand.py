"""Resolve the demand of a workload by hour from the weights of hours, weekdays and months, by the local time of its users."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from catalog.units import HOUR_S
from models.arrays import Floats
from planner.problem.calendar import SLOTS_PER_DAY, Clock, at_hours, utc_offset_s
from planner.spec.workloads import Demand


def demand_by_hour(demand: Demand, timezone: str, clock: Clock) -> Floats:
    """Compute the relative demand in each hour of the period, of mean 1.

    A typical day has the offset of local time at the start of the horizon, and is the mean of all weekdays and months.
    """
    profile = np.asarray(demand.hours or np.ones(SLOTS_PER_DAY), dtype=float)
    if not clock.whole_year:
        return local_to_utc(profile / profile.mean(), utc_offset_s(timezone, clock.start))
    return _by_instant(
        timezone, clock, profile, np.asarray(demand.week or np.ones(7)), np.asarray(demand.months or np.ones(12))
    )


def local_to_utc(profile_local: Floats, offset_s: float) -> Floats:
    """Convert 24 values by local hour to values by UTC hour; half-hour zones share neighbouring hours."""
    return at_hours(profile_local, np.arange(SLOTS_PER_DAY, dtype=float) + offset_s / HOUR_S)


def _by_instant(timezone: str, clock: Clock, profile: Floats, week: Floats, months: Floats) -> Floats:
    """Weigh each instant by its local hour, weekday (Monday first) and month; between two local hours, by both in proportion."""
    zone = ZoneInfo(timezone)

    def weight(local: datetime) -> float:
        return float(profile[local.hour] * week[clock.weekday(local)] * months[local.month - 1])

    result = np.empty(clock.hours)
    for i, moment in enumerate(clock.instants()):
        local = moment.astimezone(zone)
        share = (local.minute * 60 + local.second) / HOUR_S
        later = local + timedelta(hours=1)
        result[i] = (1 - share) * weight(local) + (share * weight(later) if share else 0.0)
    return np.asarray(result / result.mean())
