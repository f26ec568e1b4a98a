"""Find the plan of fewest parts among those nearly as good as the best one found, and the ladder: the value of plans of ever fewer deployments.

exact      small programs: the best value with ever fewer deployments; then the number chosen, fewest kinds of systems at sites, then sites, then the best
           value, each by a program of its own in which the counts before it are fixed
dropping   others: trials over fewer and fewer deployments, of which the fullest slot tells what the plan would cost; only the chosen one is finished
           (`solvers.search.dropping`)

Chosen is the plan within the band that is best where each deployment counts as a share of the best value (`Band.rate`), else the one of fewest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from solvers.arrays import Floats, Ints
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.interface import Options
from solvers.mip import solve as solve_mip
from solvers.model.build import build, objective_vector
from solvers.model.data import PlanData
from solvers.program import Program
from solvers.search.parts import PARTS, Parts, Rung, add_parts, columns_of, parts_of

MOST_EXACT = 1_000  # columns up to which the fewest parts are found exactly
STEP_GAP = 0.1  # gap of `Band.rate`: to which values on the exact ladder are found


@dataclass(frozen=True, slots=True)
class Found:
    """A plan: its value, and its blocks of values."""

    value: float
    values: dict[str, Floats]


@dataclass(frozen=True, slots=True)
class Band:
    """What a plan may lose to the best one: a share of its value at all, and for each deployment saved."""

    best: float
    sign: float
    """-1 where the objective is maximised."""
    within: float
    rate: float = math.inf

    @property
    def worst(self) -> float:
        """Return the worst value allowed."""
        return self.best + self.sign * self.within * abs(self.best)

    def allows(self, value: float) -> bool:
        """Tell whether a value lies in the band."""
        return self.sign * value <= self.sign * self.worst

    def rank(self, deployments: int, value: float) -> tuple[float, float]:
        """Rank a plan, the one to choose least: by value with the worth of its deployments, or by these alone."""
        worth = self.rate * abs(self.best)
        if math.isinf(self.rate):
            return float(deployments), self.sign * value
        return self.sign * value + worth * deployments, float(deployments)


def as_ladder(best: Rung, rungs: Iterable[Rung], band: Band) -> tuple[Rung, ...]:
    """List the best plan, and the best value of each number of deployments below its own, most first, up to the first one beyond the band.

    A number is left out where fewer deployments are as good.

    >>> band = Band(best=100.0, sign=1.0, within=0.01)
    >>> rungs = Rung(6, 100.5), Rung(7, 103.0), Rung(5, 102.0), Rung(4, 109.0)
    >>> [(rung.deployments, rung.value) for rung in as_ladder(Rung(8, 100.0), rungs, band)]
    [(8, 100.0), (6, 100.5), (5, 102.0)]
    """
    kept: list[Rung] = []
    for rung in sorted(rungs, key=lambda rung: (rung.deployments, band.sign * rung.value, rung.estimated)):
        better = not kept or band.sign * rung.value < band.sign * kept[-1].value
        if better and rung.deployments < best.deployments:
            kept.append(rung)
    kept.reverse()
    inside = sum(band.allows(rung.value) for rung in kept)
    return (best, *kept[: inside + 1])


@dataclass(frozen=True, slots=True)
class Simplest:
    """The plan chosen; `fewest`: whether it is proven that none in the band has fewer parts; `ladder`: values with ever fewer deployments.

    `others`: further plans found that are as good as asked, with about as few deployments.
    """

    plan: Found
    parts: Parts
    fewest: bool
    others: tuple[Found, ...] = ()
    ladder: tuple[Rung, ...] = field(default=())

    def mapped(self, change: Callable[[Found], Found]) -> Simplest:
        """Change each plan in a way that leaves its parts."""
        plan = change(self.plan)
        chosen = Rung(self.parts.deployments, self.plan.value)
        ladder = tuple(replace(rung, value=plan.value) if rung == chosen else rung for rung in self.ladder)
        return replace(self, plan=plan, others=tuple(map(change, self.others)), ladder=ladder)


def exact(data: PlanData, best: Found, band: Band, options: Options) -> Simplest | None:
    """Save parts in their order; None where the time is up before the first count."""
    data = replace(data, keep_dominated=True)
    begin = time.perf_counter()
    sense = "max" if data.objective.maximises else "min"
    program = build(data)
    add_parts(program, data)
    value = objective_vector(program, data)
    ladder, cap = [Rung(parts_of(data, best.values).deployments, best.value)], band.worst
    if not math.isinf(band.rate):
        ladder += _exact_rungs(data, value, ladder[0], band, options)
        chosen = min(
            (rung for rung in ladder if band.allows(rung.value)),
            key=lambda rung: band.rank(rung.deployments, rung.value),
        )
        step = band.sign * (chosen.value + band.sign * band.rate * abs(band.best))
        cap = band.sign * min(step, band.sign * band.worst)
        _limit(program, columns_of(program, "used"), float(chosen.deployments), "most deployments")
    touched = np.flatnonzero(value)
    program.add_rows(
        "nearly as good", -np.inf, band.sign * cap, np.zeros(len(touched), dtype=np.int64), touched, band.sign * value[touched],
        count=1,
    )  # fmt: skip
    x, proven = _with_counts(program, data, best), True
    closely = replace(options, gap=OPTIMAL_GAP, progress=None)
    for block in PARTS:
        left = options.left_s(begin)
        columns = columns_of(program, block)
        count = np.zeros(program.column_count)
        count[columns] = 1.0
        raw = (
            solve_mip(program, count, "min", replace(closely, time_limit_s=max(left, 0.0)), start=x)
            if left > 0
            else None
        )
        if raw is None or raw.x is None:
            return None
        x, proven = raw.x, proven and raw.status == "optimal"
        _limit(program, columns, float(np.rint(count @ x)), f"fewest {block}")
    raw = solve_mip(program, value, sense, replace(closely, time_limit_s=max(options.left_s(begin), 0.1)), start=x)
    x = x if raw.x is None else raw.x
    values = {block: each for block, each in program.values(x).items() if block not in PARTS}
    plan, parts = Found(float(value @ x), values), parts_of(data, values)
    fewest = proven and (math.isinf(band.rate) or parts.deployments == min(rung.deployments for rung in ladder))
    return Simplest(
        plan, parts, fewest, ladder=as_ladder(ladder[0], [*ladder[1:], Rung(parts.deployments, plan.value)], band)
    )


def _exact_rungs(data: PlanData, value: Floats, first: Rung, band: Band, options: Options) -> list[Rung]:
    """Find the best value with ever fewer deployments, until there is no plan or its value is beyond the band."""
    begin, found, count = time.perf_counter(), list[Rung](), first.deployments - 1
    gap = min(options.gap, STEP_GAP * band.rate)
    while count >= 0 and (left := options.left_s(begin)) > 0:
        program = build(data)
        add_parts(program, data)
        used = columns_of(program, "used")
        _limit(program, used, float(count), "most deployments")
        limits = replace(options, gap=gap, enough_gap=None, time_limit_s=left, progress=None)
        raw = solve_mip(program, value, "max" if band.sign < 0 else "min", limits)
        if raw.x is None or raw.objective is None:
            break
        taken = int(np.rint(raw.x[used].sum()))
        found.append(Rung(taken, raw.objective))
        if not band.allows(raw.objective):
            break
        count = taken - 1
    return found


def _limit(program: Program, columns: Ints, most: float, name: str) -> None:
    """Add a row by which the columns add up to so much at most."""
    program.add_rows(name, -np.inf, most, np.zeros(len(columns), dtype=np.int64), columns, 1.0, count=1)


def _with_counts(program: Program, data: PlanData, best: Found) -> Floats:
    """Return the columns of a plan together with its counts."""
    x: Floats = program.vector(best.values)
    held = np.unique(data.holding_option[best.values["n"] > 0.5])
    at_work = np.maximum(best.values["x"].max(axis=1, initial=0.0), best.values["v"].max(axis=1, initial=0.0)) > 0
    x[program.columns["used"][data.deployments()[at_work]]] = 1.0
    x[program.columns["kind"][data.option_group[held]]] = 1.0
    x[program.columns["site"][data.option_site[held]]] = 1.0
    return x
