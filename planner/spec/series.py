"""Read hourly series from a user's CSV files, found beside the spec or in a given folder, at the hours of a plan's year.

The names of the columns state quantity and unit: `timestamp_utc`, `price_usd_per_mwh`, `carbon_g_per_kwh` (direct),
`carbon_lca_g_per_kwh` (life cycle); any other column may be the profile of a power purchase. Files as they are published are read too
(`planner.ways_in.hours`). The contents are kept in the spec
under `series`, so that a plan can be verified and repeated from its own file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from catalog.units import GRAM_KG, HOUR_S, KWH_J, MWH_J
from models.arrays import Floats, Ints
from planner.errors import Issue, SpecError, words_of
from planner.messages import Message
from planner.spec.quantities import shown
from planner.ways_in.hours import MOST_HOURS, averaged, read_hours

TIME_COLUMNS = ("timestamp_utc", "time_utc", "utc")
MOST_PARTS = 12  # parts of an hour that a file may have
WEEK_H, WEEKS_OF_YEAR, YEAR_OF_CALENDAR_H = 168, 52, 365.2425 * 24
MOST_COLUMNS = 200
MOST_BYTES = 20_000_000
_PER = {"kwh": KWH_J, "mwh": MWH_J}
_PRICE = re.compile(r"price_([a-z]{3})_per_(kwh|mwh)")
_CARBON = re.compile(r"carbon(_lca)?_(g|kg)_per_(kwh|mwh)")
# Wider than any market or grid, in any currency: beyond lies a wrong unit or a typing error.
MOST_PRICE_PER_KWH, MOST_CARBON_KG_PER_KWH = 1e6, 10.0


def with_series(document: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """Read every series that the spec names from the first of the `folders` that has the file.

    A name that leads out of the folders, by `..`, from the root or over a link, is refused, so that a spec of somebody else cannot read
    other files; no error quotes what a file holds. Raises SpecError for a file that cannot be read as a series; a missing file is
    reported when the spec is resolved.
    """
    known = document.get("series")
    known = dict(known) if isinstance(known, Mapping) else {}
    problems, found = [], {}
    for path, name, zone in named_series(document):
        key = series_key(name, zone)
        if key in known or key in found:
            continue
        try:
            content = _content(name, folders)
            if content is not None:
                found[key] = read_series(content, zone)
        except ValueError as error:
            problems.append(Issue(path, Message.of("spec.in_file", file=shown(name), error=words_of(error)).text()))
    if problems:
        raise SpecError(problems)
    return {**document, "series": {**known, **found}} if found else dict(document)


def digest_of_files(document: Mapping[str, Any], folders: Sequence[Path], hashes: dict[str, str]) -> list[str]:
    """Hash the files that a spec names, as `with_series` finds them; `hashes` keeps what was hashed before. A file that cannot be read has none."""
    names = [name for _, name in named_files(document)]
    for name in names:
        if name not in hashes:
            try:
                content = _content(name, folders)
            except ValueError:
                content = None
            hashes[name] = "" if content is None else hashlib.sha256(content).hexdigest()
    return [hashes[name] for name in names]


def _content(name: str, folders: Sequence[Path]) -> bytes | None:
    """Read the file from the first folder that has it; None where none has. Raises ValueError for one that must not be read."""
    inside = [Path(os.path.realpath(folder)) for folder in folders]
    outside = False
    for folder in inside:
        try:
            file = Path(os.path.realpath(folder / name))
        except (OSError, ValueError):  # no name of a file, such as one with a NUL
            continue
        try:
            if not any(file.is_relative_to(place) for place in inside):
                outside = True
            elif file.is_file():
                with file.open("rb") as stream:
                    content = stream.read(MOST_BYTES + 1)
                if len(content) > MOST_BYTES:
                    raise ValueError(Message.of("spec.series_file_too_large", size=MOST_BYTES // 10**6).text())
                return content
        except PermissionError:
            raise ValueError(Message.of("spec.series_permission_denied").text()) from None
        except OSError:  # such as a name of thousands of letters
            continue
    if outside:
        raise ValueError(Message.of("spec.path_leaves_folder").text())
    return None


def series_key(file: str, zone: str | None) -> str:
    """Name the series of a zone of a file, as the spec holds it under `series`.

    >>> series_key("prices.csv", None), series_key("prices.csv", "DE-LU")
    ('prices.csv', 'prices.csv [DE-LU]')
    """
    return f"{file} [{zone}]" if zone else file


def named_files(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield (place, file) of every series that a spec names, even if the spec is otherwise invalid."""
    for path, name, _ in named_series(document):
        yield path, name


