"""Evaluate reinforcement learning: rollout engines and update layouts of given pools, and the iteration that they make in a given way.

Rates and times of decode, prefill and training steps are as in serving and training.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from catalog.units import HOUR_S
from models.arrays import Bools, Floats, sum_of
from models.energy.power import training_power_w
from models.formats import kind_of
from models.reinforcement.iteration import ASYNCHRONOUS, COLOCATED, STREAMING, Iteration, Phases, iteration
from models.reinforcement.lengths import ResponseLengths
from models.reinforcement.rollout import Batch, Rollout, Turns, rollout
from models.reinforcement.synchronise import Line, reload_s
from models.serving.constants import ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import memory_bytes_per_chip, slots
from models.serving.prefill import Prompts, prefill_time
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths
from models.training.flops import training_flops_per_token
from models.training.forward import forward_s
from models.training.layouts import Layouts, is_legal
from models.training.memory import WEIGHT_BYTES, state_bytes, training_memory
from models.training.run import Run
from models.training.step import TrainingStep
from models.transformer.architecture import Architecture, parameter_counts
from planner.evaluate.controller import controller_s
from planner.evaluate.disaggregated import pool_power_w
from planner.evaluate.engine_memory import with_memory
from planner.evaluate.exchange import side_of, synchronisation_s, weights_of
from planner.evaluate.interruptions import RunTerms, goodput_of
from planner.evaluate.layouts import TrainingSetup, carries, evaluate_layouts, fits, memory_needed, scaleout_rates
from planner.evaluate.serving import layout_of, precisions
from planner.evaluate.serving_layouts import runnable
from planner.messages import Message
from planner.problem.constants import ModelConstants
from planner.problem.facts import ScaleOut, SystemFacts
from planner.problem.intervals import Interval, kind_of_network, network
from planner.problem.reinforcement import ReinforcementFacts
from planner.spec.reinforcement import SCORING

ROLLOUT, UPDATE = "rollout", "update"  # roles of pools
PROMPTS_TOGETHER = 64.0  # that fill a chunk at the start of a rollout


@dataclass(frozen=True, slots=True)
class RolloutPool:
    """Chips of one system that roll out, with what the engines find on them."""

    system: SystemFacts
    scaleout: ScaleOut
    chips: int
    precision: str
    held_bytes: float = 0.0  # memory of each chip, taken by the state of training
    line: Line | None = None  # from the site of the update, where that is another one


@dataclass(frozen=True, slots=True)
class Engines:
    """Rollout layouts of a pool; arrays [layout]."""

    layouts: ServingLayouts
    replicas: Floats
    slots: Floats  # slots of a replica
    memory_bytes: Floats  # fullest chip
    rollout: Rollout


@dataclass(frozen=True, slots=True)
class Updates:
    """Update layouts of a pool; arrays [layout]."""

    layouts: Layouts
    step: TrainingStep  # mini-batch of the policy
    scoring_s: Floats
    update_s: Floats
    memory_bytes: Floats
    state_bytes: Floats  # fullest chip, between two iterations

    def take(self, i: int) -> Updates:
        """Take one layout."""
        at = np.array([i])
        step = TrainingStep(
            step_s=self.step.step_s[at], tokens_per_s=self.step.tokens_per_s[at], mfu=self.step.mfu[at], hfu=self.step.hfu[at],
            memory_bytes=self.step.memory_bytes[at], breakdown={name: part[at] for name, part in self.step.breakdown.items()},
        )  # fmt: skip
        arrays = (self.scoring_s, self.update_s, self.memory_bytes, self.state_bytes)
        return Updates(self.layouts.take(at), step, *(array[at] for array in arrays))


def batch_of(job: ReinforcementFacts, constants: ModelConstants) -> Batch:
    """Read the responses of one iteration."""
    spec, lengths = job.spec, job.spec.lengths
    endless = constants.reinforcement.endless_share if lengths.endless is None else lengths.endless
    turns = None
    if spec.tools is not None:
        tools, scv = spec.tools, spec.tools.cv**2
        places = math.inf if tools.environments is None else float(tools.environments)
        turns = Turns(tools.calls, tools.think, scv, tools.service, scv, places, float(tools.answer))
    return Batch(
        float(spec.responses),
        float(lengths.prompt),
        ResponseLengths(float(lengths.response), lengths.cv, float(lengths.limit), endless),
        turns,
    )


def rollout_constants(job: ReinforcementFacts, system: SystemFacts, constants: ModelConstants) -> ServingConstants:
    """Select the constants of the rollout's engine on a generation of chips."""
    found = constants.serving.profile(job.spec.engine or "other", system.family or "other")
    found = replace(found, batch_cap=found.batch_cap * job.engine.limit_factor)
    return with_memory(found, system.family or "other", system.hbm_bytes, job.engine)


