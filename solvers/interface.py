"""What a solver is given and what it returns: options, outcomes, progress. Not here: the runs (`solvers.mip`, `solvers.backends`)."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from solvers.arrays import Floats
from solvers.memory import MemoryWatch, TimeWatch

ENUMERATION_PRESOLVE_RULE = 1 << 16
"""Bit of HiGHS' option `presolve_rule_off` for a presolve rule that loses optima in 1.15 (docs/decisions/0032-presolve-rule-that-loses-optima.md)."""


ABSOLUTE_GAP = 1e-6
"""Difference of an objective and its bound that is none, in the unit of the objective (currency, kg): a relative gap of an optimum of 0
cannot close, since its bound is a little below 0 by rounding."""


class SolverError(RuntimeError):
    """The solver contradicted itself or refused its input: a bug, not a property of the user's problem."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a solve.

    `method`: `direct` is the solver's own search, `branch` our branch and bound, `decomposed` the decomposition by slots, `general` merged slots and the parts of
    the calendar one by one; `auto` chooses
    by size. `gap`: relative gap at which the search may stop. `enough_gap`: a wider one that is enough, if any: no search at
    length is begun for less. `presolve`: of mixed-integer programs by HiGHS; never used where a
    program forbids it (`Program.presolve`). `target`: value of the objective at which a search of HiGHS may stop, whatever it has proven.
    `progress`: receives lines of `ProgressReporter` and names of steps. `memory`: ends the search as the time limit does. `clock`: is told of steps that their share of the time ended. `longest_s`: until
    when a method that has no plan at the time limit may go on to find one, and a bound for it; not beyond the time limit if omitted.
    `work_limit`: most work of one mixed-integer search of HiGHS, which counts each look at its limits once per column; it ends a search where the
    work does, on a busy machine as on an idle one, and counts root nodes, which a node limit does not.
    """

    solver: str = "highs"  # or "pulp"
    gap: float = 1e-3
    time_limit_s: float = 60.0
    seed: int = 0
    threads: int = 1
    node_limit: int | None = None
    method: str = "auto"
    presolve: bool = True
    target: float | None = None
    progress: Callable[[str], None] | None = None
    memory: MemoryWatch | None = None
    clock: TimeWatch | None = None
    longest_s: float | None = None
    enough_gap: float | None = None
    work_limit: float | None = None

    @property
    def enough(self) -> float:
        """Return the gap that is enough."""
        return self.gap if self.enough_gap is None else max(self.gap, self.enough_gap)

    def until_found(self) -> Options:
        """Return the options with the time in which a first plan may be found."""
        return self if self.longest_s is None else replace(self, time_limit_s=max(self.longest_s, self.time_limit_s))

    def left_s(self, begin: float) -> float:
        """Return the time left to a search that began then, on the performance counter [s]; none where the memory is used up."""
        if self.memory is not None and self.memory.is_full():
            return 0.0
        return self.noted(self.time_limit_s - (time.perf_counter() - begin))

    def noted(self, left_s: float) -> float:
        """Return the time that a step has left [s]; tells the clock where there is none."""
        if left_s <= 0.0:
            self.note_time_up()
        return left_s

    def note_time_up(self) -> None:
        """Tell the clock that a step ended because its time was up."""
        if self.clock is not None:
            self.clock.was_up = True

    def __post_init__(self) -> None:
        if self.solver not in ("highs", "pulp"):
            raise ValueError(f'solver: expected "highs" or "pulp", got {self.solver!r}')
        if self.method not in ("auto", "direct", "branch", "decomposed", "general"):
            raise ValueError(
                f'method: expected "auto", "direct", "branch", "decomposed" or "general", got {self.method!r}'
            )


@dataclass(frozen=True, slots=True)
class RawSolution:
    """Solution of a program by columns, in SI units.

    `gap`: `solvers.mip.relative_gap`. `row_duals`: change of the objective per unit of a row's side with the
    integers fixed, so they hold for this fleet only. `polished`: x is optimal for the linear program with its integers fixed, and
    satisfies rows to 1e-9.
    """

    status: str  # optimal | within_gap | limit | infeasible | unbounded
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    x: Floats | None = None
    seconds: float = 0.0
    row_duals: Floats | None = None
    polished: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of the minimisation of a scaled program."""

    status: str  # optimal | limit | infeasible | unbounded
    x: Floats | None = None
    bound: float | None = None
    duals: Floats | None = None
    iterations: int = 0  # steps of simplex


@dataclass(slots=True)
class ProgressReporter:
    """Reports incumbent value, bound and gap of a minimisation as they improve, in the unit of the objective.

    `unit_factor` converts from the numbers of the search to that unit, and is negative where the search minimises a maximised amount.
    The gap is |value - bound| / max(|value|, 1e-9), and 0 where both are within `ABSOLUTE_GAP` of 0.
    """

    emit: Callable[[str], None] = lambda line: None
    unit_factor: float = 1.0
    every_s: float = 0.0  # least time between two lines
    value: float = math.inf  # in the numbers of the search
    bound: float = -math.inf
    _begin: float = field(default_factory=time.perf_counter)
    _last: float = -math.inf

    def report(self, value: float = math.inf, bound: float = -math.inf) -> None:
        """Emit a line if value or bound improved and the last line is old enough."""
        value, bound = min(value, self.value), max(bound, self.bound)
        now = time.perf_counter()
        if (value, bound) == (self.value, self.bound) or now - self._last < self.every_s:
            return
        self.value, self.bound, self._last = value, bound, now
        parts = [
            f"best {self.format_value(value)}" if math.isfinite(value) else "no plan yet",
            f"bound {self.format_value(bound)}" if math.isfinite(bound) else "no bound yet",
        ]
        if math.isfinite(value) and math.isfinite(bound):
            unit = abs(self.unit_factor)
            nothing = max(abs(value), abs(bound)) * unit <= ABSOLUTE_GAP
            gap = 0.0 if nothing else max(value - bound, 0.0) / max(abs(value), 1e-9 / unit)
            parts.append(f"gap {gap:.3%}")
        self.emit(f"{', '.join(parts)}  {now - self._begin:.1f} s")

    def format_value(self, value: float) -> str:
        """Format a number of the search in the unit of the objective."""
        value = value * self.unit_factor
        return f"{value:,.0f}" if 1e5 <= abs(value) < math.inf else f"{value:.6g}"
