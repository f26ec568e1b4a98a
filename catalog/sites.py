"""Time-of-use tariffs: which band holds at a local time, at what price. A plan's clock and money are elsewhere."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.figures import Figure
from catalog.records import Record
from catalog.units import HOURS_PER_DAY

SATURDAY, SUNDAY = 5, 6
_DAYS = {"all": range(7), "weekday": range(SATURDAY), "weekend": (SATURDAY, SUNDAY),
         "saturday": (SATURDAY,), "sunday": (SUNDAY,)}


@dataclass(frozen=True, slots=True)
class Band:
    """Hours [start_h, end_h) of local time on some days of some months. The figure is a price per energy or a
    multiple of the flat price (unit "1"); None where the notice states the window only."""

    months: tuple[int, ...]
    days: str
    start_h: float
    end_h: float
    name: str
    figure: Figure | None

    def holds(self, month: int, weekday: int) -> bool:
        """Whether it holds in this month (1 to 12) on this day of the week (Monday is 0)."""
        return month in self.months and weekday in _DAYS[self.days]


def tariff_bands(tariff: Record) -> tuple[Band, ...]:
    """Bands of a tariff record."""
    return tuple(Band(months, days, start, end, name, tariff.figures.get(figure))
                 for months, days, start, end, name, figure in tariff.text.get("bands", ()))


def band_at(tariff: Record, month: int, weekday: int, hour: float) -> Band | None:
    """The band that holds at a local time; None where the tariff has none."""
    return next((b for b in tariff_bands(tariff)
                 if b.holds(month, weekday) and b.start_h <= hour < b.end_h), None)


def hourly_values(tariff: Record, month: int, weekday: int) -> tuple[float | None, ...]:
    """Price or multiplier of each local hour of a day, averaged within an hour in which the band changes;
    None for an hour without a figure."""
    weights = [0.0] * HOURS_PER_DAY
    sums = [0.0] * HOURS_PER_DAY
    for band in tariff_bands(tariff):
        if band.figure is None or not band.holds(month, weekday):
            continue
        for hour in range(HOURS_PER_DAY):
            share = max(0.0, min(band.end_h, hour + 1) - max(band.start_h, hour))
            weights[hour] += share
            sums[hour] += share * band.figure.number
    return tuple(s if abs(w - 1) < 1e-9 else None for s, w in zip(sums, weights, strict=True))
