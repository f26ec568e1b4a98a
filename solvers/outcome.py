"""What a solver is asked and what it answers: options, outcomes and their tolerances. Running one is in backends.py and cbc.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from solvers.program import Floats

ENUMERATION = 1 << 16   # a rule of HiGHS 1.15's presolve that loses optima: `presolve_rule_off` leaves it out


class SolverError(RuntimeError):
    """The solver contradicted itself or refused its input: a bug, not a property of the user's problem."""


@dataclass(frozen=True, slots=True)
class Options:
    solver: str = "highs"             # or "pulp"
    gap: float = 1e-3
    time_limit_s: float = 60.0
    seed: int = 0
    threads: int = 1
    node_limit: int | None = None
    method: str = "auto"              # direct: the solver's own search | branch: solvers.branch | decomposed: slot by slot | auto: by size
    presolve: bool = True             # of whole numbers by HiGHS; never where a program says that it must not (`Program.presolve`)
    progress: Callable[[str], None] | None = None  # is told how a long search goes

    def __post_init__(self) -> None:
        if self.solver not in ("highs", "pulp"):
            raise ValueError(f'solver: expected "highs" or "pulp", got {self.solver!r}')
        if self.method not in ("auto", "direct", "branch", "decomposed"):
            raise ValueError(f'method: expected "auto", "direct", "branch" or "decomposed", got {self.method!r}')


@dataclass(frozen=True, slots=True)
class RawSolution:
    """`gap` = |objective - bound| / max(|objective|, 1e-9). `row_duals`: change of the objective per unit of a row's
    side with the integers fixed, so they hold for this fleet only. `polished`: x solves the linear program with
    its integers fixed, rows holding to 1e-9."""

    status: str                       # optimal | within_gap | limit | infeasible | unbounded
    objective: float | None = None
    bound: float | None = None
    gap: float | None = None
    x: Floats | None = None
    seconds: float = 0.0
    row_duals: Floats | None = None
    polished: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a solver said of the scaled minimisation."""

    status: str        # optimal | limit | infeasible | unbounded
    x: Floats | None = None
    bound: float | None = None
    duals: Floats | None = None
