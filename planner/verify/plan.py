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
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.plan.shape import shape_problems, unknown_keys
from planner.problem.facts import ResolvedSpec
from planner.verify.check import check_prices, check_robustness, run_checks, same_catalog
from planner.verify.checked_plan import CheckedPlan
from planner.verify.claims.earlier import (
    made_by_another,
    recorded_figures,
    with_earlier_checkpoints,
    with_earlier_contracts,
    with_earlier_engines,
)
from planner.verify.claims.record import check_record
from planner.verify.claims.shortfall import shortfall
from planner.verify.claims.unchecked import Unchecked, unchecked_parts
from planner.verify.findings import UNREADABLE, Finding, words_of
from planner.verify.load.closed_loop import check_closed_loops
from planner.verify.load.length_pools import check_length_pools
from planner.verify.points.check import PREDICTED_TOL
from planner.verify.priority import check_postponed, resolved
from planner.verify.quality import as_chosen


@dataclass(frozen=True, slots=True)
class Verification:
    """What the checks of a plan found, and what they did not compute again."""

    findings: list[Finding]
    unchecked: list[Unchecked]
    note: str = ""  # that the catalog is another one; empty if it is the same
    proof: str | None = None  # proof of a claimed infeasibility: what cannot be done, by a program of the checks' own

    @property
    def holds(self) -> bool:
        """Tell whether nothing was found."""
        return not self.findings

    def by_reason(self) -> dict[str, list[str]]:
        """Group the places that were not computed again by the reason."""
        places: dict[str, list[str]] = {}
        for part in self.unchecked:
            places.setdefault(part.reason, []).append(part.path)
        return places


def verified(plan: Plan, overlays: Sequence[Path] = ()) -> Verification:
    """Check a plan, and list what was not computed again.

    If the catalog is not the one that the plan was made with, the figures of the plan's provenance are used.
    Where the document has not the shape of a plan, the findings are the places. Raises SpecError if its spec cannot be read.
    """
    document = plan.document
    if problems := shape_problems(document):
        return Verification([Finding(problem.path, problem.message) for problem in problems], [])
    problem, note = _resolved(document, overlays), ""
    same_figures = same_catalog(problem, document)
    if not same_figures:
        note = Message.of("verify.another_catalog").text()
        problem = _with_recorded_figures(document, overlays)
    if made_by_another(document):
        also = Message.of("verify.another_release", share=f"{PREDICTED_TOL:.0%}").text()
        note = f"{note}; {also}" if note else also
    found = findings(problem, document, overlays)
    unknown = unknown_keys(document)
    if not made_by_another(document):
        found += [Finding(path, Message.of("plan.unknown_key").text()) for path in unknown]
    proof = shortfall(problem) if document["status"] == "infeasible" else None
    return Verification(found, unchecked_parts(document, same_figures, unknown, proof is not None), note, proof)


def verify_plan(plan: Plan, overlays: Sequence[Path] = ()) -> list[Finding]:
    """List all errors in a plan; an empty list means that the plan is correct, as far as it was checked: see `verified`."""
    return verified(plan, overlays).findings


def _resolved(document: Mapping[str, Any], overlays: Sequence[Path]) -> ResolvedSpec:
    """Resolve the spec of a plan. Raises SpecError with places in the plan."""
    try:
        return resolved(document, overlays, {})
    except SpecError as error:
        raise SpecError(
            Issue(f"spec.{problem.path}".removesuffix("."), problem.message) for problem in error.problems
        ) from None


def findings(problem: ResolvedSpec, document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> list[Finding]:
    """List the errors in `document` against `problem`, its own spec resolved."""
    same_figures = same_catalog(problem, document)
    plan = CheckedPlan(problem, document, same_figures)
    try:
        check_record(plan, problem, document, same_figures)
        check_postponed(plan, document)
        check_closed_loops(plan, document)
        check_length_pools(plan, document)
        record, figures_hold = plan.found, not any(found.path.startswith("provenance") for found in plan.found)
        try:
            plan = CheckedPlan(as_chosen(problem, document), document, same_figures)
        except UNREADABLE as error:
            plan.say("quality", "verify.no_such_architectures", error=words_of(error))
            return plan.found
        run_checks(plan)
        plan.found = [*record, *plan.found]
        if plan.readable:
            check_robustness(plan, overlays)
        if figures_hold:
            check_prices(plan, overlays)
    except UNREADABLE as error:
        plan.say("plan", "verify.unreadable", error=words_of(error))
    return plan.found


def _with_recorded_figures(document: Mapping[str, Any], overlays: Sequence[Path]) -> ResolvedSpec:
    """Resolve the plan's spec on the figures that the plan recorded, instead of today's catalog."""
    found = resolved(document, overlays, recorded_figures(document))
    found = with_earlier_contracts(with_earlier_engines(found, document), document)
    return with_earlier_checkpoints(found, document)
