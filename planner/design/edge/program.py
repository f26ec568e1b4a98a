"""The program of the edge: each task on one tier, whole systems in every place of a tier, at least cost per year.

Sets: tasks t, tiers k (0: the device), fleets f. Data: what an option (t, k) takes, `planner.design.edge.options`.
Variables: x[t, k] binary, the task runs there; o[t] binary, the task is left out; n[k] integer, systems in each place of tier k.
Objective: fixed + sum x[t, k] c[t, k] + sum n[k] places[k] c[k]. Tasks are left out only where not all can run: as few as can be, and of
those the dearest.
Rows: `runs` sum_k x[t, k] + o[t] = 1; `left out` sum o <= that few; of each fleet `busy` sum rate busy x[t, 0] <= utilisation, `memory`, `power`, `uplink`; `one by one`
x[i, 0] + x[j, 0] <= 1 where i misses its deadline behind a request of j; of each tier `systems` sum s x <= places n, `most`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from models.arrays import sum_of
from planner.errors import LimitReached
from planner.estimate.limits import SearchLimits
from solvers.interface import Options as SolverOptions
from solvers.interface import RawSolution
from solvers.mip import solve
from solvers.program import Program

TIME_LIMIT_S = 60.0
GAP = 1e-9


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """What one device of a fleet has."""

    tasks: tuple[int, ...]
    busy: float  # share of the time
    memory_bytes: float  # beside what tasks share
    power_w: float  # above idle; infinite without a limit
    uplink_bytes_per_s: float


@dataclass(frozen=True, slots=True)
class TierLimits:
    """What a tier costs and has."""

    places: int
    cost: float  # cost of a system per year, idle power included
    most: float  # systems of a place


@dataclass(frozen=True, slots=True)
class EdgeData:
    """Arrays over tasks x tiers; `able` tells where a task can run."""

    able: np.ndarray
    cost: np.ndarray  # [task, tier] per year, beside the systems
    busy: np.ndarray  # [task] of the device
    memory_bytes: np.ndarray  # [task] on the device
    power_w: np.ndarray  # [task] mean above idle on the device
    uplink: np.ndarray  # [task, tier] of one device [byte/s]
    systems: np.ndarray  # [task, tier] of all places
    clash: np.ndarray  # [task, task] whether the first misses its deadline behind the second on one device
    devices: tuple[DeviceLimits, ...]
    tiers: tuple[TierLimits, ...]
    fixed: float  # cost per year of the devices, whatever runs where


@dataclass(frozen=True, slots=True)
class Assignment:
    """The tier of each task, -1 where it is left out, systems of each place by tier, and cost per year; proven optimal unless it says otherwise."""

    tier: tuple[int, ...]
    systems: tuple[int, ...]
    cost: float
    proven: bool = True

    @property
    def out(self) -> tuple[int, ...]:
        """List the tasks that are left out."""
        return tuple(t for t, tier in enumerate(self.tier) if tier < 0)


def build(
    data: EdgeData, fixed: Mapping[int, int], out: Collection[int] = (), further: int = 0
) -> tuple[Program, np.ndarray, np.ndarray]:
    """Build the program. Returns it with the columns x [task, tier] and n [tier].

    `fixed`: tier of some tasks. `out`: tasks that are left out, and as many as `further` others may be.
    """
    program = Program()
    tasks, places = data.able.shape
    able = data.able.copy()
    for task, place in fixed.items():
        able[task] &= np.arange(places) == place
    x = program.add_columns("x", (tasks, places), upper=1.0, integer=True, cost={"cost": data.cost}, where=able)
    left = np.isin(np.arange(tasks), list(out)).astype(float)
    o = program.add_columns(
        "o", (tasks,), lower=left, upper=np.maximum(left, float(further > 0)), integer=True, cost={"left out": np.ones(tasks)}
    )  # fmt: skip
    most = np.array([tier.most for tier in data.tiers])
    n = program.add_columns(
        "n", (len(data.tiers),), upper=most, integer=True,
        cost={"cost": np.array([tier.places * tier.cost for tier in data.tiers])},
    )  # fmt: skip
    line = np.repeat(np.arange(tasks), places + 1)
    either = np.column_stack([x, o]).ravel()
    program.add_rows("runs", np.ones(tasks), np.ones(tasks), line, either, 1.0, count=tasks)
    few = float(left.sum()) + further
    program.add_rows("left out", -np.inf, few, np.zeros(tasks, dtype=np.int64), o, 1.0, count=1)
    for device in data.devices:
        mine = np.array(device.tasks)
        for name, limit, values in (
            ("busy", device.busy, data.busy[mine]),
            ("memory", device.memory_bytes, data.memory_bytes[mine]),
            ("power", device.power_w, data.power_w[mine]),
        ):
            if np.isfinite(limit):
                program.add_rows(name, -np.inf, limit, np.zeros(mine.size, dtype=np.int64), x[mine, 0], values, count=1)
        sent = x[mine, 1:].ravel()
        if np.isfinite(device.uplink_bytes_per_s) and sent.size:
            program.add_rows(
                "uplink", -np.inf, device.uplink_bytes_per_s, np.zeros(sent.size, dtype=np.int64), sent,
                data.uplink[mine, 1:].ravel(), count=1,
            )  # fmt: skip
        for i, j in permutations(device.tasks, 2):
            if data.clash[i, j]:
                program.add_rows("one by one", -np.inf, 1.0, np.zeros(2, dtype=np.int64), x[[i, j], 0], 1.0, count=1)
    for k, tier in enumerate(data.tiers):
        cols = np.append(x[:, k + 1], n[k])
        vals = np.append(data.systems[:, k + 1], -tier.places)
        program.add_rows("systems", -np.inf, 0.0, np.zeros(cols.size, dtype=np.int64), cols, vals, count=1)
    return program, x, n


def solve_edge(
    data: EdgeData, fixed: Mapping[int, int] = {}, out: Collection[int] = (), further: int = 0, limits: SearchLimits | None = None
) -> Assignment | None:  # fmt: skip
    """Find the cheapest assignment; None where there is none. `fixed`, `out`, `further`: see `build`.

    Raises LimitReached where the limits end the search before it is known whether there is one.
    """
    runs = data.able.any(axis=1) | np.isin(np.arange(data.able.shape[0]), list(out))
    if any(not data.able[task, tier] for task, tier in fixed.items()) or (not further and not runs.all()):
        return None
    program, x, n = build(data, fixed, out, further)
    found = _solved(program, "cost", limits)
    if found is None or found.x is None:
        return None
    chosen = np.where(x >= 0, found.x[x], 0.0)
    tier = np.where(chosen.max(axis=1) > 0.5, chosen.argmax(axis=1), -1)
    systems = tuple(round(float(found.x[column])) for column in n)
    return Assignment(
        tuple(int(place) for place in tier), systems, cost_of(data, tier, systems), found.status != "limit"
    )


def solve_most(data: EdgeData, limits: SearchLimits | None = None) -> Assignment:
    """Find the cheapest assignment of as many tasks as can run. Raises LimitReached where the limits end the search before there is one."""
    if (whole := solve_edge(data, limits=limits)) is not None:
        return whole
    program, _, _ = build(data, {}, further=data.able.shape[0])
    found = _solved(program, "left out", limits)
    assert found is not None and found.x is not None, "all tasks may be left out"
    few = round(float(program.functional("left out") @ found.x))
    best = solve_edge(data, further=few, limits=limits)
    assert best is not None
    return best


def _solved(program: Program, functional: str, limits: SearchLimits | None) -> RawSolution | None:
    """Minimise a functional; None where nothing is feasible. Raises LimitReached."""
    limits = limits or SearchLimits()
    limits.check()
    options = SolverOptions(gap=GAP, time_limit_s=min(TIME_LIMIT_S, limits.left_s))
    found = solve(program, program.functional(functional), "min", options)
    if found.x is None and found.status != "infeasible":
        raise LimitReached(limits.reason().text())
    return None if found.x is None else found


def cost_of(data: EdgeData, tier: Sequence[int] | np.ndarray, systems: Sequence[int]) -> float:
    """Add up the cost per year of an assignment."""
    tasks = float(sum_of(data.cost[task, place] for task, place in enumerate(tier) if place >= 0))
    held = sum_of(n * each.places * each.cost for n, each in zip(systems, data.tiers, strict=True))
    return data.fixed + tasks + held
