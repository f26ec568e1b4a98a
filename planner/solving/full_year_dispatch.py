"""Dispatch a plan made on few typical hours over all hours of the year, with its fleet, contracts and batteries fixed.

The result is the plan's cost on the full year. Each month is a program of its own
(`solvers.fixed_fleet.full_year_dispatch`); the work that jobs do in each month is taken from the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from catalog.units import DAY_S
from models.arrays import Floats, Ints, sum_of
from planner.candidates.points import Candidates, OperatingPoint
from planner.formulate.formulation import Formulation, formulate
from planner.formulate.joint_network import kept_apart, kind_of
from planner.formulate.porting import needs
from planner.interpret.accounts import Accounts
from planner.interpret.solution import read_solution
from planner.money.terms import COST
from planner.plan.rows.money import Totals
from planner.plan.rows.quality import Dispatch
from planner.problem.calendar import DAYS_PER_YEAR, FULL_YEAR, Calendar
from planner.problem.facts import REDUCED, ResolvedSpec
from solvers.fixed_fleet.full_year_dispatch import DispatchResult, dispatch
from solvers.interface import Options
from solvers.model.data import PlanData
from solvers.model.fabric import exceedable
from solvers.model.preemption import working_share
from solvers.solution import Solution

SHARE_TOL = 1e-7  # shares of unmet demand below this are rounding
UNMET_PRICE = 10.0  # price of unmet demand, as a multiple of the plan's mean cost per request or unit of work


def is_asked(problem: ResolvedSpec) -> bool:
    """Tell whether the spec asks for a dispatch, and the plan is one of a reduced calendar."""
    return problem.bound_of == REDUCED and problem.spec.horizon.dispatch


def dispatched(
    problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution, totals: Totals,
    overlays: Sequence[Path], options: Options,
) -> Dispatch | None:  # fmt: skip
    """Build the `dispatch` of a plan document: cost and carbon over all hours, unserved requests and unfinished work; None if out of time."""
    full = _on_all_hours(problem, overlays)
    held = _held(full, candidates, form, solution)
    long = formulate(full, held)
    data, factor = (
        long.data.divisible().by_use(),
        float(np.ravel(solution.values["lambda"])[0]) if form.data.objective.maximises else 1.0,
    )
    if form.data.objective.maximises:
        data = replace(data, demand=data.demand * np.where(data.scaled() > 0, factor, 1.0)[:, None, None])
    long = replace(long, data=data)
    months = _months(full.calendar)
    functional = COST if form.data.objective.maximises else form.data.objective.functional
    found = dispatch(
        data,
        _fixed(form, long, solution),
        _work(problem, form, long, solution),
        months,
        functional,
        _unmet_prices(totals, data),
        options,
    )
    if found is None:
        return None
    accounts = Accounts(read_solution(full, held, long, _as_solution(solution, found, long, form)))
    asked = float((data.demand.sum(axis=(0, 1)) * data.slot_hours_s).sum())
    left = float((found.unmet.sum(axis=(0, 1)) * data.slot_hours_s).sum())
    undone = float((found.unfinished / data.job_work).max(initial=0.0)) if len(data.job_work) else 0.0
    cost = float(sum_of(accounts.cost_lines.values()))
    return {
        "slots": full.calendar.slots,
        "cost": cost,
        "carbon_kg": float(sum_of(accounts.carbon_lines.values())),
        "difference": cost / totals["cost"] - 1.0 if totals["cost"] else 0.0,
        "unmet": _share(left / asked if asked else 0.0),
        "unfinished": _share(undone),
        "left_out": ["failures of zones"] if form.data.spread is not None and form.data.spread.survives.any() else [],
        "seconds": found.seconds,
    }


def _share(value: float) -> float:
    """Return a share, or 0 where it is within the solver's rounding."""
    return value if value > SHARE_TOL else 0.0


def _on_all_hours(problem: ResolvedSpec, overlays: Sequence[Path]) -> ResolvedSpec:
    """Resolve the spec on the full-year calendar, with the architectures of the plan."""
    from planner.problem.quality import settled
    from planner.solving.variants import resolved_anew

    horizon = problem.spec.horizon.model_copy(update={"calendar": FULL_YEAR, "days": None})
    full = resolved_anew(problem.spec.model_copy(update={"horizon": horizon}), overlays)
    return settled(full, {facts.workload: facts.members for facts in problem.quality})


def _held(full: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution) -> Candidates:
    """Return the candidates of the full problem: the plan's fleet options with all their points, and one point per job."""
    counts = np.rint(solution.values["n"])
    here = {id(form.fleet_options[k]) for u, (k, _) in enumerate(form.holdings) if counts[u]}
    known = {workload.name: workload for workload in full.serving}
    paid = solution.values.get("port", np.zeros(0)) > 0.5
    apart = kept_apart(form.points, _joins(form, solution))

    def able(point: OperatingPoint) -> bool:
        crosses = point.exchange is None and len({use.option.system.name for use in point.uses}) > 1
        if crosses and any(kind_of(use.option) in apart for use in point.uses):
            return False
        return all(id(use.option) in here for use in point.uses) and all(
            paid[g] or not needs(facts, point) for g, facts in enumerate(full.porting)
        )

    pools = tuple(
        replace(
            pool,
            workload=known[pool.workload.name],
            points=tuple(replace(p, workload=known[pool.workload.name]) for p in pool.points if able(p)),
        )
        for pool in candidates.pools
    )
    chosen = {form.points[p].workload.name: form.points[p] for p in np.flatnonzero(solution.values["y"] > 0.5)}
    training = {job.name: (replace(chosen[job.name], workload=job),) for job in full.training}
    return Candidates(tuple(option for option in form.fleet_options if id(option) in here), pools, training, {}, 0)


