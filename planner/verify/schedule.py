"""Check a plan's schedule: power, energy and prices of every site and slot, and that no more systems are active than held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from planner.messages import Message
from planner.verify.checked_plan import CheckedPlan
from planner.verify.electricity import OF_A_METER
from planner.verify.fleet.options import CheckedOption, HeldKey, key_at, key_of
from planner.verify.timing import risen_by_slot

COUNT_TOL = 1e-9  # share of the tokens per second of an API, which are rounded up to a whole number


def check_schedule(plan: CheckedPlan) -> None:
    """Read the replicas at work, compute each row again, and compare."""
    seen = _read(plan)
    calendar = plan.problem.calendar
    used = {row["site"] for row in plan.document["fleet"]} | {
        name for name, site in plan.sites.items() if site.electricity is not None
    }
    if seen != {(site, t) for site in used for t in range(calendar.slots)}:
        plan.say("schedule", "verify.row_for_site_and_slot")
    plan.hours = {(site, t): row for site in plan.sites for t, row in enumerate(_hours(plan, site))}
    for i, row in enumerate(plan.document["schedule"]):
        decided = ["active", "resident", *(OF_A_METER if plan.sites[row["site"]].electricity is not None else ())]
        stated = {key: value for key, value in row.items() if key not in decided}
        plan.equal(f"schedule[{i}]", stated, plan.hours[row["site"], row["slot"]])
    _check_installed(plan)


def _read(plan: CheckedPlan) -> set[tuple[str, int]]:
    """Read the replicas at work into `plan.active`, and return the sites and slots that have a row."""
    seen: set[tuple[str, int]] = set()
    for i, row in enumerate(plan.document["schedule"]):
        t = row["slot"]
        if (row["site"], t) in seen or row["site"] not in plan.sites or not 0 <= t < plan.problem.calendar.slots:
            plan.say(f"schedule[{i}]", "verify.site_and_slot")
            continue
        seen.add((row["site"], t))
        for name, replicas in row["active"].items():
            if replicas < 0 or plan.points[name][0]["site"] != row["site"]:
                plan.say(f"schedule[{i}].active.{name}", "verify.negative_or_elsewhere")
            plan.active[name][t] += replicas
    return seen


def _hours(plan: CheckedPlan, region: str) -> Iterator[dict[str, Any]]:
    """Compute the row of each slot of a site."""
    calendar, site = plan.problem.calendar, plan.sites[region]
    rise = risen_by_slot(calendar, plan.problem.economics.escalation.electricity)
    held = [
        (counts, option)
        for key, counts in plan.running.items()
        if (option := plan.fleet_options[key]).site.region == region
    ]
    at_work = [
        (replicas, [(option, watts) for option, watts in plan.points[name][1].extra if option.site.region == region])
        for name, replicas in plan.active.items()
    ]
    for t in range(calendar.slots):
        window, hour = int(calendar.window[t]), int(calendar.hour[t])
        power_w, own_power_w = _power_w(held, at_work, t)
        seconds = float(calendar.seconds[t])
        yield {
            "site": region, "slot": t, "window": window, **calendar.when(t), "seconds": seconds,
            "power_w": power_w, "own_power_w": own_power_w, "energy_j": power_w * seconds,
            "price_per_j": float(site.price_per_j[hour]) * rise[t], "carbon_kg_per_j": float(site.carbon_kg_per_j[hour]),
        }  # fmt: skip


def _power_w(
    held: Sequence[tuple[list[float], CheckedOption]],
    at_work: Sequence[tuple[list[float], Sequence[tuple[CheckedOption, float]]]],
    t: int,
) -> tuple[float, float]:
    """Add up the power at the meter of all systems of a site, and of our own ones [W]."""
    every = own = 0.0
    for counts, option in held:
        watts = counts[t] * option.idle_at_meter_w
        every += watts
        own += watts if option.owned else 0.0
    for replicas, extras in at_work:
        for option, extra in extras:
            watts = replicas[t] * extra * option.pue
            every += watts
            own += watts if option.owned else 0.0
    return every, own


def _check_installed(plan: CheckedPlan) -> None:
    """Compare the systems at work in each slot with those held."""
    calendar = plan.problem.calendar
    uses = [
        (key_at(point["site"], pool), systems, replicas)
        for name, replicas in plan.active.items()
        for point, computed in (plan.points[name],)
        for pool, systems in zip(point["pools"], computed.systems, strict=True)
    ]
    bought: dict[HeldKey, float] = defaultdict(float)
    for t in range(calendar.slots):
        busy: dict[HeldKey, float] = defaultdict(float)
        for key, systems, replicas in uses:
            busy[key] += replicas[t] * systems
        for key, at_work in busy.items():
            if key[2] == "api":
                bought[key] = max(bought[key], at_work)
            held = plan.running[key][t]
            plan.at_most(
                f"schedule slot {t}",
                at_work,
                held,
                Message.of("verify.systems_at_work", place="/".join(key[:3])).text(),
            )
    for row in plan.document.get("failures", ()):  # tokens may be bought when a zone fails only
        busy = defaultdict(float)
        for name, at_work in row["active"].items():
            point, computed = plan.points[name]
            for pool, systems in zip(point["pools"], computed.systems, strict=True):
                busy[key_at(point["site"], pool)] += at_work * systems
        for key, tokens_per_s in busy.items():
            bought[key] = max(bought[key], tokens_per_s)
    for i, row in enumerate(plan.document["fleet"]):
        most = bought[key_of(row)]
        if row["how"] == "api" and not most * (1 - COUNT_TOL) <= row["count"] < most * (1 - COUNT_TOL) + 1:
            plan.say(f"fleet[{i}].count", "verify.tokens_bought", given=repr(row["count"]), most=f"{most:.9g}")
