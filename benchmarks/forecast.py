"""Measure how often forecasts of demand keep their 80 % interval: five kinds of histories with fresh seeds, by weeks ahead.

    python benchmarks/forecast.py [--histories 60] [--weeks 156] [--seed 10000] [--arrivals DIR]

"back-test": origins of the history whose interval, from errors known there, held what came. "after": whether the last interval held the demand after
the history, which no forecast saw. `--arrivals`: a folder of CSVs of past demand, such as counts of the public Azure and Mooncake traces by the hour.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from models.statistics.back_test import back_test
from planner.errors import SpecError
from planner.library import forecast
from planner.tables import as_markdown
from planner.ways_in.history.forecast import COVERAGE, HORIZONS
from tests.planner.ways_in.history.histories import KINDS, weekly

NONE = "-"


def measured(kind: str, seeds: range, weeks: int) -> tuple[list[dict[str, str]], tuple[int, int]]:
    """Return the rows of a kind, and the (kept, tried) origins of all horizons."""
    rows, total = [], np.zeros(2, dtype=int)
    for ahead in HORIZONS:
        kept, after, width = np.zeros(2, dtype=int), [], []
        for seed in seeds:
            levels = weekly(kind, seed, weeks + ahead)
            found = back_test(levels[:weeks], ahead, COVERAGE)
            if found is None:
                continue
            kept += found.kept, found.tried
            after.append(found.low <= levels[-1] <= found.high)
            width.append(found.high - found.low)
        if after:
            total += kept
            back = f"{100 * kept[0] / kept[1]:.0f} % of {kept[1]}" if kept[1] else NONE
            rows.append({
                "kind": kind, "weeks ahead": str(ahead), "back-test": back, "after": f"{100 * np.mean(after):.0f} % of {len(after)}",
                "width (log)": f"{np.mean(width):.2f}",
            })  # fmt: skip
    return rows, (int(total[0]), int(total[1]))


def of_arrivals(folder: Path) -> list[dict[str, str]]:
    """Return the back-tests of the CSVs in a folder; a file that is no history is named with the reason."""
    rows = []
    for path in sorted(folder.glob("*.csv")):
        try:
            found = forecast(path)
        except SpecError as error:
            rows.append({"file": path.name, "weeks ahead": NONE, "back-test": str(error).splitlines()[0]})
            continue
        for row in found.rows:
            back = (
                f"needs {row['needed']} weeks"
                if row["kept"] is None
                else f"{100 * row['kept']:.0f} % of {row['tried']}"
            )
            rows.append({"file": path.name, "weeks ahead": str(row["weeks"]), "back-test": back})
    return rows


def main() -> None:
    """Print coverage by kind and weeks ahead, and by kind over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histories", type=int, default=60, help="histories of each kind")
    parser.add_argument("--weeks", type=int, default=156, help="length of a history")
    parser.add_argument("--seed", type=int, default=10_000, help="first seed")
    parser.add_argument("--arrivals", type=Path, help="folder of CSVs of past demand")
    asked = parser.parse_args()
    rows, over_all = [], []
    for kind in KINDS:
        found, (kept, tried) = measured(kind, range(asked.seed, asked.seed + asked.histories), asked.weeks)
        rows += found
        over_all.append({"kind": kind, "back-test, all weeks ahead": f"{100 * kept / tried:.1f} % of {tried}"})
    print(as_markdown(over_all))
    print(as_markdown(rows))
    if asked.arrivals is not None:
        print(as_markdown(of_arrivals(asked.arrivals)))


if __name__ == "__main__":
    main()
