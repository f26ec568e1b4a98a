"""Fits the constants of the serving models to published measurements and writes them, their intervals and what they have seen into the catalog.

The catalog's file is read just before it is written and replaced whole; records of other models stay as they are. Scores are in accuracy.py.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from catalog.lookup import Catalog
from models.calibration import Linearised, Prior, group_weights, refit, sensitivity
from planner import calibrate
from planner.calibrate import (
    LEAVE_OUT_OF_TIER,
    band_figures,
    bands_from,
    figure,
    leave_out_by_group,
    measured,
    read_measurements,
    seen_figures,
)
from planner.kinds import Question, kind_named, kind_of
from planner.plan import write_whole

DATA = Path(__file__).resolve().parent.parent / "catalog" / "data" / "constants.json"
SOURCE, DATE = "CAL-SERVING", "2026-11"
ROUNDS, STEPS = 8, 1  # re-linearisations, and Gauss-Newton steps at each
SHORTEST = 0.05  # part of a step below which no better point is sought


def loss(fit: Linearised, values: Mapping[str, float]) -> float:
    """What `calibration.fit` minimises: robust loss of the rows and squares of the priors."""
    ratio = (fit.predict(values) - fit.log_measured) / fit.scale
    priors = sum(((p.to_free(values[n]) - p.to_free(p.centre)) / p.spread) ** 2 for n, p in fit.priors.items())
    return float(np.sum(fit.weights**2 * 2.0 * (np.sqrt(1.0 + ratio**2) - 1.0)) + priors)


def between(priors: Mapping[str, Prior], old: Mapping[str, float], new: Mapping[str, float], part: float) -> dict[str, float]:
    """Part of the way from one set of constants to another, along their transformed values."""
    return {**new, **{n: p.from_free(p.to_free(old[n]) + part * (p.to_free(min(new[n], p.upper * 0.999999)) - p.to_free(old[n]))) for n, p in priors.items()}}


def fitted(cases: Sequence[Question], start: Mapping[str, float]) -> Linearised:
    """Constants of least loss from physical priors, by Gauss-Newton steps that are halved until the loss falls."""
    kind = kind_of(cases)
    chosen = [o for o in kind.observations(cases) if o.fits]
    predict = kind.predict(cases, chosen)
    weights = group_weights([f"{cases[o.case].row.kind}|{o.metric}" for o in chosen]) ** kind.evenness
    weights *= np.sqrt(kind.weight / np.mean(weights**2))
    scale, log_measured = np.array([kind.scale[o.metric] for o in chosen]), np.log([o.value for o in chosen])
    inside = {n: min(start[n], p.upper * 0.999) for n, p in kind.priors.items()}
    whole = Linearised(predict, log_measured, weights, kind.priors, {**start, **inside}, np.zeros((0, 0)), scale)
    for _ in range(ROUNDS):
        whole = replace(whole, slope=sensitivity(predict, kind.priors, whole.values, predict(whole.values)))
        found, part = refit(whole, np.ones(len(chosen), bool), STEPS), 1.0
        while loss(whole, trial := between(kind.priors, whole.values, found, part)) > loss(whole, whole.values) and part > SHORTEST:
            part *= 0.5
        whole = replace(whole, values=trial)
    return replace(whole, slope=sensitivity(predict, kind.priors, whole.values, predict(whole.values)))


def records(cases: Sequence[Question], whole: Linearised, catalog: Catalog) -> tuple[dict[str, dict], dict[str, np.ndarray]]:
    """(record name -> figures, leave-out predictions by what was left out)."""
    kind, left_out, refits = kind_of(cases), {}, []
    for by in LEAVE_OUT_OF_TIER.values():
        left_out[by], found = leave_out_by_group(cases, by, dict(whole.values), whole)
        refits += found.values()
    ratio = whole.predict(whole.values) - whole.log_measured
    spread = ", ".join(
        f"{metric} {np.median(np.abs(ratio[[o.metric == metric for o in kind.observations(cases) if o.fits]])):.3f}" for metric in kind.fitted
    )
    note = f"median |ln(predicted / measured)| of the fit: {spread}"
    made = {}
    for name in kind.priors:
        low, high = np.quantile([values[name] for values in refits], (0.1, 0.9))
        value, unit = whole.values[name], catalog.get("constants", f"{kind.name}.{name}").figure("value").unit
        made[f"{kind.name}.{name}"] = {"value": figure(value, SOURCE, unit, min(low, value), max(high, value), note)}
    made[f"{kind.name}_interval"] = band_figures(bands_from(cases, left_out), SOURCE)
    made[f"{kind.name}_seen"] = seen_figures(cases, SOURCE)
    made[f"{kind.name}_anchor"] = {}
    return made, left_out


def write(made: Mapping[str, Mapping[str, dict]], path: Path = DATA) -> None:
    """Replaces these records in the file, in the form of one figure per line; new ones come last."""
    text = path.read_text(encoding="utf-8")
    for name, figures in made.items():
        lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps({**found, 'date': DATE})}" for key, found in figures.items())
        body = '{\n "name": ' + json.dumps(name) + ',\n "figures": {\n' + (lines + "\n" if lines else "") + " }\n}"
        old = re.compile(r'\{\n "name": ' + re.escape(json.dumps(name)) + r",\n.*?\n\}(?=,?\n)", re.DOTALL)
        if old.search(text):
            text = old.sub(lambda _, body=body: body, text, count=1)
        else:
            text = text.rstrip().removesuffix("}").rstrip().removesuffix("]").rstrip() + ",\n" + body + "\n]\n}\n"
    json.loads(text)
    write_whole(path, text)


def main(arguments: Sequence[str]) -> int:
    """`refit_serving.py --measurements DIR [--write]`: prints medians of error by metric and what was left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True, help="folder with serving.csv")
    parser.add_argument("--write", action="store_true", help="write the constants into the catalog")
    options = parser.parse_args(arguments)
    catalog = Catalog.load()
    kind = kind_named("serving")
    read = read_measurements(options.measurements / f"{kind.name}.csv", catalog)
    whole = fitted(read.cases, catalog.constants(kind.name))
    made, left_out = records(read.cases, whole, catalog)
    counted, log_measured, inside = kind.observations(read.cases), measured(read.cases), calibrate.fitted(read.cases)
    for by, predicted in left_out.items():
        for metric in kind.fitted:
            use = inside & np.array([o.metric == metric for o in counted])
            signed = np.expm1(predicted[use] - log_measured[use])
            print(f"leave-{by}-out {metric}: n {use.sum()}, median error {np.median(np.abs(signed)):.1%}, bias {np.median(signed):+.1%}")
    if options.write:
        write(made)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
