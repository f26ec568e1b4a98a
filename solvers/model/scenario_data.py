"""Data of the scenario block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from solvers.arrays import Floats, Ints


@dataclass(frozen=True, slots=True)
class Scenario:
    """Its own serving points (`uses`: rows (point, fleet option)), and how fast each point of the plan's jobs is there."""

    point_pool: Ints  # [P']
    point_uses: Ints
    point_systems: Floats
    point_power_w: Floats
    capacity: Floats  # [P'] requests/s
    pace: Floats  # [P] share of its job's work per second; 0 for serving points


@dataclass(frozen=True, slots=True)
class ScenarioData:
    scenarios: Sequence[Scenario]
    slots: Ints  # those that are looked at
    seconds: Floats  # and the time that each stands for
    risk: Risk | None = None


@dataclass(frozen=True, slots=True)
class Risk:
    """What one system of each holding costs at the prices of many scenarios, [scenarios, U], in place of its typical cost; `share`: of those that
    are not among the dearest."""

    cost: Floats
    share: float
