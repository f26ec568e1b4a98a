"""The linking constraints between first stage and slots, for some fleet options and placements of jobs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import FirstStage
from solvers.decomposition.slots import SlotView

UNLIMITED_POWER = 1e12
"""Power left at a site without a limit, in the scaled units of the program."""


@dataclass(frozen=True, slots=True)
class FirstStagePoint:
    """Values of the first-stage columns, and the share of each slot for which jobs run at each placement."""

    first_stage: Floats
    running: Floats  # [placements, T]

    def interpolate(self, end: FirstStagePoint, share: float) -> FirstStagePoint:
        """Return the point at this share of the way to another."""
        return FirstStagePoint(
            (1 - share) * self.first_stage + share * end.first_stage, (1 - share) * self.running + share * end.running
        )


class Linking:
    """Systems, power and gates of each slot as linear functions of the first-stage columns; R sites, T slots, V windows."""

    def __init__(self, view: SlotView, first_stage: FirstStage, fleet_options: Ints, power_limit: Floats):
        """Build the matrices; `power_limit` [R] or [R, V] of sites, infinite for none."""
        self.view, self.first_stage, self.fleet_options = view, first_stage, fleet_options
        self.placements = np.sort(view.training[first_stage.columns["y"][view.training] >= 0])
        data, s = view.data, first_stage
        self.windows = data.windows
        covers = data.covers()
        held = s.columns["n"]
        there = np.flatnonzero(held >= 0)
        # [fleet options V, first-stage columns] systems held in each window
        position = np.full(len(data.option_site), -1)
        position[fleet_options] = np.arange(len(fleet_options))
        mine, window = np.nonzero(covers[there] & (position[data.holding_option[there]] >= 0)[:, None])
        mine = there[mine]
        self.systems = sparse.csr_array(
            (np.ones(len(mine)), (position[data.holding_option[mine]] * self.windows + window, held[mine])),
            shape=(len(fleet_options) * self.windows, s.size),
        )
        # [R V, first-stage columns] idle power less the limit of a site that may be closed; other limits are constants
        place = s.columns["open"]
        limit = np.broadcast_to(power_limit.reshape(data.sites, -1), (data.sites, self.windows))
        gated = (place >= 0)[:, None] & np.isfinite(limit)
        self.ungated_limit = np.where(gated, 0.0, limit)  # [R, V]
        site, at = np.nonzero(gated)
        drawing, window = np.nonzero(covers[there] & (data.holding_power_w[there] > 0)[:, None])
        drawing = there[drawing]
        rows = np.concatenate(
            [data.option_site[data.holding_option[drawing]] * self.windows + window, site * self.windows + at]
        )
        values, columns = (
            np.concatenate([data.holding_power_w[drawing], -limit[site, at]]),
            np.concatenate([held[drawing], place[site]]),
        )
        self.idle = sparse.csr_array((values, (rows, columns)), shape=(data.sites * self.windows, s.size))
        self.limited = np.isfinite(self.ungated_limit).any(axis=1)
        # what a job takes where it runs: systems [fleet options, placements] and watts [R, placements]
        mine = np.flatnonzero(np.isin(view.use_point, self.placements))
        count = np.arange(len(self.placements))
        self.uses = sparse.csr_array(
            (
                view.use_systems[mine],
                (position[view.use_option[mine]], np.searchsorted(self.placements, view.use_point[mine])),
            ),
            shape=(len(fleet_options), len(count)),
        )
        self.watts = sparse.csr_array(
            (data.point_power_w[self.placements], (view.site[self.placements], count)), shape=(data.sites, len(count))
        )
        self.reach = view.reachable[data.point_job[self.placements]] if len(count) else np.zeros((0, view.slots))
        y, run = s.columns["y"][self.placements], s.columns["run"]
        self.switch = np.where(run[self.placements] >= 0, run[self.placements], y[:, None])  # [placements, V]
        self.running_cost = view.point_cost[self.placements]

    def max_running(self, first_stage: Floats) -> Floats:
        """[placements, T]: largest share of each slot for which a job may run at a placement."""
        return self.reach * first_stage[self.switch][:, self.view.window]

    def slot_inputs(self, point: FirstStagePoint) -> tuple[Floats, Floats, Floats, Floats]:
        """Evaluate the right-hand sides of the slots' subproblems at a point.

        Returned: systems [fleet options, T], gates of arcs [A], systems that jobs take [fleet options, T], watts left [R, T].
        """
        view, data, s = self.view, self.view.data, self.first_stage
        held: Floats = np.asarray(self.systems @ point.first_stage)
        idle: Floats = np.asarray(self.idle @ point.first_stage)
        of_jobs: Floats = np.asarray(self.uses @ point.running)
        gate = np.append(point.first_stage, 1.0)[s.arc_gate]  # 1 for arcs without a gate
        limit = np.where(np.isfinite(self.ungated_limit), self.ungated_limit, UNLIMITED_POWER)[:, view.window]
        left = limit - idle.reshape(data.sites, self.windows)[:, view.window] - self.watts @ point.running
        systems = held.reshape(len(self.fleet_options), self.windows)[:, view.window]
        return systems, gate, of_jobs, np.asarray(left, dtype=np.float64)
