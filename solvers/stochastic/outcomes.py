"""Value a first stage in fresh scenarios: in each the best that can still be decided, one linear program after another from the last basis.

Counts decided at the start are given, and so may be holdings of later dates; holdings left free are decided when the scenario is known,
and are divisible.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from solvers.arrays import Floats
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options, SolverError
from solvers.stochastic.data import Aim, FleetData, Leaves
from solvers.stochastic.tree import VALUE, TreeProgram, alone, build, read


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a first stage comes to in one scenario: units of each holding [U], the most systems of each option at work [K], cost (of which `lack` for
    work left undone), and whether all is served and done.
    """

    held: Floats
    used: Floats
    cost: float
    kept: bool
    lack: float


def outcomes(data: FleetData, leaves: Leaves, given: Floats, options: Options) -> Iterator[Outcome]:
    """Yield the outcome in each leaf of units that are `given` [S, U], nan where a holding is decided once the leaf is known."""
    basis: Any = None
    divisible = replace(data, whole=np.zeros_like(data.whole))
    for s in range(leaves.count):
        one = alone(leaves, s)
        built = build(divisible, one, Aim(), given[s])
        arrays, cost = built.program.arrays(), built.program.functional(VALUE)
        program = WarmStartedLp(arrays, cost, options, basis)
        found = program.solve(arrays.lower, arrays.upper)
        if found.x is None:
            raise SolverError(f"the program of a scenario ended as {found.status}")
        basis = program.basis
        held, money, kept, lack = read(divisible, one, built, found.x)
        yield Outcome(held[:, 0], _used(data, built, found.x), float(money[0]), bool(kept[0]), float(lack[0]))


def _used(data: FleetData, built: TreeProgram, x: Floats) -> Floats:
    """Return the most systems of each option at work in any slot."""
    x, used = np.append(x, 0.0), np.zeros(data.use_price.shape)
    (work, width) = built.working[0]
    np.add.at(used, data.way_option, x[work])
    np.add.at(used, data.job_option, x[width])
    most: Floats = used.max(axis=1, initial=0.0)
    return most
