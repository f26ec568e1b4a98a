"""Evaluate what update and rollout exchange: the weights of each iteration, and over a line between two sites the responses that come back."""

from __future__ import annotations

from models.reinforcement.constants import ReinforcementConstants
from models.reinforcement.synchronise import Line, Sharding, Side, Software, Weights, synchronise_s
from models.training.layouts import Layouts
from models.training.memory import WEIGHT_BYTES
from models.transformer.architecture import parameter_counts
from models.transformer.checkpoint import checkpoint_bytes, expert_bytes, tensor_count
from planner.problem.facts import ScaleOut, SystemFacts
from planner.problem.reinforcement import ReinforcementFacts

ROLLOUT_TOKEN_BYTES = 8.0  # a token of a response and its log-probability under the policy that sampled it


def weights_of(job: ReinforcementFacts, precision: str, layouts: Layouts, chips: int) -> tuple[Weights, Sharding]:
    """Describe the weights that an update in a layout on a number of chips hands to engines of a precision."""
    arch = job.architecture
    trained, held = WEIGHT_BYTES * parameter_counts(arch).total, checkpoint_bytes(arch, precision)
    weights = Weights(float(trained), float(held), float(expert_bytes(arch, precision)), float(tensor_count(arch)))
    copy = layouts.chips[0] if layouts.zero[0] == 3 else layouts.tp[0] * layouts.pp[0] * layouts.ep[0]
    return weights, Sharding(min(float(copy), chips), float(layouts.ep[0]))


def synchronisation_s(
    weights: tuple[Weights, Sharding],
    sender: Side,
    receiver: Side | None,
    factors: ReinforcementConstants,
    line: Line | None,
) -> float:
    """Predict the synchronisation of weights, which engines of every layout take in alike [s]."""
    software = Software(factors.sync_bytes_per_s, factors.sync_tensor_s, factors.sync_start_s)
    return float(synchronise_s(*weights, sender, receiver, software, line))


def side_of(system: SystemFacts, scaleout: ScaleOut, chips: int) -> Side:
    """Describe a pool to the closed forms of synchronisation; pools without a network between systems share one of them."""
    out = scaleout.bytes_per_s or system.scaleup_bytes_per_s
    return Side(chips, system.scaleup_chips, system.scaleup_bytes_per_s, out, system.hbm_bytes_per_s)


def sent_bytes(job: ReinforcementFacts, precision: str) -> float:
    """Compute the weights that pass a line once an iteration, in the precision of the rollout [byte]."""
    return float(checkpoint_bytes(job.architecture, precision))


def returned_bytes(job: ReinforcementFacts) -> float:
    """Compute the responses of an iteration that come back, each token with its log-probability [byte]."""
    return ROLLOUT_TOKEN_BYTES * job.spec.iteration_tokens


def line_of(job: ReinforcementFacts, bytes_per_s: float, rtt_s: float) -> Line:
    """Describe a line between the sites of both pools, of which a job reserves a rate each way."""
    return Line(bytes_per_s, rtt_s, returned_bytes(job))
