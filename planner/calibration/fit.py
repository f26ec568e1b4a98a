"""Fit the shared constants of the models to measurements, and write them as an overlay of the catalog.

What differs between training and serving is in the calibration targets (`planner.calibration.targets`); this module knows only
observations of metrics. A row of a training file gives one observation, a row of a serving file up to three; arrays along observations
follow the order of `CalibrationTarget.observations`. Scores are in `planner.calibration.scores`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from models.arrays import Bools, Floats
from models.statistics.fitting import Fit, Linearised, Prior, along_slopes, fit, group_weights, refit, sensitivity
from models.statistics.intervals import TIERS, Band, tier_of
from models.statistics.shrinkage import chosen_strengths, shrunk
from planner.calibration.checks import facts_of
from planner.calibration.measurements import (
    MeasuredCase,
    Row,
    Unpredictable,
    file_kind,
    fold_of,
    kind_mark,
    marked,
    read_rows,
)
from planner.calibration.own_spread import own_spreads
from planner.calibration.runs import Run, run_of, used_by
from planner.calibration.target import TRUSTED_GRADES, AnyTarget, Observation
from planner.calibration.targets import target_named, target_of
from planner.calibration.training_target import TRAINING
from planner.errors import Issue, SpecError
from planner.facts import Fact
from planner.files import write_file
from planner.messages import Message
from planner.problem.intervals import relatives, seen_chips, seen_kinds
from planner.resolve.constants import by_kind

DEFAULT_PRIOR_SPREAD = (
    0.05  # spread of a shipped constant as prior of a user's calibration, where the catalog states no range
)
MIN_PRIOR_SPREAD = 0.05  # a single machine differs from the mean of many by more than that mean is uncertain
DECILES = 2.563  # standard deviations between the 10 % and the 90 % quantile
LEAVE_OUT: dict[str, Callable[[MeasuredCase], str]] = {
    "source": lambda case: case.row.kind,
    "chip": lambda case: case.chip,
    "generation": lambda case: case.generation,
    "kind": lambda case: case.kind,
    "group": lambda case: str(fold_of(case.row.kind, case.architecture, case.chip)),
}
LEAVE_OUT_OF_TIER = {
    "known": "group",
    "new_source": "source",
    "new_kind": "kind",
    "new_chip": "chip",
    "new_generation": "generation",
}  # gives the bands of a tier
TIER_OF_LEAVE_OUT = {by: tier for tier, by in LEAVE_OUT_OF_TIER.items() if by != "group"}


@dataclass(frozen=True, slots=True)
class Measurements:
    """Rows of a file as cases of the models, and the rows that cannot be predicted with the reason of each."""

    target: AnyTarget
    cases: tuple[MeasuredCase, ...]
    rows: int
    refused: tuple[tuple[Row, str], ...]

    @property
    def reasons(self) -> dict[str, int]:
        """Count the refused rows by reason."""
        return dict(sorted(Counter(reason for _, reason in self.refused).items()))


def read_measurements(path: Path, catalog: Catalog, further: Mapping[str, str] = {}) -> Measurements:
    """Read all rows of a file, whose target follows from its columns. `further`: cells by column where a row has none.

    Raises SpecError for an unreadable file or cell.
    """
    target = target_named(file_kind(path))
    constants = catalog.constants(target.name)
    cases: list[MeasuredCase] = []
    refused: list[tuple[Row, str]] = []
    rows = marked(read_rows(path, target.name, further))
    for row in rows:
        try:
            case = target.build_case(row, catalog, constants)
        except Unpredictable as reason:
            refused.append((row, str(reason)))
            continue
        if target.metrics_of(case):
            cases.append(case)
        else:
            refused.append((row, Message.of(target.no_metric_reason).text()))
    return Measurements(target, tuple(cases), len(rows), tuple(refused))


def enters_fit(cases: Sequence[MeasuredCase]) -> Bools:
    """Tell which observations may enter a fit: a fitted metric, a trusted grade, and none of the exclusions."""
    return np.array([o.fits for o in target_of(cases).observations(cases)], dtype=bool)


def log_measured(cases: Sequence[MeasuredCase]) -> Floats:
    """Return ln(measured) of the observations, NaN for metrics that no fit uses."""
    target = target_of(cases)
    return np.array(
        [np.log(o.value) if o.metric in target.fitted_metrics else np.nan for o in target.observations(cases)]
    )


# -- fits --------------------------------------------------------------------------------------------------------------


def _fit_observations(cases: Sequence[MeasuredCase]) -> tuple[AnyTarget, list[Observation], Floats]:
    """Return (target, observations that enter a fit, their ln(measured))."""
    target = target_of(cases)
    chosen = [o for o in target.observations(cases) if o.fits]
    if not chosen:
        raise _nothing_to_fit(target)
    return target, chosen, np.log([o.value for o in chosen])


def _nothing_to_fit(target: AnyTarget, reasons: Mapping[str, int] = {}) -> SpecError:
    metrics, grades = ", ".join(target.fitted_metrics), " or ".join(TRUSTED_GRADES)
    why = "".join(f"; {reason}: {count}" for reason, count in reasons.items())
    return SpecError(
        [
            Issue(
                "measurements",
                Message.of("calibration.no_row_of_grade", count=metrics, grade=f"{grades}{why}").text(),
            )
        ]
    )


def fit_problem(
    cases: Sequence[MeasuredCase], values: Mapping[str, float], strengths: Mapping[str, float] = {}
) -> Linearised:
    """Set up the fit of the constants at `values`, without slopes: observations, weights evened among sources, physical priors.

    `strengths`: by how much the spreads of a level's priors are scaled (`best_strengths`); 1 where none is given.
    """
    target, chosen, log_values = _fit_observations(cases)
    weights = group_weights([f"{cases[o.case].row.kind}|{o.metric}" for o in chosen]) ** target.source_evenness
    weights *= _size([cases[o.case] for o in chosen])
    weights *= np.sqrt(target.data_weight / np.mean(weights**2))
    scale = np.array([target.outlier_scale[o.metric] for o in chosen])
    inside = {name: min(values[name], prior.upper * 0.999) for name, prior in target.priors.items()}
    none = np.zeros((0, len(target.priors)))
    fit = Linearised(
        target.predict(cases, chosen), log_values, weights, target.priors, {**values, **inside}, none, scale
    )
    return shrunk(fit, strengths, target.level_of)


def _size(rows: Sequence[MeasuredCase]) -> Floats:
    """Weigh a row that stands for a group as a group of mean size:  sqrt(rows / votes);  other rows 1."""
    whole = np.array([row.stands_for_group for row in rows], bool)
    return np.where(whole, np.sqrt(len(rows) / len({row.vote for row in rows})), 1.0)


def with_slopes(at: Linearised) -> Linearised:
    """Differentiate the predictions by the constants at the values of a fit."""
    return replace(at, slope=sensitivity(at.predict, at.priors, at.values, at.predict(at.values)))


def best_strengths(cases: Sequence[MeasuredCase], values: Mapping[str, float]) -> dict[str, float]:
    """Choose how far the constants of each level may leave their priors: groups, sources and chips are left out by turns.

    The folds differ from `leave_out`'s, so that errors with groups left out are of rows that chose nothing.
    """
    target, chosen, _ = _fit_observations(cases)
    rows = [cases[o.case] for o in chosen]
    groups = [f"{m.vote}|{o.metric}" for m, o in zip(rows, chosen, strict=True)]
    ways: tuple[Callable[[MeasuredCase], str], ...] = (
        lambda m: m.vote, LEAVE_OUT["source"], LEAVE_OUT["chip"],
    )  # fmt: skip
    folds = [[kind_mark(f"strength|{way(m)}")[:1] for m in rows] for way in ways]
    return chosen_strengths(with_slopes(fit_problem(cases, values)), target.level_of, folds, groups)


def shipped_strengths(catalog: Catalog, target: AnyTarget) -> dict[str, float]:
    """Read the strengths of the levels with which the catalog's constants were fitted."""
    record = catalog.get("constants", f"{target.name}_strengths")
    return {level: record.value(level) for level in record.figures}


