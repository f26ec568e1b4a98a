"""Time-of-use tariffs: which band holds at a local time, at what price. A plan's clock and money are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from catalog.errors import Wrong, close_names, did_you_mean
from catalog.figures import Figure
from catalog.records import Record
from catalog.units import HOURS_PER_DAY

SATURDAY, SUNDAY = 5, 6
MONTHS_PER_YEAR, DAYS_PER_WEEK = 12, 7
_DAYS = {
    "all": range(7),
    "weekday": range(SATURDAY),
    "weekend": (SATURDAY, SUNDAY),
    "saturday": (SATURDAY,),
    "sunday": (SUNDAY,),
}


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
        """Tell whether it holds in this month (1 to 12) on this day of the week (Monday is 0)."""
        return month in self.months and weekday in _DAYS[self.days]


def tariff_bands(tariff: Record) -> tuple[Band, ...]:
    """List the bands of a tariff record."""
    bands = tariff.text.get("bands", ())
    return tuple(
        Band(months, days, start, end, name, tariff.figures.get(figure))
        for months, days, start, end, name, figure in (bands if isinstance(bands, tuple) else ())
    )


def hourly_values(tariff: Record, month: int, weekday: int) -> tuple[float | None, ...]:
    """Compute the price or multiplier of each local hour of a day, averaged within an hour in which the band changes;
    None for an hour without a figure."""
    return values_by_day(tariff_bands(tariff))[month, weekday]


@lru_cache(maxsize=64)
def values_by_day(bands: tuple[Band, ...]) -> Mapping[tuple[int, int], tuple[float | None, ...]]:
    """Map (month, weekday) to the price or multiplier of each local hour, see `hourly_values`."""
    return {
        (month, weekday): _hours(bands, month, weekday)
        for month in range(1, MONTHS_PER_YEAR + 1)
        for weekday in range(DAYS_PER_WEEK)
    }


def _hours(bands: tuple[Band, ...], month: int, weekday: int) -> tuple[float | None, ...]:
    weights = [0.0] * HOURS_PER_DAY
    sums = [0.0] * HOURS_PER_DAY
    for band in bands:
        if band.figure is None or not band.holds(month, weekday):
            continue
        for hour in range(HOURS_PER_DAY):
            share = max(0.0, min(band.end_h, hour + 1) - max(band.start_h, hour))
            weights[hour] += share
            sums[hour] += share * band.figure.number
    return tuple(s if abs(w - 1) < 1e-9 else None for s, w in zip(sums, weights, strict=True))


def malformed_texts(record: Record) -> Iterator[tuple[str, str]]:
    """Check the texts of a region or tariff that a schema cannot check, and yield (key, message) for each problem."""
    zone = record.text.get("timezone")
    if record.kind == "regions" and isinstance(zone, str) and not _is_zone(zone):
        yield "timezone", Wrong("catalog.expected_time_zone", given=zone)
    bands = record.text.get("bands", ())
    if record.kind != "tariffs":
        return
    if not isinstance(bands, tuple):
        yield "bands", Wrong("catalog.expected_bands", row=str(_ROW), given=str(bands))
        return
    for i, row in enumerate(bands):
        if message := _malformed_band(row, record):
            yield f"bands[{i}]", message
    units = sorted(
        {
            record.figures[row[5]].unit
            for row in bands
            if isinstance(row, tuple) and len(row) == 6 and str(row[5]) in record.figures
        }
    )
    if len(units) > 1:
        yield "bands", Wrong("catalog.expected_one_unit", given=", ".join(units))


_ROW = '[[1, 2, 12], "weekday", 8, 22, "peak", "price_peak"] (months, days, hour from, hour to, band, figure)'


def _malformed_band(row: object, record: Record) -> str:
    """Describe the fault of a row of bands; empty where nothing is."""
    if not isinstance(row, tuple) or len(row) != 6:
        return Wrong("catalog.band_row", row=_ROW)
    months, days, start, end, name, figure = row
    if not isinstance(months, tuple) or not months or not all(type(m) is int and 1 <= m <= 12 for m in months):
        return Wrong("catalog.band_months")
    if not isinstance(days, str) or days not in _DAYS:
        return Wrong("catalog.band_days", names=", ".join(_DAYS))
    if type(start) not in (int, float) or type(end) not in (int, float) or not 0 <= start < end <= HOURS_PER_DAY:
        return Wrong("catalog.band_hours", most=str(HOURS_PER_DAY))
    if not isinstance(name, str) or not isinstance(figure, str):
        return Wrong("catalog.band_names")
    if figure and figure not in record.figures:
        return Wrong("catalog.band_figure", figure=figure, close=did_you_mean(close_names(figure, record.figures)))
    return ""


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # not found, a path, a directory
        return False
    return True
