"""What links the slots: the structure, and the running of jobs at some places, as the slots see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import FirstStage
from solvers.decomposition.slots import SlotView


@dataclass(frozen=True, slots=True)
class FirstStagePoint:
    """Something that may be decided once: the structure's columns, and the share of each slot in which jobs run at the places."""

    first_stage: Floats
    running: Floats  # [places, T]

    def interpolate(self, end: FirstStagePoint, share: float) -> FirstStagePoint:
        """The point so far on the way to another."""
        return FirstStagePoint(
            (1 - share) * self.first_stage + share * end.first_stage, (1 - share) * self.running + share * end.running
        )


class Linking:
    """Systems, watts and gates of each slot as functions of what is decided once, over these fleet options and the view's points of jobs."""

    def __init__(self, view: SlotView, first_stage: FirstStage, fleet_options: Ints, power_limit: Floats):
        self.view, self.first_stage, self.fleet_options = view, first_stage, fleet_options
        self.placements = np.sort(view.training[first_stage.columns["y"][view.training] >= 0])
        data, s = view.data, first_stage
        self.windows = data.windows
        covers = data.covers()
        held = s.columns["n"]
        there = np.flatnonzero(held >= 0)
        # systems of each kept fleet option in each window as a function of the structure
        position = np.full(len(data.option_site), -1)
        position[fleet_options] = np.arange(len(fleet_options))
        mine, window = np.nonzero(covers[there] & (position[data.holding_option[there]] >= 0)[:, None])
        mine = there[mine]
        self.systems = sparse.csr_array(
            (np.ones(len(mine)), (position[data.holding_option[mine]] * self.windows + window, held[mine])),
            shape=(len(fleet_options) * self.windows, s.size),
        )
        # watts of idling systems less those that an open site has; sites that are always open have theirs in any case
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
        # what a job takes where it runs: systems [fleet options, places] and watts [R, places]
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
        self.switch = np.where(run[self.placements] >= 0, run[self.placements], y[:, None])  # [places, V]
        self.running_cost = view.point_cost[self.placements]

    def max_running(self, first_stage: Floats) -> Floats:
        """[places, T]: the share of each slot in which a job may run at a place that it is switched on at."""
        return self.reach * first_stage[self.switch][:, self.view.window]

    def slot_inputs(self, point: FirstStagePoint) -> tuple[Floats, Floats, Floats, Floats]:
        """What the slots' programs need to know of a point: systems [fleet options, T], open share [A], systems of jobs, free watts [R, T]."""
        view, data, s = self.view, self.view.data, self.first_stage
        systems = (self.systems @ point.first_stage).reshape(len(self.fleet_options), self.windows)[:, view.window]
        idle = (self.idle @ point.first_stage).reshape(data.sites, self.windows)[:, view.window]
        gate = np.append(point.first_stage, 1.0)[s.arc_gate]  # 1 where nothing is to be switched
        limit = np.where(np.isfinite(self.ungated_limit), self.ungated_limit, 1e12)[:, view.window]
        return systems, gate, self.uses @ point.running, limit - idle - self.watts @ point.running
