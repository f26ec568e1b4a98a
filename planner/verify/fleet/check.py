"""Check a plan's fleet: whole numbers of systems on offer, at valid dates, on one network for each kind of system and site."""

from __future__ import annotations

from collections import defaultdict

from planner.messages import Message
from planner.problem.facts import exportable
from planner.verify.checked_plan import CheckedPlan, Row
from planner.verify.fleet.fabrics import Networks, OnNetwork, check_fabrics
from planner.verify.fleet.holdings import HELD_BY_PHASE, Holding, holding_of
from planner.verify.fleet.hourly import check_starts, running_in
from planner.verify.fleet.options import key_of


def check_fleet(plan: CheckedPlan) -> None:
    """Check every row of the fleet, then its networks, and keep the systems held by window."""
    networks: Networks = defaultdict(dict)
    seen: set[str] = set()
    for i, row in enumerate(plan.document["fleet"]):
        held = repr((key_of(row), row["window"], row.get("windows")))
        if held in seen:
            plan.say(f"fleet[{i}]", "verify.held_alike_twice")
        seen.add(held)
        _check_row(plan, f"fleet[{i}]", row, networks)
    check_starts(plan)
    for (site, system), chosen in networks.items():
        if len(chosen) > 1:
            names = ", ".join(f"{name} for {size}" for name, size in chosen)
            plan.say("fleet", "verify.several_networks", system=system, site=site, names=str(names))
    check_fabrics(plan, networks)


def _check_row(plan: CheckedPlan, path: str, row: Row, networks: Networks) -> None:
    key = key_of(row)
    option = plan.fleet_options[key]
    if type(row["count"]) is not int or row["count"] < 1:
        plan.say(f"{path}.count", "verify.whole_systems", given=repr(row["count"]))
    of_api = row["how"] == "api" and "flopwatt" in plan.document["versions"]  # release 0.1 gave no unit
    if of_api and row.get("unit") != "token/s":
        plan.say(f"{path}.unit", "verify.api_unit", given=repr(row.get("unit")))
    if (row["window"] is not None) != (row["how"] in HELD_BY_PHASE):
        plan.say(f"{path}.window", "verify.held_by_window")
    holding = holding_of(plan.problem, option, row, plan.annuities)
    plan.holdings.append(holding)
    plan.options_by_row.append(option)
    for words in holding.wrong:
        plan.tell(path, words)
    if not exportable(option.system, option.site, plan.problem.spec.limits):
        plan.say(path, "verify.export_control", system=row["system"], site=row["site"])
    if row["how"] == "buy":
        _put_on_network(plan, row, holding, networks)
    for window in holding.windows:
        plan.held[key][window] += row["count"]
    plan.running_by_row.append(running_in(plan, path, row, holding))
    for t, running in enumerate(plan.running_by_row[-1]):
        plan.running[key][t] += running
    plan.at_most(
        path,
        max(plan.held[key]),
        option.largest,
        Message.of("verify.systems_on_network", fabric=row["topology"]).text(),
    )


def _put_on_network(plan: CheckedPlan, row: Row, holding: Holding, networks: Networks) -> None:
    """Count the owned systems of a row on their network."""
    option = plan.fleet_options[key_of(row)]
    chosen = networks[row["site"], row["system"]]
    found = chosen.setdefault(
        (row["topology"], row["network_size"]), OnNetwork(option, [0.0] * plan.problem.calendar.windows)
    )
    for window in holding.windows:
        found.systems[window] += row["count"]
    found.charged += row["count"] * option.fabric_capital
