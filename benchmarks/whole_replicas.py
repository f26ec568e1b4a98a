"""Compare divisible replicas with whole ones on the programs of example specs: value, bound, gap and time.

The bound of the divisible program holds for whole replicas too.
Run: python benchmarks/whole_replicas.py quality mixed_fleet    The last line printed is one JSON object.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from planner.solving.deadline import options_of
from planner.spec.document import edited, read_spec
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.search.joint import solve

EXAMPLES = Path(__file__).parent.parent / "examples"


def programs(name: str) -> tuple[PlanData, PlanData, Options]:
    """Build the program of an example with divisible replicas and with whole ones, and its solver options."""
    document = edited(read_spec(EXAMPLES / f"{name}.json", ()), (("solver.replicas", "whole"),))
    problem = resolve_document(document, ())
    data = formulate(problem, find_candidates(problem)).data
    return data.divisible(), data, options_of(problem.spec)


def main() -> None:
    """Print one line for each example named on the command line."""
    rows = []
    for name in sys.argv[1:] or ["quality", "mixed_fleet"]:
        divisible, whole, options = programs(name)
        first, second = solve(divisible, options), solve(whole, options)
        rows.append({
            "example": name, "asked_gap": options.gap, "time_limit_s": options.time_limit_s,
            **{f"{of}_{field}": getattr(found, field) for of, found in (("divisible", first), ("whole", second))
               for field in ("status", "value", "bound", "gap", "seconds")},
        })  # fmt: skip
        print(rows[-1], flush=True)
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
