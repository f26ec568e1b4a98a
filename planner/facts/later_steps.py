"""Say that a step of an answer was left out: it failed, or its plan did not pass the check that every plan passes."""

from __future__ import annotations

from planner.facts import Fact
from planner.messages import Message

CONFIDENCE, SIMPLEST, ORDER = "confidence", "simplest", "order"  # steps that take another solution
PRICES, RUNNERS_UP, MEASURED, LOOSER, DISPATCH = (
    "prices",
    "runners_up",
    "measured",
    "looser",
    "dispatch",
)  # that add to the plan

PLACES = {  # step -> place in the spec, and the section that a plan without the step lacks
    CONFIDENCE: ("simplicity", "confidence_gain"),
    SIMPLEST: ("simplicity", "simplicity"),
    ORDER: ("workloads", None),
    PRICES: ("limits", None),
    RUNNERS_UP: ("workloads", None),
    MEASURED: ("robust", "confidence"),
    LOOSER: ("workloads", "looser"),
    DISPATCH: ("horizon.dispatch", "dispatch"),
}
BY_CODE = {f"steps.{step}_left_out": place for step, place in PLACES.items()}


def undone(step: str) -> Fact:
    """Return the note on a step that was left out."""
    return Fact(PLACES[step][0], Message.of(f"steps.{step}_left_out"))
