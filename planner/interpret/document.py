"""Build the plan document from a problem, its candidates and a solution.

Not here: the check of the plan (`planner.verify.plan`), which writes every amount and row a second time. Both use the resolved
spec, the closed forms through `planner.evaluate` (the order of ranks among them), and the price per system of networks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from models.arrays import sum_of
from planner.candidates.points import Candidates
from planner.formulate.formulation import Formulation
from planner.interpret.accounts import Accounts, Line
from planner.interpret.decisions import Decisions
from planner.interpret.deployments import replicas_and_deployments
from planner.interpret.fabrics import fabric_rows
from planner.interpret.facility import facility_rows
from planner.interpret.framing import (
    assumption_rows,
    coverage,
    dropped,
    noted,
    provenance,
    sense_and_unit,
    solver,
    versions,
)
from planner.interpret.hourly import by_hour, hours_of
from planner.interpret.limit_rows import limit_rows
from planner.interpret.load.kv_tiers import kv_tier_rows
from planner.interpret.load.packing import packing_rows
from planner.interpret.marginal_values import MarginalValues
from planner.interpret.money.contents import content_rows
from planner.interpret.owned import owned_rows, rented_rows
from planner.interpret.phases import obtained, phase_rows
from planner.interpret.preemption import preemption_rows
from planner.interpret.quality import quality_rows
from planner.interpret.schedule import route_rows, schedule_rows
from planner.interpret.simplicity import simplicity_row
from planner.interpret.solution import read_solution
from planner.interpret.storage import storage_rows
from planner.interpret.workloads import WorkloadRows
from planner.money.terms import CARBON
from planner.plan import PLAN_SCHEMA_VERSION, Plan
from planner.problem.facility import OPEN
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API, BY_WINDOW, TOKENS_PER_S
from planner.problem.spread import is_asked
from solvers.backends.highs_run import OPTIMAL_GAP
from solvers.mip import relative_gap
from solvers.solution import Solution


def interpret(
    problem: ResolvedSpec,
    candidates: Candidates,
    form: Formulation,
    solution: Solution,
    document: dict[str, Any],
    values: MarginalValues,
) -> Plan:
    """Build the plan for a solution that has values; `document`: the spec."""
    decided = read_solution(problem, candidates, form, solution)
    accounts, workloads = Accounts(decided), WorkloadRows(decided)
    costs = accounts.by_component()
    totals = _totals(decided, accounts, sum_of(costs.values()))
    functional = form.data.objective.functional
    sense, unit = sense_and_unit(document)
    value = {"cost": totals["cost"], "carbon_kg": totals["carbon_kg"]}.get(functional)
    if value is None:
        value = float(np.ravel(solution.values["lambda"])[0])
    bound = solution.bound
    gap = None if bound is None else relative_gap(value, bound)
    objective = {"sense": sense, "value": value, "unit": unit}
    rows = limit_rows(decided, accounts, workloads.predicted_latencies())
    charged = accounts.carbon_lines if functional == CARBON else accounts.cost_lines
    return Plan.of(
        {
            "schema_version": PLAN_SCHEMA_VERSION,
            "name": problem.spec.name,
            "status": _status(solution, value),
            "objective": objective,
            "bound": bound,
            "bound_of": problem.bound_of,
            "gap": gap,
            **({} if solution.relaxed_bound is None else {"bound_divisible": solution.relaxed_bound}),
            "totals": totals,
            "fleet": _fleet_rows(decided),
            **({"owned": owned_rows(decided)} if problem.spec.owned else {}),
            **({"rented": rented_rows(decided)} if problem.spec.rented else {}),
            "fabrics": fabric_rows(decided),
            "workloads": workloads.rows(accounts.by_workload()),
            **(
                {"quality": quality_rows(problem, form, decided.flow, _standing(problem, decided))}
                if problem.quality
                else {}
            ),
            **replicas_and_deployments(decided),
            **({"packing": packing_rows(decided)} if decided.resident else {}),
            **simplicity_row(decided, solution, objective),
            "routes": route_rows(decided),
            "schedule": schedule_rows(decided),
            **_feature_tables(decided, accounts),
            "costs": costs,
            "cost_lines": _line_rows(accounts.cost_lines),
            "carbon_lines": _line_rows(accounts.carbon_lines),
            "limits": values.fill_in(rows),
            "runner_up": values.runner_up,
            **dropped(candidates),
            **coverage(candidates, problem.spec.solver.whole),
            **noted(problem),
            "assumptions": assumption_rows(problem.assumptions, charged),
            "provenance": provenance(problem),
            "versions": versions(),
            "solver": solver(problem, solution),
            "diagnosis": None,
            "catalog_digest": problem.catalog_digest,
            "spec": document,
        }
    )


def _status(solution: Solution, value: float) -> str:
    """Return the status of the best plan found; a simpler one that is worse is not optimal."""
    if solution.status != "optimal" or solution.before is None:
        return solution.status
    return "optimal" if relative_gap(value, solution.before[0]) <= OPTIMAL_GAP else "within_gap"


def _standing(problem: ResolvedSpec, decided: Decisions) -> set[str]:
    """Name the serving workloads that may answer without a part of the plan's requests: after a failure, or in a scenario."""
    kept = {workload.name for workload in problem.serving} if problem.spec.robust is not None else set()
    return kept | decided.failures.answering()


