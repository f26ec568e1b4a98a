"""Verify a plan from its file alone: evaluate every used point again, and add up every amount and limit again.

Compared with the closed forms: what the plan says of a point, to one part in a million. Compared with sums over the plan's own
rows: everything else, to the rounding of a sum, so that a wrong number is found even if it is a small part of a large total.

What a plan and its verification have in common: the resolved spec (`planner.resolve`, `planner.problem`), the closed forms of
`models` as called by `planner.evaluate`, among them the order of ranks on a network, and the sizes and price per system of
networks (`planner.problem.fabrics.bands`). The rest is written a second time: rows of fabrics and of designs not chosen,
80 % intervals, settled architectures, every sum, limit and table. Nothing here imports `planner.candidates`,
`planner.formulate`, `planner.interpret`, `planner.limits` or `planner.solving`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from planner.plan import Plan
from planner.problem.engine import EngineSettings
from planner.problem.facts import Problem
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from planner.verify.check import check_prices, check_robustness, run_checks, same_catalog
from planner.verify.checked_plan import CheckedPlan
from planner.verify.findings import Finding
from planner.verify.quality import as_chosen


def verify_plan(plan: Plan, overlays: Sequence[Path] = ()) -> list[Finding]:
    """List all errors in a plan; an empty list means that the plan is correct.

    If the catalog is not the one that the plan was made with, the figures of the plan's provenance are used.
    Raises SpecError if the plan's spec cannot be read.
    """
    document = plan.document
    problem = resolve(parse_spec(document["spec"]), overlays, {})
    if not same_catalog(problem, document):
        problem = _with_recorded_figures(document, overlays)
    return findings(problem, document, overlays)


def catalog_note(plan: Plan, overlays: Sequence[Path] = ()) -> str:
    """Explain that the catalog differs from the plan's; empty if it is the same."""
    if same_catalog(resolve(parse_spec(plan["spec"]), overlays, {}), plan.document):
        return ""
    return "the plan was made with another catalog: checked on the figures recorded under `provenance`"


def findings(problem: Problem, document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> list[Finding]:
    """List the errors in `document` against `problem`, its own spec resolved."""
    same_figures = same_catalog(problem, document)
    plan = CheckedPlan(problem, document, same_figures)
    try:
        plan = CheckedPlan(as_chosen(problem, document), document, same_figures)
        run_checks(plan)
        check_robustness(plan, overlays)
        check_prices(plan, overlays)
    except (KeyError, TypeError, IndexError, ValueError, AttributeError, ArithmeticError) as error:
        plan.say("plan", f"cannot be read through: {type(error).__name__} {error}")
    return plan.found


def _with_recorded_figures(document: Mapping[str, Any], overlays: Sequence[Path]) -> Problem:
    """Resolve the plan's spec on the figures that the plan recorded, instead of those of today's catalog."""
    recorded = {
        row["path"]: {"value": row["value"], "unit": row["unit"], "note": "as recorded in the plan"}
        for row in document["provenance"]
    }
    problem = resolve(parse_spec(document["spec"]), overlays, recorded)
    return problem if _states_memory_by_pool(document) else _with_earlier_engines(problem)


def _states_memory_by_pool(document: Mapping[str, Any]) -> bool:
    pools = (pool for workload in document["workloads"] for point in workload["points"] for pool in point["pools"])
    return all("memory_bytes" in pool for pool in pools)


def _with_earlier_engines(problem: Problem) -> Problem:
    """Set engines as releases up to 0.2 did: the fitted share of the memory, and the usual limit on running requests."""
    engine = EngineSettings(problem.constants.serving.usable_memory, limit_factor=1.0)
    return replace(problem, serving=tuple(replace(workload, engine=engine) for workload in problem.serving))
