"""The plan under check: the problem, the findings, and intermediate results that later checks use. The order of the checks: `planner.verify.check`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from planner.problem.facts import ResolvedSpec
from planner.spec.slo import LatencyLimit
from planner.verify.claims.unchecked import was_charged_by_annuities
from planner.verify.electricity import ElectricityCheck
from planner.verify.findings import Report
from planner.verify.fleet.holdings import Holding
from planner.verify.fleet.options import CheckedOption, FleetOptions, HeldKey
from planner.verify.lines import LineCheck
from planner.verify.points.evaluated import Evaluated
from planner.verify.spread import SpreadCheck

Row = Mapping[str, Any]
LineKey = tuple[str, str, str, str]
"""Component, site, system (or line type, or chip family), how it is obtained."""


@dataclass(slots=True)
class Sums:
    """Amounts by (component, site, system, how), and by workload."""

    lines: dict[LineKey, float]
    carbon: dict[LineKey, float]
    by_workload: dict[str, float]
    energy_j: float


class CheckedPlan(Report):
    """Collect the findings on one plan, and the intermediate results of its checks."""

    def __init__(self, problem: ResolvedSpec, document: Mapping[str, Any], same_figures: bool):
        super().__init__()
        self.problem, self.document = problem, document
        self.same_figures = same_figures  # whether the plan was made with the catalog of `problem`
        self.annuities = was_charged_by_annuities(document)
        self.fleet_options = FleetOptions(problem, self.annuities)
        self.sites = {site.region: site for site in problem.sites}
        self.serving = {w.name: w for w in problem.serving}
        self.training = {w.name: w for w in problem.training}
        slots, windows = problem.calendar.slots, problem.calendar.windows
        self.readable = True  # whether its rows fit together, so that later checks can read them
        # points
        self.points: dict[str, tuple[Row, Evaluated]] = {}
        # fleet
        self.holdings: list[Holding] = []
        self.options_by_row: list[CheckedOption] = []
        self.held: dict[HeldKey, list[float]] = defaultdict(lambda: [0.0] * windows)
        self.running: dict[HeldKey, list[float]] = defaultdict(
            lambda: [0.0] * slots
        )  # those that are paid for, by slot
        self.running_by_row: list[list[float]] = []  # the same, of each row
        self.starts: dict[HeldKey, list[float]] = {}  # by slot, of systems that are counted by the hour
        # schedule: replicas of a point by slot; a row for each site and slot
        self.active: dict[str, list[float]] = defaultdict(lambda: [0.0] * slots)
        self.hours: dict[tuple[str, int], dict[str, Any]] = {}
        # routes: requests/s by (pool, slot); round trips by pool; cost by workload, site and line; tokens/s by workload
        self.asked: dict[tuple[str, int], float] = defaultdict(float)
        self.round_trips: dict[str, list[float]] = defaultdict(list)
        self.traffic: dict[str, dict[tuple[str, str], float]] = defaultdict(lambda: defaultdict(float))
        self.tokens: dict[str, list[float]] = defaultdict(lambda: [0.0] * slots)
        # None where the spec leaves no choice of them
        self.electricity: ElectricityCheck | None = None
        self.lines: LineCheck | None = None
        self.spread: SpreadCheck | None = None
        # amounts
        self.sums = Sums({}, {}, {}, 0.0)

    def points_of(self, workload: str) -> list[str]:
        """List the ids of the points of a workload."""
        return [name for name, (_, computed) in self.points.items() if computed.workload == workload]

    def demand_factor(self, asked_as: str) -> float:
        """Return the factor on the demand of a workload of the spec: 1 unless throughput is maximised."""
        asked = self.problem.spec.objective
        if asked.maximise is None or (asked.workload and asked.workload != asked_as):
            return 1.0
        value: float = self.document["objective"]["value"]
        return value

    def latency_at_origin(self, name: str, limit: LatencyLimit) -> float:
        """Return the latency of a point for the farthest origin that its pool serves [s]."""
        point, computed = self.points[name]
        travel = {"tpot": 0.0, "task": limit.calls}.get(limit.metric, 1.0) * max(self.round_trips[point["pool"]])
        return computed.latency[f"{limit.metric}.{limit.percentile}"] + travel
