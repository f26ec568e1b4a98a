"""The spread block: serving over several zones, none of which carries too much.

Sets
    w        workloads
    z        zones of sites
    a        arcs of w into z
    t        slots
Data
    D_{w,t}       demand of all origins [requests/s]; the load served in the slot where requests may wait
    share_w       largest share of a slot's requests in one zone
    zones_w       least number of zones that count
    least_w       share of every slot's requests from which a zone counts
    most_{w,t}    requests/s that w can be served at most
Variables
    c_{w,z}       in {0, 1}, 1 when zone z counts for w; only where more than one zone must
Objective
    None of its own.
Constraints
    share         sum_{a of w into z} f_{a,t} <= share_w D_{w,t}    for each w, z, t; D times lambda where throughput is maximised
    zones         sum_z c_{w,z} >= zones_w    for each w
    counting      sum_{a of w into z} f_{a,t} >= least_w D_{w,t} c_{w,z}
                  for each w, z, t; with lambda or waiting: >= least_w (D_{w,t} - most_{w,t} (1 - c_{w,z}))
    share hosted  sum_{a of w into r} f_{a,t} <= share_w D_{w,t} host_{w,r}    where r is all of its zone; tightens `hosted`
    hosts         sum_r host_{w,r} >= ceil(1 / share_w)    likewise; not where throughput is maximised

Serving after the loss of a zone is in `solvers.model.zone_failure`.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.spread import SpreadData
from solvers.model.data import PlanData
from solvers.model.deferral import may_wait, most_served
from solvers.program import Program

ROUNDING_TOL = 1e-9  # share of 1 / share_w before it is rounded up


def add_spread(program: Program, data: PlanData, most: Floats) -> None:
    """Add the block, after all blocks that run or send; `most` [A, T]: requests/s that an arc can carry."""
    spread = data.spread
    if spread is None:
        return
    counts = _add_zone_counts(program, data, spread)
    _add_shares(program, data, spread, counts, most)
    if not data.objective.maximises:
        _add_hosted_shares(program, data, spread)


def _add_zone_counts(program: Program, data: PlanData, spread: SpreadData) -> Ints:
    """Add the binaries c and the rows `zones`; return the columns [W, zones]."""
    workloads, zones = data.demand.shape[0], spread.zone_count
    several = (spread.zones > 1) & (data.demand > 0).any(axis=(1, 2))
    counts = program.add_columns("c", (workloads, zones), upper=1.0, integer=True, where=several[:, None])
    wanting = np.flatnonzero(several)
    program.add_rows(
        "zones",
        spread.zones[wanting].astype(float),
        np.inf,
        np.repeat(np.arange(len(wanting)), zones),
        counts[wanting].ravel(),
        1.0,
        index=wanting[:, None],
    )
    return counts


def _add_shares(program: Program, data: PlanData, spread: SpreadData, counts: Ints, most: Floats) -> None:
    """Add the rows `share` and `counting`."""
    flow, zones = program.columns["f"], spread.zone_count
    total = data.demand.sum(axis=1)  # [W, T]
    waits, served = may_wait(data), np.zeros(total.shape, dtype=bool)
    arc, at = np.nonzero(flow >= 0)
    served[data.arc_asked()[arc], at] = True
    slots = np.where(waits[:, None], served, total > 0)[:, None, :] & np.ones((1, zones, 1), dtype=bool)
    shares = _ShareRows(program, data, spread, arc, at, total)
    shares.add_share((spread.largest_share < 1)[:, None, None] & slots)
    shares.add_counting((counts >= 0)[:, :, None] & slots, counts, _most_by_workload(data, most))


def _most_by_workload(data: PlanData, most: Floats) -> Floats:
    """[W, T]: requests/s that a workload can be served at most."""
    if not data.objective.maximises:
        served: Floats = most_served(data).sum(axis=1)
        return served
    largest = np.zeros((data.demand.shape[0], data.slots))
    np.add.at(largest, data.arc_asked(), most)
    return largest


class _ShareRows:
    """Rows over the flow of a workload into a zone, compared with a share of its demand, or of the load served where requests wait."""

    def __init__(
        self, program: Program, data: PlanData, spread: SpreadData, arc: Ints, at: Ints, total: Floats
    ) -> None:
        """`arc`, `at`: the (arc, slot) pairs with a flow; `total` [W, T]: demand of all origins."""
        self._program, self._data, self._spread, self._total = program, data, spread, total
        self._arc, self._at, self._waits = arc, at, may_wait(data)

    def add_share(self, rows: Bools) -> None:
        """Add `share` where `rows` [W, zones, T]."""
        w, z, t = np.nonzero(rows)
        part = self._spread.largest_share[w]
        entries, share, grows = self._entries(rows.shape, w, z, t, part)
        self._add("share", -np.inf, np.where(grows, 0.0, share), entries, np.column_stack([w, z, t]))

    def add_counting(self, rows: Bools, counts: Ints, largest: Floats) -> None:
        """Add `counting` where `rows` [W, zones, T]."""
        w, z, t = np.nonzero(rows)
        part = self._spread.least_share[w]
        entries, share, grows = self._entries(rows.shape, w, z, t, part)
        relaxed = grows | self._waits[w]
        slack = np.where(relaxed, part * largest[w, t], share)
        entries.append((np.arange(len(t)), counts[w, z], -slack))
        self._add("counting", np.where(relaxed, -slack, 0.0), np.inf, entries, np.column_stack([w, z, t]))

    def _entries(
        self, shape: tuple[int, ...], w: Ints, z: Ints, t: Ints, part: Floats
    ) -> tuple[list[tuple[Ints, Ints, Floats]], Floats, Bools]:
        """Return the entries of flow and lambda, the share of demand, and where lambda multiplies it."""
        data, flow, arc, at = self._data, self._program.columns["f"], self._arc, self._at
        answers, zones = data.arc_asked(), self._spread.zone_count
        row_of = np.full(shape, -1)
        row_of[w, z, t] = np.arange(len(t))
        inside = row_of[answers[arc], self._spread.site_zone[data.arc_site][arc], at]
        of_waiting = np.flatnonzero(self._waits[answers[arc]])
        each, zone = np.repeat(of_waiting, zones), np.tile(np.arange(zones), len(of_waiting))
        among = row_of[answers[arc[each]], zone, at[each]]
        each, among = each[among >= 0], among[among >= 0]
        grows, every = (data.scaled()[w] > 0) & ~self._waits[w], np.arange(len(t))
        share = np.where(self._waits[w], 0.0, part * self._total[w, t])
        factor = np.full(int(grows.sum()), int(self._program.columns["lambda"]))
        entries = [
            (inside, flow[arc, at], np.ones(len(arc))),
            (among, flow[arc[each], at[each]], -part[among]),
            (every[grows], factor, -share[grows]),
        ]
        return entries, share, grows

    def _add(
        self,
        block: str,
        low: Floats | float,
        high: Floats | float,
        entries: list[tuple[Ints, Ints, Floats]],
        index: Ints,
    ) -> None:
        row, cols, vals = (np.concatenate([entry[k] for entry in entries]) for k in range(3))
        kept = row >= 0
        self._program.add_rows(block, low, high, row[kept], cols[kept], vals[kept], index=index)


def _add_hosted_shares(program: Program, data: PlanData, spread: SpreadData) -> None:
    """Add what the shares imply for integer hosts: the LP relaxation would open a part of many sites."""
    flow, host, total = program.columns["f"], program.columns["host"], data.demand.sum(axis=1)
    alone = (np.bincount(spread.site_zone, minlength=spread.zone_count) == 1)[spread.site_zone]
    ungrouped = np.ones(len(total), dtype=bool) if data.choice is None else data.choice.group < 0
    for w in np.flatnonzero((spread.largest_share < 1) & ~may_wait(data) & ungrouped):
        mine = np.flatnonzero(data.arc_workload == w)
        sites = np.unique(data.arc_site[mine])
        hosting = sites[alone[sites] & (host[w, sites] >= 0)]
        r, t = (grid.ravel() for grid in np.meshgrid(hosting, np.flatnonzero(total[w] > 0), indexing="ij"))
        row_of = np.full((data.sites, data.slots), -1)
        row_of[r, t] = np.arange(len(t))
        arc, at = np.nonzero(flow[mine] >= 0)
        row = row_of[data.arc_site[mine[arc]], at]
        inside = row >= 0
        program.add_rows(
            "share hosted",
            -np.inf,
            0.0,
            np.concatenate([row[inside], np.arange(len(t))]),
            np.concatenate([flow[mine[arc], at][inside], host[w, r]]),
            np.concatenate([np.ones(int(inside.sum())), -spread.largest_share[w] * total[w, t]]),
            index=np.column_stack([np.full(len(t), w), r, t]),
        )
        if len(hosting) == len(sites) and (total[w] > 0).any():
            least = np.ceil(1.0 / spread.largest_share[w] - ROUNDING_TOL)
            row = np.zeros(len(sites), dtype=np.int64)
            program.add_rows("hosts", least, np.inf, row, host[w, sites], 1.0, index=np.array([[w]]))
