"""Read hourly prices and carbon intensities as they are published: one table of layouts, and the way from rows to hours in UTC.

A layout names the columns of time, value and zone by their headers, the mark between cells, the decimal mark, and how times are written. Times of a
place with summer time are told apart where they occur twice, by their own marker or by their order. Parts of an hour are averaged; an hour with a
part missing is blank, as is one that the file leaves out.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from zoneinfo import ZoneInfo

from planner.errors import MOST_SHOWN
from planner.messages import Message

HOUR = timedelta(hours=1)
YEARS = range(1900, 2200)
MOST_HOURS = 366 * 24
MOST_VALUE = 1e6  # largest price per MWh or carbon intensity in g/kWh; larger ones are errors of typing
CENTRAL_EUROPE, GERMANY, SPAIN = ZoneInfo("Europe/Brussels"), ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Madrid")
NEM = timezone(timedelta(hours=10))  # time of the Australian market, without summer time
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
MARKERS = {
    "CET": timezone(HOUR),
    "CEST": timezone(2 * HOUR),
    "UTC": UTC,
    "BST": timezone(HOUR),
    "GMT": UTC,
    "WET": UTC,
    "WEST": timezone(HOUR),
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of values: its header, and the name that a spec gives it; groups of the header fill `{currency}` and name the zone by `zone`."""

    header: str
    name: str


@dataclass(frozen=True, slots=True)
class HourLayout:
    """How a publisher lays out hours: headers are patterns that match as a whole, without case.

    `zone`: column that names the area. `keep`: column and the values of it that count. `ending`: times are those at which an interval ends.
    """

    name: str
    time: str
    read_time: Callable[[str, str], tuple[datetime, tzinfo | None]]
    columns: tuple[Column, ...]
    clock: tzinfo = UTC
    zone: str = ""
    keep: tuple[str, str] = ("", "")
    ending: bool = False
    cells: str = ","
    decimal: str = "."
    estimated: str = ""


@dataclass(frozen=True, slots=True)
class PublishedHours:
    """Hours of one zone: the first one in UTC, values by column with None where blank, most values of an hour that were averaged, and the share of rows that the
    publisher estimated."""

    layout: str
    zone: str
    start: datetime
    columns: Mapping[str, list[float | None]]
    per_hour: int
    estimated: float


# -- times ---------------------------------------------------------------------------------------------------------


def _iso(cell: str, header: str) -> tuple[datetime, tzinfo | None]:
    """Read 2024-01-01 00:00:00, with T, Z or an offset too."""
    moment = datetime.fromisoformat(cell.strip())
    return moment.replace(tzinfo=None), moment.tzinfo


def _european(cell: str, header: str) -> tuple[datetime, tzinfo | None]:
    """Read the start of 01/01/2024 00:00:00 - 01/01/2024 01:00:00, with dots, and with its marker of summer time, of the header where that has one zone."""
    match = re.match(r"\s*(\d{2})[./](\d{2})[./](\d{4}) (\d{2}):(\d{2})(?::\d{2})?(?: \(([A-Z]+)\))?", cell)
    if match is None:
        raise ValueError
    day, month, year, hour, minute = map(int, match.groups()[:5])
    zones = re.search(r"\(([A-Z/]+)\)", header.upper())
    marker = match[6] or (zones[1] if zones and "/" not in zones[1] else "")
    return datetime(year, month, day, hour, minute), MARKERS[marker] if marker else None


def _german(cell: str, header: str) -> tuple[datetime, tzinfo | None]:
    """Read 01.01.2025 01:00, or Jan 1, 2025 1:00 AM."""
    if match := re.fullmatch(r"(\w{3})\w* (\d{1,2}), (\d{4}),? (\d{1,2}):(\d{2}) ([AP])M", cell.strip()):
        hour = int(match[4]) % 12 + 12 * (match[6] == "P")
        return datetime(int(match[3]), MONTHS.index(match[1].lower()) + 1, int(match[2]), hour, int(match[5])), None
    return _european(cell, "")


