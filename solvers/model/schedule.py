"""The schedule block: jobs that run at one operating point each, in the slots that they choose within their time.

A job runs at its full width or not at all; a share of a slot takes the full width of systems. It runs at one point only, so its
points share the rows `width`.

Sets
    j            jobs
    p            operating points of a job
    t            slots; w(t) the window of a slot; a job may run in the slots of its mask
    k            fleet options
Data
    work_j       work [work units]
    cap_p        work units/s at full width
    seconds_t    time that a slot stands for
    uses_{p,k}   systems of fleet option k at full width
    cost_{p,t}   cost of running over the slot, for each functional
Variables
    y_p          in {0, 1}, 1 when the job runs at p
    run_{p,w}    in {0, 1}, 1 when it runs there in window w; y_p takes its place where the mask reaches one window only
    v_{p,t}      in [0, 1], share of the slot in which it runs
Objective
    sum_{p,t} cost_{p,t} v_{p,t}, for each functional.
Constraints
    assigned     sum_{p of j} y_p = 1    for each j
    progress     sum_t cap_p seconds_t v_{p,t} = work_j y_p    for each p; less what restarts lose (`solvers.model.preemption`)
    running      v_{p,t} <= run_{p,w(t)}    for each p, t
    window       run_{p,w} <= y_p    for each p, w
    width        sum_{p of j} uses_{p,k} run_{p,w} <= sum_{u of k, u covers w} n_u    for each j, k, w
    held width   sum_{p of j} uses_{p,k} y_p <= sum_{u of k, u covers a window of j} n_u    for each j, k where run takes the place of y: implied by
                 whole numbers, since a job with work runs in some window, and not by fractions of them
    housed job   y_p <= open_r    for each p with a pool at a site with open
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import PlanData, draws
from solvers.model.fleet import joined, option_upper
from solvers.model.preemption import add_restarts
from solvers.model.storage import storage_width
from solvers.program import Program

FIT_TOL = 1e-12  # relative rounding of what a job needs against what is there


def can_finish(data: PlanData) -> Bools:
    """[P]: training points that can finish their job in its time, with the systems that can be obtained and the power of the site."""
    training: Bools = data.point_job >= 0
    if not len(data.job_work):
        return training
    job, fits = np.maximum(data.point_job, 0), _fits(data)
    width = np.minimum(np.where(fits, _powered(data), 0.0), storage_width(data)[:, None])[:, data.slot_window]
    width = np.where(joined(data), width, 0.0)
    reach = data.point_capacity * (data.job_window_mask[job] * width * data.slot_hours_s).sum(axis=1)
    finishes: Bools = training & (reach >= data.job_work[job] * (1 - FIT_TOL)) & fits.any(axis=1)
    return finishes


def _fits(data: PlanData) -> Bools:
    """[P, V]: enough systems for the point can be obtained."""
    point, option = data.point_uses.T
    fits = np.ones((len(data.point_job), data.windows), dtype=bool)
    np.logical_and.at(fits, point, data.point_uses_systems[:, None] <= option_upper(data)[option] * (1 + FIT_TOL))
    return fits


def _powered(data: PlanData) -> Floats:
    """[P, V]: largest share of a job's width that its sites can power beside its own idle systems there."""
    least = np.full(len(data.option_site), np.inf)
    np.minimum.at(least, data.holding_option, data.holding_power_w)
    least[np.isinf(least)] = 0.0  # no holding, which `_fits` reports
    point, option = data.point_uses.T
    idle = np.zeros((len(data.point_pool), data.sites))
    np.add.at(idle, (point, data.option_site[option]), data.point_uses_systems * least[option])
    drawing, site, power_w = draws(data)
    room = data.power_limit()[0][site] * (1 + FIT_TOL) - idle[drawing, site][:, None]
    width = np.where(room >= 0, 1.0, 0.0)
    np.divide(room, power_w[:, None], out=width, where=(power_w > 0)[:, None] & (room >= 0))
    narrowest = np.ones((len(data.point_pool), data.windows))
    np.minimum.at(narrowest, drawing, width)
    return narrowest


def unfinished(data: PlanData) -> list[tuple[str, tuple[int, ...]]]:
    """Find jobs that no point can finish, as rows `assigned`."""
    count = np.bincount(data.point_job[can_finish(data)], minlength=len(data.job_work))
    return [("assigned", (int(job),)) for job in np.flatnonzero(count == 0)]


