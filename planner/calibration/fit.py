"""Fits the shared constants of the models to measurements and writes them as an overlay of the catalog. Scores are in validate.py.

What differs between training and serving runs is in kinds.py; here are only observations of metrics. A row of a training file is
one observation, a row of a serving file up to three, and arrays along observations stand in the order of `Kind.observations`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from models.statistics.fitting import Fit, Linearised, Prior, fit, group_weights, refit, sensitivity
from models.statistics.intervals import TIERS, Band, bands_by_tier, tier_of
from planner.calibration.kind import TRUSTED, Kind, Observation, Question
from planner.calibration.kinds import kind_named, kind_of
from planner.calibration.measurements import Row, file_kind, fold_of, kind_mark, read_rows
from planner.calibration.training_architectures import Unpredictable
from planner.calibration.training_kind import TRAINING
from planner.errors import Problem, SpecError
from planner.plan import write_whole

# Spread of a shipped constant, as prior of a user's own calibration, where the catalog states none; and the least: one machine
# differs from the mean of many by more than that mean is uncertain.
SHIPPED_SPREAD, LEAST_SPREAD = 0.05, 0.05
DECILES = 2.563  # standard deviations between the 10 % and the 90 % quantile
SEEN, BANDS, ANCHORS = (
    "training_seen",
    "training_interval",
    "training_anchor",
)  # "serving_seen" and so on for the other kind
LEAVE_OUT: dict[str, Callable[[Question], str]] = {
    "source": lambda m: m.row.kind,
    "chip": lambda m: m.chip,
    "generation": lambda m: m.generation,
    "group": lambda m: str(fold_of(m.row.kind, m.architecture, m.chip)),
}
TIER_OF_LEAVE_OUT = {"source": "new_source", "chip": "new_chip", "generation": "new_chip"}
LEAVE_OUT_OF_TIER = {
    "known": "group",
    "new_source": "source",
    "new_chip": "generation",
}  # by which the bands of a tier are found


@dataclass(frozen=True, slots=True)
class Measurements:
    """Rows of a file as questions to the models, and those that are none, with the reason."""

    kind: Kind
    cases: tuple[Question, ...]
    rows: int
    refused: tuple[tuple[Row, str], ...]

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows are refused, by reason."""
        return dict(sorted(Counter(reason for _, reason in self.refused).items()))


def read_measurements(path: Path, catalog: Catalog) -> Measurements:
    """All rows of a file; its kind is found from its columns. Raises SpecError for a file or cell that cannot be read."""
    kind = kind_named(file_kind(path))
    values = catalog.constants(kind.name)
    cases, refused, rows = [], [], read_rows(path, kind.name)
    for row in rows:
        try:
            case = kind.question(row, catalog, values)
        except Unpredictable as reason:
            refused.append((row, str(reason)))
            continue
        if kind.measured(case):
            cases.append(case)
        else:
            refused.append((row, kind.nothing))
    return Measurements(kind, tuple(cases), len(rows), tuple(refused))


def fitted(cases: Sequence[Question]) -> np.ndarray:
    """Which observations may enter a fit: a metric that is fitted, a trusted grade, and none of the exclusions."""
    return np.array([o.fits for o in kind_of(cases).observations(cases)], dtype=bool)


def measured(cases: Sequence[Question]) -> np.ndarray:
    """ln(measured) of the observations, NaN for metrics that no fit sees."""
    kind = kind_of(cases)
    return np.array([np.log(o.value) if o.metric in kind.fitted else np.nan for o in kind.observations(cases)])


def anchor_key(m: Question, metric: str = "step_time") -> str:
    """Name of the offset that own rows of one environment share."""
    return kind_of([m]).anchor(m, metric)


# -- fits --------------------------------------------------------------------------------------------------------------


def _chosen(cases: Sequence[Question]) -> tuple[Kind, list[Observation], np.ndarray]:
    """(kind, observations that enter a fit, ln(measured))."""
    kind = kind_of(cases)
    chosen = [o for o in kind.observations(cases) if o.fits]
    if not chosen:
        raise _nothing_to_fit(kind)
    return kind, chosen, np.log([o.value for o in chosen])


def _nothing_to_fit(kind: Kind) -> SpecError:
    return SpecError(
        [
            Problem(
                "measurements", f"no row that may be fitted: {', '.join(kind.fitted)} of grade {' or '.join(TRUSTED)}"
            )
        ]
    )


