"""The fabric block: the systems of one kind at one site stand on one network design, and kinds whose pools exchange data on one network.

Of each design and structure a site has at most one network that several kinds share, whose size counts them together; the other kinds
have networks of their own.

Sets
    g            groups of systems of one kind at one site
    d            network designs of a group
    u            holdings; g(u) its group, d(u) its design
    m            networks that several kinds of systems may share
    i            memberships: a kind in such a network; m(i) its network, its holdings those of the kind on the design
    p            operating points with pools on two kinds
    w, t         windows and slots
    z, s         zones that fail, and the slots in which they do
Data
    upper_u      most systems of a holding; designs are priced within the cost of their fleet options
    size_m       what a network holds; a kind alone never exceeds it
    unit_i       what one system of a kind takes of it
    most_{i,w}   what the kind takes at most: of its holdings, and of the network
    uses_{p,i}   systems of the kind per replica
Variables
    z_{g,d}      in {0, 1}, 1 when group g stands on design d; only where a group has two designs or more
    joins_i      in {0, 1}, 1 when the kind stands on the shared network; only where the kinds of m could exceed its size, 1 in scenarios
    joint_{i,w}  in [0, most_{i,w}], what the kind takes of the shared network
Objective
    None of its own.
Constraints
    one design       sum_d z_{g,d} <= 1    for each g
    standing         n_u <= upper_u z_{g(u),d(u)}    for each u
    joined size      sum_{i of m} joint_{i,w} <= size_m    for each m, w
    joined systems   sum_{u of i, u covers w} unit_i n_u - joint_{i,w} <= most_{i,w} (1 - joins_i)    for each i, w
    joined pools     sum_{p on i} unit_i uses_{p,i} x_{p,t} <= size_m joins_i    for each i, t
    joined job       y_p <= joins_i    for each p on i
    survived joined  sum_{p on i} unit_i uses_{p,i} h_{z,p,s} <= size_m joins_i    for each z, i, s
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from solvers.arrays import Bools, Floats, Ints
from solvers.model.block_data.joint_network import JointNetworks
from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper
from solvers.program import Program


def add_fabric(program: Program, data: PlanData) -> None:
    """Add the block, after the holdings."""
    held = program.columns["n"]
    groups, designs = (int(values.max(initial=-1)) + 1 for values in (data.option_group, data.option_fabric))
    option = data.holding_option
    usable = (held >= 0) & (data.option_fabric[option] >= 0)
    offered = np.zeros((groups, max(designs, 1)), dtype=bool)
    offered[data.option_group[option[usable]], data.option_fabric[option[usable]]] = True
    choice = offered & (offered.sum(axis=1) > 1)[:, None]
    design = program.add_columns("z", choice.shape, upper=1.0, integer=True, where=choice)

    group, which = np.nonzero(choice)
    chosen, row = np.unique(group, return_inverse=True)
    program.add_rows("one design", -np.inf, 1.0, row, design[group, which], 1.0, index=chosen[:, None])

    standing = np.flatnonzero(usable)
    column = design[data.option_group[option[standing]], data.option_fabric[option[standing]]]
    standing, column = standing[column >= 0], column[column >= 0]
    program.add_linking_rows("standing", held[standing], column, holding_upper(data)[standing], standing[:, None])


def designs_of(data: PlanData, held: Floats) -> Floats:
    """[G, D]: z of a fleet `held` [U], for a program in which the fleet was fixed, so that it had no designs to choose from."""
    groups, designs = (int(values.max(initial=-1)) + 1 for values in (data.option_group, data.option_fabric))
    option = data.holding_option[np.asarray(held) > 0.5]
    option = option[data.option_fabric[option] >= 0]
    stands = np.zeros((groups, max(designs, 1)))
    stands[data.option_group[option], data.option_fabric[option]] = 1.0
    return stands


def most_taken(data: PlanData, joint: JointNetworks) -> Floats:
    """[N, V]: what a kind takes of its network at most."""
    most = np.zeros((len(joint.network), data.windows))
    held = holding_upper(data)[:, None] * data.covers()
    membership, holding = joint.member.T
    np.add.at(most, membership, joint.unit[membership, None] * held[holding])
    smaller: Floats = np.minimum(most, joint.size[joint.network, None])
    return smaller


def exceedable(data: PlanData) -> Bools:
    """[M]: networks whose size the kinds on it could exceed together; the others hold them all."""
    if data.joint is None:
        return np.zeros(0, dtype=bool)
    most = most_taken(data, data.joint)
    together = np.zeros((len(data.joint.size), data.windows))
    np.add.at(together, data.joint.network, most)
    beyond: Bools = np.any(together > data.joint.size[:, None], axis=1)
    return beyond


def joined_of(data: PlanData, held: Floats, values: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return `joins` [N] and `joint` [N, V] of a fleet `held` [U] whose points run as in `values`: the kinds that these points need join."""
    joint = data.joint
    if joint is None:
        return {}
    running = np.maximum(values["x"].max(axis=1, initial=0.0), values["y"]) > 0
    membership, use = joint.pooled.T
    joins, taken = np.zeros(len(joint.network)), np.zeros((len(joint.network), data.windows))
    joins[membership[running[data.point_uses[use, 0]]]] = 1.0
    membership, holding = joint.member.T
    np.add.at(taken, membership, (joint.unit[membership] * np.rint(held)[holding])[:, None] * data.covers()[holding])
    needed = exceedable(data)[joint.network]
    joins = np.where(needed, 1.0 if data.scenarios is not None else joins, 0.0)
    return {"joins": joins, "joint": taken * joins[:, None]}


