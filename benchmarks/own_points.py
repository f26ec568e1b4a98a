"""Calibrate with five own points of sources that were left out of the fit, and score their other rows before and after.

    python benchmarks/own_points.py ../shared/measurements [--points 5] [--sources 20] [--write]

A source stands for a user: the constants are fitted without it (leave-source-out), five of its rows, drawn with a fixed seed, are calibrated
as `flopwatt calibrate` does, and all its other rows are predicted with the constants and offsets found. The interval is that of
`planner.calibration.own_spread`.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from catalog.lookup import Catalog
from models.statistics.fitting import Linearised, group_weights, refit, sensitivity
from planner.calibration.fit import fit_own, read_measurements, shipped_priors
from planner.calibration.own_spread import own_spreads
from planner.problem.intervals import Z80
from planner.tables import as_markdown

HOME = Path(__file__).resolve().parent
LEAST_ROWS = 12  # rows of a source at least, so that most are left to predict


def some_of_each(cases, most: int, seed: int):
    """Draw at most so many rows of each source."""
    rng, by_source = np.random.default_rng(seed), {}
    for i, case in enumerate(cases):
        by_source.setdefault(case.row.kind, []).append(i)
    kept = [
        i
        for mine in by_source.values()
        for i in (mine if len(mine) <= most else rng.choice(mine, most, replace=False).tolist())
    ]
    return [cases[i] for i in sorted(kept)]


def linearised(target, cases, chosen, start):
    """Return the shipped fit with its slopes, from which fits without a source follow."""
    predict, measured = target.predict(cases, chosen), np.log([o.value for o in chosen])
    weights = group_weights([f"{cases[o.case].row.kind}|{o.metric}" for o in chosen]) ** target.source_evenness
    weights *= np.sqrt(target.data_weight / np.mean(weights**2))
    scale = np.array([target.outlier_scale[o.metric] for o in chosen])
    values = dict(start)
    return Linearised(
        predict,
        measured,
        weights,
        target.priors,
        values,
        sensitivity(predict, target.priors, values, predict(values)),
        scale,
    )


def scored(path: Path, catalog: Catalog, points: int, most: int, seed: int, rows_each: int) -> list[dict[str, object]]:
    """Return a row for each source and metric."""
    measurements = read_measurements(path, catalog)
    target, cases = measurements.target, some_of_each(measurements.cases, rows_each, seed)
    observations = target.observations(cases)
    start = catalog.constants(target.name)
    inside = [o for o in observations if o.fits]
    linear = linearised(target, cases, inside, start)
    kinds = np.array([cases[o.case].row.kind for o in inside])
    predict = target.predict(cases, observations)
    trusted = {o.case for o in observations if o.fits}
    counts = Counter(cases[i].row.kind for i in trusted)
    rows = []
    for source, count in counts.most_common():
        if count < LEAST_ROWS or len({r["source"] for r in rows}) >= most:
            continue
        mine = [i for i in sorted(trusted) if cases[i].row.kind == source]
        rng = np.random.default_rng([seed, len(source), count])
        own = set(rng.choice(mine, points, replace=False).tolist())
        chosen = [cases[i] for i in sorted(own)]
        values = refit(linear, kinds != source)
        before = predict(values)
        found, keys = fit_own(chosen, values, shipped_priors(catalog, target, values))
        offset = dict(zip(keys, found.offsets, strict=True))
        spread = own_spreads(target, chosen, found, keys)
        others = [k for k, o in enumerate(observations) if o.fits and o.case in set(mine) - own]
        after = predict({**values, **found.values})
        by_metric: dict[str, list[tuple[float, float, float]]] = {}
        for k in others:
            o = observations[k]
            key, truth = target.offset_key(cases[o.case], o.metric), np.log(o.value)
            if key not in offset:
                continue  # another engine, chip or precision: not what was measured
            by_metric.setdefault(o.metric, []).append((before[k] - truth, after[k] + offset[key] - truth, spread[key]))
        for metric, members in by_metric.items():
            miss = np.array(members)
            error = np.abs(np.expm1(miss[:, :2]))
            rows.append({
                "model": target.name, "source": len({r["source"] for r in rows} | {source}), "metric": metric, "rows": len(members), "before": float(np.median(error[:, 0])),
                "after": float(np.median(error[:, 1])), "covered": float(np.mean(np.abs(miss[:, 1]) <= Z80 * miss[:, 2])),
                "spread": float(np.std(miss[:, 1])), "bare": float(np.std(miss[:, 0])),
            })  # fmt: skip
            rows[-1]["source"] = source
            print(rows[-1], file=sys.stderr, flush=True)
    names = {name: i + 1 for i, name in enumerate(dict.fromkeys(r["source"] for r in rows))}
    return [{**row, "source": f"{target.name} {names[row['source']]}"} for row in rows]


def summary(rows: list[dict[str, object]]) -> list[dict[str, str]]:
    """Sum up by model and metric."""
    found = []
    for model, metric in dict.fromkeys((r["model"], r["metric"]) for r in rows):
        mine = [r for r in rows if (r["model"], r["metric"]) == (model, metric)]
        far = [r for r in mine if r["before"] > 0.15]
        halved = sum(r["after"] <= 0.5 * r["before"] for r in far)
        weight = [r["rows"] for r in mine]
        found.append({
            "model": model, "metric": metric, "sources": str(len(mine)), "median before": f"{np.median([r['before'] for r in mine]):.1%}",
            "median after": f"{np.median([r['after'] for r in mine]):.1%}", "above 15 % before": str(len(far)), "of these halved": str(halved),
            "their median before": f"{np.median([r['before'] for r in far]):.1%}" if far else "", "after": f"{np.median([r['after'] for r in far]):.1%}" if far else "",
            "covered": f"{np.average([r['covered'] for r in mine], weights=weight):.0%}",
            "mean over sources": f"{np.mean([r['covered'] for r in mine]):.0%}",
        })  # fmt: skip
    return found


def main() -> None:
    """Print or write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=["training", "serving"])
    parser.add_argument("--points", type=int, default=5)
    parser.add_argument("--sources", type=int, default=10, help="of each file")
    parser.add_argument("--rows", type=int, default=60, help="most of each source")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true", help="write own_points.md beside this file")
    asked = parser.parse_args()
    catalog = Catalog.load()
    rows = []
    for name in asked.models:
        rows += scored(asked.folder / f"{name}.csv", catalog, asked.points, asked.sources, asked.seed, asked.rows)
    text = as_markdown(summary(rows))
    if asked.write:
        (HOME / "own_points.md").write_text(
            f"# Five own points\n\nWritten by `python benchmarks/own_points.py DIR --points {asked.points} --sources {asked.sources} --rows {asked.rows} --write`: sources left out of the fit, "
            f'calibrated with {asked.points} of their rows (seed {asked.seed}), scored on their other rows of the same engine, chip and precision. "Covered": inside the 80 % interval after calibration, '
            f"over rows and as a mean over sources.\n\n{text}",
            encoding="utf-8",
        )
    print(text)


if __name__ == "__main__":
    main()
