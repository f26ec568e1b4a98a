"""Evaluate a training layout of a given width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.energy.power import training_power_w
from models.network.group_links import Plant
from models.training.layouts import Layouts, is_legal
from planner.evaluate.interruptions import goodput_of
from planner.evaluate.layouts import carries, evaluate, interval_of, memory_needed
from planner.problem.facts import Problem, SpotFacts, SystemFacts, TrainingFacts
from planner.problem.intervals import Interval

LEAST_WIDTH = 4  # a running job keeps at least 1 / LEAST_WIDTH of its data-parallel replicas


@dataclass(frozen=True, slots=True)
class Width:
    """The best layout of a job on a number of chips; plain numbers."""

    layout: Mapping[str, int]
    precision: str
    chips: int
    tokens_per_s: float
    mfu: float
    hfu: float
    memory_bytes: float
    breakdown: Mapping[str, float]  # shares of the step
    fits: bool
    goodput: float  # share of the time that makes lasting progress; counted in tokens_per_s
    time_s: Mapping[str, float]  # "step", and "run": all tokens at this width, goodput counted
    interval: Interval


def evaluate_one(
    job: TrainingFacts, system: SystemFacts, scaleout: float, layout: Mapping[str, int], precision: str, problem: Problem, tier: str,
    plant: Plant | None = None, spot: SpotFacts | None = None, storage_bytes_per_s: float = math.inf, owned: bool = False,
) -> Width:  # fmt: skip
    """One layout in plain numbers, its interval that of a stated tier.

    Raises ValueError for one that no framework would accept, or that the network does not carry.
    """
    layouts = Layouts.of(**layout)
    run = {"global_batch_sequences": job.batch_sequences, "sequence_tokens": job.spec.sequence_tokens}
    if not is_legal(job.architecture, layouts, scaleup_chips=system.scaleup_chips, **run)[0]:
        raise ValueError(f"layout {dict(layout)} is not legal")
    if not carries(plant, layouts)[0]:
        raise ValueError(f"layout {dict(layout)} has a group that the network does not carry")
    step = evaluate(job, system, scaleout, precision, layouts, problem.constants, plant)
    return evaluate_width(
        job,
        system,
        layouts,
        0,
        precision,
        step,
        memory_needed(job, layouts, problem.constants, LEAST_WIDTH),
        problem,
        tier,
        spot,
        storage_bytes_per_s,
        owned,
    )


def evaluate_width(
    job: TrainingFacts, system: SystemFacts, layouts: Layouts, i: int, precision: str, step, memory: np.ndarray, problem: Problem,
    tier: str | None = None, spot: SpotFacts | None = None, storage_bytes_per_s: float = math.inf, owned: bool = False,
) -> Width:  # fmt: skip
    seconds = float(step.step_s[i])
    lasting = goodput_of(
        job, int(layouts.chips[i]), problem.constants.reliability, system.chips, spot, storage_bytes_per_s, owned
    )
    tokens_per_s = float(step.tokens_per_s[i]) * lasting
    return Width(
        layout=layouts.row(i),
        precision=precision,
        chips=int(layouts.chips[i]),
        tokens_per_s=tokens_per_s,
        mfu=float(step.mfu[i]),
        hfu=float(step.hfu[i]),
        memory_bytes=float(memory[i]),
        breakdown={name: float(part[i]) / seconds for name, part in step.breakdown.items()},
        fits=bool(memory[i] <= system.hbm_bytes),
        goodput=lasting,
        time_s={"step": seconds, "run": job.spec.tokens / tokens_per_s if tokens_per_s else math.inf},
        interval=interval_of(job, system, precision, problem.constants, tier),
    )


def extra_power_w(system: SystemFacts, problem: Problem) -> float:
    """IT power above idle of one system in training [W]."""
    return max(float(training_power_w(system.power_w, problem.constants.power)) - system.idle_w, 0.0)
