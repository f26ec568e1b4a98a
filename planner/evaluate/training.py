"""Evaluate a training layout of a given width."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from models.arrays import Floats
from models.energy.power import training_power_w
from models.training.layouts import Layouts, is_legal
from models.training.step import TrainingStep
from planner.evaluate.interruptions import RunTerms, goodput_of
from planner.evaluate.layouts import TrainingSetup, carries, evaluate_layouts, fits, interval_of, memory_needed
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, SystemFacts
from planner.problem.intervals import Interval


@dataclass(frozen=True, slots=True)
class Width:
    """A layout of a job on a number of chips, evaluated; plain numbers."""

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


def evaluate_layout(setup: TrainingSetup, layout: Mapping[str, int], terms: RunTerms, tier: str) -> Width:
    """Evaluate one layout in plain numbers, with the interval of a stated tier.

    Raises ValueError for a layout that no framework accepts or that the network does not carry.
    """
    job, layouts = setup.job, Layouts.of(**layout)
    legal = is_legal(
        job.architecture,
        layouts,
        global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=setup.system.scaleup_chips,
    )
    if not legal[0]:
        raise ValueError(Message.of("evaluate.layout_not_legal", layout=str(dict(layout))).text())
    if not carries(setup, layouts)[0]:
        raise ValueError(Message.of("evaluate.group_not_carried", layout=str(dict(layout))).text())
    if layouts.offload[0] and not setup.system.host_bytes_per_s:
        raise ValueError(
            Message.of("evaluate.no_link_to_host", layout=str(dict(layout)), system=setup.system.name).text()
        )
    memory_bytes = memory_needed(setup, layouts)
    return width_of(setup, layouts, evaluate_layouts(setup, layouts), memory_bytes, 0, terms, tier)


def width_of(
    setup: TrainingSetup,
    layouts: Layouts,
    step: TrainingStep,
    memory_bytes: Floats,
    i: int,
    terms: RunTerms,
    tier: str | None = None,
) -> Width:
    """Take the i-th of evaluated layouts in plain numbers, its throughput reduced by the goodput."""
    job, chips, seconds = setup.job, int(layouts.chips[i]), float(step.step_s[i])
    goodput = goodput_of(job, chips, setup.constants.reliability, terms)
    tokens_per_s = float(step.tokens_per_s[i]) * goodput
    return Width(
        layout=layouts.row(i),
        precision=setup.precision,
        chips=chips,
        tokens_per_s=tokens_per_s,
        mfu=float(step.mfu[i]),
        hfu=float(step.hfu[i]),
        memory_bytes=float(memory_bytes[i]),
        breakdown=breakdown_of(step, i, seconds),
        fits=bool(fits(setup, layouts.take([i]), memory_bytes[[i]])[0]),
        goodput=goodput,
        time_s={"step": seconds, "run": job.spec.tokens / tokens_per_s if tokens_per_s else math.inf},
        interval=interval_of(setup, chips, tier),
    )


def breakdown_of(step: TrainingStep, i: int, seconds: float = 1.0) -> dict[str, float]:
    """Return the parts of the i-th step over `seconds`; traffic to the host only where something is offloaded."""
    parts = {name: float(part[i]) / seconds for name, part in step.breakdown.items()}
    return {name: share for name, share in parts.items() if share or name != "offload"}


def extra_power_w(system: SystemFacts, problem: ResolvedSpec) -> float:
    """Compute the IT power above idle of one system in training [W]."""
    return max(float(training_power_w(system.power_w, problem.constants.power)) - system.idle_w, 0.0)
