"""Evaluate interruptions of training: failures, checkpoints, spares and pre-emption."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from catalog.units import HOUR_S
from models.storage import checkpoint_bytes_per_s, reading_bytes_per_s
from models.training.adapters import adapter_parameters
from models.training.layouts import Layouts
from models.training.memory import WEIGHT_BYTES
from models.training.reliability import (
    best_goodput,
    checkpoint_interval_s,
    goodput_losses,
    mean_time_between_interruptions_s,
    preemption_s,
    spares_needed,
)
from models.transformer.architecture import parameter_counts
from planner.evaluate.layouts import recipe_of
from planner.problem.constants import Reliability
from planner.problem.facts import OfferFacts, ResolvedSpec, SiteFacts, SystemFacts, TrainingFacts
from planner.problem.owned import SpotFacts

WIDE_CHIPS, LEAST_RUN_S = 256, 6 * HOUR_S  # chips of a job above which nobody resumes it for less than a shift
LOSSES = ("checkpoints", "work_done_again", "restarts")  # losses of a run, in the order in which they are added


@dataclass(frozen=True, slots=True)
class RunTerms:
    """Terms on which a training run holds its systems, as far as its interruptions depend on them."""

    system_chips: int = 1  # chips of one system; a spot market takes whole systems
    spot: SpotFacts | None = None
    storage_bytes_per_s: float = (
        math.inf
    )  # storage of the site, for all chips of the run; no limit where it states none
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
    stall_s: float  # time for which the run stands still for it
    read_s: float  # time to read it back
    restart_s: float  # time from an interruption until the run makes progress again, reading back included
    checkpoint_bytes: float  # state of the model in training


def checkpoint_rate_bytes_per_s(
    job: TrainingFacts, chips: int, facts: Reliability, site_bytes_per_s: float = math.inf
) -> float:
    """Compute the rate at which a run writes and reads checkpoints:  min(n b, B).

    Units: chips n [1], rate of the share of a chip b, as the job states it or as published runs have it, and of the site B [byte/s].
    Reference: figures of the catalog (BLOOM-176B on 384 chips, Llama 3 on 16,384).
    """
    asked = job.spec.checkpoints
    stated = None if asked is None else asked.bandwidth_per_chip
    site = site_bytes_per_s if math.isfinite(site_bytes_per_s) else facts.site_checkpoint_bytes_per_s
    return min(chips * (facts.chip_checkpoint_bytes_per_s if stated is None else stated), site)


def interruptions(job: TrainingFacts, chips: int, facts: Reliability, terms: RunTerms = RunTerms()) -> Interruptions:
    """Derive how often a job is interrupted and what each interruption costs, on the given terms; `chips` hold its state."""
    size, loaded = state_sizes(job, facts)
    asked, rate = job.spec.checkpoints, checkpoint_rate_bytes_per_s(job, chips, facts, terms.storage_bytes_per_s)
    write_s, read_s = size / rate, loaded / rate * facts.reads_back
    stall_s = write_s if asked is None or asked.stall is None else min(asked.stall, write_s)
    recovery_s = _recovery_s(job, facts) + terms.owned * facts.unspared_s + read_s
    spot = terms.spot
    if spot is None:
        return Interruptions(facts.chip_interruption_s, write_s, stall_s, read_s, recovery_s, size)
    failure_rate = 1.0 / facts.chip_interruption_s  # failures of one chip [1/s]
    reclaim_rate = 1.0 / (spot.interval_s * terms.system_chips)  # interruptions of one chip [1/s]
    # Only an interruption by the spot market also waits for a new system.
    restart_s = recovery_s + spot.wait_s * reclaim_rate / (failure_rate + reclaim_rate)
    return Interruptions(1.0 / (failure_rate + reclaim_rate), write_s, stall_s, read_s, restart_s, size)


def state_sizes(job: TrainingFacts, facts: Reliability) -> tuple[float, float]:
    """Compute (checkpoint of the trained parameters, what a restart loads: the checkpoint and the weights that are frozen) [byte]."""
    recipe, every = recipe_of(job), parameter_counts(job.architecture).total
    parameters = float(adapter_parameters(job.architecture, recipe)) if recipe.adapter_rank else every
    size = parameters * facts.checkpoint_bytes_per_parameter
    return size, size + (WEIGHT_BYTES * every if recipe.adapter_rank else 0.0)


def _recovery_s(job: TrainingFacts, facts: Reliability) -> float:
    asked = job.spec.checkpoints
    return facts.recovery_s if asked is None or asked.recovery is None else asked.recovery


def goodput_of(
    job: TrainingFacts, chips: int, facts: Reliability, terms: RunTerms = RunTerms(), writers: int | None = None
) -> float:
    """Compute the goodput: the share of time not lost to interruptions and checkpoints, at the best checkpoint interval.

    `writers`: chips that hold the state of training, if not all.
    """
    found = interruptions(job, chips if writers is None else writers, facts, terms)
    with np.errstate(over="ignore"):  # a run so wide that it is always interrupted has goodput 0
        return float(best_goodput(chips, found.between_s, found.stall_s, found.restart_s, found.write_s))


def goodput_losses_of(
    job: TrainingFacts, chips: int, facts: Reliability, terms: RunTerms = RunTerms(), writers: int | None = None
) -> dict[str, float]:
    """Compute what the goodput falls short of 1 by, by cause; arguments as for `goodput_of`."""
    found = interruptions(job, chips if writers is None else writers, facts, terms)
    with np.errstate(over="ignore"):
        losses = goodput_losses(chips, found.between_s, found.stall_s, found.restart_s, found.write_s)
    return dict(zip(LOSSES, map(float, losses), strict=True))


def checkpoints_of(
    job: TrainingFacts, chips: int, facts: Reliability, terms: RunTerms = RunTerms(), writers: int | None = None
) -> dict[str, float]:
    """Compute when a job writes checkpoints and what each costs; arguments as for `goodput_of`.

    `interval_s`: work between two of them at the best interval, at least as long as writing goes on beside it; `write_s`: time to write one;
    `stall_s`: time for which the run stands still for it; `bytes`: size. Reference: `models.training.reliability.checkpoint_interval_s`.
    """
    found = interruptions(job, chips if writers is None else writers, facts, terms)
    between_s = mean_time_between_interruptions_s(chips, found.between_s)
    return {
        "interval_s": _interval_s(found, float(between_s)),
        "write_s": found.write_s,
        "stall_s": found.stall_s,
        "bytes": found.checkpoint_bytes,
    }


def _interval_s(found: Interruptions, between_s: float) -> float:
    """Compute the work between two checkpoints [s]; `between_s`: mean time between interruptions of the run."""
    return max(float(checkpoint_interval_s(found.stall_s, between_s)), found.write_s - found.stall_s)


def preemption_s_of(job: TrainingFacts, chips: int, facts: Reliability, storage_bytes_per_s: float = math.inf) -> float:
    """Compute the time that a job loses each time it gets its width back; 0 where the spec asks for no pre-emption cost."""
    asked = job.spec.preemption
    if asked is None:
        return 0.0
    found = interruptions(job, chips, facts, RunTerms(storage_bytes_per_s=storage_bytes_per_s))
    restart_s = _recovery_s(job, facts) + found.read_s
    return float(preemption_s(found.write_s, restart_s)) if asked.restart is None else asked.restart


def least_run_s_of(job: TrainingFacts, chips: int) -> float:
    """Compute for how long width that returns stays at least [s]: as stated, else `LEAST_RUN_S` on more than `WIDE_CHIPS` chips; 0 without a cost of pauses."""
    asked = job.spec.preemption
    if asked is None:
        return 0.0
    if asked.least_run is not None:
        return asked.least_run
    return LEAST_RUN_S if chips > WIDE_CHIPS else 0.0


def storage_rates(
    job: TrainingFacts,
    layout: Mapping[str, int],
    tokens_per_s: float,
    goodput: float,
    terms: RunTerms,
    problem: ResolvedSpec,
) -> tuple[float, float]:
    """Compute (data read, checkpoints written) of a job at full width [byte/s]; `tokens_per_s` includes the goodput."""
    chips = int(Layouts.of(**layout).chips[0])
    found = interruptions(job, chips, problem.constants.reliability, terms)
    between_s = float(mean_time_between_interruptions_s(chips, found.between_s))
    token_bytes = problem.bytes_per_token if job.spec.token_bytes is None else job.spec.token_bytes
    written = checkpoint_bytes_per_s(found.checkpoint_bytes, _interval_s(found, between_s), found.stall_s)
    return float(reading_bytes_per_s(tokens_per_s / goodput, token_bytes)) if goodput else 0.0, float(written)


def spares_of(job: TrainingFacts, chips: int, system: SystemFacts, owned: bool, facts: Reliability) -> float:
    """Count spare systems: the fewest with which an owned job has its full width in the asked share of time; 0 if rented."""
    if not owned:
        return 0.0
    asked = facts.availability if job.spec.availability is None else job.spec.availability
    failure_s = facts.chip_failure_s / system.chips
    return float(spares_needed(math.ceil(chips / system.chips), failure_s, facts.repair_s, asked))
