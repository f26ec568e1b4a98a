"""Evaluate interruptions of training: failures, checkpoints, spares and pre-emption."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.storage import checkpoint_bytes_per_s, reading_bytes_per_s
from models.training.adapters import adapter_parameters
from models.training.layouts import Layouts
from models.training.memory import WEIGHT_BYTES
from models.training.reliability import (
    best_goodput,
    checkpoint_interval_s,
    checkpoint_write_s,
    mean_time_between_interruptions_s,
    preemption_s,
    spares_needed,
)
from models.transformer.architecture import parameter_counts
from planner.evaluate.layouts import recipe_of
from planner.problem.constants import Reliability
from planner.problem.facts import OfferFacts, Problem, SiteFacts, SpotFacts, SystemFacts, TrainingFacts


@dataclass(frozen=True, slots=True)
class RunTerms:
    """Terms on which a training run holds its systems, as far as its interruptions depend on them."""

    system_chips: int = 1  # chips of one system; a spot market takes whole systems
    spot: SpotFacts | None = None
    storage_bytes_per_s: float = math.inf  # of the site; checkpoints are written at the usual rate where it states none
    owned: bool = False  # owned systems must be repaired by the owner

    @classmethod
    def of(cls, system: SystemFacts, offer: OfferFacts, site: SiteFacts) -> RunTerms:
        """Read the terms of systems obtained by an offer at a site."""
        return cls(system.chips, offer.spot, site.storage_bytes_per_s, offer.how == "buy")


@dataclass(frozen=True, slots=True)
class Interruptions:
    """Frequency and cost of the interruptions of a run."""

    between_s: float  # mean time between two interruptions of one chip
    write_s: float  # time to write one checkpoint
    restart_s: float  # time from an interruption until the run makes progress again
    checkpoint_bytes: float  # of what is trained
    load_bytes: float  # to start again: a checkpoint, and the weights that are frozen


def interruptions(job: TrainingFacts, facts: Reliability, terms: RunTerms = RunTerms()) -> Interruptions:
    """Derive how often a job is interrupted and what each interruption costs, on the given terms."""
    recipe, every = recipe_of(job), parameter_counts(job.architecture).total
    parameters = float(adapter_parameters(job.architecture, recipe)) if recipe.adapter_rank else every
    stated = math.isfinite(terms.storage_bytes_per_s)
    bandwidth = terms.storage_bytes_per_s if stated else facts.storage_bytes_per_s
    write_s = float(checkpoint_write_s(parameters, facts.checkpoint_bytes_per_parameter, bandwidth))
    size = parameters * facts.checkpoint_bytes_per_parameter
    loaded = size + (WEIGHT_BYTES * every if recipe.adapter_rank else 0.0)
    recovery_s = facts.recovery_s + terms.owned * facts.unspared_s
    spot = terms.spot
    if spot is None:
        return Interruptions(facts.chip_interruption_s, write_s, recovery_s, size, loaded)
    failure_rate = 1.0 / facts.chip_interruption_s  # of one chip [1/s]
    reclaim_rate = 1.0 / (spot.interval_s * terms.system_chips)  # of one chip [1/s]
    # Only an interruption by the spot market also waits for a new system.
    restart_s = recovery_s + spot.wait_s * reclaim_rate / (failure_rate + reclaim_rate)
    return Interruptions(1.0 / (failure_rate + reclaim_rate), write_s, restart_s, size, loaded)


def goodput_of(job: TrainingFacts, chips: int, facts: Reliability, terms: RunTerms = RunTerms()) -> float:
    """Compute the goodput: the share of time not lost to interruptions and checkpoints, at the best checkpoint interval."""
    found = interruptions(job, facts, terms)
    with np.errstate(over="ignore"):  # a run so wide that it is always interrupted has goodput 0
        return float(best_goodput(chips, found.between_s, found.write_s, found.restart_s))


def preemption_s_of(job: TrainingFacts, facts: Reliability, storage_bytes_per_s: float = math.inf) -> float:
    """Compute the time that a job loses each time it gets its width back; 0 where the spec asks for no pre-emption cost."""
    asked = job.spec.preemption
    if asked is None:
        return 0.0
    write_s = interruptions(job, facts, RunTerms(storage_bytes_per_s=storage_bytes_per_s)).write_s
    return float(preemption_s(write_s, facts.recovery_s)) if asked.restart is None else asked.restart


def storage_rates(
    job: TrainingFacts,
    layout: Mapping[str, int],
    tokens_per_s: float,
    goodput: float,
    terms: RunTerms,
    problem: Problem,
) -> tuple[float, float]:
    """Compute (data read, checkpoints written) of a job at full width [byte/s]; `tokens_per_s` includes the goodput."""
    found = interruptions(job, problem.constants.reliability, terms)
    between_s = mean_time_between_interruptions_s(int(Layouts.of(**layout).chips[0]), found.between_s)
    token_bytes = problem.bytes_per_token if job.spec.token_bytes is None else job.spec.token_bytes
    interval_s = checkpoint_interval_s(found.write_s, between_s)
    written = checkpoint_bytes_per_s(found.checkpoint_bytes, interval_s, found.write_s)
    return float(reading_bytes_per_s(tokens_per_s / goodput, token_bytes)) if goodput else 0.0, float(written)


def spares_of(job: TrainingFacts, chips: int, system: SystemFacts, owned: bool, facts: Reliability) -> float:
    """Count spare systems: the fewest with which an owned job has its full width in the asked share of time; 0 if rented."""
    if not owned:
        return 0.0
    asked = facts.availability if job.spec.availability is None else job.spec.availability
    failure_s = facts.chip_failure_s / system.chips
    return float(spares_needed(math.ceil(chips / system.chips), failure_s, facts.repair_s, asked))
