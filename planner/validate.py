"""Scores the models on a measurements file: per row measured, predicted, low, high; summaries by chip, source and kind of network."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from catalog.units import TERA
from models.layouts import Layouts
from models.operators import forward_flops_per_token
from models.training import TRAINING_PASSES, TrainingConstants, recomputed_flops_per_token
from models.training_batch import Case, Predictor
from models.training_layer import Run
from models.uncertainty import TIERS, interval
from planner.calibrate import TIER_OF_LEAVE_OUT, anchor_factors, bands_of, leave_out, read_measurements, tier
from planner.training_cases import Measured

SCORE_COLUMNS = ("id", "metric", "measured", "predicted", "low", "high", "note")
SUMMARY = ("n", "median_ape", "mape", "within_10", "within_20", "bias", "coverage_80")


@dataclass(frozen=True, slots=True)
class Score:
    """One metric of one row."""

    id: str
    metric: str
    measured: float
    predicted: float
    low: float
    high: float
    chip: str
    source: str
    network: str  # dense or moe
    tier: str
    note: str

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of a file, and how many rows could not be asked about, by reason."""

    rows: int
    reasons: Mapping[str, int]
    scores: tuple[Score, ...]

    @property
    def predicted(self) -> int:
        return len({score.id for score in self.scores})

    def as_json(self) -> dict[str, Any]:
        """The document of `--format json`."""
        by: dict[str, Callable[[Score], str]] = {
            "chip": lambda s: s.chip, "source": lambda s: s.source, "network": lambda s: s.network, "tier": lambda s: s.tier
        }  # fmt: skip
        return {
            "rows": self.rows,
            "predicted": self.predicted,
            "not_predictable": dict(self.reasons),
            "metrics": by_metric(self.scores),
            "by": {name: {group: by_metric(members) for group, members in _grouped(self.scores, label)} for name, label in by.items()},
        }

    def summary_rows(self) -> list[dict[str, Any]]:
        """The same as rows of a table."""
        document = self.as_json()
        rows = [{"group": "all", "name": "", "metric": metric, **values} for metric, values in document["metrics"].items()]
        for group, names in document["by"].items():
            rows += [{"group": group, "name": name, "metric": metric, **values} for name, found in names.items() for metric, values in found.items()]
        return rows

    def score_rows(self) -> list[dict[str, Any]]:
        """The file of `--rows`."""
        return [{name: getattr(s, name) for name in SCORE_COLUMNS} for s in self.scores]


def validate(path: Path, catalog: Catalog, left_out: str | None = None) -> Validation:
    """Scores of all rows of a file, by the catalog's constants or by refits that leave each row's group out."""
    measurements = read_measurements(path, catalog)
    cases, start = measurements.cases, catalog.constants("training")
    if not cases:
        return Validation(measurements.rows, measurements.reasons, ())
    if left_out:
        log_time, tiers = leave_out(cases, left_out, start)[0], left_out_tiers(cases, left_out)
    else:
        log_time = Predictor([m.case for m in cases])(start) + np.log(anchor_factors(cases, catalog))
        tiers = [tier(m, catalog) for m in cases]
    bands = bands_of(catalog)
    scores = [_score(m, float(np.exp(t)), name, bands[name, m.experts], start) for m, t, name in zip(cases, log_time, tiers, strict=True)]
    return Validation(measurements.rows, measurements.reasons, tuple(scores))


def left_out_tiers(cases: Sequence[Measured], by: str) -> list[str]:
    """Tier of each row once its group is out; with groups, a source or chip that has no row in another fold is a new one."""
    if by in TIER_OF_LEAVE_OUT:
        return [TIER_OF_LEAVE_OUT[by]] * len(cases)
    from planner.calibrate import LEAVE_OUT

    fold = LEAVE_OUT[by]
    sources, chips = ({} for _ in range(2))
    for m in cases:
        sources.setdefault(m.row.kind, set()).add(fold(m))
        chips.setdefault(m.chip, set()).add(fold(m))
    return [("known" if len(sources[m.row.kind]) > 1 else "new_source") if len(chips[m.chip]) > 1 else "new_chip" for m in cases]


def _score(m: Measured, step_s: float, name: str, found, constants: Mapping[str, float]) -> Score:
    """The step time, or where only a rate was published TFLOP/s per chip, with its interval."""
    low, high = interval(step_s, found)
    metric, measured, values = "step_time", m.step_s, (step_s, low, high)
    if measured is None:
        work = flops_per_chip(m.case, m.chips, m.hardware_flops, constants)
        metric, measured, values = "tflops", m.tflops, (work / step_s, work / high, work / low)
    note = "; ".join((f"tier {name}", *(f"assumed {text}" for text in m.inferred)))
    return Score(m.row.id, metric, measured, *map(float, values), m.chip, m.row.kind, "moe" if m.experts else "dense", name, note)


def flops_per_chip(case: Case, chips: float, with_recompute: bool, constants: Mapping[str, float]) -> float:
    """Work of a step per chip [TFLOP]: three forward passes, and what is repeated where the source counts it."""
    per_token = TRAINING_PASSES * forward_flops_per_token(case.arch, case.sequence_tokens)
    if with_recompute:
        run = Run.of(case.arch, case.chip, Layouts.of(**case.layout), case.sequence_tokens, case.precision, TrainingConstants.from_values(constants), case.family, case.recipe)
        per_token = per_token + float(np.ravel(recomputed_flops_per_token(run))[0])
    return float(per_token) * case.global_batch_sequences * case.sequence_tokens / chips / TERA


def by_metric(scores: Iterable[Score]) -> dict[str, dict[str, float]]:
    """Summary of each metric; error = |predicted / measured - 1|, bias its signed median, all as fractions."""
    return {metric: summary(members) for metric, members in _grouped(scores, lambda s: s.metric)}


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """n, median and mean absolute error, shares within 10 and 20 %, bias, and share inside the 80 % interval."""
    signed = np.array([s.ratio - 1.0 for s in scores])
    error = np.abs(signed)
    covered = [s.low <= s.measured <= s.high for s in scores]
    values = (len(scores), np.median(error), error.mean(), np.mean(error <= 0.10), np.mean(error <= 0.20), np.median(signed), np.mean(covered))
    return {name: int(value) if name == "n" else round(float(value), 6) for name, value in zip(SUMMARY, values, strict=True)}


def _grouped(scores: Iterable[Score], label: Callable[[Score], str]) -> list[tuple[str, list[Score]]]:
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(label(score), []).append(score)
    return sorted(groups.items(), key=lambda item: (TIERS.index(item[0]) if item[0] in TIERS else 0, item[0]))
