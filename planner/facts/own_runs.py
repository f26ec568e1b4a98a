"""Say which of a user's own runs a workload does not use: factors of a calibration hold for one chip and precision, of any layout."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from planner.facts import Fact
from planner.messages import Message

Place = tuple[str, str]  # chip, precision


@dataclass(frozen=True, slots=True, order=True)
class OwnRuns:
    """What own runs of one kind were measured on; `engine` is empty for training."""

    chip: str
    precision: str
    engine: str = ""


def unused_runs(
    path: str, workload: str, measured: Collection[OwnRuns], possible: Collection[Place], engine: str = ""
) -> Iterator[Fact]:
    """Name own runs on other chips, in other precisions and with other engines than a workload may run on.

    `possible`: chips and precisions of the workload; `engine`: the one that it states, empty for none.
    """
    chips = sorted({chip for chip, _ in possible})
    if elsewhere := sorted({run.chip for run in measured if run.chip not in chips}):
        message = Message.of("own.other_chip", workload=workload, measured=_list(elsewhere), asked=_list(chips))
        yield Fact(path, message)
    for chip in chips:
        asked = sorted(precision for at, precision in possible if at == chip)
        known = sorted({run.precision for run in measured if run.chip == chip})
        if known and (unknown := [precision for precision in asked if precision not in known]):
            code = "own.some_precisions" if set(known) & set(asked) else "own.other_precision"
            message = Message.of(code, workload=workload, chip=chip, measured=_list(known), asked=_list(unknown))
            yield Fact(f"{path}.precision", message)
        engines = sorted({run.engine for run in measured if (run.chip, run.precision) in possible and run.chip == chip})
        if engine and engines and engine not in engines:
            message = Message.of(
                "own.other_engine", workload=workload, chip=chip, measured=_list(engines), asked=engine
            )
            yield Fact(f"{path}.engine", message)


def _list(names: Sequence[str]) -> str:
    return ", ".join(names)
