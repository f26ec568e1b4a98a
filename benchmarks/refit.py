"""Fit the constants of a model to published measurements; write constants, intervals, errors and the range of the data into the catalog.

    python benchmarks/refit.py training|serving|all --measurements DIR [--only NAME ... | --bands] [--write]

DIR holds training.csv and serving.csv; the catalog's anchors are observations of serving beside them. With --only these constants alone are fitted and written, the others held; bands and errors stay as
they are. The fit starts from the physical priors and uses trusted rows only; how far the constants of each level may leave their priors is
chosen by groups, sources and chips left out. The 10-90 % range of a
constant is taken over refits that leave out a group, a source or a chip; the error bands, the tables of errors for robust plans and the
levels of the errors are those of such refits. Scores are in accuracy.py.
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

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from refit_halved import fitted_by_halved_steps
from residuals import residual_figures

from catalog.lookup import Catalog
from models.statistics.fitting import Linearised, refit
from models.statistics.intervals import bands_by_tier
from planner.calibration.anchors import is_anchor, with_anchors
from planner.calibration.fit import (
    LEAVE_OUT_OF_TIER,
    band_figures,
    best_strengths,
    calibrated_figure,
    enters_fit,
    fit_problem,
    leave_out_by_group,
    log_measured,
    read_measurements,
    seen_figures,
    shipped_strengths,
    with_slopes,
)
from planner.calibration.levels import level_figures, missed_by_tier, spreads_by_label
from planner.calibration.load_sensitivity import without_load_by_tier, without_ways_by_tier
from planner.calibration.reach import features_of, range_figures, ranges_of, slope_figures, slopes_by_label
from planner.calibration.targets import target_of
from planner.files import write_file

DATA = ROOT / "catalog" / "data" / "constants.json"
SOURCES = {"training": "CAL-TRAINING", "serving": "CAL-SERVING"}  # model -> the catalog's source of its constants
DATE = "2026-11"
DECILES = (0.1, 0.9)
# Whose refits give the range of a constant: without a generation or a kind of network, constants of its own fall back to their priors.
RANGED = ("group", "source", "chip")
SAME = 1e-4  # relative change of a constant below which a refit has left it where it was
TURNS = 2  # turns of a fit and a choice of strengths
ROUNDS_ALONE = 3  # re-linearisations of a fit of few constants


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("model", choices=(*SOURCES, "all"), help="whose constants")
    parser.add_argument("--measurements", metavar="DIR", required=True, type=Path)
    parser.add_argument(
        "--bands",
        action="store_true",
        help="the error bands and the table of errors for robust plans alone, all constants held",
    )
    parser.add_argument("--only", metavar="NAME", nargs="+", help="fit only these constants, all others held")
    parser.add_argument("--write", action="store_true", help="write into the catalog")
    options = parser.parse_args(argv)
    for model in SOURCES if options.model == "all" else (options.model,):
        catalog = Catalog.load()
        measurements = with_anchors(read_measurements(options.measurements / f"{model}.csv", catalog), catalog)
        cases = measurements.cases
        print(*(f"anchor left out: {row.id}: {why}" for row, why in measurements.refused if is_anchor(row)), sep="\n")
        if options.bands:
            records, lines = refitted_bands(cases, catalog, SOURCES[model])
        elif options.only:
            records, lines = refitted_alone(cases, catalog, SOURCES[model], options.only)
        else:
            records, lines = refitted(cases, catalog, SOURCES[model])
        print("\n".join(lines), flush=True)
        if options.write:
            write_file(DATA, replaced(DATA.read_text(encoding="utf-8"), records))


def refitted(cases: Sequence, catalog: Catalog, source: str) -> tuple[dict[str, dict[str, dict]], list[str]]:
    """Fit from the priors, and again for each leave-out: (record name -> figures, lines for people)."""
    target = target_of(cases)
    whole, strengths = fitted_with_strengths(cases, catalog)
    left_out, ranges = {}, []
    lines = [f"strength of {level}: {strength:g}" for level, strength in strengths.items()]
    log_values, use = log_measured(cases), enters_fit(cases)
    labels = np.array([o.label for o in target.observations(cases)])
    for by in LEAVE_OUT_OF_TIER.values():
        left_out[by], found = leave_out_by_group(cases, by, whole)
        if by in RANGED:
            ranges += found.values()
        for label in target.interval_labels:
            signed = np.expm1(left_out[by] - log_values)[use & (labels == label)]
            lines.append(
                f"leave one {by} out, {label}: n {len(signed)}, median {np.median(np.abs(signed)):.1%}, within 20 % {np.mean(np.abs(signed) <= 0.2):.1%}, bias {np.median(signed):+.1%}"
            )
    records = constant_records(catalog, target.name, whole, ranges, source)
    records[f"{target.name}_strengths"] = {
        level: calibrated_figure(value, source) for level, value in strengths.items()
    }
    records |= error_records(cases, left_out, whole.values, source)
    records[f"{target.name}_levels"] = level_figures(spreads_by_label(cases, left_out["source"]), source)
    features = features_of(cases, whole.values)
    records[f"{target.name}_range"] = range_figures(ranges_of(cases, features), source)
    records[f"{target.name}_reach"] = slope_figures(slopes_by_label(cases, features, left_out["source"]), source)
    records[f"{target.name}_seen"] = seen_figures(cases, source)
    records[f"{target.name}_anchor"] = {}
    records[f"{target.name}_own_spread"] = {}
    return records, lines


def error_records(
    cases: Sequence, left_out: Mapping[str, np.ndarray], values: Mapping[str, float], source: str
) -> dict[str, dict[str, dict]]:
    """Write the bands of the errors without what the load and its open ways explain, and their table for robust plans without the open ways."""
    name = target_of(cases).name
    missed = missed_by_tier(cases, without_load_by_tier(cases, left_out, values))
    scenario = without_ways_by_tier(cases, left_out, values)
    return {
        f"{name}_interval": band_figures(bands_by_tier(missed), source),
        f"{name}_residuals": residual_figures(cases, missed_by_tier(cases, scenario), scenario["source"], source),
    }


def refitted_bands(cases: Sequence, catalog: Catalog, source: str) -> tuple[dict[str, dict[str, dict]], list[str]]:
    """Find bands and tables of the errors of the catalog's constants, which stay: (record name -> figures, lines for people)."""
    target = target_of(cases)
    whole = with_slopes(fit_problem(cases, catalog.constants(target.name), shipped_strengths(catalog, target)))
    left_out = {by: leave_out_by_group(cases, by, whole)[0] for by in LEAVE_OUT_OF_TIER.values()}
    records = error_records(cases, left_out, whole.values, source)
    shipped, bands = catalog.get("constants", f"{target.name}_interval"), records[f"{target.name}_interval"]
    lines = [f"{name}: {shipped.value(name):.4g} -> {figure['value']:.4g}" for name, figure in bands.items()]
    return records, lines


