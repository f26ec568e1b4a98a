"""The linear part over all slots in the blocks that an interior-point method takes it apart into (interior.py, newton.py).

Columns (at least 0)                                      Rows, with what is left over and the price of each
    m       what is decided once, beyond its least          balance    sum f (+ unmet) = demand                        delta, free
    f_{a,t} requests/s on an arc                            capacity   cap x - f - left = 0                            beta
    x_{p,t} replicas at work                                installed  N(m) - uses x - uses v - left = 0               alpha
    v_{p,t} share of what a job may run of a slot           power      limit - idle N(m) - watts x - watts v - left = 0  sigma
                                                            hosted     demand gate(m) - f - left = 0                   gamma
                                                            running    switch(m) - v - left = 0                        rho
                                                            progress   sum rate v - y = 0                              pi, free
                                                            equal      structure rows with equal sides                 free
                                                            above      the other sides of the structure's rows - left
                                                            most       m + left = most
Everything in a slot belongs to one site but for the rows of balance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.decomposition.linking import Linking

AMPLE = 1e3  # times the largest power there is, of a site that has a limit in other windows
SPARE = 1e-5  # that a job is done sooner than it is, so that one without a second to spare has an inside
LEAST_RANGE = 1e-12  # of a column, from which on it moves
BESIDES = 2e7  # multiplications that take as long as what a site in a part takes besides
AT_ONCE = 4  # parts, about, where several are looked at at the same time
MOST_NUMBERS = 1e6  # of the squares of demand of a part's slots: more are slower to come by than to multiply
DENSE = 20_000  # entries, nothing or not, up to which a matrix is multiplied with as a dense one: what a sparse one takes besides is more
MAPS = (
    "uses",
    "watts",
    "serves",
    "job_uses",
    "job_watts",
    "systems",
    "idle",
    "equal",
    "above",
    "into_demand",
    "into_pool",
)
State = dict[str, Floats]
Matrix = sparse.csr_array | Floats


@dataclass(frozen=True, slots=True)
class SiteBlock:
    """One site's rows (fleet options, pools, power where it has a limit) in a part's slots, its columns among those that link slots, and maps from
    what each arc, point or place is worth in a slot to entries of its matrices, flattened. b rows, l linking columns, which no other site has."""

    fleet_options: Ints
    pools: Ints
    power: Ints  # its own position, or nothing
    points: Ints
    gated: Ints  # among the arcs with a gate
    arcs: Ints
    placements: Ints
    link_columns: Ints  # [l] those that are decided once, then those of jobs' progress, each side by side
    squares: tuple[Matrix, Matrix]  # [b b, points], [b b, places]
    fixed: Floats  # [b, l]
    gates: Matrix  # [b l, gated]
    gates_balance: Matrix  # [D l, gated]
    balance: Matrix  # [pools D, arcs]
    progress: Matrix  # [b l, places]
    switches: Matrix  # [b l, places]

    @property
    def rows(self) -> int:
        return len(self.fleet_options) + len(self.pools) + len(self.power)


@dataclass(frozen=True, slots=True)
class SlotBlock:
    """Some slots of one window, and the columns that link them to others, in order, those of a site together."""

    slots: Ints
    link_columns: Ints
    sites: list[SiteBlock]

    @property
    def pools(self) -> int:
        return sum(len(site.pools) for site in self.sites)


class BlockProgram:
    """The program over linked fleet options and places and of these serving points, with the structure within bounds."""

    def __init__(self, linking: Linking, points: Ints, lower: Floats | None = None, upper: Floats | None = None, parallel_map: Callable[..., Iterable] = map, threads: int = 1,
                 unmet: Floats | None = None):  # fmt: skip
        """`parallel_map`: a map, that may look at several parts at the same time; `threads`: of large products; `unmet` [D, T]: what a request/s costs that
        nothing carries, where some may be left so."""
        self.parallel_map, self.threads = parallel_map, threads
        view, s = linking.view, linking.first_stage
        data = view.data
        self.linking, self.view, self.first_stage, self.points, self.placements = (
            linking,
            view,
            s,
            points,
            linking.placements,
        )
        self.slots, self.windows, self.window = view.slots, data.windows, view.window
        self.fleet_options, self.pools, self.sites, self.demands = (
            len(linking.fleet_options),
            data.pools,
            data.sites,
            len(view.demand),
        )
        lower, upper = (
            np.zeros(s.size) if lower is None else lower,
            s.upper.copy() if upper is None else np.minimum(upper, s.upper),
        )
        never = s.columns["y"][self.placements][
            ((upper[linking.switch] > 0.5)[:, self.window] & (linking.reach > 0)).sum(axis=1) == 0
        ]
        upper[never] = 0.0
        self.impossible = bool((upper < lower).any())  # a job that is to be done where it may not run
        self.lower, upper, broken = s.propagate_bounds(lower, np.maximum(upper, lower))
        self.impossible |= broken
        moving = np.flatnonzero(upper - self.lower > LEAST_RANGE)
        site = self._site_of_columns()[moving]
        order = np.argsort(site, kind="stable")  # those of a site side by side, those of none last
        self.moving, self.first = moving[order], np.searchsorted(site[order], np.arange(self.sites + 1))
        self.upper = (upper - self.lower)[self.moving]
        self.column = np.full(s.size + 1, -1)
        self.column[self.moving] = np.arange(len(self.moving))
        systems = linking.systems[:, self.moving]
        held = (np.diff(systems.tocsr().indptr) > 0) | (linking.systems @ self.lower > 0)
        self.there = held.reshape(self.fleet_options, self.windows)[
            :, self.window
        ]  # [fleet options, T] where there may be any systems
        self._points()
        self._arcs()
        self._places()
        self._once()
        self.cost = {"m": s.cost[self.moving], "f": view.arc_cost[self.arcs], "x": view.point_cost[points], "v": view.point_cost[self.placements] * self.reach,
                     "unmet": np.zeros_like(view.demand) if unmet is None else unmet}  # fmt: skip
        carries = (self.arc_upper > 0) & self.served[self.arc_pool]
        self.mask = {
            "m": np.ones(len(self.moving), dtype=bool), "upper": np.isfinite(self.upper), "above": np.ones(self.above.shape[0], dtype=bool), "f": carries, "x": ~self.lacking,
            "v": self.may_run, "capacity": self.served, "installed": self.there, "power": np.repeat(self.limited[:, None], self.slots, axis=1),
            "hosted": carries[self.gated], "running": self.may_run, "unmet": (view.demand > 0) & (unmet is not None),
        }  # fmt: skip
        self.carrying = (self.into_demand @ carries > 0) | self.mask[
            "unmet"
        ]  # [D, T] that some arc carries, or may be left
        self.impossible |= bool((~self.carrying & (view.demand > 0)).any())
        self.go = {name: _ready(getattr(self, name)) for name in MAPS}
        self.back = {name: _ready(getattr(self, name).T.tocsr()) for name in MAPS}  # their transposes
        self.parts = self._parts()

    def _site_of_columns(self) -> Ints:
        """Of the structure's columns, the number of sites for those of no site."""
        data, columns = self.view.data, self.first_stage.columns
        result = np.full(self.first_stage.size + 1, self.sites)
        result[columns["n"]] = data.option_site[data.holding_option]
        result[columns["open"]] = np.arange(self.sites)
        result[columns["host"]] = np.arange(self.sites)
        result[columns["y"]] = self.view.site
        result[columns["run"]] = self.view.site[:, None]
        return result[:-1]

    def _arcs(self) -> None:
        view, data, s = self.view, self.view.data, self.first_stage
        arcs = np.flatnonzero(self.served.any(axis=1)[data.arc_pool])
        gate = s.arc_gate[arcs]
        shut = (gate >= 0) & (self.column[gate] < 0) & (np.append(self.lower, 1.0)[gate] < 0.5)
        self.arcs, gate = arcs[~shut], gate[~shut]
        self.gate = np.where(gate >= 0, self.column[gate], -1)
        self.arc_demand, self.arc_pool = view.arc_demand[self.arcs], data.arc_pool[self.arcs]
        self.arc_upper = view.demand[self.arc_demand]  # [A, T] at most
        self.gated = np.flatnonzero(self.gate >= 0)  # [G] arcs that something decided once lets carry, so much
        self.gates, self.let = self.gate[self.gated], self.arc_upper[self.gated]
        count = np.arange(len(self.arcs))
        self.into_demand = sparse.csr_array(
            (np.ones(len(count)), (self.arc_demand, count)), shape=(self.demands, len(count))
        )
        self.into_pool = sparse.csr_array((np.ones(len(count)), (self.arc_pool, count)), shape=(self.pools, len(count)))

    def _points(self) -> None:
        view, data, points = self.view, self.view.data, self.points
        position, place = np.full(len(data.option_site), -1), np.full(len(data.point_pool), -1)
        position[self.linking.fleet_options], place[points] = np.arange(self.fleet_options), np.arange(len(points))
        use, count = np.flatnonzero(place[view.use_point] >= 0), np.arange(len(points))
        here = np.zeros(self.sites, dtype=bool)
        here[data.option_site[self.linking.fleet_options]] = True
        self.limited = self.linking.limited & here
        ungated_limit = self.linking.ungated_limit
        enough = AMPLE * np.abs(self.linking.idle).max() if self.linking.idle.nnz else AMPLE
        self.limit = np.where(np.isfinite(ungated_limit), ungated_limit, np.where(self.limited[:, None], enough, 0.0))[
            :, self.window
        ]
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
        self.lacking = view.dominated[points] | (self.uses.T @ ~self.there > 0)  # [points, T]
        self.served = (self.serves > 0) @ ~self.lacking > 0  # [pools, T]

    def _places(self) -> None:
        view, data, linking, placements = self.view, self.view.data, self.linking, self.placements
        self.job_uses, self.job_watts = (
            linking.uses.tocsr(),
            sparse.csr_array(linking.watts.multiply(self.limited[:, None])),
        )
        self.reach = linking.reach
        self.rate = (
            (1 + SPARE)
            * self.reach
            * view.seconds
            * (data.point_capacity[placements] / data.job_work[data.point_job[placements]])[:, None]
        )
        switch = linking.switch[:, self.window]
        self.switch, self.switched = (
            self.column[switch],
            np.append(self.lower, 0.0)[switch],
        )  # [N, T] a column, or how it is set
        self.may_run = (
            (self.rate > 0) & ((self.switch >= 0) | (self.switched > 0.5)) & ~(self.job_uses.T @ ~self.there > 0)
        )
        y = self.first_stage.columns["y"][placements]
        self.done, self.done_fixed = self.column[y], self.lower[y]
        self.runs = self.may_run.any(axis=1)
        self.done = np.where(self.runs, self.done, -1)
        going = np.flatnonzero(self.runs)
        going = going[np.argsort(view.site[placements[going]], kind="stable")]
        self.progress = np.full(len(placements), -1)
        self.progress[going] = len(self.moving) + np.arange(len(going))
        self.links = len(self.moving) + len(going)

    def _once(self) -> None:
        s = self.first_stage
        matrix = s.matrix.tocsc()[:, self.moving].tocsr()
        given, some = s.matrix @ self.lower, np.diff(matrix.indptr) > 0
        equal = some & (s.row_lower == s.row_upper)
        low, high = (some & ~equal & np.isfinite(side) for side in (s.row_lower, s.row_upper))
        self.row_parts = tuple(np.flatnonzero(which) for which in (equal, low, high))
        self.equal, self.equal_sides = matrix[equal], (s.row_lower - given)[equal]
        self.above = sparse.vstack([matrix[low], -matrix[high]]).tocsr()
        self.above_sides = np.concatenate([(s.row_lower - given)[low], (given - s.row_upper)[high]])
        self.systems, self.idle = (
            self.linking.systems[:, self.moving].tocsr(),
            self.linking.idle[:, self.moving].tocsr(),
        )
        self.systems_fixed, self.idle_fixed = self.linking.systems @ self.lower, self.linking.idle @ self.lower
        self.in_window = np.zeros((self.slots, self.windows))
        self.in_window[np.arange(self.slots), self.window] = 1.0

    def _parts(self) -> list[SlotBlock]:
        together = self._slot_groups()
        by_site = [self._site(r, together) for r in range(self.sites)]
        parts = []
        for i, slots in enumerate(together):
            sites = [of_parts[i] for of_parts in by_site if of_parts[i].rows]
            link_columns = np.sort(
                np.concatenate([site.link_columns for site in sites] or [np.zeros(0, dtype=np.int64)])
            )
            parts.append(SlotBlock(slots, link_columns, sites))
        slots_per_part = max(int(MOST_NUMBERS // max(self.demands, 1) ** 2), 1)
        if self.parallel_map is not map:
            slots_per_part = min(slots_per_part, -(-self.slots // AT_ONCE))
        return [
            replace(part, slots=slots)
            for part in parts
            for slots in np.array_split(part.slots, -(-len(part.slots) // slots_per_part))
        ]

    def _slot_groups(self) -> list[Ints]:
        """Slots of each part: of one window, and with the same places of jobs, which are columns that do not reach into the others, where that
        saves more than another part costs."""
        _, kind = np.unique(np.vstack([self.window, self.may_run]), axis=1, return_inverse=True)
        parts = [np.flatnonzero(kind.reshape(-1) == k) for k in dict.fromkeys(kind.reshape(-1))]  # as time goes on
        going = [self.may_run[:, slots].any(axis=1) for slots in parts]
        of_jobs = np.union1d(self.switch[self.may_run], self.done)
        held, besides = len(self.moving) - (of_jobs >= 0).sum(), BESIDES * self.sites
        work = lambda slots, placements: len(slots) * self.demands * (held + 2.0 * placements.sum()) ** 2
        while len(parts) > 1:
            saved = [besides + work(a, of_a) + work(b, of_b) - work([*a, *b], of_a | of_b) if self.window[a[0]] == self.window[b[0]] else -np.inf
                     for a, b, of_a, of_b in zip(parts, parts[1:], going, going[1:])]  # fmt: skip
            at = int(np.argmax(saved))
            if saved[at] <= 0:
                break
            parts[at : at + 2], going[at : at + 2] = [np.concatenate(parts[at : at + 2])], [going[at] | going[at + 1]]
        return parts

    def _site(self, r: int, together: list[Ints]) -> list[SiteBlock]:
        """The site in the slots of each part."""
        view, data, linking = self.view, self.view.data, self.linking
        fleet_options = np.flatnonzero(data.option_site[linking.fleet_options] == r)
        pools = np.unique(data.point_pool[self.points[view.site[self.points] == r]])
        power = np.flatnonzero(self.limited[r : r + 1]) + r
        b = len(fleet_options) + len(pools) + len(power)
        of_option, of_pool = np.full(self.fleet_options, -1), np.full(self.pools, -1)
        of_option[fleet_options], of_pool[pools] = (
            np.arange(len(fleet_options)),
            len(fleet_options) + np.arange(len(pools)),
        )
        points = np.flatnonzero(view.site[self.points] == r)
        all_places = np.flatnonzero((view.site[self.placements] == r) & self.runs)
        arcs = np.flatnonzero(of_pool[self.arc_pool] >= 0)
        gated = arcs[self.gate[arcs] >= 0]
        served = _ready(
            _squares(
                sparse.vstack(
                    [-self.uses[fleet_options][:, points], self.serves[pools][:, points], -self.watts[power][:, points]]
                )
            )
        )
        own = np.arange(self.first[r], self.first[r + 1])
        option_window, power_window = (
            fleet_options[:, None] * self.windows + np.arange(self.windows),
            power[:, None] * self.windows + np.arange(self.windows),
        )
        systems, idle = (
            self.systems[option_window.ravel()][:, own].toarray(),
            self.idle[power_window.ravel()][:, own].toarray(),
        )
        fixed = np.zeros((self.windows, b, len(own)))
        fixed[:, : len(fleet_options)] = systems.reshape(len(fleet_options), self.windows, len(own)).transpose(1, 0, 2)
        fixed[:, b - len(power) :] = -idle.reshape(len(power), self.windows, len(own)).transpose(1, 0, 2)
        some = lambda values, rows, columns, shape: _ready(sparse.csr_array((values, (rows, columns)), shape=shape))
        count, arc = np.arange(len(gated)), np.arange(len(arcs))
        balance = some(
            -np.ones(len(arcs)),
            (of_pool[self.arc_pool[arcs]] - len(fleet_options)) * self.demands + self.arc_demand[arcs],
            arc,
            (len(pools) * self.demands, len(arcs)),
        )
        job_runs = sparse.vstack(
            [
                -self.job_uses[fleet_options][:, all_places],
                sparse.csr_array((len(pools), len(all_places))),
                -self.job_watts[power][:, all_places],
            ]
        ).tocsc()
        job_squares, result = _squares(job_runs).tocsc(), []
        for slots in together:
            w, going = self.window[slots[0]], np.flatnonzero(self.may_run[all_places][:, slots].any(axis=1))
            placements = all_places[going]
            switch = self.column[linking.switch[placements, w]]
            used = fixed[w].any(axis=0)
            used[self.gate[gated] - self.first[r]] = True
            used[switch[switch >= 0] - self.first[r]] = True
            columns = np.concatenate([own[used], self.progress[placements]])
            link, l = np.full(self.links, -1), len(columns)
            link[columns] = np.arange(l)
            run = job_runs[:, going].tocoo()
            at = switch[run.col]
            here = at >= 0
            result.append(SiteBlock(
                fleet_options, pools, power, points, np.searchsorted(self.gated, gated), arcs, placements, columns, (served, _ready(job_squares[:, going].tocsr())), np.hstack([fixed[w][:, used], np.zeros((b, len(placements)))]),
                some(-np.ones(len(gated)), of_pool[self.arc_pool[gated]] * l + link[self.gate[gated]], count, (b * l, len(gated))),
                some(np.ones(len(gated)), self.arc_demand[gated] * l + link[self.gate[gated]], count, (self.demands * l, len(gated))), balance,
                some(run.data, run.row * l + link[self.progress[placements[run.col]]], run.col, (b * l, len(placements))),
                some(run.data[here], run.row[here] * l + link[at[here]], run.col[here], (b * l, len(placements))),
            ))  # fmt: skip
        return result

    # -- rows and reduced costs ------------------------------------------------------------------------------------

    def extend_duals(self, of_windows: Floats) -> Floats:
        """[n V] to [n, T]."""
        return of_windows.reshape(-1, self.windows)[:, self.window]

    def to_switches(self, values: Floats) -> Floats:
        """[N, T] added up over the column that switches each."""
        there = self.switch >= 0
        return np.bincount(self.switch[there], weights=values[there], minlength=len(self.moving))

    def to_gates(self, values: Floats) -> Floats:
        """[G, T] added up over the gate of each arc."""
        return np.bincount(self.gates, weights=values.sum(axis=1), minlength=len(self.moving))

    def to_done(self, values: Floats) -> Floats:
        """[N] added up over the column that says that a job is done there."""
        there = self.done >= 0
        return np.bincount(self.done[there], weights=values[there], minlength=len(self.moving))

    def rows(self, z: Mapping[str, Floats], *, change: bool = False) -> State:
        """What each row comes to, left sides less right ones; of a `change` of the columns, what it changes by."""
        given, go = 0.0 if change else 1.0, self.go
        m, running = np.append(z["m"], 0.0), z["v"] * self.reach
        systems = self.extend_duals(go["systems"] @ z["m"] + given * self.systems_fixed)
        idle = self.extend_duals(go["idle"] @ z["m"] + given * self.idle_fixed)
        return {
            "balance": go["into_demand"] @ z["f"] + z["unmet"] - given * self.view.demand,
            "capacity": self.mask["capacity"] * (go["serves"] @ z["x"] - go["into_pool"] @ z["f"] - z["capacity"]),
            "installed": self.there * (systems - go["uses"] @ z["x"] - go["job_uses"] @ running - z["installed"]),
            "power": self.mask["power"]
            * (given * self.limit - idle - go["watts"] @ z["x"] - go["job_watts"] @ running - z["power"]),
            "hosted": self.mask["hosted"] * (self.let * m[self.gates][:, None] - z["f"][self.gated] - z["hosted"]),
            "running": self.may_run
            * (np.where(self.switch >= 0, m[self.switch], given * self.switched) - z["v"] - z["running"]),
            "progress": self.runs
            * ((self.rate * z["v"]).sum(axis=1) - np.where(self.done >= 0, m[self.done], given * self.done_fixed)),
            "equal": go["equal"] @ z["m"] - given * self.equal_sides,
            "above": go["above"] @ z["m"] - given * self.above_sides - z["above"],
            "upper": np.where(
                self.mask["upper"], z["m"] + z["upper"] - given * np.where(self.mask["upper"], self.upper, 0.0), 0.0
            ),
        }

    def worth(self, p: Mapping[str, Floats]) -> State:
        """What the rows' prices make of each column: reduced costs are costs less these; of a change of prices, their change."""
        alpha, sigma, back = p["installed"], p["power"] * self.mask["power"], self.back
        flows = p["balance"][self.arc_demand] - p["capacity"][self.arc_pool]
        flows[self.gated] -= p["hosted"]
        return {
            "x": back["serves"] @ p["capacity"] - back["uses"] @ alpha - back["watts"] @ sigma,
            "f": flows, "unmet": p["balance"],
            "v": self.rate * p["progress"][:, None] - (back["job_uses"] @ alpha + back["job_watts"] @ sigma) * self.reach - p["running"],
            "m": back["systems"] @ (alpha @ self.in_window).ravel() - back["idle"] @ (sigma @ self.in_window).ravel() + back["equal"] @ p["equal"]
            + back["above"] @ p["above"] + self.to_gates(self.let * p["hosted"]) + self.to_switches(p["running"]) - self.to_done(p["progress"]),
        }  # fmt: skip


def _ready(matrix: sparse.csr_array) -> Matrix:
    """A matrix to be multiplied with again and again: dense where it is small."""
    return matrix.toarray() if matrix.shape[0] * matrix.shape[1] <= DENSE else matrix


def _squares(matrix: sparse.sparray) -> sparse.csr_array:
    """[b b, n]: each column's outer product with itself, flattened."""
    matrix = matrix.tocsc()
    b, counts = matrix.shape[0], np.diff(matrix.indptr)
    first = np.repeat(np.arange(len(matrix.data)), np.repeat(counts, counts))
    second = np.concatenate(
        [
            np.tile(np.arange(start, end), end - start)
            for start, end in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
        ]
        or [np.zeros(0, dtype=np.int64)]
    )
    column = np.repeat(np.arange(matrix.shape[1]), counts**2)
    return sparse.csr_array(
        (matrix.data[first] * matrix.data[second], (matrix.indices[first] * b + matrix.indices[second], column)),
        shape=(b * b, matrix.shape[1]),
    )
