"""Tabulate the errors of the models on data that they were not fitted to, for the scenarios of robust plans; write them into the catalog.

    python benchmarks/residuals.py --measurements DIR [--write]

DIR holds training.csv and serving.csv. Each row is predicted by constants fitted without its group, as `validate --leave-out` does: group
for a known source, source for a new one, generation for a new chip. Only quantiles of measured / predicted by metric are written, and
the rank correlation of the serving metrics of one run; no row of the files can be recovered from them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

from refit import DATA, SOURCES, replaced

from catalog.lookup import Catalog
from models.statistics.intervals import FEWEST, TIERS
from planner.calibration.fit import LEAVE_OUT_OF_TIER, enters_fit, leave_out, log_measured, read_measurements
from planner.calibration.targets import target_of
from planner.files import write_file

LEVELS = (0.01, 0.025, *(round(0.05 * i, 2) for i in range(1, 20)), 0.975, 0.99)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    parser.add_argument("--write", action="store_true", help="write into the catalog")
    options = parser.parse_args(argv)
    catalog, records = Catalog.load(), {}
    for model, source in SOURCES.items():
        cases = read_measurements(options.measurements / f"{model}.csv", catalog).cases
        missed = {
            tier: log_measured(cases) - leave_out(cases, by, catalog.constants(model))[0]
            for tier, by in LEAVE_OUT_OF_TIER.items()
        }
        records[f"{model}_residuals"] = residual_figures(cases, missed, source)
    for name, figures in records.items():
        for key, found in figures.items():
            print(name, key, found["value"], found["note"])
    if options.write:
        write_file(DATA, replaced(DATA.read_text(encoding="utf-8"), records))


def residual_figures(cases: Sequence, missed: Mapping[str, np.ndarray], source: str) -> dict[str, dict]:
    """Build a record's figures from `missed`, by tier ln(measured / predicted) of every observation; no tier is narrower than a nearer one."""
    target, use = target_of(cases), enters_fit(cases)
    observations = target.observations(cases)
    labels = np.array([o.label for o in observations])
    figures = {"levels": _figure(LEVELS, source, "levels of the quantiles of measured / predicted")}
    for label in target.interval_labels:
        nearer: np.ndarray | None = None
        for tier in TIERS:
            found = missed[tier][use & (labels == label)]
            own = found if len(found) >= FEWEST else missed[tier][use]
            table = np.quantile(own, LEVELS)
            if nearer is not None:
                table = np.where(
                    np.array(LEVELS) < 0.5,
                    np.minimum(table, nearer),
                    np.where(np.array(LEVELS) > 0.5, np.maximum(table, nearer), table),
                )
            figures[f"{tier}_{label}"] = _figure(
                np.exp(table), source, f"{len(found)} figures, leave-one-{LEAVE_OUT_OF_TIER[tier]}-out"
            )
            nearer = table
    if len(target.fitted_metrics) > 1:
        figures["rank_correlation"] = _figure(*_correlation(target, observations, missed["new_source"], use, source))
    return figures


def _correlation(
    target, observations: Sequence, missed: np.ndarray, use: np.ndarray, source: str
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


if __name__ == "__main__":
    main()