def _american(cell: str, header: str) -> tuple[datetime, tzinfo | None]:
    """Read 1/31/2025 5:00:00 AM, or the ISO form."""
    match = re.fullmatch(
        r"(\d{1,2})/(\d{1,2})/(\d{4}) (\d{1,2}):(\d{2})(?::\d{2})? ([AP])M", cell.strip(), re.IGNORECASE
    )
    if match is None:
        return _iso(cell, header)
    hour = int(match[4]) % 12 + 12 * (match[6].upper() == "P")
    return datetime(int(match[3]), int(match[1]), int(match[2]), hour, int(match[5])), None


def _slashes(cell: str, header: str) -> tuple[datetime, tzinfo | None]:
    """Read 2025/01/31 00:05:00, also without seconds."""
    return _iso(cell.strip().replace("/", "-"), header)


# -- the table -----------------------------------------------------------------------------------------------------

OMIE = "OMIE marginal price"
LAYOUTS = (
    HourLayout(
        "ENTSO-E export", r"mtu \((?:[a-z/]+)\)", _european,
        (Column(r"day-ahead price [(\[](?P<currency>[a-z]{3})/mwh[)\]]", "price_{currency}_per_mwh"),),
        clock=CENTRAL_EUROPE, zone="area|bidding zone", keep=("sequence", r"without sequence|(?:sequence )?1|"),
    ),
    HourLayout("entsoe-py", r"|unnamed: 0", _iso, (Column(r"0|day-ahead price|price", "price_eur_per_mwh"),)),
    HourLayout(
        "Electricity Maps", r"datetime \(utc\)", _iso,
        (
            Column(r"carbon intensity gco.?2?eq/kwh \(direct\)", "carbon_g_per_kwh"),
            Column(r"carbon intensity gco.?2?eq/kwh \((?:life cycle|lca)\)", "carbon_lca_g_per_kwh"),
        ),
        zone="zone id|zone name", estimated="data estimated",
    ),
    HourLayout("Ember", r"datetime \(utc\)", _iso, (Column(r"price \((?P<currency>[a-z]{3})/mwhe?\)", "price_{currency}_per_mwh"),), zone="country"),
    HourLayout(
        "SMARD", r"datum von|start date", _german, (Column(r"(?P<zone>.+?) \[€/mwh\].*", "price_eur_per_mwh"),),
        clock=GERMANY, cells=";", decimal=",",
    ),
    HourLayout(
        OMIE, r"year", _iso, (Column("(?P<zone>pt|es)", "price_eur_per_mwh"),), clock=SPAIN, cells=";",
    ),
    HourLayout(
        "PJM", r"datetime_beginning_utc", _american, (Column(r"total_lmp_(?:da|rt)", "price_usd_per_mwh"),),
        zone="pnode_name|pnode_id", keep=("row_is_current", r"true|1|"),
    ),
    HourLayout("AEMO", r"settlementdate", _slashes, (Column("rrp", "price_aud_per_mwh"),), clock=NEM, zone="region|regionid", ending=True),
    HourLayout("GB carbon intensity", r"datetime \(utc\)", _iso, (Column(r"actual carbon intensity \(gco2/kwh\)", "carbon_g_per_kwh"),)),
    HourLayout("NESO", r"datetime", _iso, (Column(r"carbon_intensity", "carbon_g_per_kwh"),)),
)  # fmt: skip
"""Sources: transparency.entsoe.eu (export of day-ahead prices), entsoe-py's `to_csv`, electricitymaps.com (yearly CSV), ember-energy.org (European wholesale
prices), smard.de (download), omie.es (marginalpdbc), dataminer2.pjm.com (da_hrl_lmps, rt_hrl_lmps), aemo.com.au (PRICE_AND_DEMAND), carbonintensity.org.uk, neso.energy."""


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Wrong:
    """Problems by line and column, told together."""

    found: list[str] = field(default_factory=list)

    def add(self, code: str, **places: int) -> None:
        self.found.append(Message.of(code, **places).text())

    def raise_all(self) -> None:
        if self.found:
            more = len(self.found) - MOST_SHOWN
            told = [*self.found[:MOST_SHOWN], *([Message.of("list.more", count=more).text()] if more > 0 else [])]
            raise ValueError("; ".join(told))


