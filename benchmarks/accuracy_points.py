"""Write what the dashboard shows of the accuracy: planner/dashboard/data/accuracy.json, predicted against measured by metric and chip.

    python benchmarks/accuracy_points.py --measurements DIR

DIR holds training.csv and serving.csv. Every observation in the score is predicted by the constants that ship, as in the scatter plots of
benchmarks/accuracy.md, which also says how far predictions are off without the source of a run. Summaries count all observations; the
points drawn are at most `MOST` of each metric, those whose id has the smallest hash, so that the choice has nothing to do with how well
they are predicted.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

OUT = HERE.parent / "planner" / "dashboard" / "data" / "accuracy.json"
MOST = 400
DIGITS = 4
FILES = ("training", "serving")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    arguments = parser.parse_args(argv)
    from catalog.lookup import Catalog

    catalog = Catalog.load()
    summaries, points = [], []
    for name in FILES:
        found = observations(arguments.measurements / f"{name}.csv", catalog)
        print(f"{name}: {len(found)} observations")
        summaries += summary(found)
        points += drawn(found)
    constants = {f"{name}.{key}": value for name in FILES for key, value in catalog.constants(name).items()}
    document = {
        "command": "python benchmarks/accuracy_points.py --measurements DIR",
        "constants": hashlib.sha256(json.dumps(constants, sort_keys=True).encode()).hexdigest()[:12],
        "summary": summaries,
        "points": points,
    }
    lines = ",\n  ".join
    OUT.write_text(
        "{\n"
        + "".join(f' "{key}": {json.dumps(document[key])},\n' for key in ("command", "constants"))
        + f' "summary": [\n  {lines(map(json.dumps, summaries))}\n ],\n "points": [\n  {lines(map(json.dumps, points))}\n ]\n}}\n',
        encoding="utf-8",
    )
    print(f"wrote {OUT}: {OUT.stat().st_size / 1e3:.0f} kB")


def observations(path: Path, catalog) -> list[tuple[str, str, str, float, float]]:
    """List (metric, chip, id, measured, predicted) of the observations in the score."""
    from planner.calibration.fit import enters_fit, log_measured, read_measurements

    read = read_measurements(path, catalog)
    cases, target = read.cases, read.target
    every = target.observations(cases)
    predicted = target.predict(cases, every)(catalog.constants(target.name))
    measured = log_measured(cases)
    return [
        (
            every[i].metric,
            cases[every[i].case].chip,
            cases[every[i].case].row.id,
            math.exp(measured[i]),
            math.exp(predicted[i]),
        )
        for i in np.flatnonzero(enters_fit(cases))
    ]


def summary(found) -> list[dict[str, object]]:
    """Sum up the errors of each metric by chip, the chip with most observations first."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for metric, chip, _, measured, predicted in found:
        groups[metric, chip].append(predicted / measured - 1.0)
    rows = []
    for (metric, chip), signed in sorted(groups.items(), key=lambda item: (item[0][0], -len(item[1]), item[0][1])):
        errors = np.abs(signed)
        rows.append(
            {
                "metric": metric, "chip": chip, "n": len(signed), "median": short(np.median(errors)),
                "within_20": short(np.mean(errors <= 0.2)), "bias": short(np.median(signed)),
            }
        )  # fmt: skip
    return rows


def drawn(found) -> list[list[object]]:
    """Choose the points that are drawn: [metric, chip, measured, predicted]."""
    by_metric = defaultdict(list)
    for row in found:
        by_metric[row[0]].append(row)
    chosen = []
    for rows in by_metric.values():
        rows.sort(key=lambda row: hashlib.sha256(row[2].encode()).hexdigest())
        chosen += [[metric, chip, short(m), short(p)] for metric, chip, _, m, p in rows[:MOST]]
    return chosen


def short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


if __name__ == "__main__":
    main()
