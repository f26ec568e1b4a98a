"""Check a plan's amounts: cost and carbon by line, totals, and the cost of each workload."""

from __future__ import annotations

from collections import defaultdict

from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.options import HeldKey, key_at, site_worth
from planner.verify.load.classes import check_classes
from planner.verify.load.prefix_routing import check_prefix_routing
from planner.verify.load.sessions import check_sessions
from planner.verify.sums import add_up


def check_amounts(plan: CheckedPlan) -> None:
    """Add up all amounts, keep them, and compare them with the plan's."""
    plan.sums = add_up(plan)
    if plan.lines is not None:
        plan.sums.lines.update(plan.lines.costs)
        for name, amount in plan.lines.by_workload.items():
            plan.sums.by_workload[name] += amount
        _add_sites_of_copies(plan, plan.lines.copies)
    for section, computed in (("cost_lines", plan.sums.lines), ("carbon_lines", plan.sums.carbon)):
        rows = plan.document[section]
        stated = {(row["component"], row["site"], row["system"], row["how"]): row["amount"] for row in rows}
        if len(stated) < len(rows):
            plan.say(section, "verify.line_twice")
        for key in sorted({*stated, *computed}):
            plan.equal(f"{section} {'/'.join(filter(None, key))}", stated.get(key), computed.get(key))
    components: dict[str, float] = defaultdict(float)
    for (component, *_), amount in plan.sums.lines.items():
        components[component] += amount
    plan.equal("costs", plan.document["costs"], components)
    plan.equal("totals", plan.document["totals"], _totals(plan))
    for w, row in enumerate(plan.document["workloads"]):
        _check_workload(plan, f"workloads[{w}]", row)
        _check_slo(plan, f"workloads[{w}].slo", row)
        check_classes(plan, f"workloads[{w}]", row)
        check_sessions(plan, f"workloads[{w}]", row)
        check_prefix_routing(plan, f"workloads[{w}]", row)


def _add_sites_of_copies(plan: CheckedPlan, copies: set[str]) -> None:
    """Add the fixed cost and the crew of sites that only keep a copy of weights, split evenly over all workloads."""
    names = [*plan.serving, *plan.training]
    for region in copies - {row["site"] for row in plan.document["fleet"]}:
        for component, amount in site_worth(plan.problem, plan.sites[region]).items():
            plan.sums.lines[component, region, "", ""] = amount
            for name in names:
                plan.sums.by_workload[name] += amount / len(names)


def _totals(plan: CheckedPlan) -> dict[str, float]:
    calendar = plan.problem.calendar
    chips = [
        sum(counts[w] * plan.fleet_options[key].system.chips for key, counts in plan.held.items())
        for w in range(calendar.windows)
    ]
    seconds = [float(s) for s in calendar.seconds]
    served = sum(s * rate for name in plan.serving for s, rate in zip(seconds, plan.tokens[name], strict=True))
    sites = {key[0] for key in plan.held}
    power = [sum(plan.hours[site, t]["power_w"] for site in sites) for t in range(calendar.slots)]
    return {
        "cost": sum(plan.sums.lines.values()),
        "carbon_kg": sum(plan.sums.carbon.values()),
        "energy_j": plan.sums.energy_j,
        "tokens": served + sum(job.spec.tokens for job in plan.problem.training),
        "chips": int(max(chips, default=0)),
        "peak_power_w": max(power, default=0.0) if sites else 0.0,
    }


