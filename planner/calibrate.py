"""Fits the shared constants of the training model to measurements and writes them as an overlay of the catalog. Scores are in validate.py."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from models.calibration import Fit, Linearised, Prior, fit, group_weights, refit, sensitivity
from models.training_batch import Predictor
from models.training_constants import TrainingConstants
from models.training_priors import TRAINING_PRIORS
from models.uncertainty import Band, bands_by_tier, tier_of
from planner.errors import Problem, SpecError
from planner.measurements import fold_of, kind_mark, read_rows
from planner.plan import write_whole
from planner.training_cases import Measured, measured_case
from planner.training_shapes import Unpredictable

TRUSTED = ("A", "B")  # grades that may enter a fit
# Spread of a shipped constant, as prior of a user's own calibration, where the catalog states none; and the least: one machine
# differs from the mean of many by more than that mean is uncertain.
SHIPPED_SPREAD, LEAST_SPREAD = 0.05, 0.05
DECILES = 2.563  # standard deviations between the 10 % and the 90 % quantile
SEEN, BANDS, ANCHORS = "training_seen", "training_interval", "training_anchor"
LEAVE_OUT: dict[str, Callable[[Measured], str]] = {
    "source": lambda m: m.row.kind,
    "chip": lambda m: m.chip,
    "generation": lambda m: m.generation,
    "group": lambda m: str(fold_of(m.row.kind, m.architecture, m.chip)),
}
TIER_OF_LEAVE_OUT = {"source": "new_source", "chip": "new_chip", "generation": "new_chip"}


@dataclass(frozen=True, slots=True)
class Measurements:
    """Rows of a file as questions to the models, and the reasons why others are none."""

    cases: tuple[Measured, ...]
    rows: int
    reasons: Mapping[str, int]


def read_measurements(path: Path, catalog: Catalog) -> Measurements:
    """All rows of a training file. Raises SpecError for a file or cell that cannot be read."""
    constants = TrainingConstants.from_values(catalog.constants("training"))
    cases, reasons, rows = [], Counter(), read_rows(path)
    for row in rows:
        try:
            case = measured_case(row, catalog, constants)
        except Unpredictable as reason:
            reasons[str(reason)] += 1
            continue
        if case.step_s is None and case.tflops is None:
            reasons["no step time, tokens/s, TFLOP/s or MFU"] += 1
        else:
            cases.append(case)
    return Measurements(tuple(cases), len(rows), dict(sorted(reasons.items())))


def fitted(cases: Sequence[Measured]) -> np.ndarray:
    """Which rows may enter a fit: a step time or tokens/s, and a trusted grade."""
    return np.array([m.step_s is not None and m.row.grade in TRUSTED for m in cases], dtype=bool)


def anchor_key(m: Measured) -> str:
    """Name of the offset that rows of one source on one chip at one precision share."""
    return f"{kind_mark(m.row.kind)}|{m.chip}|{m.precision}"


# -- fits --------------------------------------------------------------------------------------------------------------


def fit_from_priors(cases: Sequence[Measured], start: Mapping[str, float]) -> Linearised:
    """The fit that the shipped constants come from: physical priors, no offsets, sources weighted by the root of their size."""
    chosen = [m for m, use in zip(cases, fitted(cases), strict=True) if use]
    if not chosen:
        raise SpecError([Problem("measurements", "no row with a step time or tokens/s and grade A or B")])
    predict = Predictor([m.case for m in chosen])
    measured = np.log([m.step_s for m in chosen])
    weights = _weights(chosen)
    found = fit(predict, measured, weights, TRAINING_PRIORS, start)
    values = {**start, **found.values}
    slope = sensitivity(predict, TRAINING_PRIORS, values, predict(values))
    return Linearised(predict, measured, weights, TRAINING_PRIORS, values, slope)


def fit_own(cases: Sequence[Measured], catalog: Catalog) -> tuple[Fit, list[str]]:
    """A user's fit: the shipped constants as priors, and an offset for each source, chip and precision."""
    chosen = [m for m, use in zip(cases, fitted(cases), strict=True) if use]
    if not chosen:
        raise SpecError([Problem("measurements", "no row with a step time or tokens/s and grade A or B")])
    keys = sorted({anchor_key(m) for m in chosen})
    start = catalog.constants("training")
    predict = Predictor([m.case for m in chosen])
    anchors = np.array([keys.index(anchor_key(m)) for m in chosen])
    return fit(predict, np.log([m.step_s for m in chosen]), np.ones(len(chosen)), shipped_priors(catalog), start, anchors=anchors), keys


def shipped_priors(catalog: Catalog) -> dict[str, Prior]:
    """The catalog's constants as priors, as sure as their 10-90 % range over refits says."""
    priors = {}
    for name, prior in TRAINING_PRIORS.items():
        figure = catalog.get("constants", f"training.{name}").figure("value")
        spread = SHIPPED_SPREAD
        if figure.low and figure.high:
            spread = (prior.to_free(min(figure.high, prior.upper)) - prior.to_free(figure.low)) / DECILES
        priors[name] = Prior(float(figure.value), min(prior.spread, max(spread, LEAST_SPREAD)), prior.scale, max(prior.upper, float(figure.value)))
    return priors


def _weights(chosen: Sequence[Measured]) -> np.ndarray:
    weights = group_weights([m.row.kind for m in chosen])
    return weights / np.sqrt(np.mean(weights**2))