def _joins(form: Formulation, solution: Solution) -> Floats:
    """[N]: 1 for kinds of systems that may share their network: those that join, and those of networks that hold all anyway."""
    if form.data.joint is None:
        return np.zeros(0)
    free = ~exceedable(form.data)[form.data.joint.network]
    found: Floats = np.maximum(solution.values.get("joins", np.ones(len(free))), free)
    return found


def _fixed(form: Formulation, long: Formulation, solution: Solution) -> dict[str, Floats]:
    """Move the plan's integers and sizes to the positions of the full problem."""
    values = solution.values
    counts = {
        (id(form.fleet_options[k]), window): float(np.rint(values["n"][u]))
        for u, (k, window) in enumerate(form.holdings)
    }
    fixed = {"n": np.array([counts[id(long.fleet_options[k]), window] for k, window in long.holdings])}
    fixed |= {block: np.rint(values[block]) for block in ("open", "host", "unit", "c") if block in values}
    fixed |= {block: values[block] for block in ("contract", "energy", "power", "way", "send") if block in values}
    run = np.zeros((len(long.points), long.data.windows))
    of_job = {form.data.point_job[p]: p for p in np.flatnonzero(values["y"] > 0.5)}
    for p in np.flatnonzero(long.data.point_job >= 0):
        before = of_job[long.data.point_job[p]]
        worked = np.zeros(long.data.windows)
        np.maximum.at(worked, form.data.slot_window, values["v"][before])
        run[p] = worked > 0
    return fixed | {"run": run}


def _months(calendar: Calendar) -> list[Ints]:
    """List the slots of each month (UTC)."""
    month = np.array([int(calendar.days[day][5:7]) for day in range(DAYS_PER_YEAR)])[calendar.hour // 24]
    return [np.flatnonzero(month == number) for number in dict.fromkeys(month.tolist())]


def _work(problem: ResolvedSpec, form: Formulation, long: Formulation, solution: Solution) -> Floats:
    """Compute the work [job, month] that the plan does in the days of each month, for which its slots stand."""
    calendar, jobs = problem.calendar, len(long.data.job_work)
    begin = np.arange(round(calendar.horizon_s / DAY_S)) * DAY_S
    shared = np.minimum(calendar.edges_s[1:, None], begin + DAY_S) - np.maximum(calendar.edges_s[:-1, None], begin)
    shared = np.maximum(shared, 0.0)  # [window, day of the horizon]
    day = np.arange(shared.shape[1]) % DAYS_PER_YEAR
    month = _month_of_day(calendar)[day]
    order = list(dict.fromkeys(_month_of_day(calendar).tolist()))
    spent = np.zeros((calendar.windows, int(calendar.day_of.max()) + 1, len(order)))
    for position, number in enumerate(order):
        mine = month == number
        for window in range(calendar.windows):
            np.add.at(spent[window, :, position], calendar.day_of[day[mine]], shared[window, mine])
    share = spent / np.maximum(spent.sum(axis=2, keepdims=True), 1e-300)
    of_slot = share[calendar.window, calendar.hour // 24]  # [slot, month]
    work = np.zeros((jobs, len(order)))
    for p in np.flatnonzero((form.data.point_job >= 0) & (solution.values["y"] > 0.5)).tolist():
        done = (
            form.data.slot_hours_s * form.data.point_capacity[p] * working_share(form.data, p, solution.values["v"][p])
        )
        work[form.data.point_job[p]] += done @ of_slot
    total = work.sum(axis=1, keepdims=True)
    scale: Floats = np.divide(long.data.job_work[:, None], total, out=np.zeros_like(total), where=total > 0)
    return work * scale


def _month_of_day(calendar: Calendar) -> Ints:
    """Return the month of each day [365] from the start of the calendar."""
    months = [(calendar.start + timedelta(days=day)).month for day in range(DAYS_PER_YEAR)]
    return np.array(months, dtype=np.int64)


def _unmet_prices(totals: Totals, data: PlanData) -> tuple[float, float]:
    """Price a request that is not served, and a unit of work that is not done."""
    requests = float((data.demand.sum(axis=(0, 1)) * data.slot_hours_s).sum())
    amount = UNMET_PRICE * max(totals["cost"], totals["carbon_kg"], 1.0)
    return amount / requests if requests else 0.0, amount / float(data.job_work.sum()) if len(data.job_work) else 0.0


def _as_solution(solution: Solution, found: DispatchResult, long: Formulation, form: Formulation) -> Solution:
    """Combine dispatch and plan into a solution of the full problem."""
    data, values = long.data, dict(found.values)
    fixed = _fixed(form, long, solution)
    values |= {
        "n": fixed["n"],
        "y": (data.point_job >= 0).astype(float),
        "open": solution.values.get("open", np.zeros(data.sites)),
        "lambda": np.array(1.0),
    }
    values |= {
        block: solution.values[block]
        for block in ("contract", "energy", "power", "unit", "way", "send", "pass")
        if block in solution.values
    }
    return replace(solution, values=values)
