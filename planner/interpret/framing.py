"""Parts of a plan document around the decisions: provenance, versions, dropped candidates; and the document without a plan."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from functools import cache
from importlib import metadata
from typing import Any

from catalog.figures import Figure
from catalog.units import is_money
from models.arrays import sum_of
from planner.candidates.points import Candidates
from planner.candidates.unproven import left_out, points_considered
from planner.facts import Fact, rows
from planner.messages import BESIDE, Said, with_codes
from planner.plan import PLAN_SCHEMA_VERSION, Plan
from planner.problem.facts import ResolvedSpec
from planner.problem.provenance import Assumption
from planner.version import __version__
from solvers.interface import Options
from solvers.solution import Solution

GAP, TIME, MEMORY, NODES, SEARCH = (
    "gap",
    "time",
    "memory",
    "nodes",
    "search",
)  # what ends a search: "search" where it has nothing left to try
NEARLY = 0.9  # share of the time allowed: the decomposition keeps some for its plan


def without_answer(
    problem: ResolvedSpec,
    candidates: Candidates | None,
    status: str,
    solution: Solution | None,
    document: dict[str, Any],
    diagnosis: dict[str, Any] | None = None,
    reasons: Iterable[Fact] = (),
) -> Plan:
    """Build the document of a question without a plan: infeasible, unbounded, or out of time; `reasons`: why, where that is known."""
    sense, unit = sense_and_unit(document)
    return Plan.of(
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
            **dropped(candidates),
            **noted(problem),
            "assumptions": [],
            "provenance": [],
            "versions": versions(),
            "solver": solver(problem, solution),
            "diagnosis": diagnosis,
            **({"reasons": told} if (told := [reason.row() for reason in reasons]) else {}),
            "catalog_digest": problem.catalog_digest,
            "spec": document,
        }
    )


def sense_and_unit(document: Mapping[str, Any]) -> tuple[str, str]:
    """Return whether the spec minimises or maximises, and the unit of its objective."""
    objective = document.get("objective") or {"minimise": "cost"}
    if objective.get("maximise"):
        return "max", "x demand"
    return "min", "kg" if objective.get("minimise") == "carbon" else document.get("currency", "USD")


def dropped(candidates: Candidates | None) -> dict[str, dict[str, Any]]:
    """Count the dropped candidates of each workload by reason; beside them stands the code of each reason."""
    found = {} if candidates is None else {name: sorted(counts.items()) for name, counts in candidates.dropped.items()}
    reasons = sorted({reason for counts in found.values() for reason, _ in counts if isinstance(reason, Said)})
    return {
        "dropped": {name: dict(counts) for name, counts in found.items()},
        f"dropped{BESIDE}": {reason: reason.message.coded() for reason in reasons},
    }


def coverage(candidates: Candidates, whole: bool) -> dict[str, Any]:
    """Return the section `coverage`: the operating points that a bound covers, and the candidates left out by rules that prove nothing."""
    reasons = left_out(candidates, whole)
    rows = [with_codes({"reason": reason, "count": count}, "reason") for reason, count in reasons]
    return {
        "coverage": {
            "points": points_considered(candidates),
            "left_out": sum_of(count for _, count in reasons),
            "reasons": rows,
        }
    }


def noted(problem: ResolvedSpec) -> dict[str, list[dict[str, Any]]]:
    """Return the section `notes`, which says how the spec was understood; no section without notes."""
    found = rows(problem.notes)
    return {"notes": found} if found else {}


def provenance(problem: ResolvedSpec) -> list[dict[str, Any]]:
    """List the catalog figures that the problem uses, with their sources."""
    return [
        {
            "path": citation.path,
            "value": list(figure.value) if isinstance(figure.value, tuple) else figure.value,
            "unit": figure.unit,
            "source": list(figure.source),
            "date": figure.date,
            "confidence": figure.confidence,
            "kind": figure.kind,
            **_range(figure),
        }
        for citation in problem.citations
        if (figure := citation.figure)
    ]


def _range(figure: Figure) -> dict[str, float]:
    """Return low and high of a price, where they are known."""
    bounds = {"low": figure.low, "high": figure.high} if is_money(figure.unit) else {}
    return {name: bound for name, bound in bounds.items() if bound is not None}


def versions() -> dict[str, str]:
    """Return the versions of this program, Python and the packages that decide figures."""
    return {"flopwatt": __version__, "python": platform.python_version(), **_of_packages()}


@cache
def _of_packages() -> dict[str, str]:
    return {name: metadata.version(name) for name in ("numpy", "scipy", "highspy", "pulp", "networkx", "pydantic")}


def solver(problem: ResolvedSpec | None, solution: Solution | None) -> dict[str, Any]:
    """Describe how the program was solved, and its size."""
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


def ending(solution: Solution, options: Options) -> dict[str, Any]:
    """Say what ended the search, and whether another run with the same seed and threads ends with the same plan.

    A limit of time or memory, of the search or of one of its steps, ends it where the machine has come by then; so may the limits of the
    programs within the decomposition, which is known by its duals.
    """
    full = options.memory is not None and options.memory.was_full
    up = options.clock is not None and options.clock.was_up
    if solution.status != "limit":
        by = GAP
    elif full:
        by = MEMORY
    elif up or solution.seconds >= NEARLY * options.time_limit_s:
        by = TIME
    else:
        by = NODES if options.node_limit is not None else SEARCH
    repeatable = not (full or up or by == TIME) and solution.relaxed_bound is None
    return {"ended_by": by, "repeatable": repeatable}


def with_ending(plan: Plan, solution: Solution, options: Options) -> Plan:
    """Add to a plan what ended the search for its solution, under these options."""
    return Plan({**plan.document, "solver": {**plan.document["solver"], **ending(solution, options)}})


def assumption_rows(
    assumptions: Iterable[Assumption], lines: Mapping[tuple[str, str, str, str], float]
) -> list[dict[str, Any]]:
    """List each assumed figure with the share of the objective that depends on it; `lines`: amounts of cost or carbon lines."""
    total = sum_of(lines.values())
    of_component: dict[str, dict[tuple[str, str, str, str], float]] = {}
    for line, amount in lines.items():
        of_component.setdefault(line[0], {})[line] = amount
    shares: dict[tuple[tuple[str, str, str], ...], float] = {}  # many assumptions have the same scope
    rows = []
    for assumption in assumptions:
        scope, share = assumption.scope, None
        if scope and total:
            if scope not in shares:
                near = [
                    mine
                    for component, mine in of_component.items()
                    if any(pattern[0] in ("*", component) for pattern in scope)
                ]
                shares[scope] = (
                    sum_of(
                        amount
                        for mine in near
                        for line, amount in mine.items()
                        if any(_fits(pattern, line) for pattern in scope)
                    )
                    / total
                )
            share = shares[scope]
        rows.append(
            with_codes(
                {
                    "path": assumption.path,
                    "value": assumption.value,
                    "unit": assumption.unit,
                    "reason": assumption.reason,
                    "share": share,
                },
                "reason",
            )
        )
    return rows


def _fits(pattern: tuple[str, str, str], line: tuple[str, str, str, str]) -> bool:
    """Tell whether a line matches a pattern of component, site and system, where "*" matches all."""
    return all(wanted in ("*", found) for wanted, found in zip(pattern, line[:3], strict=True))