def read_hours(text: str, zone: str = "") -> PublishedHours | None:
    """Read a published file; None for a layout that is not in the table. `zone`: the area that counts, where the file has several.

    Raises ValueError that names every malformed cell by line and column, or the zones among which to choose.
    """
    found = _recognised(text)
    if found is None:
        return None
    layout, header, cells, first_line = found
    columns = _chosen_columns(layout, header, zone)
    rows = _of_zone(layout, header, list(enumerate(cells, start=first_line)), zone)
    zones = {area for *_, area in columns} | {area for *_, area in rows}
    wrong = _Wrong()
    moments = _moments(layout, header, [(line, row) for line, row, _ in rows], wrong)
    values = [[_value(row, at, layout.decimal, line, wrong) for line, row, _ in rows] for at, _, _ in columns]
    wrong.raise_all()
    if not moments:
        raise ValueError(Message.of("ways_in.no_hour").text())
    named = {name: column for (_, name, _), column in zip(columns, values)}
    start, hours, per_hour = averaged(moments, [line for line, *_ in rows], named, layout.ending)
    estimated = _estimated(layout, header, [row for _, row, _ in rows])
    return PublishedHours(layout.name, ", ".join(sorted(filter(None, zones))), start, hours, per_hour, estimated)


def _recognised(text: str) -> tuple[HourLayout, list[str], list[list[str]], int] | None:
    """Find the layout of a text: (layout, its header, its rows, number of the line of the first row)."""
    first = text.lstrip("\ufeff").split("\n", 1)[0].strip()
    try:
        if first.rstrip(";").upper() == "MARGINALPDBC":
            layout = next(each for each in LAYOUTS if each.name == OMIE)
            return layout, ["year", "month", "day", "period", "PT", "ES"], _rows(text, ";"), 2
        for layout in LAYOUTS:
            for mark in dict.fromkeys((layout.cells, ",", ";", "\t")):
                header = [name.strip() for name in next(csv.reader([first], delimiter=mark), [])]
                if _at(layout.time, header) and any(_at(column.header, header) for column in layout.columns):
                    return layout, header, _rows(text, mark), 2
    except csv.Error as error:
        raise ValueError(Message.of("ways_in.not_text", error=str(error)).text()) from None
    return None


def _rows(text: str, mark: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.lstrip("\ufeff")), delimiter=mark))[1:]


def _at(pattern: str, header: Sequence[str]) -> list[int]:
    """Return the places of the columns whose header matches."""
    return [i for i, name in enumerate(header) if re.fullmatch(pattern, name, re.IGNORECASE)]


def _chosen_columns(layout: HourLayout, header: Sequence[str], zone: str) -> list[tuple[int, str, str]]:
    """List (place, name in a spec, zone) of the columns that count. Raises ValueError where several are of one kind and `zone` names none."""
    chosen: dict[str, list[tuple[int, str, str]]] = {}
    for column in layout.columns:
        for at in _at(column.header, header):
            match = re.fullmatch(column.header, header[at], re.IGNORECASE)
            groups = match.groupdict() if match else {}
            name = column.name.format(currency=groups.get("currency", "").lower())
            chosen.setdefault(name, []).append((at, name, groups.get("zone", "")))
    found = []
    for columns in chosen.values():
        fitting = [column for column in columns if not zone or not column[2] or _same(column[2], zone)]
        if len(fitting) != 1:
            raise ValueError(_among([area for _, _, area in columns], zone))
        found += fitting
    return found


