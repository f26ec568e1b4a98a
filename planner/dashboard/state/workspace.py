"""The workspace of one browser: its name, and which works it has, by base. No Streamlit here.

A work is kept with its base under an id of its own; the workspace lists these ids, with the edits at hand of each base, so that a visitor
finds all of them again. It is kept under a hash of a secret that the browser holds in a cookie and that no link for others contains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.dashboard.state import store
from planner.dashboard.state.scenario import Edit, Scenario

MOST_UPLOADS = 40
"""Uploads that are listed for one browser."""
MOST_WORKS = 100
MOST_LETTERS = 60
"""Of the name of a workspace."""
MOST_DRAFT = 20_000
"""Letters of the edits at hand of one base; more are kept with the work."""
WORKSPACE = "workspace"
"""Key of the private address by which another browser opens a workspace."""


@dataclass(slots=True)
class Workspace:
    """What one browser works on."""

    secret: str = ""
    """By which the browser is known; empty where there is none."""
    name: str = ""
    uploads: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Uploads: (id, name of the spec) by origin."""
    works: dict[str, str] = field(default_factory=dict)
    """Ids of works by origin of the base."""
    drafts: dict[str, tuple[Edit, ...]] = field(default_factory=dict)
    """The edits at hand, by origin of the base."""
    last: str = ""
    """Origin of the base at hand."""
    kept: bool = False
    """Whether there is something to come back to."""

    @classmethod
    def of(cls, secret: str) -> Workspace:
        """Find the workspace of a secret; nothing is written."""
        found = store.load(list_of(secret)) if secret else None
        if found is None or "root" in found:
            return cls(secret)
        return cls(
            secret,
            str(found.get("name", "")),
            {origin: (name, title) for origin, (name, title) in found.get("uploads", {}).items()},
            dict(found.get("works", {})),
            {origin: tuple((path, value) for path, value in rows) for origin, rows in found.get("drafts", {}).items()},
            str(found.get("last", "")),
            kept=True,
        )

    def begin(self) -> None:
        """Keep the workspace from now on."""
        if self.secret and not self.kept:
            self._write(lambda there: there)

    def rename(self, name: str) -> None:
        """Give the workspace a name."""
        self.name = name.strip()[:MOST_LETTERS]
        self._write(lambda there: there | {"name": self.name})

    def list_work(self, scenario: Scenario, name: str) -> None:
        """List the work of a base under its id for the next visit."""
        origin = scenario.origin
        title = str((scenario.upload or {}).get("name", ""))
        if not self.secret or (self.works.get(origin) == name and (not title or origin in self.uploads)):
            return
        self.works[origin] = name
        if scenario.upload is not None:
            self.uploads[origin] = (name, title)

        def listed(there: dict[str, Any]) -> dict[str, Any]:
            uploads, works = dict(there.get("uploads", {})), _last(there.get("works", {}), origin, name)
            if scenario.upload is not None:
                uploads = _last(uploads, origin, (name, title))
            return there | {
                "uploads": dict(list(uploads.items())[-MOST_UPLOADS:]),
                "works": dict(list(works.items())[-MOST_WORKS:]),
            }

        self._write(listed)

    def note(self, scenario: Scenario) -> None:
        """Note the scenario at hand, if the workspace is kept at all."""
        origin, edits = scenario.origin, scenario.edits
        if not self.kept or scenario.problems or (self.last == origin and self.drafts.get(origin, ()) == edits):
            return
        if len(repr(edits)) > MOST_DRAFT:
            edits = ()
        self.last, self.drafts[origin] = origin, edits
        rows = [list(edit) for edit in edits]
        self._write(
            lambda there: (
                there
                | {
                    "last": origin,
                    "drafts": dict(list(_last(there.get("drafts", {}), origin, rows).items())[-MOST_WORKS:]),
                }
            )
        )

    def _write(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        """Write a change; what another page of the browser wrote meanwhile stays."""
        if self.secret:
            self.kept = store.update(list_of(self.secret), lambda there: change({"uploads": {}} | (there or {})))


def list_of(secret: str) -> str:
    """Return the id of a browser's list; whoever reads the folder does not learn the secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def is_kept(secret: str) -> bool:
    """Tell whether there is a workspace of a secret."""
    return store.is_id(secret) and Workspace.of(secret).kept


def _last(entries: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Add an entry at the end, also where its key stands already: the first ones are those given up where there are too many."""
    return {name: entry for name, entry in entries.items() if name != key} | {key: value}
