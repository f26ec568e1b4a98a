"""The fleet block: how many systems are held, where, and what they must carry.

A holding is a fleet option over one window, several consecutive ones, or all of them.

Sets
    r            sites
    k            fleet options
    u            holdings; k(u) its fleet option, r(u) its site
    s            supplies, each a set of holdings
    t            slots; w(t) the window of a slot
    p            operating points
Data
    upper_u      most systems of a holding, lowered to what supply, site power and rack positions permit
    lower_u      least systems of a holding, 0 if not given
    cost_u       cost of a system of a holding, for each functional
    power_u      power of an idle system [W]
    power_p      power of a replica, or of a job at full width, above idle [W]; of pools at two sites, of each at its own
    uses_{p,k}   systems of fleet option k per replica, or at full width
    limit_s      most systems of a supply at a time
    limit_{r,w}  power limit of a site in a window [W]
    fixed_r      cost of opening a site, for each functional
Variables
    n_u          integer in [lower_u, upper_u], systems held
    open_r       in {0, 1}, 1 when the site is open; only where opening costs something
Objective
    sum_u cost_u n_u + sum_r fixed_r open_r, for each functional.
Constraints
    supply       sum_{u in s, u covers w} n_u <= limit_s    for each s, w; where several u of s are counted by slot, for each s, t, with the
                 systems that run in t in place of n_u (`solvers.model.hourly`)
    opening      n_u <= upper_u open_{r(u)}    for each u at a site with open
    installed    sum_p uses_{p,k} (x_{p,t} + v_{p,t}) <= sum_{u of k, u covers w(t)} n_u
                 for each k, t; residents in place of x_{p,t} where replicas are whole (`solvers.model.residency`), and the systems
                 that run in t in place of n_u where they are counted by slot (`solvers.model.hourly`)
    power        sum_{u at r, u covers w(t)} power_u n_u + sum_{p at r} power_p (x_{p,t} + v_{p,t}) <= limit_{r,w(t)} open_r
                 for each r, t; without open_r where it is absent
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.data import COST, PlanData, draws
from solvers.model.facility import rack_room
from solvers.program import Program

COUNT_TOL = 1e-9  # rounding of a count before it is rounded down, relative and absolute


def holding_upper(data: PlanData) -> Floats:
    """[U]: most systems of each holding: the caller's bound, tightened by supply, by site power for idle systems, and by rack positions."""
    upper = np.minimum(data.holding_upper, rack_room(data))
    np.minimum.at(upper, data.supply_member[:, 1], data.supply_limit[data.supply_member[:, 0]])
    limit_w = np.where(data.covers(), data.power_limit()[0][data.option_site[data.holding_option]], np.inf).min(
        axis=1, initial=np.inf
    )
    room = np.full(len(upper), np.inf)
    np.divide(limit_w, data.holding_power_w, out=room, where=data.holding_power_w > 0)
    whole: Floats = np.floor(np.minimum(upper, room) * (1 + COUNT_TOL) + COUNT_TOL)
    return np.maximum(whole, 0.0)


