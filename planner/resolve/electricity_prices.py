"""Resolve price and carbon of a site's electricity for each hour of a plan's period, and book their sources."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date
from zoneinfo import ZoneInfo

import numpy as np

from catalog.contents import contents_of
from catalog.figures import Figure
from catalog.records import Record
from catalog.tariffs import tariff_bands, values_by_day
from models.arrays import Floats
from planner.errors import Issue, SpecError, words_of
from planner.facts.series import another_year, blank_hours, hours_read
from planner.messages import Message
from planner.problem.calendar import Clock
from planner.problem.electricity import PriceContents
from planner.problem.price_levels import with_level
from planner.resolve.context import ResolveContext
from planner.resolve.money.contents import MARKET, charges, user_contents
from planner.spec.electricity import Hourly, Series
from planner.spec.series import at_instants, carbon_column, price_column
from planner.spec.sites import Site


@dataclass(frozen=True, slots=True)
class _Priced:
    """A price by hour of the period [currency/J], and the state of each part in it (`catalog.contents`)."""

    per_j: Floats
    contents: dict[str, str]
    of_market: bool = False


def price_by_hour(context: ResolveContext, site: Site, region: Record, path: str) -> tuple[Floats, PriceContents]:
    """Resolve the prices of the period's hours [currency/J], with the charges on top, and their contents. Raises MissingFigure."""
    found = _stated_price(context, site, region, path) or _catalog_price(context, region, path)
    on_top = charges(context, site, region, path, found.contents)
    return found.per_j + on_top.delivered_per_j, replace(on_top, market_per_j=found.per_j if found.of_market else None)


def _stated_price(context: ResolveContext, site: Site, region: Record, path: str) -> _Priced | None:
    """Resolve the prices that the spec states or names: its own, a tariff, or a file; None where it leaves them to the catalog."""
    clock, ledger, scope = context.clock, context.ledger, ("energy", region.name, "*")
    if site.electricity_price is not None:
        amount, currency = site.electricity_price
        context.assume_price(f"{path}.electricity_price", "electricity", amount, f"{currency}/J", scope)
        return _Priced(np.full(clock.hours, context.convert((amount, currency))), user_contents(site))
    if site.tariff is not None:
        tariff = ledger.catalog.get("tariffs", site.tariff)
        if not _is_complete(tariff):
            message = Message.of("resolve.tariff_incomplete", name=tariff.name).text()
            raise SpecError([Issue(f"{path}.tariff", message)])
        reason = _averaged(Message.of("resolve.tariff_chosen").text(), clock)
        return _tariff_by_hour(context, tariff, reason, region, path)
    if site.hourly is not None:
        given = _series_of(context, site.hourly, path)
        if (column := price_column(given.filled)) is not None:
            name, currency, joules = column
            series = Message.of("resolve.hourly_series", year=given.start[:4]).text()
            reason = with_level(_averaged(series, clock), ledger.prices, f"{path}.hourly", "electricity")
            ledger.assume(f"{path}.hourly.price", site.hourly.file, f"{currency}/J", reason, scope)
            per_j = (
                context.convert((1.0, currency))
                / joules
                * _read(context, site.hourly, given, name, path, region.words("timezone"))
            )
            return _Priced(clock.fold(per_j, region.words("timezone")), MARKET, of_market=True)
        if (blank := price_column(given.columns)) is not None:
            message = Message.of("resolve.column_blank", file=site.hourly.file, column=blank[0]).text()
            raise SpecError([Issue(f"{path}.hourly", message)])
    return None


