"""The routing block: demand goes from origins to pools of operating points.

Sets
    w            workloads
    o            origins
    r            sites
    a            arcs (w, o, r) into a pool q
    p            operating points of pools
    t            slots
    e            edges of the tree along which the weights of w reach sites
Data
    D_{w,o,t}    demand [requests/s]
    cap_p        requests/s per replica
    most_{a,t}   requests/s that an arc can carry: the demand, or a proven bound on lambda times the demand
    cost_{a,t}   cost of a request/s over the slot, for each functional; cost_{p,t} likewise of a replica
    cost_{w,r}   cost of hosting w at r; cost_e of an edge
Variables
    f_{a,t}      >= 0, requests/s on an arc
    x_{p,t}      >= 0, replicas at work
    host_{w,r}   in {0, 1}, 1 when w is hosted at r; only where hosting costs something or takes a line
    edge_e       in [0, 1], 1 when weights travel over e to a site below it
    lambda       >= 0, factor on demand; only where throughput is maximised
Objective
    sum_{a,t} cost_{a,t} f_{a,t} + sum_{p,t} cost_{p,t} x_{p,t} + sum_{w,r} cost_{w,r} host_{w,r} + sum_e cost_e edge_e, for each
    functional; or lambda, which is maximised.
Constraints
    balance      sum_{a of w,o} f_{a,t} = D_{w,o,t}    for each w, o, t; times lambda where throughput is maximised
    capacity     sum_{a into q} f_{a,t} <= sum_{p of q} cap_p x_{p,t}
                 for each q, t; an equation where idle replicas could reduce the objective, and at metered sites
    hosted       sum_a f_{a,t} <= most_{a,t} host_{w,r}
                 for each set of parallel arcs, which share w, o and r, and each t; open_r where host is absent
    hosted across  cap_p x_{p,t} <= sum_{a into q} most_{a,t} host_{w,r}    for each p of q with a pool at r besides its own site, and each t
    housed       host_{w,r} <= open_r    for each w, r
    tree         host_{w,r} <= edge_e    for each w, r and each e on the way to r
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.exchange import ExchangeData
from solvers.model.data import PlanData, draws
from solvers.model.deferral import add_waiting, most_served
from solvers.model.dominance import undominated
from solvers.model.fleet import joined, option_upper
from solvers.program import Program


def pool_capacity(data: PlanData) -> Floats:
    """[Q, V]: upper bound on what a pool can serve in a window.

    Each point is charged to the fleet option that bounds it best. The replicas charged to a fleet option take no more of it than can be
    installed, each at the best rate.
    """
    point, option = data.point_uses.T
    serving = data.point_pool[point] >= 0
    point, option, systems = point[serving], option[serving], data.point_uses_systems[serving]
    rate = np.divide(data.point_capacity[point], systems, out=np.full(len(systems), np.inf), where=systems > 0)
    order = np.lexsort((rate, point))
    first = order[np.unique(point[order], return_index=True)[1]]
    best = np.zeros((data.pools, len(data.option_site)))
    np.maximum.at(best, (data.point_pool[point[first]], option[first]), rate[first])
    most = option_upper(data)
    return np.array([[np.sum(row[row > 0] * most[row > 0, v]) for v in range(data.windows)] for row in best]).reshape(
        data.pools, data.windows
    )


def arc_most(data: PlanData) -> Floats:
    """[A, T]: upper bound on the requests/s of an arc."""
    demand = most_served(data)[data.arc_asked(), data.arc_origin] * arc_open(data)
    if not data.objective.maximises:
        return demand
    pool = pool_capacity(data)[:, data.slot_window]  # [Q, T]
    most = pool[data.arc_pool] * arc_open(data)
    scaled = data.scaled() > 0
    served = np.zeros(data.demand.shape)
    np.add.at(served, (data.arc_asked(), data.arc_origin), most)
    wanted = data.demand
    if data.wait_slots is not None:  # requests that may wait are bounded over all slots together
        waits, step = (data.wait_slots > 0)[:, None, None], data.chronology.step_s
        served, wanted = (np.where(waits, (part * step).sum(axis=2, keepdims=True), part) for part in (served, wanted))
    asked = (wanted > 0) & scaled[:, None, None]
    factor = np.min(served[asked] / wanted[asked]) if asked.any() else np.inf
    times = np.where(scaled[data.arc_asked()], factor, 1.0)[:, None] * np.ones(data.slots)
    grown = np.multiply(demand, times, out=np.zeros_like(demand), where=demand > 0)  # 0 even where lambda has no bound
    return np.minimum(most, grown)


def arc_open(data: PlanData) -> Bools:
    """[A, T]: all lines of the arc are ready."""
    if data.lines is None:
        return np.ones((len(data.arc_pool), data.slots), dtype=bool)
    return data.lines.arc_open(len(data.arc_pool))[:, data.slot_window]


def unserved(data: PlanData) -> list[tuple[str, tuple[int, ...]]]:
    """Find demand that no arc into a pool with operating points can serve, as prefixes of rows `balance`."""
    alive = np.bincount(data.point_pool[(data.point_pool >= 0) & (data.point_capacity > 0)], minlength=data.pools) > 0
    reached = np.zeros(data.demand.shape, dtype=bool)
    ends = alive[data.arc_pool] if len(data.arc_pool) else np.zeros(0, dtype=bool)
    np.logical_or.at(reached, (data.arc_asked()[ends], data.arc_origin[ends]), arc_open(data)[ends])
    if data.wait_slots is not None:
        reached |= (data.wait_slots > 0)[:, None, None] & reached.any(axis=2, keepdims=True)
    missing = ((data.demand > 0) & ~reached).any(axis=2)
    return [("balance", (int(w), int(o))) for w, o in np.argwhere(missing)]


def add_routing(program: Program, data: PlanData) -> Floats:
    """Add the block; return the most requests/s that each arc can carry [A, T]."""
    most = arc_most(data)
    served = np.zeros((data.pools + 1, data.slots), dtype=bool)  # the last row is for points of no pool
    np.logical_or.at(served, data.arc_pool, most > 0)
    serving = (data.point_pool >= 0) & (data.point_capacity > 0)
    filled = np.bincount(data.point_pool[serving], minlength=data.pools) > 0
    usual = _usual_replica(data)
    flow = program.add_columns(
        "f",
        most.shape,
        cost=data.arc_cost,
        unit=usual[data.arc_workload][:, None],
        where=(most > 0) & filled[data.arc_pool][:, None],
    )
    active = program.add_columns(
        "x",
        (len(data.point_pool), data.slots),
        cost=data.point_cost,
        where=serving[:, None] & served[data.point_pool] & undominated(data) & joined(data),
    )
    factor = program.add_columns("lambda", (), where=data.objective.maximises)
    _add_balance(program, data, flow, factor)
    add_waiting(program, data, flow, factor)
    _add_capacity(program, data, flow, active)
    _add_hosting(program, data, flow, most)
    if data.exchange is not None:
        _add_hosting_across(program, data, data.exchange, most)
    return most


def _usual_replica(data: PlanData) -> Floats:
    """[W]: geometric mean rate of a replica, the unit in which the solver counts flow."""
    usual = np.ones(data.demand.shape[0])
    for workload in range(len(usual)):
        pools = data.arc_pool[data.arc_workload == workload]
        rates = data.point_capacity[np.isin(data.point_pool, pools) & (data.point_capacity > 0)]
        if rates.size:
            usual[workload] = np.exp(np.log(rates).mean())
    return usual


def _add_balance(program: Program, data: PlanData, flow: Ints, factor: Ints) -> None:
    at_once = np.ones(data.demand.shape[0], dtype=bool) if data.wait_slots is None else data.wait_slots == 0
    workload, origin, slot = np.nonzero((data.demand > 0) & at_once[:, None, None])
    row_of = np.full(data.demand.shape, -1)
    row_of[workload, origin, slot] = np.arange(len(slot))
    asked = data.demand[workload, origin, slot]
    grows = data.scaled()[workload] > 0
    arc, at = np.nonzero((flow >= 0) & at_once[data.arc_asked()][:, None])
    program.add_rows(
        "balance",
        np.where(grows, 0.0, asked),
        np.where(grows, 0.0, asked),
        np.concatenate([row_of[data.arc_asked()[arc], data.arc_origin[arc], at], np.flatnonzero(grows)]),
        np.concatenate([flow[arc, at], np.full(int(grows.sum()), int(factor))]),
        np.concatenate([np.ones(len(arc)), -asked[grows]]),
        index=np.column_stack([workload, origin, slot]),
    )


def _add_capacity(program: Program, data: PlanData, flow: Ints, active: Ints) -> None:
    arc, at = np.nonzero(flow >= 0)
    point, when = np.nonzero(active >= 0)
    used = np.zeros((data.pools, data.slots), dtype=bool)
    used[data.arc_pool[arc], at] = True
    pool, slot = np.nonzero(used)
    row_of = np.full(used.shape, -1)
    row_of[pool, slot] = np.arange(len(pool))
    program.add_rows(
        "capacity",
        np.where(capacity_is_equality(data)[pool, slot], 0.0, -np.inf),
        0.0,
        np.concatenate([row_of[data.arc_pool[arc], at], row_of[data.point_pool[point], when]]),
        np.concatenate([flow[arc, at], active[point, when]]),
        np.concatenate([np.ones(len(arc)), -data.point_capacity[point]]),
        index=np.column_stack([pool, slot]),
    )


def capacity_is_equality(data: PlanData) -> Bools:
    """[Q, T]: `capacity` must be an equation: idle replicas could reduce the objective, or would be missing at a meter."""
    pays = np.zeros((len(data.point_pool), data.slots), dtype=bool)
    for name in data.counted() & set(data.point_cost):
        pays |= data.point_cost[name] < 0
    point, site, _ = draws(data)
    np.logical_or.at(pays, point, data.metered()[site][:, None])
    serving = data.point_pool >= 0
    result = np.zeros((data.pools, data.slots), dtype=bool)
    np.logical_or.at(result, data.point_pool[serving], pays[serving])
    return result


def parallel_arcs(data: PlanData, most: Floats) -> tuple[Ints, Floats]:
    """Return the first arc with the same workload, origin and site [A], and for that arc the most requests/s on all of them [A, T]."""
    ends = np.column_stack([data.arc_workload, data.arc_origin, data.arc_site])
    _, leads, group = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    first = leads[group.reshape(-1)] if len(ends) else np.zeros(0, dtype=np.int64)
    together = np.zeros_like(most)
    (np.add if data.objective.maximises else np.maximum).at(together, first, most)
    return first, together


def hosting_has_cost(data: PlanData) -> Bools:
    """[W, R]: hosting the workload costs something or takes a line."""
    priced = np.zeros((data.demand.shape[0], data.sites), dtype=bool)
    for values in data.host_cost.values():
        priced |= values > 0
    priced[data.tree_path[:, 0], data.tree_path[:, 1]] = True
    if data.lines is not None:
        priced |= data.lines.placed(*priced.shape)
    return priced


def _add_hosting(program: Program, data: PlanData, flow: Ints, most: Floats) -> None:
    opened, priced = program.columns["open"], hosting_has_cost(data)
    reached = np.zeros_like(priced)
    arc, at = np.nonzero(flow >= 0)
    reached[data.arc_workload[arc], data.arc_site[arc]] = True
    if data.exchange is not None:
        served = data.exchange.take(data.point_pool[data.exchange.point] >= 0)
        reached[workload_of_pools(data)[data.point_pool[served.point]], served.site] = True
    host = program.add_columns(
        "host", priced.shape, upper=1.0, integer=True, cost=data.host_cost, where=priced & reached
    )
    binary = np.where(host >= 0, host, opened)  # [W, R], -1 where neither exists

    linked = binary[data.arc_workload[arc], data.arc_site[arc]] >= 0
    arc, at = arc[linked], at[linked]
    first, together = parallel_arcs(data, most)
    key, row = np.unique(first[arc] * data.slots + at, return_inverse=True)
    lead, slot = np.divmod(key, data.slots)
    program.add_rows(
        "hosted",
        -np.inf,
        0.0,
        np.concatenate([row.reshape(-1), np.arange(len(key))]),
        np.concatenate([flow[arc, at], binary[data.arc_workload[lead], data.arc_site[lead]]]),
        np.concatenate([np.ones(len(arc)), -together[lead, slot]]),
        index=np.column_stack([lead, slot]),
    )

    workload, site = np.nonzero((host >= 0) & (opened >= 0))
    program.add_linking_rows("housed", host[workload, site], opened[site], 1.0, np.column_stack([workload, site]))

    workload, site, edge = data.tree_path[host[data.tree_path[:, 0], data.tree_path[:, 1]] >= 0].T
    used = np.zeros(len(data.edge_workload), dtype=bool)
    used[edge] = True
    carried = program.add_columns("edge", used.shape, upper=1.0, cost=data.edge_cost, where=used)
    program.add_linking_rows("tree", host[workload, site], carried[edge], 1.0, np.column_stack([workload, site, edge]))


def workload_of_pools(data: PlanData) -> Ints:
    """[Q]: workload of the arcs into a pool; -1 without arcs."""
    found = np.full(data.pools, -1)
    found[data.arc_pool] = data.arc_workload
    return found


def pool_most(data: PlanData, most: Floats) -> Floats:
    """[Q, T]: upper bound on the requests/s of a pool; `most` [A, T] of its arcs."""
    together = np.zeros((data.pools, data.slots))
    np.add.at(together, data.arc_pool, most)
    return together


def _add_hosting_across(program: Program, data: PlanData, exchange: ExchangeData, most: Floats) -> None:
    """Add the rows `hosted across`: a point with pools at two sites needs its weights at both."""
    active, host = program.columns["x"], program.columns["host"]
    exchange = exchange.take(data.point_pool[exchange.point] >= 0)
    pool = data.point_pool[exchange.point]
    binary = host[workload_of_pools(data)[pool], exchange.site]
    place, slot = np.nonzero((active[exchange.point] >= 0) & (binary >= 0)[:, None])
    point = exchange.point[place]
    bound = pool_most(data, most)[pool[place], slot] / data.point_capacity[point]
    index = np.column_stack([point, slot])
    program.add_linking_rows("hosted across", active[point, slot], binary[place], bound, index)
