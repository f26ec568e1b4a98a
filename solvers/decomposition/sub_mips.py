"""Sub-MIPs within the search: the neighbourhood of a point, and a program in one piece."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from solvers.arrays import Floats, Ints
from solvers.backends.subprocess_mip import solve_mip
from solvers.decomposition.benders_master import NEARLY_DONE, done
from solvers.decomposition.first_stage import carried
from solvers.decomposition.interior_point.method import Inside
from solvers.decomposition.node_relaxation import Chosen, Looks
from solvers.interface import SolverError

if TYPE_CHECKING:
    from solvers.decomposition.reformulation import Decomposition


NEAR = 0.3  # of the asked gap, how near to the least the counts are to be


SETTINGS = (("mip_heuristic_run_root_reduced_cost", False), ("mip_max_nodes", 100))


# the first takes longer than it saves; the other programs within the program find what nothing else does; what is good is found early


def counts(dec: Decomposition, least: Floats, most: Floats, gap: float, seconds: float) -> Floats | None:
    """The structure's columns between these bounds that cost least, whole; None where the program is not small, where nothing is left to be counted or
    it has no answer, or not in time."""
    program = dec.program
    if program is None or not (dec.whole.integer & (most > least)).any():
        return None
    arrays = program.arrays()
    scaled = arrays.scaled(program.functional(dec.functional))
    lower, upper = scaled.arrays.lower.copy(), scaled.arrays.upper.copy()
    for block, here in dec.whole.columns.items():
        place = program.columns[block]
        both = (here >= 0) & (place >= 0)
        at = place[both]
        lower[at], upper[at] = (
            least[here[both]] / scaled.column[at],
            np.minimum(most[here[both]] / scaled.column[at], upper[at]),
        )
    rows = scaled.arrays.row_lower, scaled.arrays.row_upper
    try:
        found = solve_mip(
            scaled.cost,
            scaled.arrays.matrix,
            rows,
            (lower, np.maximum(lower, upper)),
            arrays.integer,
            NEAR * gap,
            seconds,
            SETTINGS,
        )
    except SolverError:  # there is another way to counts
        return None
    if found.x is None:
        return None
    values, result = np.append(found.x * scaled.column, 0.0), np.zeros(dec.whole.size)
    for block, here in dec.whole.columns.items():
        result[here[here >= 0]] = values[program.columns[block][here >= 0]]
    return np.clip(np.where(dec.whole.integer, np.round(result), result), least, most)


FAR = 1e-3  # of the value, that is as bad as a choice the other way


SHORTEST, LONGEST = 0.1, 5.0  # seconds that they may take, at least and at most


ROUGHLY = 0.01  # how far from proven they may be


WHOLE = 1e-6  # how far from whole a number may be


MORE, DEAR = (
    0.001,
    10.0,
)  # how much more systems are to be worth where counts are rounded together, and how dear it is to lack something


def nearest_choices(looks: Looks, state: Chosen, values: Floats) -> Floats | None:
    """Whole choices that the rows of what is decided once allow, with every job done in the windows in which it runs, least far from these
    values and from paying,  min sum |x - v| + reduced cost x / FAR of the value.  None where there are none."""
    cost = np.where(looks.counts, 0.0, 1 - 2 * values) + _reduced(looks, state.found) / (
        FAR * max(abs(state.found.value), 1.0)
    )
    enough = done(looks.dec, looks.view, state.most)
    return _cheapest(
        looks,
        cost,
        looks.fixing & ~looks.counts,
        state.least,
        state.most,
        enough,
        np.full(enough.shape[0], -NEARLY_DONE),
    )


def nearest_counts(looks: Looks, state: Chosen, values: Floats) -> Floats | None:
    """Whole counts next to these values that cost least, with systems at each site in each window worth what they were and a little more, that
    leave the power that was used and jobs their systems: what they lack of that costs DEAR times as much. None where there are none in time."""
    (worth, idle, slack), (used, peak), dec = (
        _worth_and_idle(looks, state.found),
        _used_by_jobs(looks, state.found),
        looks.dec,
    )
    wanted = looks.fixing & looks.counts
    down, up = (
        np.clip(np.floor(values + WHOLE), state.least, state.most),
        np.clip(np.ceil(values - WHOLE), state.least, state.most),
    )
    least, most = np.where(wanted, down, state.least), np.where(wanted, up, state.most)
    watts = dec.data.holding_power_w > 0
    watt = (
        np.median(dec.option_cost[dec.data.holding_option[watts]] / dec.data.holding_power_w[watts])
        if watts.any()
        else 0.0
    )
    system = np.where(
        used.indptr[1:] > used.indptr[:-1], used @ dec.whole.cost / np.maximum(used.sum(axis=1), 1.0), 0.0
    )
    at_least = np.concatenate([(1 + MORE) * (worth @ values), -(idle @ values) - slack, np.ceil(peak - WHOLE)])
    price = DEAR * np.concatenate([np.ones(worth.shape[0]), np.full(idle.shape[0], watt), system])
    return _cheapest(
        looks, dec.whole.cost, wanted, least, most, sparse.vstack([worth, -idle, used]).tocsr(), at_least, price
    )


def _cheapest(
    looks: Looks,
    cost: Floats,
    wanted: np.ndarray,
    least: Floats,
    most: Floats,
    others: sparse.csr_array,
    at_least: Floats,
    price: Floats | None = None,
) -> Floats | None:
    """The point between bounds that costs least with what is wanted whole, by the rows of what is decided once and other ones, which may lack
    something at a price if there is one; None where there is none, or not in time."""
    whole, moves = looks.dec.whole, np.flatnonzero(most > least)
    if not len(moves):
        return least
    matrix = sparse.vstack([whole.matrix, others]).tocsr()
    lower, upper = np.append(whole.row_lower, at_least), np.append(whole.row_upper, np.full(len(at_least), np.inf))
    given, part = matrix @ least, matrix[:, moves]
    rows, lacks = np.flatnonzero(np.diff(part.indptr)), 0 if price is None else len(price)
    short = sparse.csr_array(
        (np.ones(lacks), (whole.matrix.shape[0] + np.arange(lacks), np.arange(lacks))), shape=(matrix.shape[0], lacks)
    )
    program = sparse.hstack([part, short]).tocsr()[rows].tocsc()
    found = solve_mip(np.append(cost[moves], price if lacks else []), program, ((lower - given)[rows], (upper - given)[rows]),
                        (np.zeros(len(moves) + lacks), np.append((most - least)[moves], np.full(lacks, np.inf))),
                        np.append(wanted[moves], np.zeros(lacks, dtype=bool)), ROUGHLY, min(max(looks.left(), SHORTEST), LONGEST))  # fmt: skip
    if found.x is None:
        return None
    result = least.copy()
    result[moves] += found.x[: len(moves)]
    return np.where(wanted, np.round(result), result)


def _reduced(looks: Looks, found: Inside) -> Floats:
    """Reduced costs of the whole structure's columns, 0 for those that do not move."""
    reduced = np.zeros(found.blocks.structure.size)
    reduced[found.blocks.moving] = found.at.w["m"]
    return carried(found.blocks.structure, looks.dec.whole, reduced)


