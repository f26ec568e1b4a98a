"""Say how each row of a file was understood before its figures are used: chips, architecture, precision, software, load, and what was in flight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.calibration.measurements import MeasuredCase
from planner.calibration.serving_cases import MeasuredServing
from planner.calibration.serving_loads import in_flight
from planner.calibration.training_cases import MeasuredTraining
from planner.facts import Fact
from planner.facts.measurements import far_from_predicted
from planner.messages import Message

# Printed units of the metrics: name, unit, and the factor from SI.
TIMES = ("tpot", "ttft", "ttft_p50", "ttft_p99")
UNITS = {**dict.fromkeys(TIMES, ("ms", 1e3)), "throughput": ("tokens/s", 1.0), "step_time": ("s", 1.0), "tflops": ("TFLOP/s", 1.0)}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Run:
    """A row as it was understood, and its figures by metric in SI: "measured" and "predicted", or "before" and "after" a fit."""

    id: str
    place: str
    words: tuple[Message, ...]
    figures: Mapping[str, Mapping[str, float]]
    needs_bytes: float  # on the fullest chip, by the layout
    usable_bytes: float
    assumed: tuple[str, ...]

    @property
    def shortage(self) -> Message | None:
        """Say how much memory the layout needs where it does not fit."""
        return shortage(self.needs_bytes, self.usable_bytes)

    def far(self, key: str) -> list[Fact]:
        """Name the figures that are far from the prediction under `key`."""
        found = []
        for metric, each in self.figures.items():
            unit, factor = UNITS[metric]
            found.append(far_from_predicted(self.place, metric, factor * each["measured"], factor * each[key], unit))
        return [fact for fact in found if fact is not None]

    def text(self) -> str:
        """Write how the row was understood, and what was measured and predicted."""
        told = [*self.words, *([self.shortage] if self.shortage else [])]
        compared = [
            Message.of(
                "measured.compared",
                metric=name,
                unit=UNITS[name][0],
                **{key: UNITS[name][1] * value for key, value in values.items()},
            )
            for name, values in self.figures.items()
            if set(values) == {"measured", "predicted"}
        ]
        assumed = Message.of("row.assumed", what=", ".join(self.assumed)).text() if self.assumed else ""
        parts = (", ".join(m.text() for m in told), assumed, ", ".join(m.text() for m in compared))
        return f"{self.id}: {'; '.join(filter(None, parts))}"

    def rows(self) -> list[dict[str, Any]]:
        """Write a row of a table for each figure, in the printed unit; a layout that does not fit says so in place of predictions alone."""
        note = {"note": self.shortage.text()} if self.shortage else {}
        return [
            {
                "run": self.id,
                "metric": metric,
                **{key: UNITS[metric][1] * v for key, v in values.items()},
                "unit": UNITS[metric][0],
                **note,
            }
            for metric, values in self.figures.items()
        ]

    def as_json(self) -> dict[str, Any]:
        """Write the run for a document, figures in SI."""
        return {
            "id": self.id,
            "place": self.place,
            "understood": [message.row() for message in self.words],
            "figures": {metric: dict(values) for metric, values in self.figures.items()},
            "assumed": list(self.assumed),
            "fits": self.shortage is None,
            "memory_bytes": self.needs_bytes,
            "usable_bytes": self.usable_bytes,
        }


def shortage(needs_bytes: float, usable_bytes: float) -> Message | None:
    """Say how much memory a chip needs and has, where it needs more than it has."""
    if needs_bytes <= usable_bytes:
        return None
    return Message.of("measured.memory", needs=needs_bytes / 1e9, usable=usable_bytes / 1e9)


def run_of(case: MeasuredCase, figures: Mapping[str, Mapping[str, float]], memory: tuple[float, float]) -> Run:
    """Describe a row; `memory`: needed and usable on a chip [byte]."""
    row = case.row
    return Run(row.id, row.place, (_system(case), *_load(case)), figures, *memory, case.inferred)


def _system(case: MeasuredCase) -> Message:
    row, chips = case.row, f"{case.chips:g} x {case.chip}"
    if isinstance(case, MeasuredTraining):
        degrees, precision, software = case.case.layout, case.precision, case.software
    else:
        degrees, precision = case.case.decode.layout, case.case.weight_precision  # type: ignore[attr-defined]
        software = " ".join(filter(None, (case.software, row.text["engine_version"])))
    layout = " ".join(f"{name}{degrees[name]}" for name in ("tp", "pp", "dp", "cp", "ep") if degrees.get(name, 1) > 1)
    return Message.of(
        "measured.run", chips=chips, architecture=case.architecture, precision=precision, software=software, layout=layout or "tp1"
    )  # fmt: skip


def _load(case: MeasuredCase) -> tuple[Message, ...]:
    if isinstance(case, MeasuredTraining):
        batch, tokens = case.case.global_batch_sequences, float(case.case.sequence_tokens)
        return (Message.of("measured.load_training", sequences=batch, tokens=tokens),)
    assert isinstance(case, MeasuredServing)
    run, held = case.case, in_flight(case.row)
    lengths = Message.of("measured.lengths", input=run.input_tokens, output=run.output_tokens)
    known = (Message.of("measured.in_flight", count=held),) if held and run.regime in ("open", "closed") else ()
    stated = () if case.way_stated else (Message.of("measured.way_not_stated"),)
    return lengths, _arrivals(run.regime, run.load, run.running), *stated, *known


def _arrivals(regime: str, amount: float, ceiling: float) -> Message:
    if regime == "open" and ceiling:
        return Message.of("measured.load_ceiling", rate=amount, most=ceiling)
    if regime == "open":
        return Message.of("measured.load_rate", rate=amount)
    if regime in ("closed", "disaggregated"):
        return Message.of("measured.load_clients", count=amount)
    if regime == "burst":
        return Message.of("measured.load_burst", count=amount)
    if regime.endswith("maximum"):
        return Message.of("measured.load_most")
    return Message.of("measured.load_batch", count=amount)


def used_by(model: str, factors: Mapping[str, float]) -> list[dict[str, Any]]:
    """Say which points of a plan the factors on predictions hold for; `factors` by key of the overlay, measured over predicted."""
    found: dict[tuple[str, str, str], dict[str, float]] = {}
    for key, factor in factors.items():
        by, chip, precision, *metric = key.split("|")
        found.setdefault((by if metric else "", chip, precision), {})[metric[0] if metric else "step_time"] = factor
    rows = []
    for (engine, chip, precision), each in found.items():
        words = ", ".join(f"{metric} x {factor:.3g}" for metric, factor in each.items())
        message = Message.of(
            "measured.used_by_engine" if engine else "measured.used_by", chip=chip, precision=precision, engine=engine, factors=words
        )  # fmt: skip
        rows.append({"model": model, **message.row(), "factors": each})
    return rows


def listed(runs: Sequence[Run], most: int) -> str:
    """Write the runs, one a line, `most` of them."""
    head = Message.of("measured.runs" if len(runs) != 1 else "measured.one_run", count=len(runs)).text()
    more = [f"  {Message.of('list.more', count=len(runs) - most).text()}"] if len(runs) > most else []
    return "\n".join([head, *(f"  {run.text()}" for run in runs[:most]), *more]) + "\n"