def _feature_tables(decided: Decisions, accounts: Accounts) -> dict[str, Any]:
    """Build the tables of the optional features that the spec uses."""
    problem, data = decided.problem, decided.form.data
    tables: dict[str, Any] = {}
    if decided.lines is not None:
        tables |= {"lines": decided.lines.lines(accounts.amounts), "placements": decided.lines.placements()}
    if is_asked(problem):
        tables["spread"] = decided.spread()
    if decided.failures.flow:
        tables["failures"] = decided.failures.rows(decided.point_ids, decided.pool_name)
    if decided.electricity is not None:
        tables["electricity"] = decided.electricity.table(accounts.amounts)
    if any(site.contents.unknown for site in problem.sites):
        tables["price_contents"] = content_rows(decided, accounts)
    if problem.phases:
        tables["phases"] = phase_rows(decided, accounts)
    if data.point_restart_s is not None:
        tables["preemptions"] = preemption_rows(decided, data.point_restart_s)
    if data.site_storage is not None:
        tables["storage"] = storage_rows(decided)
    if problem.spec.kv_tiers:
        tables["kv_tiers"] = kv_tier_rows(decided)
    if any(site.hall != OPEN for site in problem.sites):
        tables["facility"] = facility_rows(decided)
    return tables


def _totals(decided: Decisions, accounts: Accounts, cost: float) -> dict[str, Any]:
    """Add up cost, carbon, energy, tokens, chips and peak power of the plan."""
    problem, form = decided.problem, decided.form
    chips = np.zeros(problem.calendar.windows)
    for u, (k, term) in enumerate(form.holdings):
        chips[term.first : term.last + 1] += decided.count[u] * form.fleet_options[k].system.chips
    served = sum_of(
        float(decided.flow[a] @ problem.calendar.seconds) * problem.serving[w].spec.lengths.output
        for a, (w, *_) in enumerate(form.arcs)
    )
    return {
        "cost": cost,
        "carbon_kg": sum_of(accounts.carbon_lines.values()),
        "energy_j": accounts.energy_j,
        "tokens": served + sum_of(job.spec.tokens for job in problem.training),
        "chips": int(chips.max(initial=0)),
        "peak_power_w": float(decided.site_power_w(owned_only=False).sum(axis=0).max(initial=0.0)),
    }


def _fleet_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each holding with systems in it."""
    kept, hourly = np.flatnonzero(decided.count), by_hour(decided.problem, decided.form)
    return [
        {
            "site": option.site.region,
            "system": option.system.name,
            "count": count,
            **({"unit": TOKENS_PER_S} if option.offer.how == API else {}),
            "how": option.offer.how,
            "window": term.first if option.offer.how in BY_WINDOW else None,
            "topology": option.fabric,
            "network_size": option.size,
            "offer": option.offer.path,
            **({"tenant": option.tenant} if option.tenant else {}),
            **(obtained(decided.problem, term) if term.dated else {}),
            **(hours_of(decided.problem, term, decided.running[u]) if hourly[u] else {}),
        }
        for u, (term, count, option, _) in zip(kept.tolist(), decided.held(), strict=True)
    ]


def _line_rows(lines: dict[Line, float]) -> list[dict[str, Any]]:
    """Build one row for each cost or carbon line."""
    return [
        {"component": component, "site": site, "system": system, "how": how, "amount": amount}
        for (component, site, system, how), amount in sorted(lines.items())
    ]
