"""Run all checks of one plan, in the order of their dependencies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.problem.facts import REDUCED, ResolvedSpec
from planner.verify.adapt.check import check_policy
from planner.verify.amounts import check_amounts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.claims.contents import ContentsCheck, check_price_contents
from planner.verify.claims.looser import check_looser
from planner.verify.claims.objective import check_objective
from planner.verify.claims.record import check_assumptions
from planner.verify.claims.references import check_references
from planner.verify.claims.simplicity import check_confidence_gain, check_simplicity
from planner.verify.claims.unanswered import check_without_answer
from planner.verify.claims.worth import check_labels, check_worth
from planner.verify.electricity import ElectricityCheck
from planner.verify.failover import FailoverCheck
from planner.verify.findings import UNREADABLE, words_of
from planner.verify.fleet.check import check_fleet
from planner.verify.fleet.deployments import check_deployments
from planner.verify.fleet.facility import FacilityCheck
from planner.verify.fleet.owned import check_owned
from planner.verify.fleet.rented import check_rented
from planner.verify.jobs import check_jobs
from planner.verify.limits import check_limits
from planner.verify.lines import LineCheck
from planner.verify.load.exchange import exchanged
from planner.verify.load.kv_tiers import check_kv_tiers
from planner.verify.load.packing import check_packing
from planner.verify.phases import PhaseCheck
from planner.verify.points.check import check_points
from planner.verify.points.exchange import site_of
from planner.verify.preemption import InterruptionCheck
from planner.verify.prices import PriceCheck
from planner.verify.quality import QualityCheck
from planner.verify.robust.adapt import check_adaptation
from planner.verify.robust.check import RobustCheck
from planner.verify.robust.confidence import check_confidence
from planner.verify.routes import check_routes
from planner.verify.schedule import check_schedule
from planner.verify.spread import SpreadCheck


def same_catalog(problem: ResolvedSpec, document: Mapping[str, Any]) -> bool:
    """Tell whether the plan was made with the catalog of the problem."""
    return bool(problem.catalog_digest == document["catalog_digest"])


def read_through(problem: ResolvedSpec, document: Mapping[str, Any]) -> CheckedPlan:
    """Read a plan that has an answer, and add up its amounts despite errors."""
    plan = CheckedPlan(problem, document, same_catalog(problem, document))
    run_checks(plan)
    return plan


def run_checks(plan: CheckedPlan) -> None:
    """Check everything but prices and robustness. Stops after the first check that the plan cannot be read through."""
    if plan.document["objective"]["value"] is None:
        check_without_answer(plan)
        return
    check_references(plan)
    plan.readable = not plan.found
    if not plan.readable:
        return
    for part, check in CHECKS:
        try:
            check(plan)
        except UNREADABLE as error:
            plan.say(part, "verify.unreadable", error=words_of(error))
            plan.readable = False
        if not plan.readable:
            return


def check_prices(plan: CheckedPlan, overlays: Sequence[Path]) -> None:
    """Check the level of every price; with another catalog the figures are those that the plan recorded, so there is nothing to check."""
    if plan.same_figures:
        PriceCheck(plan, overlays).run()
        ContentsCheck(plan, overlays).run()


def check_robustness(plan: CheckedPlan, overlays: Sequence[Path]) -> None:
    """Check the sections `confidence`, `adaptation` and `robustness`; a plan has the last one if its spec has a block `robust`."""
    check_confidence(plan)
    check_adaptation(plan)
    check_policy(plan, overlays)
    stated = isinstance(plan.document.get("robustness"), Mapping)
    asked = plan.problem.spec.robust is not None
    answered = plan.document["objective"]["value"] is not None
    if (stated and not asked) or (answered and stated != asked):
        plan.say("robustness", "verify.needs_robust_block")
    elif stated and answered:
        try:
            RobustCheck(plan, overlays, read_through).run()
        except UNREADABLE as error:
            plan.say("robustness", "verify.unreadable", error=words_of(error))


def _check_electricity(plan: CheckedPlan) -> None:
    if any(site.electricity is not None for site in plan.problem.sites):
        plan.electricity = ElectricityCheck(plan.problem, plan.document, plan)
        plan.electricity.run({key: hour["own_power_w"] for key, hour in plan.hours.items()})
    elif "electricity" in plan.document:
        plan.say("electricity", "verify.no_choice_of_electricity")


def _check_dispatch(plan: CheckedPlan) -> None:
    """Check that the dispatch over all hours is there if asked for, and fits the plan's cost. Its figures are not computed again."""
    found = plan.document.get("dispatch")  # None where the time was up before it
    if ("dispatch" in plan.document) != (plan.problem.bound_of == REDUCED and plan.problem.spec.horizon.dispatch):
        plan.say("dispatch", "verify.needs_reduced_hours")
    elif found is not None:
        cost = plan.document["totals"]["cost"]
        plan.equal("dispatch.difference", found["difference"], found["cost"] / cost - 1.0 if cost else 0.0)
        if not (0 <= found["unmet"] <= 1 and 0 <= found["unfinished"] <= 1):
            plan.say("dispatch", "verify.shares_within_one")


