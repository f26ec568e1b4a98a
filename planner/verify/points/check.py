"""Check that each point of a plan is permitted by the spec, and evaluate it again by the closed forms."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from planner.problem.facts import ServingFacts, TrainingFacts, permitted
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.claims.earlier import made_by_another
from planner.verify.findings import RELATIVE_TOL, UNREADABLE, words_of
from planner.verify.points.conservation import check_conservation
from planner.verify.points.evaluate import evaluate_point
from planner.verify.points.exchange import site_of

PREDICTED_TOL = 0.05  # to which predictions of another release agree with those of this one: laws of the models change


def check_points(plan: CheckedPlan) -> None:
    """Check every point of every workload, and keep its evaluation."""
    for w, workload in enumerate(plan.document["workloads"]):
        facts = plan.serving.get(workload["name"]) or plan.training.get(workload["name"])
        assert facts is not None  # as the references hold
        for i, point in enumerate(workload["points"]):
            _check_point(plan, f"workloads[{w}].points[{i}]", facts, point)


def _check_point(plan: CheckedPlan, path: str, facts: ServingFacts | TrainingFacts, point: Row) -> None:
    # with another catalog, more chips may have been measured today than when the plan was made: its own tier holds
    row = {**point, "tier": None} if plan.same_figures else point
    try:
        computed = evaluate_point(plan.problem, plan.fleet_options, facts, row)
    except UNREADABLE as error:
        plan.say(path, "verify.not_evaluated", error=words_of(error))
        plan.readable = False
        return
    if point["id"] in plan.points:
        plan.say(f"{path}.id", "verify.twice")
    plan.points[point["id"]] = point, computed
    expected = dict(computed.stated)
    if "path" not in point and made_by_another(plan.document):
        expected.pop("path", None)  # plans of release 0.2 do not state it
    if "cache_paths" not in point and made_by_another(plan.document):
        expected.pop("cache_paths", None)  # nor these
    if "cache_paths" in point and "cache_paths" not in expected:
        plan.say(f"{path}.cache_paths", "path.verify_nothing_read")
    if "path" in point and "path" not in expected:
        plan.say(f"{path}.path", "path.verify_nothing_exchanged")
    stated = {key: point.get(key) for key in expected} | {"pools": dict(enumerate(point["pools"]))}
    for name in ("classes", "outside", "cache_paths"):
        if name in stated:
            stated[name] = dict(enumerate(point.get(name, [])))
    tolerance = PREDICTED_TOL if made_by_another(plan.document) else RELATIVE_TOL
    plan.equal(path, stated, expected, tolerance)
    check_conservation(plan, path, facts, point, tolerance)
    _check_latencies(plan, f"{path}.latency_s", point["latency_s"])
    if not computed.fits:
        plan.say(path, "verify.does_not_fit")
    for region in {site_of(point, pool) for pool in point["pools"]} | {point["site"]}:
        if not permitted(facts, plan.sites[region]):
            plan.say(path, "verify.residency", workload=facts.name, site=region)
    for pool in point["pools"]:
        if pool.get("tenant", "") != plan.problem.tenant_of(facts):
            holder = pool.get("tenant") or "all"
            plan.say(path, "verify.sharing_forbids", holder=str(holder))
        if pool["role"] not in ("api", "rollout") and pool["precision"] not in facts.spec.precision:
            plan.say(path, "verify.precision_not_asked", precision=pool["precision"])


ORDER = ("p50", "p90", "p95", "p99")


def _check_latencies(plan: CheckedPlan, path: str, latency_s: Mapping[str, float]) -> None:
    """Check what holds of latencies by whatever formula: all are positive, none falls with its percentile, no request ends before its first token."""
    for key, seconds in latency_s.items():
        if not seconds > 0:
            plan.say(f"{path}.{key}", "verify.latency_not_positive", time=f"{seconds:g}")
    for metric in ("ttft", "tpot", "e2e", "task"):
        stated = [(name, latency_s[f"{metric}.{name}"]) for name in ORDER if f"{metric}.{name}" in latency_s]
        for (lower, less), (higher, more) in itertools.pairwise(stated):
            if less > more * (1 + RELATIVE_TOL):
                plan.say(
                    f"{path}.{metric}.{higher}",
                    "verify.percentile_below",
                    more=f"{more:g}",
                    less=f"{less:g}",
                    lower=lower,
                )
    for name in ("mean", *ORDER):
        first, end = latency_s.get(f"ttft.{name}"), latency_s.get(f"e2e.{name}")
        if first is not None and end is not None and first > end * (1 + RELATIVE_TOL):
            plan.say(f"{path}.e2e.{name}", "verify.end_before_first_token", end=f"{end:g}", first=f"{first:g}")
    call, task = latency_s.get("e2e.mean"), latency_s.get("task.mean")
    if call is not None and task is not None and call > task * (1 + RELATIVE_TOL):
        plan.say(f"{path}.task.mean", "verify.task_below_call", task=f"{task:g}", call=f"{call:g}")
