"""Benders master: a mixed-integer program over the first-stage columns m, with one cut for every vector of duals seen so far.

    min theta    theta >= constant_k + slope_k m  of each cut k (`lagrangian_bound.py`),  first-stage rows,  m integer where asked

Every cut is valid over all columns of the full problem, so the optimum is a lower bound on every plan; as m is integer, it is a
stronger one than a Lagrangian bound at fixed duals. Its solution is the next trial point (`benders_loop.py`), which makes another cut.
Benders, Numerische Mathematik 4 (1962). Cuts are tightest near the incumbent, so that a neighbourhood of it is searched first:
Fischetti and Lodi, Local branching, Mathematical Programming 98 (2003).
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


@dataclass(frozen=True, slots=True)
class BendersMasterSettings:
    """Tuning constants of the Benders master."""

    theta_unit: float = 1e-3  # unit of theta, relative to the objective
    relative_gap: float = 1e-2  # MIP gap of a trial point, relative to the excess of theta over the LP relaxation
    # largest coefficient of each scaled cut: at 1 the smallest fall below what HiGHS takes for 0, and its presolve was seen not to end
    cut_scale: float = 10.0
    # coefficients below this share of a cut's largest are dropped; also the least objective
    coefficient_tol: float = 1e-9
    integrality_tol: float = 1e-6  # distance from an integer at which a bound counts as one
    largest_count: float = 1e12  # stands for the upper bound of columns without one; above any count


SETTINGS = BendersMasterSettings()
UNDONE_SHARE_TOL = 1e-7  # share of a job by which the time rows may fall short


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Part of the first stage: bounds of its columns, and a local-branching row by which at most `up` of the columns `ones` leave 1."""

    lower: Floats
    upper: Floats
    ones: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    up: int = 0


class BendersMaster:
    """Master over all slots.

    `integer_columns`: mask of the first-stage columns that it makes integer; `base`: Lagrangian bound of the LP relaxation, which is
    its first cut."""

    def __init__(self, dec: Reformulation, integer_columns: np.ndarray, base: LagrangianBound):
        self.integer_columns, self.lower_bound = integer_columns, base.value
        self._dec, self._base, self._cuts = dec, base, [base.cut]
        self._no_good: list[Floats] = []  # integer points that are excluded
        enough, reached = job_time_rows(dec, dec.view, dec.first_stage.upper), _demand_cover_rows(dec)
        self._matrix = sparse.vstack([dec.first_stage.matrix, enough, reached]).tocsc()
        self._row_lower = np.concatenate(
            [dec.first_stage.row_lower, np.full(enough.shape[0], -UNDONE_SHARE_TOL), np.ones(reached.shape[0])]
        )
        self._row_upper = np.append(dec.first_stage.row_upper, np.full(enough.shape[0] + reached.shape[0], np.inf))

    def add_cut(self, duals: Duals, within: tuple[Floats, Floats] | None = None, above: float = -np.inf) -> bool:
        """Add the cut of these duals if their bound `within` these bounds reaches `above`; return whether it does."""
        found = self._dec.lagrangian_bound(duals, within=within)
        if not found.value >= above:
            return False
        if np.isfinite(found.cut.constant) and not np.isnan(found.cut.slope).any():
            self._cuts.append(found.cut)
        return True

    def set_integer_columns(self, integer_columns: np.ndarray) -> None:
        """Make other columns integer from now on, and drop the no-good cuts, which were stated in the old ones."""
        self.integer_columns, self._no_good = integer_columns, []

    @property
    def has_no_good_cuts(self) -> bool:
        """Whether any integer point is excluded."""
        return bool(self._no_good)

    def add_no_good_cut(self, chosen: Floats) -> None:
        """Exclude an integer point whose cuts do not give its true cost; the lower bound cannot rise any more from then on."""
        self._no_good.append(chosen)

    def solve(self, below: float, seconds: float, within: Neighbourhood | None = None) -> Floats | None:
        """Return the first-stage point at which the cuts are lowest; None where none lies below `below`, or none was found in time.

        Raises the lower bound, unless the search is restricted by `within`."""
        first_stage, base = self._dec.first_stage, self._base
        lower, upper, broken = self._reduced_cost_fixing(below, within)
        moves = np.flatnonzero(upper > 0)
        if broken and within is None:
            self._raise_lower_bound(below)
        if broken or not len(moves):
            return None
        unit = SETTINGS.theta_unit * max(abs(base.value), abs(below), SETTINGS.coefficient_tol)
        lowest, highest = (
            np.append(lower[moves], -1 / SETTINGS.theta_unit),
            np.append(upper[moves], (below - base.value) / unit),
        )
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
            theta, sparse.vstack(rows).tocsc(), (np.concatenate(row_lower), np.concatenate(row_upper)), (lowest, highest), np.append(self.integer_columns[moves], False), SETTINGS.relative_gap, seconds
        )  # fmt: skip
        if within is None:
            self._raise_lower_bound(min(base.value + unit * found.bound, below))
        if found.x is None:
            return None
        result = np.zeros(first_stage.size)
        result[moves] = found.x[:-1]
        return np.where(self.integer_columns, np.round(result), result)

    def _reduced_cost_fixing(self, below: float, within: Neighbourhood | None) -> tuple[Floats, Floats, bool]:
        """Tighten column bounds by the reduced costs of the LP relaxation; return (lower, upper, whether nothing is left `below`)."""
        first_stage, base = self._dec.first_stage, self._base
        lower, upper, _ = first_stage.propagate_bounds(np.zeros(first_stage.size), first_stage.upper)
        more = np.divide(
            below - base.value, base.reduced_cost, out=np.full(first_stage.size, np.inf), where=base.reduced_cost > 0
        )  # a larger step alone would exceed `below`
        never = np.any([~np.isfinite(cut.slope) for cut in self._cuts], axis=0)
        upper = np.where(never, lower, np.minimum(upper, lower + np.maximum(more, 0.0)))
        upper = np.where(first_stage.integer & self.integer_columns, np.floor(upper + SETTINGS.integrality_tol), upper)
        if within is not None:
            lower, upper = np.maximum(lower, within.lower), np.minimum(upper, within.upper)
            if (lower > upper + SETTINGS.integrality_tol).any():
                return lower, upper, True
        _, upper, broken = first_stage.propagate_bounds(lower, np.maximum(lower, upper))
        return lower, upper, broken

    def _cut_rows(self, moves: Ints, unit: float, highest: Floats) -> Rows:
        """Build the cuts  slope_k m - theta <= - constant_k  in the free columns and theta, scaled to one largest coefficient."""
        slopes = np.column_stack([[cut.slope[moves] for cut in self._cuts], np.full(len(self._cuts), -unit)])
        sides, largest = self._base.value - np.array([cut.constant for cut in self._cuts]), np.abs(slopes).max(axis=1)
        slopes, sides = slopes / largest[:, None], sides / largest
        little = np.abs(slopes) < SETTINGS.coefficient_tol
        # a dropped coefficient may weaken a cut, never strengthen it
        highest = np.minimum(highest, SETTINGS.largest_count)
        sides += np.where(little & (slopes < 0), -slopes * highest, 0.0).sum(axis=1)
        slopes[little] = 0.0
        scale = SETTINGS.cut_scale
        return sparse.csc_array(scale * slopes), np.full(len(sides), -np.inf), scale * sides

    def _no_good_rows(self, moves: Ints) -> list[Rows]:
        """Build the no-good cuts: at least one binary differs from each excluded point."""
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
    """Build the local-branching row: at most `up` of the columns that are 1 leave 1."""
    if within is None or not len(within.ones):
        return []
    row = np.append(np.isin(moves, within.ones), False).astype(float)
    return [(sparse.csc_array(row[None, :]), np.array([float(len(within.ones) - within.up)]), np.array([np.inf]))]


