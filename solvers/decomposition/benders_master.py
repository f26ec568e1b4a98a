"""What may be decided once, proposed by all that is known of it: a mixed-integer program over the structure with a cut of every answer.

    min theta    theta >= constant_k + slope_k m  of each answer k (certificate.py),  the structure's rows,  whole choices m

Its least is a bound on every plan, over every column there is, as each cut is; and one that knows that choices are whole, which prices alone
cannot. Where it is reached is worth looking at next, which makes another cut. Benders, Numerische Mathematik 4 (1962). Near the best that is known cuts
say most, so that better choices are sought there first: Fischetti and Lodi, Local branching, Mathematical Programming 98 (2003).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.subprocess_mip import solve_mip
from solvers.decomposition.lagrangian_bound import Duals, LagrangianBound
from solvers.decomposition.slots import SlotView

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation

Rows = tuple[sparse.sparray, Floats, Floats]  # matrix and sides

UNIT = 1e-3  # of the value, that theta is counted in
ROUGHLY = 1e-2  # of what theta is beyond the linear part, how far from the least a proposal may be
LARGEST = 10.0  # coefficient of each cut: with 1 the least of them lie below what HiGHS takes for 0, and its presolve was seen not to end
NOTHING = 1e-9  # of a cut's largest coefficient, what the solver would leave out as well
WHOLE = 1e-6  # how far from whole a bound may be
FAR = 1e12  # beyond any count
NEARLY_DONE = 1e-7  # of a job, that windows may be too short for it


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Bounds of the structure's columns, and columns of which all but so many that are given `up` are 1."""

    lower: Floats
    upper: Floats
    ones: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    up: int = 0


class BendersMaster:
    """Over all slots, for the columns `integer_columns` of the whole structure; `base`: what the linear part proves."""

    def __init__(self, dec: Reformulation, integer_columns: np.ndarray, base: LagrangianBound):
        self.integer_columns, self.lower_bound = integer_columns, base.value
        self._dec, self._base, self._cuts, self._no_good = dec, base, [base.cut], []
        enough, reached = done(dec, dec.view, dec.first_stage.upper), _demand_cover_rows(dec)
        self._matrix = sparse.vstack([dec.first_stage.matrix, enough, reached]).tocsc()
        self._row_lower = np.concatenate(
            [dec.first_stage.row_lower, np.full(enough.shape[0], -NEARLY_DONE), np.ones(reached.shape[0])]
        )
        self._row_upper = np.append(dec.first_stage.row_upper, np.full(enough.shape[0] + reached.shape[0], np.inf))

    def add_cut(self, duals: Duals, within: tuple[Floats, Floats] | None = None, above: float = -np.inf) -> bool:
        """A cut at these prices, whatever they are, where they prove so much within bounds; whether they do."""
        found = self._dec.lagrangian_bound(duals, within=within)
        if not found.value >= above:
            return False
        if np.isfinite(found.cut.constant) and not np.isnan(found.cut.slope).any():
            self._cuts.append(found.cut)
        return True

    def set_integer_columns(self, integer_columns: np.ndarray) -> None:
        """Other columns are proposed whole from now on, and what was excluded is no more."""
        self.integer_columns, self._no_good = integer_columns, []

    @property
    def has_no_good_cuts(self) -> bool:
        """Whether any choices are."""
        return bool(self._no_good)

    def add_no_good_cut(self, chosen: Floats) -> None:
        """These choices are not proposed again, although their cuts do not say how much they cost: no more is proven from now on."""
        self._no_good.append(chosen)

    def solve(self, below: float, seconds: float, within: Neighbourhood | None = None) -> Floats | None:
        """The structure's columns where least is known of them, or least `within` a part of all there is, of which it proves nothing; None where nothing
        `below` is, or not in time."""
        first_stage, base = self._dec.first_stage, self._base
        lower, upper, broken = self._reduced_cost_fixing(below, within)
        moves = np.flatnonzero(upper > 0)
        if broken and within is None:
            self._raise_lower_bound(below)
        if broken or not len(moves):
            return None
        unit = UNIT * max(abs(base.value), abs(below), NOTHING)
        lowest, highest = np.append(lower[moves], -1 / UNIT), np.append(upper[moves], (below - base.value) / unit)
        once = sparse.hstack([self._matrix[:, moves], sparse.csc_array((self._matrix.shape[0], 1))])
        rows, row_lower, row_upper = zip(
            (once, self._row_lower, self._row_upper),
            self._cut_rows(moves, unit, highest),
            *self._no_good_rows(moves),
            *_local_branching_rows(moves, within),
            strict=True,
        )
        theta = np.append(np.zeros(len(moves)), 1.0)
        found = solve_mip(
            theta, sparse.vstack(rows).tocsc(), (np.concatenate(row_lower), np.concatenate(row_upper)), (lowest, highest), np.append(self.integer_columns[moves], False), ROUGHLY, seconds
        )  # fmt: skip
        if within is None:
            self._raise_lower_bound(min(base.value + unit * found.bound, below))
        if found.x is None:
            return None
        result = np.zeros(first_stage.size)
        result[moves] = found.x[:-1]
        return np.where(self.integer_columns, np.round(result), result)

    def _reduced_cost_fixing(self, below: float, within: Neighbourhood | None) -> tuple[Floats, Floats, bool]:
        """(the least and the most of each column of what is `below`, by the reduced costs of the linear part; whether nothing is)."""
        first_stage, base = self._dec.first_stage, self._base
        lower, upper, _ = first_stage.propagate_bounds(np.zeros(first_stage.size), first_stage.upper)
        more = np.divide(
            below - base.value, base.reduced_cost, out=np.full(first_stage.size, np.inf), where=base.reduced_cost > 0
        )  # what adds more is not below
        never = np.any([~np.isfinite(cut.slope) for cut in self._cuts], axis=0)
        upper = np.where(never, lower, np.minimum(upper, lower + np.maximum(more, 0.0)))
        upper = np.where(first_stage.integer & self.integer_columns, np.floor(upper + WHOLE), upper)
        if within is not None:
            lower, upper = np.maximum(lower, within.lower), np.minimum(upper, within.upper)
            if (lower > upper + WHOLE).any():
                return lower, upper, True
        _, upper, broken = first_stage.propagate_bounds(lower, np.maximum(lower, upper))
        return lower, upper, broken

    def _cut_rows(self, moves: Ints, unit: float, highest: Floats) -> Rows:
        """slope_k m - theta <= - constant_k  in the columns that move and theta, each as its largest coefficient is LARGEST."""
        slopes = np.column_stack([[cut.slope[moves] for cut in self._cuts], np.full(len(self._cuts), -unit)])
        sides, largest = self._base.value - np.array([cut.constant for cut in self._cuts]), np.abs(slopes).max(axis=1)
        slopes, sides = slopes / largest[:, None], sides / largest
        little = np.abs(slopes) < NOTHING
        sides += np.where(little & (slopes < 0), -slopes * np.minimum(highest, FAR), 0.0).sum(
            axis=1
        )  # what a cut loses so makes it weaker, never stronger
        slopes[little] = 0.0
        return sparse.csc_array(LARGEST * slopes), np.full(len(sides), -np.inf), LARGEST * sides

    def _no_good_rows(self, moves: Ints) -> list[Rows]:
        """At least one choice other than in each that is excluded; nothing where none is."""
        if not self._no_good:
            return []
        chosen = np.array(self._no_good)[:, moves] > 0.5
        away = np.where(self.integer_columns[moves], np.where(chosen, -1.0, 1.0), 0.0)
        return [
            (
                sparse.csc_array(np.column_stack([away, np.zeros(len(away))])),
                1.0 - chosen.sum(axis=1),
                np.full(len(away), np.inf),
            )
        ]

    def _raise_lower_bound(self, value: float) -> None:
        if not self._no_good and np.isfinite(value):
            self.lower_bound = max(self.lower_bound, value)


