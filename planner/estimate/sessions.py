"""Explain the agentic sessions of a serving case: how many are at work at once, what their caches cost, and what each call computes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catalog.units import GIGA
from planner.estimate.case import CaseFacts
from planner.estimate.serving_configuration import ServingConfiguration
from planner.evaluate.sessions import session_figures


def session_row(facts: CaseFacts, configuration: ServingConfiguration) -> dict[str, Any]:
    """Document the sessions of a configuration at its load; nothing where requests belong to no task."""
    if facts.serving.spec.session is None:
        return {}
    e2e_s, rate = configuration.latency("e2e", "mean"), configuration.requests_per_s
    return {
        "session": {
            "waiting": configuration.choice.waiting,
            **session_figures(facts.serving, configuration.choice, rate, e2e_s, bool(configuration.pools)),
            "computed_share": float(configuration.point.computed_share),
        }
    }


def session_table(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Format the sessions of a case."""
    return [
        {
            "caches that wait": row["waiting"],
            "tasks/s": row["tasks_per_s"],
            "sessions at once": row["sessions"],
            "of them waiting": row["waiting_sessions"],
            "their caches": f"{row['waiting_bytes'] / GIGA:,.1f} GB",
            "mean prompt": f"{row['prompt_tokens']:,.0f} tokens",
            "computed of it": f"{row['computed_share']:.1%}",
        }
    ]