def job_time_rows(dec: Reformulation, view: SlotView, upper: Floats) -> sparse.csr_array:
    """Build rows that are at least 0 where the first stage leaves jobs enough time at the placements that `upper` allows."""
    return sparse.vstack([window_time_rows(dec, view, upper), capacity_time_rows(dec, view, upper)]).tocsr()


def window_time_rows(dec: Reformulation, view: SlotView, upper: Floats) -> sparse.csr_array:
    """Build rows, at least 0, by which the windows in which a job runs are long enough for its work:

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
    """Build rows, at least 0, by which the systems of a fleet option and the power of a site suffice for all their jobs together.

    One row for each single window and for each set W of windows in which a job may run: system-seconds held there, less what jobs take
    that does not fit into their other windows,
        sum_{w in W} seconds_w n_{k,w} - sum_p uses_{p,k} (work_j / rate_p y_p - sum_{w not in W} seconds_{j,w} run_{p,w}),
    and likewise in watts, of which idle systems draw some as well."""
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
        # a job that may run in one window alone has no column `run`
        needed_here = np.where(switched.any(axis=1), needed, np.maximum(needed - elsewhere.sum(axis=1), 0.0))
        at, window = np.nonzero(other)
        covered, holders = covers[held] @ (length * chosen), data.holding_option[held]
        value_parts = [
            -taken * needed_here,
            other[at, window],
            covered,
            -covered * data.holding_power_w[held],
            (limit[sites] * length * chosen).sum(axis=1),
        ]
        row_parts = [row, row[at], row_of_option[holders], row_of_site[data.option_site[holders]], row_of_site[sites]]
        column_parts = [y[point], run[point[at], window], n[held], n[held], opened[sites]]
        values, rows, columns = (np.concatenate(part) for part in (value_parts, row_parts, column_parts))
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
    """Sum values of slots [., T] by window [., V]."""
    result = np.zeros((len(values), windows))
    np.add.at(result.T, window, values.T)
    return result


def _demand_cover_rows(dec: Reformulation) -> sparse.csr_array:
    """Build rows, at least 1, by which each demand that no arc serves unconditionally has an open gate."""
    gate, demand = dec.first_stage.arc_gate, dec.view.arc_demand
    always = np.zeros(len(dec.view.demand), dtype=bool)
    always[demand[gate < 0]] = True
    arcs = np.flatnonzero(((dec.view.demand > 0).any(axis=1) & ~always)[demand])
    of, gates = np.unique(np.column_stack([demand[arcs], gate[arcs]]), axis=0).T if len(arcs) else (arcs, arcs)
    rows, row = np.unique(of, return_inverse=True)
    return sparse.csr_array((np.ones(len(of)), (row, gates)), shape=(len(rows), dec.first_stage.size))
