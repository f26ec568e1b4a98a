"""Sub-MIPs within the search: the neighbourhood of a point, and a program in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.subprocess_mip import solve_mip
from solvers.decomposition.benders_master import NEARLY_DONE, done
from solvers.decomposition.first_stage import map_columns
from solvers.decomposition.interior_point.method import InteriorSolution
from solvers.decomposition.node_relaxation import Node, NodeRelaxation
from solvers.interface import SolverError

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Reformulation


NEAR = 0.3  # of the asked gap, how near to the least the counts are to be


SETTINGS = (("mip_heuristic_run_root_reduced_cost", False), ("mip_max_nodes", 100))


# the first takes longer than it saves; the other programs within the program find what nothing else does; what is good is found early


def solve_counts(dec: Reformulation, lower: Floats, upper: Floats, gap: float, seconds: float) -> Floats | None:
    """The structure's columns between these bounds that cost least, whole; None where the program is not small, where nothing is left to be counted or
    it has no answer, or not in time."""
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
            NEAR * gap,
            seconds,
            SETTINGS,
        )
    except SolverError:  # there is another way to counts
        return None
    if found.x is None:
        return None
    values, result = np.append(found.x * scaled.column, 0.0), np.zeros(dec.first_stage.size)
    for block, here in dec.first_stage.columns.items():
        result[here[here >= 0]] = values[program.columns[block][here >= 0]]
    return np.clip(np.where(dec.first_stage.integer, np.round(result), result), lower, upper)


FAR = 1e-3  # of the value, that is as bad as a choice the other way


SHORTEST, LONGEST = 0.1, 5.0  # seconds that they may take, at least and at most


ROUGHLY = 0.01  # how far from proven they may be


WHOLE = 1e-6  # how far from whole a number may be


MORE, DEAR = (
    0.001,
    10.0,
)  # how much more systems are to be worth where counts are rounded together, and how dear it is to lack something


def nearest_binaries(relaxation: NodeRelaxation, state: Node, values: Floats) -> Floats | None:
    """Whole choices that the rows of what is decided once allow, with every job done in the windows in which it runs, least far from these
    values and from paying,  min sum |x - v| + reduced cost x / FAR of the value.  None where there are none."""
    cost = np.where(relaxation.count_columns, 0.0, 1 - 2 * values) + _reduced_costs(relaxation, state.found) / (
        FAR * max(abs(state.found.value), 1.0)
    )
    enough = done(relaxation.dec, relaxation.view, state.upper)
    return _solve_sub_mip(
        relaxation,
        cost,
        relaxation.integer_columns & ~relaxation.count_columns,
        state.lower,
        state.upper,
        enough,
        np.full(enough.shape[0], -NEARLY_DONE),
    )


def nearest_counts(relaxation: NodeRelaxation, state: Node, values: Floats) -> Floats | None:
    """Whole counts next to these values that cost least, with systems at each site in each window worth what they were and a little more, that
    leave the power that was used and jobs their systems: what they lack of that costs DEAR times as much. None where there are none in time."""
    (worth, idle, slack), (used, peak), dec = (
        _worth_and_idle(relaxation, state.found),
        _systems_used_by_jobs(relaxation, state.found),
        relaxation.dec,
    )
    wanted = relaxation.integer_columns & relaxation.count_columns
    down, up = (
        np.clip(np.floor(values + WHOLE), state.lower, state.upper),
        np.clip(np.ceil(values - WHOLE), state.lower, state.upper),
    )
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
    at_least = np.concatenate([(1 + MORE) * (worth @ values), -(idle @ values) - slack, np.ceil(peak - WHOLE)])
    price = DEAR * np.concatenate([np.ones(worth.shape[0]), np.full(idle.shape[0], watt), system])
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
    """The point between bounds that costs least with what is wanted whole, by the rows of what is decided once and other ones, which may lack
    something at a price if there is one; None where there is none, or not in time."""
    first_stage, moves = relaxation.dec.first_stage, np.flatnonzero(upper > lower)
    if not len(moves):
        return lower
    matrix = sparse.vstack([first_stage.matrix, others]).tocsr()
    row_lower, row_upper = (
        np.append(first_stage.row_lower, at_least),
        np.append(first_stage.row_upper, np.full(len(at_least), np.inf)),
    )
    given, part = matrix @ lower, matrix[:, moves]
    rows, lacks = np.flatnonzero(np.diff(part.indptr)), 0 if price is None else len(price)
    short = sparse.csr_array(
        (np.ones(lacks), (first_stage.matrix.shape[0] + np.arange(lacks), np.arange(lacks))),
        shape=(matrix.shape[0], lacks),
    )
    program = sparse.hstack([part, short]).tocsr()[rows].tocsc()
    found = solve_mip(np.append(cost[moves], price if lacks else []), program, ((row_lower - given)[rows], (row_upper - given)[rows]),
                        (np.zeros(len(moves) + lacks), np.append((upper - lower)[moves], np.full(lacks, np.inf))),
                        np.append(wanted[moves], np.zeros(lacks, dtype=bool)), ROUGHLY, min(max(relaxation.seconds_left(), SHORTEST), LONGEST))  # fmt: skip
    if found.x is None:
        return None
    result = lower.copy()
    result[moves] += found.x[: len(moves)]
    return np.where(wanted, np.round(result), result)


def _reduced_costs(relaxation: NodeRelaxation, found: InteriorSolution) -> Floats:
    """Reduced costs of the whole structure's columns, 0 for those that do not move."""
    reduced_cost = np.zeros(found.blocks.first_stage.size)
    reduced_cost[found.blocks.moving] = found.at.w["m"]
    return map_columns(found.blocks.first_stage, relaxation.dec.first_stage, reduced_cost)


