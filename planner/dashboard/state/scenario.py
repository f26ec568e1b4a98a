"""A scenario: a base spec with the figures that were changed in it. Its address, its file, its command. No Streamlit here."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from planner.dashboard import sources
from planner.dashboard.state.digest import digest
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.spec.document import at, changed, edited, parts_in, path_parts

UPLOAD = "upload"
LONGEST_ADDRESS = 1500  # characters of edits; a longer scenario travels as a file, or by its id
BASE, SET, KEPT = "base", "set", "edits"  # keys of the address
Edit = tuple[str, Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A base spec and edits of it: (path such as `sites[0].power`, value), None to take a value away."""

    base: str
    """Name of an example, or `upload`."""
    edits: tuple[Edit, ...] = ()
    name: str = ""
    upload: Mapping[str, Any] | None = field(default=None, compare=False)
    """The base spec of an upload."""
    digest: str = ""
    """Of the upload, so that two uploads differ."""
    problems: tuple[Issue, ...] = ()
    """Why there is no spec: of an address that leads to nothing."""

    @classmethod
    def of_upload(cls, document: Mapping[str, Any]) -> Scenario:
        """Begin a scenario with a spec that was uploaded."""
        return cls(UPLOAD, upload=document, digest=digest(document))

    @classmethod
    def of_nothing(cls, problems: Sequence[Issue]) -> Scenario:
        """Stand for an address that leads to nothing, for these reasons."""
        return cls("", problems=tuple(problems))

    def base_document(self) -> dict[str, Any]:
        """Return the base spec. Raises SpecError for a base that is not there."""
        if self.problems:
            raise SpecError(list(self.problems))
        if self.base == UPLOAD:
            if self.upload is None:
                raise SpecError([not_kept()])
            return dict(self.upload)
        return sources.example(self.base)

    def document(self) -> dict[str, Any]:
        """Return the spec with all edits. Raises SpecError for an edit of a place that is not there."""
        document = self.base_document()
        for path, value in self.edits:
            try:
                document = edited(document, ((path, value),)) if value is not None else _without(document, path)
            except (KeyError, IndexError, TypeError):
                raise SpecError([Issue(path, Message.of("dashboard.no_such_place").text())]) from None
        return document

    def with_edits(self, edits: Mapping[str, Any]) -> Scenario:
        """Change figures: a new edit replaces an older one of its place or of a place inside it; one that states the base's value goes."""
        base, kept = self.base_document(), dict(self.edits)
        for path, value in edits.items():
            for old in [old for old in kept if old == path or _is_inside(old, path)]:
                del kept[old]
            outer = any(_is_inside(path, old) for old in kept)
            if outer or not _same(at(base, path), value):
                kept[path] = value
        return replace(self, edits=tuple(kept.items()))

    def changes(self) -> list[dict[str, Any]]:
        """List what differs from the base: path, value there and here."""
        base = self.base_document()
        return [{"path": path, "from": at(base, path), "to": value} for path, value in self.edits]

    @property
    def key(self) -> str:
        """Return a short name that differs between scenarios with different figures."""
        return digest([self.base, self.digest, list(map(list, self.edits))])

    @property
    def origin(self) -> str:
        """Return a short name of the base."""
        return f"{self.base}-{self.digest}" if self.digest else self.base

    # -- as an address, a file and a command --------------------------------------------------------------------------

    def address(self) -> dict[str, list[str]]:
        """Return the parameters of the address of the scenario; of edits that are too long for one, the key under which they are kept."""
        texts = [f"{path}={_written(value)}" for path, value in self.edits]
        if sum(map(len, texts)) > LONGEST_ADDRESS:
            return {BASE: [self.base], KEPT: [self.key]}
        return {BASE: [self.base], **({SET: texts} if texts else {})}

    def with_texts(self, texts: Sequence[str]) -> Scenario:
        """Change figures as the parameters of an address say. Raises SpecError for a text that is no edit, or a place that is not there."""
        changed(copy.deepcopy(self.base_document()), texts, {})
        return self.with_edits({path: _value(value) for path, _, value in (text.partition("=") for text in texts)})

    @property
    def root(self) -> Scenario:
        """Return the base without edits."""
        return replace(self, edits=(), name="")

    def to_json(self) -> dict[str, Any]:
        """Return the scenario as a document that `from_json` reads."""
        return {
            "base": self.base,
            "edits": [list(edit) for edit in self.edits],
            "name": self.name,
            **({"upload": self.upload} if self.upload is not None else {}),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Scenario:
        """Read what `to_json` returns."""
        upload = document.get("upload")
        edits = tuple((path, value) for path, value in document["edits"])
        return cls(document["base"], edits, document["name"], upload, digest(upload) if upload is not None else "")

    def command(self) -> str:
        """Write the command line that gives the same plan."""
        file = f"examples/{self.base}.json" if self.base != UPLOAD else "spec.json"
        edits = [shlex.quote(f"{path}={_written(value)}") for path, value in self.edits]
        return " \\\n  ".join([f"flopwatt plan {file}", *(f"--set {edit}" for edit in edits)])

    def python(self) -> str:
        """Write the lines of Python that give the same plan."""
        file = f"examples/{self.base}.json" if self.base != UPLOAD else "spec.json"
        if not self.edits:
            return f'import planner\n\nplan = planner.solve("{file}")'
        return "\n".join(
            [
                "import planner",
                "from planner.spec.document import edited, read_spec",
                "",
                f'spec = edited(read_spec("{file}", ()), {self.edits!r})',
                "plan = planner.solve(spec)",
            ]
        )


def not_kept() -> Issue:
    """Say that an address names a work that is not kept here."""
    return Issue(BASE, Message.of("dashboard.not_kept").text())


def _without(document: dict[str, Any], path: str) -> dict[str, Any]:
    """Copy a document without the value at a path."""
    result = copy.deepcopy(document)
    *blocks, last = parts_in(document, path)
    place: Any = result
    for part in blocks:
        place = place.get(part, {}) if isinstance(place, dict) else place[part]
    place.pop(last, None) if isinstance(place, dict) else place.__delitem__(last)
    return result


def _is_inside(path: str, outer: str) -> bool:
    """Tell whether a path lies in the block of another."""
    parts, block = path_parts(path), path_parts(outer)
    return len(parts) > len(block) and parts[: len(block)] == block


def _same(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


def _written(value: Any) -> str:
    """Write a value so that `_value` reads it back: JSON, or a text as it is where that is no JSON."""
    if isinstance(value, str):
        return value if isinstance(_value(value), str) else json.dumps(value)
    return json.dumps(value)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
