"""Evaluate training layouts: step time, memory, and the interval of the step time."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from models.arrays import Bools, Floats, equal_rows, sum_of
from models.formats import element_bytes, kind_of
from models.network.group_links import Plant, dimension_links
from models.training.flops import TRAINING_PASSES, training_flops_per_token
from models.training.layouts import Layouts
from models.training.memory import host_bytes, training_memory
from models.training.step import Recipe, TrainingStep, training_step
from models.transformer.encoder import encoder_flops
from planner.evaluate.serving_state import media_of
from planner.problem.constants import ModelConstants
from planner.problem.facts import NO_NETWORK, ScaleOut, SystemFacts, TrainingFacts
from planner.problem.intervals import Interval, Run, network
from planner.spec.workloads import Adapters, Training

GROUP_FIELDS = ("tp", "cp", "dp", "pp", "ep")  # which chips form the groups that exchange


def recipe_of(job: TrainingFacts, precision: str = "bf16") -> Recipe:
    """Return what the software of a job does: what its tuning asks for, and otherwise what unknown software is taken to do."""
    spec = job.spec
    plain = Recipe(example_tokens=float(spec.example_tokens or 0), operand_bytes=element_bytes(precision))
    if isinstance(spec, Training):
        software = spec.software
        plain = replace(
            plain, optimizer=spec.optimizer, gradient_bytes=element_bytes(spec.gradients), framework=software.framework,
            fused_dispatch=software.dispatcher != "plain", overlapped_exchange=software.dispatcher == "overlapped", cuda_graphs=software.graphs,
            mtp_layers=software.prediction_layers, narrow_activations=software.activations == "operands",
        )  # fmt: skip
    if spec.tuning != "lora":
        return plain
    adapters = spec.adapters or Adapters()
    return replace(plain, adapter_rank=adapters.rank, adapts_ffn=adapters.targets == "all")


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

    @property
    def recipe(self) -> Recipe:
        """Return what the software of the job does."""
        return recipe_of(self.job, self.precision)


def evaluate_layouts(setup: TrainingSetup, layouts: Layouts) -> TrainingStep:
    """Compute the training steps of all layouts, whether they fit in memory or not.

    Step times are corrected by the user's own measurements of the chip where the catalog has them.
    """
    job, system = setup.job, setup.system
    step = training_step(
        job.architecture, system.rates(setup.precision, setup.scaleout), layouts, precision=setup.precision, family=system.family,
        recipe=setup.recipe, global_batch_sequences=job.batch_sequences, sequence_tokens=job.spec.sequence_tokens, constants=setup.constants.training,
        scaleout=scaleout_rates(setup.plant, layouts),
    )  # fmt: skip
    factor = _interval(setup, None, None).factor * media_factor(setup)
    return step if factor == 1.0 else slowed(step, factor)


def media_factor(setup: TrainingSetup) -> float:
    """Compute by how much the encoders of a job's media stretch its steps: their FLOPs beside its own, at its own efficiency.

    A frozen encoder only runs forward; one that is trained takes three times that.
    """
    spec = setup.job.spec
    if not isinstance(spec, Training) or not spec.media:
        return 1.0
    own = (
        float(training_flops_per_token(setup.job.architecture, spec.sequence_tokens, setup.recipe))
        * spec.sequence_tokens
    )
    encoders = sum_of(
        (TRAINING_PASSES if block.trained else 1.0) * float(encoder_flops(media_of(block, False).encoder, block.items))
        for block in spec.media
    )
    return 1.0 + encoders / own


def _links(plant: Plant, layouts: Layouts) -> dict[str, tuple[Floats, Bools]]:
    """Predict (bandwidth, connected) by parallel dimension, [layout]; once for layouts with the same groups."""
    first, place = equal_rows([getattr(layouts, name) for name in GROUP_FIELDS])
    groups = layouts.take(first)
    found = dimension_links(plant, groups.tp, groups.cp, groups.dp, groups.pp, groups.ep)
    return {
        name: (np.asarray(links.bytes_per_s, float)[place], np.asarray(links.carried, bool)[place])
        for name, links in found.items()
    }


def scaleout_rates(plant: Plant | None, layouts: Layouts) -> dict[str, Floats] | None:
    """Compute the scale-out bandwidth of a chip by parallel dimension, [layout] [byte/s]; None for a uniform network."""
    if plant is None:
        return None
    return {name: rates for name, (rates, _) in _links(plant, layouts).items()}


def carries(setup: TrainingSetup, layouts: Layouts) -> Bools:
    """Tell for each layout whether the network connects the members of all its groups."""
    if setup.plant is None:
        connected: Bools = (layouts.chips <= setup.system.scaleup_chips) | (setup.scaleout.bytes_per_s > 0.0)
        return connected
    carried: Bools = np.ones(len(layouts), bool)
    for rates, connected in _links(setup.plant, layouts).values():
        carried &= connected & (rates > 0.0)
    return carried


def interval_of(setup: TrainingSetup, chips: float, tier: str | None = None) -> Interval:
    """Look up the 80 % interval of the step time; `tier`: how close the case is to the measurements, derived if None."""
    return _interval(setup, tier, run_of(setup, chips))


def _interval(setup: TrainingSetup, tier: str | None, run: Run | None) -> Interval:
    label = network(setup.job.architecture.experts)
    return setup.constants.measured_training.interval(setup.system.chip, kind_of((), setup.precision), label, tier, run)


def run_of(setup: TrainingSetup, chips: float) -> Run:
    """Describe a job on a number of chips as its interval sees it."""
    job = setup.job
    return Run.of(job.architecture, chips, job.spec.sequence_tokens, job.batch_sequences, setup.precision)


def memory_needed(setup: TrainingSetup, layouts: Layouts) -> Floats:
    """Compute the memory of the fullest chip [byte], [layout]."""
    job = setup.job
    found: Floats = training_memory(
        job.architecture,
        layouts,
        global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        constants=setup.constants.training,
        recipe=setup.recipe,
    ).total
    return found


def fits(setup: TrainingSetup, layouts: Layouts, memory_bytes: Floats) -> Bools:
    """Tell for each layout whether `memory_bytes` fit on the chip, and the offloaded part in the memory of its host."""
    within: Bools = memory_bytes <= setup.system.hbm_bytes
    if not layouts.offload.any():
        return within
    kept = host_bytes(
        setup.job.architecture,
        layouts,
        global_batch_sequences=setup.job.batch_sequences,
        sequence_tokens=setup.job.spec.sequence_tokens,
        recipe=setup.recipe,
    )
    linked = (layouts.offload == 0) | (setup.system.host_bytes_per_s > 0.0)
    held: Bools = within & linked & (kept <= setup.system.host_bytes)
    return held


def slowed(step: TrainingStep, factor: float) -> TrainingStep:
    """Multiply all times of the steps by a factor."""
    return TrainingStep(
        step_s=step.step_s * factor, tokens_per_s=step.tokens_per_s / factor, mfu=step.mfu / factor, hfu=step.hfu / factor,
        memory_bytes=step.memory_bytes, breakdown={name: part * factor for name, part in step.breakdown.items()},
    )  # fmt: skip
