"""Solve the examples anew and store their plans for the dashboard: examples/plans/NAME.json.gz. The main example's: tests/planner/dashboard/test_stored.py.

`python docs/build_dashboard_plans.py [NAME ...]`: the examples named, or all. A plan that fails its verification, or gives no answer in the time
that its spec allows, is not stored, and what was stored stays.
"""

from __future__ import annotations

import gzip
import sys

from planner import solve, verify_plan
from planner.dashboard import sources
from planner.files import write_file


def build(name: str) -> str:
    """Solve an example, and store its plan; returns what came of it in a line."""
    plan = solve(sources.examples()[name])
    if not plan.has_answer:
        return f"{name}: no plan in the time of its spec"
    if findings := verify_plan(plan):
        return f"{name}: fails its verification: {findings[0]}"
    content = gzip.compress(plan.to_json().encode(), mtime=0)
    write_file(sources.PLANS / f"{name}.json.gz", content)
    gap = "unknown" if plan.gap is None else f"{plan.gap:.3%}"
    return f"{name}: {plan.status}, gap {gap}, {len(content) / 1000:.0f} kB"


def main(names: list[str]) -> None:
    """Store the plans of examples."""
    sources.PLANS.mkdir(exist_ok=True)
    for name in names or [each for each in sources.examples() if each != sources.MAIN]:
        print(build(name), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