def named_series(document: Mapping[str, Any]) -> Iterable[tuple[str, str, str]]:
    """Yield (place, file, zone) of every series that a spec names; the zone is empty where none is named."""
    sites = document.get("sites")
    for i, site in enumerate(sites if isinstance(sites, list) else ()):
        if not isinstance(site, Mapping):
            continue
        if name := _file(site.get("hourly")):
            yield f"sites[{i}].hourly", name, _zone(site.get("hourly"))
        block = site.get("electricity")
        bought = block.get("ppa") if isinstance(block, Mapping) else None
        for j, contract in enumerate(bought if isinstance(bought, list) else ()):
            profile = contract.get("profile") if isinstance(contract, Mapping) else None
            if isinstance(profile, Mapping) and (name := _file(profile)):
                yield f"sites[{i}].electricity.ppa[{j}].profile", name, ""


def _zone(value: Any) -> str:
    zone = value.get("zone") if isinstance(value, Mapping) else None
    return zone if isinstance(zone, str) else ""


def _file(value: Any) -> str:
    name = value.get("file") if isinstance(value, Mapping) else value
    return name if isinstance(name, str) else ""


def read_series(content: bytes, zone: str = "") -> dict[str, Any]:
    """Read a CSV of hours into the form that a spec holds: first hour, digest, and the numbers of every column, null where blank.

    `zone`: the area that counts in a published file of several. Raises ValueError, with the place but not the text at fault, apart from the names of zones.
    """
    if (published := _published(content, zone)) is not None:
        return published
    if zone:
        raise ValueError(Message.of("ways_in.has_no_zones").text())
    header, rows = _rows(content)
    stamp = next((name for name in TIME_COLUMNS if rows and name in header), None)
    if stamp is None:
        raise ValueError(Message.of("spec.series_columns_expected", names=" or ".join(TIME_COLUMNS)).text())
    if problem := wrong_columns(header):
        raise ValueError(problem)
    hours = [_moment(row.get(stamp, ""), line) for line, row in rows]
    if any(hour.minute for hour in hours):
        return _of_parts(content, header, stamp, rows, hours)
    if len(rows) > MOST_HOURS:
        raise ValueError(Message.of("spec.series_too_many_rows", count=MOST_HOURS).text())
    first = min(hours)
    place = [round((hour - first).total_seconds() / HOUR_S) for hour in hours]
    if len(set(place)) < len(place) or max(place) >= MOST_HOURS:
        raise ValueError(Message.of("spec.series_hours_expected").text())
    columns: dict[str, list[float | None]] = {}
    for name, numbers in _numbers(header, stamp, rows).items():
        values: list[float | None] = [None] * (max(place) + 1)
        for at, value in zip(place, numbers, strict=True):
            values[at] = value
        columns[name] = values
    return {"start": first.isoformat()[:13], "sha256": hashlib.sha256(content).hexdigest(), "columns": columns}


def _numbers(
    header: Sequence[str], stamp: str, rows: Sequence[tuple[int, dict[str, str]]]
) -> dict[str, list[float | None]]:
    """Read the numbers of every column but that of the time. Raises ValueError for a cell that is none, or out of range."""
    columns: dict[str, list[float | None]] = {}
    for number, name in enumerate(header, start=1):
        if name == stamp:
            continue
        low, high, words = _range(name)
        columns[name] = []
        for line, row in rows:
            value = _number(row.get(name, ""), number, line)
            if value is not None and not low <= value <= high:
                raise ValueError(Message.of("spec.line_column_expected", line=line, column=number, words=words).text())
            columns[name].append(value)
    return columns


