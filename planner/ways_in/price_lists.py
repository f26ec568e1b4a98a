"""Turn price lists as published into records of the catalog: instances of a cloud in SkyPilot's layout, and tariffs of the US Utility Rate Database.

A record takes the name of the offer that the catalog has for the same system, way and region of the provider, so that an overlay with the
record replaces its price; without one it is new. Sources: SkyPilot catalog schema v8 `vms.csv`, URDB schema v8.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog
from planner.facts import Fact
from planner.messages import Message
from planner.ways_in.accelerators import region_called, system_called
from planner.ways_in.problems import FileProblems
from planner.ways_in.utility_rates import is_utility_rates, tariffs_of

CLOUDS = {"aws": "AWS", "azure": "Azure", "gcp": "GCP", "nebius": "Nebius"}
"""Folder of SkyPilot's catalog -> first word of the catalog's systems."""
WAYS = (("price", "on_demand"), ("spotprice", "spot"))
NEEDED = ("instancetype", "region", "price")
LARGEST_RENT = 1e6  # USD per instance hour; larger ones are errors of typing


@dataclass(frozen=True, slots=True)
class PriceList:
    """Records by kind, as an overlay has them, and how the file was understood."""

    records: Mapping[str, list[dict[str, Any]]]
    notes: tuple[Fact, ...]


@dataclass(slots=True)
class _Instances:
    """Prices [USD/h] read so far by (system, way, region of the provider), and rows left out by reason."""

    prices: dict[tuple[str, str, str], float] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)


def read_price_list(path: Path, catalog: Catalog, date: str, cloud: str = "") -> PriceList:
    """Read a price list; `date`: when it was published, as the figures state it; `cloud`: whose it is, else the name of the file's folder.

    Raises SpecError with every row that is not understood, OSError for a missing file.
    """
    problems = FileProblems(path.name)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    if is_utility_rates(text):
        tariffs, notes = tariffs_of(text, source_of(path), date, problems)
        problems.raise_all()
        return PriceList({"tariffs": tariffs}, tuple(notes))
    owner = CLOUDS.get((cloud or path.resolve().parent.name).lower(), "")
    if not owner:
        raise problems.refuse("ways_in.no_cloud", known=", ".join(CLOUDS))
    found = _instances(text, owner, catalog, problems)
    problems.raise_all()
    if not found.prices:
        raise problems.refuse("ways_in.no_instances", cloud=owner)
    offers = [_offer(key, price, owner, date, source_of(path), catalog) for key, price in sorted(found.prices.items())]
    said = [Fact(path.name, Message.of("ways_in.prices_read", count=len(offers), cloud=owner))]
    said += [Fact(path.name, Message.of(code, count=count)) for code, count in sorted(found.left_out.items())]
    return PriceList({"offers": offers}, tuple(said))


def source_of(path: Path) -> str:
    """Name a file as a source: with its folder, for the files of all clouds have one name."""
    return f"{path.resolve().parent.name}/{path.name}"


def _instances(text: str, owner: str, catalog: Catalog, problems: FileProblems) -> _Instances:
    """Read rows by the names of their columns; the least price of the zones of a region counts."""
    try:
        rows = list(csv.reader(io.StringIO(text, newline=None)))
    except csv.Error as error:
        raise problems.refuse("ways_in.not_text", error=str(error)) from None
    header = [name.strip().lower() for name in rows[0]] if rows else []
    if missing := [name for name in NEEDED if name not in header]:
        raise problems.refuse("ways_in.no_price_list", names=", ".join(missing))
    systems: dict[str, str] = {}
    found = _Instances()
    for line, row in enumerate(rows[1:], start=2):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) < len(header):
            problems.add(line, "ways_in.too_few_cells", count=len(header))
            continue
        cells = dict(zip(header, map(str.strip, row), strict=False))
        instance = cells["instancetype"]
        system = systems.setdefault(instance, _system(instance, owner, catalog))
        if not system:
            found.left_out["ways_in.other_instances"] += 1
            continue
        for how, price in _prices(cells, line, header, problems):
            if price == 0.0:
                found.left_out["ways_in.free_instances"] += 1
                continue
            key = (system, how, cells["region"])
            found.prices[key] = min(price, found.prices.get(key, price))
    return found


def _system(instance: str, owner: str, catalog: Catalog) -> str:
    """Return the catalog's system of an instance type of this cloud; empty if there is none."""
    name = system_called(instance, catalog)
    return name if name.startswith(f"{owner} ") else ""


def _prices(
    cells: Mapping[str, str], line: int, header: list[str], problems: FileProblems
) -> Iterator[tuple[str, float]]:
    """Yield (way, price) of the prices that a row states; an empty cell is not sold so."""
    for column, how in WAYS:
        if not cells.get(column):
            continue
        try:
            price = float(cells[column])
        except ValueError:
            price = -1.0
        if 0.0 <= price < LARGEST_RENT:
            yield how, price
        else:
            problems.add(line, "ways_in.expected_price", header.index(column) + 1)


def _offer(
    key: tuple[str, str, str], price: float, owner: str, date: str, file: str, catalog: Catalog
) -> dict[str, Any]:
    """Write the offer of a system, way and region of the provider."""
    system, how, place = key
    region = region_called(place, catalog) or f"{owner.lower()}:{place}"
    figure = {"value": f"{price:g} USD/h", "date": date, "source": [file]}
    if known := _known_offer(key, catalog):
        return {"name": known, "figures": {"price": figure}}
    return {
        "name": f"{system}, {how}, {region}, {place}",
        "text": {"system": system, "how": how, "region": region, "provider_region": place, "provider": owner},
        "figures": {"price": figure},
    }


def _known_offer(key: tuple[str, str, str], catalog: Catalog) -> str:
    """Return the name of the catalog's offer of a system, way and region of the provider; empty if it has none."""
    stated = ("system", "how", "provider_region")
    return next(
        (offer.name for offer in catalog.records("offers") if tuple(offer.words(name) for name in stated) == key), ""
    )