def fitted_with_strengths(cases: Sequence, catalog: Catalog) -> tuple[Linearised, dict[str, float]]:
    """Fit the constants, and choose the strengths of their levels at the fit, in turns: (fit with slopes, strengths)."""
    target = target_of(cases)
    values, strengths = catalog.constants(target.name), shipped_strengths(catalog, target)
    for _ in range(TURNS):
        whole = fitted_by_halved_steps(cases, values, strengths)
        values, before, strengths = whole.values, strengths, best_strengths(cases, whole.values)
        if strengths == before:
            break
    return fitted_by_halved_steps(cases, values, strengths), strengths


def refitted_alone(
    cases: Sequence, catalog: Catalog, source: str, names: Sequence[str]
) -> tuple[dict[str, dict[str, dict]], list[str]]:
    """Fit these constants with all others held at the catalog's values: (record name -> figures, lines for people).

    Runs that none of them changes have no say, and are left out.
    """
    target = target_of(cases)
    start = catalog.constants(target.name)
    whole = fit_problem(cases, start, strengths := shipped_strengths(catalog, target))
    priors = {name: whole.priors[name] for name in names}
    every = with_slopes(replace(whole, priors=priors, values=start))
    fitted = [o.case for o in target.observations(cases) if o.fits]
    cases = [cases[i] for i in sorted({i for i, slope in zip(fitted, every.slope, strict=True) if np.any(slope)})]
    whole = replace(fit_problem(cases, start, strengths), priors=priors, values=start)
    for _ in range(ROUNDS_ALONE):
        whole = with_slopes(whole)
        whole = replace(whole, values=refit(whole, np.ones(len(whole.log_measured), bool)))
    whole, ranges = with_slopes(whole), []
    for by in RANGED:
        found = leave_out_by_group(cases, by, whole)[1].values()
        ranges += [values for values in found if any(moved(values[n], whole.values[n]) for n in names)]
    lines = [f"{name}: {start[name]:.4g} -> {whole.values[name]:.4g}" for name in names]
    return constant_records(catalog, target.name, whole, ranges, source), lines


def moved(value: float, whole: float) -> bool:
    """Tell whether a refit moved a constant; most groups hold no row that a constant of one generation is seen in."""
    return abs(value / whole - 1.0) > SAME


def constant_records(
    catalog: Catalog, model: str, whole: Linearised, ranges: Sequence[Mapping[str, float]], source: str
) -> dict[str, dict[str, dict]]:
    """Write the fitted constants as records of the catalog, each with its 10-90 % range over refits."""
    missed = whole.predict(whole.values) - whole.log_measured
    note = f"fitted to {len(missed)} rows; median |ln(predicted / measured)| {np.median(np.abs(missed)):.3f}, 80 % within {np.quantile(np.abs(missed), 0.8):.3f}"
    records = {}
    for name in whole.priors:
        value, unit = whole.values[name], catalog.get("constants", f"{model}.{name}").figure("value").unit
        low, high = np.quantile([values[name] for values in ranges], DECILES)
        records[f"{model}.{name}"] = {
            "value": calibrated_figure(value, source, unit, min(low, value), max(high, value), note)
        }
    return records


def replaced(text: str, records: Mapping[str, Mapping[str, dict]]) -> str:
    """Put these records into the catalog's file, one figure per line; records of other names stay, new ones come last."""
    for name, figures in records.items():
        lines = ",\n".join(
            f"  {json.dumps(key)}: {json.dumps({**found, 'date': DATE})}" for key, found in figures.items()
        )
        body = f'{{\n "name": {json.dumps(name)},\n "figures": {{\n{lines}\n }}\n}}'
        old = re.compile(r'\{\n "name": ' + re.escape(json.dumps(name)) + r",\n.*?\n\}(?=,?\n)", re.DOTALL)
        text, count = old.subn(lambda _, body=body: body, text, count=1)
        if not count:
            text = f"{text.rstrip().removesuffix('}').rstrip().removesuffix(']').rstrip()},\n{body}\n]\n}}\n"
    json.loads(text)
    return text


if __name__ == "__main__":
    main()
