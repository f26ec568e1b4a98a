"""Turn rates of the US Utility Rate Database (URDB, schema v8) into tariffs of the catalog.

Of blocks by energy the last one counts, in which a large load pays for almost all of its energy; blocks by hours of use (kWh per kW) are weighted
for a load that runs all hours of a month. Charges on demand by time of use are added to the flat one, as a load pays that peaks in every
period. Sold energy, fixed charges and ratchets are left out, and a note says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from catalog.units import HOURS_PER_DAY
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.problems import FileProblems

MONTHS = range(1, 13)
HOURS_OF_USE = 730.0  # hours of a month
LETTERS = "abcdefghijklmnopqrstuvwxyz"
LEFT_OUT = {
    "fixedchargefirstmeter": "fixed charges",
    "mincharge": "minimum charges",
    "lookbackpercent": "ratchets of demand",
}
CONTENTS = "energy included, delivery included, demand separate, levies unknown"
HIGHEST_PER_KWH, HIGHEST_PER_KW = 100.0, 1e4  # USD; higher ones are errors of typing


def is_utility_rates(text: str) -> bool:
    """Tell whether a text is an answer of URDB, by its beginning and the key of its schedules."""
    return text.lstrip()[:1] in ("{", "[") and '"energyweekdayschedule"' in text


def tariffs_of(text: str, name: str, date: str, problems: FileProblems) -> tuple[list[dict[str, Any]], list[Fact]]:
    """Return the tariffs of a file as records of the catalog, with how they were understood; malformed tariffs go to `problems`."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise problems.refuse("ways_in.not_json", error=str(error)) from None
    items = document.get("items") if isinstance(document, Mapping) else document
    items = items if isinstance(items, list) else [document]
    found, notes = [], []
    for number, item in enumerate(items, start=1):
        try:
            found.append(_tariff(item if isinstance(item, Mapping) else {}, name, date))
        except ValueError as error:
            problems.add(number, "ways_in.rate", reason=str(error))
            continue
        left = [words for key, words in LEFT_OUT.items() if item.get(key)]
        notes.append(Fact(name, Message.of("ways_in.rate_read", name=found[-1]["name"], kinds=", ".join(left) or "-")))
    return found, notes


def _tariff(item: Mapping[str, Any], file: str, date: str) -> dict[str, Any]:
    """Write the tariff of a rate. Raises ValueError that names the key at fault."""
    name = str(item.get("name") or item.get("label") or "").strip()
    if not name:
        raise ValueError("name")
    prices = [_energy_price(tiers) for tiers in _structure(item, "energyratestructure")]
    weekday, weekend = (_schedule(item, f"energy{days}schedule", len(prices)) for days in ("weekday", "weekend"))
    used = sorted({period for month in (*weekday, *weekend) for period in month})
    figures = {
        f"price_period_{LETTERS[period]}": {"value": f"{prices[period]:.6g} USD/kWh", "date": date, "source": [file]}
        for period in used
    }
    if demand := _demand_charge(item):
        figures["demand_charge"] = {"value": f"{demand:.6g} USD/kW-month", "date": date, "source": [file]}
    bands = [
        *_bands(weekday, "weekday"),
        *_bands(weekend, "weekend"),
    ]  # fmt: skip
    utility = str(item.get("utility") or "").strip()
    return {
        "name": f"{utility}: {name}" if utility else name,
        "text": {"currency": "USD", "status": "complete", "contents": CONTENTS, "title": f"URDB {item.get('label') or ''}".strip(), "bands": bands},
        "figures": figures,
    }  # fmt: skip


def _bands(schedule: Sequence[Sequence[int]], days: str) -> Iterator[list[Any]]:
    """Yield the rows of a tariff: runs of one period over the hours of a day, for all months with the same day."""
    days_of: dict[tuple[int, ...], list[int]] = {}
    for month, day in zip(MONTHS, schedule, strict=True):
        days_of.setdefault(tuple(day), []).append(month)
    for day, months in days_of.items():
        start = 0
        for period, run in groupby(day):
            end = start + len(list(run))
            yield [months, days, start, end, f"period {period + 1}", f"price_period_{LETTERS[period]}"]
            start = end