def _of_parts(
    content: bytes,
    header: Sequence[str],
    stamp: str,
    rows: Sequence[tuple[int, dict[str, str]]],
    moments: Sequence[datetime],
) -> dict[str, Any]:
    """Average the parts of hours. Raises ValueError where no hour has all of its parts."""
    lines = [line for line, _ in rows]
    whole = {moment for moment in moments if not moment.minute}
    if not any(moment.minute and moment.replace(minute=0) in whole for moment in moments):
        odd = next(line for line, moment in zip(lines, moments) if moment.minute)
        raise ValueError(Message.of("spec.full_hour_expected", line=odd).text())
    start, hours, per_hour = averaged(moments, lines, _numbers(header, stamp, rows))
    return _series(content, start, hours, layout="", zone="", per_hour=per_hour, estimated=0.0)


def _published(content: bytes, zone: str) -> dict[str, Any] | None:
    """Read a file in one of the published layouts; None for another file. Raises ValueError."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    found = read_hours(text.replace("\r\n", "\n").replace("\r", "\n"), zone)
    if found is None:
        return None
    return _series(content, found.start, found.columns, found.layout, found.zone, found.per_hour, found.estimated)


def _series(
    content: bytes,
    start: datetime,
    columns: Mapping[str, list[float | None]],
    layout: str,
    zone: str,
    per_hour: int,
    estimated: float,
) -> dict[str, Any]:
    """Return a series as a spec holds it, with how its file was read."""
    read = {"layout": layout, "zone": zone, "per_hour": per_hour, "estimated": round(estimated, 4)}
    said = {key: value for key, value in read.items() if value not in ("", 0.0, 1)}
    digest = hashlib.sha256(content).hexdigest()
    return {"start": start.isoformat()[:13], "sha256": digest, "columns": dict(columns), **said}


def _rows(content: bytes) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """Read header and rows of a CSV, each with the number of its line. Raises ValueError."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(Message.of("spec.series_not_unicode", place=error.start + 1).text()) from None
    reader = csv.reader(io.StringIO(text, newline=None))  # lines may end with CR, LF or both
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        if len(header) > MOST_COLUMNS:
            raise ValueError(Message.of("spec.too_many_columns", count=MOST_COLUMNS).text())
        if len(header) == 1 and any(mark in header[0] for mark in ";\t"):
            raise ValueError(Message.of("spec.series_without_commas").text())
        for number, name in enumerate(header, start=1):
            if name in header[: number - 1]:
                raise ValueError(
                    Message.of("spec.series_column_twice", one=number, other=header.index(name) + 1).text()
                )
            if not name:
                raise ValueError(Message.of("spec.series_column_unnamed", number=number).text())
        for cells in reader:
            if len(rows) > MOST_HOURS * MOST_PARTS:
                raise ValueError(Message.of("spec.series_too_many_rows", count=MOST_HOURS * MOST_PARTS).text())
            if len(cells) > len(header):
                raise ValueError(
                    Message.of(
                        "spec.series_cells_and_columns", line=reader.line_num, cells=len(cells), columns=len(header)
                    ).text()
                )
            if cells:
                rows.append((reader.line_num, dict(zip(header, cells))))
    except csv.Error:
        raise ValueError(Message.of("spec.series_row_malformed", line=reader.line_num).text()) from None
    return header, rows


def _moment(text: str, line: int) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip().replace("Z", "+00:00"))
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise ValueError(Message.of("spec.series_hour_malformed", line=line).text()) from None
    if moment.second or moment.microsecond:
        raise ValueError(Message.of("spec.full_hour_expected", line=line).text())
    return moment


def _number(cell: str, column: int, line: int) -> float | None:
    if not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(Message.of("spec.series_cell_malformed", line=line, column=column).text())
    return value


def wrong_columns(names: Sequence[str]) -> str:
    """Say which columns look like a price or a carbon intensity and are none, or state the same twice; empty if all is well."""
    stated: dict[str, int] = {}
    for number, name in enumerate(names, start=1):
        price, carbon = _PRICE.fullmatch(name), _CARBON.fullmatch(name)
        if price is None and carbon is None:
            if name.lower().startswith(("price", "carbon")):
                return Message.of("spec.series_unit_missing", number=str(number)).text()
            continue
        kind = "price" if price else "life_cycle" if carbon and carbon[1] else "direct"
        if kind in stated:
            what = Message.of(f"spec.series_{kind}").text()
            return Message.of("spec.series_state_twice", first=str(stated[kind]), second=str(number), what=what).text()
        stated[kind] = number
    return ""


