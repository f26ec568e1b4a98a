"""Hold the hours or the sites of work as they are in a plan, by limits on the program of a spec.

`time` holds sites: of each served workload, the requests of a year that each site answers, and of each job, the work of each site, stay as in the
plan; when it is done is free within what the spec lets wait or pause. `space` holds hours: of each served workload and job, the work of each slot
stays; where it is done is free. `neither` holds both totals, so that it saves by the choice of systems and networks alone; `both` holds nothing.

Each is a least and a most at once: the sum over sites, or over slots, is the demand, so that upper limits on all parts hold each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from models.arrays import Bools, Floats, Ints
from planner.formulate.formulation import Formulation
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec
from solvers.model.data import Limit, PlanData

NEITHER, TIME, SPACE, BOTH = WAYS = ("neither", "time", "space", "both")
HOLDS_SITES, HOLDS_HOURS = (NEITHER, TIME), (NEITHER, SPACE)
SERVING = "serving"
SERVED_TOL, WORK_TOL = 1e-6, 1e-3
"""Relative: by which a part may grow, so that rounding keeps no plan out; of jobs more, whose restarts take a little time as well."""


Amounts = Mapping[str, Floats]  # by workload or job: the part of its work in each [site, slot]


def holding(way: str, plan: Plan, problem: ResolvedSpec) -> Callable[[Formulation], Formulation]:
    """Make a function that adds to a formulation of the problem the limits by which a way holds the hours or sites of a plan."""
    parts = parts_of(plan, problem)
    lost = {row["workload"]: row["lost_share"] for row in plan.document.get("preemptions", ())}

    def held(form: Formulation) -> Formulation:
        """Add the limits, each on a functional of its own."""
        return form if way == BOTH else replace(form, data=_held(form, way, problem, parts, lost))

    return held


def parts_of(plan: Plan, problem: ResolvedSpec) -> Amounts:
    """Compute the part of its requests, or of its work, that each served workload and job has at each site in each slot [R, T]."""
    site_of = {site.region: r for r, site in enumerate(problem.sites)}
    seconds, shape = problem.calendar.seconds, (len(problem.sites), problem.calendar.slots)
    found: dict[str, Floats] = {}
    for route in plan.document["routes"]:
        part = found.setdefault(route["workload"], np.zeros(shape))
        part[site_of[route["site"]], route["slot"]] += route["tokens_per_s"] * seconds[route["slot"]]
    job_of = {
        point["id"]: row["name"]
        for row in plan.document["workloads"]
        if row["kind"] != SERVING
        for point in row["points"]
    }
    for slot in plan.document["schedule"]:
        for point, active in slot["active"].items():
            if point in job_of:
                part = found.setdefault(job_of[point], np.zeros(shape))
                part[site_of[slot["site"]], slot["slot"]] += active * slot["seconds"]
    return {name: part / part.sum() for name, part in found.items() if part.sum() > 0}


def _held(form: Formulation, way: str, problem: ResolvedSpec, parts: Amounts, lost: Mapping[str, float]) -> PlanData:
    """Add a functional and a limit for each site, each slot, or each of both, of each workload and job; `lost`: share of a job's time that restarts take."""
    data = form.data
    arc_cost, point_cost, limits = dict(data.arc_cost), dict(data.point_cost), list(data.limits)
    site, point_site = data.arc_site, data.point_site()
    seconds = data.slot_hours_s
    for w, workload in enumerate(problem.serving):
        if (part := parts.get(workload.name)) is None:
            continue
        total = float((data.demand[w].sum(axis=0) * seconds).sum())
        each = np.where((data.arc_workload == w)[:, None], seconds[None, :], 0.0)
        for name, rows, slots, share in _cells(way, workload.name, part):
            arc_cost[name] = each * np.isin(site, rows)[:, None] * slots[None, :]
            limits.append(Limit(name, name, share * total * (1 + SERVED_TOL)))
    for j, job in enumerate(problem.training):
        if (part := parts.get(job.name)) is None:
            continue
        done = float(data.job_work[j]) / (1 - lost.get(job.name, 0.0))
        each = np.where((data.point_job == j)[:, None], data.point_capacity[:, None] * seconds[None, :], 0.0)
        for name, rows, slots, share in _cells(way, job.name, part):
            point_cost[name] = each * np.isin(point_site, rows)[:, None] * slots[None, :]
            limits.append(Limit(name, name, share * done * (1 + WORK_TOL)))
    return replace(data, arc_cost=arc_cost, point_cost=point_cost, limits=tuple(limits))


def _cells(way: str, name: str, part: Floats) -> Iterator[tuple[str, Ints, Bools, float]]:
    """Yield (name, sites, mask of slots, share) of what a way holds: the parts of sites, of slots, or both."""
    sites, slots = part.shape
    if way in HOLDS_SITES:
        for r in range(sites):
            yield f"held {name} site {r}", np.array([r]), np.ones(slots, dtype=bool), float(part[r].sum())
    if way in HOLDS_HOURS:
        for t in range(slots):
            yield f"held {name} slot {t}", np.arange(sites), np.arange(slots) == t, float(part[:, t].sum())
