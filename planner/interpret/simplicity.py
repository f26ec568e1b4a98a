"""Plan row of simplicity: how many parts the plan has, and the best plan found."""

from __future__ import annotations

from typing import Any

from planner.candidates.points import deployment_of
from planner.interpret.decisions import Decisions
from solvers.solution import Solution


def simplicity_row(decided: Decisions, solution: Solution, objective: str) -> dict[str, Any]:
    """State the parts of the plan beside those of the best plan found; nothing where no simpler plan was looked for.

    `objective`: unit of the best plan's value.
    """
    if solution.before is None:
        return {}
    best, parts = solution.before
    options = [option for _, _, option, _ in decided.held()]
    return {
        "simplicity": {
            "within": decided.problem.spec.simplicity.within,
            "deployments": len({deployment_of(decided.form.points[p]) for p in decided.used}),
            "kinds": len({(option.site.region, option.system.name) for option in options}),
            "sites": len({option.site.region for option in options}),
            "fewest": solution.fewest,
            "best": {
                "value": best,
                "unit": objective,
                "deployments": parts.deployments,
                "kinds": parts.kinds,
                "sites": parts.sites,
            },
        }
    }
