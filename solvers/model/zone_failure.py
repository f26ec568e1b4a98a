"""The zone failure block: after the loss of any one zone, the other zones still serve what must survive.

Sets
    z        zones that fail, one at a time
    u        slots in which a failure is tried
    w        workloads that survive, a their arcs into other zones
Data
    D_{w,o,u}     demand, all of it at once even where requests may wait
    most_{a,u}    requests/s that an arc can carry
Variables
    g_{z,a,u}     >= 0, requests/s on an arc after the failure of z (column block "zone z g")
    h_{z,p,u}     >= 0, replicas of a point after the failure of z (column block "zone z h")
Objective
    None of its own: the cost of operating after a failure is not counted.
Constraints
    survived balance    sum_{a of w,o} g_{z,a,u} = D_{w,o,u}    for each z, w, o, u; times lambda where throughput is maximised
    survived capacity   sum_{a into q} g_{z,a,u} <= sum_{p of q} cap_p h_{z,p,u}    for each z, q, u
    survived hosted     sum_a g_{z,a,u} <= most_{a,u} host_{w,r}    over parallel arcs as in `hosted`; open_r where host is absent
    survived installed  sum_p uses_{p,k} m_{z,p,u} <= sum_{i of k, i covers w(u)} n_i
                        for each z, k, u; m = h for what survives, x + v else
    survived power      sum_i power_i n_i + sum_p power_p m_{z,p,u} <= limit_{r,w(u)}    for each z, r outside z, u
    survived chosen     sum_{a of w,o} g_{z,a,u} <= most_{w,o,u} serve_w    for each z, w, o, u where the choice block has serve_w
    survived line       sum_a bytes_{a,c} m_{z,a,u} + sum_x rate_{x,c} way_x + sum_y rate_y send_y <= cap_l unit_l
                        for each z, c, u; m = g for what survives, f else

A workload that need not survive keeps its operation outside z, and loses what it had inside. What several workloads may answer
(`solvers.model.choice`) survives where its lead does; the mean score is that of normal operation. Ports that only a failure needs are
paid as well: `survived ported` of `solvers.model.porting`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.lines import LineData
from solvers.model.block_data.spread import SpreadData
from solvers.model.choice import ChosenRows
from solvers.model.data import PlanData
from solvers.model.routing import parallel_arcs
from solvers.program import Program


def add_zone_failures(program: Program, data: PlanData, most: Floats) -> None:
    """Add the columns and rows of every failure, after all blocks that run or send; `most` [A, T]: requests/s that an arc can carry."""
    if data.spread is not None and data.spread.survives.any():
        for zone in range(data.spread.zone_count):
            _Failure.of(program, data, data.spread, most, zone).add_rows()


@dataclass(frozen=True, slots=True)
class _Failure:
    """The failure of one zone: its columns, and what runs in other zones after it."""

    program: Program
    data: PlanData
    spread: SpreadData
    most: Floats
    zone: int
    outside: Bools  # [R] sites in other zones
    flow: Ints  # [A, T] columns g
    active: Ints  # [P, T] columns h
    running: Ints  # [P, T] columns of all that runs: h for what survives, x and v for the rest

    @classmethod
    def of(cls, program: Program, data: PlanData, spread: SpreadData, most: Floats, zone: int) -> _Failure:
        """Add the columns g and h of a zone's failure."""
        outside, slots = spread.site_zone != zone, spread.tried_slots
        survives = spread.survives[data.arc_asked()]
        arcs = np.flatnonzero(survives & outside[data.arc_site])
        pools = np.unique(data.arc_pool[arcs])
        points = np.flatnonzero(np.isin(data.point_pool, pools) & (data.point_capacity > 0))
        asked = data.demand[data.arc_asked(), data.arc_origin] > 0  # in the slot itself, also where requests may wait
        flow = program.add_columns(
            f"zone {zone} g", most.shape, where=_mask(most.shape, arcs, slots) & (most > 0) & asked
        )
        shape = (len(data.point_pool), data.slots)
        active = program.add_columns(f"zone {zone} h", shape, where=_mask(shape, points, slots))
        before = np.maximum(program.columns["x"], program.columns["v"])
        surviving = np.isin(data.point_pool, np.unique(data.arc_pool[survives]))
        others = (before >= 0) & ~surviving[:, None] & outside[data.point_site()][:, None]
        others &= np.isin(np.arange(data.slots), slots)
        return cls(program, data, spread, most, zone, outside, flow, active, np.where(others, before, active))

    def add_rows(self) -> None:
        """Add all rows of this failure."""
        self._add_balance()
        self._add_capacity()
        self._add_hosted()
        if self.data.choice is not None:
            self._add_chosen()
        self._add_installed()
        self._add_power()
        if self.data.lines is not None:
            self._add_lines(self.data.lines)

    def _add_balance(self) -> None:
        data, flow = self.data, self.flow
        tried = np.isin(np.arange(data.slots), self.spread.tried_slots)
        arc, at = np.nonzero(flow >= 0)
        w, o, t = np.nonzero((data.demand > 0) & self.spread.survives[:, None, None] & tried)
        row_of = np.full(data.demand.shape, -1)
        row_of[w, o, t] = np.arange(len(t))
        asked, grows = data.demand[w, o, t], data.scaled()[w] > 0
        side = np.where(grows, 0.0, asked)
        factor = np.full(int(grows.sum()), int(self.program.columns["lambda"]))
        self.program.add_rows(
            "survived balance",
            side,
            side,
            np.concatenate([row_of[data.arc_asked()[arc], data.arc_origin[arc], at], np.flatnonzero(grows)]),
            np.concatenate([flow[arc, at], factor]),
            np.concatenate([np.ones(len(arc)), -asked[grows]]),
            index=_tagged(self.zone, w, o, t),
        )

    def _add_capacity(self) -> None:
        data = self.data
        arc, at = np.nonzero(self.flow >= 0)
        point, when = np.nonzero(self.active >= 0)
        pool_slot = [data.arc_pool[arc] * data.slots + at, data.point_pool[point] * data.slots + when]
        self._add_grouped(
            "survived capacity",
            pool_slot,
            [self.flow[arc, at], self.active[point, when]],
            [np.ones(len(arc)), -data.point_capacity[point]],
            np.unique(pool_slot[0]),
        )

    def _add_hosted(self) -> None:
        data, flow = self.data, self.flow
        host, opened = self.program.columns["host"], self.program.columns["open"]
        binary = np.where(host >= 0, host, opened)
        arc, at = np.nonzero(flow >= 0)
        first, together = parallel_arcs(data, self.most)
        linked = binary[data.arc_workload[arc], data.arc_site[arc]] >= 0
        key, row = np.unique(first[arc[linked]] * data.slots + at[linked], return_inverse=True)
        lead, slot = np.divmod(key, data.slots)
        self.program.add_rows(
            "survived hosted",
            -np.inf,
            0.0,
            np.concatenate([row.reshape(-1), np.arange(len(key))]),
            np.concatenate([flow[arc[linked], at[linked]], binary[data.arc_workload[lead], data.arc_site[lead]]]),
            np.concatenate([np.ones(int(linked.sum())), -together[lead, slot]]),
            index=_tagged(self.zone, lead, slot),
        )

    def _add_chosen(self) -> None:
        arc, at = np.nonzero((self.flow >= 0) & (self.program.columns["serve"] >= 0)[self.data.arc_workload][:, None])
        rows = ChosenRows.of(self.data, self.most, arc, at)
        rows.add(self.program, "survived chosen", self.flow, _tagged(self.zone, *rows.index))

    def _covering(self) -> tuple[Ints, Ints]:
        """(holding, slot) pairs in which a holding is there, over the tried slots."""
        covers = self.data.covers()[:, self.data.slot_window]
        holding, slot = np.nonzero(covers & np.isin(np.arange(self.data.slots), self.spread.tried_slots))
        return holding, slot

    def _add_installed(self) -> None:
        data = self.data
        user, option = data.point_uses.T
        use, slot = np.nonzero(self.running[user] >= 0)
        holding, at = self._covering()
        option_slot = [option[use] * data.slots + slot, data.holding_option[holding] * data.slots + at]
        self._add_grouped(
            "survived installed",
            option_slot,
            [self.running[user[use], slot], self.program.columns["n"][holding]],
            [data.point_uses_systems[use], -np.ones(len(holding))],
            np.unique(option_slot[0]),
        )

    def _add_power(self) -> None:
        data = self.data
        limit_by_window, number_by_window = data.power_limit()
        limit = limit_by_window[:, data.slot_window].ravel()
        number = number_by_window[:, data.slot_window].ravel()
        point, slot = np.nonzero(self.running >= 0)
        holding, at = self._covering()
        holding_site = data.option_site[data.holding_option[holding]]
        site_slot = [data.point_site()[point] * data.slots + slot, holding_site * data.slots + at]
        wanted = np.unique(site_slot[0])
        wanted = wanted[np.isfinite(limit[wanted])]
        self._add_grouped(
            "survived power",
            site_slot,
            [self.running[point, slot], self.program.columns["n"][holding]],
            [data.point_power_w[point], data.holding_power_w[holding]],
            wanted,
            limit[wanted],
            number[wanted],
        )

    def _add_lines(self, lines: LineData) -> None:
        data, spread, columns = self.data, self.spread, self.program.columns
        tried = np.isin(np.arange(data.slots), spread.tried_slots)
        stays = ~spread.survives[data.arc_asked()] & self.outside[data.arc_site]
        flow = np.where(stays[:, None] & tried, columns["f"], self.flow)
        counted = np.isfinite(lines.line_capacity)[lines.channel_line]
        stage = lines.window_stage[data.slot_window]
        arc, channel = lines.arc_uses.T
        use, slot = np.nonzero((flow[arc] >= 0) & counted[channel][:, None])
        rows, cols = [channel[use] * data.slots + slot], [flow[arc[use], slot]]
        vals = [lines.arc_uses_bytes[use]]
        for column, of_channel, of_stage, rate in lines.steady_uses(columns["way"], columns["send"]):
            there, slot = np.nonzero((of_stage[:, None] == stage[None, :]) & counted[of_channel][:, None] & tried)
            rows.append(of_channel[there] * data.slots + slot)
            cols.append(column[there])
            vals.append(rate[there])
        wanted = np.unique(rows[0])
        line = lines.channel_line[wanted // data.slots]
        rows.append(wanted)
        cols.append(columns["unit"][line])
        vals.append(-lines.line_capacity[line])
        self._add_grouped("survived line", rows, cols, vals, wanted)

    def _add_grouped(
        self,
        block: str,
        rows: Sequence[Ints],
        cols: Sequence[Ints],
        vals: Sequence[Floats],
        wanted: Ints,
        upper: Floats | float = 0.0,
        number: Ints | None = None,
    ) -> None:
        """Add `<=` rows numbered position * slots + slot, leaving out those that are not `wanted`.

        Each row is indexed by (zone, position, slot), followed by its `number` where that is given.
        """
        row, col, val = np.concatenate(rows), np.concatenate(cols), np.concatenate(vals)
        place = np.searchsorted(wanted, row)
        kept = np.zeros(len(row), dtype=bool)
        if len(wanted):
            kept = (place < len(wanted)) & (wanted[np.minimum(place, len(wanted) - 1)] == row)
        parts = [*np.divmod(wanted, self.data.slots), *(() if number is None else (number,))]
        self.program.add_rows(
            block, -np.inf, upper, place[kept], col[kept], val[kept], index=_tagged(self.zone, *parts)
        )


def _mask(shape: tuple[int, ...], first: Ints, second: Ints) -> Bools:
    mask = np.zeros(shape, dtype=bool)
    mask[np.ix_(first, second)] = True
    return mask


def _tagged(zone: int, *parts: Ints) -> Ints:
    return np.column_stack([np.full(len(parts[0]), zone), *parts])