def _local_branching_rows(moves: Ints, within: Neighbourhood | None) -> list[Rows]:
    """That no more ones are given up than may be."""
    if within is None or not len(within.ones):
        return []
    row = np.append(np.isin(moves, within.ones), False).astype(float)
    return [(sparse.csc_array(row[None, :]), np.array([float(len(within.ones) - within.up)]), np.array([np.inf]))]


def done(dec: Reformulation, view: SlotView, upper: Floats) -> sparse.csr_array:
    """Rows that are at least 0 where jobs can be done at the places that are left, as far as what is decided once says so."""
    return sparse.vstack([window_time_rows(dec, view, upper), capacity_time_rows(dec, view, upper)]).tocsr()


def window_time_rows(dec: Reformulation, view: SlotView, upper: Floats) -> sparse.csr_array:
    """Rows that are at least 0 where the windows in which a job runs at a place that is left are long enough for it:
    sum_w seconds_w rate_p run_{p,w} / work_j - y_p."""
    data, run, y = dec.data, dec.first_stage.columns["run"], dec.first_stage.columns["y"]
    seconds = sum_by_window(view.job_seconds, view.window, data.windows)
    points = np.flatnonzero((run >= 0).any(axis=1) & (np.append(upper, 0.0)[y] > 0))
    place, window = np.nonzero(run[points] >= 0)
    job = data.point_job[points]
    share = seconds[job] * (data.point_capacity[points] / data.job_work[job])[:, None]
    values, rows = (
        np.concatenate([share[place, window], np.full(len(points), -1.0)]),
        np.concatenate([place, np.arange(len(points))]),
    )
    return sparse.csr_array(
        (values, (rows, np.concatenate([run[points][place, window], y[points]]))),
        shape=(len(points), dec.first_stage.size),
    )


