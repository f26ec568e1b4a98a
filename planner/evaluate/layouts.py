"""Evaluate training layouts: step time, memory, and the interval of the step time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from models.arrays import Bools, Floats
from models.network.group_links import GroupLinks, Plant, dimension_links
from models.training.layouts import Layouts
from models.training.memory import training_memory
from models.training.step import Recipe, TrainingStep, training_step
from planner.problem.constants import ModelConstants
from planner.problem.facts import NO_NETWORK, ScaleOut, SystemFacts, TrainingFacts
from planner.problem.intervals import Interval, network

RECIPE = Recipe()


@dataclass(frozen=True, slots=True)
class TrainingSetup:
    """A training job on one type of system and network at one precision: all inputs of a step but the layout."""

    job: TrainingFacts
    system: SystemFacts
    precision: str
    constants: ModelConstants
    scaleout: ScaleOut = NO_NETWORK
    plant: Plant | None = (
        None  # a network whose rates depend on the size and stride of a group; None: all groups get the above
    )


def evaluate_layouts(setup: TrainingSetup, layouts: Layouts) -> TrainingStep:
    """Compute the training steps of all layouts, whether they fit in memory or not.

    Step times are corrected by the user's own measurements of the chip where the catalog has them.
    """
    job, system = setup.job, setup.system
    step = training_step(
        job.architecture, system.rates(setup.precision, setup.scaleout), layouts, precision=setup.precision, family=system.family,
        recipe=RECIPE, global_batch_sequences=job.batch_sequences, sequence_tokens=job.spec.sequence_tokens, constants=setup.constants.training,
        scaleout=scaleout_rates(setup.plant, layouts),
    )  # fmt: skip
    factor = interval_of(setup).factor
    return step if factor == 1.0 else slowed(step, factor)


def _links(plant: Plant, layouts: Layouts) -> Mapping[str, GroupLinks]:
    return dimension_links(plant, layouts.tp, layouts.cp, layouts.dp, layouts.pp, layouts.ep)


def scaleout_rates(plant: Plant | None, layouts: Layouts) -> dict[str, Floats] | None:
    """Compute the scale-out bandwidth of a chip by parallel dimension, [layout] [byte/s]; None for a uniform network."""
    if plant is None:
        return None
    return {name: np.asarray(links.bytes_per_s) for name, links in _links(plant, layouts).items()}


def carries(plant: Plant | None, layouts: Layouts) -> Bools:
    """Tell for each layout whether the network connects the members of all its groups."""
    if plant is None:
        return np.ones(len(layouts), bool)
    carried: Bools = np.ones(len(layouts), bool)
    for links in _links(plant, layouts).values():
        carried &= np.asarray(links.carried) & (np.asarray(links.bytes_per_s) > 0.0)
    return carried


def interval_of(setup: TrainingSetup, tier: str | None = None) -> Interval:
    """Look up the 80 % interval of the step time; `tier`: how close the case is to the measurements, derived if None."""
    label = network(setup.job.architecture.experts)
    return setup.constants.measured_training.interval(setup.system.chip, setup.precision, label, tier)


def memory_needed(job: TrainingFacts, layouts: Layouts, constants: ModelConstants, shrink: int = 1) -> Floats:
    """Compute the memory of the fullest chip [byte], [layout].

    `shrink`: memory must also suffice when only 1 / shrink of the data-parallel replicas run, which makes shards larger.
    """

    def memory(some: Layouts) -> Floats:
        found: Floats = training_memory(
            job.architecture,
            some,
            global_batch_sequences=job.batch_sequences,
            sequence_tokens=job.spec.sequence_tokens,
            constants=constants.training,
            recipe=RECIPE,
        ).total
        return found

    needed = memory(layouts)
    if shrink == 1:
        return needed
    sizes = {name: getattr(layouts, name) for name in Layouts.__dataclass_fields__}
    shrunk = Layouts(**sizes | {"dp": np.maximum(layouts.dp // shrink, 1)})
    return np.maximum(needed, memory(shrunk))


def slowed(step: TrainingStep, factor: float) -> TrainingStep:
    """Multiply all times of the steps by a factor."""
    return TrainingStep(
        step_s=step.step_s * factor, tokens_per_s=step.tokens_per_s / factor, mfu=step.mfu / factor, hfu=step.hfu / factor,
        memory_bytes=step.memory_bytes, breakdown={name: part * factor for name, part in step.breakdown.items()},
    )  # fmt: skip
