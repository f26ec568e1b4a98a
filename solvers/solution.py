"""The solution of a program in its own units."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from solvers.arrays import Floats, Ints
from solvers.model.data import Objective, PlanData
from solvers.program import Program


@dataclass(frozen=True, slots=True)
class Solution:
    """`values`: each block of variables shaped as its index sets, in SI. `functionals`: recomputed from those.
    `row_duals`: block -> (index tuples, change of the objective per unit of the row's side), integers fixed.
    `relaxed_duals`: the same of the program with no integer held, which `bound` is made of; of plans found slot by slot only, whose
    `row_duals` say nothing of slots where there are jobs.
    `structural`: rows that fail before any solving, as (block, index) prefixes.
    `built`: the input and its program, where that was solved as a whole. `bases`: of linear programs around programs alike; whoever solves
    one around this answer starts there and leaves its own in their place."""

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
    bases: dict[str, object] = field(default_factory=dict, repr=False)

    @property
    def sense(self) -> str:
        return "max" if self.objective.maximises else "min"

    def program_of(self, data: PlanData) -> Program | None:
        """None where another program was solved than that of this very input."""
        return self.built[1] if self.built is not None and self.built[0] is data else None
