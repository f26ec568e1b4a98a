"""Evaluate interruptions of training: failures, checkpoints, spares and pre-emption."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.storage import checkpoint_bytes_per_s, reading_bytes_per_s
from models.training.layouts import Layouts
from models.training.reliability import (
    best_goodput,
    checkpoint_interval_s,
    checkpoint_write_s,
    mean_time_between_interruptions_s,
    preemption_s,
    spares_needed,
)
from models.transformer.architecture import parameter_counts
from planner.problem.constants import Reliability
from planner.problem.facts import Problem, SpotFacts, SystemFacts, TrainingFacts


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Of a whole run: how often, and what each costs."""

    between_s: float  # mean time between two, of one chip
    write_s: float
    restart_s: float
    checkpoint_bytes: float


def interruptions(
    job: TrainingFacts,
    facts: Reliability,
    chips_per_system: int = 1,
    spot: SpotFacts | None = None,
    storage_bytes_per_s: float = math.inf,
    owned: bool = False,
) -> Interruptions:
    """`storage_bytes_per_s`: of the site, where that is less than what checkpoints are usually written with; `owned`: systems are ours to repair."""
    parameters, bandwidth = (
        parameter_counts(job.architecture).total,
        min(storage_bytes_per_s, facts.storage_bytes_per_s),
    )
    write_s = float(checkpoint_write_s(parameters, facts.checkpoint_bytes_per_parameter, bandwidth))
    size, recovery_s = parameters * facts.checkpoint_bytes_per_parameter, facts.recovery_s + owned * facts.unspared_s
    if spot is None:
        return Interruptions(facts.chip_interruption_s, write_s, recovery_s, size)
    failing, taken = (
        1.0 / facts.chip_interruption_s,
        1.0 / (spot.interval_s * chips_per_system),
    )  # of a chip, per second
    restart_s = recovery_s + spot.wait_s * taken / (failing + taken)  # one in so many interruptions also waits
    return Interruptions(1.0 / (failing + taken), write_s, restart_s, size)


def goodput_of(
    job: TrainingFacts, chips: int, facts: Reliability, chips_per_system: int = 1, spot: SpotFacts | None = None, storage_bytes_per_s: float = math.inf,
    owned: bool = False,
) -> float:  # fmt: skip
    """Share of the time that is not lost to failures, systems taken away, and checkpoints at the best checkpoint interval."""
    found = interruptions(job, facts, chips_per_system, spot, storage_bytes_per_s, owned)
    with np.errstate(over="ignore"):  # so wide that it never gets on
        return float(best_goodput(chips, found.between_s, found.write_s, found.restart_s))


def preemption_s_of(job: TrainingFacts, facts: Reliability, storage_bytes_per_s: float = math.inf) -> float:
    """Time that a job loses whenever its width comes back; 0 where the spec counts none."""
    asked = job.spec.preemption
    if asked is None:
        return 0.0
    write_s = interruptions(job, facts, storage_bytes_per_s=storage_bytes_per_s).write_s
    return float(preemption_s(write_s, facts.recovery_s)) if asked.restart is None else asked.restart


def storage_rates(
    job: TrainingFacts, layout: Mapping[str, int], tokens_per_s: float, lasting: float, system: SystemFacts, spot: SpotFacts | None, storage_bytes_per_s: float,
    owned: bool, problem: Problem,
) -> tuple[float, float]:  # fmt: skip
    """(bytes read per second, bytes of checkpoints written per second) of a job at full width; `lasting`: its goodput."""
    facts = problem.constants.reliability
    found = interruptions(job, facts, system.chips, spot, storage_bytes_per_s, owned)
    between_s = mean_time_between_interruptions_s(int(Layouts.of(**layout).chips[0]), found.between_s)
    each = problem.bytes_per_token if job.spec.token_bytes is None else job.spec.token_bytes
    written = checkpoint_bytes_per_s(
        found.checkpoint_bytes, checkpoint_interval_s(found.write_s, between_s), found.write_s
    )
    return float(reading_bytes_per_s(tokens_per_s / lasting, each)) if lasting else 0.0, float(written)


def spares_of(job: TrainingFacts, chips: int, system: SystemFacts, owned: bool, facts: Reliability) -> float:
    """Systems held beside those at work, where they are ours to repair: the fewest with which the job has all of its own in the asked share of the time."""
    asked = facts.availability if job.spec.availability is None else job.spec.availability
    return (
        float(
            spares_needed(math.ceil(chips / system.chips), facts.chip_failure_s / system.chips, facts.repair_s, asked)
        )
        if owned
        else 0.0
    )
