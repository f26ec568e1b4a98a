"""What stands around the decisions in a plan document: provenance, versions, what was dropped, and the form of an answer without a plan."""

from __future__ import annotations

import platform
from importlib import metadata
from typing import Any

from planner import __version__
from planner.plan import PLAN_SCHEMA_VERSION, Plan
from planner.points import Candidates
from planner.problem import Problem
from solvers.joint import Solution


def without_answer(
    problem: Problem, candidates: Candidates, status: str, solution: Solution | None, document: dict[str, Any], diagnosis: dict[str, Any] | None = None
) -> Plan:
    """The same form with nothing decided: infeasible, unbounded, or out of time without any plan."""
    sense, unit = sense_and_unit(document)
    return Plan(
        {
            "schema_version": PLAN_SCHEMA_VERSION,
            "name": document["name"],
            "status": status,
            "objective": {"sense": sense, "value": None, "unit": unit},
            "bound": None,
            "bound_of": problem.bound_of,
            "gap": None,
            "totals": None,
            "fleet": [],
            "fabrics": [],
            "workloads": [],
            "routes": [],
            "schedule": [],
            "costs": {},
            "cost_lines": [],
            "carbon_lines": [],
            "limits": [],
            "runner_up": [],
            "dropped": dropped(candidates),
            "assumptions": [],
            "provenance": [],
            "versions": versions(),
            "solver": solver(problem, solution),
            "diagnosis": diagnosis,
            "catalog_digest": problem.catalog_digest,
            "spec": document,
        }
    )


def sense_and_unit(document: dict[str, Any]) -> tuple[str, str]:
    objective = document.get("objective") or {"minimise": "cost"}
    if "maximise" in objective:
        return "max", "x demand"
    return "min", "kg" if objective.get("minimise") == "carbon" else document.get("currency", "USD")


def dropped(candidates: Candidates | None) -> dict[str, dict[str, int]]:
    return {} if candidates is None else {name: dict(sorted(counts.items())) for name, counts in candidates.dropped.items()}


def provenance(problem: Problem) -> list[dict[str, Any]]:
    return [
        {
            "path": citation.path,
            "value": list(figure.value) if isinstance(figure.value, tuple) else figure.value,
            "unit": figure.unit,
            "source": list(figure.source),
            "date": figure.date,
            "confidence": figure.confidence,
            "kind": figure.kind,
        }
        for citation in problem.citations
        if (figure := citation.figure)
    ]


def versions() -> dict[str, str]:
    packages = {name: metadata.version(name) for name in ("numpy", "scipy", "highspy", "pulp", "networkx", "pydantic")}
    return {"tokenwatt": __version__, "python": platform.python_version(), **packages}


def solver(problem: Problem | None, solution: Solution | None) -> dict[str, Any]:
    if problem is None or solution is None:
        return {}
    return {
        "backend": problem.spec.solver.backend,
        "asked_gap": problem.spec.solver.gap,
        "seed": solution.seed,
        "rows": solution.rows,
        "columns": solution.columns,
        "integers": solution.integers,
    }