def add_joint_networks(program: Program, data: PlanData, joint: JointNetworks) -> None:
    """Add the block, after the blocks that run."""
    needed = exceedable(data)[joint.network]
    if not needed.any():
        return
    most, windows = most_taken(data, joint), data.windows
    least = 0.0 if data.scenarios is None else 1.0
    joins = program.add_columns("joins", needed.shape, lower=least, upper=1.0, integer=True, where=needed)
    taken = program.add_columns("joint", most.shape, upper=most, where=needed[:, None])

    network, row = np.unique(joint.network[needed], return_inverse=True)
    kinds = np.flatnonzero(needed)
    program.add_rows(
        "joined size",
        -np.inf,
        np.repeat(joint.size[network], windows),
        row[:, None] * windows + np.arange(windows),
        taken[kinds],
        1.0,
        index=_grid(network, windows),
    )
    _add_systems(program, data, joint, kinds, most)
    _add_pools(program, data, joint, "joined pools", program.columns["x"])
    chosen, (membership, use) = program.columns["y"], joint.pooled.T
    point = data.point_uses[use, 0]
    jobs = np.flatnonzero((chosen[point] >= 0) & (joins[membership] >= 0))
    index = np.column_stack([point[jobs], membership[jobs]])
    program.add_linking_rows("joined job", chosen[point[jobs]], joins[membership[jobs]], 1.0, index)
    for zone in range(0 if data.spread is None else data.spread.zone_count):
        if (failing := program.columns.get(f"zone {zone} h")) is not None:
            _add_pools(program, data, joint, "survived joined", failing, zone)


def _add_systems(program: Program, data: PlanData, joint: JointNetworks, kinds: Ints, most: Floats) -> None:
    """Add the rows `joined systems`: what a kind holds counts on the shared network once it joins."""
    held, joins, taken = (program.columns[block] for block in ("n", "joins", "joint"))
    row_of = np.full(len(joint.network), -1)
    row_of[kinds] = np.arange(len(kinds))
    membership, holding = joint.member[row_of[joint.member[:, 0]] >= 0].T
    at, window = np.nonzero(data.covers()[holding])
    own = np.arange(len(kinds) * data.windows)
    rows = np.concatenate([row_of[membership[at]] * data.windows + window, own, own])
    columns = [held[holding[at]], np.repeat(joins[kinds], data.windows), taken[kinds].ravel()]
    values = [joint.unit[membership[at]], most[kinds].ravel(), -np.ones(len(own))]
    index = _grid(kinds, data.windows)
    program.add_rows(
        "joined systems",
        -np.inf,
        most[kinds].ravel(),
        rows,
        np.concatenate(columns),
        np.concatenate(values),
        index=index,
    )


def _add_pools(
    program: Program, data: PlanData, joint: JointNetworks, block: str, running: Ints, zone: int | None = None
) -> None:
    """Add rows over the columns `running` [P, slots], indexed by (zone if any, membership, slot): pools on two kinds need both to join."""
    joins = program.columns["joins"]
    membership, use = joint.pooled[joins[joint.pooled[:, 0]] >= 0].T
    point, slots = data.point_uses[use, 0], running.shape[1]
    kinds, row = np.unique(membership, return_inverse=True)
    weight = joint.unit[membership] * data.point_uses_systems[use]
    at, slot = np.nonzero(running[point] >= 0)
    own = np.arange(len(kinds) * slots)
    index = _grid(kinds, slots)
    program.add_rows(
        block,
        -np.inf,
        0.0,
        np.concatenate([row[at] * slots + slot, own]),
        np.concatenate([running[point[at], slot], np.repeat(joins[kinds], slots)]),
        np.concatenate([weight[at], -np.repeat(joint.size[joint.network[kinds]], slots)]),
        index=index if zone is None else np.column_stack([np.full(len(index), zone), index]),
    )


def _grid(first: Ints, second: int) -> Ints:
    """[., 2]: every pair of a number of `first` and one below `second`, in rows."""
    return np.column_stack([np.repeat(first, second), np.tile(np.arange(second), len(first))])
