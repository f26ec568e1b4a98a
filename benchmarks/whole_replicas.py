"""Compare divisible replicas with whole ones on the programs of example specs: value, bound, gap and time.

Plans are made with divisible replicas so far; here the residency block (solvers/model/residency.py) is added to their programs. Every
worker of a serving point is whole, and loads for LOAD_S before it serves.
Run: python benchmarks/whole_replicas.py quality mixed_fleet    The last line printed is one JSON object.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from planner.candidates.apis import ROLE
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.resolve.resolver import resolve_document
from planner.solving.answer import options_of
from planner.spec.document import read_spec
from solvers.joint import solve
from solvers.model.block_data.electricity import Chronology
from solvers.model.data import PlanData

EXAMPLES = Path(__file__).parent.parent / "examples"
LOAD_S = 61.0  # a minute until an engine has started, and a second for 60 GB of weights at 57.5 GB/s


def programs(name: str) -> tuple[PlanData, PlanData, object]:
    """Build the program of an example with divisible replicas and with whole ones, and its solver options."""
    problem = resolve_document(read_spec(EXAMPLES / f"{name}.json", ()), ())
    form = formulate(problem, find_candidates(problem))
    whole = [p.uses[0].role != ROLE and pool >= 0 for p, pool in zip(form.points, form.data.point_pool, strict=True)]
    calendar = problem.calendar
    data = replace(
        form.data,
        point_whole=np.array(whole, dtype=bool),
        point_load_s=np.where(whole, LOAD_S, 0.0),
        use_workers=np.array([use.workers for point in form.points for use in point.uses], dtype=np.int64),
        order=Chronology(next=np.asarray(calendar.next, dtype=np.int64), step_s=calendar.step_s),
    )
    return form.data, data, options_of(problem.spec)


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