def fit_own(
    cases: Sequence[MeasuredCase], start: Mapping[str, float], priors: Mapping[str, Prior]
) -> tuple[Fit, list[str]]:
    """Fit to a user's rows: constants shrunk to `priors`, and one offset per environment, whose keys are returned.

    Rows share an environment where their `offset_key` is the same.
    """
    target, chosen, log_values = _fit_observations(cases)
    named = [target.offset_key(cases[o.case], o.metric) for o in chosen]
    keys = sorted(set(named))
    metric_of = {key: o.metric for key, o in zip(named, chosen, strict=True)}
    found = fit(
        target.predict(cases, chosen), log_values, np.ones(len(chosen)), priors, start, anchors=np.array([keys.index(key) for key in named]),
        anchor_spread=np.array([target.offset_spread[metric_of[key]] for key in keys]),
        scale=np.array([target.outlier_scale[o.metric] for o in chosen]),
    )  # fmt: skip
    return found, keys


def shipped_priors(
    catalog: Catalog, target: AnyTarget = TRAINING, values: Mapping[str, float] | None = None
) -> dict[str, Prior]:
    """Take the catalog's constants, or other `values`, as priors as narrow as the catalog's 10-90 % range over refits."""
    priors = {}
    for name, prior in target.priors.items():
        figure = catalog.get("constants", f"{target.name}.{name}").figure("value")
        spread = DEFAULT_PRIOR_SPREAD
        if figure.low and figure.high:
            spread = (prior.to_free(min(figure.high, prior.upper)) - prior.to_free(figure.low)) / DECILES
        centre = figure.number if values is None else values[name]
        spread = min(prior.spread, max(spread, MIN_PRIOR_SPREAD))
        priors[name] = Prior(centre, spread, prior.scale, max(prior.upper, centre))
    return priors


