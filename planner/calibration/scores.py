"""Score the models on a file of measurements: measured, predicted and interval of each row, summaries by chip, source and network.

Summaries cover the rows in the score: all rows of a training file; of a serving file the rows of grade A or B (a row without a grade is
the user's own and counts) except the stated exclusions (`serving_cases.in_score`). The other rows are predicted and written as well,
but summarised separately under `by`, "in score": "no".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from models.arrays import sum_of
from models.statistics.intervals import TIERS, Band, either_way, interval, tier_of, widened
from planner.calibration.checks import facts_of
from planner.calibration.fit import (
    LEAVE_OUT,
    TIER_OF_LEAVE_OUT,
    anchor_factors,
    catalog_bands,
    fit_problem,
    leave_out_by_group,
    read_measurements,
    shipped_strengths,
    tier_of_case,
    with_slopes,
)
from planner.calibration.load_sensitivity import by_load, by_way
from planner.calibration.measurements import MeasuredCase, Row
from planner.calibration.runs import Run, run_of, shortage
from planner.calibration.target import AnyTarget, Observation
from planner.facts import Fact
from planner.messages import Message

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
    in_score: bool = True

    @property
    def ratio(self) -> float:
        return self.predicted / self.measured


@dataclass(frozen=True, slots=True)
class Validation:
    """Scores of a file, how many rows are not predictable, by reason, how each row was understood, and conflicts with known figures."""

    rows: int
    reasons: Mapping[str, int]
    scores: tuple[Score, ...]
    runs: tuple[Run, ...] = ()
    notes: tuple[Fact, ...] = ()
    open_ways: int = 0  # rows that do not state how their requests came

    @property
    def predicted(self) -> int:
        return len({score.id for score in self.scores})

    def as_json(self) -> dict[str, Any]:
        """Write the document of `--format json`."""
        by: dict[str, Callable[[Score], str]] = {
            "chip": lambda s: s.chip, "source": lambda s: s.source, "network": lambda s: s.network, "tier": lambda s: s.tier
        }  # fmt: skip
        counted = [score for score in self.scores if score.in_score]
        groups = {
            name: {group: by_metric(members) for group, members in _grouped(counted, label)}
            for name, label in by.items()
        }
        flags = _grouped(self.scores, lambda s: "yes" if s.in_score else "no")
        return {
            "rows": self.rows,
            "predicted": self.predicted,
            "not_predictable": dict(self.reasons),
            "way_not_stated": self.open_ways,
            "metrics": by_metric(counted),
            "by": {**groups, "in score": {flag: by_metric(members) for flag, members in flags}},
            "runs": [run.as_json() for run in self.runs],
            "notes": [{**fact.row(), "impossible": fact.refuses} for fact in self.notes],
        }

    def summary_rows(self) -> list[dict[str, Any]]:
        """Write the summaries as rows of a table."""
        document = self.as_json()
        rows = [
            {"group": "all", "name": "", "metric": metric, **values} for metric, values in document["metrics"].items()
        ]
        for group, names in document["by"].items():
            rows += [
                {"group": group, "name": name, "metric": metric, **values}
                for name, found in names.items()
                for metric, values in found.items()
            ]
        return rows

    def score_rows(self) -> list[dict[str, Any]]:
        """Write the rows of the file of `--rows`."""
        return [
            {name: "" if name == "high" and np.isinf(s.high) else getattr(s, name) for name in SCORE_COLUMNS}
            for s in self.scores
        ]


def validate(path: Path, catalog: Catalog, left_out: str | None = None, further: Mapping[str, str] = {}) -> Validation:
    """Score all rows of a file by the catalog's constants, or by refits that leave out each row's group (`left_out` names the grouping).

    `further`: cells by column where a row has none.
    """
    measurements = read_measurements(path, catalog, further)
    target, cases = measurements.target, measurements.cases
    start = catalog.constants(target.name)
    if not cases:
        return Validation(measurements.rows, measurements.reasons, ())
    observations = target.observations(cases)
    if left_out:
        whole = with_slopes(fit_problem(cases, start, shipped_strengths(catalog, target)))
        log_value, tiers = leave_out_by_group(cases, left_out, whole)[0], left_out_tiers(cases, left_out)
    else:
        log_value = target.predict(cases, observations)(start) + np.log(anchor_factors(cases, catalog))
        tiers = [tier_of_case(m, catalog) for m in cases]
    bands = catalog_bands(catalog, target)
    moves = {tier: by_load(cases, start, bands, tier) for tier in sorted(set(tiers))}
    least, most = by_way(cases, start)
    figures: list[dict[str, dict[str, float]]] = [{} for _ in cases]
    memory = [target.memory(case, start) for case in cases]
    scores = []
    for i, (o, value) in enumerate(zip(observations, log_value, strict=True)):
        tier, case = tiers[o.case], cases[o.case]
        wide = either_way(
            widened(bands[tier, o.label], *(float(side[i]) for side in moves[tier])), float(least[i]), float(most[i])
        )
        score = _score(target, case, o, float(np.exp(value)), tier, wide, start)
        if lacking := shortage(*memory[o.case]):
            score = replace(score, note=f"{lacking.text()}; {score.note}")
        figures[o.case][o.metric] = {"measured": score.measured, "predicted": score.predicted}
        scores.append(score)
    runs = tuple(run_of(*each) for each in zip(cases, figures, memory, strict=True))
    open_ways = sum_of(not case.way_stated for case in cases)
    return Validation(
        measurements.rows, measurements.reasons, tuple(scores), runs, _notes(cases, runs, catalog), open_ways
    )


def _notes(cases: Sequence[MeasuredCase], runs: Sequence[Run], catalog: Catalog) -> tuple[Fact, ...]:
    """List conflicts with known figures: by the row itself, else by its predictions."""
    found: list[Fact] = []
    for case, run in zip(cases, runs, strict=True):
        own = facts_of(case, catalog)
        found += own if any(fact.refuses for fact in own) else [*own, *run.far("predicted")]
    return tuple(found)


def left_out_tiers(cases: Sequence[MeasuredCase], by: str) -> list[str]:
    """Classify each row once its group is left out; for folds, a source or chip without rows in another fold is new."""
    if by in TIER_OF_LEAVE_OUT:
        return [TIER_OF_LEAVE_OUT[by]] * len(cases)
    fold = LEAVE_OUT[by]
    folds: dict[tuple[str, str], set[str]] = {}
    for m in cases:
        for key in (("source", m.row.kind), ("chip", m.chip), ("generation", m.generation), ("kind", m.kind)):
            folds.setdefault(key, set()).add(fold(m))
    seen = {key for key, found in folds.items() if len(found) > 1}
    return [
        tier_of(
            *(
                (level, of) in seen
                for level, of in (
                    ("source", m.row.kind),
                    ("chip", m.chip),
                    ("generation", m.generation),
                    ("kind", m.kind),
                )
            )
        )
        for m in cases
    ]


def _score(
    target: AnyTarget,
    case: MeasuredCase,
    seen: Observation,
    value: float,
    tier: str,
    band: Band,
    constants: Mapping[str, float],
) -> Score:
    """Score one observation, with its interval, in the unit of its metric; bounds are sorted since a rate falls as its time grows."""
    predicted, *bounds = (
        float(target.in_metric_unit(case, seen.metric, float(v), constants)) for v in (value, *interval(value, band))
    )
    low, high = sorted(bounds)
    in_score = target.in_score(case.row)
    note = "; ".join(
        (
            Message.of("row.tier", tier=tier).text(),
            *(Message.of("row.assumed", what=text).text() for text in case.inferred),
            *(() if in_score else (words_of_exclusion(case.row),)),
        )
    )
    network = "moe" if case.experts else "dense"
    return Score(
        case.row.id,
        seen.metric,
        seen.value,
        predicted,
        low,
        high,
        case.chip,
        case.row.kind,
        network,
        tier,
        note,
        in_score,
    )


def words_of_exclusion(row: Row) -> str:
    """Say that a row is not in the score, and of which row it is a copy."""
    if row.copy_of:
        return Message.of("row.scaled_copy", name=row.copy_of).text()
    return Message.of("row.not_scored").text()


def by_metric(scores: Iterable[Score]) -> dict[str, dict[str, float]]:
    """Summarise each metric: error = |predicted / measured - 1|, bias = its signed median, all as fractions."""
    return {metric: summary(members) for metric, members in _grouped(scores, lambda s: s.metric)}


def summary(scores: Sequence[Score]) -> dict[str, float]:
    """Compute n, median and mean absolute error, shares within 10 and 20 %, bias, and the share inside the 80 % interval."""
    signed = np.array([s.ratio - 1.0 for s in scores])
    error = np.abs(signed)
    covered = [s.low <= s.measured <= s.high for s in scores]
    values = (
        len(scores),
        np.median(error),
        error.mean(),
        np.mean(error <= 0.10),
        np.mean(error <= 0.20),
        np.median(signed),
        np.mean(covered),
    )
    return {
        name: int(value) if name == "n" else round(float(value), 6) for name, value in zip(SUMMARY, values, strict=True)
    }


def _grouped(scores: Iterable[Score], label: Callable[[Score], str]) -> list[tuple[str, list[Score]]]:
    groups: dict[str, list[Score]] = {}
    for score in scores:
        groups.setdefault(label(score), []).append(score)
    return sorted(groups.items(), key=lambda item: (TIERS.index(item[0]) if item[0] in TIERS else 0, item[0]))
