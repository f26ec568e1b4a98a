"""Hold what the models predict against logs of benchmarks and runs, and calibrate the models on them.

An assumption is a metric on one engine, chip and kind of weights: its prediction and its measurement in the run whose ratio is the median.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from catalog.lookup import Catalog
from planner.calibration.fit import Calibrated, calibrate, read_measurements
from planner.calibration.runs import Run
from planner.calibration.scores import Score, validate
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.studies.against.assumption import STEP, THROUGHPUT, TPOT, TTFT, Assumption
from planner.studies.against.points import factor_edits

UNITS = {THROUGHPUT: "token/s", TTFT: "s", TPOT: "s", STEP: "s"}
"""Metrics that a plan rests on, with their unit."""


@dataclass(frozen=True, slots=True)
class Environment:
    """What runs share: the model ("serving", "training"), the key of their factor on predictions, and the metric."""

    model: str
    key: str
    metric: str

    @property
    def chip(self) -> str:
        """Return the chip."""
        return self.key.split("|")[1]

    def words(self, count: int) -> str:
        """Name the environment."""
        software, chip, precision, *_ = self.key.split("|")
        code = "actual.environment" if count > 1 else "actual.environment_of_one"
        return Message.of(code, software=software, chip=chip, precision=precision, count=count).text()


def of_runs(
    files: Sequence[Path], folder: Path, catalog: Catalog, cells: Mapping[str, str], problem: ResolvedSpec
) -> tuple[list[Assumption], Calibrated]:
    """Calibrate the models on files, write the overlay into `folder`, and hold each environment and metric against its runs.

    Raises SpecError for a file that is malformed, or none of whose rows can be predicted.
    """
    found = calibrate(files, folder, catalog, cells)
    environments = dict(_environments(files, catalog, cells))
    scores = {(s.id, s.metric): s for file in files for s in validate(file, catalog, None, cells).scores}
    groups: dict[Environment, list[Run]] = {}
    for run in found.runs:
        for metric in run.figures:
            if (of := environments.get((run.place, metric))) is not None:
                groups.setdefault(of, []).append(run)
    chips = {system.chip for system in problem.systems.values()}
    models = {"serving" if problem.serving else "", "training" if problem.training else ""}
    held = [
        _held(of, runs, scores, catalog, used=of.chip in chips and of.model in models) for of, runs in groups.items()
    ]
    return held, found


def _environments(
    files: Iterable[Path], catalog: Catalog, cells: Mapping[str, str]
) -> Iterator[tuple[tuple[str, str], Environment]]:
    """Yield the environment of each run and metric, by (place of the run, metric)."""
    for file in files:
        read = read_measurements(file, catalog, cells)
        for observation in read.target.observations(read.cases):
            case, metric = read.cases[observation.case], observation.metric
            if metric in UNITS and observation.fits:
                yield (case.row.place, metric), Environment(read.target.name, read.target.offset_key(case, metric), metric)  # fmt: skip


def _held(
    of: Environment, runs: Sequence[Run], scores: Mapping[tuple[str, str], Score], catalog: Catalog, used: bool
) -> Assumption:
    """Hold an environment against its runs."""

    def ratio(run: Run, side: str) -> float:
        return run.figures[of.metric]["measured"] / run.figures[of.metric][side]

    middle = (len(runs) - 1) // 2
    run = sorted(runs, key=lambda each: ratio(each, "before"))[middle]
    after = sorted(ratio(each, "after") for each in runs)[middle]
    figures, score = run.figures[of.metric], scores.get((run.id, of.metric))
    factor = ratio(run, "before")
    return Assumption(
        of.metric, of.words(len(runs)), figures["before"], figures["measured"], UNITS[of.metric],
        None if score is None else score.low, None if score is None else score.high, figures["measured"] / after, used=used,
        restated=lambda document: factor_edits(document, catalog, (of.key,), factor, f"{of.model}_anchor"),
    )  # fmt: skip
