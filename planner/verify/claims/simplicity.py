"""Check the parts that a plan counts, and that it is as good as it says beside the best plan found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.messages import Message
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.findings import RELATIVE_TOL

ROW = "simplicity"
API = "api"


def check_simplicity(plan: CheckedPlan) -> None:
    """Count the deployments, kinds and sites of a plan again, and compare its value with that of the best plan found."""
    _check_least_systems(plan)
    _check_least_orders(plan)
    row = plan.document.get(ROW)
    if row is None:
        return
    fleet = plan.document["fleet"]
    counted = {
        "within": plan.problem.spec.simplicity.within,
        "deployments": len({_deployment(computed.workload, point) for point, computed in plan.points.values()}),
        "kinds": len({(held["site"], held["system"]) for held in fleet}),
        "sites": len({held["site"] for held in fleet}),
    }
    plan.equal(ROW, {name: row[name] for name in counted}, counted)
    value, best = plan.document["objective"]["value"], row["best"]["value"]
    sign = -1.0 if plan.document["objective"]["sense"] == "max" else 1.0
    lost = sign * (value - best)
    if not -RELATIVE_TOL * abs(best) <= lost <= (row["within"] + RELATIVE_TOL) * abs(best):
        plan.say(
            f"{ROW}.best.value",
            "verify.worth_outside_band",
            value=repr(value),
            share=f"{row['within']:.2%}",
            best=repr(best),
        )
    if lost > RELATIVE_TOL * abs(best) and row["deployments"] > row["best"]["deployments"]:
        plan.say(f"{ROW}.best.deployments", "verify.worse_with_more_deployments")
    _check_ladder(plan, row)


def _check_ladder(plan: CheckedPlan, row: Row) -> None:
    """Compare the ladder with the best plan and the plan itself: fewer deployments at each step, the share above the best, and by the rule the one chosen."""
    rungs, best = row.get("ladder"), row["best"]["value"]
    if not rungs:  # releases up to 0.2 stated none
        return
    sign = -1.0 if plan.document["objective"]["sense"] == "max" else 1.0
    if rungs[0]["deployments"] != row["best"]["deployments"]:
        plan.say(f"{ROW}.ladder[0].deployments", "verify.ladder_begins_elsewhere")
    for i, rung in enumerate(rungs):
        if i and rung["deployments"] >= rungs[i - 1]["deployments"]:
            plan.say(f"{ROW}.ladder[{i}].deployments", "verify.ladder_step_not_fewer")
        above = max(sign * (rung["value"] - best) / abs(best), 0.0) if best else 0.0
        if abs(rung["above"] - above) > RELATIVE_TOL:
            plan.say(f"{ROW}.ladder[{i}].above", "verify.says", given=repr(rung["above"]), found=repr(above))
    if "confidence_gain" in plan.document:
        return  # chosen among several for its confidence
    made = [rung for rung in rungs if not rung["estimated"] and rung["above"] <= row["within"] + RELATIVE_TOL]
    rate = plan.problem.spec.simplicity.rate
    least = min(_rank(rung, sign, rate * abs(best)) for rung in made) if made else None
    mine = [rung for rung in made if rung["deployments"] == row["deployments"]]
    if least is None or not mine:
        plan.say(f"{ROW}.ladder", "verify.ladder_without_plan", count=str(row["deployments"]))
    elif _rank(mine[0], sign, rate * abs(best)) > least + RELATIVE_TOL * abs(best):
        plan.say(f"{ROW}.ladder", "verify.simpler_is_better")


def _rank(rung: Row, sign: float, worth: float) -> float:
    """Return the value with the worth of its deployments, or their number where nothing else counts; the least is to be taken."""
    return float(rung["deployments"]) if worth == float("inf") else sign * rung["value"] + worth * rung["deployments"]


def check_confidence_gain(plan: CheckedPlan) -> None:
    """Compare the section `confidence_gain` with the other sections of the plan."""
    row, sure = plan.document.get("confidence_gain"), plan.document.get("confidence")
    if row is None:
        return
    if sure is None or "simplicity" not in plan.document:
        plan.say("confidence_gain", "verify.needs_confidence")
        return
    plan.equal("confidence_gain.within", row["within"], plan.problem.spec.simplicity.within)
    plan.equal("confidence_gain.kept", row["kept"], sure["kept"])
    if row["kept"] <= row["kept_before"]:
        plan.say(
            "confidence_gain.kept", "verify.kept_no_more", kept=f"{row['kept']:.1%}", before=f"{row['kept_before']:.1%}"
        )
    for i, more in enumerate(row["further"]):
        key = (more["site"], more["system"], more["how"])
        held = sum(
            each["count"] for each in plan.document["fleet"] if (each["site"], each["system"], each["how"]) == key
        )
        if not 0 < more["count"] <= held:
            plan.say(
                f"confidence_gain.further[{i}].count", "verify.more_than_held", count=str(more["count"]), held=str(held)
            )


def _deployment(workload: str, point: Row) -> tuple[Any, ...]:
    """Return what identifies a deployment: workload, site, and how each pool runs on which system."""
    pools = (
        (
            *(
                pool["role"],
                pool["system"],
                pool["precision"],
                pool.get("kv_precision"),
                pool.get("waiting"),
                pool.get("encoding"),
            ),
            *(*sorted(pool["layout"].items()), pool["batch"]),
            *((pool["site"], point["path"]["design"]) if "site" in pool else ()),
        )
        for pool in point["pools"]
    )
    return (workload, point["site"], point.get("power_cap"), *pools)


def part_values(plan: CheckedPlan) -> Iterator[tuple[str, str, float, float]]:
    """Yield (path, name, value, limit) of sites with systems, and of kinds of systems at a site at a time."""
    asked, held = plan.problem.spec.simplicity, _systems(plan)
    if asked.most_sites is not None:
        sites = {site for site, _ in held}
        yield "simplicity.most_sites", Message.of("limit.most_sites").text(), float(len(sites)), float(asked.most_sites)
    if asked.most_kinds is not None:
        counts = [
            sum(1 for (at, _), systems in held.items() if at == site and systems[w])
            for site, _ in held
            for w in range(plan.problem.calendar.windows)
        ]
        yield (
            "simplicity.most_kinds",
            Message.of("limit.most_kinds").text(),
            float(max(counts, default=0)),
            float(asked.most_kinds),
        )


def _check_least_systems(plan: CheckedPlan) -> None:
    """Check that enough systems of each kind are held at each site that has some."""
    least = plan.problem.spec.simplicity.least_systems or 1
    for (site, system), counts in _systems(plan).items():
        if few := [count for count in counts if 0 < count < least]:
            plan.say(
                "fleet", "verify.fewer_than_site_asks", count=str(few[0]), system=system, site=site, least=str(least)
            )


def _check_least_orders(plan: CheckedPlan) -> None:
    """Check that enough systems are obtained by each offer that has a least count, over all sites and phases."""
    rows = list(zip(plan.document["fleet"], plan.options_by_row, strict=True))
    for offer in plan.problem.offers:
        if offer.stated_at:  # counts towards the offer without tiers
            continue
        count = sum(row["count"] for row, option in rows if option.offer.order == offer.path)
        if 0 < count < offer.least:
            plan.say(
                "fleet",
                "verify.fewer_than_offer_asks",
                count=str(count),
                system=offer.system,
                offer=offer.path,
                least=str(offer.least),
            )


def _systems(plan: CheckedPlan) -> dict[tuple[str, str], list[int]]:
    """Count the systems of each kind at each site by window, but for APIs."""
    found: dict[tuple[str, str], list[int]] = {}
    for row, holding in zip(plan.document["fleet"], plan.holdings, strict=True):
        if row["how"] == API:
            continue
        counts = found.setdefault((row["site"], row["system"]), [0] * plan.problem.calendar.windows)
        for window in holding.windows:
            counts[window] += row["count"]
    return found
