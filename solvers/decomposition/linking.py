"""What links the slots: the structure, and the running of jobs at some places, as the slots see them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.first_stage import Structure
from solvers.decomposition.slots import Slotwise


@dataclass(frozen=True, slots=True)
class Point:
    """Something that may be decided once: the structure's columns, and the share of each slot in which jobs run at the places."""

    structure: Floats
    running: Floats  # [places, T]

    def towards(self, end: Point, share: float) -> Point:
        """The point so far on the way to another."""
        return Point(
            (1 - share) * self.structure + share * end.structure, (1 - share) * self.running + share * end.running
        )


class Linked:
    """Systems, watts and gates of each slot as functions of what is decided once, over these fleet options and the view's points of jobs."""

    def __init__(self, view: Slotwise, structure: Structure, fleet_options: Ints, power_limit: Floats):
        self.view, self.structure, self.fleet_options = view, structure, fleet_options
        self.places = np.sort(view.training[structure.columns["y"][view.training] >= 0])
        data, s = view.data, structure
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
        self.steady = np.where(gated, 0.0, limit)  # [R, V]
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
        self.limited = np.isfinite(self.steady).any(axis=1)
        # what a job takes where it runs: systems [fleet options, places] and watts [R, places]
        mine = np.flatnonzero(np.isin(view.use_point, self.places))
        count = np.arange(len(self.places))
        self.uses = sparse.csr_array(
            (
                view.use_systems[mine],
                (position[view.use_option[mine]], np.searchsorted(self.places, view.use_point[mine])),
            ),
            shape=(len(fleet_options), len(count)),
        )
        self.watts = sparse.csr_array(
            (data.point_power_w[self.places], (view.site[self.places], count)), shape=(data.sites, len(count))
        )
        self.reach = view.reachable[data.point_job[self.places]] if len(count) else np.zeros((0, view.slots))
        y, run = s.columns["y"][self.places], s.columns["run"]
        self.switch = np.where(run[self.places] >= 0, run[self.places], y[:, None])  # [places, V]
        self.running_cost = view.point_cost[self.places]

    def most_running(self, structure: Floats) -> Floats:
        """[places, T]: the share of each slot in which a job may run at a place that it is switched on at."""
        return self.reach * structure[self.switch][:, self.view.window]

    def given(self, point: Point) -> tuple[Floats, Floats, Floats, Floats]:
        """What the slots' programs need to know of a point: systems [fleet options, T], open share [A], systems of jobs, free watts [R, T]."""
        view, data, s = self.view, self.view.data, self.structure
        systems = (self.systems @ point.structure).reshape(len(self.fleet_options), self.windows)[:, view.window]
        idle = (self.idle @ point.structure).reshape(data.sites, self.windows)[:, view.window]
        gate = np.append(point.structure, 1.0)[s.arc_gate]  # 1 where nothing is to be switched
        limit = np.where(np.isfinite(self.steady), self.steady, 1e12)[:, view.window]
        return systems, gate, self.uses @ point.running, limit - idle - self.watts @ point.running
