"""The fabric block: the systems of one kind at one site stand on one network design.

Sets
    g            groups of systems of one kind at one site
    d            network designs of a group
    u            holdings; g(u) its group, d(u) its design
Data
    upper_u      most systems of a holding; designs are priced within the cost of their fleet options
Variables
    z_{g,d}      in {0, 1}, 1 when group g stands on design d; only where a group has two designs or more
Objective
    None of its own.
Constraints
    one design   sum_d z_{g,d} <= 1    for each g
    standing     n_u <= upper_u z_{g(u),d(u)}    for each u
"""

from __future__ import annotations

import numpy as np

from solvers.arrays import Floats
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
