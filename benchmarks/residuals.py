"""Quantiles of the errors on measurements that the constants were not fitted to, for the scenarios of robust plans; refit.py writes them.

Each row is predicted by constants fitted without its group, as `validate --leave-out` does: group for a known source, source for a new
one, chip or generation for a new chip or generation. Rows weigh as for the bands, so that a large source does not stand for all. Only
quantiles of measured / predicted by metric are written, and the rank correlation of the serving metrics of one run; no row of the files
can be recovered from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from models.statistics.intervals import NEARER, TIERS, Missed, own_or_pooled, quantiles
from planner.calibration.fit import LEAVE_OUT_OF_TIER, enters_fit, log_measured
from planner.calibration.target import Observation
from planner.calibration.targets import target_of

LEVELS = (0.01, 0.025, *(round(0.05 * i, 2) for i in range(1, 20)), 0.975, 0.99)


def residual_figures(
    cases: Sequence, missed: Mapping[tuple[str, str], Missed], left_out: np.ndarray, source: str
) -> dict[str, dict]:
    """Build a record's figures from errors by (tier, label); no tier is narrower than a nearer one.

    `left_out` has ln(predicted) of every observation with its source left out, for the correlation of metrics.
    """
    target, levels = target_of(cases), np.array(LEVELS)
    figures = {"levels": _figure(LEVELS, source, "levels of the quantiles of measured / predicted")}
    for label in target.interval_labels:
        tables: dict[str, np.ndarray] = {}
        for tier in TIERS:
            table = quantiles(own_or_pooled(missed, tier, label), LEVELS)
            if tier in NEARER:
                nearer = tables[NEARER[tier]]
                farther = np.where(levels < 0.5, np.minimum(table, nearer), np.maximum(table, nearer))
                table = np.where(levels == 0.5, table, farther)
            note = f"{len(missed[tier, label])} figures, leave-one-{LEAVE_OUT_OF_TIER[tier]}-out"
            figures[f"{tier}_{label}"] = _figure(np.exp(table), source, note)
            tables[tier] = table
    if len(target.fitted_metrics) > 1:
        errors = log_measured(cases) - left_out
        figures["rank_correlation"] = _figure(
            *_correlation(target, target.observations(cases), errors, enters_fit(cases), source)
        )
    return figures


def _correlation(
    target, observations: Sequence[Observation], missed: np.ndarray, use: np.ndarray, source: str
) -> tuple[np.ndarray, str, str]:
    """Compute Spearman's correlation of the metrics over rows that have both, all entries of the matrix one after another."""
    from scipy.stats import spearmanr

    of = {
        metric: {
            o.case: value
            for o, value, able in zip(observations, missed, use, strict=True)
            if able and o.metric == metric
        }
        for metric in target.interval_labels
    }
    matrix = np.eye(len(target.interval_labels))
    for i, first in enumerate(target.interval_labels):
        for j, second in enumerate(target.interval_labels[:i]):
            both = sorted(of[first].keys() & of[second].keys())
            matrix[i, j] = matrix[j, i] = spearmanr(
                [of[first][c] for c in both], [of[second][c] for c in both]
            ).statistic
    return matrix.ravel(), source, f"of {', '.join(target.interval_labels)}, over rows that have both"


def _figure(values: Sequence[float], source: str, note: str) -> dict:
    short = [float(f"{value:.4g}") for value in values]
    return {"value": short, "unit": "1", "source": [source], "confidence": "B", "kind": "calibrated", "note": note}