def leave_out(cases: Sequence[Measured], by: str, start: Mapping[str, float], whole: Linearised | None = None) -> tuple[np.ndarray, list[dict[str, float]]]:
    """ln(step time) of each row by constants fitted without its group, and the constants of every refit."""
    label = LEAVE_OUT[by]
    whole = whole or fit_from_priors(cases, start)
    labels = np.array([label(m) for m in cases])
    inside = fitted(cases)
    everything = Predictor([m.case for m in cases])
    out, refits = np.empty(len(cases)), []
    for group in sorted(set(labels)):
        values = refit(whole, labels[inside] != group) if np.any(labels[inside] != group) else dict(start)
        out[labels == group] = everything(values)[labels == group]
        refits.append(values)
    return out, refits


# -- intervals ---------------------------------------------------------------------------------------------------------


def bands_from(cases: Sequence[Measured], left_out: Mapping[str, np.ndarray]) -> dict[tuple[str, bool], Band]:
    """Bands of each tier from leave-out predictions: groups for known kinds, sources and generations for new ones."""
    use = fitted(cases)
    missed = {}
    for tier, by in (("known", "group"), ("new_source", "source"), ("new_chip", "generation")):
        ratio = np.array([np.log(m.step_s) if m.step_s else np.nan for m in cases]) - left_out[by]
        for experts in (False, True):
            missed[tier, experts] = ratio[use & np.array([m.experts == experts for m in cases])]
    return bands_by_tier(missed)


def bands_of(catalog: Catalog) -> dict[tuple[str, bool], Band]:
    """The catalog's bands."""
    record = catalog.get("constants", BANDS)
    return {(tier, experts): Band(*(float(np.log(record.value(f"{name}_{side}"))) for side in ("low", "high")))
            for tier in ("known", "new_source", "new_chip") for experts, name in ((False, f"{tier}_dense"), (True, f"{tier}_moe"))}  # fmt: skip


def tier(m: Measured, catalog: Catalog) -> str:
    """How near a row is to what the catalog's constants were fitted on."""
    seen = catalog.get("constants", SEEN)
    return tier_of(seen.get(f"kind {kind_mark(m.row.kind)}") is not None, seen.get(f"chip {m.chip}") is not None)


def anchor_factors(cases: Iterable[Measured], catalog: Catalog) -> np.ndarray:
    """Factor on the predicted time of each row from the user's own measurements of the same source, chip and precision."""
    record = catalog.get("constants", ANCHORS)
    return np.array([record.value(key) if record.get(key := anchor_key(m)) is not None else 1.0 for m in cases])


# -- overlays ----------------------------------------------------------------------------------------------------------


def seen_figures(cases: Iterable[Measured], source: str) -> dict[str, dict[str, Any]]:
    """Source kinds and chips that a fit has seen (value 1), with their rows; kinds by a mark, not by name."""
    counts = Counter(label for m in cases if m.step_s and m.row.grade in TRUSTED for label in (f"kind {kind_mark(m.row.kind)}", f"chip {m.chip}"))
    return {name: figure(1.0, source, note=f"{count} rows") for name, count in sorted(counts.items())}


def figure(value: float, source: str, unit: str = "1", low: float | None = None, high: float | None = None, note: str = "") -> dict[str, Any]:
    """A calibrated figure in the form of the catalog's files."""
    extra = {"low": _short(low), "high": _short(high)} if low is not None and high is not None else {}
    return {"value": _short(value), "unit": unit, **extra, "source": [source], "confidence": "B", "kind": "calibrated", **({"note": note} if note else {})}


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def calibrate(path: Path, folder: Path, catalog: Catalog) -> list[dict[str, Any]]:
    """Fits to a user's measurements, writes `folder`/training.json for --catalog, and returns what changed, one row per figure."""
    measurements = read_measurements(path, catalog)
    cases = [m for m, use in zip(measurements.cases, fitted(measurements.cases), strict=True) if use]
    found, keys = fit_own(cases, catalog)
    before = catalog.constants("training")
    spread = float(np.std(found.residuals)) if len(cases) > 1 else 0.0
    source = "OWN-TRAINING"
    note = f"fitted to {len(cases)} of {measurements.rows} rows; spread of the remaining ln(predicted / measured) {spread:.3f}"
    constants, report = [], []
    for name, value in found.values.items():
        prior, sigma = TRAINING_PRIORS[name], found.spreads[name]
        low, high = (prior.from_free(prior.to_free(value) + side * sigma * DECILES / 2.0) for side in (-1.0, 1.0))
        unit = catalog.get("constants", f"training.{name}").figure("value").unit
        constants.append({"name": f"training.{name}", "figures": {"value": figure(value, source, unit, low, min(high, prior.upper), note)}})
        report.append({"figure": f"training.{name}", "before": before[name], "after": value, "low": low, "high": high})
    anchors = {}
    for key, offset, sigma in zip(keys, found.offsets, found.offset_spreads, strict=True):
        low, high = (float(np.exp(offset + side * sigma * DECILES / 2.0)) for side in (-1.0, 1.0))
        anchors[key] = figure(float(np.exp(offset)), source, "1", low, high, note)
        _, chip, precision = key.split("|")
        report.append({"figure": f"offset of {chip} at {precision}", "before": 1.0, "after": float(np.exp(offset)), "low": low, "high": high})
    constants += [{"name": ANCHORS, "figures": anchors}, {"name": SEEN, "figures": seen_figures(cases, source)}]
    title = f"own calibration of the training model, {len(cases)} rows"
    overlay = {"sources": {source: {"title": title, "date": None, "confidence": "B"}}, "constants": constants}
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / "training.json", json.dumps(overlay, indent=1) + "\n")
    return sorted(report, key=lambda row: -abs(np.log(row["after"] / row["before"])))
