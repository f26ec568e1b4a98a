"""Check the policy of an adaptive plan where it is stated; the rest is listed as not checked (`planner.verify.claims.unchecked`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from planner.verify.adapt.cut import cut_problem, schedule_of
from planner.verify.adapt.replay import compare, replayed
from planner.verify.adapt.rows import Pricer, check_rows
from planner.verify.checked_plan import CheckedPlan
from planner.verify.claims.unchecked import is_replayed
from planner.verify.findings import UNREADABLE, Report, words_of


def check_policy(plan: CheckedPlan, overlays: Sequence[Path]) -> None:
    """Check the rows of the policy, then replay it where they hold."""
    found, document = plan.document.get("adaptation"), plan.document
    if found is None or plan.problem.spec.adapt is None or not plan.same_figures or not is_replayed(document):
        return
    report = Report()
    try:
        schedule = schedule_of(plan.problem.spec)
        problem = cut_problem(document, overlays, schedule)
        check_rows(report, found, problem, schedule, document)
        if not report.found and not plan.found:
            compare(
                report, found, replayed(Pricer(problem, document), document, found, schedule, plan.problem.spec.adapt)
            )
    except UNREADABLE as error:
        report.say("adaptation", "verify.unreadable", error=words_of(error))
    plan.found += report.found