def _worth_and_idle(
    relaxation: NodeRelaxation, found: InteriorSolution
) -> tuple[sparse.csr_array, sparse.csr_array, Floats]:
    """([site window, columns] what systems are worth there at the prices of an answer, and what they draw idling; half the power that jobs
    leave in every slot there)."""
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
    np.minimum.at(
        slack, o.window, np.where(o.limited[:, None], found.at.z["power"] + o.watts @ found.at.z["x"], np.inf).T
    )
    known = sparse.csr_array((held.data * worth[held.row], (row, place[held.col])), shape=shape)
    return (
        known,
        sparse.csr_array((idle.data, (idle.row, place[idle.col])), shape=shape),
        np.where(np.isfinite(slack), slack / 2, np.inf).T.ravel(),
    )


def _systems_used_by_jobs(relaxation: NodeRelaxation, found: InteriorSolution) -> tuple[sparse.csr_array, Floats]:
    """([fleet option window, columns] systems held there, the most of them that jobs take in a slot of an answer), where jobs take any."""
    o, place = found.blocks, _column_positions(relaxation, found)
    taken = np.zeros((o.windows, o.fleet_options))
    np.maximum.at(taken, o.window, (o.job_uses @ found.point().running).T)
    rows, held = np.flatnonzero(taken.T > WHOLE), o.linking.systems.tocoo()
    every = sparse.csr_array(
        (held.data, (held.row, place[held.col])),
        shape=(held.shape[0], relaxation.dec.first_stage.size),
    )
    return every[rows], taken.T.ravel()[rows]


def _column_positions(relaxation: NodeRelaxation, found: InteriorSolution) -> Ints:
    """Of each column of the structure of an answer, that of the whole one."""
    part = found.blocks.first_stage
    place, position = (
        np.full(part.size, -1),
        map_columns(part, relaxation.dec.first_stage, 1.0 + np.arange(part.size)).astype(np.int64) - 1,
    )
    place[position[position >= 0]] = np.flatnonzero(position >= 0)
    return place
