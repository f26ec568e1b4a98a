"""Noise floor of measurements: how far runs of one configuration differ that were measured more than once. Below it no model can err."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.calibration.target import Observation

UNDATED = 0.0  # release year put in place of all


@dataclass(frozen=True, slots=True)
class Repeats:
    """Runs of one configuration: how many configurations and runs, and how far a run is from the median of its configuration [1]."""

    configurations: int
    runs: int
    errors: np.ndarray


def repeated(
    cases: Sequence, observations: Sequence[Observation], use: np.ndarray, across_sources: bool = False
) -> dict[str, Repeats]:
    """Find configurations with two or more runs, by label; runs differ in date, submitter or day only.

    Of a configuration of n runs each run's |value / median - 1| is scaled by sqrt(n / (n - 1)), since the median is of the same runs.
    With `across_sources` runs of different sources may count as repeats, else only those of one source.
    """
    groups: dict[tuple, list[float]] = defaultdict(list)
    for i in np.flatnonzero(use):
        o = observations[i]
        groups[o.label, configuration(cases[o.case], across_sources), o.metric].append(o.value)
    found: dict[str, list[tuple[int, np.ndarray]]] = defaultdict(list)
    for (label, _, _), values in groups.items():
        if len(values) > 1:
            found[label].append(
                (
                    len(values),
                    np.abs(np.array(values) / np.median(values) - 1.0) * np.sqrt(len(values) / (len(values) - 1.0)),
                )
            )
    return {
        label: Repeats(len(each), sum(n for n, _ in each), np.concatenate([errors for _, errors in each]))
        for label, each in found.items()
    }


def configuration(m, across_sources: bool) -> str:
    """Write down all that is known of a run but the date of its software."""
    case = m.case
    if hasattr(case, "release_year"):
        undated = replace(case, release_year=UNDATED)
    else:
        undated = replace(case, recipe=replace(case.recipe, release_year=UNDATED))
    return f"{'' if across_sources else m.row.kind}|{m.architecture}|{m.chip}|{m.chips}|{undated}"
