"""Compare the records and overrides that a spec or a case states with the catalog's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from catalog.errors import UnknownName
from catalog.lookup import Catalog, shipped_catalog
from catalog.records import Record
from planner.facts import Fact
from planner.facts.hardware import CHIP, SYSTEM, another_prefix, slice_of_several
from planner.facts.networks import SHAPES
from planner.facts.ranges import Ratio, figures_of, unlike_others

PLACE = "the range over the catalog"
RATIOS: Mapping[str, Mapping[str, Ratio]] = {"chips": CHIP, "systems": SYSTEM, "architectures": SHAPES}


def record_facts(catalog: Catalog, own: Mapping[Any, list[dict[str, Any]]], overrides: Iterable[str]) -> Iterator[Fact]:
    """Yield conflicts with the catalog in the records of the block `catalog`, and in `overrides` ("kind/name/figure")."""
    shipped = shipped_catalog()
    stated = {
        (kind, catalog.get(kind, entry["name"]).name): f"catalog.{kind}[{i}]"
        for kind, records in own.items()
        for i, entry in enumerate(records)
    }
    for place in overrides:
        kind, name, figure = _parts(place)
        known, given = _found(shipped, kind, name), _found(catalog, kind, name)
        if given is None:
            continue
        stated.setdefault((kind, given.name), f"overrides.{place}")
        fact = another_prefix(f"overrides.{place}", given.get(figure), None if known is None else known.get(figure))
        if fact is not None:
            yield fact
    for (kind, name), path in stated.items():
        if kind == "systems" and (several := slice_of_several(path, catalog.get(kind, name))) is not None:
            yield several
        if kind in RATIOS:
            others = [_figures(shipped, kind, record) for record in shipped.records(kind)]
            mine = _figures(catalog, kind, catalog.get(kind, name))
            yield from unlike_others(path, RATIOS[kind], mine, others, PLACE, record=name)


def _parts(place: str) -> tuple[str, str, str]:
    kind, _, rest = place.partition("/")
    name, _, figure = rest.rpartition("/")
    return kind, name, figure


def _found(catalog: Catalog, kind: str, name: str) -> Record | None:
    try:
        return catalog.get(kind, name)
    except (UnknownName, KeyError):
        return None


def _figures(catalog: Catalog, kind: str, record: Record) -> dict[str, float]:
    """Return the figures of a record; of a system its chip's under "chip." too."""
    chip = _found(catalog, "chips", record.words("chip")) if kind == "systems" else None
    return figures_of(record) | ({} if chip is None else figures_of(chip, "chip."))