def engines_of(
    job: ReinforcementFacts, pool: RolloutPool, layouts: ServingLayouts, constants: ModelConstants
) -> Engines | None:
    """Evaluate the rollout of one iteration in each layout that fits, on as many replicas as the pool holds; None where none fits."""
    arch, batch, spec = job.architecture, batch_of(job, constants), job.spec
    known, weights = rollout_constants(job, pool.system, constants), precisions(job.architecture, pool.precision)
    rates = pool.system.rates(pool.precision, pool.scaleout, hosted=True)
    free = replace(rates, hbm_bytes=max(rates.hbm_bytes - pool.held_bytes / known.usable_memory, 0.0))
    growth = (
        1.0 if batch.turns is None else 1.0 + batch.turns.calls * batch.turns.answer_tokens / batch.lengths.mean_tokens
    )
    lengths = Lengths(batch.prompt_tokens, batch.lengths.mean_tokens * growth)
    places = np.floor(
        np.asarray(slots(arch, free, layouts, lengths=lengths, precisions=weights, constants=known), float)
    )
    replicas = np.floor(pool.chips / np.asarray(layouts.chips, float))
    able = np.flatnonzero((places >= 1.0) & (replicas >= 1.0))
    if not able.size:
        return None
    layouts, places, replicas = layouts.take(able), places[able], replicas[able]
    factor = constants.reinforcement.rollout_factor
    across = layouts.take((slice(None), None))

    def step(sequences: Floats, context: Floats) -> tuple[Floats, dict[str, Floats]]:
        load = StepLoad(across.in_stage(sequences), context_tokens=context)
        found = step_time(arch, rates, across, load, precisions=weights, constants=known)
        shape = np.shape(sequences)
        parts = {name: factor * np.broadcast_to(part, shape) for name, part in found.breakdown.items()}
        return factor * np.broadcast_to(found.total_s, shape), parts

    def prefill(tokens: float, cached: float) -> Floats:
        prompts = Prompts(tokens, 0.0, PROMPTS_TOGETHER)
        found = prefill_time(
            arch, rates, layouts, prompts, None, precisions=weights, constants=known, cached_tokens=cached
        )
        return factor * np.asarray(found.occupancy_s, float)

    each = spec.responses / replicas
    prompts_s = each / spec.samples * prefill(batch.prompt_tokens, 0.0)
    if batch.turns is not None and batch.turns.answer_tokens:
        before = batch.prompt_tokens + 0.5 * growth * batch.lengths.mean_tokens
        prompts_s = prompts_s + each * batch.turns.calls * prefill(before + batch.turns.answer_tokens, before)
    found = rollout(step, batch, replicas, places, prompts_s, spec.staleness)
    held = np.minimum(places, each)
    used = np.asarray(
        memory_bytes_per_chip(arch, layouts, held, lengths=lengths, precisions=weights, constants=known), float
    )
    return Engines(layouts, replicas, places, used + pool.held_bytes, found)


def updates_of(setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts) -> Updates:
    """Evaluate scoring and update of one iteration in each layout.

    Critic and reward are taken to run at the policy's efficiency: their passes scale with FLOPs per token, their state with parameters.
    """
    step = evaluate_layouts(setup, layouts)
    return _updates(setup, layouts, job, step, update_memory(setup, layouts, job, step.memory_bytes))


@dataclass(frozen=True, slots=True)
class UpdateMemory:
    """Memory of update layouts on the fullest chip [layout] [byte]."""

    needed: Floats
    state: Floats  # part that stays between two iterations


def update_memory(setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts, step_bytes: Floats) -> UpdateMemory:
    """Compute the memory of scoring and update, the longest sample included; `step_bytes`: that of the steps of a mini-batch."""
    state, extra = _state_bytes(setup, layouts, job)
    needed = np.maximum(step_bytes, _longest_bytes(setup, layouts, job)) + extra
    return UpdateMemory(needed, state + extra)


def fitting_updates(setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts) -> Updates | None:
    """Evaluate the layouts that fit in memory, also of the host, which is computed first; None where none does."""
    step_bytes = memory_needed(setup, layouts)
    inside = np.flatnonzero(fits(setup, layouts, step_bytes))
    layouts = layouts.take(inside)
    memory = update_memory(setup, layouts, job, step_bytes[inside])
    able = np.flatnonzero(memory.needed <= setup.system.hbm_bytes)
    if not able.size:
        return None
    layouts = layouts.take(able)
    step = evaluate_layouts(setup, layouts)
    return _updates(setup, layouts, job, step, UpdateMemory(memory.needed[able], memory.state[able]))


