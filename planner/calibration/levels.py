"""Levels of the errors on held-out measurements: by source, chip, engine and single run, for intervals and for sampled scenarios."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats
from models.statistics.intervals import Missed
from models.statistics.levels import level_spreads
from planner.calibration.fit import LEAVE_OUT_OF_TIER, calibrated_figure, enters_fit, log_measured
from planner.calibration.measurements import MeasuredCase
from planner.calibration.targets import target_of

LEVELS = ("source", "chip", "engine")


def level_of(case: MeasuredCase, level: str) -> str:
    """Name the group of a row at a level; with "group" that of source, architecture and chip together."""
    if level == "group":
        return case.vote
    return {
        "source": case.row.kind,
        "chip": case.chip,
        "kind": case.kind,
        "engine": case.software,
        "generation": case.generation,
    }[level]


def single_generations(cases: Sequence[MeasuredCase]) -> set[str]:
    """List the generations of which a fit has used one chip only, so that without the chip the generation is new as well."""
    chips: dict[str, set[str]] = {}
    for observation in target_of(cases).observations(cases):
        if observation.fits:
            case = cases[observation.case]
            chips.setdefault(case.generation, set()).add(case.chip)
    return {generation for generation, found in chips.items() if len(found) == 1}


def missed_by_tier(cases: Sequence[MeasuredCase], left_out: Mapping[str, Floats]) -> dict[tuple[str, str], Missed]:
    """Collect the errors of each (tier, label) from leave-out predictions, in the groups that were left out.

    Each source kind, architecture and chip has one vote, whatever was left out: rows of one network on one chip go together.
    `left_out` has ln(predicted) of every observation by what was left out. A chip that is alone in its generation says nothing of new chips
    of a known one.
    """
    target, use, log_values = target_of(cases), enters_fit(cases), log_measured(cases)
    observations, single = target.observations(cases), single_generations(cases)
    generations = np.array([cases[o.case].generation for o in observations])
    found = {}
    for tier, by in LEAVE_OUT_OF_TIER.items():
        for label in target.interval_labels:
            rows = [i for i in np.flatnonzero(use) if observations[i].label == label]
            if by == "chip":
                rows = [i for i in rows if generations[i] not in single]
            errors = (log_values - left_out[by])[rows]
            groups = [level_of(cases[observations[i].case], by) for i in rows]
            votes = [level_of(cases[observations[i].case], "group") for i in rows]
            found[tier, label] = Missed(errors, groups, votes)
    return found


def spreads_by_label(cases: Sequence[MeasuredCase], log_predicted: Floats) -> dict[str, dict[str, float]]:
    """Estimate the standard deviation of each level of errors, by label, from ln(predicted) of every observation with its source left out."""
    target, use, log_values = target_of(cases), enters_fit(cases), log_measured(cases)
    observations = target.observations(cases)
    found = {}
    for label in target.interval_labels:
        rows = [i for i in np.flatnonzero(use) if observations[i].label == label]
        if rows:
            groups = {name: [level_of(cases[observations[i].case], name) for i in rows] for name in LEVELS}
            found[label] = level_spreads((log_values - log_predicted)[rows], groups)
    return found


def level_figures(spreads: Mapping[str, Mapping[str, float]], source: str) -> dict[str, dict[str, Any]]:
    """Write the levels as figures of a record: `label_level`, such as `tpot_source`, standard deviations of ln(measured / predicted)."""
    return {
        f"{label}_{level}": calibrated_figure(spread, source)
        for label, each in spreads.items()
        for level, spread in each.items()
    }