def leave_out_by_group(
    cases: Sequence[MeasuredCase], by: str, full_fit: Linearised
) -> tuple[Floats, dict[str, dict[str, float]]]:
    """Predict each observation by constants fitted without its group; returns ln(predicted) and the constants by the group left out.

    Refits start from `full_fit`, a fit to all rows with its slopes: they first go along those, and then take a step with the models.
    """
    tangent = along_slopes(full_fit)
    target = target_of(cases)
    observations = target.observations(cases)
    labels = np.array([LEAVE_OUT[by](cases[o.case]) for o in observations])
    inside = enters_fit(cases)
    predict = target.predict(cases, observations)
    out, refits = np.empty(len(observations)), {}
    for group in sorted(set(labels)):
        values, keep = dict(full_fit.values), labels[inside] != group
        if np.any(keep):
            values = refit(replace(full_fit, values=refit(tangent, keep)), keep, rounds=1)
        out[labels == group] = predict(values)[labels == group]
        refits[str(group)] = values
    return out, refits


# -- intervals ---------------------------------------------------------------------------------------------------------


def catalog_bands(catalog: Catalog, target: AnyTarget = TRAINING) -> dict[tuple[str, str], Band]:
    """Read the bands of each tier and label from the catalog."""
    record = catalog.get("constants", f"{target.name}_interval")
    return {(name, label): Band(*(float(np.log(record.value(f"{name}_{label}_{side}"))) for side in ("low", "high")))
            for name in TIERS for label in target.interval_labels}  # fmt: skip


def band_figures(bands: Mapping[tuple[str, str], Band], source: str) -> dict[str, dict[str, Any]]:
    """Write bands as figures of the record that `catalog_bands` reads."""
    return {f"{name}_{label}_{side}": calibrated_figure(float(np.exp(getattr(found, side))), source)
            for (name, label), found in bands.items() for side in ("low", "high")}  # fmt: skip


