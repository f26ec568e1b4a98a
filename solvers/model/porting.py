"""The porting block: a payment without which no operating point of a group may run.

Sets
    p            operating points
    g            groups of operating points; a point may be in several
    t            slots
    z, u         zones that fail, and the slots in which they do
Data
    cost_g       payment for a group, for each functional
    most_{p,t}   replicas that could ever run: by the most systems of its fleet options, and by the demand of its pool where it is given
Variables
    port_g       in {0, 1}, 1 when the group is paid for; always 1 where that is given
Objective
    sum_g cost_g port_g, for each functional.
Constraints
    ported           x_{p,t} <= most_{p,t} port_g    for each p of g, t
    ported job       y_p <= port_g    for each p of g
    survived ported  h_{z,p,u} <= most_{p,u} port_g    for each z, p of g, u: what runs only when a zone fails is ported too
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.model.block_data.porting import PortData
from solvers.model.data import PlanData
from solvers.model.fleet import option_upper
from solvers.program import Program


def most_replicas(data: PlanData) -> Floats:
    """[P, T]: upper bound on the replicas of a point."""
    room = option_upper(data)[:, data.slot_window]  # [K, T]
    most = np.full((len(data.point_pool), data.slots), np.inf)
    point, option = data.point_uses.T
    np.minimum.at(most, point, room[option] / np.maximum(data.point_uses_systems, 1e-300)[:, None])
    if data.objective.maximises or data.wait_slots is not None:
        return most
    for q in range(data.pools):
        arcs = np.flatnonzero(data.arc_pool == q)
        asked = np.unique(np.column_stack([data.arc_asked()[arcs], data.arc_origin[arcs]]), axis=0)
        wanted = data.demand[asked[:, 0], asked[:, 1]].sum(axis=0) if len(asked) else np.zeros(data.slots)
        mine = np.flatnonzero((data.point_pool == q) & (data.point_capacity > 0))
        most[mine] = np.minimum(most[mine], wanted / data.point_capacity[mine, None])
    return most


def add_porting(program: Program, data: PlanData, ports: PortData) -> None:
    """Add the block, after the blocks that run."""
    program.presolve = False
    least = 0.0 if ports.paid is None else ports.paid.astype(float)
    port = program.add_columns("port", (ports.groups,), lower=least, upper=1.0, integer=True, cost=ports.cost)
    point, group = ports.member.T
    running, most = program.columns["x"], most_replicas(data)
    _add_ported(program, "ported", ports, running, most, port)
    chosen = program.columns["y"]
    jobs = np.flatnonzero(chosen[point] >= 0)
    program.add_linking_rows("ported job", chosen[point[jobs]], port[group[jobs]], 1.0, point[jobs][:, None])
    for zone in range(0 if data.spread is None else data.spread.zone_count):
        failing = program.columns.get(f"zone {zone} h")
        if failing is not None:
            _add_ported(program, "survived ported", ports, failing, most, port, zone)


def _add_ported(
    program: Program, block: str, ports: PortData, running: Ints, most: Floats, port: Ints, zone: int | None = None
) -> None:
    """Add the rows of a block over the columns `running` [P, T], indexed by (zone if any, point, slot, group)."""
    point, group = ports.member.T
    member, slot = np.nonzero((running[point] >= 0) & (most[point] > 0))
    parts = [point[member], slot, group[member]]
    program.add_linking_rows(
        block,
        running[point[member], slot],
        port[group[member]],
        most[point[member], slot],
        np.column_stack(parts if zone is None else [np.full(len(slot), zone), *parts]),
    )
