"""Compare a prediction with the published rate of the same chip and network."""

from __future__ import annotations

from dataclasses import dataclass

from catalog.records import Record
from catalog.units import MILLI
from planner.facts import Fact
from planner.facts.ranges import listed
from planner.messages import Message


@dataclass(frozen=True, slots=True)
class Predicted:
    """A predicted rate [token/s per chip], and the bounds of 80 % of runs."""

    rate: float
    low: float
    high: float

    def holds(self, rate: float) -> bool:
        """Tell whether a rate lies within the bounds."""
        return self.low <= rate <= self.high


def contradicted(path: str, anchor: Record, predicted: Predicted) -> Fact | None:
    """Name a published rate that lies outside the interval of its prediction."""
    rate, limit = anchor.figure("rate"), anchor.get("tpot_limit_s")
    if predicted.holds(rate.number):
        return None
    code = f"anchor.{anchor.words('phase')}" + ("" if limit is None else "_below")
    message = Message.of(
        code, architecture=anchor.words("architecture"), chip=anchor.words("chip"), published=rate.number, predicted=predicted.rate,
        low=predicted.low, high=predicted.high, **({} if limit is None else {"limit": limit.number / MILLI}),
    )  # fmt: skip
    return Fact(path, message, listed(rate.source))
