"""Read measured curves of throughput against power cap."""

from __future__ import annotations

import numpy as np

from planner.problem.facts import CapCurve
from planner.resolve.ledger import Ledger

LEAST = 0.5  # of the uncapped draw: below it too few curves were measured


AXIS = "power limit"


def measured_curve(ledger: Ledger, path: str) -> CapCurve:
    """Mean relative speed over the measured curves that reach down to half of the power, with their sources booked."""
    power = np.linspace(LEAST, 1.0, 51)
    speeds = []
    for name in ledger.catalog.names("power_curves"):
        record = ledger.catalog.get("power_curves", name)
        if record.words("axis") != AXIS or min(record.figure("relative_power").value) > LEAST:
            continue
        drawn, speed = (
            np.array(ledger.figure("power_curves", name, f"relative_{what}").value) for what in ("power", "throughput")
        )
        order = np.argsort(drawn)
        speeds.append(np.minimum(np.interp(power, drawn[order], speed[order]), 1.0))
    reason = f"speed under a cap: mean of {len(speeds)} measured curves of training on older chips, of the power of the whole system"
    ledger.assume(f"{path}.power_caps", f"{np.mean(speeds, axis=0)[0]:.2f} at half the power", "1", reason)
    return CapCurve(power, np.mean(speeds, axis=0))
