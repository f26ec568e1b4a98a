"""Sub-MIPs of the search: the integer point nearest to an LP solution, and integer counts by the whole of a small program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.subprocess_mip import solve_mip
from solvers.decomposition.benders_master import UNDONE_SHARE_TOL, job_time_rows
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.node_relaxation import Node, NodeRelaxation
from solvers.interface import SolverError

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation


@dataclass(frozen=True, slots=True)
class SubMipSettings:
    """Tuning constants of the sub-MIPs."""

    counts_gap_share: float = 0.3  # MIP gap of integer counts by the whole program, as a share of the asked gap
    reduced_cost_unit: float = 1e-3  # reduced cost, relative to the objective, that weighs as much as flipping a binary
    relative_gap: float = 0.01  # MIP gap of the nearest integer point
    min_time_s: float = 0.1  # time limit [s] of a sub-MIP, at least
    value_margin: float = 0.001  # surplus of the value of systems at a site over its LP value, when counts are rounded
    # penalty on a shortfall in that value, power or job systems, as a multiple of their value
    slack_penalty: float = 10.0
    count_tol: float = 1e-6  # tolerance on counts of systems: nearer to an integer, they are one


SETTINGS = SubMipSettings()
MAX_TIME_S = 5.0  # time limit [s] of a sub-MIP, at most
# HiGHS options for the whole program: that heuristic takes longer than it saves, its other sub-MIPs pay, and good counts come early
HIGHS_OPTIONS = (("mip_heuristic_run_root_reduced_cost", False), ("mip_max_nodes", 100))


def solve_counts(dec: Reformulation, lower: Floats, upper: Floats, gap: float, seconds: float) -> Floats | None:
    """Find integer first-stage columns of least cost within these bounds, by the whole program.

    None where the program is not small, no integer column is free, or no solution was found in time."""
    program = dec.program
    if program is None or not (dec.first_stage.integer & (upper > lower)).any():
        return None
    arrays = program.arrays()
    scaled = arrays.scaled(program.functional(dec.functional))
    column_lower, column_upper = scaled.arrays.lower.copy(), scaled.arrays.upper.copy()
    for block, here in dec.first_stage.columns.items():
        place = program.columns[block]
        both = (here >= 0) & (place >= 0)
        at = place[both]
        column_lower[at], column_upper[at] = (
            lower[here[both]] / scaled.column[at],
            np.minimum(upper[here[both]] / scaled.column[at], column_upper[at]),
        )
    rows = scaled.arrays.row_lower, scaled.arrays.row_upper
    try:
        found = solve_mip(
            scaled.cost,
            scaled.arrays.matrix,
            rows,
            (column_lower, np.maximum(column_lower, column_upper)),
            arrays.integer,
            SETTINGS.counts_gap_share * gap,
            seconds,
            HIGHS_OPTIONS,
        )
    except SolverError:  # the caller has another way to integer counts
        return None
    if found.x is None:
        return None
    values, result = np.append(found.x * scaled.column, 0.0), np.zeros(dec.first_stage.size)
    for block, here in dec.first_stage.columns.items():
        result[here[here >= 0]] = values[program.columns[block][here >= 0]]
    return np.clip(np.where(dec.first_stage.integer, np.round(result), result), lower, upper)


def nearest_binaries(relaxation: NodeRelaxation, state: Node, values: Floats) -> Floats | None:
    """Find the feasible binaries nearest to these values:  min sum |x - v| + reduced cost x / (reduced_cost_unit |objective|).

    First-stage rows hold, and every job has time for its work in the windows in which it runs. None where there are none."""
    cost = np.where(relaxation.count_columns, 0.0, 1 - 2 * values) + _reduced_costs(relaxation, state.found) / (
        SETTINGS.reduced_cost_unit * max(abs(state.found.value), 1.0)
    )
    enough = job_time_rows(relaxation.dec, relaxation.view, state.upper)
    return _solve_sub_mip(
        relaxation,
        cost,
        relaxation.integer_columns & ~relaxation.count_columns,
        state.lower,
        state.upper,
        enough,
        np.full(enough.shape[0], -UNDONE_SHARE_TOL),
    )


def nearest_counts(relaxation: NodeRelaxation, state: Node, values: Floats) -> Floats | None:
    """Round counts of systems at least cost, each to an integer next to its LP value.

    At each site and window, systems keep the value that their LP duals give them, and a little more, leave the power that was used, and
    leave jobs their systems; a shortfall of any is penalised. None where none was found in time."""
    dec, (used, peak) = relaxation.dec, _systems_used_by_jobs(relaxation, state.found)
    worth, idle, slack = _value_and_idle_power(relaxation, state.found)
    wanted = relaxation.integer_columns & relaxation.count_columns
    down = np.clip(np.floor(values + SETTINGS.count_tol), state.lower, state.upper)
    up = np.clip(np.ceil(values - SETTINGS.count_tol), state.lower, state.upper)
    lower, upper = np.where(wanted, down, state.lower), np.where(wanted, up, state.upper)
    watts = dec.data.holding_power_w > 0
    watt = (
        np.median(dec.option_cost[dec.data.holding_option[watts]] / dec.data.holding_power_w[watts])
        if watts.any()
        else 0.0
    )
    system = np.where(
        used.indptr[1:] > used.indptr[:-1], used @ dec.first_stage.cost / np.maximum(used.sum(axis=1), 1.0), 0.0
    )
    value = (1 + SETTINGS.value_margin) * (worth @ values)
    at_least = np.concatenate([value, -(idle @ values) - slack, np.ceil(peak - SETTINGS.count_tol)])
    price = SETTINGS.slack_penalty * np.concatenate([np.ones(worth.shape[0]), np.full(idle.shape[0], watt), system])
    return _solve_sub_mip(
        relaxation,
        dec.first_stage.cost,
        wanted,
        lower,
        upper,
        sparse.vstack([worth, -idle, used]).tocsr(),
        at_least,
        price,
    )


def _solve_sub_mip(
    relaxation: NodeRelaxation,
    cost: Floats,
    wanted: np.ndarray,
    lower: Floats,
    upper: Floats,
    others: sparse.csr_array,
    at_least: Floats,
    price: Floats | None = None,
) -> Floats | None:
    """Minimise `cost` over the first-stage rows and `others` >= `at_least`, with the columns `wanted` integer.

    The rows `others` may fall short at `price`, if one is given. None where there is no solution, or none was found in time."""
    first_stage, moves = relaxation.dec.first_stage, np.flatnonzero(upper > lower)
    if not len(moves):
        return lower
    matrix = sparse.vstack([first_stage.matrix, others]).tocsr()
    row_lower = np.append(first_stage.row_lower, at_least)
    row_upper = np.append(first_stage.row_upper, np.full(len(at_least), np.inf))
    given, part = matrix @ lower, matrix[:, moves]
    penalty = np.zeros(0) if price is None else price
    rows, lacks = np.flatnonzero(np.diff(part.indptr)), len(penalty)
    short = sparse.csr_array(
        (np.ones(lacks), (first_stage.matrix.shape[0] + np.arange(lacks), np.arange(lacks))),
        shape=(matrix.shape[0], lacks),
    )
    program = sparse.hstack([part, short]).tocsr()[rows].tocsc()
    found = solve_mip(
        np.append(cost[moves], penalty),
        program,
        ((row_lower - given)[rows], (row_upper - given)[rows]),
        (np.zeros(len(moves) + lacks), np.append((upper - lower)[moves], np.full(lacks, np.inf))),
        np.append(wanted[moves], np.zeros(lacks, dtype=bool)),
        SETTINGS.relative_gap,
        min(max(relaxation.seconds_left(), SETTINGS.min_time_s), MAX_TIME_S),
    )
    if found.x is None:
        return None
    result = lower.copy()
    result[moves] += found.x[: len(moves)]
    return np.where(wanted, np.round(result), result)


def _reduced_costs(relaxation: NodeRelaxation, found: InteriorSolution) -> Floats:
    """Return the reduced costs of the first-stage columns, 0 for fixed ones."""
    reduced_cost = np.zeros(found.blocks.first_stage.size)
    reduced_cost[found.blocks.moving] = found.at.w["m"]
    return map_columns(found.blocks.first_stage, relaxation.dec.first_stage, reduced_cost)


def _value_and_idle_power(
    relaxation: NodeRelaxation, found: InteriorSolution
) -> tuple[sparse.csr_array, sparse.csr_array, Floats]:
    """Return, by site and window: matrices of the value of systems at the LP duals and of their idle power, and half the power left by jobs.

    The power left is the least over the slots of the window, infinite where power is not limited."""
    o, first_stage, sites, place = (
        found.blocks,
        relaxation.dec.first_stage,
        relaxation.dec.data.option_site,
        _column_positions(relaxation, found),
    )
    held, worth = o.linking.systems.tocoo(), (found.at.w["installed"] @ o.in_window).ravel()
    option, window = np.divmod(held.row, o.windows)
    row = sites[o.linking.fleet_options[option]] * o.windows + window
    idle, shape = o.linking.idle.tocoo(), (o.sites * o.windows, first_stage.size)
    slack = np.full((o.windows, o.sites), np.inf)
    left = found.at.z["power"] + o.watts @ found.at.z["x"]
    np.minimum.at(slack, o.window, np.where(o.limited[:, None], left, np.inf).T)
    known = sparse.csr_array((held.data * worth[held.row], (row, place[held.col])), shape=shape)
    return (
        known,
        sparse.csr_array((idle.data, (idle.row, place[idle.col])), shape=shape),
        np.where(np.isfinite(slack), slack / 2, np.inf).T.ravel(),
    )


def _systems_used_by_jobs(relaxation: NodeRelaxation, found: InteriorSolution) -> tuple[sparse.csr_array, Floats]:
    """Return, by fleet option and window in which jobs use systems: a matrix of the systems held, and the most that jobs use in a slot."""
    o, place = found.blocks, _column_positions(relaxation, found)
    taken = np.zeros((o.windows, o.fleet_options))
    np.maximum.at(taken, o.window, np.asarray(o.job_uses @ found.point().running).T)
    peak = taken.T.ravel()
    rows, held = np.flatnonzero(peak > SETTINGS.count_tol), o.linking.systems.tocoo()
    every = sparse.csr_array(
        (held.data, (held.row, place[held.col])),
        shape=(held.shape[0], relaxation.dec.first_stage.size),
    )
    return every[rows], peak[rows]


def _column_positions(relaxation: NodeRelaxation, found: InteriorSolution) -> Ints:
    """Map the first-stage columns of a solution to the columns of the full first stage."""
    part = found.blocks.first_stage
    place, numbers = np.full(part.size, -1), 1.0 + np.arange(part.size, dtype=np.float64)
    position = map_columns(part, relaxation.dec.first_stage, numbers).astype(np.int64) - 1
    place[position[position >= 0]] = np.flatnonzero(position >= 0)
    return place
