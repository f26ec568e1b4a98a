"""Which architectures the program has chosen, the plan's program with just those, and what the next best choice would come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation, formulate
from planner.plan import Plan
from planner.problem.facts import Problem, QualityFacts
from planner.problem.quality import NONE, Chosen, is_open, settled, settled_points
from solvers.interface import Options
from solvers.joint import solve
from solvers.solution import Solution

NEGLIGIBLE = 1e-9  # shares of the requests below this are the solver's rounding
AS_GOOD = 1e-6  # gap to which the rest of an answer is solved again


def requests_by_member(problem: Problem, form: Formulation, flow: np.ndarray) -> dict[str, float]:
    """Requests over the horizon, by serving workload of the problem."""
    found = dict.fromkeys((workload.name for workload in problem.serving), 0.0)
    for a, (w, *_) in enumerate(form.arcs):
        found[problem.serving[w].name] += float(flow[a] @ problem.calendar.seconds)
    return found


def shares(facts: QualityFacts, requests: dict[str, float]) -> dict[str, float]:
    """Share of a workload's requests that each architecture answers."""
    total = sum(requests.get(name, 0.0) for name in facts.members.values())
    return {architecture: requests.get(name, 0.0) / total if total else 0.0 for architecture, name in facts.members.items()}


def chosen(problem: Problem, form: Formulation, solution: Solution) -> Chosen:
    requests = requests_by_member(problem, form, solution.values["f"])
    found = {}
    for facts in problem.quality:
        share = shares(facts, requests)
        most = max(share, key=lambda architecture: (share[architecture], facts.is_able(architecture)))  # a demand of nothing is answered by any
        kept = {architecture for architecture, part in share.items() if part > NEGLIGIBLE} | {most}
        found[facts.workload] = {most} if facts.mix == NONE else kept
    return found


def settle(problem: Problem, candidates: Candidates, form: Formulation, solution: Solution, options: Options) -> tuple[Problem, Candidates, Formulation, Solution]:
    """The program of what was chosen, solved with the fleet of the answer. Bound and status stay those of the choice among all."""
    if not is_open(problem) or not solution.values:
        return problem, candidates, form, solution
    after = settled(problem, chosen(problem, form, solution))
    points = settled_points(candidates, problem, after)
    left = formulate(after, points)
    fleet = np.rint(solution.values["n"])
    found = solve(replace(left.data, holding_lower=fleet, holding_upper=fleet), replace(options, gap=min(options.gap, AS_GOOD)))
    if not found.values:  # the rounding of a search may leave the last request unserved
        found = solve(left.data, options)
    if not found.values:
        return after, points, left, found
    told = {name: getattr(solution, name) for name in ("status", "bound", "rows", "columns", "integers", "polished")}
    return after, points, left, replace(found, **told, gap=_gap(found.value, solution.bound), seconds=solution.seconds + found.seconds)


def _gap(value: float, bound: float | None) -> float | None:
    return None if bound is None else abs(value - bound) / max(abs(value), 1e-9)


# -- told --------------------------------------------------------------------------------------------------------------


def quality_rows(problem: Problem, form: Formulation, flow: np.ndarray) -> list[dict[str, Any]]:
    """The plan's `quality`: of each workload with a floor, who answers and how good that is."""
    requests, rows = requests_by_member(problem, form, flow), []
    for facts in problem.quality:
        share = shares(facts, requests)
        answering = [architecture for architecture in facts.members if share[architecture] > 0] or list(facts.members)[:1]
        part = {architecture: share[architecture] or 1.0 for architecture in answering}
        rows.append({
            "workload": facts.workload,
            "floor": facts.least,
            "source": facts.source,
            "mix": facts.mix,
            "reached": sum(facts.scores[architecture] * part[architecture] for architecture in answering) / sum(part.values()),
            "lowest_hour": _lowest_hour(problem, facts, form, flow),
            "architectures": [
                {"architecture": architecture, "quality": score, "share": part.get(architecture, 0.0), "name": facts.members[architecture] if architecture in part else None}
                for architecture, score in facts.scores.items()
            ],
            "runner_up": None,
        })  # fmt: skip
    return rows


def _lowest_hour(problem: Problem, facts: QualityFacts, form: Formulation, flow: np.ndarray) -> float:
    """The least mean over the requests of an hour."""
    score = {name: facts.scores[architecture] for architecture, name in facts.members.items()}
    mine = [(a, score[name]) for a, (w, *_) in enumerate(form.arcs) if (name := problem.serving[w].name) in score]
    asked = sum((flow[a] for a, _ in mine), np.zeros(problem.calendar.slots))
    scored = sum((flow[a] * points for a, points in mine), np.zeros(problem.calendar.slots))
    return float((scored[asked > 0] / asked[asked > 0]).min()) if asked.any() else min(score.values())


def with_runners_up(plan: Plan, problem: Problem, candidates: Candidates, options: Options, say: Callable[[str], None]) -> Plan:
    """The plan with what the best choice without its most used architecture would come to, workload by workload."""
    rows = [{**row, "runner_up": _runner_up(row, problem, candidates, plan["objective"]["value"], options, say)} for row in plan["quality"]]
    return Plan({**plan.document, "quality": rows})


def _runner_up(row: dict[str, Any], problem: Problem, candidates: Candidates, value: float, options: Options, say: Callable[[str], None]) -> dict[str, Any] | None:
    facts = next(facts for facts in problem.quality if facts.workload == row["workload"])
    first = max(row["architectures"], key=lambda each: each["share"])["architecture"]
    if not any(facts.is_able(architecture) for architecture in facts.members if architecture != first):
        return None
    form = formulate(problem, replace(candidates, pools=tuple(pool for pool in candidates.pools if pool.workload.name != facts.members[first])))
    found = solve(form.data, options)
    say(f"{row['workload']} without {first}: {found.status} in {found.seconds:.1f} s")
    told = {"without": first, "status": found.status, "architectures": [], "value": None, "bound": found.bound, "difference": None}
    if found.values:
        share = shares(facts, requests_by_member(problem, form, found.values["f"]))
        told |= {"architectures": sorted(a for a, part in share.items() if part > NEGLIGIBLE), "value": found.value, "difference": found.value - value}
    return told
