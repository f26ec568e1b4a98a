"""Plan pools by prompt length: at stated boundaries, or at those whose plan costs least, beside the plan with one pool.

The plan with one pool is always made. Boundaries are tried in the order of a bound of their plans; those whose bound is not below the
best plan found cannot be better and are left out, so that the plan is that of enumeration where the time suffices.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from models.arrays import sum_of
from planner.candidates.cache import OutOfTime
from planner.interpret.framing import without_answer
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.length_pools import DividedWorkload, LengthPool, LengthPools, TriedBoundaries, Undivided
from planner.solving.answer import answer
from planner.solving.deadline import Deadline
from planner.solving.pools.boundaries import Divisions, Tried, ranked
from planner.solving.replicas import solver_of
from planner.solving.standing import Progress
from planner.solving.variants import parsed_at_once, resolved
from planner.spec.document import edited
from planner.spec.load.length_pools import Cuts, divided, kept_limits, part_name, parts_of, pooled, shared_limits
from planner.spec.model import PlanSpec, parse_spec

Solve = Callable[[dict[str, Any]], Plan]
UNDIVIDED_SHARE = 0.4  # share of the time for the plan with one pool
RANKING_SHARE = 0.5  # share of the time left then, for bounds
FIRST_SHARE = 0.75  # share of the time left then, for the bound of the first choice of boundaries where it takes longer
SOLVING_SHARE = 0.6  # share of the time left then, for the plan of the best boundaries, and so on
LEAST_S = 1.0
SAME = 1e-7  # relative difference of values that is none


def has_pools(document: Mapping[str, Any]) -> bool:
    """Tell whether a workload of the document may have pools by length; a malformed one is reported where it is parsed."""
    workloads = document.get("workloads")
    blocks = [each for each in workloads if isinstance(each, dict)] if isinstance(workloads, list) else []
    return any(each.get("pools") not in (None, "one") for each in blocks)


def solve_pools(
    document: dict[str, Any], solve: Solve, say: Progress, overlays: Sequence[Path] = (), threads: int = 1
) -> Plan:
    """Solve a document with pools by length; `solve` plans one without. Raises SpecError for what such pools do not go with.

    Each pool is a workload of the plan, and of the spec that the plan holds.
    """
    spec = parsed_at_once(document, overlays)
    pools = pooled(spec)
    fixed = {i: each.pools.boundaries for i, each in pools.items() if each.pools.boundaries is not None}
    searched = {i: each for i, each in pools.items() if each.pools.boundaries is None}
    made = _Made(document, spec, solve, Divisions(document, spec, overlays, threads), say)
    undivided = made.plan({}, UNDIVIDED_SHARE)
    if not searched:
        return _recorded(made, made.plan(fixed, 1.0), fixed, undivided, [], 0)
    base = made.plan(fixed, UNDIVIDED_SHARE) if fixed else undivided
    begun, left_s = time.perf_counter(), made.left_s
    tried, untried = ranked(
        made.divisions, searched, fixed, begun + RANKING_SHARE * left_s, begun + FIRST_SHARE * left_s
    )
    say(Message.of("progress.boundaries_tried", count=len(tried), untried=untried).text())
    best, values = base, dict[int, float | None]()
    cuts, together = fixed, frozenset[int]()
    for k, each in enumerate(tried):
        if made.left_s < LEAST_S or not _may_be_better(each, best):
            continue
        plan = made.plan(each.cuts, SOLVING_SHARE, each.together)
        values[k] = plan.objective["value"]
        if plan.has_answer and (not best.has_answer or plan.value < best.value * (1.0 - SAME)):
            best, cuts, together = plan, dict(each.cuts), each.together
    rows = [_tried_row(spec, each, values.get(k)) for k, each in enumerate(tried)]
    return _recorded(made, best, cuts, undivided, rows, untried, together)


class _Made:
    """Plans of a document with boundaries, each with a share of the time that is left."""

    def __init__(self, document: dict[str, Any], spec: PlanSpec, solve: Solve, divisions: Divisions, say: Progress):
        self.document, self.spec, self.divisions, self.say, self._solve = document, spec, divisions, say, solve
        self.ends_s = time.perf_counter() + spec.solver.time_limit

    @property
    def left_s(self) -> float:
        """Return the time that is left [s]."""
        return self.ends_s - time.perf_counter()

    def plan(self, cuts: Cuts, share: float, together: frozenset[int] = frozenset()) -> Plan:
        """Solve the spec with these boundaries; the plan holds that spec."""
        ends = Deadline.after(max(share * self.left_s, LEAST_S))
        if self.spec.robust is not None:
            asked = divided(self.document, self.spec, cuts)
            limit = ("solver.time_limit", f"{max(ends.left_s, LEAST_S)} s")
            return Plan({**self._solve(edited(asked, (limit,))).document, "spec": asked})
        try:
            asked, problem, candidates = self.divisions.found(cuts, ends.ends_s, together)
        except OutOfTime:
            asked = divided(self.document, self.spec, cuts, together)
            return without_answer(resolved(asked, self.divisions.overlays), None, "limit", None, asked)
        return answer(
            problem, candidates, asked, overlays=self.divisions.overlays, progress=self.say, threads=self.divisions.threads,
            deadline=ends, solve_program=solver_of(parse_spec(asked)),
        )  # fmt: skip


def _may_be_better(each: Tried, best: Plan) -> bool:
    """Tell whether boundaries may have a plan that costs less than the best found."""
    return each.bound is None or not best.has_answer or each.bound < best.value * (1.0 - SAME)


def _tried_row(spec: PlanSpec, each: Tried, value: float | None) -> TriedBoundaries:
    bound = None if each.bound is None or each.bound == float("inf") else each.bound
    row: TriedBoundaries = {
        "boundaries": {spec.workloads[i].name: list(cut) for i, cut in each.cuts.items()},
        "bound": bound,
        "value": value,
    }
    if each.together:
        row["together"] = [spec.workloads[i].name for i in sorted(each.together)]
    return row


def _recorded(
    made: _Made, plan: Plan, cuts: Cuts, undivided: Plan, tried: list[TriedBoundaries], untried: int,
    together: Collection[int] = (),
) -> Plan:  # fmt: skip
    """Add the section on the division to a plan."""
    base: Undivided = {
        "status": undivided.status,
        "value": undivided.objective["value"],
        "bound": undivided.document["bound"],
        "gap": undivided.gap,
    }
    value, before, bound = plan.objective["value"], base["value"], base["bound"]
    section: LengthPools = {
        "workloads": [_row(made, i, cuts.get(i, ()), i in together) for i in pooled(made.spec)],
        "undivided": base,
        "saving": None if value is None or not before else 1.0 - value / before,
        "proven": value is not None and bound is not None and value < bound - SAME * abs(bound),
        "tried": tried,
        "untried": untried,
    }
    return Plan({**plan.document, "length_pools": section})


def _row(made: _Made, i: int, boundaries: Sequence[int], together: bool) -> DividedWorkload:
    """State how a workload is divided."""
    workload: Any = made.spec.workloads[i]
    whole, rate = workload.lengths, workload.mean_requests_per_s
    found = parts_of(whole, boundaries) if boundaries else []
    prompts = sum_of(part.share * part.input for _, _, part in found)
    answers = sum_of(part.share * part.output for _, _, part in found)
    pools: list[LengthPool] = [
        {
            "name": part_name(workload.name, above, most),
            "above": above,
            "up_to": most,
            "share": part.share,
            "input_share": part.share * part.input / prompts,
            "output_share": part.share * part.output / answers,
            "requests_per_s": rate * part.share,
            "input": part.input,
            "output": part.output,
        }
        for above, most, part in found
    ]
    if together and (kept := shared_limits(workload, boundaries)) is not None:
        for pool in pools:
            pool["ttft"] = kept_limits(workload, kept[pool is pools[-1]])
    return {
        "workload": workload.name,
        "asked": made.document["workloads"][i],
        "searched": workload.pools.boundaries is None,
        "boundaries": list(boundaries),
        "pools": pools,
    }
