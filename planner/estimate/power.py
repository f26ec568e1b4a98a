"""Power of the systems of a case, and what its power cap does to times and rates.

The curve of speed against power and the stretching of times are as for capped points of a plan (`planner.evaluate.power_caps`). A case
has no site: cooling is not counted, nor are chips of the case that are not in use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from models.arrays import Result
from models.energy.power import PowerConstants, training_power_w
from models.serving.continuous_batching import ServingPoint
from models.serving.disaggregation import DisaggregatedPoint
from planner.errors import Issue, SpecError
from planner.evaluate.disaggregated import pool_power_w
from planner.evaluate.power_caps import cap_speed, capped_watts, slowed
from planner.messages import Message
from planner.problem.electricity import CapCurve
from planner.problem.facts import SystemFacts
from planner.resolve.power_caps import LEAST_POWER


@dataclass(frozen=True, slots=True)
class PowerCap:
    """The cap of a case: share of nameplate that each system may draw, and the curve of speed against power."""

    share: float
    curve: CapCurve


@dataclass(frozen=True, slots=True)
class Draw:
    """Relative speed under the cap of a case [1], and the power of one system of each pool [W]."""

    speed: float
    system_w: tuple[float, ...]


def draw_of(cap: PowerCap | None, pools: Sequence[tuple[SystemFacts, float]]) -> Draw:
    """Compute speed and power of pools, given as (system, watts above idle of one system without the cap)."""
    if cap is None:
        return Draw(1.0, tuple(system.idle_w + extra_w for system, extra_w in pools))
    watts = (system.idle_w + capped_watts(cap.share, system, extra_w) for system, extra_w in pools)
    return Draw(float(cap_speed(cap.share, cap.curve, pools)), tuple(watts))


def serving_draw(
    cap: PowerCap | None,
    systems: Sequence[SystemFacts],
    shares: Sequence[Mapping[str, Result]],
    constants: PowerConstants,
) -> Draw:
    """Compute speed and power of serving pools from the shares of their time by part."""
    pools = [
        (system, float(pool_power_w(side, system, constants))) for system, side in zip(systems, shares, strict=True)
    ]
    return draw_of(cap, pools)


def training_draw(cap: PowerCap | None, system: SystemFacts, constants: PowerConstants) -> Draw:
    """Compute speed and power of one system in training. Raises SpecError where the cap is below what was measured."""
    busy_w = max(float(training_power_w(system.power_w, constants)), system.idle_w)
    found = draw_of(cap, [(system, busy_w - system.idle_w)])
    if math.isnan(found.speed):
        least = math.ceil(1000 * max(LEAST_POWER * busy_w, system.idle_w) / system.power_w) / 1000
        message = Message.of("estimate.no_curve_so_low", system=system.name, least=f"{least:g}").text()
        raise SpecError([Issue("power_cap", message)])
    return found


def capped_pool(
    cap: PowerCap | None, system: SystemFacts, point: ServingPoint, constants: PowerConstants
) -> ServingPoint:
    """Hold the points of one pool to a cap; where it is below the measured range, they do not fit."""
    return _held(cap, point, [(system, point.shares)], constants)


def capped_group(
    cap: PowerCap | None, systems: Sequence[SystemFacts], found: DisaggregatedPoint, constants: PowerConstants
) -> DisaggregatedPoint:
    """Hold both pools of groups to a cap; where it is below the measured range, they do not fit."""
    sides = zip(systems, (found.prefill_shares, found.point.shares), strict=True)
    return replace(found, point=_held(cap, found.point, list(sides), constants))


def _held(
    cap: PowerCap | None,
    point: ServingPoint,
    pools: Sequence[tuple[SystemFacts, Mapping[str, Result]]],
    constants: PowerConstants,
) -> ServingPoint:
    if cap is None:
        return point
    speed = cap_speed(
        cap.share, cap.curve, [(system, pool_power_w(shares, system, constants)) for system, shares in pools]
    )
    measured = ~np.isnan(speed)
    return replace(slowed(point, np.where(measured, speed, 1.0)[()]), fits=np.asarray(point.fits) & measured)


def power_document(cap: PowerCap | None, speed: float, it_w: float, tokens_per_s: float) -> dict[str, Any]:
    """Document power and energy: the cap as a share of nameplate, speed over that without it, power [W], energy per token [J]."""
    return {
        "power_cap": None if cap is None else cap.share,
        "speed": speed,
        "it_power_w": it_w,
        "it_energy_j_per_token": it_w / tokens_per_s,
    }