def tier_of_case(case: MeasuredCase, catalog: Catalog) -> str:
    """Classify how close a row is to the rows that the catalog's constants were fitted to."""
    seen = catalog.get("constants", f"{target_of([case]).name}_seen")
    chips = seen_chips(catalog, target_of([case]).name)
    source_seen = seen.get(f"kind {kind_mark(case.row.kind)}") is not None
    kind_seen = case.kind in seen_kinds(catalog, target_of([case]).name)
    return tier_of(source_seen, case.chip in chips, case.chip in relatives(catalog, chips), kind_seen)


def anchor_factors(cases: Sequence[MeasuredCase], catalog: Catalog) -> Floats:
    """Look up the factor on each predicted observation from the user's own measurements of the same environment."""
    target = target_of(cases)
    record = catalog.get("constants", f"{target.name}_anchor")
    stored = by_kind(record.figures)
    keys = [stored.get(target.offset_key(cases[o.case], o.metric)) for o in target.observations(cases)]
    return np.array([1.0 if key is None else record.value(key) for key in keys])


# -- overlays ----------------------------------------------------------------------------------------------------------


def seen_figures(cases: Sequence[MeasuredCase], source: str) -> dict[str, dict[str, Any]]:
    """List the source kinds, chips and kinds of networks that a fit has used (value 1), with their rows; source kinds by a mark, not by name."""
    rows = [cases[i] for i in sorted({o.case for o in target_of(cases).observations(cases) if o.fits})]
    counts = Counter(
        label
        for case in rows
        for label in (f"kind {kind_mark(case.row.kind)}", f"chip {case.chip}", f"network {case.kind}")
    )
    return {name: calibrated_figure(1.0, source, note=f"{count} rows") for name, count in sorted(counts.items())}


