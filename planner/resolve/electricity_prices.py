"""Price and carbon of a site's electricity for each hour of a plan's period, and where they come from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from zoneinfo import ZoneInfo

import numpy as np

from catalog.records import Record
from catalog.tariffs import hourly_values
from planner.errors import Problem, SpecError
from planner.problem.calendar import Clock
from planner.problem.price_levels import stated_level
from planner.resolve.ledger import Ledger
from planner.spec.electricity import Series
from planner.spec.model import Site
from planner.spec.series import at_instants, carbon_column, price_column

Money = Callable[[float, str], float]


def price_by_hour(
    site: Site,
    region: Record,
    ledger: Ledger,
    convert: Money,
    path: str,
    clock: Clock,
    series: Mapping[str, Series] = {},
) -> np.ndarray:
    """Prices of the period's hours [currency/J]: the spec's own, a tariff, a file, the operator's typical day, or the flat price.

    In China the flat price is spread over the day by the multipliers of the province, where they are complete. Raises
    MissingFigure when the region has no price at all.
    """
    energy = (("energy", region.name, "*"),)
    if site.electricity_price is not None:
        amount, currency = site.electricity_price
        ledger.assume(
            f"{path}.electricity_price",
            amount,
            f"{currency}/J",
            "stated in the spec" + stated_level(ledger.prices, f"{path}.electricity_price", "electricity"),
            *energy,
        )
        return np.full(clock.hours, convert(amount, currency))
    if site.tariff is not None:
        tariff = ledger.catalog.get("tariffs", site.tariff)
        if not _is_complete(tariff):
            message = f'"{tariff.name}" has no price for every hour of the year; state them in an overlay, or give "electricity_price"'
            raise SpecError([Problem(f"{path}.tariff", message)])
        return _tariff_by_hour(
            ledger, tariff, "time-of-use tariff chosen in the spec" + _averaged(clock), region, convert, path, clock
        )
    if (given := _series_of(site, series, path)) is not None and (column := price_column(given.filled)) is not None:
        name, currency, joules = column
        unit_price = convert(1.0, currency) / joules
        ledger.assume(
            f"{path}.hourly.price",
            site.hourly.file,
            f"{currency}/J",
            f"hourly series of {given.start[:4]} from a file"
            + _averaged(clock)
            + stated_level(ledger.prices, f"{path}.hourly", "electricity"),
            *energy,
        )
        return clock.fold(unit_price * _read(site, given, name, clock, path))
    if region.get("price_profile") is not None:
        figure = ledger.figure("regions", region.name, "price_profile")
        reason = f"typical day of the operator's wholesale prices of {figure.date}, without delivery charges"
        ledger.assume(f"{path}.electricity_price", figure.printed, figure.unit, reason, *energy)
        return clock.repeated(np.array([convert(value, figure.unit[:3]) for value in figure.value]))
    province = region.words("tariff") if region.words("export_zone") == "CN" else ""
    if province and _is_complete(tariff := ledger.catalog.get("tariffs", province)):
        reason = "multipliers of the province's time-of-use tariff on the flat price" + _averaged(clock)
        return _tariff_by_hour(ledger, tariff, reason, region, convert, path, clock)
    return np.full(clock.hours, _flat_price(region, ledger, convert, path, "one flat price for all hours"))


def carbon_by_hour(
    site: Site, region: Record, ledger: Ledger, path: str, clock: Clock, series: Mapping[str, Series] = {}
) -> np.ndarray:
    """Carbon intensities of the period's hours [kg/J]: of a file, a typical day, or the yearly mean. Raises MissingFigure."""
    emitted = ("operation", region.name, "*")
    if (given := _series_of(site, series, path)) is not None:
        column = carbon_column(given.filled, site.hourly.carbon == "life-cycle")
        if column is not None:
            reason = f"{site.hourly.carbon} carbon, hourly series of {given.start[:4]} from a file" + _averaged(clock)
            ledger.assume(f"{path}.hourly.carbon", site.hourly.file, "kg/J", reason, emitted)
            return clock.fold(column[1] * _read(site, given, column[0], clock, path))
        if site.hourly.carbon == "life-cycle" or price_column(given.filled) is None:
            raise SpecError(
                [
                    Problem(
                        f"{path}.hourly",
                        f"{site.hourly.file} has no column of {site.hourly.carbon} carbon, such as carbon{'_lca' * (site.hourly.carbon != 'direct')}_g_per_kwh",
                    )
                ]
            )
    if region.get("carbon_profile") is not None:
        figure = ledger.figure("regions", region.name, "carbon_profile")
        ledger.assume(
            f"{path}.carbon_intensity",
            figure.printed,
            figure.unit,
            f"typical day of the grid's direct carbon of {figure.date}",
            emitted,
        )
        return clock.repeated(np.array(figure.value))
    figure = ledger.figure("regions", region.name, "carbon_intensity")
    ledger.assume(
        f"{path}.carbon_intensity",
        figure.printed,
        figure.unit,
        "yearly mean for all hours: no typical day is known",
        emitted,
    )
    return np.full(clock.hours, figure.value)


def _averaged(clock: Clock) -> str:
    return "" if clock.whole_year else ", averaged over the year"


def _series_of(site: Site, series: Mapping[str, Series], path: str) -> Series | None:
    """What the site's file holds; raises SpecError where it was not found."""
    if site.hourly is None:
        return None
    if site.hourly.file not in series:
        raise SpecError(
            [
                Problem(
                    f"{path}.hourly",
                    f'"{site.hourly.file}" lies neither beside the spec nor in a folder given by --hourly; add --hourly DIR',
                )
            ]
        )
    return series[site.hourly.file]


def _read(site: Site, given: Series, column: str, clock: Clock, path: str) -> np.ndarray:
    try:
        return at_instants(given.start, given.columns[column], clock.instants(), site.hourly.fill is not None)
    except ValueError as error:
        raise SpecError([Problem(f"{path}.hourly", f"{site.hourly.file}, {column}: {error}")]) from None


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


def _tariff_by_hour(
    ledger: Ledger, record: Record, reason: str, region: Record, convert: Money, path: str, clock: Clock
) -> np.ndarray:
    """A complete tariff's price at each hour of the period, looked up in the site's local time."""
    figures = [
        ledger.figure("tariffs", record.name, band)
        for band in sorted({row[5] for row in record.text.get("bands", ())} & set(record.figures))
    ]
    days = _by_day(ledger.priced(record))
    unit = figures[0].unit
    scale = (
        _flat_price(region, ledger, convert, path, "the flat price of its tariff")
        if unit == "1"
        else convert(1.0, unit[:3])
    )
    zone = ZoneInfo(region.text["timezone"])
    local = [moment.astimezone(zone) for moment in clock.instants()]
    prices = scale * np.array([days[moment.month, moment.weekday()][moment.hour] for moment in local])
    energy = (("energy", region.name, "*"),)
    ledger.assume(f"{path}.tariff", record.name, "", reason, *energy)
    return clock.fold(prices)