def _updates(
    setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts, step: TrainingStep, memory: UpdateMemory
) -> Updates:
    """Compute scoring and update from the step of a mini-batch."""
    spec, factors = job.spec, setup.constants.reinforcement
    run = _run(setup, layouts)
    forward = factors.scoring_factor * forward_s(run, float(spec.responses))
    policy = float(training_flops_per_token(job.architecture, spec.sequence_tokens, setup.recipe))
    full = float(training_flops_per_token(job.architecture, spec.sequence_tokens))

    def relative(other: Architecture | None, base: float) -> float:
        return 0.0 if other is None else float(training_flops_per_token(other, spec.sequence_tokens)) / base

    passes = SCORING[spec.algorithm] + spec.reference + relative(job.reward, full) + relative(job.critic, full)
    trained = 1.0 + relative(job.critic, policy)
    update = factors.update_factor * trained * spec.epochs * spec.mini_batches * step.step_s
    return Updates(layouts, step, passes * forward, update, memory.needed, memory.state)


def _run(setup: TrainingSetup, layouts: Layouts) -> Run:
    """Describe the update of a mini-batch to the closed forms of training."""
    job, system = setup.job, setup.system
    return Run.of(
        job.architecture, system.rates(setup.precision, setup.scaleout), layouts, job.spec.sequence_tokens, setup.precision,
        setup.constants.training, system.family, setup.recipe, scaleout_rates(setup.plant, layouts),
    )  # fmt: skip


def _state_bytes(setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts) -> tuple[Floats, Floats]:
    """Compute (state of the policy, of critic, reference and reward) on the fullest chip [byte]; frozen ones are spread over all chips."""
    own = sum_of(state_bytes(job.architecture, layouts, setup.recipe), np.zeros(len(layouts)))
    parameters = parameter_counts(job.architecture).total
    extra = np.zeros(len(layouts))
    if job.critic is not None:
        extra = extra + own * parameter_counts(job.critic).total / parameters
    frozen = (parameters if job.spec.reference else 0.0) + (
        0.0 if job.reward is None else parameter_counts(job.reward).total
    )
    return own, extra + WEIGHT_BYTES * frozen / layouts.chips


def _longest_bytes(setup: TrainingSetup, layouts: Layouts, job: ReinforcementFacts) -> Floats:
    """Compute the memory that the longest sample needs, alone in its micro-batch [byte]."""
    alone = replace(layouts, micro_batch=np.ones_like(layouts.micro_batch))
    found: Floats = training_memory(
        job.architecture, alone, global_batch_sequences=job.batch_sequences, sequence_tokens=job.spec.longest_tokens,
        constants=setup.constants.training, recipe=setup.recipe,
    ).total  # fmt: skip
    return found


@dataclass(frozen=True, slots=True)
class UpdatePool:
    """Chips of one system that score and update, in one layout."""

    setup: TrainingSetup
    updates: Updates  # updates of one layout

    @property
    def chips(self) -> int:
        """Count the chips."""
        return int(self.updates.layouts.chips[0])


def on_host(system: SystemFacts, held_bytes: float) -> bool:
    """Tell whether the state of training moves to the memory of the host during a rollout: where it has room, and its link is known."""
    return system.host_bytes_per_s > 0 and held_bytes <= system.host_bytes


def held_in_rollout(pool: UpdatePool) -> float:
    """Compute the state of training that stays on a chip during the rollout of one pool in turns [byte]."""
    held = float(pool.updates.state_bytes[0])
    return 0.0 if on_host(pool.setup.system, held) else held


def iteration_of(
    job: ReinforcementFacts,
    way: str,
    update: UpdatePool,
    engines: Engines | None,
    pool: RolloutPool | None,
    constants: ModelConstants,
) -> Iteration:
    """Evaluate an iteration on an update pool with each of the rollout layouts; `engines` is None where responses are given."""
    spec, factors, system = job.spec, constants.reinforcement, update.setup.system
    rolling = 0 if pool is None or way == COLOCATED else pool.chips
    host_s = controller_s(job, update.chips + rolling, factors)
    scoring, updating = (float(times[0]) for times in (update.updates.scoring_s, update.updates.update_s))
    if engines is None or pool is None:
        phases = Phases(None, scoring, updating, 0.0, 0.0, host_s, spec.mini_batches)
        return iteration(way, phases)
    weights = weights_of(job, pool.precision, update.updates.layouts, update.chips)
    sender = side_of(system, update.setup.scaleout, update.chips)
    receiver = None if way == COLOCATED else side_of(pool.system, pool.scaleout, pool.chips)
    sync = synchronisation_s(weights, sender, receiver, factors, pool.line)
    reshard = 0.0
    if way == COLOCATED:
        held = float(update.updates.state_bytes[0])
        reshard = float(reload_s(held, system.host_bytes_per_s)) if on_host(system, held) else 0.0
    phases = Phases(engines.rollout, scoring, updating, sync, reshard, host_s, spec.mini_batches)
    return iteration(way, phases, spec.staleness, spec.partial_rollout)