def _same(one: str, other: str) -> bool:
    return re.sub(r"[^\w]", "", one).lower() == re.sub(r"[^\w]", "", other).lower()


def _among(zones: Sequence[str], zone: str) -> str:
    known = sorted(set(filter(None, zones)))
    named = ", ".join(known[:12]) + (", …" if len(known) > 12 else "")
    return Message.of(
        "ways_in.no_such_zone" if zone else "ways_in.several_zones", zones=named, example=known[0] if known else ""
    ).text()


def _of_zone(
    layout: HourLayout, header: Sequence[str], rows: Sequence[tuple[int, list[str]]], zone: str
) -> list[tuple[int, list[str], str]]:
    """Keep the rows that count, with their zone. Raises ValueError where there are several zones and `zone` names none of them."""
    kept = [(line, row) for line, row in rows if len(row) > 1 and [cell.strip() for cell in row] != list(header)]
    column, allowed = layout.keep
    for at in _at(column, header) if column else []:
        kept = [(line, row) for line, row in kept if at >= len(row) or re.fullmatch(allowed, row[at].strip().lower())]
    areas = [at for pattern in layout.zone.split("|") for at in _at(pattern, header)] if layout.zone else []
    if not areas:
        return [(line, row, "") for line, row in kept]
    for at in areas if zone else areas[:1]:
        named = [(line, row, row[at].strip() if at < len(row) else "") for line, row in kept]
        fitting = [each for each in named if not zone or _same(each[2], zone)]
        if fitting and (zone or len({area for *_, area in fitting}) == 1):
            return fitting
    if not kept:
        return []
    raise ValueError(_among([row[areas[0]].strip() for _, row in kept if areas[0] < len(row)], zone))


def _moments(
    layout: HourLayout, header: Sequence[str], rows: Sequence[tuple[int, list[str]]], wrong: _Wrong
) -> list[datetime]:
    """Read the time of each row in UTC; a local time that occurs twice is the earlier one at first."""
    if layout.name == OMIE:
        return _periods(layout, rows, wrong)
    at = _at(layout.time, header)[0]
    read: list[tuple[datetime, tzinfo | None]] = []
    for line, row in rows:
        try:
            local, marked = layout.read_time(row[at], header[at])
            if local.year not in YEARS:
                raise ValueError
            read.append((local, marked))
        except (ValueError, IndexError, KeyError, OverflowError):
            wrong.add("ways_in.expected_time", line=line, column=at + 1)
    falling = len(read) > 1 and read[0][0] > read[-1][0]
    seen: set[datetime] = set()
    moments = []
    for local, marked in reversed(read) if falling else read:
        if marked is None and layout.clock is not UTC:
            moment = local.replace(tzinfo=layout.clock, fold=int(local in seen))
            seen.add(local)
        else:
            moment = local.replace(tzinfo=marked or UTC)
        moments.append(moment.astimezone(UTC))
    return moments[::-1] if falling else moments


def _periods(layout: HourLayout, rows: Sequence[tuple[int, list[str]]], wrong: _Wrong) -> list[datetime]:
    """Read year, month, day and the number of the period, of which a day has 23 to 25 hours or four times as many quarters."""
    days: dict[tuple[int, int, int], int] = {}
    read: list[tuple[tuple[int, int, int], int]] = []
    for line, row in rows:
        try:
            year, month, day, period = (int(cell) for cell in row[:4])
            datetime(year, month, day)
            if not 1 <= period <= 100 or year not in YEARS:
                raise ValueError
            read.append(((year, month, day), period))
            days[year, month, day] = max(period, days.get((year, month, day), 0))
        except ValueError:
            wrong.add("ways_in.expected_period", line=line, column=1)
    found = []
    for date, period in read:
        step = HOUR if days[date] <= 25 else HOUR / 4
        midnight = datetime(*date, tzinfo=layout.clock).astimezone(UTC)
        found.append(midnight + (period - 1) * step)
    return found


