"""Re-checks a plan from its file alone: every used point is evaluated again one by one, every limit and amount added up again.

Reads the plan document and its echoed spec. It shares with the way there the figures (`planner.resolve.resolver`) and the closed
forms (`models`), and nothing of the candidates' choice, the formulation, the solver or the accounts. What the plan says of
a point is held against the closed forms; all that follows is added up from what it says, so it must agree to the rounding
of a sum, and a wrong number is found even where it is a small part of a large total.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.plan import Plan
from planner.problem.facts import Problem
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.check import Check, same_catalog
from planner.verify.findings import Finding
from planner.verify.quality import as_chosen


def verify_plan(plan: Plan, overlays: Sequence[Path] = ()) -> list[Finding]:
    """Everything that does not hold: closed forms to one part in a million, sums to their rounding; empty when the plan holds.

    When the catalog is not the one that the plan was made with, the figures of the plan's provenance are used.
    Raises SpecError when the plan's spec cannot be read.
    """
    document = plan.document
    problem = resolve(parse_spec(document["spec"]), overlays)
    if not same_catalog(problem, document):
        problem = _with_recorded_figures(document, overlays)
    return findings(problem, document, overlays)


def catalog_note(plan: Plan, overlays: Sequence[Path] = ()) -> str:
    """What to tell a user whose catalog is not the plan's; empty when it is."""
    if same_catalog(resolve(parse_spec(plan["spec"]), overlays), plan.document):
        return ""
    return "the plan was made with another catalog: checked on the figures recorded under `provenance`"


def findings(problem: Problem, document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> list[Finding]:
    """What in `document` does not hold for `problem`, which is its own spec resolved."""
    check = Check(problem, document, same_catalog(problem, document))
    try:
        check = Check(as_chosen(problem, document), document, check.same_figures)
        check.run()
        check.robustness(overlays)
        check.prices(overlays)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, ArithmeticError) as error:
        check.say("plan", f"cannot be read through: {type(error).__name__} {error}")
    return check.found


def _with_recorded_figures(document: Mapping[str, Any], overlays: Sequence[Path]) -> Problem:
    """The problem on the figures that the plan recorded, whatever the catalog says today."""
    recorded = {
        row["path"]: {"value": row["value"], "unit": row["unit"], "note": "as recorded in the plan"}
        for row in document["provenance"]
    }
    spec = parse_spec(document["spec"])
    return resolve(spec, overlays, recorded)