def _energy_price(tiers: Sequence[Mapping[str, Any]]) -> float:
    """Return the price of energy in a period [USD/kWh] for a large load that runs all hours."""
    unit = str(tiers[0].get("unit") or "kWh")
    prices = [_rate(tier, HIGHEST_PER_KWH) for tier in tiers]
    if unit in ("kWh", "kWh daily"):
        return prices[-1]
    if unit != "kWh/kW":
        raise ValueError(f'energyratestructure, unit "{unit}"')
    paid, reached = 0.0, 0.0
    for tier, price in zip(tiers, prices, strict=True):
        until = min(_number(tier.get("max"), "max", HOURS_OF_USE), HOURS_OF_USE)
        paid += price * max(until - reached, 0.0)
        reached = max(reached, until)
    return paid / reached


def _demand_charge(item: Mapping[str, Any]) -> float:
    """Return the charge on the month's peak [USD/kW], mean over the year: the flat one, and those of the periods of each month."""
    by_month = [0.0] * len(MONTHS)
    if item.get("flatdemandstructure"):
        flat = [_rate(tiers[-1], HIGHEST_PER_KW) for tiers in _structure(item, "flatdemandstructure")]
        months = item.get("flatdemandmonths")
        if (
            not isinstance(months, list)
            or len(months) != len(MONTHS)
            or not all(_is_index(m, len(flat)) for m in months)
        ):
            raise ValueError("flatdemandmonths")
        by_month = [flat[month] for month in months]
    if item.get("demandratestructure"):
        rates = [_rate(tiers[-1], HIGHEST_PER_KW) for tiers in _structure(item, "demandratestructure")]
        schedules = [_schedule(item, f"demand{days}schedule", len(rates)) for days in ("weekday", "weekend")]
        for month in range(len(MONTHS)):
            periods = {period for schedule in schedules for period in schedule[month]}
            by_month[month] += sum(rates[period] for period in periods)
    return sum(by_month) / len(by_month)


def _structure(item: Mapping[str, Any], key: str) -> list[list[Mapping[str, Any]]]:
    """Return the periods of a structure, each with its blocks. Raises ValueError where it is malformed."""
    periods = item.get(key)
    if not isinstance(periods, list) or not 0 < len(periods) <= len(LETTERS):
        raise ValueError(key)
    if not all(isinstance(tiers, list) and tiers and all(isinstance(t, Mapping) for t in tiers) for tiers in periods):
        raise ValueError(key)
    return periods


def _schedule(item: Mapping[str, Any], key: str, periods: int) -> list[list[int]]:
    """Return the period of each hour by month. Raises ValueError where it is not 12 x 24 indices of periods."""
    rows = item.get(key)
    if not isinstance(rows, list) or len(rows) != len(MONTHS):
        raise ValueError(key)
    if not all(
        isinstance(row, list) and len(row) == HOURS_PER_DAY and all(_is_index(p, periods) for p in row) for row in rows
    ):
        raise ValueError(key)
    return rows


def _is_index(value: Any, count: int) -> bool:
    return type(value) is int and 0 <= value < count


def _rate(tier: Mapping[str, Any], highest: float) -> float:
    """Return the rate of a block with its adjustment. Raises ValueError for anything but numbers."""
    total = _number(tier.get("rate"), "rate", 0.0) + _number(tier.get("adj"), "adj", 0.0)
    if not 0.0 <= total <= highest:
        raise ValueError("rate")
    return total


def _number(value: Any, key: str, without: float) -> float:
    """Return a number, or `without` for a key that is absent. Raises ValueError for anything else."""
    if value is None:
        return without
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise ValueError(key)
    return float(value)
