"""Read works that earlier releases kept: one file held scenarios of several bases, where a file now holds one base's scenarios."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from planner.dashboard.state.digest import digest
from planner.dashboard.state.scenario import Scenario
from planner.errors import SpecError


def of_version_1(work: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a work of version 1: the base of the scenario at hand, with what was changed, saved and solved of that base alone.

    Raises AttributeError, KeyError, TypeError or ValueError for a document of another form.
    """
    at_hand = Scenario.from_json(work["scenario"])
    saved = [scenario for scenario in map(Scenario.from_json, work["saved"]) if scenario.origin == at_hand.origin]
    solved = set[str]()
    for scenario in (at_hand, *saved):
        with suppress(SpecError):  # the base may be gone, or an edit may not fit it any more
            solved.add(digest(scenario.document()))
    return {
        "root": at_hand.root.to_json(),
        "edits": {at_hand.key: list(map(list, at_hand.edits))},
        "saved": [{"name": scenario.name, "edits": list(map(list, scenario.edits))} for scenario in saved],
        "plans": [row for row in work["plans"] if row["key"] in solved],
    }
