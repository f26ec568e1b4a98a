"""The rows of the joint program a second time, for comparison: written from the definitions in words, row by row, sharing no code
with `solvers`. What is done with them is in `tests/solvers/reference.py`.

What a whole number allows is decided from its bounds and not by a row with a large coefficient: nothing is served where the
workload cannot be placed, no job runs without its full width, a zone counts only when it is chosen.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np


@dataclass
class Table:
    """Columns by name with their bounds, rows by their entries."""

    at: dict = field(default_factory=dict)
    low: list = field(default_factory=list)
    high: list = field(default_factory=list)
    rows: list = field(default_factory=list)

    def column(self, *key, low=0.0, high=np.inf):
        self.at[key] = len(self.low)
        self.low.append(low)
        self.high.append(high)

    def row(self, entries, low, high):
        self.rows.append((self.vector(entries), low, high))

    def equal(self, entries, side=0.0):
        self.row(entries, side, side)

    def at_most(self, entries, side=0.0):
        self.row(entries, -np.inf, side)

    def vector(self, entries):
        line = np.zeros(len(self.low))
        for key, value in entries:
            line[self.at[key]] += value
        return line


class Reference:
    """The program of one problem; `whole` are its whole-numbered columns."""

    def __init__(self, data):
        self.data, self.table = data, Table()
        self.T, self.A, self.P, self.R = (
            len(data.slot_window),
            len(data.arc_pool),
            len(data.point_pool),
            len(data.site_power_limit_w),
        )
        self.U, self.W, self.O = len(data.holding_option), *data.demand.shape[:2]
        self.uses = [
            [(int(k), float(s)) for (q, k), s in zip(data.point_uses, data.point_uses_systems, strict=True) if q == p]
            for p in range(self.P)
        ]
        self.point_site = [int(data.option_site[uses[0][0]]) for uses in self.uses]
        self.holding_site = [int(data.option_site[k]) for k in data.holding_option]
        self.serving = [p for p in range(self.P) if data.point_pool[p] >= 0]
        self.maximised = data.objective.maximises
        self.zone_of = None if data.spread is None else data.spread.site_zone.tolist()
        self.zones = sorted(set(self.zone_of or ()))
        self.placing = self._placing()
        self.whole_points = [p for p in self.serving if data.point_whole is not None and data.point_whole[p]]
        number = np.ones(len(data.point_uses), dtype=int) if data.use_workers is None else data.use_workers
        self.numbers = [
            [int(n) for (q, _), n in zip(data.point_uses, number, strict=True) if q == p] for p in range(self.P)
        ]
        spare = np.zeros(len(data.point_uses), dtype=int) if data.use_spares is None else data.use_spares
        self.spares = [
            [int(n) for (q, _), n in zip(data.point_uses, spare, strict=True) if q == p] for p in range(self.P)
        ]
        self.workers = [
            [(k, s / n) for (k, s), n in zip(uses, ns, strict=True)]
            for uses, ns in zip(self.uses, self.numbers, strict=True)
        ]
        shared = {k for p in self.whole_points for k, _ in self.uses[p]}
        self.beside = [p for p in range(self.P) if p not in self.serving and shared & {k for k, _ in self.uses[p]}]
        self.counted = (
            [] if data.lines is None else [l for l, c in enumerate(data.lines.line_capacity) if np.isfinite(c)]
        )
        self.spreading = (
            []
            if data.spread is None
            else [w for w in range(self.W) if data.spread.zones[w] > 1 and data.demand[w].any()]
        )
        self.failing = [] if data.spread is None or not data.spread.survives.any() else [
            (z, t) for z in self.zones for t in sorted(set(data.spread.tried_slots.tolist()))]  # fmt: skip
        self._columns()
        self.of_arc = [
            [i for key, i in self.table.at.items() if key[:2] == ("f", a) or (key[0] == "g" and key[2] == a)]
            for a in range(self.A)
        ]
        self._fleet()
        for t in range(self.T):
            self._balance(t)
            self._fits(t, lambda a, t=t: ("f", a, t), lambda p, t=t: (("x" if p in self.serving else "v"), p, t))
            self._resides(t)
        self._reloads()
        self._jobs()
        self._electricity()
        self._lines()
        self._spread()

    # --- sets

    def _placing(self):
        """(workload, site) pairs where placing matters, because it costs or sends something."""
        data = self.data
        pairs = {(int(w), int(r)) for values in data.host_cost.values() for w, r in np.argwhere(values > 0)}
        pairs |= {(int(w), int(r)) for w, r, _ in data.tree_path}
        if data.lines is not None:
            pairs |= {(int(w), int(r)) for w, r in zip(data.lines.stream_workload, data.lines.stream_site, strict=True)}
            pairs |= {(int(w), int(r)) for w, r in np.argwhere(data.lines.needs_weights)}
        return sorted(pairs)

    def _could_serve(self, w, r):
        """A copy may be held only to pass it on, but only where requests could come and be served."""
        asked = self.data.demand[w].any(axis=1, keepdims=True) if self.waits(w) else self.data.demand[w] > 0
        pools = [q for q, p in zip(self.data.point_pool, self.data.point_capacity, strict=True) if p > 0]
        return any(
            (asked[self.data.arc_origin[a]] & [self.ready(a, t) for t in range(self.T)]).any()
            for a in range(self.A) if (self.data.arc_workload[a], self.data.arc_site[a]) == (w, r) and self.data.arc_pool[a] in pools
        )  # fmt: skip

    def covers(self, u, t):
        first, window = self.data.holding_window[u], self.data.slot_window[t]
        return first < 0 or first <= window <= (first if self.data.holding_last is None else self.data.holding_last[u])

    def most_w(self, r, t):
        """What a site may draw in a slot: as ever, or as stated for its window."""
        stages, window = self.data.power_stages, self.data.slot_window[t]
        stated = (
            []
            if stages is None
            else [
                w
                for site, a, b, w in zip(stages.site, stages.first, stages.last, stages.limit_w, strict=True)
                if site == r and a <= window <= b
            ]
        )
        return min([self.data.site_power_limit_w[r], *stated])

    def grows(self, w):
        return self.maximised and self.data.objective.workload in (-1, w)

    def waits(self, w):
        return 0 if self.data.wait_slots is None else int(self.data.wait_slots[w])

    def ready(self, a, t):
        lines = self.data.lines
        return lines is None or all(
            lines.line_usable[lines.channel_line[c], self.data.slot_window[t]] for b, c in lines.arc_uses if b == a
        )

    # --- columns

    def _columns(self):
        data, add, T = self.data, self.table.column, range(self.T)
        for u in range(self.U):
            add("n", u, high=math.floor(data.holding_upper[u] + 1e-9))
        for p in range(self.P):
            if p not in self.serving:
                add("y", p, high=1)
                for t in range(self.T if self.restart(p) else 0):
                    add("back", p, t, high=1)
        for w, r in self.placing:
            add("host", w, r, high=float(self._could_serve(w, r)))
        for w, z in itertools.product(self.spreading, self.zones):
            add("c", w, z, high=1)
        for l in self.counted:
            add("unit", l, high=math.floor(data.lines.line_upper[l]))
        for p, t in itertools.product(self.whole_points, T):
            for i, (k, s) in enumerate(self.workers[p]):
                most = (
                    sum(data.holding_upper[u] for u in range(self.U) if data.holding_option[u] == k) / s if s else 0.0
                )
                add("resident", p, i, t, high=math.floor(most + 1e-9))
            if any(n > 1 for n in self.numbers[p]) or any(self.spares[p]):
                add("deployed", p, t, high=1)
        for p, t in itertools.product(self.beside, T):
            add("present", p, t, high=1)
        self.whole = list(range(len(self.table.low)))
        for p, t in itertools.product(self.whole_points, T):
            for i in range(len(self.workers[p])):
                add("load", p, i, t)
        for r in range(self.R):
            add("open", r, high=1)
        for e in range(len(data.edge_workload)):
            add("edge", e, high=1)
        for a, t in itertools.product(range(self.A), T):
            add("f", a, t, high=np.inf if self.ready(a, t) else 0)
        for p, t in itertools.product(range(self.P), T):
            add("x" if p in self.serving else "v", p, t)
            if self.restart(p):
                add("rise", p, t, high=1)
        add("factor", high=np.inf if self.maximised else 0)
        for w, o, t in itertools.product(range(self.W), range(self.O), T):
            if self.waits(w):
                add("waiting", w, o, t)
        for w, z, t in itertools.product(self.spreading, self.zones, T):
            add("short", w, z, t)
        for z, t in self.failing:
            for a in range(self.A):
                lost = self.zone_of[data.arc_site[a]] == z or not data.spread.survives[data.arc_workload[a]]
                add("g", z, a, t, high=0 if lost or not self.ready(a, t) else np.inf)
            for p in self.serving:
                add("h", z, p, t)
        lines, m = data.lines, data.meters
        if lines is not None:
            for x in range(len(lines.way_stream)):
                add("way", x)
            for y in range(len(lines.send_hop)):
                add("send", y, high=1)
        if m is not None:
            for k in range(len(m.peak_meter)):
                add("peak", k)
            for c in range(len(m.contract_meter)):
                add("contract", c, low=m.contract_least_w[c], high=m.contract_upper_w[c])
            for b in range(len(m.battery_meter)):
                add("energy", b, low=m.battery_least_j[b], high=m.battery_upper_j[b])
                add("power", b, low=m.battery_least_w[b], high=m.battery_upper_w[b])
            for block, size in (
                ("grid", len(m.meter_site)),
                ("taken", len(m.contract_meter)),
                *((b, len(m.battery_meter)) for b in ("charge", "discharge", "stored")),
            ):
                for i, t in itertools.product(range(size), T):
                    add(block, i, t)

    # --- rows

    def _fleet(self):
        data, table = self.data, self.table
        for s, limit in enumerate(data.supply_limit):
            for t in range(self.T):
                table.at_most(
                    [(("n", u), 1.0) for row, u in data.supply_member if row == s and self.covers(u, t)], limit
                )
        for r, t in itertools.product(range(self.R if data.site_racks is not None else 0), range(self.T)):
            if np.isfinite(data.site_racks[r]):  # the systems that stand there at a time, in racks
                here = [u for u in range(self.U) if data.option_site[data.holding_option[u]] == r and self.covers(u, t)]
                table.at_most([(("n", u), data.holding_racks[u]) for u in here], data.site_racks[r])

    def _balance(self, t):
        """All that is asked is served, at once or after waiting; first come, first served."""
        data, table = self.data, self.table
        before = None if data.order is None else int(np.flatnonzero(data.order.next == t)[0])
        for w, o in itertools.product(range(self.W), range(self.O)):
            asked = data.demand[w, o, t]
            mine = [a for a in range(self.A) if (data.arc_workload[a], data.arc_origin[a]) == (w, o)]
            scale = lambda amount, w=w: ([(("factor",), -amount)], 0.0) if self.grows(w) else ([], amount)
            if not self.waits(w):
                more, side = scale(asked)
                table.equal([(("f", a, t), 1.0) for a in mine] + more, side)
                continue
            step, patient, at = data.order.step_s, 0.0, t
            more, side = scale(asked * step[t])
            table.equal(
                [(("f", a, t), step[t]) for a in mine]
                + [(("waiting", w, o, t), 1.0), (("waiting", w, o, before), -1.0)]
                + more,
                side,
            )
            for _ in range(self.waits(w)):
                patient += data.demand[w, o, at] * step[at]
                at = int(np.flatnonzero(data.order.next == at)[0])
            more, side = scale(patient)
            table.at_most([(("waiting", w, o, t), 1.0), *more], side)

    def _resides(self, t):
        """Whole replicas hold systems whether they work or not, lose the time in which they load, and never overlap a job's width."""
        data, table = self.data, self.table
        held = lambda k: [(("n", u), -1.0) for u in range(self.U) if data.holding_option[u] == k and self.covers(u, t)]
        residents = lambda k: [
            (("resident", p, i, t), s)
            for p in self.whole_points
            for i, (option, s) in enumerate(self.workers[p])
            if option == k
        ]
        for p in self.whole_points:
            for i, n in enumerate(self.numbers[p]):
                lost = 0.0
                if data.order is not None and data.point_load_s is not None:
                    lost = min(data.point_load_s[p] / data.order.step_s[t], 1.0)
                    before = int(np.flatnonzero(data.order.next == t)[0])
                    table.at_most(
                        [(("resident", p, i, t), 1.0), (("resident", p, i, before), -1.0), (("load", p, i, t), -1.0)]
                    )
                kept = [(("deployed", p, t), float(self.spares[p][i]))] if self.spares[p][i] else []
                table.at_most(
                    [(("x", p, t), float(n)), (("load", p, i, t), lost), *kept, (("resident", p, i, t), -1.0)]
                )
                if ("deployed", p, t) in table.at:
                    least = float(n + self.spares[p][i])
                    table.at_most([(("deployed", p, t), least), (("resident", p, i, t), -1.0)])
        for k in range(len(data.option_site)):
            jobs = [(("v", p, t), s) for p in range(self.P) if p not in self.serving for option, s in self.uses[p] if option == k]  # fmt: skip
            if self.whole_points:
                others = [(("x", p, t), s) for p in self.serving if p not in self.whole_points for option, s in self.uses[p] if option == k]  # fmt: skip
                table.at_most(residents(k) + jobs + others + held(k))
            for j in range(len(data.job_work)):
                width = [(("present", p, t), s) for p in self.beside if data.point_job[p] == j for option, s in self.uses[p] if option == k]  # fmt: skip
                if width:
                    table.at_most(residents(k) + width + held(k))
        for p in self.beside:
            table.at_most([(("v", p, t), 1.0), (("present", p, t), -1.0)])

    def _reloads(self):
        """No system loads weights more often in a day than allowed; days are runs of 24 hours of one window, in the order of slots."""
        data = self.data
        if data.relays is None or np.isinf(data.relays.per_day):
            return
        days, left = [], set(range(self.T))
        while left:
            t, passed = min(left), 86_400.0
            while t in left:
                if passed >= 86_400.0 - 1e-6 or data.slot_window[days[-1][-1]] != data.slot_window[t]:
                    days.append([])
                    passed = 0.0
                days[-1].append(t)
                left.discard(t)
                passed += data.order.step_s[t]
                t = int(data.order.next[t])
        for k, day in itertools.product(range(len(data.option_site)), days):
            loads = [
                (("load", p, i, t), s)
                for p in self.whole_points
                for i, (option, s) in enumerate(self.workers[p])
                for t in day
                if option == k
            ]
            held = [u for u in range(self.U) if data.holding_option[u] == k and self.covers(u, day[0])]
            self.table.at_most(loads + [(("n", u), -float(data.relays.per_day)) for u in held])

    def _fits(self, t, flow, run):
        """What runs is what is needed, on systems that are there, within the power of the site and the capacity of the lines.
        `flow` and `run` name the columns of an arc and a point, or None where there is nothing."""
        data, table = self.data, self.table
        flows, runs = [a for a in range(self.A) if flow(a)], [p for p in range(self.P) if run(p)]
        for q in sorted({*data.arc_pool.tolist(), *data.point_pool.tolist()} - {-1}):
            table.equal(
                [(flow(a), 1.0) for a in flows if data.arc_pool[a] == q]
                + [(run(p), -data.point_capacity[p]) for p in runs if data.point_pool[p] == q]
            )
        for k in range(len(data.option_site)):
            table.at_most([(run(p), s) for p in runs for option, s in self.uses[p] if option == k]
                          + [(("n", u), -1.0) for u in range(self.U) if data.holding_option[u] == k and self.covers(u, t)])  # fmt: skip
        for r in range(self.R):
            if np.isfinite(limit := self.most_w(r, t)):
                table.at_most(self.load(r, t, runs, run), limit)
        lines = data.lines
        if lines is None:
            return
        g = lines.window_stage[data.slot_window[t]]
        for c, l in enumerate(lines.channel_line):
            if l in self.counted:
                load = [
                    (flow(a), size)
                    for (a, k), size in zip(lines.arc_uses, lines.arc_uses_bytes, strict=True)
                    if k == c and a in flows
                ]
                load += [
                    (("way", x), rate)
                    for (x, k), rate in zip(lines.way_uses, lines.way_uses_rate, strict=True)
                    if k == c and lines.way_stage[x] == g
                ]
                load += [
                    (("send", y), lines.send_rate[y])
                    for y in range(len(lines.send_hop))
                    if lines.send_channel[y] == c and lines.send_stage[y] == g
                ]
                table.at_most([*load, (("unit", l), -lines.line_capacity[l])])

    def load(self, r, t, runs, run):
        """Watts of a site in a slot."""
        held = [
            (("n", u), self.data.holding_power_w[u])
            for u in range(self.U)
            if self.holding_site[u] == r and self.covers(u, t)
        ]
        return held + [(run(p), self.data.point_power_w[p]) for p in runs if self.point_site[p] == r]

    def _jobs(self):
        data, table = self.data, self.table
        for j, work in enumerate(data.job_work):
            mine = [p for p in range(self.P) if data.point_job[p] == j]
            table.equal([(("y", p), 1.0) for p in mine], 1.0)
            for p in mine:
                lost = [
                    (
                        ("rise", p, t),
                        -data.point_capacity[p] * self.restart(p) * data.slot_hours_s[t] / data.order.step_s[t],
                    )
                    for t in range(self.T)
                    if self.restart(p)
                ]
                table.equal(
                    [(("v", p, t), data.slot_hours_s[t] * data.point_capacity[p]) for t in range(self.T)]
                    + lost
                    + [(("y", p), -work)]
                )
                for t in range(self.T if self.restart(p) else 0):  # it rises by just what it rises
                    rise, back = ("rise", p, t), ("back", p, t)
                    change = [(("v", p, t), 1.0), (("v", p, int(np.flatnonzero(data.order.next == t)[0])), -1.0)]
                    table.at_most([*change, (rise, -1.0)])
                    table.at_most([(rise, 1.0), (back, -1.0)])
                    table.at_most([(rise, 1.0), *((key, -sign) for key, sign in change), (back, 1.0)], 1.0)
        for r, t in itertools.product(range(self.R if data.site_storage is not None else 0), range(self.T)):
            if np.isfinite(data.site_storage[r]):
                table.at_most(
                    [
                        (("v", p, t), data.point_storage[p])
                        for p in range(self.P)
                        if p not in self.serving and self.point_site[p] == r
                    ],
                    data.site_storage[r],
                )

    def restart(self, p):
        return 0.0 if self.data.point_restart_s is None else self.data.point_restart_s[p]

    def _electricity(self):
        data, table, m = self.data, self.table, self.data.meters
        if m is None:
            return
        step, every = data.order.step_s, range(self.P)
        for t in range(self.T):
            for i, r in enumerate(m.meter_site):
                supplied = [(("grid", i, t), -1.0)] + [
                    (("taken", c, t), -1.0) for c, of in enumerate(m.contract_meter) if of == i
                ]
                supplied += [
                    ((name, b, t), sign)
                    for b, of in enumerate(m.battery_meter)
                    if of == i
                    for name, sign in (("charge", 1.0), ("discharge", -1.0))
                ]
                table.equal(
                    self.load(r, t, every, lambda p, t=t: (("x" if p in self.serving else "v"), p, t)) + supplied
                )
            for c in range(len(m.contract_meter)):
                table.at_most([(("taken", c, t), 1.0), (("contract", c), -m.contract_share[c, t])])
            for b, eta in enumerate(m.battery_efficiency):
                table.at_most([(("charge", b, t), 1.0), (("discharge", b, t), 1.0), (("power", b), -1.0)])
                table.at_most([(("stored", b, t), 1.0), (("energy", b), -1.0)])
                after = int(data.order.next[t])
                table.equal(
                    [
                        (("stored", b, after), 1.0),
                        (("stored", b, t), -1.0),
                        (("charge", b, t), -step[t] * eta),
                        (("discharge", b, t), step[t] / eta),
                    ]
                )
            over_grid = [
                [
                    (("taken", c, t), 1.0)
                    for c in range(len(m.contract_passes))
                    if m.contract_passes[c] and m.contract_meter[c] == i
                ]
                for i in range(len(m.meter_site))
            ]
            for i, most in enumerate(m.grid_upper_w):
                if np.isfinite(most):
                    table.at_most([(("grid", i, t), 1.0), *over_grid[i]], most)
            for k, i in enumerate(m.peak_meter):
                if m.peak_slot[k, t]:
                    counted = 1.0 if not m.peak_grid.size or m.peak_grid[k] else 0.0
                    table.at_most([(("grid", i, t), counted), *over_grid[i], (("peak", k), -1.0)])

    def _lines(self):
        """Streams over their ways; the weights by the cuts that they must cross to reach each place that holds them."""
        table, lines = self.table, self.data.lines
        if lines is None:
            return
        stages = sorted(set(lines.window_stage.tolist()))
        for (i, (w, r)), g in itertools.product(
            enumerate(zip(lines.stream_workload.tolist(), lines.stream_site.tolist(), strict=True)), stages
        ):
            ways = [
                (("way", x), 1.0)
                for x in range(len(lines.way_stream))
                if (lines.way_stream[x], lines.way_stage[x]) == (i, g)
            ]
            table.equal([*ways, (("host", w, r), -1.0)])
        for w, g in itertools.product(range(self.W), stages):
            sends = [
                (y, int(lines.hop_from[h]), int(lines.hop_to[h]))
                for y, h in enumerate(lines.send_hop)
                if lines.hop_workload[h] == w and lines.send_stage[y] == g
            ]
            for y, origin, _ in sends:
                if origin >= 0:  # it passes on only what it holds
                    table.at_most(
                        [(("send", y), 1.0), *([(("host", w, origin), -1.0)] if (w, origin) in self.placing else [])]
                    )
            needing = [r for r in range(self.R) if lines.needs_weights[w, r]]
            for some in (set(s) for size in range(1, self.R + 1) for s in itertools.combinations(range(self.R), size)):
                into = [(("send", y), -1.0) for y, origin, to in sends if to in some and origin not in some]
                for r in some & set(needing):
                    table.at_most([*into, (("host", w, r), 1.0)])

    def _spread(self):
        data, table, spread = self.data, self.table, self.data.spread
        if spread is None:
            return
        for w in self.spreading:
            table.row([(("c", w, z), 1.0) for z in self.zones], spread.zones[w], np.inf)
        for w, z, t in itertools.product(range(self.W), self.zones, range(self.T)):
            mine = [a for a in range(self.A) if data.arc_workload[a] == w]
            inside = [a for a in mine if self.zone_of[data.arc_site[a]] == z]
            shared = lambda share, w=w, t=t, mine=mine, inside=inside: [
                (("f", a, t), (a in inside) - share) for a in mine
            ]
            table.at_most(shared(spread.largest_share[w]))
            if w in self.spreading:
                table.row([*shared(spread.least_share[w]), (("short", w, z, t), 1.0)], 0.0, np.inf)
        surviving = [
            p for p in self.serving if spread.survives[data.arc_workload[data.arc_pool == data.point_pool[p]]].any()
        ]
        for z, t in self.failing:
            flow = lambda a, z=z, t=t: (
                None
                if self.zone_of[data.arc_site[a]] == z
                else ("g", z, a, t)
                if spread.survives[data.arc_workload[a]]
                else ("f", a, t)
            )

            def run(p, z=z, t=t):
                if self.zone_of[self.point_site[p]] == z:
                    return None
                return ("v", p, t) if p not in self.serving else ("h", z, p, t) if p in surviving else ("x", p, t)

            for w, o in itertools.product(np.flatnonzero(spread.survives).tolist(), range(self.O)):
                mine = [a for a in range(self.A) if (data.arc_workload[a], data.arc_origin[a]) == (w, o)]
                asked = data.demand[w, o, t]
                more, side = ([(("factor",), -asked)], 0.0) if self.grows(w) else ([], asked)
                table.equal([(("g", z, a, t), 1.0) for a in mine] + more, side)
            self._fits(t, flow, run)

    # --- what is counted

    def functional(self, name):
        data, m, lines, entries = self.data, self.data.meters, self.data.lines, []

        def add(block, part, key=lambda *at: at):
            if name in part:
                entries.extend(
                    ((block, *key(*at)), float(value))
                    for at, value in np.ndenumerate(part[name])
                    if value and (block, *key(*at)) in self.table.at
                )

        add("open", data.site_fixed)
        add("n", data.holding_cost)
        add("f", data.arc_cost)
        add("host", data.host_cost)
        add("edge", data.edge_cost)
        for block in "xv":
            add(block, data.point_cost)
        if data.relays is not None:
            role = {row: (int(p), (data.point_uses[:row, 0] == p).sum()) for row, p in enumerate(data.point_uses[:, 0])}
            add("load", data.relays.cost, lambda row, t: (*role[row], t))
        if lines is not None:
            for block, part in (("unit", lines.line_cost), ("way", lines.way_cost), ("send", lines.send_cost)):
                add(block, part)
        if m is not None:
            for block, part in (("grid", m.grid_cost), ("peak", m.peak_cost), ("contract", m.contract_cost), ("taken", m.taken_cost),
                                ("energy", m.battery_energy_cost), ("power", m.battery_power_cost)):  # fmt: skip
                add(block, part)
        return self.table.vector(entries)

    # --- what the whole numbers allow

    def bounds(self, low, high):
        """Bounds of all columns when the whole numbers lie between `low` and `high`; None where these contradict each other."""
        data, at = self.data, self.table.at
        lower, upper = np.array(self.table.low, dtype=float), np.array(self.table.high, dtype=float)
        lower[self.whole], upper[self.whole] = low, high
        is_on, can = (lambda *key: low[at[key]] > 0), (lambda *key: high[at[key]] > 0)
        designs = {}
        for u in range(self.U):
            option = data.holding_option[u]
            if is_on("n", u):
                lower[at["open", self.holding_site[u]]] = 1
                if (
                    data.option_fabric[option] >= 0
                    and designs.setdefault(data.option_group[option], data.option_fabric[option])
                    != data.option_fabric[option]
                ):
                    return None
        for w, r in self.placing:
            if is_on("host", w, r):
                lower[at["open", r]] = 1
            if not can("host", w, r):
                for a in np.flatnonzero((data.arc_workload == w) & (data.arc_site == r)):
                    upper[self.of_arc[a]] = 0
        for w, r, e in data.tree_path:
            lower[at["edge", e]] = max(lower[at["edge", e]], float(is_on("host", w, r)))
        for p in range(self.P):
            if p in self.serving:
                continue
            for t in range(self.T):
                room = lambda k, t=t: sum(
                    high[at["n", u]] for u in range(self.U) if data.holding_option[u] == k and self.covers(u, t)
                )
                wide = (
                    can("y", p)
                    and data.job_window_mask[data.point_job[p], t]
                    and all(room(k) >= s for k, s in self.uses[p])
                )
                upper[at["v", p, t]] = 1.0 if wide else 0.0
        for p, t in itertools.product(self.whole_points, range(self.T)):
            if ("deployed", p, t) in at and not can("deployed", p, t):
                upper[at["x", p, t]] = 0
        for w, z in itertools.product(self.spreading, self.zones):
            if is_on("c", w, z):
                for t in range(self.T):
                    upper[at["short", w, z, t]] = 0
        return lower, upper
