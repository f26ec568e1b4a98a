"""Name the features of a run outside what its chip's family was fitted on, from the calibration. `verify` does so by code of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from planner.facts.reach import outside_messages
from planner.messages import Message
from planner.problem.intervals import Calibration, Run

THROUGHPUT = "throughput"


def outside_of(known: Calibration, chips: Sequence[tuple[str, str]], label: str, run: Run) -> list[Message]:
    """List the sentences for the chips of a run's pools, each family once; `label`: whose interval is stated."""
    found: dict[str, list[Message]] = {}
    model = "serving" if label == THROUGHPUT else "training"
    for chip, precision in chips:
        family = known.family(chip)
        fitted = known.reach.of(family)
        values = {name: (run.features[name], *fitted[name]) for name in known.outside(chip, run)}
        near, wide = (known.interval(chip, precision, label, run=each) for each in (Run(run.kind, {}), run))
        found[family] = outside_messages(model, family, values, (near.low, near.high), (wide.low, wide.high))
    return [message for each in found.values() for message in each]


def outside_rows(messages: Sequence[Message]) -> dict[str, Any]:
    """Write the sentences as the entry of a point's row; no entry where nothing lies outside."""
    return {"outside": [message.row() for message in messages]} if messages else {}