def fitting(updates: Updates, system: SystemFacts) -> Bools:
    """Tell which update layouts fit in memory."""
    within: Bools = updates.memory_bytes <= system.hbm_bytes
    return within


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a way to run on given pools, in plain numbers."""

    iteration_s: float
    parts_s: Mapping[str, float]
    binds: str
    idle: Mapping[str, float]  # by pool
    goodput: float  # share of the time that makes lasting progress
    tokens_per_s: float  # trained, goodput counted
    mfu: float  # efficiency of the update, over all chips and the whole iteration
    hfu: float
    extra_w: Mapping[str, float]  # by pool, above idle of one system, over the whole iteration
    memory_bytes: Mapping[str, float]  # by pool, of the fullest chip


def figures_of(
    job: ReinforcementFacts,
    way: str,
    update: UpdatePool,
    rollout: tuple[RolloutPool, Engines, int] | None,
    found: Iteration,
    terms: RunTerms,
) -> Figures:
    """Take the figures of one rollout layout (pool, layouts, position) beside an update pool; `found` is their iteration."""
    setup, i = update.setup, 0 if rollout is None else rollout[2]
    constants, updates = setup.constants, update.updates
    seconds = float(found.iteration_s[i])
    parts = {name: float(part[i]) for name, part in found.parts.items()}
    rolling = 0 if rollout is None or way == COLOCATED else rollout[0].chips
    chips = update.chips + rolling
    goodput = goodput_of(job, chips, constants.reliability, terms, update.chips)
    steps_s = float(updates.step.step_s[0]) * job.spec.mini_batches * job.spec.epochs
    worked = steps_s / seconds * update.chips / chips
    training_w = max(float(training_power_w(setup.system.power_w, constants.power)) - setup.system.idle_w, 0.0)
    training_share = min((parts["scoring"] + parts["update"]) / seconds, 1.0)
    memory = {UPDATE: float(updates.memory_bytes[0])}
    extra, idle = {UPDATE: training_share * training_w}, {UPDATE: float(found.update_idle[i])}
    if rollout is not None:
        pool, engines, _ = rollout
        drawn = engines.rollout.parts
        shares = {name: float(part[i]) / seconds for name, part in drawn.items() if name not in ("prefill", "waiting")}
        shares["prefill_attention"] += float(drawn["prefill"][i]) / seconds
        memory[ROLLOUT] = float(engines.memory_bytes[i])
        total = sum_of(shares.values())
        shares = {name: share / max(total, 1.0) for name, share in shares.items()}
        extra[ROLLOUT] = float(pool_power_w(shares, pool.system, constants.power))
        idle[ROLLOUT] = float(found.rollout_idle[i])
        if way == COLOCATED:  # one pool, which does both in turns
            extra, idle = {UPDATE: extra[UPDATE] + extra[ROLLOUT]}, {UPDATE: idle[UPDATE]}
            memory = {UPDATE: max(memory.values())}
    return Figures(
        iteration_s=seconds, parts_s=parts, binds=_binds(way, found, parts, i), idle=idle, goodput=goodput,
        tokens_per_s=job.spec.iteration_tokens / seconds * goodput, mfu=worked * float(updates.step.mfu[0]),
        hfu=worked * float(updates.step.hfu[0]), extra_w=extra, memory_bytes=memory,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class GivenSplit:
    """A split that is stated: the way to run, and the layouts of both pools; `rollout_system` is None where one pool takes turns."""

    way: str
    update_layout: Mapping[str, int]
    rollout: tuple[str, Mapping[str, int]] | None  # precision and layout; None where responses are given
    rollout_system: tuple[SystemFacts, ScaleOut] | None
    rollout_chips: int
    line: Line | None = None  # from the site of the update, where that is another one


def evaluate_split(
    setup: TrainingSetup, job: ReinforcementFacts, given: GivenSplit, terms: RunTerms
) -> tuple[Figures, dict[str, Any]]:
    """Evaluate a stated split in plain numbers, with its row.

    Raises ValueError for layouts that no framework accepts, that the network does not carry or that do not fit in memory.
    """
    layouts = Layouts.of(**given.update_layout)
    legal = is_legal(
        job.architecture,
        layouts,
        global_batch_sequences=job.batch_sequences,
        sequence_tokens=job.spec.sequence_tokens,
        scaleup_chips=setup.system.scaleup_chips,
    )
    stated = str(dict(given.update_layout))
    if not legal[0] or not carries(setup, layouts)[0]:
        raise ValueError(Message.of("evaluate.update_illegal", layout=stated).text())
    update = UpdatePool(setup, updates_of(setup, layouts, job))
    if not fitting(update.updates, setup.system)[0]:
        raise ValueError(Message.of("evaluate.update_over_memory", layout=stated).text())
    rollout = None
    if given.rollout is not None:
        precision, sizes = given.rollout
        stated, chips = str(dict(sizes)), str(given.rollout_chips)
        system, scaleout = given.rollout_system or (setup.system, setup.scaleout)
        held = held_in_rollout(update) if given.way == COLOCATED else 0.0
        pool = RolloutPool(system, scaleout, given.rollout_chips, precision, held, given.line)
        one = ServingLayouts(*(np.array([sizes[name]]) for name in ("tp", "pp", "dp", "ep")))
        if not runnable(job.architecture, system, one, scaleout.bytes_per_s > 0)[0]:
            raise ValueError(Message.of("evaluate.rollout_without_engine", layout=stated, system=system.name).text())
        engines = engines_of(job, pool, one, setup.constants)
        if engines is None:
            raise ValueError(Message.of("evaluate.rollout_does_not_fit", layout=stated, chips=chips).text())
        rollout = pool, engines, 0
    engines_here, pool_here = (None, None) if rollout is None else (rollout[1], rollout[0])
    found = iteration_of(job, given.way, update, engines_here, pool_here, setup.constants)
    figures = figures_of(job, given.way, update, rollout, found, terms)
    return figures, iteration_row(job, given.way, rollout, figures)


def iteration_row(
    job: ReinforcementFacts, way: str, rollout: tuple[RolloutPool, Engines, int] | None, figures: Figures
) -> dict[str, Any]:
    """Write an iteration as a row of a plan document; the rollout layout stands here too where one pool takes turns."""
    engines = None
    if rollout is not None:
        pool, found, i = rollout
        engines = {
            "precision": pool.precision,
            "layout": layout_of(found.layouts, i),
            "replicas": int(found.replicas[i]),
            "slots": int(found.slots[i]),
            "environment_load": float(found.rollout.environment_load[i]),
        }
    return {
        "way": way,
        "iteration_s": figures.iteration_s,
        "iterations_per_hour": HOUR_S / figures.iteration_s * figures.goodput,
        "tokens": job.spec.iteration_tokens,
        "parts_s": dict(figures.parts_s),
        "binds": figures.binds,
        "idle": dict(figures.idle),
        "rollout": engines,
        **_environments(job),
    }


def _environments(job: ReinforcementFacts) -> dict[str, Any]:
    """State the environment slots of a job, their CPU cores and price; nothing where neither cores nor price are asked about."""
    tools = job.spec.tools
    if tools is None or tools.environments is None or not {"slot_price", "slot_cores"} & tools.model_fields_set:
        return {}
    row = {"slots": tools.environments, "cores": tools.environments * tools.slot_cores}
    priced = {"price_per_h": job.environments_per_s * HOUR_S} if job.environments_per_s else {}
    return {"environments": row | priced}


def interval_of(setup: TrainingSetup, tier: str | None = None) -> Interval:
    """Return the 80 % interval of an iteration; `tier`: how close the chip is to those that were measured in training, derived if None."""
    known, label = setup.constants.reinforcement, network(setup.job.architecture.experts)
    tier = tier or setup.constants.measured_training.tier(
        setup.system.chip, kind_of((), setup.precision), label, kind_of_network(setup.job.architecture)
    )
    return Interval(1.0, known.interval_low, known.interval_high, tier)


def _binds(way: str, found: Iteration, parts: Mapping[str, float], i: int) -> str:
    """Name the pool that sets the pace where pools overlap, else the longest part."""
    if way in (ASYNCHRONOUS, STREAMING):
        return ROLLOUT if found.rollout_chain_s[i] >= found.update_chain_s[i] else UPDATE
    return max(parts, key=lambda name: parts[name])