def add_schedule(program: Program, data: PlanData) -> None:
    """Add the block, after the fleet block."""
    jobs, points, windows = len(data.job_work), len(data.point_job), data.windows
    can = can_finish(data)
    job = np.maximum(data.point_job, 0)
    mask = data.job_window_mask if jobs else np.zeros((1, data.slots), dtype=bool)
    in_window = np.zeros((len(mask), windows), dtype=bool)
    np.logical_or.at(in_window.T, data.slot_window, mask.T)

    chosen = program.add_columns("y", (points,), upper=1.0, integer=True, where=can)
    several = can & (in_window[job].sum(axis=1) > 1)
    run = program.add_columns(
        "run",
        (points, windows),
        upper=np.where(_fits(data), 1.0, 0.0),
        integer=True,
        where=several[:, None] & in_window[job],
    )
    share = program.add_columns(
        "v", (points, data.slots), upper=1.0, cost=data.point_cost, where=can[:, None] & mask[job] & joined(data)
    )
    switch = np.where(several[:, None], run, chosen[:, None])  # [P, V]
    switch[~(can[:, None] & in_window[job])] = -1

    points_able = np.flatnonzero(can)
    program.add_rows(
        "assigned", 1.0, 1.0, data.point_job[points_able], chosen[points_able], 1.0, index=np.arange(jobs)[:, None]
    )

    _add_branching_sets(program, data, points_able)

    point, at = np.nonzero(share >= 0)
    row_of = np.full(points, -1)
    row_of[points_able] = np.arange(len(points_able))
    program.add_rows(
        "progress",
        0.0,
        0.0,
        np.concatenate([row_of[point], row_of[points_able]]),
        np.concatenate([share[point, at], chosen[points_able]]),
        np.concatenate([data.slot_hours_s[at] * data.point_capacity[point], -data.job_work[job[points_able]]]),
        index=points_able[:, None],
    )
    if data.point_restart_s is not None:
        add_restarts(program, data, row_of)

    program.add_linking_rows(
        "running", share[point, at], switch[point, data.slot_window[at]], 1.0, np.column_stack([point, at])
    )
    point, window = np.nonzero(run >= 0)
    program.add_linking_rows("window", run[point, window], chosen[point], 1.0, np.column_stack([point, window]))
    _add_width(program, data, switch)
    _add_held_width(program, data, run)

    opened, (drawing, at_site, _) = program.columns["open"], draws(data)
    there = can[drawing] & (opened[at_site] >= 0)
    housed = drawing[there]
    program.add_linking_rows("housed job", chosen[housed], opened[at_site[there]], 1.0, housed[:, None])


def _add_branching_sets(program: Program, data: PlanData, points: Ints) -> None:
    """Add branching sets by site and by pace: they decide more than a single one of many similar points."""
    chosen, job = program.columns["y"], data.point_job
    for j in np.unique(job[points]):
        mine = points[job[points] == j]
        for kind in (data.point_site()[mine], data.point_capacity[mine]):
            for one in np.unique(kind):
                same = kind == one
                if 1 < same.sum() < len(mine):
                    program.branching_sets.append((chosen[mine[same]], chosen[mine[~same]]))


def _add_width(program: Program, data: PlanData, switch: Ints) -> None:
    """Add the rows `width`; `switch` [P, V]: columns run, or y where a job has one window only."""
    point, option = data.point_uses.T
    use, window = np.nonzero(switch[point] >= 0)
    key = np.column_stack([data.point_job[point[use]], option[use], window])
    index, row = np.unique(key, axis=0, return_inverse=True)
    row = row.reshape(-1)
    holding_of, covers = program.columns["n"], data.covers()
    there = (index[:, 1][:, None] == data.holding_option[None, :]) & covers[:, index[:, 2]].T  # [row, holding]
    held_row, holding = np.nonzero(there)
    program.add_rows(
        "width",
        -np.inf,
        0.0,
        np.concatenate([row, held_row]),
        np.concatenate([switch[point[use], window], holding_of[holding]]),
        np.concatenate([data.point_uses_systems[use], -np.ones(len(holding))]),
        index=index,
    )


def _add_held_width(program: Program, data: PlanData, run: Ints) -> None:
    """Add the rows `held width`: a job that may run in several windows has its width in one of them at least."""
    point, option = data.point_uses.T
    use = np.flatnonzero((run[point] >= 0).any(axis=1))
    use = use[data.job_work[data.point_job[point[use]]] > 0]
    index, row = np.unique(np.column_stack([data.point_job[point[use]], option[use]]), axis=0, return_inverse=True)
    row = row.reshape(-1)
    windows = np.zeros((len(index), data.windows), dtype=bool)
    np.logical_or.at(windows, row, run[point[use]] >= 0)
    there = (index[:, 1][:, None] == data.holding_option[None, :]) & (windows @ data.covers().T)  # [row, holding]
    held_row, holding = np.nonzero(there)
    program.add_rows(
        "held width",
        -np.inf,
        0.0,
        np.concatenate([row, held_row]),
        np.concatenate([program.columns["y"][point[use]], program.columns["n"][holding]]),
        np.concatenate([data.point_uses_systems[use], -np.ones(len(holding))]),
        index=index,
    )