def calibrated_figure(
    value: float, source: str, unit: str = "1", low: float | None = None, high: float | None = None, note: str = ""
) -> dict[str, Any]:
    """Write a calibrated figure in the form of the catalog's files."""
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


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What a calibration did: files written, figures that changed (the largest change first), its runs before and after, and who uses it."""

    written: tuple[Path, ...]
    figures: tuple[dict[str, Any], ...]
    runs: tuple[Run, ...]
    used_by: tuple[dict[str, Any], ...]  # which points of a plan the factors hold for
    refused: tuple[tuple[Row, str], ...]
    notes: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class _Fitted:
    """The fit of one model: its overlay, and the parts of `Calibrated`."""

    overlay: dict[str, Any]
    figures: list[dict[str, Any]]
    runs: list[Run]
    used_by: list[dict[str, Any]]


def calibrate(
    paths: Path | Sequence[Path], folder: Path, catalog: Catalog, further: Mapping[str, str] = {}
) -> Calibrated:
    """Fit to a user's measurements and write an overlay for --catalog into the folder: one file each for training and for serving.

    `further`: cells by column where a row has none. Raises SpecError for unreadable files, and for figures that cannot be right.
    """
    files = [paths] if isinstance(paths, Path) else list(paths)
    by_target: dict[str, Measurements] = {}
    for path in files:
        read = read_measurements(path, catalog, further)
        before = by_target.get(read.target.name)
        if before is not None:
            read = Measurements(
                read.target, before.cases + read.cases, before.rows + read.rows, before.refused + read.refused
            )
        by_target[read.target.name] = read
    notes = [fact for each in by_target.values() for case in each.cases for fact in facts_of(case, catalog)]
    if any(fact.refuses for fact in notes):
        raise SpecError([fact.problem() for fact in notes if fact.refuses])
    fitted = [_calibrated(measurements, catalog) for measurements in by_target.values()]
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / f"{name}.json" for name in by_target]
    for path, each in zip(written, fitted, strict=True):
        write_file(path, json.dumps(each.overlay, indent=1) + "\n")
    figures = [row for each in fitted for row in each.figures]
    runs = tuple(run for each in fitted for run in each.runs)
    return Calibrated(
        tuple(written),
        tuple(sorted(figures, key=lambda row: -abs(np.log(row["after"] / row["before"])))),
        runs,
        tuple(row for each in fitted for row in each.used_by),
        tuple(pair for each in by_target.values() for pair in each.refused),
        (*notes, *(fact for run in runs for fact in run.far("before"))),
    )


def _calibrated(measurements: Measurements, catalog: Catalog) -> _Fitted:
    """Fit the constants and offsets of one model."""
    target, cases = measurements.target, measurements.cases
    if not cases:
        raise _nothing_to_fit(target, measurements.reasons)
    before = catalog.constants(target.name)
    found, keys = fit_own(cases, before, shipped_priors(catalog, target))
    used = len({o.case for o in target.observations(cases) if o.fits})
    spread = float(np.std(found.residuals)) if len(found.residuals) > 1 else 0.0
    source = f"OWN-{target.name.upper()}"
    note = Message.of("row.fitted_to", used=str(used), rows=str(measurements.rows), spread=f"{spread:.3f}").text()
    constants, report = [], []
    for name, value in found.values.items():
        prior, sigma = target.priors[name], found.spreads[name]
        low, high = (prior.from_free(prior.to_free(value) + side * sigma * DECILES / 2.0) for side in (-1.0, 1.0))
        full = f"{target.name}.{name}"
        unit = catalog.get("constants", full).figure("value").unit
        figure = calibrated_figure(value, source, unit, low, min(high, prior.upper), note)
        constants.append({"name": full, "figures": {"value": figure}})
        report.append({"figure": full, "before": before[name], "after": value, "low": low, "high": high})
    anchors, further = {}, own_spreads(target, cases, found, keys)
    for key, offset, sigma in zip(keys, found.offsets, found.offset_spreads, strict=True):
        low, high = (float(np.exp(offset + side * sigma * DECILES / 2.0)) for side in (-1.0, 1.0))
        factor = float(np.exp(offset))
        anchors[key] = calibrated_figure(factor, source, "1", low, high, note)
        words = target.offset_words.format(*key.split("|"))
        report.append({"figure": words, "before": 1.0, "after": factor, "low": low, "high": high})
    spreads = {key: calibrated_figure(value, source, "1", note=note) for key, value in further.items()}
    constants += [
        {"name": f"{target.name}_anchor", "figures": anchors},
        {"name": f"{target.name}_own_spread", "figures": spreads},
        {"name": f"{target.name}_seen", "figures": seen_figures(cases, source)},
    ]
    title = Message.of("row.own_calibration", model=target.name, rows=str(used)).text()
    overlay = {"sources": {source: {"title": title, "date": None, "confidence": "B"}}, "constants": constants}
    factors = dict(zip(keys, map(float, np.exp(found.offsets)), strict=True))
    runs = _before_and_after(target, cases, catalog, {**before, **found.values}, factors)
    return _Fitted(overlay, report, runs, used_by(target.name, factors))


def _before_and_after(
    target: AnyTarget,
    cases: Sequence[MeasuredCase],
    catalog: Catalog,
    values: Mapping[str, float],
    factors: Mapping[str, float],
) -> list[Run]:
    """Describe the runs with each figure as measured, and as predicted before and after a fit."""
    observations, start = target.observations(cases), catalog.constants(target.name)
    predict = target.predict(cases, observations)
    own = np.log([factors.get(target.offset_key(cases[o.case], o.metric), 1.0) for o in observations])
    logs = (predict(start) + np.log(anchor_factors(cases, catalog)), predict(values) + own)
    figures: list[dict[str, dict[str, float]]] = [{} for _ in cases]
    for observation, *both in zip(observations, *logs, strict=True):
        case, metric = cases[observation.case], observation.metric
        before, after = (
            float(target.in_metric_unit(case, metric, float(np.exp(log)), constants))
            for log, constants in zip(both, (start, values), strict=True)
        )
        figures[observation.case][metric] = {"measured": observation.value, "before": before, "after": after}
    memory = [target.memory(case, start) for case in cases]
    return [run_of(*each) for each in zip(cases, figures, memory, strict=True)]
