"""The fabric block: systems of one kind at one site stand on one network design.

Sets        groups g (systems of one kind at one site), designs d of a group, fleet options k = (g, d, way of obtaining).
Data        upper_u of the holdings of each fleet option; designs are priced within the fleet options' costs.
Variables   z_{g,d} 1 when group g stands on design d; only where a group has two designs or more.
Objective   nothing of its own.
Constraints one design  sum_d z_{g,d} <= 1
            standing    n_u <= upper_u z_{g(u),d(u)}
"""

from __future__ import annotations

import numpy as np

from solvers.model.data import PlanData
from solvers.model.fleet import holding_upper
from solvers.program import Program


def add_fabric(program: Program, data: PlanData) -> None:
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
    program.add_rows(
        "standing",
        -np.inf,
        0.0,
        np.tile(np.arange(len(standing)), 2),
        np.concatenate([held[standing], column]),
        np.concatenate([np.ones(len(standing)), -holding_upper(data)[standing]]),
        index=standing[:, None],
    )
