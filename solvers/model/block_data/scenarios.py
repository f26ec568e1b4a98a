"""Input of the scenario block."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from solvers.arrays import Floats, Ints, no_ints


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario: its own serving points, and the pace of each training point of the plan in it.

    `point_uses` [., 2]: rows (serving point, fleet option) with `point_systems` systems per replica. `capacity` [P']: requests/s per
    replica. `pace` [P]: share of its job's work that a training point does per second at full width; 0 for serving points. `ports` [., 2]:
    rows (serving point, group of `PortData` that must be paid for it to run). `operation`: what dispatch costs; nothing where it is None.
    """

    point_pool: Ints  # [P']
    point_uses: Ints
    point_systems: Floats
    point_power_w: Floats  # [P']
    capacity: Floats
    pace: Floats
    ports: Ints = field(default_factory=lambda: no_ints(0, 2))
    operation: Operation | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """What the dispatch of a scenario costs over each slot, as a part of the cost in one scenario of `Risk`.

    `missing` [W, slots]: cost of a request/s of the program's demand that is not served; all must be served where it is None.
    """

    number: int  # number of the scenario of prices
    point: Floats  # [P', slots] of a replica at work
    arc: Floats  # [A, slots] of a request/s of the program's demand
    missing: Floats | None = None


@dataclass(frozen=True, slots=True)
class ScenarioData:
    """Scenarios that one fleet must serve, over some slots, each of which stands for `seconds`."""

    scenarios: Sequence[Scenario]
    slots: Ints
    seconds: Floats
    risk: Risk | None = None


@dataclass(frozen=True, slots=True)
class Risk:
    """Cost of a fleet as its conditional value at risk over price scenarios.

    `cost` [scenarios, U]: cost of one system of each holding, in place of its typical cost. What a scenario's own dispatch costs
    (`Scenario.operation`) takes the place of the cost of the planned one. `share`: level of the CVaR, the share of
    scenarios that are not among the most expensive ones averaged.
    """

    cost: Floats
    share: float
