"""Load the catalog of a spec and look up its names; a name without a record is reported with its close matches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError, UnknownName, name_key
from catalog.lookup import Catalog, shipped_catalog
from catalog.records import Record
from planner.errors import Issue, SpecError, close_matches, issues_of, path_text, unknown_record, words_of
from planner.messages import Message
from planner.spec.model import PlanSpec

# every place of a spec that holds the name of a record; "*" stands for each entry of a list
PLACES: tuple[tuple[str, str], ...] = (
    ("workloads.*.architecture", "architectures"),
    ("workloads.*.alternatives.*.architecture", "architectures"),
    ("apis.*.architecture", "architectures"),
    ("workloads.*.origins.*.region", "regions"),
    ("workloads.*.weights_from", "regions"),
    ("sites.*.region", "regions"),
    ("sites.*.fabric", "fabrics"),
    ("sites.*.systems.*", "systems"),
    ("sites.*.tariff", "tariffs"),
    ("owned.*.system", "systems"),
    ("owned.*.region", "regions"),
    ("rented.*.system", "systems"),
    ("rented.*.region", "regions"),
    ("offers.*.system", "systems"),
    ("offers.*.regions.*", "regions"),
    ("lines.*.kind", "lines"),
    ("lines.*.between.*", "regions"),
)


class WrongName(LookupError):
    """A name that matches no usable record; the message states the remedy."""


def find_record(catalog: Catalog, kind: str, name: str, stated: Collection[str]) -> Record:
    """Return the record of a name. Raises WrongName, also for a product that is not for sale, unless a path in `stated` gives it a figure."""
    try:
        record = catalog.get(kind, name)
    except UnknownName as error:
        raise WrongName(unknown_record(error)) from None
    labels = {name_key(label) for label in (record.name, *record.aliases)}
    if record.announced_only and not any(
        path.startswith(f"{kind}/") and name_key(path.split("/", 1)[1].rpartition("/")[0]) in labels for path in stated
    ):
        raise WrongName(Message.of("resolve.announced_only", name=record.name).text())
    return record


def residency_zones(catalog: Catalog) -> set[str]:
    """List the names that a residency rule may use: regions, and the zones and countries in which they lie."""
    regions = catalog.records("regions")
    return {region.name for region in regions} | {
        region.words(key) for region in regions for key in ("residency", "country")
    } - {""}


def wrong_zone(name: str, zones: Collection[str]) -> str | None:
    """Describe the error in a name under `residency`; None for a known name."""
    return (
        None
        if name in zones
        else Message.of("resolve.unknown_region", name=name, close=close_matches(name, zones)).text()
    )


def unknown_names(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> list[Issue]:
    """List the problems of all names in a spec, valid otherwise or not, and of its `catalog` block; values that are no text are skipped."""
    blocks, overrides = _object(document.get("catalog")), _object(document.get("overrides"))
    problems: list[Issue] = []
    defined: set[str] = set()
    try:
        catalog = Catalog.load(overlays, [blocks]) if overlays or blocks else shipped_catalog()
    except CatalogError as error:
        problems = issues_of(error)
        defined = {name_key(name) for kind in blocks for _, name in _texts(blocks, [kind, "*", "name"])}
        catalog = shipped_catalog()
    zones = residency_zones(catalog)
    for pattern, kind in PLACES:
        for path, name in _texts(document, pattern.split(".")):
            if name_key(name) in defined:
                continue
            try:
                find_record(catalog, kind, name, overrides)
            except WrongName as error:
                problems.append(Issue(path_text(path), words_of(error)))
    for path, name in _texts(document, ["workloads", "*", "residency", "*"]):
        if message := wrong_zone(name, zones | defined):
            problems.append(Issue(path_text(path), message))
    return problems


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _texts(
    value: Any, pattern: Sequence[str], path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield (path, text) of every text at a place that matches the pattern."""
    if not pattern:
        if isinstance(value, str) and value.strip():
            yield path, value.strip()
    elif pattern[0] == "*":
        for i, item in enumerate(value if isinstance(value, list) else ()):
            yield from _texts(item, pattern[1:], (*path, i))
    elif isinstance(value, Mapping) and pattern[0] in value:
        yield from _texts(value[pattern[0]], pattern[1:], (*path, pattern[0]))


def catalog_of(spec: PlanSpec, overlays: Sequence[Path], recorded: Mapping[str, Mapping[str, Any]]) -> Catalog:
    """Load the catalog with the overlays, the records of the spec's `catalog` block and the figures of its `overrides`."""
    try:
        own: dict[str, Any] = {str(kind): records for kind, records in spec.catalog.items()}
        catalog = Catalog.load(overlays, [own]) if overlays or spec.catalog else shipped_catalog()
        overrides = {
            **{path: override.model_dump(exclude_none=True) for path, override in spec.overrides.items()},
            **recorded,
        }
        return catalog.with_overrides(overrides) if overrides else catalog
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None