def _check_workload(plan: CheckedPlan, path: str, row: Row) -> None:
    """Compare a workload's tokens, cost, utilisation and sales with its row."""
    calendar, name = plan.problem.calendar, row["name"]
    mine, seconds, cost = plan.points_of(name), [float(s) for s in calendar.seconds], plan.sums.by_workload[name]
    rates = list(zip(seconds, calendar.discount.tolist(), plan.tokens[name], strict=True))
    worth = sum(s * discount * rate for s, discount, rate in rates)
    busy = {n: plan.points[n][1].chips * sum(a * s for a, s in zip(plan.active[n], seconds, strict=True)) for n in mine}
    done = sum(s * rate for s, _, rate in rates)
    computed = {
        "tokens": done,
        "cost": cost,
        "cost_per_million_tokens": cost / worth * 1e6 if worth else None,
        **(
            {"utilisation": _utilisation(plan, mine)} if "flopwatt" in plan.document["versions"] else {}
        ),  # 0.1: over the peak
        "mfu": _mean({n: plan.points[n][1].mfu for n in mine}, busy),
    }
    if "hfu" in row or (name in plan.training and any("hfu" in point for point in row["points"])):
        computed["hfu"] = _mean({n: plan.points[n][1].hfu for n in mine}, busy)
    if name in plan.serving and (sold_at := plan.serving[name].sold_at) is not None:
        computed |= {"revenue": worth * sold_at, "margin": worth * sold_at - cost}
    job = plan.training.get(name)
    if isinstance(job, ReinforcementFacts):
        each = job.spec.iteration_tokens
        computed |= {
            "iterations": done / each,
            "cost_per_iteration": cost / worth * each if worth else None,
        }
    plan.equal(path, {key: row.get(key) for key in computed}, computed)
    for i, point in enumerate(row["points"]):
        plan.equal(f"{path}.points[{i}].peak_replicas", point["peak_replicas"], max(plan.active[point["id"]]))


def _utilisation(plan: CheckedPlan, mine: list[str]) -> float | None:
    """Compute the chip time at work over that held of the systems that some points stand on; None where they stand on none."""
    calendar = plan.problem.calendar

    def systems(name: str) -> dict[HeldKey, float]:
        """Systems of one replica by fleet option."""
        point = plan.points[name][0]
        found: dict[HeldKey, float] = defaultdict(float)
        for pool in point["pools"]:
            found[key_at(point["site"], pool)] += pool["systems_per_replica"]
        return found

    used = {key for name in mine for key in systems(name) if plan.fleet_options[key].system.chips}
    slot_s = [float(seconds) for seconds in calendar.seconds]
    held = sum(
        plan.fleet_options[key].system.chips * sum(n * s for n, s in zip(plan.running[key], slot_s, strict=True))
        for key in used
    )
    busy = sum(
        plan.fleet_options[key].system.chips
        * each
        * sum(a * float(s) for a, s in zip(active, calendar.seconds, strict=True))
        for name, active in plan.active.items()
        for key, each in systems(name).items()
        if key in used
    )
    return busy / held if held else None


def _mean(values: dict[str, float], weights: dict[str, float]) -> float | None:
    """Average values by weight; None where all weights are 0."""
    total = sum(weights.values())
    return sum(values[name] * weights[name] for name in values) / total if any(weights.values()) else None


def _check_slo(plan: CheckedPlan, path: str, row: Row) -> None:
    """Compare the worst latency over a workload's points with its limits."""
    facts = plan.serving.get(row["name"])
    wanted = facts.spec.limits() if facts else []
    if [(r["metric"], r["percentile"]) for r in row["slo"]] != [(limit.metric, limit.percentile) for limit in wanted]:
        plan.say(path, "verify.limits_in_order")
        return
    for i, (limit, stated) in enumerate(zip(wanted, row["slo"], strict=True)):
        place = f"{path}[{i}]"
        worst = max((plan.latency_at_origin(name, limit) for name in plan.points_of(row["name"])), default=None)
        computed = {"limit_s": limit.seconds, "predicted_s": worst}
        plan.equal(place, {key: stated[key] for key in computed}, computed)
        if worst is not None and None not in (stated["predicted_s"], stated["slack_s"]):
            plan.equal(f"{place}.slack_s", stated["slack_s"], stated["limit_s"] - stated["predicted_s"])
            plan.at_most(place, worst, limit.seconds, f"{limit.metric} {limit.percentile}")
        elif (stated["slack_s"] is None) is not (worst is None):
            plan.say(f"{place}.slack_s", "verify.null_if_unserved")