def fit_from_priors(cases: Sequence[Question], start: Mapping[str, float]) -> Linearised:
    """The fit that the shipped constants come from: physical priors, no offsets, weights as even among sources as the kind says."""
    kind, chosen, log_measured = _chosen(cases)
    predict = kind.predict(cases, chosen)
    weights = group_weights([f"{cases[o.case].row.kind}|{o.metric}" for o in chosen]) ** kind.evenness
    weights *= np.sqrt(kind.weight / np.mean(weights**2))
    scale = np.array([kind.scale[o.metric] for o in chosen])
    found = fit(predict, log_measured, weights, kind.priors, start, scale=scale)
    values = {**start, **found.values}
    slope = sensitivity(predict, kind.priors, values, predict(values))
    return Linearised(predict, log_measured, weights, kind.priors, values, slope, scale)


def fit_own(
    cases: Sequence[Question], start: Mapping[str, float], priors: Mapping[str, Prior]
) -> tuple[Fit, list[str]]:
    """A user's fit: constants shrunk to `priors`, and an offset for each environment (`anchor_key`), whose keys are returned."""
    kind, chosen, log_measured = _chosen(cases)
    named = [kind.anchor(cases[o.case], o.metric) for o in chosen]
    keys = sorted(set(named))
    metric_of = {key: o.metric for key, o in zip(named, chosen, strict=True)}
    found = fit(
        kind.predict(cases, chosen), log_measured, np.ones(len(chosen)), priors, start, anchors=np.array([keys.index(key) for key in named]),
        anchor_spread=np.array([kind.offset[metric_of[key]] for key in keys]), scale=np.array([kind.scale[o.metric] for o in chosen]),
    )  # fmt: skip
    return found, keys


def shipped_priors(
    catalog: Catalog, kind: Kind = TRAINING, values: Mapping[str, float] | None = None
) -> dict[str, Prior]:
    """The catalog's constants, or other `values`, as priors that are as sure as the catalog's 10-90 % range over refits says."""
    priors = {}
    for name, prior in kind.priors.items():
        figure = catalog.get("constants", f"{kind.name}.{name}").figure("value")
        spread = SHIPPED_SPREAD
        if figure.low and figure.high:
            spread = (prior.to_free(min(figure.high, prior.upper)) - prior.to_free(figure.low)) / DECILES
        centre = float(figure.value) if values is None else values[name]
        priors[name] = Prior(
            centre, min(prior.spread, max(spread, LEAST_SPREAD)), prior.scale, max(prior.upper, centre)
        )
    return priors


def leave_out(
    cases: Sequence[Question], by: str, start: Mapping[str, float], whole: Linearised | None = None
) -> tuple[np.ndarray, list[dict[str, float]]]:
    """ln(predicted) of each observation by constants fitted without its group, and the constants of every refit."""
    predicted, refits = leave_out_by_group(cases, by, start, whole)
    return predicted, list(refits.values())


def leave_out_by_group(cases: Sequence[Question], by: str, start: Mapping[str, float],
                       whole: Linearised | None = None) -> tuple[np.ndarray, dict[str, dict[str, float]]]:  # fmt: skip
    """The same with the constants of the refit without each group, by its name."""
    whole = whole or fit_from_priors(cases, start)
    kind = kind_of(cases)
    observations = kind.observations(cases)
    labels = np.array([LEAVE_OUT[by](cases[o.case]) for o in observations])
    inside = fitted(cases)
    everything = kind.predict(cases, observations)
    out, refits = np.empty(len(observations)), {}
    for group in sorted(set(labels)):
        values = refit(whole, labels[inside] != group) if np.any(labels[inside] != group) else dict(start)
        out[labels == group] = everything(values)[labels == group]
        refits[str(group)] = values
    return out, refits


# -- intervals ---------------------------------------------------------------------------------------------------------


def bands_from(cases: Sequence[Question], left_out: Mapping[str, np.ndarray]) -> dict[tuple[str, str], Band]:
    """Bands of each tier and label from leave-out predictions: groups for known kinds, sources and generations for new ones."""
    observations, use = kind_of(cases).observations(cases), fitted(cases)
    labels, log_measured = np.array([o.label for o in observations]), measured(cases)
    return bands_by_tier({
        (name, label): (log_measured - left_out[by])[use & (labels == label)]
        for name, by in LEAVE_OUT_OF_TIER.items() for label in kind_of(cases).labels
    })  # fmt: skip


def bands_of(catalog: Catalog, kind: Kind = TRAINING) -> dict[tuple[str, str], Band]:
    """The catalog's bands."""
    record = catalog.get("constants", f"{kind.name}_interval")
    return {(name, label): Band(*(float(np.log(record.value(f"{name}_{label}_{side}"))) for side in ("low", "high")))
            for name in TIERS for label in kind.labels}  # fmt: skip


