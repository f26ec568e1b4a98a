"""Check the section `adaptation`: its sums, shares and dates against the spec and the plan.

Not here: a replay of the policy in fresh scenarios (`planner.verify.adapt`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from planner.plan.rows.adapt import Adaptation, Way
from planner.verify.checked_plan import CheckedPlan
from planner.verify.robust.adapt_tree import check_tree

SUM_TOL = 1e-6  # share of the cost of the plan
WHOLE_TOL = 1e-6  # part of a number of scenarios


def check_adaptation(plan: CheckedPlan) -> None:
    """Compare what the section states with the spec and with itself; a plan has the section if its spec has a block `adapt`."""
    asked, found = plan.problem.spec.adapt, plan.document.get("adaptation")
    answered = plan.document["objective"]["value"] is not None
    if (found is not None and asked is None) or (answered and asked is not None and "adaptation" not in plan.document):
        plan.say("adaptation", "verify.needs_adapt_block")
    if found is None or asked is None:
        return
    plan.equal("adaptation.promise", found["promise"], asked.promise)
    plan.equal("adaptation.risk", found["risk"], asked.risk)
    plan.equal("adaptation.plain_cost", found["plain_cost"], plan.document["totals"]["cost"], SUM_TOL)
    _check_rows(plan, found)
    _check_needs(plan, found)
    _check_drawn(plan, found)
    _check_costs(plan, found)
    check_tree(plan, found)
    for path, share in _shares(found):
        if not 0.0 <= share <= 1.0 + WHOLE_TOL:
            plan.say(path, "verify.no_share", given=repr(share))
    for before, after in pairwise(found["dates"]):
        if (
            after["at_s"] <= before["at_s"]
            or before["performance"] > after["performance"]
            or before["demand"] > after["demand"]
            or before.get("prices", False) > after.get("prices", False)
        ):
            plan.say("adaptation.dates", "verify.dates_forget")


def _check_rows(plan: CheckedPlan, found: Adaptation) -> None:
    """Check that everything to sign is on offer at its site, and within the supply of its offer."""
    offers = {offer.path: offer for offer in plan.problem.offers}
    regions = {site.region for site in plan.problem.sites}
    counts: dict[str, float] = {}
    tables: dict[str, Sequence[Way]] = {"sign": found["sign"], "open": found["open"], "triggers": found["triggers"]}
    for table, rows in tables.items():
        for i, row in enumerate(rows):
            offer = offers.get(row["offer"])
            if (
                offer is None
                or row["site"] not in regions
                or (offer.prices and row["site"] not in offer.prices)
                or (offer.system, offer.how) != (row["system"], row["how"])
            ):
                plan.say(f"adaptation.{table}[{i}]", "verify.not_on_offer")
    for signed in found["sign"]:
        counts[signed["offer"]] = counts.get(signed["offer"], 0.0) + signed["count"]
    for path, count in counts.items():
        if path in offers and count > offers[path].supply:
            plan.say("adaptation.sign", "verify.not_above", given=repr(count), most=repr(offers[path].supply))
    owned: dict[str, float] = {}
    for i, kept in enumerate(found.get("kept", ())):
        owned[kept["offer"]] = owned.get(kept["offer"], 0.0) + kept["count"]
        offer = offers.get(kept["offer"])
        if offer is None or offer.owned is None or offer.system != kept["system"]:
            plan.say(f"adaptation.kept[{i}]", "verify.not_on_offer")
        elif owned[kept["offer"]] > offer.supply:
            plan.say(
                f"adaptation.kept[{i}]", "verify.not_above", given=repr(owned[kept["offer"]]), most=repr(offer.supply)
            )


def _check_needs(plan: CheckedPlan, found: Adaptation) -> None:
    """Check the order of needs in scenarios, and chips signed against the systems to sign that are there by each date."""
    chips = {name: system.chips for name, system in plan.problem.systems.items()}
    own = [o.supply * chips[o.system] for o in plan.problem.offers if o.owned is not None or o.rented is not None]
    for i, row in enumerate(found.get("needs", ())):
        if not 0.0 <= row["low"] <= row["typical"] <= row["high"]:
            plan.say(f"adaptation.needs[{i}]", "verify.not_above", given=repr(row["low"]), most=repr(row["high"]))
        there = sum(
            each["count"] * chips[each["system"]] for each in found["sign"] if each["from_s"] <= row["from_s"] + 1.0
        )
        most, path = there + sum(own), f"adaptation.needs[{i}].signed"
        if row["signed"] > most * (1 + SUM_TOL):
            plan.say(path, "verify.not_above", given=repr(row["signed"]), most=repr(most))
        if i == 0 and row["signed"] < there * (1 - SUM_TOL):  # later on systems retire
            plan.say(path, "verify.says", given=repr(row["signed"]), found=repr(there))


def _check_drawn(plan: CheckedPlan, found: Adaptation) -> None:
    """Check the uncertain times of delivery and prices against the spec: every offer that may come late, and low, typical and high in order."""
    stated = {
        f"offers[{i}]": offer.delivery
        for i, offer in enumerate(plan.problem.spec.offers or ())
        if offer.delivery is not None
    }
    rows = {row["offer"]: (row["low_s"], row["typical_s"], row["high_s"]) for row in found.get("deliveries", ())}
    late = {}
    for path, each in stated.items():
        low, high = (each.typical if bound is None else bound for bound in (each.low, each.high))
        if high > each.typical:
            late[path] = (low, each.typical, high)
    if rows != late and "deliveries" in found:
        plan.say("adaptation.deliveries", "verify.says", given=repr(rows), found=repr(late))
    for i, price in enumerate(found.get("prices", ())):
        if not 0.0 <= price["low"] <= price["typical"] <= price["high"]:
            plan.say(f"adaptation.prices[{i}]", "verify.not_above", given=repr(price["low"]), most=repr(price["high"]))
    asked = plan.problem.spec.adapt
    if found.get("prices") and asked is not None and not asked.prices:
        plan.say("adaptation.prices", "verify.says", given=repr(len(found["prices"])), found="0")


def _check_costs(plan: CheckedPlan, found: Adaptation) -> None:
    """Check differences, the order of percentiles, and shares that are of whole scenarios."""
    fresh, fixed, values, gap = found["fresh"], found["fixed"], found["values"], found["gap"]
    if fixed is not None and values["adapting"] is not None:
        difference = fixed["cost"] - found["tree_cost"]
        if abs(difference - values["adapting"]) > SUM_TOL * abs(found["plain_cost"]):
            plan.say(
                "adaptation.values.adapting", "verify.says", given=repr(values["adapting"]), found=repr(difference)
            )
    if abs(fresh["kept"] * fresh["scenarios"] - round(fresh["kept"] * fresh["scenarios"])) > WHOLE_TOL:
        given, count = repr(fresh["kept"]), str(fresh["scenarios"])
        plan.say("adaptation.fresh.kept", "verify.no_share_of_scenarios", given=given, count=count)
    if fresh["p10"] > fresh["p90"]:
        plan.say("adaptation.fresh", "verify.not_above", given=repr(fresh["p10"]), most=repr(fresh["p90"]))
    known = values["perfect"]
    knowing = {
        "performance": values["performance"], "demand": values["demand"], "prices": values.get("prices"), "deliveries": values.get("deliveries"),
    }  # fmt: skip
    for name, value in knowing.items():
        if known is not None and value is not None and value > known + SUM_TOL * abs(found["plain_cost"]):
            plan.say(f"adaptation.values.{name}", "verify.not_above", given=repr(value), most=repr(known))
    if gap is not None and gap["bound"] < gap["mean"]:
        plan.say("adaptation.gap", "verify.not_above", given=repr(gap["mean"]), most=repr(gap["bound"]))


def _shares(found: Adaptation) -> Iterator[tuple[str, float]]:
    """Yield all shares of scenarios with their paths."""
    yield "adaptation.fresh.kept", found["fresh"]["kept"]
    yield "adaptation.tree_kept", found["tree_kept"]
    for i, row in enumerate(found["open"]):
        yield f"adaptation.open[{i}].share", row["share"]
    for i, rule in enumerate(found["triggers"]):
        yield f"adaptation.triggers[{i}].share", rule["share"]
        yield f"adaptation.triggers[{i}].agrees", rule["agrees"]