def _catalog_price(context: ResolveContext, region: Record, path: str) -> _Priced:
    """Resolve the catalog's prices of a region: the operator's typical day, or the flat price.

    In China the multipliers of the province spread the flat price over the day, where they are complete. Raises MissingFigure when
    the region has no price at all.
    """
    clock, ledger = context.clock, context.ledger
    if region.get("price_profile") is not None:
        figure = ledger.figure("regions", region.name, "price_profile")
        reason = Message.of("resolve.typical_day_of_prices", year=str(figure.date)).text()
        scope = ("energy", region.name, "*")
        ledger.assume(f"{path}.electricity_price", figure.printed, figure.unit, reason, scope)
        market = np.array([context.convert((value, figure.unit[:3])) for value in _values(figure)])
        return _Priced(
            clock.repeated(market, region.words("timezone")), contents_of(region, "price_profile"), of_market=True
        )
    province = region.words("tariff") if region.words("export_zone") == "CN" else ""
    if province and _is_complete(tariff := ledger.catalog.get("tariffs", province)):
        reason = _averaged(Message.of("resolve.multipliers_of_tariff").text(), clock)
        return _tariff_by_hour(context, tariff, reason, region, path)
    price, contents = _flat_price(context, region, path, "resolve.flat_for_all_hours")
    return _Priced(np.full(clock.hours, price), contents)


def carbon_by_hour(context: ResolveContext, site: Site, region: Record, path: str) -> Floats:
    """Resolve the carbon intensities of the period's hours [kg/J]: of a file, a typical day, or the yearly mean. Raises MissingFigure."""
    clock, ledger, scope = context.clock, context.ledger, ("operation", region.name, "*")
    if (hourly := site.hourly) is not None:
        given = _series_of(context, hourly, path)
        column = carbon_column(given.filled, hourly.carbon == "life-cycle")
        if column is not None:
            series = Message.of("resolve.hourly_carbon", kind=hourly.carbon, year=given.start[:4]).text()
            reason = _averaged(series, clock)
            ledger.assume(f"{path}.hourly.carbon", hourly.file, "kg/J", reason, scope)
            zone = region.words("timezone")
            return clock.fold(column[1] * _read(context, hourly, given, column[0], path, zone), zone)
        if hourly.carbon == "life-cycle" or price_column(given.filled) is None:
            example = f"carbon{'_lca' * (hourly.carbon != 'direct')}_g_per_kwh"
            message = Message.of(
                "resolve.carbon_column_missing", file=hourly.file, kind=hourly.carbon, name=example
            ).text()
            raise SpecError([Issue(f"{path}.hourly", message)])
    if region.get("carbon_profile") is not None:
        figure = ledger.figure("regions", region.name, "carbon_profile")
        reason = Message.of("resolve.typical_day_of_carbon", year=str(figure.date)).text()
        ledger.assume(f"{path}.carbon_intensity", figure.printed, figure.unit, reason, scope)
        return clock.repeated(np.array(_values(figure)), region.words("timezone"))
    figure = ledger.figure("regions", region.name, "carbon_intensity")
    reason = Message.of("resolve.yearly_mean").text()
    ledger.assume(f"{path}.carbon_intensity", figure.printed, figure.unit, reason, scope)
    return np.full(clock.hours, figure.number)


def _values(figure: Figure) -> tuple[float, ...]:
    """Return the values of a figure over the day."""
    return figure.value if isinstance(figure.value, tuple) else (figure.value,)


def _averaged(reason: str, clock: Clock) -> str:
    return reason if clock.whole_year else Message.of("resolve.averaged", reason=reason).text()


def _series_of(context: ResolveContext, hourly: Hourly, path: str) -> Series:
    """Return the contents of a site's file. Raises SpecError where the file was not found."""
    if hourly.series not in context.spec.series:
        message = Message.of("resolve.hourly_file_missing", file=hourly.file).text()
        raise SpecError([Issue(f"{path}.hourly", message)])
    return context.spec.series[hourly.series]


