"""Table of what a run loses to checkpoints and interruptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.messages import Message


def loss_table(losses: Mapping[str, float]) -> tuple[str, list[dict[str, Any]]]:
    """Return (heading, rows): the share of the time that each cause takes, as `interruptions.goodput_losses_of` names them."""
    cause, share = (Message.of(f"goodput.{name}").text() for name in ("cause", "share"))
    rows = [{cause: Message.of(f"goodput.{name}").text(), share: f"{lost:.1%}"} for name, lost in losses.items()]
    return Message.of("goodput.heading").text(), rows