def wrong_value(name: str, values: Sequence[float | None]) -> str:
    """Say which hour of a column is out of range, and the range; empty if none is."""
    low, high, words = _range(name)
    wrong = next((i for i, value in enumerate(values) if value is not None and not low <= value <= high), None)
    return (
        "" if wrong is None else Message.of("spec.series_out_of_range", name=name, place=str(wrong), range=words).text()
    )


def _range(name: str) -> tuple[float, float, str]:
    """Return the least and the largest value of a column, and both in words."""
    if found := _PRICE.fullmatch(name):
        most = MOST_PRICE_PER_KWH * _PER[found[2]] / KWH_J
        return (
            -most,
            most,
            Message.of("spec.series_price_range", least=f"{-most:g}", most=f"{most:g}", unit=found[2]).text(),
        )
    if found := _CARBON.fullmatch(name):
        most = MOST_CARBON_KG_PER_KWH * (_PER[found[3]] / KWH_J) / (GRAM_KG if found[2] == "g" else 1.0)
        return 0.0, most, Message.of("spec.series_carbon_range", most=f"{most:g}", mass=found[2], unit=found[3]).text()
    return -math.inf, math.inf, Message.of("spec.series_any_number").text()


def price_column(columns: Iterable[str]) -> tuple[str, str, float] | None:
    """Find the price: (column, currency, joules of its unit of energy); None where there is none."""
    return next(
        ((name, found[1].upper(), _PER[found[2]]) for name in columns if (found := _PRICE.fullmatch(name))), None
    )


def carbon_column(columns: Iterable[str], life_cycle: bool) -> tuple[str, float] | None:
    """Find the carbon intensity, direct or over the life cycle: (column, kg/J of its unit); None where there is none."""
    for name in columns:
        if (found := _CARBON.fullmatch(name)) and (found[1] is not None) == life_cycle:
            return name, (GRAM_KG if found[2] == "g" else 1.0) / _PER[found[3]]
    return None


def at_instants(start: str, values: Sequence[float | None], instants: Sequence[datetime], fill: bool) -> Floats:
    """Read the series at the instants (UTC), or in a series of another year at the same weekday and hour, whole weeks away.

    The weeks are those next to the years between, so that the season stays within a week; where they lead out of the series, 52 weeks
    lead back. Raises ValueError for blank or missing hours, unless `fill` interpolates linearly between the hours around them.
    """
    series = np.array(values, dtype=float)  # None becomes nan
    blank = np.isnan(series)
    if fill and not blank.all():
        series = np.interp(np.arange(len(series)), np.flatnonzero(~blank), series[~blank])
        blank[:] = False
    first = np.datetime64(datetime.fromisoformat(start).replace(tzinfo=None), "h")
    at = np.fromiter((moment.timestamp() for moment in instants), dtype=float, count=len(instants)) / HOUR_S
    index = _weeks_away(at.astype(int) - first.astype(int), len(series))
    outside = (index < 0) | (index >= len(series))
    missing = outside | blank[np.where(outside, 0, index)]
    if missing.any():
        first_missing = (first + index[int(np.argmax(missing))]).item()
        raise ValueError(
            Message.of("spec.series_hours_blank", count=int(missing.sum()), first=f"{first_missing:%m-%d %H}").text()
            + ("" if fill else Message.of("spec.series_or_fill").text())
        )
    return np.asarray(series[index])


def _weeks_away(hours: Ints, length: int) -> Ints:
    """Move hours from the start of a series by whole weeks into a series of `length` hours, where they lie outside."""
    away = np.where((hours < 0) | (hours >= length), np.floor_divide(hours, YEAR_OF_CALENDAR_H), 0.0)
    moved: Ints = hours - WEEK_H * np.rint(away * YEAR_OF_CALENDAR_H / WEEK_H).astype(int)
    moved = np.where(moved < 0, moved + WEEKS_OF_YEAR * WEEK_H, moved)
    late = (moved >= length) & (moved >= WEEKS_OF_YEAR * WEEK_H)
    return np.asarray(np.where(late, moved - WEEKS_OF_YEAR * WEEK_H, moved), dtype=np.int64)