def capacity_time_rows(dec: Reformulation, view: SlotView, upper: Floats) -> sparse.csr_array:
    """Rows that are at least 0 where the systems of a kind, and the power of a site, are enough for all jobs there together, in single windows and
    in those in which a job may run: what is held over that time less what jobs take that they cannot do in their other windows,
        sum_{w in W} seconds_w n_{k,w} - sum_p uses_{p,k} (work_j / rate_p y_p - sum_{w not in W} seconds_{j,w} run_{p,w}),
    and watts alike, of which idling systems take some as well."""
    data, run, y, n, opened = dec.data, *(dec.first_stage.columns[block] for block in ("run", "y", "n", "open"))
    seconds, length = (
        sum_by_window(view.job_seconds, view.window, data.windows),
        sum_by_window(view.seconds[None, :], view.window, data.windows)[0],
    )
    sets = np.unique(np.vstack([np.eye(data.windows, dtype=bool), seconds > 0]), axis=0)
    placements = view.training[np.append(upper, 0.0)[y[view.training]] > 0]
    mine = np.flatnonzero(np.isin(view.use_point, placements))
    fleet_options, sites = np.unique(view.use_option[mine]), np.unique(view.site[placements])
    sites = sites[np.isfinite(dec.power_limit.reshape(data.sites, -1)[sites]).all(axis=1)]
    limit, covers = np.broadcast_to(dec.power_limit.reshape(data.sites, -1), (data.sites, data.windows)), data.covers()
    row_of_option, row_of_site = np.full(len(data.option_site), -1), np.full(data.sites, -1)
    row_of_option[fleet_options], row_of_site[sites] = (
        np.arange(len(fleet_options)),
        len(fleet_options) + np.arange(len(sites)),
    )
    takers = np.concatenate(
        [
            np.column_stack([row_of_option[view.use_option[mine]], view.use_point[mine]]),
            np.column_stack([row_of_site[view.site[placements]], placements]),
        ]
    )
    taken, known = np.concatenate([view.use_systems[mine], data.point_power_w[placements]]), takers[:, 0] >= 0
    (row, point), taken = takers[known].T, taken[known]
    job, held = data.point_job[point], np.flatnonzero(n >= 0)
    needed, rows_per_set, blocks = data.job_work[job] / data.point_capacity[point], len(fleet_options) + len(sites), []
    for chosen in sets:
        elsewhere, switched = np.where(chosen, 0.0, seconds[job]), run[point] >= 0
        other = elsewhere * taken[:, None] * switched
        needed_here = np.where(
            switched.any(axis=1), needed, np.maximum(needed - elsewhere.sum(axis=1), 0.0)
        )  # a job with one window alone has no switch of its own
        at, window = np.nonzero(other)
        covered, holders = covers[held] @ (length * chosen), data.holding_option[held]
        values = [
            -taken * needed_here,
            other[at, window],
            covered,
            -covered * data.holding_power_w[held],
            (limit[sites] * length * chosen).sum(axis=1),
        ]
        rows = [row, row[at], row_of_option[holders], row_of_site[data.option_site[holders]], row_of_site[sites]]
        columns = [y[point], run[point[at], window], n[held], n[held], opened[sites]]
        values, rows, columns = (np.concatenate(part) for part in (values, rows, columns))
        there = (rows >= 0) & (columns >= 0)
        blocks.append(
            sparse.csr_array((values[there], (rows[there], columns[there])), shape=(rows_per_set, dec.first_stage.size))
        )
        always = row_of_site[sites[opened[sites] < 0]]
        blocks[-1] = blocks[-1][np.setdiff1d(np.arange(rows_per_set), always)]
    found = sparse.vstack(blocks).tocsr() if blocks else sparse.csr_array((0, dec.first_stage.size))
    size = abs(found).max(axis=1).toarray().ravel() if found.shape[0] else np.zeros(0)
    return (sparse.diags_array(1 / np.where(size > 0, size, 1.0)) @ found).tocsr()


def sum_by_window(values: Floats, window: Ints, windows: int) -> Floats:
    """[., T] added up to [., V]."""
    result = np.zeros((len(values), windows))
    np.add.at(result.T, window, values.T)
    return result


def _demand_cover_rows(dec: Reformulation) -> sparse.csr_array:
    """Rows that are at least 1 where something lets demand be carried that nothing lets be carried always."""
    gate, demand = dec.first_stage.arc_gate, dec.view.arc_demand
    always = np.zeros(len(dec.view.demand), dtype=bool)
    always[demand[gate < 0]] = True
    arcs = np.flatnonzero(((dec.view.demand > 0).any(axis=1) & ~always)[demand])
    of, gates = np.unique(np.column_stack([demand[arcs], gate[arcs]]), axis=0).T if len(arcs) else (arcs, arcs)
    rows, row = np.unique(of, return_inverse=True)
    return sparse.csr_array((np.ones(len(of)), (row, gates)), shape=(len(rows), dec.first_stage.size))
