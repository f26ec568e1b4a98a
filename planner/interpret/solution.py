"""Read the decisions of a solution, and remove the solver's rounding: slack of its tolerances, idle replicas, tiny flows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation
from planner.interpret.decisions import Decisions
from planner.interpret.deployments import resident_workers
from planner.interpret.electricity import ElectricityDecisions, rings
from planner.interpret.failover import Failures
from planner.interpret.hourly import running_systems
from planner.interpret.lines import LineDecisions
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API
from solvers.model.preemption import working_share
from solvers.model.residency import is_whole
from solvers.solution import Solution

ROUNDING_TOL = (
    1e-9  # flows below this share of the largest are rounding; so is what an API's tokens exceed an integer by
)
STRAY_TOL = 1e-6  # flows below this share of the largest are rounding where no replica stands


def read_solution(problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution) -> Decisions:
    """Read the decisions of a solution that has values."""
    flow = _without_strays(_without_rounding(solution.values["f"]), form, solution)
    flow = _served_exactly(flow, form, solution)
    active = _active(form, candidates, solution, flow)
    failures = Failures(problem, form, solution.values)
    point_ids = _point_ids(form, (active.max(axis=1) > 0) | failures.standing_by())
    held = count_held(form, solution, (active, *failures.active.values()))
    running, count = running_systems(problem, form, solution, held, active)
    decided = Decisions(
        problem=problem,
        form=form,
        pools=candidates.pools,
        count=count,
        running=running,
        active=active,
        flow=flow,
        point_ids=point_ids,
        opened=solution.values.get("open", np.zeros(len(problem.sites))) > 0.5,
        resident=resident_workers(form, solution),
        failures=failures,
    )
    if problem.lines is not None:
        own = {site.region for site in problem.sites if site.api is None}  # an API has weights of its own
        sites = {w.name: {s for p in decided.used_by(w) for s in form.points[p].sites} & own for w in problem.serving}
        decided = replace(decided, lines=LineDecisions(problem, form, solution.values, flow, sites, active))
    if form.data.meters is not None:
        own_w = decided.site_power_w(owned_only=True)
        electricity = ElectricityDecisions(problem, form.data.meters, solution.values, own_w)
        decided = replace(decided, electricity=electricity)
    return replace(decided, opened=decided.opened & _in_use(decided))


def _in_use(decided: Decisions) -> Bools:
    """Mark the sites that hold systems or a copy of weights; the others close, whose fixed cost no objective but cost keeps out."""
    kept = {option.site.region for _, _, option, _ in decided.held()}
    if decided.lines is not None:
        kept |= decided.lines.copies
    return np.array([site.region in kept for site in decided.problem.sites])


def _without_rounding(flow: Floats) -> Floats:
    return np.where(flow > ROUNDING_TOL * max(flow.max(initial=0.0), 1e-30), flow, 0.0)


def _without_strays(flow: Floats, form: Formulation, solution: Solution) -> Floats:
    """Clear the flows that the solver's tolerance leaves at pools in slots in which no replica stands; other flows then serve their part."""
    data, standing = form.data, standing_points(form, solution)
    empty = np.ones((int(data.arc_pool.max(initial=-1)) + 1, data.slots), dtype=bool)
    serving = np.flatnonzero((data.point_pool >= 0) & (data.point_pool < len(empty)))
    np.logical_and.at(empty, data.point_pool[serving], ~standing[serving])
    small = flow < STRAY_TOL * max(flow.max(initial=0.0), 1e-30)
    return np.where(small & empty[data.arc_pool], 0.0, flow)


def _served_exactly(flow: Floats, form: Formulation, solution: Solution) -> Floats:
    """Scale flows to the demand, which the solver meets within its tolerance only."""
    data, result = form.data, flow.copy()
    factor = np.ravel(solution.values["lambda"])[0] if data.objective.maximises else 1.0
    asked = data.arc_asked()
    for w, o in sorted({(int(w), int(o)) for w, o in zip(asked, data.arc_origin, strict=True)}):
        mine = (asked == w) & (data.arc_origin == o)
        wanted = data.demand[w, o] * (factor if data.scaled()[w] else 1.0)
        total = flow[mine].sum(axis=0)
        if data.order is not None and data.wait_slots is not None and data.wait_slots[w]:
            for ring in rings(data.order.next):  # what waits is served in another slot of its ring
                step = data.order.step_s[ring]
                served = total[ring] * ((wanted[ring] @ step) / (total[ring] @ step)) if total[ring].any() else 0.0
                wanted[ring] = served
        result[mine] *= np.divide(wanted, total, out=np.ones_like(total), where=total > 0)
    return result


