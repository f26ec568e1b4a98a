"""Calibrate with one own run at one weight format, and score rows of the same source and chip at other formats.

    python benchmarks/own_formats.py DIR [--rows 40]

The constants are fitted without the source (leave-source-out). Of each chip and engine on which it measured several formats, one row of
each format by turns, drawn with a fixed seed, is calibrated. "Constants": predictions with the constants that the row moved; "levels":
with the part of its offset that other formats share as well. The medians are over chips of sources, each of which is one vote.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from own_points import linearised, some_of_each

from catalog.lookup import Catalog
from models.statistics.fitting import refit
from planner.calibration.fit import fit_own, read_measurements, shipped_priors
from planner.tables import as_markdown

SHARES = ("source", "chip", "engine")


def share(catalog: Catalog, model: str, label: str) -> float:
    """Return the share of an environment's variance that its chip's other formats have in common with it [1]."""
    record = catalog.get("constants", f"{model}_levels")
    common = sum(record.value(f"{label}_{level}") ** 2 for level in SHARES)
    return common / (common + record.value(f"{label}_residual") ** 2)


def scored(path: Path, catalog: Catalog, rows_each: int, seed: int) -> list[dict[str, object]]:
    """Return the errors of each chip of a source, by metric."""
    measurements = read_measurements(path, catalog)
    target = measurements.target
    cases = some_of_each(measurements.cases, rows_each, seed)
    inside = [o for o in target.observations(cases) if o.fits]
    linear = linearised(target, cases, inside, catalog.constants(target.name))
    places: dict[tuple[str, str], dict[str, list[int]]] = {}
    for o in inside:
        case = cases[o.case]
        key = target.offset_key(case, o.metric).split("|")
        environment, kind = f"{case.row.kind}|{case.software}|{case.chip}", key[2]
        members = places.setdefault((case.row.kind, environment), {}).setdefault(kind, [])
        if o.case not in members:
            members.append(o.case)
    kinds, found = np.array([cases[o.case].row.kind for o in inside]), []
    for (source, place), by_kind in places.items():
        if len(by_kind) < 2:
            continue
        values, rng = refit(linear, kinds != source), np.random.default_rng([seed, len(place)])
        priors, errors = shipped_priors(catalog, target, values), {}
        for kind, mine in by_kind.items():
            own = int(rng.choice(mine))
            others = [o for o in inside if any(o.case in m for k, m in by_kind.items() if k != kind)]
            truth = np.log([o.value for o in others])
            fit, keys = fit_own([cases[own]], values, priors)
            offset = {
                key.split("|")[-1] if target.name == "serving" else "step_time": float(v)
                for key, v in zip(keys, fit.offsets, strict=True)
            }
            bare = target.predict(cases, others)(values) - truth
            moved = target.predict(cases, others)({**values, **fit.values}) - truth
            for o, b, m in zip(others, bare, moved, strict=True):
                if o.metric in offset:
                    part = share(catalog, target.name, o.label) * offset[o.metric]
                    errors.setdefault(o.label, []).append((b, m, m + part, m + offset[o.metric]))
        for label, members in errors.items():
            found.append({"label": label, "place": place, "errors": np.array(members)})
            print(
                place,
                label,
                len(members),
                np.median(np.abs(np.expm1(np.array(members))), axis=0).round(3),
                file=sys.stderr,
                flush=True,
            )
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--models", nargs="+", default=["training", "serving"])
    parser.add_argument("--rows", type=int, default=40, help="most of each source")
    parser.add_argument("--seed", type=int, default=0)
    asked, catalog, table = parser.parse_args(), Catalog.load(), []
    for name in asked.models:
        found = scored(asked.folder / f"{name}.csv", catalog, asked.rows, asked.seed)
        for label in dict.fromkeys(str(f["label"]) for f in found):
            medians = np.array([np.median(np.abs(np.expm1(f["errors"])), axis=0) for f in found if f["label"] == label])
            pooled = np.median(
                np.abs(np.expm1(np.concatenate([f["errors"] for f in found if f["label"] == label]))), axis=0
            )
            names = ("no own run", "constants", "levels", "whole offset")
            table.append(
                {
                    "model": name,
                    "label": label,
                    "chips of sources": str(len(medians)),
                    "share": f"{share(catalog, name, label):.2f}",
                }
                | {n: f"{a:.1%} ({b:.1%})" for n, a, b in zip(names, np.median(medians, axis=0), pooled, strict=True)}
            )
    print(as_markdown(table))


if __name__ == "__main__":
    main()