def _read(context: ResolveContext, hourly: Hourly, given: Series, column: str, path: str, timezone: str) -> Floats:
    """Read a column of a site's file at the instants behind the period. Raises SpecError for hours that are missing."""
    clock = context.clock
    first = date.fromisoformat(given.start[:10])
    note = another_year(f"{path}.hourly", hourly.file, first, clock.start, len(clock.holidays))
    if note is not None:
        context.add_fact(note)
    place, values = f"{path}.hourly", given.columns[column]
    echoes = (
        hours_read(place, hourly.file, given.layout, given.zone, given.per_hour, given.estimated),
        blank_hours(place, hourly.file, values, given.start),
    )
    for echo in filter(None, echoes):
        context.add_fact(echo)
    try:
        instants = clock.read_at(timezone) if note is not None and clock.holidays else clock.instants()
        return at_instants(given.start, given.columns[column], instants, hourly.fill is not None)
    except ValueError as error:
        raise SpecError(
            [
                Issue(
                    f"{path}.hourly",
                    Message.of("spec.in_column", file=hourly.file, column=column, error=words_of(error)).text(),
                )
            ]
        ) from None


def _flat_price(context: ResolveContext, region: Record, path: str, use: str) -> tuple[float, dict[str, str]]:
    """Resolve (flat price of a region [currency/J], its contents); in China the national mean stands in for a missing one.

    `use`: code of the words for its use.
    """
    ledger, as_what = context.ledger, Message.of(use).text()
    if region.get("electricity_price") is None and region.words("export_zone") == "CN":
        figure = ledger.figure("defaults", "china_electricity_price", "value")
        contents = contents_of(ledger.catalog.get("defaults", "china_electricity_price"))
        reason = Message.of("resolve.national_mean_stands_in", use=as_what).text()
    else:
        figure = ledger.figure("regions", region.name, "electricity_price")
        contents = contents_of(region, "electricity_price")
        source = figure.note or figure.kind
        reason = Message.of("resolve.no_hourly_price", use=as_what, source=source).text()
    scope = ("energy", region.name, "*")
    ledger.assume(f"{path}.electricity_price", figure.printed, figure.unit, reason, scope)
    return context.price(figure), contents


def _is_complete(record: Record) -> bool:
    """Tell whether the tariff has a figure for every hour of the year."""
    return all(value is not None for values in values_by_day(tariff_bands(record)).values() for value in values)


def _tariff_by_hour(context: ResolveContext, record: Record, reason: str, region: Record, path: str) -> _Priced:
    """Look up a complete tariff's price at each hour of the period, in the site's local time.

    Multipliers float the part of the flat price that is paid for the purchase of energy: price = flat ((1 - share) + share multiplier).
    """
    ledger, clock = context.ledger, context.clock
    bands = record.text.get("bands", ())
    names = {row[5] for row in bands} if isinstance(bands, tuple) else set()
    figures = [ledger.figure("tariffs", record.name, band) for band in sorted(names & set(record.figures))]
    days = values_by_day(tariff_bands(ledger.priced(record)))
    zone = ZoneInfo(region.words("timezone"))
    local = [moment.astimezone(zone) for moment in clock.instants()]
    values = np.array([days[moment.month, clock.weekday(moment)][moment.hour] for moment in local])
    unit = figures[0].unit
    if unit == "1":
        flat, contents = _flat_price(context, region, path, "resolve.flat_of_its_tariff")
        share = _floating_share(context, record, region, path)
        prices = flat * (1.0 - share + share * values)
    else:
        prices, contents = context.convert((1.0, unit[:3])) * values, contents_of(record)
    ledger.assume(f"{path}.tariff", record.name, "", reason, ("energy", region.name, "*"))
    return _Priced(clock.fold(prices, region.words("timezone")), contents)


def _floating_share(context: ResolveContext, record: Record, region: Record, path: str) -> float:
    """Return the share of a flat price that multipliers float: the tariff's, else in China that of the purchase, else all."""
    if record.get("floating_share") is not None:
        return context.ledger.value("tariffs", record.name, "floating_share")
    if region.words("export_zone") != "CN":
        return 1.0
    reason, scope = Message.of("electricity.purchase_floats").text(), ("energy", region.name, "*")
    return context.ledger.default("china_purchase_share", f"{path}.tariff.floating_share", reason, scope)
