"""The electricity block: what a site draws is bought from the grid, taken from contracts, or discharged from a battery.

A negative price pays for every watt drawn; what it pays for idle systems of our own stands as a cost of holding them, so that they earn
nothing. Nothing may run without need: `power_may_earn` says in which slots, and the rows
`capacity` of the routing block become equations there. `stored` is linear within a slot, so that its values at the ends suffice.

Sets
    m              meters, one for each site whose electricity is a decision
    t              slots in rings; next(t) follows t
    k              monthly peaks of a meter, each over slots(k)
    c              contracts of a meter
    b              batteries of a meter
Data
    most_m         largest power from the grid [W]
    share_{c,t}    output of a contract over its capacity
    passes_c       whether its energy passes the connection of the meter
    counted_k      whether purchases from the grid count in a peak: 0 or 1
    eta_b          efficiency of a battery, one way
    step_t         length of a slot [s]
    least, upper   bounds on the capacity of contracts and on the energy and power of batteries
    cost           of each variable, for each functional: cost and carbon are separate functionals
Variables
    grid_{m,t}     >= 0, power bought [W]
    peak_k         >= 0, billed peak [W]
    contract_c     in [least, upper], capacity contracted [W]
    taken_{c,t}    >= 0, power taken from a contract; the rest is curtailed [W]
    energy_b       in [least, upper], energy capacity of a battery [J]
    power_b        in [least, upper], power capacity of a battery [W]
    charge_{b,t}   >= 0, power into a battery [W]
    discharge_{b,t}  >= 0, power out of it [W]
    stored_{b,t}   >= 0, energy stored at the start of a slot [J]
Objective
    Sum of cost times variable over all variables, for each functional.
Constraints
    metered        sum_{u at m} power_u n_u + sum_{p at m} power_p (x_{p,t} + v_{p,t}) + sum_b charge_{b,t}
                   = grid_{m,t} + sum_c taken_{c,t} + sum_b discharge_{b,t}    for each m, t
    connection     grid_{m,t} + sum_{c passes} taken_{c,t} <= most_m    for each m, t where most_m is finite
    peak           counted_k grid_{m,t} + sum_{c passes} taken_{c,t} <= peak_k    for each k, t in slots(k)
    produced       taken_{c,t} <= share_{c,t} contract_c    for each c, t
    modules        charge_{b,t} + discharge_{b,t} <= power_b    for each b, t: each module of a battery charges or discharges
    storable       stored_{b,t} <= energy_b    for each b, t
    stored         stored_{b,next(t)} = stored_{b,t} + step_t (eta_b charge_{b,t} - discharge_{b,t} / eta_b)    for each b, t
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.electricity import MeterData
from solvers.model.data import PlanData, draws
from solvers.model.fleet import holding_upper
from solvers.program import Program


def power_may_earn(data: PlanData) -> Bools:
    """[R, T]: drawing more power may reduce the objective or a limited functional at a metered site.

    That is so at a negative price, and at all times where a battery could be discharged for one.
    """
    result = np.zeros((data.sites, data.slots), dtype=bool)
    meters = data.meters
    if meters is None:
        return result
    paying = np.zeros((len(meters.meter_site), data.slots), dtype=bool)
    for name in data.counted():
        if name in meters.grid_cost:
            paying |= meters.grid_cost[name] < 0
        if name in meters.taken_cost:
            np.logical_or.at(paying, meters.contract_meter, meters.taken_cost[name] < 0)
    stores = np.zeros(len(paying), dtype=bool)
    stores[meters.battery_meter] = True
    result[meters.meter_site] = paying | (stores & paying.any(axis=1))[:, None]
    return result


def add_electricity(program: Program, data: PlanData) -> None:
    """Add the block, after all blocks that draw power."""
    meters = data.meters
    if meters is None:
        return
    slots, usual = data.slots, _usual_w(data, meters)
    program.add_columns("grid", (len(meters.meter_site), slots), cost=meters.grid_cost, unit=usual[:, None])
    program.add_columns("peak", (len(meters.peak_meter),), cost=meters.peak_cost, unit=usual[meters.peak_meter])
    of = meters.contract_meter
    program.add_columns(
        "contract",
        (len(of),),
        meters.contract_least_w,
        meters.contract_upper_w,
        cost=meters.contract_cost,
        unit=usual[of],
    )
    program.add_columns(
        "taken", (len(of), slots), cost=meters.taken_cost, unit=usual[of, None], where=_produces(data, meters)
    )
    of = meters.battery_meter
    program.add_columns(
        "energy",
        (len(of),),
        meters.battery_least_j,
        meters.battery_upper_j,
        cost=meters.battery_energy_cost,
        unit=usual[of] * _hour(data),
    )
    program.add_columns(
        "power",
        (len(of),),
        meters.battery_least_w,
        meters.battery_upper_w,
        cost=meters.battery_power_cost,
        unit=usual[of],
    )
    for block in ("charge", "discharge"):
        program.add_columns(block, (len(of), slots), unit=usual[of, None])
    program.add_columns("stored", (len(of), slots), unit=usual[of, None] * _hour(data))
    _add_balance(program, data, meters)
    _add_connections(program, data, meters)
    _add_peaks(program, meters)
    _add_contracts(program, meters)
    _add_batteries(program, data, meters)


def _produces(data: PlanData, meters: MeterData) -> Bools:
    share = meters.contract_share.reshape(-1, data.slots)
    return (share > 0) & (meters.contract_upper_w > 0)[:, None]


def _hour(data: PlanData) -> float:
    """Median length of a slot [s]."""
    return float(np.median(data.chronology.step_s))


def _usual_w(data: PlanData, meters: MeterData) -> Floats:
    """[M]: power of all systems that may stand at a meter's site, the unit in which the solver counts power."""
    by_site = np.zeros(data.sites)
    np.add.at(by_site, data.option_site[data.holding_option], holding_upper(data) * data.holding_power_w)
    power = np.minimum(by_site, data.power_limit()[0].max(axis=1, initial=0.0))[meters.meter_site]
    return np.where(power > 0, power, 1.0)


