"""Ranges of what each chip family was fitted on, and how errors of rows left out grow outside the range of the rows that remain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from models.arrays import Floats
from models.serving.constants import ServingConstants
from models.serving.many_runs import stack
from models.statistics.levels import row_weights
from models.statistics.reach import beyond, distance, range_of, slope_of
from planner.calibration.fit import calibrated_figure, enters_fit, log_measured
from planner.calibration.measurements import MeasuredCase
from planner.calibration.targets import target_of
from planner.messages import Message
from planner.problem.intervals import EVERY, FEATURES, bits_of, features_of_run


def features_of(cases: Sequence[MeasuredCase], values: Mapping[str, float]) -> list[dict[str, float]]:
    """Describe each row by what an interval's range is about; the batch of a serving row is the predicted one at the constants' `values`."""
    if target_of(cases).name == "training":
        return [_of_training(m) for m in cases]
    batches, constants = np.full(len(cases), np.nan), ServingConstants.from_values(values)
    for batch in stack([m.case for m in cases]):  # type: ignore[misc]  # cases of serving
        batches[batch.index] = batch.served(constants).batch
    return [_of_serving(m, float(batch)) for m, batch in zip(cases, batches, strict=True)]


def _of_training(m: Any) -> dict[str, float]:
    return features_of_run(
        m.case.arch, m.chips, m.case.sequence_tokens, m.case.global_batch_sequences, bits_of(m.case.precision)
    )


def _of_serving(m: Any, batch: float) -> dict[str, float]:
    run = m.case
    return features_of_run(
        run.arch, run.decode.chips, run.input_tokens + run.output_tokens, batch, bits_of(run.weight_precision)
    )


def ranges_of(
    cases: Sequence[MeasuredCase], features: Sequence[Mapping[str, float]]
) -> dict[str, dict[str, tuple[float, float]]]:
    """Find the range of each feature over the rows that enter a fit, by chip family, and over all of them under `EVERY`."""
    observations = target_of(cases).observations(cases)
    fitted = sorted({o.case for o in observations if o.fits})
    table, families = _table(features)[fitted], [cases[i].generation for i in fitted]
    return _ranges(table, families, np.ones(len(fitted), bool))


def _table(features: Sequence[Mapping[str, float]]) -> Floats:
    return np.array([[row.get(name, np.nan) for name in FEATURES] for row in features])


def _ranges(table: Floats, families: Sequence[str], keep: np.ndarray) -> dict[str, dict[str, tuple[float, float]]]:
    found = {}
    names = np.array(families, dtype=str)
    for family in (EVERY, *sorted(set(families))):
        rows = table[keep if family == EVERY else keep & (names == family)]
        each = {name: range_of(rows[:, j]) for j, name in enumerate(FEATURES)}
        if len(rows):
            found[family] = {name: pair for name, pair in each.items() if pair is not None}
    return found


def distances(cases: Sequence[MeasuredCase], features: Sequence[Mapping[str, float]]) -> Floats:
    """Compute how far each row lies outside the range of its family without the row's source [1]; of all families where no row is left."""
    fits = {o.case for o in target_of(cases).observations(cases) if o.fits}
    table, families = _table(features), [m.generation for m in cases]
    sources, found = np.array([m.row.kind for m in cases]), np.zeros(len(cases))
    trusted = np.array([i in fits for i in range(len(cases))])
    for source in sorted(set(sources.tolist())):
        ranges = _ranges(table, families, trusted & (sources != source))
        for i in np.flatnonzero(sources == source).tolist():
            found[i] = distance(beyond(features[i], ranges.get(families[i], ranges.get(EVERY, {}))))
    return found


def slopes_by_label(
    cases: Sequence[MeasuredCase], features: Sequence[Mapping[str, float]], log_predicted: Floats
) -> dict[str, tuple[float, int]]:
    """Estimate by label how errors grow outside the range, from ln(predicted) of every observation with its source left out: (slope, votes outside)."""
    target, use, log_values = target_of(cases), enters_fit(cases), log_measured(cases)
    observations, far = target.observations(cases), distances(cases, features)
    found = {}
    for label in target.interval_labels:
        rows = [i for i in np.flatnonzero(use) if observations[i].label == label]
        away = np.array([far[observations[i].case] for i in rows])
        votes = [cases[observations[i].case].vote for i in rows]
        slope = slope_of((log_values - log_predicted)[rows], away, row_weights(votes, 1.0)) if rows else 0.0
        found[label] = slope, len({vote for vote, d in zip(votes, away, strict=True) if d > 0.0})
    return found


def range_figures(ranges: Mapping[str, Mapping[str, tuple[float, float]]], source: str) -> dict[str, dict[str, Any]]:
    """Write the ranges as figures of a record: `family|feature`, [least, largest]."""
    return {
        f"{family}|{name}": {**calibrated_figure(1.0, source), "value": [float(f"{bound:.6g}") for bound in pair]}
        for family, each in ranges.items() for name, pair in each.items()
    }  # fmt: skip


def slope_figures(slopes: Mapping[str, tuple[float, int]], source: str) -> dict[str, dict[str, Any]]:
    """Write how errors grow outside the range as figures of a record, by label: the factor 1 + b for each factor e of distance."""
    return {
        label: calibrated_figure(1.0 + slope, source, note=Message.of("row.outside_groups", count=str(votes)).text())
        for label, (slope, votes) in slopes.items()
    }
