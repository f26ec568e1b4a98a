"""Read hourly series from a user's CSV files, found beside the spec or in a given folder, at the hours of a plan's year.

The names of the columns state quantity and unit: `timestamp_utc`, `price_usd_per_mwh`, `carbon_g_per_kwh` (direct),
`carbon_lca_g_per_kwh` (life cycle); any other column may be the profile of a power purchase. The contents are kept in the spec
under `series`, so that a plan can be verified and repeated from its own file.
"""

from __future__ import annotations

import csv
import hashlib
import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catalog.units import GRAM_KG, HOUR_S, KWH_J, MWH_J
from models.arrays import Floats, Ints
from planner.errors import Problem, SpecError

TIME_COLUMNS = ("timestamp_utc", "utc")
MOST_HOURS = 366 * 24
_PER = {"kwh": KWH_J, "mwh": MWH_J}
_PRICE = re.compile(r"price_([a-z]{3})_per_(kwh|mwh)")
_CARBON = re.compile(r"carbon(_lca)?_(g|kg)_per_(kwh|mwh)")


def with_series(document: Mapping[str, Any], folders: Sequence[Path]) -> dict[str, Any]:
    """Read every series that the spec names from the first of the `folders` that has the file.

    Raises SpecError for a file that cannot be read as a series; a missing file is reported when the spec is resolved.
    """
    known = document.get("series")
    known = dict(known) if isinstance(known, Mapping) else {}
    problems, found = [], {}
    for path, name in named_files(document):
        if name in known or name in found:
            continue
        file = next((folder / name for folder in folders if (folder / name).is_file()), None)
        if file is not None:
            try:
                found[name] = read_series(file.read_bytes())
            except ValueError as error:
                problems.append(Problem(path, f"{name}: {error}"))
    if problems:
        raise SpecError(problems)
    return {**document, "series": {**known, **found}} if found else dict(document)


def named_files(document: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """Yield (place, file) of every series that a spec names, even if the spec is otherwise invalid."""
    sites = document.get("sites")
    for i, site in enumerate(sites if isinstance(sites, list) else ()):
        if not isinstance(site, Mapping):
            continue
        if name := _file(site.get("hourly")):
            yield f"sites[{i}].hourly", name
        block = site.get("electricity")
        bought = block.get("ppa") if isinstance(block, Mapping) else None
        for j, contract in enumerate(bought if isinstance(bought, list) else ()):
            profile = contract.get("profile") if isinstance(contract, Mapping) else None
            if isinstance(profile, Mapping) and (name := _file(profile)):
                yield f"sites[{i}].electricity.ppa[{j}].profile", name


def _file(value: Any) -> str:
    name = value.get("file") if isinstance(value, Mapping) else value
    return name if isinstance(name, str) else ""


def read_series(content: bytes) -> dict[str, Any]:
    """Read a CSV of hours into the form that a spec holds: first hour, digest, and the numbers of every column, null where blank."""
    rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
    stamp = next((name for name in TIME_COLUMNS if rows and name in rows[0]), None)
    if stamp is None:
        raise ValueError(f"expected a column {' or '.join(TIME_COLUMNS)} and a row per hour")
    hours = [_hour(row[stamp], line) for line, row in enumerate(rows, start=2)]
    first = min(hours)
    place = [round((hour - first).total_seconds() / HOUR_S) for hour in hours]
    if len(set(place)) < len(place) or max(place) >= MOST_HOURS:
        raise ValueError("expected every hour once, of one year")
    columns: dict[str, list[float | None]] = {}
    for name in (name for name in rows[0] if name not in (stamp, None)):
        values: list[float | None] = [None] * (max(place) + 1)
        for line, (at, row) in enumerate(zip(place, rows, strict=True), start=2):
            values[at] = _number(row[name], name, line)
        columns[name] = values
    return {"start": first.strftime("%Y-%m-%dT%H"), "sha256": hashlib.sha256(content).hexdigest(), "columns": columns}


def _hour(text: str | None, line: int) -> datetime:
    try:
        moment = datetime.fromisoformat((text or "").strip().replace("Z", "+00:00"))
    except ValueError:
        raise ValueError(f'line {line}: expected an hour such as "2024-01-01T00", got "{text}"') from None
    moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    if moment.minute or moment.second:
        raise ValueError(f'line {line}: expected a full hour, got "{text}"')
    return moment


def _number(cell: str | None, name: str, line: int) -> float | None:
    if cell is None or not cell.strip():
        return None
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f'line {line}, {name}: expected a number or nothing, got "{cell}"')
    return value


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


def _month_day_hour(hours: NDArray[np.datetime64]) -> tuple[Ints, Ints, Ints]:
    """Return month, day and hour of each moment [datetime64 of hours]."""
    months, days = hours.astype("datetime64[M]"), hours.astype("datetime64[D]")
    return months.astype(int) % 12 + 1, (days - months).astype(int) + 1, (hours - days).astype(int)


def at_instants(start: str, values: Sequence[float | None], instants: Sequence[datetime], fill: bool) -> Floats:
    """Read the series at the same month, day and hour (UTC) of its own year; 28 February replaces a 29th that it lacks.

    Raises ValueError for blank or missing hours, unless `fill` interpolates linearly between the hours around them.
    """
    series = np.array([math.nan if value is None else value for value in values])
    blank = np.isnan(series)
    if fill and not blank.all():
        series = np.interp(np.arange(len(series)), np.flatnonzero(~blank), series[~blank])
        blank[:] = False
    first = np.datetime64(datetime.fromisoformat(start).replace(tzinfo=None), "h")
    place = np.full((13, 32, 24), -1)
    place[_month_day_hour(first + np.arange(len(series)))] = np.arange(len(series))
    month, day, hour = _month_day_hour(
        np.array([moment.replace(tzinfo=None) for moment in instants], dtype="datetime64[h]")
    )
    index = place[month, day, hour]
    index = np.where((index < 0) & (month == 2) & (day == 29), place[2, 28, hour], index)
    missing = (index < 0) | blank[index]
    if missing.any():
        first_missing = instants[int(np.argmax(missing))]
        raise ValueError(
            f"{int(missing.sum())} hours are blank, the first is {first_missing:%m-%d %H}:00 UTC; complete the file"
            + ("" if fill else ', or write "fill": "linear"')
        )
    return np.asarray(series[index])
