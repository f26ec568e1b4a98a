"""Evaluate given training layouts: time, memory, and intervals."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from models.network.group_links import GroupLinks, Plant, dimension_links
from models.training.layouts import Layouts
from models.training.memory import training_memory
from models.training.step import Recipe, TrainingStep, training_step
from planner.problem.constants import ModelConstants
from planner.problem.facts import SystemFacts, TrainingFacts
from planner.problem.intervals import Interval, network

RECIPE = Recipe()


def evaluate(
    job: TrainingFacts, system: SystemFacts, scaleout_bytes_per_s: float, precision: str, layouts: Layouts, constants: ModelConstants,
    plant: Plant | None = None,
) -> TrainingStep:  # fmt: skip
    """Steps of the layouts, whether they fit or not, corrected by own measurements of the chip where the catalog has them.

    `plant`: a network that gives groups of different size and stride different rates; without one all get `scaleout_bytes_per_s`.
    """
    step = training_step(
        job.architecture, system.rates(precision, scaleout_bytes_per_s), layouts, precision=precision, family=system.family, recipe=RECIPE,
        global_batch_sequences=job.batch_sequences, sequence_tokens=job.spec.sequence_tokens, constants=constants.training,
        scaleout=scaleout_rates(plant, layouts),
    )  # fmt: skip
    factor = interval_of(job, system, precision, constants).factor
    return step if factor == 1.0 else scaled(step, factor)


def _links(plant: Plant, layouts: Layouts) -> Mapping[str, GroupLinks]:
    return dimension_links(plant, layouts.tp, layouts.cp, layouts.dp, layouts.pp, layouts.ep)


def scaleout_rates(plant: Plant | None, layouts: Layouts) -> dict[str, np.ndarray] | None:
    """What a chip of each parallel dimension can send out of its system, by layout [byte/s]; None where nothing differs."""
    return (
        None
        if plant is None
        else {name: np.asarray(links.bytes_per_s) for name, links in _links(plant, layouts).items()}
    )


def carries(plant: Plant | None, layouts: Layouts) -> np.ndarray:
    """Which layouts have a way between the members of all their groups."""
    if plant is None:
        return np.ones(len(layouts), bool)
    found = _links(plant, layouts).values()
    return np.logical_and.reduce([np.asarray(links.carried) & (np.asarray(links.bytes_per_s) > 0.0) for links in found])


def interval_of(
    job: TrainingFacts, system: SystemFacts, precision: str, constants: ModelConstants, tier: str | None = None
) -> Interval:
    """The 80 % interval of the job's step time on a system."""
    return constants.measured_training.interval(system.chip, precision, network(job.architecture.experts), tier)


def memory_needed(job: TrainingFacts, layouts: Layouts, constants: ModelConstants, narrowest: int = 1) -> np.ndarray:
    """Memory of the fullest chip [byte], also when the job has shrunk to its narrowest form."""
    run = {
        "global_batch_sequences": job.batch_sequences, "sequence_tokens": job.spec.sequence_tokens, "constants": constants.training,
        "recipe": RECIPE,
    }  # fmt: skip
    needed = training_memory(job.architecture, layouts, **run).total
    if narrowest == 1:
        return needed
    sizes = {name: getattr(layouts, name) for name in Layouts.__dataclass_fields__}
    shrunk = Layouts(**sizes | {"dp": np.maximum(layouts.dp // narrowest, 1)})
    return np.maximum(needed, training_memory(job.architecture, shrunk, **run).total)


def scaled(step: TrainingStep, factor: float) -> TrainingStep:
    """The same steps, slower by a factor."""
    return TrainingStep(
        step_s=step.step_s * factor, tokens_per_s=step.tokens_per_s / factor, mfu=step.mfu / factor, hfu=step.hfu / factor,
        memory_bytes=step.memory_bytes, breakdown={name: part * factor for name, part in step.breakdown.items()},
    )  # fmt: skip