def _check_lines(plan: CheckedPlan) -> None:
    if plan.problem.lines is not None:
        hosts = {
            name: {
                site_of(row, pool)
                for point in plan.points_of(name)
                for row in (plan.points[point][0],)
                for pool in row["pools"]
            }
            for name in plan.serving
        }
        plan.lines = LineCheck(plan.problem, plan.problem.lines, plan.document, plan)
        plan.lines.run(hosts, exchanged(plan))
    elif "lines" in plan.document or "placements" in plan.document:
        plan.say("lines", "verify.no_choice_of_lines")


def _check_spread(plan: CheckedPlan) -> None:
    if any(w.spec.spread is not None for w in plan.serving.values()):
        plan.spread = SpreadCheck(plan.problem, plan.document, plan)
        plan.spread.run()
    elif "spread" in plan.document:
        plan.say("spread", "verify.none_asks")


def _check_phases(plan: CheckedPlan) -> None:
    if plan.problem.phases:
        PhaseCheck(plan).run()
    elif "phases" in plan.document:
        plan.say("phases", "verify.spec_has_none")


def _check_failures(plan: CheckedPlan) -> None:
    """Check the failure of each zone, where a workload must survive it."""
    if any(w.spec.spread is not None and w.spec.spread.survive for w in plan.serving.values()):
        FailoverCheck(plan).run()
    elif "failures" in plan.document:
        plan.say("failures", "verify.none_survives")


def _check_quality(plan: CheckedPlan) -> None:
    if plan.problem.quality:
        QualityCheck(plan.problem, plan.document, plan).run()
    elif "quality" in plan.document:
        plan.say("quality", "verify.no_quality_floor")


CHECKS: tuple[tuple[str, Callable[[CheckedPlan], None]], ...] = (
    ("workloads", check_points),
    ("workloads", check_labels),
    ("fleet", check_fleet),
    ("owned", check_owned),
    ("rented", check_rented),
    ("simplicity", check_simplicity),
    ("confidence_gain", check_confidence_gain),
    ("looser", check_looser),
    ("facility", lambda plan: FacilityCheck(plan).run()),
    ("schedule", check_schedule),
    ("deployments", check_deployments),
    ("packing", check_packing),
    ("kv_tiers", check_kv_tiers),
    ("routes", check_routes),
    ("workloads", check_jobs),
    ("electricity", _check_electricity),
    ("lines", _check_lines),
    ("spread", _check_spread),
    ("failures", _check_failures),
    ("quality", _check_quality),
    ("preemptions", lambda plan: InterruptionCheck(plan).run()),
    ("cost_lines", check_amounts),
    ("price_contents", check_price_contents),
    ("phases", _check_phases),
    ("limits", check_limits),
    ("objective", check_objective),
    ("limits", check_worth),
    ("assumptions", check_assumptions),
    ("dispatch", _check_dispatch),
)
"""Each check with the part of the plan that it reads, in the order of their dependencies."""
