"""Resolve a job of reinforcement learning: the architectures of critic and reward, and the assumptions on its lengths."""

from __future__ import annotations

from models.transformer.architecture import Architecture
from planner.messages import Message
from planner.problem.engine import EngineSettings
from planner.problem.reinforcement import ReinforcementFacts
from planner.resolve.ledger import Ledger
from planner.resolve.stack.engines import memory_of
from planner.spec.reinforcement import Reinforcement

USUAL_LIMIT = 1.0  # on the engine's own limit on running requests: engines of a rollout are run as they are shipped


def reinforcement_facts(
    ledger: Ledger,
    path: str,
    workload: Reinforcement,
    shape: Architecture,
    reward: Architecture | None,
    critic: Architecture | None,
    slot_price_per_s: float = 0.0,
) -> ReinforcementFacts:
    """Bundle a job with its architectures and the price of its environment slots [currency/s], and book what it leaves open; a critic of PPO that it does not name is as large as the policy."""
    if "cv" not in workload.lengths.model_fields_set and workload.algorithm != "dpo":
        reason = Message.of("resolve.response_spread").text()
        ledger.assume(f"{path}.lengths.cv", workload.lengths.cv, "1", reason)
    if workload.lengths.endless is None and workload.algorithm != "dpo":
        reason = Message.of("resolve.endless_share").text()
        ledger.assume(
            f"{path}.lengths.endless", ledger.value("constants", "reinforcement.endless_share", "value"), "1", reason
        )
    share, rule, reserved = memory_of(ledger, workload.engine, None, path)
    if workload.algorithm == "ppo" and critic is None:
        critic = shape
    engine = EngineSettings(share, USUAL_LIMIT, memory_rule=rule, reserved_bytes=reserved)
    return ReinforcementFacts(path, workload, shape, engine, reward, critic, slot_price_per_s)
