"""Sets, bounds and matrices of the LP relaxation over all slots, for some fleet options, serving points and placements.

    Columns (at least 0)                                Rows, their slacks ("left") and their prices
    m        first-stage columns above their lower bounds   balance    sum f (+ unmet) = demand                            delta, free
    f_{a,t}  requests/s on an arc                           capacity   capacity x - f - left = 0                           beta
    x_{p,t}  replicas at work                               installed  N(m) - uses x - uses v - left = 0                   alpha
    v_{p,t}  share of a slot's open time that a job runs    power      limit - idle N(m) - power x - power v - left = 0    sigma
    unmet    demand left unmet, if that has a price         hosted     demand gate(m) - f - left = 0                       gamma
                                                            running    switch(m) - v - left = 0                            rho
                                                            progress   sum rate v - y = 0                                  pi, free
                                                            equal      first-stage rows with equal sides                   free
                                                            above      other sides of first-stage rows, - left
                                                            upper      m + left = upper bound

All columns of a slot belong to one site each; only the rows `balance` couple the sites of a slot, and only m and the rows `progress`
couple the slots.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from scipy import sparse

from solvers.arrays import Bools, Floats, Ints
from solvers.decomposition.interior_point.settings import BLOCKS, BlockSettings
from solvers.decomposition.linking import Linking

State: TypeAlias = dict[str, Floats]
"""Arrays by the name of a column or row block."""
SparseMatrix: TypeAlias = sparse.csr_array
Matrix: TypeAlias = sparse.csr_array | Floats
"""A matrix that is only multiplied with: dense if it is small."""


class LpData:
    """Sets, bounds and matrices of the LP; A arcs, G gated arcs, N placements, D demands, R sites, T slots, V windows.

    `moving`: first-stage columns that are not fixed, sorted by site; `first`: where each site's begin. `column`: position in `moving` by
    first-stage column, -1 if fixed. `mask`: where a column or slack exists, by block. `impossible`: the bounds leave no solution.
    """

    def __init__(
        self,
        linking: Linking,
        points: Ints,
        lower: Floats | None = None,
        upper: Floats | None = None,
        unmet_price: Floats | None = None,
        settings: BlockSettings = BLOCKS,
    ):
        """Fix what the bounds `lower` and `upper` of the first-stage columns imply; `unmet_price` [D, T]: price per request/s left unmet."""
        self.settings = settings
        view, s = linking.view, linking.first_stage
        data = view.data
        self.linking, self.view, self.first_stage = linking, view, s
        self.points, self.placements = points, linking.placements
        self.slots, self.windows, self.window = view.slots, data.windows, view.window
        self.fleet_options, self.pools = len(linking.fleet_options), data.pools
        self.sites, self.demands = data.sites, len(view.demand)
        self._fix_columns(lower, upper)
        systems = linking.systems[:, self.moving]
        held_before: Floats = np.asarray(linking.systems @ self.lower)
        held = np.logical_or(np.diff(systems.tocsr().indptr) > 0, held_before > 0)
        # [fleet options, T] where systems can be held
        self.there = held.reshape(self.fleet_options, self.windows)[:, self.window]
        self._set_points()
        self._set_arcs()
        self._set_placements()
        self._set_first_stage()
        self.cost: State = {
            "m": s.cost[self.moving],
            "f": view.arc_cost[self.arcs],
            "x": view.point_cost[points],
            "v": view.point_cost[self.placements] * self.reach,
            "unmet": np.zeros_like(view.demand) if unmet_price is None else unmet_price,
        }
        carries = (self.arc_upper > 0) & self.served[self.arc_pool]
        self.mask = {
            "m": np.ones(len(self.moving), dtype=bool),
            "upper": np.isfinite(self.upper),
            "above": np.ones(self.above.shape[0], dtype=bool),
            "f": carries,
            "x": ~self.lacking,
            "v": self.may_run,
            "capacity": self.served,
            "installed": self.there,
            "power": np.repeat(self.limited[:, None], self.slots, axis=1),
            "hosted": carries[self.gated],
            "running": self.may_run,
            "unmet": (view.demand > 0) & (unmet_price is not None),
        }
        # [D, T] demand that an arc can carry or that may be left unmet
        self.carrying = (np.asarray(self.into_demand @ carries) > 0) | self.mask["unmet"]
        self.impossible |= bool((~self.carrying & (view.demand > 0)).any())

    def _fix_columns(self, lower: Floats | None, upper: Floats | None) -> None:
        """Propagate the bounds of the first-stage columns and sort those that are not fixed by site."""
        s = self.first_stage
        lower = np.zeros(s.size) if lower is None else lower
        upper = s.upper.copy() if upper is None else np.minimum(upper, s.upper)
        open_windows = (upper[self.linking.switch] > 0.5)[:, self.window] & (self.linking.reach > 0)
        upper[s.columns["y"][self.placements][open_windows.sum(axis=1) == 0]] = 0.0
        self.impossible = bool((upper < lower).any())  # a job that must be done where it may not run
        self.lower, upper, broken = s.propagate_bounds(lower, np.maximum(upper, lower))
        self.impossible |= broken
        moving = np.flatnonzero(upper - self.lower > self.settings.least_range)
        site = self._site_of_columns()[moving]
        order = np.argsort(site, kind="stable")  # a site's columns are consecutive, those of no site come last
        self.moving, self.first = moving[order], np.searchsorted(site[order], np.arange(self.sites + 1))
        self.upper = (upper - self.lower)[self.moving]
        self.column = np.full(s.size + 1, -1)
        self.column[self.moving] = np.arange(len(self.moving))

    def _site_of_columns(self) -> Ints:
        """Return the site of each first-stage column, the number of sites for a column of no site."""
        data, columns = self.view.data, self.first_stage.columns
        result = np.full(self.first_stage.size + 1, self.sites)
        result[columns["n"]] = data.option_site[data.holding_option]
        result[columns["open"]] = np.arange(self.sites)
        result[columns["host"]] = np.arange(self.sites)
        result[columns["y"]] = self.view.site
        result[columns["run"]] = self.view.site[:, None]
        return result[:-1]

    def _set_points(self) -> None:
        """Set the power limits, and the maps of serving points to systems, watts and pools."""
        view, data, points = self.view, self.view.data, self.points
        position, place = np.full(len(data.option_site), -1), np.full(len(data.point_pool), -1)
        position[self.linking.fleet_options], place[points] = np.arange(self.fleet_options), np.arange(len(points))
        use, count = np.flatnonzero(place[view.use_point] >= 0), np.arange(len(points))
        here = np.zeros(self.sites, dtype=bool)
        here[data.option_site[self.linking.fleet_options]] = True
        self.limited = self.linking.limited & here
        ungated_limit = self.linking.ungated_limit
        factor = self.settings.unlimited_power_factor
        enough = factor * abs(self.linking.idle).max() if self.linking.idle.nnz else factor
        unlimited = np.where(self.limited[:, None], enough, 0.0)
        self.limit = np.where(np.isfinite(ungated_limit), ungated_limit, unlimited)[:, self.window]
        self.uses = sparse.csr_array(
            (view.use_systems[use], (position[view.use_option[use]], place[view.use_point[use]])),
            shape=(self.fleet_options, len(points)),
        )
        self.watts = sparse.csr_array(
            (data.point_power_w[points] * self.limited[view.site[points]], (view.site[points], count)),
            shape=(self.sites, len(points)),
        )
        self.serves = sparse.csr_array(
            (data.point_capacity[points], (data.point_pool[points], count)), shape=(self.pools, len(points))
        )
        self.lacking: Bools = view.dominated[points] | (self.uses.T @ ~self.there > 0)  # [points, T]
        self.served: Bools = np.asarray((self.serves > 0) @ ~self.lacking) > 0  # [pools, T]

    def _set_arcs(self) -> None:
        """Set the arcs that can carry something, their gates and their maps to demands and pools."""
        view, data, s = self.view, self.view.data, self.first_stage
        ever_served: Bools = np.any(self.served, axis=1)
        arcs = np.flatnonzero(ever_served[data.arc_pool])
        gate = s.arc_gate[arcs]
        shut = (gate >= 0) & (self.column[gate] < 0) & (np.append(self.lower, 1.0)[gate] < 0.5)
        self.arcs, gate = arcs[~shut], gate[~shut]
        self.gate = np.where(gate >= 0, self.column[gate], -1)
        self.arc_demand, self.arc_pool = view.arc_demand[self.arcs], data.arc_pool[self.arcs]
        self.arc_upper = view.demand[self.arc_demand]  # [A, T] largest flow
        self.gated = np.flatnonzero(self.gate >= 0)  # [G] arcs whose gate is not fixed
        self.gates, self.let = self.gate[self.gated], self.arc_upper[self.gated]
        ones, count = np.ones(len(self.arcs)), np.arange(len(self.arcs))
        self.into_demand = sparse.csr_array((ones, (self.arc_demand, count)), shape=(self.demands, len(count)))
        self.into_pool = sparse.csr_array((ones.copy(), (self.arc_pool, count)), shape=(self.pools, len(count)))

    def _set_placements(self) -> None:
        """Set where and how fast jobs may run, their switches, and the columns of their progress."""
        view, data, linking, placements = self.view, self.view.data, self.linking, self.placements
        self.job_uses = linking.uses.tocsr()
        self.job_watts = sparse.csr_array(linking.watts.multiply(self.limited[:, None]))
        self.reach = linking.reach
        per_work = data.point_capacity[placements] / data.job_work[data.point_job[placements]]
        self.rate = (1 + self.settings.job_rate_slack) * self.reach * view.seconds * per_work[:, None]
        switch = linking.switch[:, self.window]
        self.switch = self.column[switch]  # [N, T] position of the column that lets a job run, -1 if fixed
        self.switched = np.append(self.lower, 0.0)[switch]  # [N, T] the value at which it is fixed
        may_switch = (self.switch >= 0) | (self.switched > 0.5)
        self.may_run = (self.rate > 0) & may_switch & ~(self.job_uses.T @ ~self.there > 0)
        y = self.first_stage.columns["y"][placements]
        self.done, self.done_fixed = (
            self.column[y],
            self.lower[y],
        )  # [N] position of y, and the value at which it is fixed
        self.runs = self.may_run.any(axis=1)
        self.done = np.where(self.runs, self.done, -1)
        going = np.flatnonzero(self.runs)
        going = going[np.argsort(view.site[placements[going]], kind="stable")]
        self.progress = np.full(len(placements), -1)  # [N] position among the links, after the first-stage columns
        self.progress[going] = len(self.moving) + np.arange(len(going))
        self.links = len(self.moving) + len(going)

    def _set_first_stage(self) -> None:
        """Set the first-stage rows over the columns that are not fixed, and what these hold and draw in each window."""
        s, linking = self.first_stage, self.linking
        matrix = s.matrix.tocsc()[:, self.moving].tocsr()
        given, some = s.matrix @ self.lower, np.diff(matrix.indptr) > 0
        equal = some & (s.row_lower == s.row_upper)
        low, high = (some & ~equal & np.isfinite(side) for side in (s.row_lower, s.row_upper))
        self.row_parts = (np.flatnonzero(equal), np.flatnonzero(low), np.flatnonzero(high))
        self.equal, self.equal_sides = matrix[equal], (s.row_lower - given)[equal]
        self.above = sparse.vstack([matrix[low], -matrix[high]]).tocsr()
        self.above_sides = np.concatenate([(s.row_lower - given)[low], (given - s.row_upper)[high]])
        self.systems, self.idle = linking.systems[:, self.moving].tocsr(), linking.idle[:, self.moving].tocsr()
        self.systems_fixed, self.idle_fixed = linking.systems @ self.lower, linking.idle @ self.lower
        self.in_window = np.zeros((self.slots, self.windows))
        self.in_window[np.arange(self.slots), self.window] = 1.0
