"""The program of the edge: each task on one tier, whole systems in every place of a tier, at least cost per year.

Sets: tasks t, tiers k (0: the device), fleets f. Data: what an option (t, k) takes, `planner.studies.edge.options`.
Variables: x[t, k] binary, the task runs there; n[k] integer, systems in each place of tier k.
Objective: fixed + sum x[t, k] c[t, k] + sum n[k] places[k] c[k].
Rows: `runs` sum_k x[t, k] = 1; of each fleet `busy` sum rate busy x[t, 0] <= utilisation, `memory`, `power`, `uplink`; `one by one`
x[i, 0] + x[j, 0] <= 1 where i misses its deadline behind a request of j; of each tier `systems` sum s x <= places n, `most`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from solvers.interface import Options as SolverOptions
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
    cost: float  # of a system per year, idle power included
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
    """The tier of each task, systems of each place by tier, and cost per year; proven optimal."""

    tier: tuple[int, ...]
    systems: tuple[int, ...]
    cost: float


def build(data: EdgeData, fixed: Mapping[int, int]) -> tuple[Program, np.ndarray, np.ndarray]:
    """Build the program; `fixed`: tier of some tasks. Returns it with the columns x [task, tier] and n [tier]."""
    program = Program()
    tasks, places = data.able.shape
    able = data.able.copy()
    for task, place in fixed.items():
        able[task] &= np.arange(places) == place
    x = program.add_columns("x", (tasks, places), upper=1.0, integer=True, cost={"cost": data.cost}, where=able)
    most = np.array([tier.most for tier in data.tiers])
    n = program.add_columns(
        "n", (len(data.tiers),), upper=most, integer=True,
        cost={"cost": np.array([tier.places * tier.cost for tier in data.tiers])},
    )  # fmt: skip
    line = np.repeat(np.arange(tasks), places)
    program.add_rows("runs", np.ones(tasks), np.ones(tasks), line, x.ravel(), 1.0, count=tasks)
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


def solve_edge(data: EdgeData, fixed: Mapping[int, int] = {}) -> Assignment | None:
    """Find the cheapest assignment; None where there is none. `fixed`: tier of some tasks."""
    if any(not data.able[task, tier] for task, tier in fixed.items()) or not data.able.any(axis=1).all():
        return None
    program, x, n = build(data, fixed)
    found = solve(program, program.functional("cost"), "min", SolverOptions(gap=GAP, time_limit_s=TIME_LIMIT_S))
    if found.x is None:
        return None
    chosen = np.where(x >= 0, found.x[x], 0.0).argmax(axis=1)
    systems = tuple(round(float(found.x[column])) for column in n)
    return Assignment(tuple(int(tier) for tier in chosen), systems, cost_of(data, chosen, systems))


def cost_of(data: EdgeData, tier: Sequence[int] | np.ndarray, systems: Sequence[int]) -> float:
    """Add up the cost per year of an assignment."""
    tasks = float(sum(data.cost[task, place] for task, place in enumerate(tier)))
    held = sum(n * each.places * each.cost for n, each in zip(systems, data.tiers, strict=True))
    return data.fixed + tasks + held
