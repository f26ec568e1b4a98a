"""The residency block: whole replicas that hold their weights, on systems that nothing else uses at the time.

A replica has workers of one or two roles, such as prefill and decode. A deployment of a point holds whole workers of each role, at least
the workers of one replica; beyond that, workers of either role may be added one by one.

Sets
    p                operating points of serving whose replicas are whole
    i                roles of points; p(i) the point, k(i) the fleet option that the workers of a role use
    q                pools of points
    j                jobs
    k                fleet options
    t                slots; t-1 precedes t where the order of slots is known; w(t) the window of a slot
Data
    workers_i        workers of a role per replica
    systems_i        systems per worker
    spares_i         workers of a role that are held beyond those at work, so that the point carries its load when one system fails
    uses_{p,k}       systems of fleet option k at the full width of a job
    load_p           time until a worker has loaded its weights [s], of which a slot of length step_t loses share_{p,t} = load_p / step_t,
                     at most 1
    cap_p            requests/s per replica
    most_{q,t}       requests/s that the arcs into a pool can carry
    g(t)             group of a slot: slots of one group have the same residents; each slot its own unless stated
    cost_{i,t}       cost of a worker that loads its weights in a slot, for each functional; 0 unless stated
    per_day          most loads of a system in a day; no limit unless stated
    d                days: 24 hours of the order of slots, within one window
Variables
    residents_{i,g}  integer, workers that hold their weights in the slots of group g
    resident_{i,t}   the column residents_{i,g} of the group of slot t
    loading_{i,t}   >= 0, workers that load their weights in a slot; only where that takes time, costs something or is limited, and the
                     order of slots is known
    deployments_{p,g}  in {0, 1}, 1 when a point is deployed in the slots of group g; only where a replica has several workers of a role,
                     or spares
    deployed_{p,t}   the column deployments_{p,g} of the group of slot t
    present_{p,t}    in {0, 1}, 1 when a job runs in a slot; only where it shares a fleet option with whole replicas
Objective
    sum_{i,t} cost_{i,t} loading_{i,t}, for each functional.
Constraints
    resident     workers_i x_{p(i),t} + share_{p(i),t} loading_{i,t} + spares_i deployed_{p(i),t} <= resident_{i,t}    for each i, t
    loading     resident_{i,t} - resident_{i,t-1} <= loading_{i,t}    for each i, t
    relays       sum_{i on k, t of d} systems_i loading_{i,t} <= per_day sum_{u of k, u covers the window of d} n_u
                 for each k whose systems are not counted by slot, and d; systems that are counted by slot start with what they load
    one replica  (workers_i + spares_i) deployments_{p(i),g} <= residents_{i,g}    for each i, g with deployments
    deployed     cap_p x_{p,t} <= most_{q,t} deployed_{p,t}    for each p of q, t with deployed
    first one    sum_{a into q} f_{a,t} <= sum_{p of q} min(cap_p, most_{q,t}) resident_{i,t}, i the role of p
                 for each q, t where a replica can serve more than is asked; most_{q,t} deployed_{p,t} in place of the term where there is
                 deployed; implied, for a tighter relaxation
    present      v_{p,t} <= present_{p,t}    for each p, t with present
    beside       sum_{i on k} systems_i resident_{i,t} + sum_{p of j} uses_{p,k} present_{p,t} <= sum_{u of k, u covers w(t)} n_u
                 for each j, k, t with present
    installed    as in the fleet block, with systems_i resident_{i,t} in place of uses_{p,k} x_{p,t}

A job and serving never alternate within a slot: a job that runs for a share of a slot has its full width beside all residents. Jobs may
alternate with each other.
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.relays import day_of_slots
from solvers.model.data import PlanData
from solvers.model.fleet import COUNT_TOL, at_work, option_upper
from solvers.model.preemption import predecessors
from solvers.program import Program


def is_whole(data: PlanData) -> Bools:
    """[P]: serving points whose replicas are whole."""
    if data.point_whole is None:
        return np.zeros(len(data.point_pool), dtype=bool)
    return data.point_whole & (data.point_pool >= 0)


def loading_share(data: PlanData) -> Floats:
    """[P, T]: share of a slot that a worker loses when it loads its weights; 0 where the order of slots is not known."""
    if data.order is None or data.point_load_s is None:
        return np.zeros((len(data.point_pool), data.slots))
    return np.minimum(data.point_load_s[:, None] / data.order.step_s, 1.0)


def most_workers(data: PlanData) -> Floats:
    """[I, V]: most workers of a role that the systems of its fleet option can hold at a time."""
    option = data.point_uses[:, 1]
    systems = (data.point_uses_systems / data.role_workers())[:, None]
    shape = len(option), data.windows
    room = option_upper(data)[option]
    most = np.divide(room, systems, out=np.full(shape, np.inf), where=systems > 0)
    whole: Floats = np.floor(most * (1 + COUNT_TOL) + COUNT_TOL)
    return whole


def add_residency(program: Program, data: PlanData, most: Floats) -> None:
    """Add the block, after routing and schedule and before `installed`; `most` [A, T]: most requests/s of each arc."""
    if not is_whole(data).any():
        return
    active, point = program.columns["x"], data.point_uses[:, 0]
    share = loading_share(data)
    counts = share > 0 if data.relays is None else np.ones_like(share, dtype=bool)
    stays = np.logical_and(counts.any(axis=1), (active >= 0).any(axis=1))[:, None]  # also while nothing is asked
    where = (is_whole(data)[:, None] & (stays | (active >= 0)))[point]
    group = np.arange(data.slots) if data.resident_group is None else data.resident_group
    in_group = np.zeros((len(point), int(group.max(initial=-1)) + 1), dtype=bool)
    np.logical_or.at(in_group.T, group, where.T)
    room = np.zeros(in_group.shape)
    np.maximum.at(room.T, group, most_workers(data)[:, data.slot_window].T)
    held = program.add_columns("residents", in_group.shape, upper=room, integer=True, where=in_group)
    resident = np.where(where, held[:, group], -1)
    program.columns["resident"] = resident
    loading = _add_loading(program, data, resident, group, counts[point])
    asked = np.zeros((data.pools, data.slots))
    np.add.at(asked, data.arc_pool, most * (program.columns["f"] >= 0))
    deployed = _add_deployed(program, data, asked, held, group)
    use, slot = np.nonzero(where & (active[point] >= 0))
    row = np.arange(len(use))
    program.add_rows(
        "resident",
        -np.inf,
        0.0,
        np.tile(row, 4),
        np.concatenate([active[point[use], slot], loading[use, slot], deployed[point[use], slot], resident[use, slot]]),
        np.concatenate(
            [data.role_workers()[use], share[point[use], slot], data.role_spares()[use], -np.ones(len(row))]
        ),
        index=np.column_stack([use, slot]),
    )
    if not data.objective.maximises:
        _add_first_one(program, data, asked, resident, deployed)
    _add_beside(program, data, resident)


def _add_loading(program: Program, data: PlanData, resident: Ints, group: Ints, counts: Bools) -> Ints:
    """Add `loading`, where loads count, and its rows; return its columns [I, T]."""
    if data.order is None:
        return np.full(resident.shape, -1)
    before = predecessors(data.order.next)
    changes = (resident >= 0) & counts & (group != group[before])
    cost = {} if data.relays is None else data.relays.cost
    loading = program.add_columns("loading", resident.shape, cost=cost, where=changes)
    use, slot = np.nonzero(changes)
    row = np.arange(len(use))
    program.add_rows(
        "loading",
        -np.inf,
        0.0,
        np.tile(row, 3),
        np.concatenate([resident[use, slot], resident[use, before[slot]], loading[use, slot]]),
        np.repeat([1.0, -1.0, -1.0], len(row)),
        index=np.column_stack([use, slot]),
    )
    _add_relays(program, data, loading)
    return loading


def _add_relays(program: Program, data: PlanData, loading: Ints) -> None:
    """Add the rows `relays`; `loading` [I, T]."""
    if data.relays is None or not np.isfinite(data.relays.per_day):
        return
    held, option, day = program.columns["n"], data.point_uses[:, 1], day_of_slots(data.chronology, data.slot_window)
    by_slot = np.zeros(len(data.option_site), dtype=bool)
    if data.hourly is not None:
        by_slot[data.holding_option[data.hourly.holding]] = True
    use, slot = np.nonzero((loading >= 0) & ~by_slot[option][:, None])
    index, row = np.unique(np.column_stack([option[use], day[slot]]), axis=0, return_inverse=True)
    if not len(index):
        return
    window = np.zeros(int(day.max()) + 1, dtype=np.int64)
    window[day] = data.slot_window
    there, holding = np.nonzero((index[:, :1] == data.holding_option) & data.covers()[:, window[index[:, 1]]].T)
    if data.relays.per_day == 0:
        there, holding = there[:0], holding[:0]
    systems = data.point_uses_systems / data.role_workers()
    program.add_rows(
        "relays",
        -np.inf,
        0.0,
        np.concatenate([row.reshape(-1), there]),
        np.concatenate([loading[use, slot], held[holding]]),
        np.concatenate([systems[use], np.full(len(holding), -data.relays.per_day)]),
        index=index,
    )


def _add_deployed(program: Program, data: PlanData, asked: Floats, held: Ints, group: Ints) -> Ints:
    """Add `deployments` and its rows; return the columns `deployed` [P, T].

    `asked` [Q, T]: most requests/s of the arcs into a pool. `held` [I, G]: columns `residents`.
    """
    active, point, workers = program.columns["x"], data.point_uses[:, 0], data.role_workers()
    several = np.zeros(len(active), dtype=bool)
    spares = data.role_spares()
    np.logical_or.at(several, point, (workers > 1) | (spares > 0))
    where = (active >= 0) & (several & is_whole(data))[:, None]
    in_group = np.zeros((len(active), held.shape[1]), dtype=bool)
    np.logical_or.at(in_group.T, group, where.T)
    deployments = program.add_columns("deployments", in_group.shape, upper=1.0, integer=True, where=in_group)
    deployed: Ints = np.where(where, deployments[:, group], -1)
    program.columns["deployed"] = deployed
    use, there = np.nonzero((deployments[point] >= 0) & (held >= 0))
    program.add_linking_rows(
        "one replica",
        deployments[point[use], there],
        held[use, there],
        1 / (workers + spares)[use],
        np.column_stack([use, there]),
    )
    there, slot = np.nonzero(deployed >= 0)
    most = asked[data.point_pool[there], slot] / data.point_capacity[there]
    program.add_linking_rows(
        "deployed", active[there, slot], deployed[there, slot], most, np.column_stack([there, slot])
    )
    return deployed


def _add_first_one(program: Program, data: PlanData, asked: Floats, resident: Ints, deployed: Ints) -> None:
    """Add the rows `first one`."""
    flow, active = program.columns["f"], program.columns["x"]
    first = np.full(active.shape, -1)  # column that stands for the first replica
    point = data.point_uses[:, 0]
    first[point[::-1]] = resident[::-1]
    several = deployed >= 0
    first = np.where(several, deployed, first)
    pool = np.maximum(data.point_pool, 0)
    counted = (active >= 0) & (data.point_pool >= 0)[:, None]
    all_whole = np.ones(asked.shape, dtype=bool)
    np.logical_and.at(all_whole, pool, ~counted | (first >= 0))
    tighter = np.zeros(asked.shape, dtype=bool)
    np.logical_or.at(tighter, pool, counted & (several | (data.point_capacity[:, None] > asked[pool])))
    tighter &= all_whole
    pools, slots = np.nonzero(tighter)
    row_of = np.full(tighter.shape, -1)
    row_of[pools, slots] = np.arange(len(pools))
    arc, at = np.nonzero((flow >= 0) & tighter[data.arc_pool])
    member, when = np.nonzero(counted & tighter[pool])
    carried = asked[pool[member], when]
    carried = np.where(several[member, when], carried, np.minimum(data.point_capacity[member], carried))
    program.add_rows(
        "first one",
        -np.inf,
        0.0,
        np.concatenate([row_of[data.arc_pool[arc], at], row_of[pool[member], when]]),
        np.concatenate([flow[arc, at], first[member, when]]),
        np.concatenate([np.ones(len(arc)), -carried]),
        index=np.column_stack([pools, slots]),
    )


def _add_beside(program: Program, data: PlanData, resident: Ints) -> None:
    """Add `present`, and the rows `present` and `beside`."""
    share = program.columns["v"]
    use_point, use_option = data.point_uses.T
    shared = np.zeros((len(data.option_site), data.slots), dtype=bool)
    np.logical_or.at(shared, use_option, resident >= 0)
    meets = np.zeros(share.shape, dtype=bool)
    np.logical_or.at(meets, use_point, shared[use_option])
    present = program.add_columns("present", share.shape, upper=1.0, integer=True, where=(share >= 0) & meets)
    point, slot = np.nonzero(present >= 0)
    program.add_linking_rows("present", share[point, slot], present[point, slot], 1.0, np.column_stack([point, slot]))

    use, slot = np.nonzero((present[use_point] >= 0) & shared[use_option])
    key = np.column_stack([data.point_job[use_point[use]], use_option[use], slot])
    index, row = np.unique(key, axis=0, return_inverse=True)
    row = row.reshape(-1)
    if not len(index):
        return
    rows, columns, values = [row], [present[use_point[use], slot]], [data.point_uses_systems[use]]
    other = np.flatnonzero((resident >= 0).any(axis=1))
    there, with_use = np.nonzero(index[:, 1][:, None] == use_option[other][None, :])
    rows.append(there)
    columns.append(resident[other[with_use], index[there, 2]])
    values.append((data.point_uses_systems / data.role_workers())[other[with_use]])
    covers = data.covers()[:, data.slot_window]
    there, holding = np.nonzero((index[:, 1][:, None] == data.holding_option[None, :]) & covers[:, index[:, 2]].T)
    rows.append(there)
    columns.append(at_work(program, data)[holding, index[there, 2]])
    values.append(-np.ones(len(holding)))
    program.add_rows(
        "beside", -np.inf, 0.0, np.concatenate(rows), np.concatenate(columns), np.concatenate(values), index=index
    )