def option_upper(data: PlanData) -> Floats:
    """[K, V]: most systems of a fleet option in a window: the sum of its holdings, of which no supply provides more than its limit."""
    upper, covers = holding_upper(data)[:, None], data.covers()
    most = np.zeros((len(data.option_site), data.windows))
    np.add.at(most, data.holding_option, upper * covers)
    supply, holding = data.supply_member.T
    fleet_options = len(most)
    pair, mine = np.unique(supply * fleet_options + data.holding_option[holding], return_inverse=True)
    inside = np.zeros((len(pair), data.windows))  # systems of a fleet option that a supply counts
    np.add.at(inside, mine.reshape(-1), (upper * covers)[holding])
    beyond = np.maximum(inside - data.supply_limit[pair // fleet_options][:, None], 0.0)
    too_many = np.zeros_like(most)
    np.maximum.at(too_many, pair % fleet_options, beyond)
    at_once: Floats = most - too_many
    return at_once


def add_holdings(program: Program, data: PlanData) -> None:
    """Add `n` and `open`, and the rows over them alone."""
    upper = holding_upper(data)
    least = 0.0 if data.holding_lower is None else np.minimum(data.holding_lower, upper)
    held = program.add_columns(
        "n", upper.shape, lower=least, upper=upper, integer=True, cost=data.holding_cost, where=upper > 0
    )
    fixed = np.zeros(data.sites)
    for values in data.site_fixed.values():
        fixed = np.maximum(fixed, values)
    opened = program.add_columns("open", fixed.shape, upper=1.0, integer=True, cost=data.site_fixed, where=fixed > 0)

    covers = data.covers()
    for window in range(data.windows):
        member = data.supply_member[covers[data.supply_member[:, 1], window]]
        taken = np.bincount(member[:, 0], minlength=len(data.supply_limit)) > 0
        bound = np.flatnonzero(np.isfinite(data.supply_limit) & taken & ~data.supply_by_slot())
        row_of = np.full(len(data.supply_limit), -1)
        row_of[bound] = np.arange(len(bound))
        member = member[row_of[member[:, 0]] >= 0]
        program.add_rows(
            "supply",
            -np.inf,
            data.supply_limit[bound],
            row_of[member[:, 0]],
            held[member[:, 1]],
            1.0,
            index=np.column_stack([bound, np.full(len(bound), window)]),
        )

    site = data.option_site[data.holding_option]
    linked = np.flatnonzero((opened[site] >= 0) & (held >= 0))
    program.add_linking_rows("opening", held[linked], opened[site[linked]], upper[linked], linked[:, None])


def at_work(program: Program, data: PlanData) -> Ints:
    """[U, T]: the column that says how many systems of a holding serve in a slot: `on` where they are counted by slot, `n` elsewhere."""
    held = np.broadcast_to(program.columns["n"][:, None], (len(data.holding_option), data.slots))
    if data.hourly is None:
        return held
    return np.where(data.hourly.holding[:, None], program.columns["on"], held)


def add_supplies_by_slot(program: Program, data: PlanData) -> None:
    """Add the rows `supply` of each slot, after the blocks that run: over the systems that run in it, or over what points use of them."""
    counted = np.flatnonzero(data.supply_by_slot() & np.isfinite(data.supply_limit))
    if not len(counted):
        return
    slots, number = data.slots, np.full(len(data.supply_limit), -1)
    number[counted] = np.arange(len(counted))
    supply, holding = data.supply_member[number[data.supply_member[:, 0]] >= 0].T
    used = np.zeros(len(data.holding_option), dtype=bool) if data.supply_used is None else data.supply_used
    taken = np.where(used[:, None] | ~data.covers()[:, data.slot_window], -1, at_work(program, data))
    member, slot = np.nonzero(taken[holding] >= 0)
    rows = [number[supply[member]] * slots + slot]
    columns, values = [taken[holding[member], slot]], [np.ones(len(member))]
    running, systems = _in_use(program, data)
    for s, u in zip(supply[used[holding]].tolist(), holding[used[holding]].tolist(), strict=True):
        uses = data.point_uses[:, 1] == data.holding_option[u]
        use, slot = np.nonzero((running >= 0) & uses[:, None] & data.covers()[u, data.slot_window])
        rows.append(number[s] * slots + slot)
        columns.append(running[use, slot])
        values.append(systems[use])
    index = np.column_stack([np.repeat(counted, slots), np.tile(np.arange(slots), len(counted))])
    limit = np.repeat(data.supply_limit[counted], slots)
    entries = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    program.add_rows("supply", -np.inf, limit, *entries, index=index)


def _in_use(program: Program, data: PlanData) -> tuple[Ints, Floats]:
    """Return (the columns that use systems in a slot [I, T], systems per unit of each [I]) of the rows of `point_uses`."""
    running, systems = _running(program)[data.point_uses[:, 0]], data.point_uses_systems
    if (resident := program.columns.get("resident")) is not None:
        whole: Bools = np.any(resident >= 0, axis=1)
        running = np.where(whole[:, None], resident, running)
        systems = np.where(whole, systems / data.role_workers(), systems)
    return running, systems


def add_installed(program: Program, data: PlanData) -> None:
    """Add the rows `installed`, after the blocks that run."""
    option, slots = data.point_uses[:, 1], data.slots
    running, systems = _in_use(program, data)
    uses = np.zeros((len(data.option_site), slots), dtype=bool)
    np.logical_or.at(uses, option, running >= 0)
    fleet_options, slot = np.nonzero(uses)
    row_of = np.full(uses.shape, -1)
    row_of[fleet_options, slot] = np.arange(len(fleet_options))

    holding, window = np.nonzero(data.covers())
    here = data.slot_window[None, :] == window[:, None]  # [holding that covers, slot]
    pair, at = np.nonzero(here & uses[data.holding_option[holding]])
    there = running >= 0
    use, when = np.nonzero(there)
    program.add_rows(
        "installed",
        -np.inf,
        0.0,
        np.concatenate([row_of[option[use], when], row_of[data.holding_option[holding[pair]], at]]),
        np.concatenate([running[use, when], at_work(program, data)[holding[pair], at]]),
        np.concatenate([systems[use], -np.ones(len(pair))]),
        index=np.column_stack([fleet_options, slot]),
    )


def add_power(program: Program, data: PlanData) -> None:
    """Add the rows `power`, after the blocks that run."""
    running, held, opened = _running(program), program.columns["n"], program.columns["open"]
    covers = data.covers()[:, data.slot_window]  # [U, T]
    holding_site = data.option_site[data.holding_option]
    drawing, point_site, power_w = draws(data)
    most, number = (by_window[:, data.slot_window] for by_window in data.power_limit())  # [R, T]
    site, slot = np.nonzero(np.isfinite(most))
    row = np.full(most.shape, -1)
    row[site, slot] = np.arange(len(site))
    holding, at = np.nonzero(covers & (data.holding_power_w > 0)[:, None] & (row[holding_site] >= 0))
    part, when = np.nonzero((running[drawing] >= 0) & (power_w > 0)[:, None] & (row[point_site] >= 0))
    limit, binary = most[site, slot], opened[site]
    rows = np.concatenate([row[holding_site[holding], at], row[point_site[part], when], np.arange(len(binary))])
    program.add_rows(
        "power",
        -np.inf,
        np.where(binary >= 0, 0.0, limit),
        rows,
        np.concatenate([held[holding], running[drawing[part], when], binary]),
        np.concatenate([data.holding_power_w[holding], power_w[part], -limit]),
        index=np.column_stack([site, slot, number[site, slot]]),
    )


def system_prices(program: Program, data: PlanData) -> Floats:
    """[K]: least money for a system of each fleet option, 1 for each where the program counts no money."""
    price = np.full(len(data.option_site), np.inf)
    held = program.columns["n"]
    if COST not in program.functionals or not (held >= 0).any():
        return np.ones_like(price)
    money = np.where(held >= 0, program.functional(COST)[held], np.inf)
    if data.hourly is not None:
        money += np.where(data.hourly.holding, data.hourly.throughout(COST), 0.0)
    np.minimum.at(price, data.holding_option, money)
    return np.where(np.isfinite(price), price, 0.0)


def _running(program: Program) -> Ints:
    """[P, T]: columns x of serving points and v of training points."""
    return np.maximum(program.columns["x"], program.columns["v"])


def joined(data: PlanData) -> Bools:
    """[P, T]: all lines between the pools of a point are ready."""
    points = len(data.point_pool)
    if data.exchange is None:
        return np.ones((points, data.slots), dtype=bool)
    return data.exchange.opened(points, data.lines)[:, data.slot_window]
