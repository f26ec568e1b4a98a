"""Price and carbon of a site's electricity for each UTC hour of a typical day, and where they come from."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np

from catalog.records import Record
from catalog.sites import hourly_values
from catalog.units import HOUR_S
from planner.calendar import SLOTS_PER_DAY
from planner.errors import Problem, SpecError
from planner.ledger import Ledger
from planner.spec import Site

Money = Callable[[float, str], float]


def price_by_hour(site: Site, region: Record, ledger: Ledger, convert: Money, path: str, year: int) -> np.ndarray:
    """24 prices by UTC hour [currency/J]: the spec's own, a tariff, the operator's typical day, or the flat price.

    In China the flat price is spread over the day by the multipliers of the province, where they are complete. Raises
    MissingFigure when the region has no price at all.
    """
    energy = (("energy", region.name, "*"),)
    if site.electricity_price is not None:
        amount, currency = site.electricity_price
        ledger.assume(f"{path}.electricity_price", amount, f"{currency}/J", "stated in the spec", *energy)
        return np.full(SLOTS_PER_DAY, convert(amount, currency))
    if site.tariff is not None:
        tariff = ledger.catalog.get("tariffs", site.tariff)
        if not _is_complete(tariff):
            message = f'"{tariff.name}" has no price for every hour of the year; state them in an overlay, or give "electricity_price"'
            raise SpecError([Problem(f"{path}.tariff", message)])
        return _tariff_by_hour(ledger, tariff, "time-of-use tariff chosen in the spec, averaged over the year", region, convert, path, year)
    if region.get("price_profile") is not None:
        figure = ledger.figure("regions", region.name, "price_profile")
        reason = f"typical day of the operator's wholesale prices of {figure.date}, without delivery charges"
        ledger.assume(f"{path}.electricity_price", figure.printed, figure.unit, reason, *energy)
        return np.array([convert(value, figure.unit[:3]) for value in figure.value])
    province = region.words("tariff") if region.words("export_zone") == "CN" else ""
    if province and _is_complete(tariff := ledger.catalog.get("tariffs", province)):
        reason = "multipliers of the province's time-of-use tariff on the flat price, averaged over the year"
        return _tariff_by_hour(ledger, tariff, reason, region, convert, path, year)
    return np.full(SLOTS_PER_DAY, _flat_price(region, ledger, convert, path, "one flat price for all hours"))


def carbon_by_hour(region: Record, ledger: Ledger, path: str) -> np.ndarray:
    """24 carbon intensities by UTC hour [kg/J]; the yearly mean where no typical day is known. Raises MissingFigure."""
    emitted = ("operation", region.name, "*")
    if region.get("carbon_profile") is not None:
        figure = ledger.figure("regions", region.name, "carbon_profile")
        ledger.assume(f"{path}.carbon_intensity", figure.printed, figure.unit, f"typical day of the grid's direct carbon of {figure.date}", emitted)
        return np.array(figure.value)
    figure = ledger.figure("regions", region.name, "carbon_intensity")
    ledger.assume(f"{path}.carbon_intensity", figure.printed, figure.unit, "yearly mean for all hours: no typical day is known", emitted)
    return np.full(SLOTS_PER_DAY, figure.value)


def _flat_price(region: Record, ledger: Ledger, convert: Money, path: str, use: str) -> float:
    energy = (("energy", region.name, "*"),)
    if region.get("electricity_price") is None and region.text.get("export_zone") == "CN":
        figure = ledger.figure("defaults", "china_electricity_price", "value")
        reason = f"no flat price is published for this region: the national mean stands in, as {use}"
    else:
        figure = ledger.figure("regions", region.name, "electricity_price")
        reason = f"no hourly price is published for this region: {use} ({figure.note or figure.kind})"
    ledger.assume(f"{path}.electricity_price", figure.printed, figure.unit, reason, *energy)
    return convert(figure.value, figure.unit[:3])


def _by_day(record: Record) -> dict[tuple[int, int], tuple[float | None, ...]]:
    """Price or multiplier of each local hour, by month and weekday."""
    return {(month, weekday): hourly_values(record, month, weekday) for month in range(1, 13) for weekday in range(7)}


def _is_complete(record: Record) -> bool:
    """Whether the tariff has a figure for every hour of the year."""
    return all(value is not None for values in _by_day(record).values() for value in values)


def _tariff_by_hour(ledger: Ledger, record: Record, reason: str, region: Record, convert: Money, path: str, year: int) -> np.ndarray:
    """Mean over the days of `year` of a complete tariff's price at each UTC hour, looked up in the site's local time."""
    figures = [ledger.figure("tariffs", record.name, band) for band in sorted({row[5] for row in record.text.get("bands", ())} & set(record.figures))]
    days = _by_day(record)
    unit = figures[0].unit
    scale = _flat_price(region, ledger, convert, path, "the flat price of its tariff") if unit == "1" else convert(1.0, unit[:3])
    zone = ZoneInfo(region.text["timezone"])
    first = datetime(year, 1, 1, tzinfo=UTC)
    hours = int((datetime(year + 1, 1, 1, tzinfo=UTC) - first).total_seconds() // HOUR_S)
    local = [(first + timedelta(hours=hour)).astimezone(zone) for hour in range(hours)]
    prices = scale * np.array([days[moment.month, moment.weekday()][moment.hour] for moment in local])
    energy = (("energy", region.name, "*"),)
    ledger.assume(f"{path}.tariff", record.name, "", reason, *energy)
    return prices.reshape(-1, SLOTS_PER_DAY).mean(axis=0)
