"""Check a plan's objective, bound, gap and status against one another and against the amounts."""

from __future__ import annotations

from planner.problem.facts import FLEET
from planner.verify.checked_plan import CheckedPlan
from planner.verify.findings import RELATIVE_TOL

OPTIMAL_GAP = 1e-6  # a gap below it is a solver's rounding
NOTHING = 1e-6  # amount in the objective's unit: a value and a bound this close to 0 are 0
STATUS_TOL = 1e-8  # difference of a gap: a solver judges its status by its own sum, before the plan is added up


def check_objective(plan: CheckedPlan) -> None:
    """Compare the objective's value with the amounts, and its gap with the bound."""
    document, asked = plan.document, plan.problem.spec.objective
    bound_of = plan.problem.bound_of if plan.problem.spec.robust is None else FLEET
    if document["bound_of"] != bound_of:
        plan.say("bound_of", "verify.bound_of_another_program", given=repr(document["bound_of"]), found=bound_of)
    value, bound, gap = document["objective"]["value"], document["bound"], document["gap"]
    if document["objective"]["sense"] != ("min" if asked.minimise else "max"):
        plan.say("objective.sense", "verify.other_objective", given=repr(document["objective"]["sense"]))
    if asked.minimise:
        lines = plan.sums.lines if asked.minimise == "cost" else plan.sums.carbon
        plan.equal("objective.value", value, sum(lines.values()))
    if bound is None:
        if gap is not None or document["status"] != "limit":
            plan.say("gap", "verify.no_bound")
        return
    if gap is None:
        plan.say("gap", "verify.missing_beside_bound")
        return
    nothing = max(abs(value), abs(bound)) <= NOTHING
    plan.equal("gap", gap, 0.0 if nothing else abs(value - bound) / max(abs(value), 1e-9))
    beyond = bound - value if asked.minimise else value - bound
    if beyond > RELATIVE_TOL * abs(value):
        plan.say("bound", "verify.bound_contradicts_value", bound=repr(bound), value=repr(value))
    asked_gap, judged = plan.problem.spec.solver.gap, gap
    found = document.get("simplicity", {}).get("best", {})
    best = found.get("value", value)
    simpler = abs(value - best) > OPTIMAL_GAP * abs(
        best
    )  # the search found a better plan, and this one has fewer parts
    of_best = 0.0 if nothing else abs(best - bound) / max(abs(best), 1e-9)
    if simpler:
        judged = of_best
    stated = found.get("gap", of_best)  # earlier releases did not state it
    if stated is None or abs(stated - of_best) > STATUS_TOL:
        plan.say("simplicity.best.gap", "verify.says", given=repr(stated), found=repr(of_best))
    expected = {_status(judged + side * STATUS_TOL, asked_gap) for side in (-1, 0, 1)}
    if simpler and "optimal" in expected:
        expected = expected - {"optimal"} | {"within_gap"}
    if document["status"] not in expected:
        plan.say(
            "status",
            "verify.status_against_gap",
            status=repr(document["status"]),
            gap=f"{gap:.3g}",
            asked=f"{asked_gap:g}",
        )


def _status(gap: float, asked: float) -> str:
    return "optimal" if gap <= OPTIMAL_GAP else "within_gap" if gap <= asked else "limit"
