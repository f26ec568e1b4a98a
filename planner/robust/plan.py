"""Make the robust plan of a problem: the fleet found by `planner.robust.search`, operated as predicted, with a check of its promise.

This module writes the section `robustness` of a plan document; `planner.verify.robust.check` checks it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.candidates.cache import Grids
from planner.candidates.points import Candidates, use_row
from planner.formulate.formulation import Formulation
from planner.formulate.limits import Unbounded
from planner.formulate.porting import needs
from planner.interpret.framing import without_answer
from planner.messages import Message, with_codes
from planner.plan import Plan
from planner.plan.rows.robust import NotRobust
from planner.problem.facts import FLEET, ResolvedSpec
from planner.problem.phases import API
from planner.problem.quality import settled
from planner.problem.scenarios import LEVELS_SHOWN, draw, price_ranges, uncertain
from planner.report.words import whole
from planner.resolve.price_steps import raised
from planner.robust.search import ScenarioSearch, required_scenarios
from planner.scenarios.redispatch import Deployment, left_out
from planner.solving.answer import answer
from planner.solving.deadline import options_of
from planner.solving.variants import answered, points_found
from planner.verify.check import read_through
from planner.verify.robust.check import cost_by_price, outcome_in

FRESH_SCENARIOS = 1000  # scenarios of another seed on which the promise is checked
BY_BATCH = ("batch", "extra_power_w", "memory_bytes")  # keys of a pool
MAX_ATTEMPTS = 3  # searches, each for more scenarios where the last fleet kept too few fresh ones


def robust_plan(
    problem: ResolvedSpec,
    document: dict[str, Any],
    *,
    overlays: Sequence[Path],
    progress: Callable[[str], None] | None,
    threads: int,
) -> Plan:
    """Plan a problem with a `robust` block; the plan has no answer if no fleet found keeps the required share."""
    report = progress or (lambda line: None)
    grids: Grids = {}
    candidates = points_found(problem, grids)
    options = options_of(problem.spec, threads)
    try:
        nominal = answered(problem, candidates, options)
    except Unbounded:
        return without_answer(problem, candidates, "unbounded", None, document)
    if not nominal.solution.values:
        return answer(
            problem,
            candidates,
            document,
            overlays=overlays,
            progress=progress,
            threads=threads,
            solve_program=lambda data, options: nominal.solution,
        )
    report(
        Message.of(
            "progress.as_predicted",
            cost=whole(nominal.solution.functionals["cost"]),
            status=nominal.solution.status,
            seconds=f"{nominal.solution.seconds:.1f}",
        ).text()
    )
    problem, candidates = nominal.problem, nominal.candidates  # the architectures chosen as predicted are kept
    running = {facts.workload: facts.members for facts in problem.quality}
    steps = {path: settled(other, running) for path, other in raised(problem, overlays).items()}
    search = ScenarioSearch(problem, candidates, nominal, options, steps, grids, report)
    asked, wanted = problem.robust, required_scenarios(problem)
    fresh = draw(problem, FRESH_SCENARIOS, asked.seed + 1)
    as_planned = nominal.plan(document)
    before = as_planned.document
    spent = cost_by_price(problem, before, steps, read_through)
    as_predicted = outcome_in(problem, before, fresh, spent, read_through)
    keeps = search.starts_as_predicted and as_predicted.share >= asked.confidence
    for attempt in range(MAX_ATTEMPTS):
        if not (keeps and attempt == 0) and not search.run(
            wanted
        ):  # a fleet that keeps the promise already is not made dearer
            break
        plan = _plan_with_fleet(search, candidates, document, overlays, progress, threads)
        if not plan.has_answer:  # limits may hold over the undominated slots and fail over all
            break
        standing = _beside(plan, [_row(d) for d in search.found.further])
        promised: dict[str, Any] = {**plan.document, "bound_of": FLEET, "robustness": {"standing_by": standing}}
        amounts = cost_by_price(problem, promised, steps, read_through)
        outcome = outcome_in(problem, promised, fresh, amounts, read_through)
        report(Message.of("progress.fresh_kept", share=f"{outcome.share:.1%}", count=FRESH_SCENARIOS).text())
        if outcome.share >= asked.confidence:
            promised["robustness"] = {
                "confidence": asked.confidence, "measure": asked.measure, "sampled": search.found.outcome.as_json() | {"seed": asked.seed},
                "fresh": outcome.as_json() | {"seed": asked.seed + 1},
                "nominal": {"value": as_planned.value} | as_predicted.as_json(),
                "price": plan.value - as_planned.value, "scenarios_in_program": len(search.active),
                "prices": [{**row, "amount": amounts[row["path"]]} for row in price_ranges(problem)], "uncertain": uncertain(problem), "levels": list(LEVELS_SHOWN), "standing_by": standing, "left_out": left_out(problem),
            }  # fmt: skip
            return Plan.of(promised)
        wanted = min(
            wanted + int(np.ceil((asked.confidence - outcome.share + 0.5 / FRESH_SCENARIOS) * asked.scenarios)),
            asked.scenarios,
        )
    return Plan(
        {**without_answer(problem, candidates, "limit", None, document).document, "robustness": _not_found(search)}
    )


def _plan_with_fleet(
    search: ScenarioSearch,
    candidates: Candidates,
    document: dict[str, Any],
    overlays: Sequence[Path],
    progress: Callable[[str], None] | None,
    threads: int,
) -> Plan:
    """Plan with at least the fleet found, and jobs at the placements found.

    Where throughput is maximised, the scenarios bound it in this program too, as they do how requests are split among architectures. The
    ports of standby layouts are paid.
    """
    found, maximises = search.found.answer, bool(search.problem.spec.objective.maximise) or search.splits
    values, data, points = found.solution.values, found.form.data, found.form.points
    bought = np.array([found.form.fleet_options[k].offer.how == API for k in data.holding_option], dtype=bool)
    lower = np.where(bought, 0.0, np.rint(values["n"]))  # how many tokens are bought is decided in each scenario
    scenarios = search.over_all_slots() if maximises and search.active else None
    chosen = {
        points[p].workload.name: (points[p],) for p in np.flatnonzero((data.point_job >= 0) & (values["y"] > 0.5))
    }

    standing = tuple(deployment.point for deployment in search.found.further)

    def with_fleet(form: Formulation) -> Formulation:
        ports = form.data.ports
        if ports is not None:
            paid = [any(needs(facts, point) for point in standing) for facts in search.problem.porting]
            ports = replace(ports, paid=np.array(paid, dtype=bool))
        return replace(
            form,
            standing=standing,
            data=replace(
                form.data,
                holding_lower=lower,
                holding_upper=np.maximum(form.data.holding_upper, lower),
                scenarios=scenarios,
                ports=ports,
            ),
        )

    held = candidates if maximises else replace(candidates, training={job: chosen[job] for job in candidates.training})
    return answer(
        search.problem,
        held,
        document,
        overlays=overlays,
        progress=progress,
        threads=threads,
        diagnosing=False,
        prepare=with_fleet,
    )


def _row(deployment: Deployment) -> dict[str, Any]:
    """Write a standby layout in the form of a plan's points."""
    point = deployment.point
    return {
        "workload": point.workload.name,
        "site": point.site,
        **({} if point.power_cap is None else {"power_cap": point.power_cap, "capacity": point.capacity}),
        "pools": [use_row(use) for use in point.uses],
    }


def _beside(plan: Plan, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """List the layouts that do not run as predicted, each once: those that run are at hand in every scenario."""
    runs = {_identity(row["name"], point) for row in plan["workloads"] for point in row["points"]}
    beside = {_identity(row["workload"], row): row for row in rows}
    return [row for key, row in beside.items() if key not in runs]


def _identity(workload: str, point: Mapping[str, Any]) -> str:
    """Return what tells layouts apart: all but the batch, which each scenario chooses."""
    pools = [{name: value for name, value in pool.items() if name not in BY_BATCH} for pool in point["pools"]]
    return json.dumps([workload, point["site"], point.get("power_cap"), pools], sort_keys=True)


def _not_found(search: ScenarioSearch) -> NotRobust:
    """Write the section where no fleet was found that keeps the promise, which does not prove that there is none."""
    asked, reached = search.problem.robust, search.best / search.problem.robust.scenarios
    words = Message.of("robust.not_found", asked=f"{asked.confidence:.0%}", reached=f"{reached:.1%}").text()
    found: NotRobust = {"confidence": asked.confidence, "reached": reached, "words": words}
    return with_codes(found, "words")
