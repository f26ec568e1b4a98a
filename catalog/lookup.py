"""The catalog: our data, a user's overlays and overrides, found by name or alias. It reads files that
describe things; it never reads a question or a plan."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from catalog.errors import CatalogError, UnknownName, close_names, did_you_mean, name_key
from catalog.figures import Origin, Source
from catalog.reader import Place, read_record
from catalog.records import Record
from catalog.schemas import SCHEMAS

DATA = Path(__file__).parent / "data"
_KINDS_AND_SOURCES = (*SCHEMAS, "sources")
_CONFIG = ".config.json"

Problems = list[tuple[str, str]]


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
        self._cache: dict[str, tuple[dict[str, Record], dict[str, str]]] = {}
        self._sources: dict[str, Source] | None = None
        self._digest = ""
        problems: Problems = []
        self._check_blocks(problems)
        self._check_overrides(problems)
        if problems:
            raise CatalogError(problems)

    @classmethod
    def load(cls, overlays: Sequence[Path] = (), blocks: Sequence[Mapping[str, Any]] = ()) -> Catalog:
        """Our data with overlay directories (their `*.json` in order of name) or files, then `blocks`
        of the same shape from a spec. A file `<name>.config.json` is a Hugging Face config, read as the
        architecture of that name. Raises CatalogError with everything that is wrong in them."""
        problems: Problems = []
        placed: list[tuple[Place, Mapping[str, Any]]] = []
        for path in _overlay_files(overlays, problems):
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
            except (OSError, ValueError, RecursionError) as error:
                problems.append((str(path), f"cannot be read as JSON: {error}"))
                continue
            origin = Origin((f"overlay:{path.name}",), "C", "override")
            if path.name.endswith(_CONFIG):
                entry = {"name": path.name.removesuffix(_CONFIG), "config": content}
                placed.append((Place(f"{path}: ", origin, whole=True), {"architectures": [entry]}))
            elif isinstance(content, Mapping) and "model_type" in content:
                how = f'rename it to "<name>{_CONFIG}", with the name that specs give the architecture'
                problems.append((str(path), f"looks like a Hugging Face config.json: {how}"))
            else:
                placed.append((Place(f"{path}: ", origin), content))
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
        """Record by name or alias; spelling with spaces, hyphens or capitals is all one."""
        records, index = self._kind(kind)
        found = index.get(name_key(name))
        if found is None:
            raise UnknownName(kind, name, close_names(name, self._labels(kind)))
        return records[found]

    def has(self, kind: str, name: str) -> bool:
        """Whether a record has this name or alias."""
        return name_key(name) in self._kind(kind)[1]

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of all records of a kind."""
        return tuple(self._kind(kind)[0])

    def records(self, kind: str) -> tuple[Record, ...]:
        """All records of a kind."""
        return tuple(self._kind(kind)[0].values())

    def source(self, id: str) -> Source:
        """The document behind a source id."""
        sources = self._all_sources()
        if id not in sources:
            raise UnknownName("sources", id, close_names(id, sources))
        return sources[id]

    def constants(self, model: str) -> dict[str, float]:
        """Numbers of the constants of one model by field: "serving" -> {"memory_efficiency": 0.843, …}."""
        prefix = model + "."
        return {
            r.name.removeprefix(prefix): r.value("value")
            for r in self.records("constants")
            if r.name.startswith(prefix)
        }

    @property
    def digest(self) -> str:
        """sha256 over data, overlays, blocks and overrides: equal digests mean equal figures."""
        if not self._digest:
            whole = hashlib.sha256()
            for kind in _KINDS_AND_SOURCES:
                whole.update(kind.encode() + b"\0" + _data_path(kind).read_bytes())
            stated = [[place.origin.source, content] for place, content in self._blocks]
            whole.update(json.dumps([stated, self._overrides], sort_keys=True).encode())
            self._digest = whole.hexdigest()
        return self._digest

    def with_overrides(self, overrides: Mapping[str, Mapping[str, Any]]) -> Catalog:
        """New catalog in which figures are as stated: "kind/name/figure" -> {"value": "…", "note": "…"}."""
        return Catalog(self._blocks, {**self._overrides, **overrides})

    # -- building ---------------------------------------------------------------------------------

    def _kind(self, kind: str) -> tuple[dict[str, Record], dict[str, str]]:
        if kind not in SCHEMAS:
            raise UnknownName("kinds", kind, close_names(kind, SCHEMAS))
        if kind not in self._cache:
            problems: Problems = []
            self._cache[kind] = self._build(kind, problems)
            if problems:
                del self._cache[kind]
                raise CatalogError(problems)
        return self._cache[kind]

    def _build(self, kind: str, problems: Problems) -> tuple[dict[str, Record], dict[str, str]]:
        records: dict[str, Record] = {}
        index: dict[str, str] = {}
        ours = Place(f"{kind}.json: ", Origin())
        for place, content in ((ours, _read_data(kind)), *self._blocks):
            if not isinstance(content, Mapping) or not isinstance(content.get(kind, []), list):
                continue
            for i, entry in enumerate(content.get(kind, [])):
                at = place if place.whole else Place(f"{place.path}{kind}[{i}]", place.origin)
                base = None
                if place is not ours and isinstance(entry, Mapping) and isinstance(entry.get("name"), str):
                    base = records.get(index.get(name_key(entry["name"]), ""))
                record = read_record(kind, entry, at, base, lambda p, m: problems.append((p, m)))
                if record is not None:
                    records[record.name] = record
                    for label in (record.name, *record.aliases):
                        index.setdefault(name_key(label), record.name)
        self._apply_overrides(kind, records, index, problems)
        return records, index

    def _apply_overrides(
        self, kind: str, records: dict[str, Record], index: dict[str, str], problems: Problems
    ) -> None:
        for path, entry in self._overrides.items():
            if not path.startswith(kind + "/") or path.count("/") < 2:
                continue
            name, _, figure = path[len(kind) + 1 :].rpartition("/")
            where = f"overrides.{path}"
            found = index.get(name_key(name))
            if found is None:
                labels = [label for r in records.values() for label in (r.name, *r.aliases)]
                problems.append((where, str(UnknownName(kind, name, close_names(name, labels)))))
                continue
            record = records[found]
            edit = {"name": record.name, "figures": {figure: entry}}
            if figure in SCHEMAS[kind].text:
                edit = {"name": record.name, "text": {figure: _value_of(entry)}}
            place = Place(where, Origin(("override",), "C", "override", note_required=True), bare=True)
            changed = read_record(kind, edit, place, record, lambda p, m: problems.append((p, m)))
            if changed is not None:
                records[found] = changed

    # -- checking what a user states ---------------------------------------------------------------

    def _check_blocks(self, problems: Problems) -> None:
        touched: set[str] = set()
        for place, content in self._blocks:
            if not isinstance(content, Mapping):
                problems.append((place.path.rstrip(": ."), "expected an object with kinds as keys"))
                continue
            for kind, entries in content.items():
                if kind not in _KINDS_AND_SOURCES:
                    hint = did_you_mean(close_names(kind, _KINDS_AND_SOURCES))
                    problems.append((place.path + kind, f"unknown kind of record{hint}"))
                elif kind == "sources":
                    self._check_sources(place, entries, problems)
                elif not isinstance(entries, list):
                    problems.append((place.path + kind, "expected a list of records"))
                else:
                    touched.add(kind)
        for kind in sorted(touched):
            self._cache[kind] = self._build(kind, problems)
        for kind in sorted(touched):
            self._check_references(kind, problems)

    def _check_sources(self, place: Place, entries: object, problems: Problems) -> None:
        fine = isinstance(entries, Mapping) and all(
            isinstance(e, Mapping) and isinstance(e.get("title"), str) for e in entries.values()
        )
        if not fine:
            shape = 'expected {"id": {"title": "…", "date": …, "confidence": "B"}}'
            problems.append((place.path + "sources", shape))

    def _check_references(self, kind: str, problems: Problems) -> None:
        """Names that records of an overlay refer to, and sources that they cite, must exist."""
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
                    if spec.refers and value and ":" not in value and name_key(value) not in self._kind(spec.refers)[1]:
                        close = close_names(value, self._labels(spec.refers))
                        problems.append((f"{at}.text.{key}", str(UnknownName(spec.refers, value, close))))
                figures = entry.get("figures")
                for name in figures if isinstance(figures, Mapping) else ():
                    figure = record.get(name)
                    for id in figure.source if figure else ():
                        if id not in sources:
                            problems.append(
                                (
                                    f"{at}.figures.{name}.source",
                                    f'unknown source "{id}"' + did_you_mean(close_names(id, sources)),
                                )
                            )

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
                shape = 'expected a path such as "chips/H100 SXM5 80GB/hbm_bytes_per_s"'
                problems.append((f"overrides.{path}", shape))
            elif kind not in SCHEMAS:
                hint = did_you_mean(close_names(kind, SCHEMAS))
                problems.append((f"overrides.{path}", f'unknown kind of record "{kind}"{hint}'))
            else:
                touched.add(kind)
        for kind in sorted(touched):
            self._cache[kind] = self._build(kind, problems)

    def _labels(self, kind: str) -> list[str]:
        return [label for r in self._kind(kind)[0].values() for label in (r.name, *r.aliases)]

    def _all_sources(self) -> dict[str, Source]:
        if self._sources is None:
            stated = {"override": "stated by the user under overrides", "spec": "stated by the user in the spec"}
            self._sources = {id: Source(id, title, None, "C") for id, title in stated.items()}
            for place, _ in self._blocks:
                for id in place.origin.source:
                    self._sources.setdefault(id, Source(id, f"stated by the user in {id}", None, "C"))
            for content in (_read_data("sources"), *(c for _, c in self._blocks)):
                entries = content.get("sources", {}) if isinstance(content, Mapping) else {}
                for id, e in entries.items() if isinstance(entries, Mapping) else ():
                    self._sources[id] = Source(id, e["title"], e.get("date"), e.get("confidence", "C"))
        return self._sources


@cache
def shipped_catalog() -> Catalog:
    """Our own data alone; they do not change while a process runs, so they are read once."""
    return Catalog.load()


def _value_of(entry: object) -> object:
    return entry.get("value") if isinstance(entry, Mapping) else entry


def _data_path(kind: str) -> Path:
    return DATA / f"{kind}.json"


def _read_data(kind: str) -> Mapping[str, Any]:
    return json.loads(_data_path(kind).read_text(encoding="utf-8"))


def _overlay_files(overlays: Iterable[Path], problems: Problems) -> list[Path]:
    files: list[Path] = []
    for path in map(Path, overlays):
        if path.is_dir():
            files += sorted(path.glob("*.json"))
        elif path.is_file():
            files.append(path)
        else:
            problems.append((str(path), "no such file or directory"))
    return files
