"""Check the section `confidence`: draw the scenarios again, and redispatch the fleet that the document describes in each of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from models.arrays import Bools, Floats
from planner.plan.rows.robust import LateJob
from planner.problem.facts import REDUCED, TrainingFacts
from planner.problem.intervals import network
from planner.problem.scenarios import CONFIDENCE_SCENARIOS, CONFIDENCE_SEED, draw, with_robust
from planner.scenarios.redispatch import left_out
from planner.verify.checked_plan import CheckedPlan
from planner.verify.preemption import lost_share, trained_chips
from planner.verify.robust.fixed_fleet import FleetReader
from planner.verify.robust.outcome import capacities
from solvers.fixed_fleet.many_scenarios import settle
from solvers.interface import SolverError

PRICED_SHARE = 0.8  # share of the scenarios
BY_HOUR = ("on_demand", "spot")
WHOLE_TOL = 1e-6  # scenarios: rounding of a share of them
SCENARIOS_TOL = 1.5  # scenarios that a solver on another machine may judge otherwise


def check_confidence(plan: CheckedPlan) -> None:
    """Compare the shares with a redispatch, and the rest of the section with the plan."""
    found = plan.document.get("confidence")
    if found is None:
        return
    if plan.problem.spec.robust is not None or plan.document["objective"]["value"] is None:
        plan.say("confidence", "verify.only_if_not_robust")
        return
    plan.equal("confidence.scenarios", found["scenarios"], CONFIDENCE_SCENARIOS)
    plan.equal("confidence.seed", found["seed"], CONFIDENCE_SEED)
    problem = with_robust(plan.problem)
    plan.equal("confidence.left_out", found["left_out"], left_out(problem, pauses=True))
    _check_words(plan)
    if found["left_out"] or not plan.same_figures or plan.problem.bound_of == REDUCED:
        return  # routes or figures are not those of the program
    if plan.found:
        return  # what is wrong elsewhere is told; the fleet of such a plan is no basis
    scenarios = draw(problem, CONFIDENCE_SCENARIOS, CONFIDENCE_SEED)
    reader = FleetReader(plan)
    rate, slower = np.zeros((len(reader.jobs), scenarios.count)), np.ones((len(reader.jobs), scenarios.count))
    for j, (facts, point, option) in enumerate(reader.jobs):
        key = option.system.chip, network(facts.architecture.experts)
        slower[j] = scenarios.training.get(key, np.ones(scenarios.count))
        rate[j] = point["capacity"] * _share_at_work(plan, facts, point) / slower[j]
    try:
        again = settle(reader.fleet().without_dominated_slots(), capacities(problem, reader, scenarios), rate)
    except SolverError as error:  # figures that no program takes, or a fleet that does not keep its limits even idle
        plan.say("confidence", "verify.not_dispatched", error=str(error))
        return
    names = (*(w.name for w in problem.serving), *(facts.name for facts, _, _ in reader.jobs))
    if again.open.any():
        return
    late = {row["workload"]: row for row in found.get("late_jobs", ())}
    for j, (facts, point, _) in enumerate(reader.jobs):
        in_time = again.done[:, len(problem.serving) + j]
        row = late.get(facts.name)
        if row is not None and round(row["kept"] * CONFIDENCE_SCENARIOS) == in_time.sum():
            _check_slack(plan, row, facts, point, slower[j], in_time)
    shares = {"kept": float(again.kept.mean())} | {
        f"workloads.{name}": float(again.done[:, i].mean()) for i, name in enumerate(names)
    }
    stated = {"kept": found["kept"]} | {f"workloads.{name}": share for name, share in found["workloads"].items()}
    if stated.keys() != shares.keys():
        plan.say(
            "confidence.workloads", "verify.other_names", given=", ".join(found["workloads"]), found=", ".join(names)
        )
        return
    for name, share in shares.items():
        if abs(stated[name] - share) * CONFIDENCE_SCENARIOS > SCENARIOS_TOL and not found["open"]:
            plan.say(f"confidence.{name}", "verify.redispatch", given=f"{stated[name]:.4f}", found=f"{share:.4f}")


def _share_at_work(plan: CheckedPlan, facts: TrainingFacts, point: Mapping[str, Any]) -> float:
    """Compute the share of the time at work of a job that its pauses leave."""
    active, seconds = plan.active[point["id"]], [float(s) for s in plan.problem.calendar.seconds]
    lost = lost_share(plan.problem, facts, trained_chips(point), plan.sites[point["site"]], active)
    run_s = sum(width * s for width, s in zip(active, seconds, strict=True))
    return 1.0 - sum(part * s for part, s in zip(lost, seconds, strict=True)) / run_s if run_s else 1.0


def _check_slack(
    plan: CheckedPlan, row: LateJob, facts: TrainingFacts, point: Mapping[str, Any], slower: Floats, in_time: Bools
) -> None:
    """Compute again how much slower the steps of a job may be, how much slower they are, and the systems that make up for it."""
    calendar, active = plan.problem.calendar, plan.active[point["id"]]
    busy_s = sum(width * float(s) for width, s in zip(active, calendar.seconds, strict=True))
    window_s = sum(
        float(s)
        for s, inside in zip(calendar.seconds, calendar.within(facts.spec.start, facts.spec.deadline))
        if inside
    )
    could = [factor for factor, kept in zip(slower.tolist(), in_time.tolist(), strict=True) if kept]
    stretch = min(max([1.0, *could]), window_s / busy_s)
    worst_allowed = sorted(slower.tolist())[math.ceil(PRICED_SHARE * len(slower)) - 1]
    [pool] = point["pools"]
    at_work = pool["systems_per_replica"] - pool.get("spares", 0.0)
    path = f"confidence.late_jobs.{facts.name}"
    plan.equal(f"{path}.slack", row["slack"], stretch - 1.0)
    plan.equal(f"{path}.slower", row["slower"], worst_allowed - 1.0)
    plan.equal(f"{path}.count", row["count"], math.ceil(at_work * (worst_allowed - stretch) * busy_s / window_s - 1e-6))


def _check_words(plan: CheckedPlan) -> None:
    """Check that the promise that breaks first is the one kept least, and what a surer plan costs."""
    found, known = plan.document["confidence"], {*plan.serving, *plan.training}
    for name, share in found["workloads"].items():
        if abs(share * CONFIDENCE_SCENARIOS - round(share * CONFIDENCE_SCENARIOS)) > WHOLE_TOL:
            path, code = f"confidence.workloads.{name}", "verify.no_share_of_scenarios"
            plan.say(path, code, given=str(share), count=str(CONFIDENCE_SCENARIOS))
    least = min(found["workloads"].values(), default=1.0)
    if not 0 <= found["kept"] <= least + 1e-12 or found["workloads"].keys() - known:
        plan.say("confidence.kept", "verify.all_promises_kept")
    first = found["breaks_first"]
    if (first is None) != (least >= 1.0):
        plan.say("confidence.breaks_first", "verify.names_broken_promise")
    elif first is not None and not (first["kept"] == found["workloads"].get(first["workload"]) == least):
        plan.say("confidence.breaks_first", "verify.not_least_kept")
    for row in found.get("late_jobs", ()):
        if row["kept"] != found["workloads"].get(row["workload"]) or row["kept"] >= PRICED_SHARE:
            plan.say("confidence.late_jobs", "verify.late_job_kept", job=row["workload"])
    _check_hired(plan)
    upgrade = found["upgrade"]
    if upgrade is not None:
        held = {(row["site"], row["system"], row["how"]) for row in plan.document["fleet"]}
        if not found["kept"] < upgrade["share"] == PRICED_SHARE or any(
            (r["site"], r["system"], r["how"]) not in held for r in upgrade["systems"]
        ):
            plan.say("confidence.upgrade", "verify.adds_to_less_sure")


def _check_hired(plan: CheckedPlan) -> None:
    """Check that systems hired later are on offer by the hour at their sites, and that they are hired in as many scenarios as the promise lacks."""
    confidence = plan.document["confidence"]
    hired = confidence.get("hired")
    if hired is None:
        return
    offers = {offer.path: offer for offer in plan.problem.offers}
    for i, row in enumerate(hired["systems"]):
        offer = offers.get(row["offer"])
        if (
            offer is None
            or (offer.system, offer.how) != (row["system"], row["how"])
            or row["site"] not in offer.prices
            or row["how"] not in BY_HOUR
        ):
            plan.say(f"confidence.hired.systems[{i}]", "verify.not_on_offer")
        elif not 0 < row["most"] <= offer.supply:
            plan.say(
                f"confidence.hired.systems[{i}].most",
                "verify.not_above",
                given=repr(row["most"]),
                most=repr(offer.supply),
            )
    lacking = math.ceil(PRICED_SHARE * CONFIDENCE_SCENARIOS) - round(confidence["kept"] * CONFIDENCE_SCENARIOS)
    if hired["share"] != PRICED_SHARE or lacking <= 0 or round(hired["used_in"] * CONFIDENCE_SCENARIOS) != lacking:
        plan.say("confidence.hired.used_in", "verify.no_share_by_hour", share=f"{PRICED_SHARE:.0%}", found=str(lacking))
    if not hired["systems"]:
        plan.say("confidence.hired.systems", "verify.no_share_by_hour", share=f"{PRICED_SHARE:.0%}", found="0")
    if not hired["cost"] >= 0:
        plan.say("confidence.hired.cost", "verify.not_above", given="0", most=repr(hired["cost"]))
