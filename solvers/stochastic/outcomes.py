"""Value a first stage in fresh scenarios: in each the best that can still be decided, one linear program after another from the last basis.

Counts decided at the start are given, and so may be holdings of later dates; holdings left free are decided when the scenario is known,
and are divisible.
"""

from __future__ import annotations

import time
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
    work left undone), and whether all is served and done. `needed` [V]: see `needed_by_window`; empty where options have no size.
    """

    held: Floats
    used: Floats
    cost: float
    kept: bool
    lack: float
    needed: Floats


def outcomes(data: FleetData, leaves: Leaves, given: Floats, options: Options) -> Iterator[Outcome]:
    """Yield the outcome in each leaf of units that are `given` [S, U], nan where a holding is decided once the leaf is known.

    Ends early, after the leaves so far, once `options.time_limit_s` is up. Raises SolverError for a leaf in which the given units fit no limit.
    """
    basis: Any = None
    ends = time.perf_counter() + options.time_limit_s
    divisible = replace(data, whole=np.zeros_like(data.whole))
    for s in range(leaves.count):
        one = alone(leaves, s)
        built = build(divisible, one, Aim(), given[s])
        arrays, cost = built.program.arrays(), built.program.functional(VALUE)
        program = WarmStartedLp(arrays, cost, options, basis, ends)
        found = program.solve(arrays.lower, arrays.upper)
        if found.status == "limit":
            return
        if found.x is None:
            raise SolverError(f"the program of a scenario ended as {found.status}")
        basis = program.basis
        held, money, kept, lack = read(divisible, one, built, found.x)
        used = _used(data, built, found.x)
        needed = needed_by_window(data, one, built, found.x) if len(data.size) else np.zeros(0)
        yield Outcome(held[:, 0], used, float(money[0]), bool(kept[0]), float(lack[0]), needed)


def _used(data: FleetData, built: TreeProgram, x: Floats) -> Floats:
    """Return the most systems of each option at work in any slot."""
    x, used = np.append(x, 0.0), np.zeros(data.use_price.shape)
    (work, width) = built.working[0]
    np.add.at(used, data.way_option, x[work])
    np.add.at(used, data.job_option, x[width])
    most: Floats = used.max(axis=1, initial=0.0)
    return most


def needed_by_window(data: FleetData, leaf: Leaves, built: TreeProgram, x: Floats) -> Floats:
    """Return the size of the systems that carry all demand in the hardest slot of each window, and all jobs on average, [V].

    need_v = max_{t in v} sum_w size_{w,t} asked_{w,t} / carried_{w,t} + sum_j size_{j,v} / done_j: systems of options with a size carry as much as
    those at work do on average, so that work which they leave undone, or tokens carry, counts as if such systems did it; where none is at work, the
    systems that carry most for their size.
    """
    x, (work, width), size = np.append(x, 0.0), built.working[0], data.size
    at_work = x[work]
    own = at_work * size[data.way_option][:, None]
    carried = at_work * leaf.efficiency[0][:, None] * (size[data.way_option] > 0)[:, None]
    pool_workload = np.zeros(data.pools, dtype=np.int64)
    pool_workload[data.arc_pool] = data.class_workload[data.arc_class]
    workload = pool_workload[data.way_pool]
    shape = len(data.lack_cost), data.slots
    sizes, able, asked = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    np.add.at(sizes, workload, own)
    np.add.at(able, workload, carried)
    np.add.at(asked, data.class_workload, data.demand * leaf.growth[0])
    each = size[data.way_option] / np.maximum(leaf.efficiency[0], 1e-300)
    least = np.full(len(data.lack_cost), np.inf)
    np.minimum.at(least, workload, np.where((each > 0) & (leaf.efficiency[0] > 0), each, np.inf))
    idle = asked * np.where(np.isfinite(least), least, 0.0)[:, None]
    serving = np.divide(sizes * asked, able, out=idle, where=able > 0).sum(axis=0)
    running = x[width] * size[data.job_option][:, None]
    pace = leaf.rate[0][:, None] / data.job_work[data.job_of][:, None] * data.seconds * x[width]
    done = np.zeros(len(data.job_work))
    np.add.at(done, data.job_of, pace.sum(axis=1))
    share = np.divide(1.0, done, out=np.zeros(len(done)), where=done > 0)
    jobs = (running * share[data.job_of][:, None]).sum(axis=0)
    found = np.zeros(data.covers.shape[1])
    for v in range(len(found)):
        mine = data.window == v
        if mine.any():
            seconds = data.seconds[mine]
            found[v] = serving[mine].max() + jobs[mine] @ seconds / seconds.sum()
    return found
