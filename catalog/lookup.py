"""The catalog: the shipped data with a user's overlays and overrides, looked up by name or alias.

It reads files that describe hardware, prices, regions and architectures, never a specification or a plan.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from catalog.build import Records, build_records
from catalog.errors import CatalogError, UnknownName, Wrong, close_names, did_you_mean, name_key
from catalog.figures import Origin, Source
from catalog.files import Problems, data_path, read_data, read_overlays
from catalog.reader import Place
from catalog.records import Record
from catalog.schemas import SCHEMAS

_KINDS_AND_SOURCES = (*SCHEMAS, "sources")


class Catalog:
    """Records by kind. Immutable: `with_overrides` makes a new one."""

    __slots__ = ("_blocks", "_cache", "_digest", "_overrides", "_sources")

    def __init__(
        self,
        blocks: Sequence[tuple[Place, Mapping[str, Any]]] = (),
        overrides: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        self._blocks = tuple(blocks)
        self._overrides = dict(overrides or {})
        self._cache: dict[str, Records] = {}
        self._sources: dict[str, Source] | None = None
        self._digest = ""
        problems: Problems = []
        self._check_blocks(problems)
        self._check_overrides(problems)
        if problems:
            raise CatalogError(problems)

    @classmethod
    def load(cls, overlays: Sequence[Path] = (), blocks: Sequence[Mapping[str, Any]] = ()) -> Catalog:
        """Load the shipped data with overlays, and with blocks of the same shape from a spec.

        `overlays` are files, or folders whose `*.json` are read in order of name. A file `<name>.config.json` is a Hugging Face
        config, read as the architecture of that name. Raises CatalogError with everything that is wrong in them.
        """
        problems: Problems = []
        placed = read_overlays(overlays, problems)
        for block in blocks:
            placed.append((Place("catalog.", Origin(("spec",), "C", "override", note_required=True)), block))
        try:
            catalog = cls(placed)
        except CatalogError as error:
            problems += error.problems
        if problems:
            raise CatalogError(problems)
        return catalog

    def get(self, kind: str, name: str) -> Record:
        """Find a record by name or alias, whatever its spaces, hyphens and capitals."""
        records, index = self._kind(kind)
        found = index.get(name_key(name))
        if found is None:
            raise UnknownName(kind, name, close_names(name, self._labels(kind)))
        return records[found]

    def has(self, kind: str, name: str) -> bool:
        """Tell whether a record has this name or alias."""
        return name_key(name) in self._kind(kind)[1]

    def names(self, kind: str) -> tuple[str, ...]:
        """List the names of all records of a kind."""
        return tuple(self._kind(kind)[0])

    def records(self, kind: str) -> tuple[Record, ...]:
        """List all records of a kind."""
        return tuple(self._kind(kind)[0].values())

    def source(self, id: str) -> Source:
        """Find the document behind a source id."""
        sources = self._all_sources()
        if id not in sources:
            raise UnknownName("sources", id, close_names(id, sources))
        return sources[id]

    def constants(self, model: str) -> dict[str, float]:
        """List the constants of one model by name: "serving" -> {"memory_efficiency": 0.843, …}."""
        prefix = model + "."
        return {
            r.name.removeprefix(prefix): r.value("value")
            for r in self.records("constants")
            if r.name.startswith(prefix)
        }

    @property
    def digest(self) -> str:
        """Hash data, overlays, blocks and overrides with SHA-256: equal digests mean equal figures."""
        if not self._digest:
            whole = hashlib.sha256()
            for kind in _KINDS_AND_SOURCES:
                whole.update(kind.encode() + b"\0" + data_path(kind).read_bytes())
            stated = [[place.origin.source, content] for place, content in self._blocks]
            whole.update(json.dumps([stated, self._overrides], sort_keys=True).encode())
            self._digest = whole.hexdigest()
        return self._digest

    def with_overrides(self, overrides: Mapping[str, Mapping[str, Any]]) -> Catalog:
        """Make a new catalog in which figures are as stated: "kind/name/figure" -> {"value": "…", "note": "…"}."""
        return Catalog(self._blocks, {**self._overrides, **overrides})

    # -- building ---------------------------------------------------------------------------------

    def _kind(self, kind: str) -> Records:
        if kind not in SCHEMAS:
            raise UnknownName("kinds", kind, close_names(kind, SCHEMAS))
        if kind not in self._cache:
            problems: Problems = []
            self._cache[kind] = build_records(kind, self._blocks, self._overrides, problems)
            if problems:
                del self._cache[kind]
                raise CatalogError(problems)
        return self._cache[kind]

    # -- checking what a user states ---------------------------------------------------------------

    def _check_blocks(self, problems: Problems) -> None:
        touched: set[str] = set()
        for place, content in self._blocks:
            if not isinstance(content, Mapping):
                problems.append((place.path.rstrip(": ."), Wrong("catalog.expected_kinds")))
                continue
            for kind, entries in content.items():
                if kind not in _KINDS_AND_SOURCES:
                    hint = did_you_mean(close_names(kind, _KINDS_AND_SOURCES))
                    problems.append((place.path + kind, Wrong("catalog.unknown_kind", close=hint)))
                elif kind == "sources":
                    self._check_sources(place, entries, problems)
                elif not isinstance(entries, list):
                    problems.append((place.path + kind, Wrong("catalog.expected_records")))
                else:
                    touched.add(kind)
        for kind in sorted(touched):
            self._cache[kind] = build_records(kind, self._blocks, self._overrides, problems)
        for kind in sorted(touched):
            self._check_references(kind, problems)

    def _check_sources(self, place: Place, entries: object, problems: Problems) -> None:
        fine = isinstance(entries, Mapping) and all(map(_is_source, entries.values()))
        if not fine:
            shape = Wrong("catalog.expected_sources_by_id")
            problems.append((place.path + "sources", shape))

    def _check_references(self, kind: str, problems: Problems) -> None:
        """Check that the names which records of an overlay refer to, and the sources which they cite, exist."""
        sources = self._all_sources()
        for place, content in self._blocks:
            if not isinstance(content, Mapping) or not isinstance(content.get(kind), list):
                continue
            for i, entry in enumerate(content[kind]):
                record = self._record_of(kind, entry)
                if record is None:
                    continue
                at = f"{place.path}{kind}[{i}]"
                for key, spec in SCHEMAS[kind].text.items():
                    value = record.words(key)
                    if not spec.refers or not value or (spec.foreign and ":" in value):
                        continue
                    if name_key(value) not in self._kind(spec.refers)[1]:
                        close = close_names(value, self._labels(spec.refers))
                        problems.append(
                            (
                                f"{at}.text.{key}",
                                Wrong("catalog.unknown_name", kind=spec.refers, name=value, close=did_you_mean(close)),
                            )
                        )
                figures = entry.get("figures")
                for name in figures if isinstance(figures, Mapping) else ():
                    figure = record.get(name)
                    for id in figure.source if figure else ():
                        if id not in sources:
                            hint = did_you_mean(close_names(id, sources))
                            message = Wrong("catalog.unknown_source", name=id, close=hint)
                            problems.append((f"{at}.figures.{name}.source", message))

    def _record_of(self, kind: str, entry: object) -> Record | None:
        if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str):
            return None
        records, index = self._cache[kind]
        return records.get(index.get(name_key(entry["name"]), ""))

    def _check_overrides(self, problems: Problems) -> None:
        touched = set()
        for path in self._overrides:
            kind = path.partition("/")[0]
            if path.count("/") < 2:
                shape = Wrong("catalog.expected_path")
                problems.append((f"overrides.{path}", shape))
            elif kind not in SCHEMAS:
                hint = did_you_mean(close_names(kind, SCHEMAS))
                problems.append((f"overrides.{path}", Wrong("catalog.unknown_record_kind", name=kind, close=hint)))
            else:
                touched.add(kind)
        for kind in sorted(touched):
            self._cache[kind] = build_records(kind, self._blocks, self._overrides, problems)

    def _labels(self, kind: str) -> list[str]:
        return [label for r in self._kind(kind)[0].values() for label in (r.name, *r.aliases)]

    def _all_sources(self) -> dict[str, Source]:
        if self._sources is None:
            stated = {"override": "stated by the user under overrides", "spec": "stated by the user in the spec"}
            self._sources = {id: Source(id, title, None, "C") for id, title in stated.items()}
            for place, _ in self._blocks:
                for id in place.origin.source:
                    self._sources.setdefault(id, Source(id, f"stated by the user in {id}", None, "C"))
            for content in (read_data("sources"), *(c for _, c in self._blocks)):
                entries = content.get("sources", {}) if isinstance(content, Mapping) else {}
                for id, e in entries.items() if isinstance(entries, Mapping) else ():
                    if not _is_source(e):
                        continue  # reported where the block is checked
                    self._sources[id] = Source(id, e["title"], e.get("date"), e.get("confidence", "C"))
        return self._sources


def _is_source(entry: object) -> bool:
    """Tell whether an entry of `sources` has a title, and a date and a confidence that are texts where it has them."""
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("title"), str)
        and all(isinstance(entry.get(key), str | None) for key in ("date", "confidence"))
    )


@cache
def shipped_catalog() -> Catalog:
    """Load the shipped data alone, once per process."""
    return Catalog.load()