def _active(form: Formulation, candidates: Candidates, solution: Solution, flow: Floats) -> Floats:
    """Compute the replicas at work [point, slot]: no more than the flows and the work of jobs need, and none below 0, which is rounding."""
    data, values = form.data, solution.values
    replicas = np.maximum(values["x"], 0.0)
    active, standing = np.zeros((len(form.points), data.slots)), standing_points(form, solution)
    for q in range(len(candidates.pools)):
        members = np.flatnonzero(data.point_pool == q)
        running = np.where(standing[members], replicas[members], 0.0)
        running = np.where(running.any(axis=0), running, replicas[members])
        offered = data.point_capacity[members] @ running
        wanted = flow[data.arc_pool == q].sum(axis=0)
        active[members] = running * np.divide(wanted, offered, out=np.zeros_like(wanted), where=offered > 0)
    for p in np.flatnonzero(data.point_job >= 0).tolist():
        if values["y"][p] > 0.5:
            j = data.point_job[p]
            share = _without_rounding(np.clip(values["v"][p], 0.0, 1.0))
            if (
                not share.any()
            ):  # so little work that the solver rounds it away: spread it evenly over the slots with systems
                window = data.job_window_mask[j]
                share = (window & standing[p] if (window & standing[p]).any() else window).astype(float)
            done = data.point_capacity[p] * float(working_share(data, p, share) @ data.slot_hours_s)
            active[p] = share * (data.job_work[j] / done)
    return active


def standing_points(form: Formulation, solution: Solution) -> Bools:
    """Mark (point, slot) where all systems of the point are held, or run where they are counted by the hour, and whole workers hold its weights.

    Activity on a fraction of a system is rounding.
    """
    data = form.data
    held = np.rint(solution.values["n"])[:, None] * data.covers()[:, data.slot_window]
    if data.hourly is not None and "on" in solution.values:
        held = np.where(data.hourly.holding[:, None], np.rint(solution.values["on"]), held)
    there = np.zeros((len(data.option_site), data.slots))
    np.add.at(there, data.holding_option, held)
    standing = np.ones((len(data.point_pool), data.slots), dtype=bool)
    np.logical_and.at(standing, data.point_uses[:, 0], (there > 0)[data.point_uses[:, 1]])
    if "resident" in solution.values:
        apart = ~is_whole(data)[data.point_uses[:, 0], None]
        np.logical_and.at(standing, data.point_uses[:, 0], (np.rint(solution.values["resident"]) > 0) | apart)
    return standing


def count_held(form: Formulation, solution: Solution, active: Sequence[Floats]) -> Ints:
    """Count the systems of each holding; of an API, the most tokens per second that are used.

    `active`: replicas [point, slot] in normal operation, and after the failure of each zone.
    """
    data, count = form.data, np.rint(solution.values["n"]).astype(np.int64)
    for u, (k, _) in enumerate(form.holdings):
        if form.fleet_options[k].offer.how == API:
            mine = data.point_uses[:, 1] == k
            used = [data.point_uses_systems[mine] @ replicas[data.point_uses[mine, 0]] for replicas in active]
            count[u] = math.ceil(np.max(used, initial=0.0) * (1 - ROUNDING_TOL))
    return count


def _point_ids(form: Formulation, used: Bools) -> dict[int, str]:
    """Name the used points: workload/site/number."""
    numbers: dict[tuple[str, str], int] = defaultdict(int)
    names = {}
    for p in np.flatnonzero(used):
        point = form.points[p]
        key = (point.workload.name, point.site)
        names[int(p)] = f"{key[0]}/{key[1]}/{numbers[key]}"
        numbers[key] += 1
    return names