def _worth_and_idle(looks: Looks, found: Inside) -> tuple[sparse.csr_array, sparse.csr_array, Floats]:
    """([site window, columns] what systems are worth there at the prices of an answer, and what they draw idling; half the power that jobs
    leave in every slot there)."""
    o, whole, sites, place = found.blocks, looks.dec.whole, looks.dec.data.option_site, _place(looks, found)
    held, worth = o.linked.systems.tocoo(), (found.at.w["installed"] @ o.in_window).ravel()
    option, window = np.divmod(held.row, o.windows)
    row = sites[o.linked.fleet_options[option]] * o.windows + window
    idle, shape = o.linked.idle.tocoo(), (o.sites * o.windows, whole.size)
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


def _used_by_jobs(looks: Looks, found: Inside) -> tuple[sparse.csr_array, Floats]:
    """([fleet option window, columns] systems held there, the most of them that jobs take in a slot of an answer), where jobs take any."""
    o, place = found.blocks, _place(looks, found)
    taken = np.zeros((o.windows, o.fleet_options))
    np.maximum.at(taken, o.window, (o.job_uses @ found.point().running).T)
    rows, held = np.flatnonzero(taken.T > WHOLE), o.linked.systems.tocoo()
    every = sparse.csr_array((held.data, (held.row, place[held.col])), shape=(held.shape[0], looks.dec.whole.size))
    return every[rows], taken.T.ravel()[rows]


def _place(looks: Looks, found: Inside) -> Ints:
    """Of each column of the structure of an answer, that of the whole one."""
    part = found.blocks.structure
    place, position = (
        np.full(part.size, -1),
        carried(part, looks.dec.whole, 1.0 + np.arange(part.size)).astype(np.int64) - 1,
    )
    place[position[position >= 0]] = np.flatnonzero(position >= 0)
    return place