def band_figures(bands: Mapping[tuple[str, str], Band], source: str) -> dict[str, dict[str, Any]]:
    """Bands as figures of the record that bands_of reads."""
    return {f"{name}_{label}_{side}": figure(float(np.exp(getattr(found, side))), source)
            for (name, label), found in bands.items() for side in ("low", "high")}  # fmt: skip


def tier(m: Question, catalog: Catalog) -> str:
    """How near a row is to what the catalog's constants were fitted on."""
    seen = catalog.get("constants", f"{kind_of([m]).name}_seen")
    return tier_of(seen.get(f"kind {kind_mark(m.row.kind)}") is not None, seen.get(f"chip {m.chip}") is not None)


def anchor_factors(cases: Sequence[Question], catalog: Catalog) -> np.ndarray:
    """Factor on each predicted observation from the user's own measurements of the same environment."""
    kind = kind_of(cases)
    record = catalog.get("constants", f"{kind.name}_anchor")
    keys = [kind.anchor(cases[o.case], o.metric) for o in kind.observations(cases)]
    return np.array([record.value(key) if record.get(key) is not None else 1.0 for key in keys])


# -- overlays ----------------------------------------------------------------------------------------------------------


def seen_figures(cases: Sequence[Question], source: str) -> dict[str, dict[str, Any]]:
    """Source kinds and chips that a fit has seen (value 1), with their rows; kinds by a mark, not by name."""
    rows = [cases[i] for i in sorted({o.case for o in kind_of(cases).observations(cases) if o.fits})]
    counts = Counter(label for m in rows for label in (f"kind {kind_mark(m.row.kind)}", f"chip {m.chip}"))
    return {name: figure(1.0, source, note=f"{count} rows") for name, count in sorted(counts.items())}


def figure(
    value: float, source: str, unit: str = "1", low: float | None = None, high: float | None = None, note: str = ""
) -> dict[str, Any]:
    """A calibrated figure in the form of the catalog's files."""
    extra = {"low": _short(low), "high": _short(high)} if low is not None and high is not None else {}
    return {
        "value": _short(value),
        "unit": unit,
        **extra,
        "source": [source],
        "confidence": "B",
        "kind": "calibrated",
        **({"note": note} if note else {}),
    }


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def calibrate(path: Path, folder: Path, catalog: Catalog) -> tuple[Path, list[dict[str, Any]]]:
    """Fits to a user's measurements, writes an overlay for --catalog into the folder, and returns it with what changed, one row per figure."""
    measurements = read_measurements(path, catalog)
    kind, cases = measurements.kind, measurements.cases
    if not cases:
        raise _nothing_to_fit(kind)
    before = catalog.constants(kind.name)
    found, keys = fit_own(cases, before, shipped_priors(catalog, kind))
    use = {o.case for o in kind.observations(cases) if o.fits}
    spread = float(np.std(found.residuals)) if len(found.residuals) > 1 else 0.0
    source = f"OWN-{kind.name.upper()}"
    note = f"fitted to {len(use)} of {measurements.rows} rows; spread of the remaining ln(predicted / measured) {spread:.3f}"
    constants, report = [], []
    for name, value in found.values.items():
        prior, sigma = kind.priors[name], found.spreads[name]
        low, high = (prior.from_free(prior.to_free(value) + side * sigma * DECILES / 2.0) for side in (-1.0, 1.0))
        unit = catalog.get("constants", f"{kind.name}.{name}").figure("value").unit
        constants.append(
            {
                "name": f"{kind.name}.{name}",
                "figures": {"value": figure(value, source, unit, low, min(high, prior.upper), note)},
            }
        )
        report.append(
            {"figure": f"{kind.name}.{name}", "before": before[name], "after": value, "low": low, "high": high}
        )
    anchors = {}
    for key, offset, sigma in zip(keys, found.offsets, found.offset_spreads, strict=True):
        low, high = (float(np.exp(offset + side * sigma * DECILES / 2.0)) for side in (-1.0, 1.0))
        anchors[key] = figure(float(np.exp(offset)), source, "1", low, high, note)
        words = kind.anchor_words.format(*key.split("|"))
        report.append({"figure": words, "before": 1.0, "after": float(np.exp(offset)), "low": low, "high": high})
    constants += [
        {"name": f"{kind.name}_anchor", "figures": anchors},
        {"name": f"{kind.name}_seen", "figures": seen_figures(cases, source)},
    ]
    title = f"own calibration of the {kind.name} model, {len(use)} rows"
    overlay = {"sources": {source: {"title": title, "date": None, "confidence": "B"}}, "constants": constants}
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / f"{kind.name}.json"
    write_whole(written, json.dumps(overlay, indent=1) + "\n")
    return written, sorted(report, key=lambda row: -abs(np.log(row["after"] / row["before"])))
