"""Evaluate the agentic sessions of a workload at a rate: how many are at work at once, and the caches of those that wait."""

from __future__ import annotations

from dataclasses import replace

from models.formats import element_bytes
from models.serving.sessions import DROPPED, waiting_sessions
from models.transformer.attention import kv_bytes
from planner.evaluate.serving import lengths_of
from planner.evaluate.serving_state import session_of
from planner.messages import Message
from planner.problem.engine import EngineChoice
from planner.problem.facts import ServingFacts


def session_figures(
    workload: ServingFacts, choice: EngineChoice, calls_per_s: float, call_s: float, separate: bool
) -> dict[str, float]:
    """Count the sessions of a workload at a rate of calls, by Little's law, and the bytes of the caches that wait, one copy of each.

    `call_s`: mean time of a call [s]; `separate`: whether another pool decodes, so that answers do not return to the cache.
    """
    block = workload.spec.session
    if block is None:
        raise ValueError(Message.of("evaluate.no_sessions", workload=workload.name).text())
    session = session_of(block, choice.waiting, None)
    first = lengths_of(workload)
    waiting = float(waiting_sessions(session.task, calls_per_s))
    kept = replace(session, returned=not separate)
    held = 0.0
    if choice.waiting != DROPPED and block.calls > 1:
        held = waiting * float(
            kv_bytes(workload.architecture, kept.kept_tokens(first), element_bytes(choice.kv_precision))
        )
    return {
        "tasks_per_s": calls_per_s / block.calls,
        "sessions": calls_per_s * call_s + waiting,
        "waiting_sessions": waiting,
        "waiting_bytes": held,
        "prompt_tokens": float(session.lengths(first).prompt),
    }
