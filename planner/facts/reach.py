"""Say which features of a run lie outside what its chip's family was fitted on, and how much wider its interval is for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from planner.messages import Message

FIGURE = {"serving": "reach.wider_throughput", "training": "reach.wider_step"}  # code of the sentence on the interval


def outside_messages(
    model: str,
    family: str,
    outside: Mapping[str, tuple[float, float, float]],
    near: Sequence[float],
    wide: Sequence[float],
) -> list[Message]:
    """Name each feature outside: (value, least, largest fitted), and the bounds of measured / predicted without and with the widening."""
    found = [
        Message.of(f"reach.{name}", family=family, value=_whole(value), least=_whole(least), most=_whole(most))
        for name, (value, least, most) in sorted(outside.items())
    ]
    if not found:
        return []
    if tuple(near) == tuple(wide):
        return [*found, Message.of("reach.alike")]
    (near_low, near_high), (low, high) = near, wide
    return [*found, Message.of(FIGURE[model], near_low=near_low, near_high=near_high, low=low, high=high)]


def _whole(value: float) -> float | int:
    """Print a count without decimals."""
    return round(value) if value == round(value) else value
