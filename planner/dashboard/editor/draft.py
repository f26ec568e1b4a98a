"""Keep what a visitor changes in the tables: a scenario that may still be wrong, beside the last one that was right. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from planner.dashboard import sources
from planner.dashboard.editor.columns import TABLES
from planner.dashboard.editor.tables import Change, edits_of
from planner.dashboard.state.scenario import Scenario
from planner.errors import Issue, SpecError


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the tables."""

    start: Scenario
    """What the tables were drawn from; changes since are those of the editors."""
    scenario: Scenario
    """The same with these changes."""
    problems: tuple[Issue, ...] = ()
    """Of the scenario; empty where it is right."""
    version: int = 0
    """Number of the editors: another one draws the tables anew."""

    @classmethod
    def of(cls, scenario: Scenario, version: int = 0) -> Draft:
        """Begin with a scenario. Raises SpecError for one without a document."""
        return cls(scenario, scenario, _problems(scenario), version)

    @property
    def document(self) -> dict[str, Any]:
        """Return the spec that the tables are drawn from."""
        return self.start.document()

    def changed(self, changes: Mapping[str, Change]) -> Draft:
        """Take over what stands in the editors, by table. Problems are found all at once."""
        document, scenario = self.start.document(), self.start
        for table in TABLES:
            if change := changes.get(table.name):
                scenario = scenario.with_edits(edits_of(table, document, change))
                document = scenario.document()
        if scenario == self.scenario:
            return self
        return replace(self, scenario=scenario, problems=_problems(scenario))

    def with_edits(self, edits: Mapping[str, Any]) -> Draft:
        """Take over edits by path, as a form makes them. Problems are found all at once."""
        scenario = self.scenario.with_edits(edits)
        return self if scenario == self.scenario else replace(self, scenario=scenario, problems=_problems(scenario))

    def redrawn(self) -> Draft:
        """Draw the tables from what stands in them, so that their rows are numbered anew."""
        return replace(self, start=self.scenario, version=self.version + 1)


def _problems(scenario: Scenario) -> tuple[Issue, ...]:
    try:
        sources.resolved(scenario.document())
    except SpecError as error:
        return tuple(error.problems)
    return ()


def change_of(state: Any) -> Change:
    """Read the state of an editor of Streamlit."""
    if not isinstance(state, Mapping):
        return Change()
    return Change(
        {int(i): dict(cells) for i, cells in (state.get("edited_rows") or {}).items()},
        tuple(dict(cells) for cells in state.get("added_rows") or ()),
        tuple(int(i) for i in state.get("deleted_rows") or ()),
    )