def _value(row: Sequence[str], at: int, decimal: str, line: int, wrong: _Wrong) -> float | None:
    """Read a value; None where the cell is empty or says that there is none."""
    cell = row[at].strip() if at < len(row) else ""
    if cell.lower() in ("", "-", "n/a", "n/e", "nan", "null"):
        return None
    if decimal == "," and "," in cell:
        cell = cell.replace(".", "").replace(",", ".")
    try:
        value = float(cell)
        if -MOST_VALUE <= value <= MOST_VALUE:
            return value
    except ValueError:
        pass
    wrong.add("spec.series_cell_malformed", line=line, column=at + 1)
    return None


def _estimated(layout: HourLayout, header: Sequence[str], rows: Sequence[Sequence[str]]) -> float:
    """Compute the share of rows that the publisher marks as estimated."""
    places = _at(layout.estimated, header) if layout.estimated else []
    if not places or not rows:
        return 0.0
    return sum(places[0] < len(row) and row[places[0]].strip().lower() == "true" for row in rows) / len(rows)


def averaged(
    moments: Sequence[datetime],
    lines: Sequence[int],
    columns: Mapping[str, Sequence[float | None]],
    ending: bool = False,
) -> tuple[datetime, dict[str, list[float | None]], int]:
    """Average values within hours: (first hour, values by column, most values of an hour).

    An hour counts where its values begin with it and stand at even distances; a single one only where no hour beside it has more. Of more than a year the latest calendar
    year that is whole is kept, else the last 366 days. `ending`: the moments end their intervals. Raises ValueError for a moment that occurs twice.
    """
    order = sorted(range(len(moments)), key=lambda i: moments[i])
    gaps = [moments[b] - moments[a] for a, b in pairwise(order)]
    if twice := [i for i, gap in enumerate(gaps) if not gap]:
        a, b = sorted((lines[order[twice[0]]], lines[order[twice[0] + 1]]))
        raise ValueError(Message.of("ways_in.hour_twice", line=b, first=a, count=len(twice)).text())
    if ending:
        step = min((gap for gap in gaps if gap), default=HOUR)
        moments = [moment - min(step, HOUR) for moment in moments]
    parts: dict[datetime, list[int]] = {}
    for i in order:
        parts.setdefault(moments[i].replace(minute=0, second=0, microsecond=0), []).append(i)
    hours = _latest_year(sorted(parts))
    start = hours[0]
    length = round((hours[-1] - start) / HOUR) + 1
    found: dict[str, list[float | None]] = {name: [None] * length for name in columns}
    for place, hour in enumerate(hours):
        own = parts[hour]
        around = [*hours[max(place - 1, 0) : place], *hours[place + 1 : place + 2]]
        beside = [len(parts[other]) for other in around if abs(other - hour) == HOUR]
        even = all(moments[i] - hour == k * HOUR / len(own) for k, i in enumerate(own))
        if not even or (len(own) == 1 and beside and min(beside) > 1):
            continue
        for name, values in columns.items():
            given = [value for i in own if (value := values[i]) is not None]
            if len(given) == len(own):
                found[name][round((hour - start) / HOUR)] = sum(given) / len(given)
    return start, found, max(len(parts[hour]) for hour in hours)


def _latest_year(hours: Sequence[datetime]) -> Sequence[datetime]:
    """Keep at most a year of hours."""
    if (hours[-1] - hours[0]) / HOUR < MOST_HOURS:
        return hours
    for year in sorted({hour.year for hour in hours}, reverse=True):
        kept = [hour for hour in hours if hour.year == year]
        if (kept[0].month, kept[0].day, kept[-1].month, kept[-1].day) == (1, 1, 12, 31):
            return kept
    return [hour for hour in hours if hours[-1] - hour < MOST_HOURS * HOUR]
