"""Find the plan of fewest parts among those nearly as good as the best one found.

exact      small programs: fewest deployments, then kinds of systems at sites, then sites, then the best value, each by a program of
           its own in which the counts before it are fixed
dropping   others: deployments dropped one by one (`solvers.search.consolidation`), and the plan over those that are left, by bisection; then
           single deployments of the plan found, each with a plan over the others
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from solvers.arrays import Bools, Floats
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Program
from solvers.search.consolidation import consolidate, single_drops
from solvers.search.parts import PARTS, Parts, add_parts, columns_of, parts_of


@dataclass(frozen=True, slots=True, kw_only=True)
class SimplestSettings:
    """Sizes and shares of time."""

    exact: int = 1_000
    """Columns up to which the fewest parts are found exactly."""
    ladder_share: float = 0.3
    """Of the time, for dropping deployments."""
    plans: int = 4
    """Most plans that are looked for over fewer deployments."""
    drops: int = 4
    """Most plans that are looked for over one deployment fewer than those of the plan found."""
    alike: int = 1
    """Deployments by which plans with equally few parts may differ."""


SETTINGS = SimplestSettings()
SolveOver = Callable[[Bools, float], "Found | None"]


@dataclass(frozen=True, slots=True)
class Found:
    """A plan: its value, and its blocks of values."""

    value: float
    values: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Simplest:
    """The plan of fewest parts that was found; `fewest`: whether it is proven that none has fewer.

    `others`: further plans found that are as good as asked, with at most `SETTINGS.alike` deployments more.
    """

    plan: Found
    parts: Parts
    fewest: bool
    others: tuple[Found, ...] = ()

    def mapped(self, change: Callable[[Found], Found]) -> Simplest:
        """Change each plan in a way that leaves its parts."""
        return replace(self, plan=change(self.plan), others=tuple(map(change, self.others)))


def simplest(
    data: PlanData, columns: int, best: Found, within: float, options: Options, solve_over: SolveOver
) -> Simplest | None:
    """Find a plan of fewer parts whose value is within a share of the best plan's; None where none was found.

    `columns`: of the program of the data. `solve_over`: finds a plan over some points [P] in so much time [s].
    """
    sign = -1.0 if data.objective.maximises else 1.0
    worst = best.value + sign * within * abs(best.value)
    if columns <= SETTINGS.exact:
        exact = _lexicographic(replace(data, keep_dominated=True), best, worst, options)
        if exact is not None:
            return exact
    return _by_dropping(data, best, worst, options, solve_over)


def _lexicographic(data: PlanData, best: Found, worst: float, options: Options) -> Simplest | None:
    """Save parts in their order; None where the time is up before the first count."""
    begin = time.perf_counter()
    sense, sign = ("max", -1.0) if data.objective.maximises else ("min", 1.0)
    program = build(data)
    add_parts(program, data)
    value = objective_vector(program, data)
    touched = np.flatnonzero(value)
    program.add_rows(
        "nearly as good", -np.inf, sign * worst, np.zeros(len(touched), dtype=np.int64), touched, sign * value[touched],
        count=1,
    )  # fmt: skip
    x, proven = _with_counts(program, data, best), True
    exact = replace(options, gap=OPTIMAL_GAP, progress=None)
    for block in PARTS:
        left = options.left_s(begin)
        columns = columns_of(program, block)
        count = np.zeros(program.column_count)
        count[columns] = 1.0
        raw = (
            solve_mip(program, count, "min", replace(exact, time_limit_s=max(left, 0.0)), start=x) if left > 0 else None
        )
        if raw is None or raw.x is None:
            return None
        x, proven = raw.x, proven and raw.status == "optimal"
        program.add_rows(
            f"fewest {block}", -np.inf, float(np.rint(count @ x)), np.zeros(len(columns), dtype=np.int64), columns, 1.0,
            count=1,
        )  # fmt: skip
    raw = solve_mip(program, value, sense, replace(exact, time_limit_s=max(options.left_s(begin), 0.1)), start=x)
    x = x if raw.x is None else raw.x
    values = {block: each for block, each in program.values(x).items() if block not in PARTS}
    return Simplest(Found(float(value @ x), values), parts_of(data, values), proven)


def _with_counts(program: Program, data: PlanData, best: Found) -> Floats:
    """Return the columns of a plan together with its counts."""
    x: Floats = program.vector(best.values)
    held = np.unique(data.holding_option[best.values["n"] > 0.5])
    at_work = np.maximum(best.values["x"].max(axis=1, initial=0.0), best.values["v"].max(axis=1, initial=0.0)) > 0
    x[program.columns["used"][data.deployments()[at_work]]] = 1.0
    x[program.columns["kind"][data.option_group[held]]] = 1.0
    x[program.columns["site"][data.option_site[held]]] = 1.0
    return x


def _by_dropping(data: PlanData, best: Found, worst: float, options: Options, solve_over: SolveOver) -> Simplest | None:
    """Look for a plan over fewer deployments: first as few as the linear program allows, by bisection, then one fewer at a time."""
    search = _Dropping(data, worst, time.perf_counter() + options.time_limit_s, options, solve_over, best)
    search.by_bisection()
    search.one_by_one()
    return Simplest(search.plan, search.parts, fewest=False, others=search.alike())


class _Dropping:
    """The plan of fewest parts found so far, and the lists of points over which a plan was looked for."""

    def __init__(
        self, data: PlanData, worst: float, end_s: float, options: Options, solve_over: SolveOver, plan: Found
    ) -> None:
        self.data, self.worst, self.options = data, worst, options
        self.plan, self.parts = plan, parts_of(data, plan.values)
        self._end_s, self._solve_over = end_s, solve_over
        self._sign = -1.0 if data.objective.maximises else 1.0
        self._tried: set[bytes] = set()
        self._found = [(self.parts, plan)]

    def by_bisection(self) -> None:
        """Look for a plan over the fewest deployments that are left; where there is none, over more of them."""
        ladder = consolidate(self.data.divisible(), self.plan.values, self.worst, self._limits())
        # a plan is known over the list before position `most`, and none over those from `fewest` on
        most, fewest, tried = 0, len(ladder), len(ladder)
        for _ in range(SETTINGS.plans):
            if tried <= most or self._left() <= 0:
                return
            if self._is_found_over(ladder[tried - 1]):
                most = tried
            else:
                fewest = tried - 1
            tried = (most + fewest + 1) // 2

    def one_by_one(self) -> None:
        """Drop one deployment of the plan, and again one of the next plan, as long as a plan is found.

        The linear program ranks the drops, yet whole replicas and systems may make any of them the cheapest.
        """
        drops = self._single_drops()
        for _ in range(SETTINGS.drops):
            if not drops or self._left() <= 0:
                return
            before = self.parts
            if self._is_found_over(drops.pop(0)) and self.parts < before:
                drops = self._single_drops()

    def _single_drops(self) -> list[Bools]:
        lists = single_drops(self.data.divisible(), self.plan.values, self.worst, self._limits())
        return [kept for kept in lists if kept.tobytes() not in self._tried]

    def _is_found_over(self, kept: Bools) -> bool:
        """Look for a plan over some points; keep it where it has fewer parts."""
        self._tried.add(kept.tobytes())
        plan = self._solve_over(kept, self._left())
        if plan is None or self._sign * plan.value > self._sign * self.worst:
            return False
        counted = parts_of(self.data, plan.values)
        self._found.append((counted, plan))
        if counted < self.parts:
            self.plan, self.parts = plan, counted
        return True

    def alike(self) -> tuple[Found, ...]:
        """Return the other plans found with about as few parts as the one of fewest, best first."""
        few = self.parts.deployments + SETTINGS.alike
        others = [plan for parts, plan in self._found if plan is not self.plan and parts.deployments <= few]
        return tuple(sorted(others, key=lambda plan: self._sign * plan.value))

    def _left(self) -> float:
        return self.options.noted(self._end_s - time.perf_counter())

    def _limits(self) -> Options:
        return replace(self.options, time_limit_s=SETTINGS.ladder_share * max(self._left(), 0.0))
