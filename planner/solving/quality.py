"""Choice of architectures under a quality floor: solve the chosen ones alone, and find the next best choice.

The program is solved again with the chosen architectures only, the fleet fixed, because the plan document and the
marginal values belong to a problem in which each demand has its architecture. It is solved a third time, without the
most used architecture, for the cost of the runner-up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from planner.candidates.points import Candidates
from planner.candidates.quality import settled_points
from planner.formulate.formulation import Formulation, formulate
from planner.interpret.failover import Failures
from planner.interpret.quality import requests_by_member, shares
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.quality import Quality, Without
from planner.problem.facts import ResolvedSpec
from planner.problem.quality import NONE, Chosen, is_open, settled
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.model.fabric import designs_of, joined_of
from solvers.search.joint import solve
from solvers.search.proven import rated
from solvers.solution import Solution

SHARE_TOL = 1e-9  # shares of the requests below this are rounding
RESOLVE_GAP = 1e-8  # relative gap to which the chosen architectures are solved again


def chosen(problem: ResolvedSpec, form: Formulation, solution: Solution) -> Chosen:
    """Find the architectures that answer each demand with a floor, as a rule or when a zone has failed."""
    requests = requests_by_member(problem, form, solution.values["f"])
    standing = Failures(problem, form, solution.values).answering()
    found = {}
    for facts in problem.quality:
        share = shares(facts, requests)
        # A demand of nothing is answered by any that keeps the floor alone.
        most = max(share, key=lambda architecture: (share[architecture], facts.scores[architecture] >= facts.least))
        kept = {architecture for architecture, part in share.items() if part > SHARE_TOL} | {most}
        kept |= {architecture for architecture, name in facts.members.items() if name in standing}
        found[facts.workload] = {most} if facts.mix == NONE else kept
    return found


def settle(
    problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution, options: Options
) -> tuple[ResolvedSpec, Candidates, Formulation, Solution]:
    """Solve the program of the chosen architectures with the fleet of the solution.

    Bound and status still refer to the choice among all architectures.
    """
    if not is_open(problem) or not solution.values:
        return problem, candidates, form, solution
    after = settled(problem, chosen(problem, form, solution))
    points = settled_points(candidates, problem, after)
    left = formulate(after, points)
    fleet = np.rint(solution.values["n"])
    found = solve(
        replace(left.data, holding_lower=fleet, holding_upper=fleet),
        replace(options, gap=min(options.gap, RESOLVE_GAP), enough_gap=None),
    )
    if found.values:
        found = replace(
            found,
            values={**found.values, "z": designs_of(left.data, fleet), **joined_of(left.data, fleet, found.values)},
        )
    else:  # the rounding of a search may leave the last request unserved
        found = solve(left.data, options)
    if not found.values:
        return after, points, left, found
    names = ("status", "bound", "rows", "columns", "integers", "polished")
    kept = {name: getattr(solution, name) for name in names}
    before, sign = solution.before, -1.0 if left.data.objective.maximises else 1.0
    seconds = solution.seconds + found.seconds
    if before is not None and found.value is not None and sign * found.value >= sign * before[0]:
        gap = _gap(found.value, solution.bound)
        return after, points, left, replace(found, **kept, gap=gap, seconds=seconds, before=before)
    if before is not None and found.value is not None:
        before = found.value, before[1]
    return after, points, left, rated(replace(found, **kept, seconds=seconds, before=before), options)


def _gap(value: float | None, bound: float | None) -> float | None:
    return None if value is None or bound is None else relative_gap(value, bound)


def with_runners_up(
    plan: Plan,
    problem: ResolvedSpec,
    candidates: Candidates,
    options: Callable[[], Options],
    say: Callable[[str], None],
) -> Plan:
    """Add to each quality row of a plan the cost of the best choice without its most used architecture; `options`: of the next program."""
    rows: list[Quality] = [
        {**row, "runner_up": _runner_up(row, problem, candidates, plan.value, options(), say)}
        for row in plan.document["quality"]
    ]
    return Plan({**plan.document, "quality": rows})


def _runner_up(
    row: Quality,
    problem: ResolvedSpec,
    candidates: Candidates,
    value: float,
    options: Options,
    say: Callable[[str], None],
) -> Without | None:
    """Solve again without the most used architecture; None where no other can answer."""
    facts = next(facts for facts in problem.quality if facts.workload == row["workload"])
    first = max(row["architectures"], key=lambda each: each["share"])["architecture"]
    if not any(facts.is_able(architecture) for architecture in facts.members if architecture != first):
        return None
    form = formulate(
        problem,
        replace(
            candidates, pools=tuple(pool for pool in candidates.pools if pool.workload.name != facts.members[first])
        ),
    )
    found = solve(form.data, options)
    say(
        Message.of(
            "progress.without_architecture",
            workload=row["workload"],
            name=first,
            status=found.status,
            seconds=f"{found.seconds:.1f}",
        ).text()
    )
    runner_up: Without = {
        "without": first,
        "status": found.status,
        "architectures": [],
        "value": None,
        "bound": found.bound,
        "difference": None,
    }
    if found.values and found.value is not None:
        share = shares(facts, requests_by_member(problem, form, found.values["f"]))
        runner_up["architectures"] = sorted(a for a, part in share.items() if part > SHARE_TOL)
        runner_up["value"], runner_up["difference"] = found.value, found.value - value
    return runner_up