def _add_balance(program: Program, data: PlanData, meters: MeterData) -> None:
    slots = data.slots
    running, held = np.maximum(program.columns["x"], program.columns["v"]), program.columns["n"]
    meter_of = np.full(data.sites, -1)
    meter_of[meters.meter_site] = np.arange(len(meters.meter_site))
    drawing, at_site, power_w = draws(data)
    of_holding, of_point = meter_of[data.option_site[data.holding_option]], meter_of[at_site]
    covers = data.covers()[:, data.slot_window]
    holding, at = np.nonzero(covers & ((of_holding >= 0) & (data.holding_power_w > 0))[:, None])
    part, when = np.nonzero((running[drawing] >= 0) & ((of_point >= 0) & (power_w > 0))[:, None])
    every = np.arange(slots)
    parts = [
        (of_holding[holding], at, held[holding], data.holding_power_w[holding]),
        (of_point[part], when, running[drawing[part], when], power_w[part]),
    ]
    for block, of, sign in (
        ("grid", np.arange(len(meters.meter_site)), -1.0), ("taken", meters.contract_meter, -1.0),
        ("charge", meters.battery_meter, 1.0), ("discharge", meters.battery_meter, -1.0),
    ):  # fmt: skip
        parts.append(
            (
                np.repeat(of, slots),
                np.tile(every, len(of)),
                program.columns[block].ravel(),
                np.full(len(of) * slots, sign),
            )
        )
    meter, slot, cols, vals = (np.concatenate(part) for part in zip(*parts, strict=True))
    program.add_rows("metered", 0.0, 0.0, meter * slots + slot, cols, vals, index=_pairs(len(meters.meter_site), slots))


def _add_connections(program: Program, data: PlanData, meters: MeterData) -> None:
    """Add the rows `connection`, indexed by site and slot like the rows of `power`."""
    slots = data.slots
    limited = np.flatnonzero(np.isfinite(meters.grid_upper_w))
    index = _pairs(len(limited), slots)
    added = program.add_rows(
        "connection",
        -np.inf,
        np.repeat(meters.grid_upper_w[limited], slots),
        np.arange(len(index)),
        program.columns["grid"][limited].ravel(),
        1.0,
        index=np.column_stack([meters.meter_site[limited][index[:, 0]], index[:, 1]]),
    )
    _add_passing(program, meters, added.start, limited[index[:, 0]], index[:, 1])


def _add_peaks(program: Program, meters: MeterData) -> None:
    peak, slot = np.nonzero(meters.peak_slot)
    grid = program.columns["grid"][meters.peak_meter[peak], slot]
    added = program.add_linking_rows(
        "peak",
        np.where(meters.peak_grid[peak], grid, -1) if meters.peak_grid.size else grid,
        program.columns["peak"][peak],
        1.0,
        np.column_stack([peak, slot]),
    )
    _add_passing(program, meters, added.start, meters.peak_meter[peak], slot)


def _add_passing(program: Program, meters: MeterData, first: int, meter: Ints, slot: Ints) -> None:
    """Count in rows from `first` on, one for each (meter, slot), what contracts take through the connection."""
    for m in np.unique(meter):
        rows = np.flatnonzero(meter == m)
        for contract in meters.passing(int(m)):
            program.add_entries(first + rows, program.columns["taken"][contract, slot[rows]], 1.0)


def _add_contracts(program: Program, meters: MeterData) -> None:
    contract, slot = np.nonzero(program.columns["taken"] >= 0)
    share = meters.contract_share[contract, slot] if len(contract) else 1.0
    program.add_linking_rows(
        "produced",
        program.columns["taken"][contract, slot],
        program.columns["contract"][contract],
        share,
        np.column_stack([contract, slot]),
    )


def _add_batteries(program: Program, data: PlanData, meters: MeterData) -> None:
    slots = data.slots
    batteries = len(meters.battery_meter)
    pairs = _pairs(batteries, slots)
    battery = pairs[:, 0]
    charge, discharge, stored = (program.columns[block].ravel() for block in ("charge", "discharge", "stored"))
    rows = np.arange(len(pairs))
    program.add_rows(
        "modules",
        -np.inf,
        0.0,
        np.tile(rows, 3),
        np.concatenate([charge, discharge, program.columns["power"][battery]]),
        np.repeat([1.0, 1.0, -1.0], len(rows)),
        index=pairs,
    )
    program.add_linking_rows("storable", stored, program.columns["energy"][battery], 1.0, pairs)
    after = program.columns["stored"][:, data.chronology.next].ravel() if batteries else stored
    step, eta = data.chronology.step_s[pairs[:, 1]], meters.battery_efficiency[battery]
    program.add_rows(
        "stored",
        0.0,
        0.0,
        np.tile(rows, 4),
        np.concatenate([after, stored, charge, discharge]),
        np.concatenate([np.ones(len(rows)), -np.ones(len(rows)), -step * eta, step / eta]),
        index=pairs,
    )


def _pairs(things: int, slots: int) -> Ints:
    return np.column_stack([np.repeat(np.arange(things), slots), np.tile(np.arange(slots), things)])
