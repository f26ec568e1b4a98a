"""Resolve power caps: read the measured curves of throughput against power."""

from __future__ import annotations

import numpy as np

from planner.messages import Message
from planner.problem.electricity import CapCurve
from planner.resolve.ledger import Ledger

LEAST_POWER = 0.5  # share of the uncapped draw: below it too few curves were measured
AXIS = "power limit"


def measured_curve(ledger: Ledger, path: str) -> CapCurve:
    """Average the relative speed over the measured curves that reach down to half of the power, and book their sources for the key at `path`."""
    power = np.linspace(LEAST_POWER, 1.0, 51)
    speeds = []
    for name in ledger.catalog.names("power_curves"):
        record = ledger.catalog.get("power_curves", name)
        if record.words("axis") != AXIS or min(record.series("relative_power")) > LEAST_POWER:
            continue
        drawn, speed = (
            np.array(ledger.figure("power_curves", name, f"relative_{what}").value) for what in ("power", "throughput")
        )
        order = np.argsort(drawn)
        speeds.append(np.minimum(np.interp(power, drawn[order], speed[order]), 1.0))
    reason = Message.of("resolve.speed_under_cap", count=len(speeds)).text()
    ledger.assume(
        path, Message.of("resolve.at_half_power", speed=f"{np.mean(speeds, axis=0)[0]:.2f}").text(), "1", reason
    )
    return CapCurve(power, np.mean(speeds, axis=0))
