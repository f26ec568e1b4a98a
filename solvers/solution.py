"""Solution of a joint program, shaped by its blocks, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solvers.arrays import Floats, Ints
from solvers.model.data import Objective, PlanData
from solvers.program import Program
from solvers.search.parts import Parts, Rung


@dataclass(frozen=True, slots=True)
class Solution:
    """Values, functionals and duals of a plan, with the status and the bound that the solver proved.

    `values`: each block of variables, shaped by its index sets. `functionals`: recomputed from those.
    `row_duals`: block -> (index tuples, change of the objective per unit of the row's side), with integers fixed.
    `relaxed_duals`: the same in the LP relaxation, from which `bound` follows; only of plans found by decomposition, whose `row_duals`
    are missing for slots with jobs.
    `structural`: rows that no solution can satisfy, found before solving, as (block, index prefix).
    `built`: the input and its program, where that was solved as a whole.
    `relaxed`: whether it is that of divisible replicas where whole ones were asked for.
    `before`: value and parts of the best plan found, where this one is simpler, and `earlier` that plan; `fewest`: whether it is proven that no plan that is as good
    has fewer parts; `ladder`: values with ever fewer deployments, `chosen` the step taken; `others`: values of further plans nearly as good with about as few parts.
    `bases`: of LPs around similar programs. Whoever solves an LP around this solution starts from one and leaves its own here.
    """

    status: str
    objective: Objective
    value: float | None
    bound: float | None
    gap: float | None
    seconds: float
    rows: int
    columns: int
    integers: int
    seed: int
    values: Mapping[str, Floats] = field(default_factory=dict)
    functionals: Mapping[str, float] = field(default_factory=dict)
    row_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    structural: tuple[tuple[str, tuple[int, ...]], ...] = ()
    polished: bool = False
    relaxed_duals: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    relaxed_bound: float | None = None
    built: tuple[PlanData, Program] | None = field(default=None, repr=False)
    relaxed: bool = False
    before: tuple[float, Parts] | None = None
    earlier: Solution | None = field(default=None, repr=False)
    fewest: bool = False
    others: tuple[Mapping[str, Floats], ...] = field(default=(), repr=False)
    ladder: tuple[Rung, ...] = ()
    chosen: Rung | None = None
    bases: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def sense(self) -> str:
        """Sense of the objective, min or max."""
        return "max" if self.objective.maximises else "min"

    def program_of(self, data: PlanData) -> Program | None:
        """The program that was solved; None where it was not that of exactly this input."""
        return self.built[1] if self.built is not None and self.built[0] is data else None


def better_of(first: Solution, second: Solution) -> Solution:
    """Return the solution of the better value, the first of equal ones."""
    if first.value is None or second.value is None:
        return second if first.value is None else first
    sign = -1.0 if first.objective.maximises else 1.0
    return second if sign * second.value < sign * first.value else first
