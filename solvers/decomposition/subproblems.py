"""Subproblems: one small linear program per slot for flows and replicas, at a given first-stage point, warm-started.

Slack columns at a penalty make every subproblem feasible: unserved demand, and systems or watts beyond what the point provides.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.persistent_lp import SlotLp
from solvers.decomposition.slots import SlotView

SLACK_TOL = 1e-9  # slack (requests/s, systems or watts) above which something is missing


@dataclass(frozen=True, slots=True)
class SlotSolution:
    """Objectives and duals of all slots; every dual but `delta` is at least 0, and `gate` is what opening the gate of an arc would save."""

    value: Floats  # [T]
    alpha: Floats  # [T, fleet options]
    sigma: Floats  # [T, R]
    beta: Floats  # [T, Q]
    delta: Floats  # [T, D]
    gate: Floats  # [T, A]


class SlotSubproblems:
    """The linear programs of all slots over some fleet options."""

    def __init__(self, view: SlotView, fleet_options: Ints, missing: tuple[Floats, Floats, Floats], threads: int):
        """Build the programs. `missing`: penalties per slot on a request/s unserved [D], a system [fleet options] and a watt [R] too few."""
        data = view.data
        self.view, self.fleet_options = view, fleet_options
        position = np.full(len(data.option_site), -1)
        position[fleet_options] = np.arange(len(fleet_options))
        used = np.zeros(len(data.point_pool), dtype=bool)
        used[view.use_point[position[view.use_option] < 0]] = True  # points that use a fleet option outside these
        self.points = view.serving[~used[view.serving]]
        arcs, points, demands, sites, pools = (
            len(data.arc_site),
            len(self.points),
            len(view.demand),
            data.sites,
            data.pools,
        )
        self.arcs = arcs
        self.balance, self.capacity = slice(0, demands), slice(demands, demands + pools)
        self.installed = slice(demands + pools, demands + pools + len(fleet_options))
        self.power = slice(self.installed.stop, self.installed.stop + sites)
        place = np.full(len(data.point_pool), -1)
        place[self.points] = np.arange(points)
        uses = np.flatnonzero(place[view.use_point] >= 0)
        flow, replica = np.arange(arcs), arcs + np.arange(points)
        unserved, few, many = (
            start + np.arange(size)
            for start, size in (
                (arcs + points, demands),
                (arcs + points + demands, len(fleet_options)),
                (arcs + points + demands + len(fleet_options), sites),
            )
        )
        entries = (
            (view.arc_demand, flow, np.ones(arcs)),
            (self.capacity.start + data.arc_pool, flow, np.ones(arcs)),
            (self.capacity.start + data.point_pool[self.points], replica, -data.point_capacity[self.points]),
            (
                self.installed.start + position[view.use_option[uses]],
                arcs + place[view.use_point[uses]],
                view.use_systems[uses],
            ),
            (self.power.start + view.site[self.points], replica, data.point_power_w[self.points]),
            (np.arange(demands), unserved, np.ones(demands)),
            (self.installed.start + np.arange(len(fleet_options)), few, -np.ones(len(fleet_options))),
            (self.power.start + np.arange(sites), many, -np.ones(sites)),
        )
        rows, columns, values = (np.concatenate([entry[i] for entry in entries]) for i in range(3))
        matrix = sparse.csc_array(
            (values, (rows, columns)), shape=(self.power.stop, many[-1] + 1 if sites else len(fleet_options))
        )
        matrix.eliminate_zeros()
        self.flow_upper = view.demand[view.arc_demand]  # [A, T]
        lower, upper = np.full(self.power.stop, -np.inf), np.zeros(self.power.stop)
        self.subproblems, self._cost = [], []
        for t in range(view.slots):
            lower[self.balance] = upper[self.balance] = view.demand[:, t]
            column_upper = np.full(matrix.shape[1], np.inf)
            column_upper[:arcs] = self.flow_upper[:, t]
            column_upper[arcs : arcs + points][view.dominated[self.points, t]] = 0.0
            cost = np.concatenate([view.arc_cost[:, t], view.point_cost[self.points, t], *missing])
            self._cost.append(cost)
            self.subproblems.append(SlotLp(matrix, lower, upper, np.zeros(matrix.shape[1]), column_upper, cost))
        self._moving = np.arange(self.installed.start, self.power.stop)
        self._slack_prices, self._prices = np.concatenate([unserved, few, many]), np.concatenate(missing)
        self._amount = np.zeros(matrix.shape[1])
        self._amount[self._slack_prices] = 1.0
        self._threads = threads
        self._every, self._started = (np.arange(matrix.shape[0]), np.arange(matrix.shape[1])), False

    def answer(self, systems: Floats, open_share: Floats, job_systems: Floats, free_watts: Floats) -> SlotSolution:
        """Solve the programs of all slots at a first-stage point.

        `systems` [fleet options, T]: systems held; `open_share` [A]: value of each arc's gate; `job_systems` [fleet options, T]: systems
        used by jobs; `free_watts` [R, T]: power left by jobs and idle systems."""
        return self._answer(np.arange(self.view.slots), systems, open_share, job_systems, free_watts)

    def shortage(self, given: tuple[Floats, Floats, Floats, Floats]) -> SlotSolution:
        """Minimise the lack in each slot, in requests/s, systems and watts, whatever else it costs.

        Solved where the last solution had slack; value and duals are 0 elsewhere. `given`: arguments of `answer`."""
        short = np.flatnonzero([program.values()[self._slack_prices].max() > SLACK_TOL for program in self.subproblems])
        for t in short:
            self.subproblems[t].set_costs(self._every[1], self._amount)
        answer = self._answer(short, *given)
        for t in short:
            self.subproblems[t].set_costs(self._every[1], self._cost[t])
            self.subproblems[t].set_costs(self._slack_prices, self._prices)
        return answer

    def _answer(
        self, slots: Ints, systems: Floats, open_share: Floats, job_systems: Floats, free_watts: Floats
    ) -> SlotSolution:
        view = self.view
        upper = np.concatenate([systems - job_systems, free_watts])
        column_upper = self.flow_upper * np.clip(open_share, 0.0, 1.0)[:, None]
        value, duals, reduced_cost = (
            np.zeros(view.slots),
            np.zeros((view.slots, self.power.stop)),
            np.zeros((view.slots, self.arcs)),
        )

        def one(t: int) -> None:
            value[t], duals[t], reduced_cost[t] = self.subproblems[t].solve(
                self._moving, upper[:, t], column_upper[:, t]
            )

        def several(slots: Ints) -> None:
            for before, t in zip([None, *slots[:-1]], slots.tolist(), strict=True):
                if not self._started and before is not None:
                    self.subproblems[t].warm_start_from(self.subproblems[before], self._every[1], self._every[0])
                one(t)

        with ThreadPoolExecutor(self._threads) as pool:
            list(
                pool.map(
                    several,
                    slots[:, None]
                    if self._started
                    else [part for part in np.array_split(slots, self._threads) if len(part)],
                )
            )
        self._started = True
        return SlotSolution(
            value, -np.minimum(duals[:, self.installed], 0.0), -np.minimum(duals[:, self.power], 0.0), -np.minimum(duals[:, self.capacity], 0.0),
            duals[:, self.balance], -np.minimum(reduced_cost, 0.0),
        )  # fmt: skip

    def raise_slack_prices(self, factor: float, but_systems: bool = False) -> None:
        """Multiply the penalties on slack by a factor; `but_systems`: except those on systems."""
        self._raise(
            np.concatenate(
                [
                    np.full(len(self.view.demand), factor),
                    np.full(len(self.fleet_options), 1.0 if but_systems else factor),
                    np.full(self.view.data.sites, factor),
                ]
            )
        )

    def raise_system_slack_prices(self, fleet_options: np.ndarray, factor: float) -> None:
        """Multiply the penalties on missing systems of these fleet options (a mask) by a factor."""
        self._raise(
            np.concatenate(
                [np.ones(len(self.view.demand)), np.where(fleet_options, factor, 1.0), np.ones(self.view.data.sites)]
            )
        )

    def _raise(self, times: Floats) -> None:
        self._prices = self._prices * times
        for program in self.subproblems:
            program.set_costs(self._slack_prices, self._prices)

    def missing(self) -> tuple[float, float]:
        """Return (total slack in the last solution, its penalty)."""
        amount = sum(program.values()[self._slack_prices] for program in self.subproblems)
        return float(amount.sum()), float(self._prices @ amount)

    def lacking(self) -> Floats:
        """Return the missing systems [fleet options, T] in the last solution."""
        first = self.arcs + len(self.points) + len(self.view.demand)
        return np.array([program.values()[first : first + len(self.fleet_options)] for program in self.subproblems]).T

    def forbid_slack(self, tolerance: float) -> None:
        """Fix all slack at 0, and set the feasibility tolerance."""
        self.hold(tolerance)
        for program in self.subproblems:
            program.fix_at_zero(self._slack_prices)

    def hold(self, tolerance: float) -> None:
        """Set the feasibility tolerance of the rows."""
        for program in self.subproblems:
            program.set_tolerance(tolerance)

    def flows(self) -> tuple[Floats, Floats, Floats]:
        """Return (f [A, T], x [points, T], total slack [T]) of the last solution."""
        x = np.array([program.values() for program in self.subproblems]).T
        return (
            x[: self.arcs],
            x[self.arcs : self.arcs + len(self.points)],
            x[self.arcs + len(self.points) :].sum(axis=0),
        )
