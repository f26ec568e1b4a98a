"""Check the stated policy row by row: dates in time, prices added up again, layouts evaluated again, and orders against other tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from models.arrays import Floats
from planner.plan.rows.adapt import Adaptation, DecisionDate
from planner.plan.rows.adapt_policy import Commitment, Layout
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import BY_WINDOW
from planner.verify.adapt.cut import BORDER_S, Schedule, dates_of
from planner.verify.checked_plan import CheckedPlan
from planner.verify.findings import RELATIVE_TOL, UNREADABLE, Report, words_of
from planner.verify.fleet.holdings import Holding, holding_of
from planner.verify.fleet.options import HeldKey, key_at, key_of
from planner.verify.points.evaluate import computed_again
from planner.verify.sums import add_up

ORDERED = 0.5  # systems from which a leaf counts as ordering
COUNT_TOL = 1e-6  # systems

Row = dict[str, Any]


def check_rows(
    report: Report, found: Adaptation, problem: ResolvedSpec, schedule: Schedule, document: Mapping[str, Any]
) -> None:
    """Check dates, commitments and layouts against the problem that is cut at the dates, and the tables that follow from them."""
    expected = dates_of(schedule)
    stated: list[DecisionDate] = [
        {"at_s": row["at_s"], "performance": row["performance"], "demand": row["demand"]} for row in found["dates"]
    ]
    report.equal("adaptation.dates", stated, expected, RELATIVE_TOL)
    if report.found:
        return
    pricer = Pricer(problem, document)
    for i, row in enumerate(found["commitments"]):
        path = f"adaptation.commitments[{i}]"
        try:
            _check_commitment(report, path, row, found, schedule, pricer)
        except UNREADABLE as error:
            report.say(path, "verify.unreadable", error=words_of(error))
    for i, layout in enumerate(found["layouts"]):
        _check_layout(report, f"adaptation.layouts[{i}]", layout, pricer.plan)
    _check_tables(report, found)
    check_weights(report, found)


class Pricer:
    """Price one system of an option over some windows, by the sums of the checks."""

    def __init__(self, problem: ResolvedSpec, document: Mapping[str, Any]):
        self.problem = problem
        kept = {key: document[key] for key in ("versions", "objective")}
        self.empty: Row = {**kept, "fleet": [], "workloads": [], "schedule": [], "routes": [], "deployments": []}
        self.plan = CheckedPlan(problem, self.empty, True)
        self.edges = [float(edge) for edge in problem.calendar.edges_s]

    def window_at(self, moment_s: float) -> int:
        """Return the window that begins at a moment. Raises ValueError where none does."""
        near = int(np.argmin([abs(edge - moment_s) for edge in self.edges]))
        if abs(self.edges[near] - moment_s) > BORDER_S:
            raise ValueError(f"no window begins {moment_s:g} s from the start")
        return near

    def held(self, row: Commitment, first: int, last: int) -> tuple[Row, Holding]:
        """Return the fleet row of one system that is held over windows, and its holding, with faults of these windows."""
        key = key_of(row)
        option = self.plan.fleet_options[key]
        begin = self.edges[first]
        phase = next(phase for phase in self.problem.phases if phase.start_s <= begin + BORDER_S < phase.end_s)
        by_window = row["how"] in BY_WINDOW
        fleet: Row = {
            **{name: row.get(name, "") for name in ("site", "system", "how", "offer", "topology", "tenant")},
            "network_size": row["network_size"], "count": 1, "obtained": phase.name, "price": 0.0,
            **({"window": first} if by_window else {"window": None, "windows": [first, last]}),
        }  # fmt: skip
        fleet["price"] = holding_of(self.problem, option, fleet, False).price
        return fleet, holding_of(self.problem, option, fleet, False)

    def cost(self, fleet: Row, holding: Holding) -> float:
        """Add up what the system of a fleet row costs, idle, without sites."""
        plan = CheckedPlan(self.problem, {**self.empty, "fleet": [fleet]}, True)
        plan.holdings.append(holding)
        return sum(amount for (_, _, system, _), amount in add_up(plan).lines.items() if system)

    def by_use(self, key: HeldKey) -> Floats:
        """Price one system of an option that is paid by use over each slot, infinite where it is not on offer, [slot]."""
        calendar = self.problem.calendar
        offer = self.plan.fleet_options[key].offer
        site = self.plan.sites[key[0]]
        found = np.full(calendar.slots, np.inf)
        for w, begin in enumerate(self.edges[:-1]):
            if not max(offer.from_s, site.from_s) - BORDER_S <= begin < offer.until_s - BORDER_S:
                continue
            mine = np.asarray(calendar.window) == w
            if key[2] == "api":
                found[mine] = 0.0
                continue
            row: Row = dict(zip(("site", "system", "how", "topology", "network_size", "offer"), key[:6], strict=True))
            fleet, holding = self.held(row, w, w)  # type: ignore[arg-type]
            worth = np.asarray(calendar.seconds * calendar.discount)[mine]
            found[mine] = self.cost(fleet, holding) * worth / worth.sum()
        return found


def _check_commitment(
    report: Report, path: str, row: Commitment, found: Adaptation, schedule: Schedule, pricer: Pricer
) -> None:
    """Check the date, the time, the price and the counts of a row."""
    begin, until = row["from_s"], row["until_s"]
    latest = schedule.last_in_time(row["how"], begin, row["returns"])
    if abs(row["decided_s"] - latest) > BORDER_S:
        report.say(f"{path}.decided_s", "verify.last_date", given=f"{row['decided_s']:g}", found=f"{latest:g}")
    first, last = pricer.window_at(begin), pricer.window_at(until) - 1
    if row["returns"]:
        kept, shorter = pricer.held(row, 0, first - 1)
        whole, longer = pricer.held(row, 0, last)
        wrong, cost = shorter.wrong, pricer.cost(kept, shorter) - pricer.cost(whole, longer)
    else:
        fleet, holding = pricer.held(row, first, last)
        wrong, cost = holding.wrong, pricer.cost(fleet, holding)
    for words in wrong:
        report.tell(path, words)
    report.equal(f"{path}.cost", row["cost"], cost, RELATIVE_TOL)
    wanted = 1 if row["decided_s"] == 0.0 else found["leaves"]
    if len(row["counts"]) != wanted:
        report.say(f"{path}.counts", "verify.leaves_differ", count=str(wanted))
    most = np.inf if row["most"] is None else row["most"]
    if min(row["counts"], default=0.0) < -COUNT_TOL or max(row["counts"], default=0.0) > most + COUNT_TOL:
        report.say(f"{path}.counts", "verify.not_above", given=repr(max(row["counts"], default=0.0)), most=repr(most))


def _check_layout(report: Report, path: str, row: Layout, plan: CheckedPlan) -> None:
    """Evaluate a layout again, as the points of a plan are."""
    facts = plan.serving.get(row["workload"]) or plan.training.get(row["workload"])
    if facts is None:
        report.say(f"{path}.workload", "verify.says", given=repr(row["workload"]), found="")
        return
    try:
        options = [plan.fleet_options[key_at(row["site"], pool)] for pool in row["pools"]]
        again = computed_again(plan.problem, facts, options, {**row, "id": path, "tier": None})
    except UNREADABLE as error:
        report.say(path, "verify.not_evaluated", error=words_of(error))
        return
    systems = [pool["systems_per_replica"] for pool in row["pools"]]
    report.equal(f"{path}.systems_per_replica", systems, list(again.systems), RELATIVE_TOL)
    watts = [pool["extra_power_w"] for pool in row["pools"]]
    report.equal(f"{path}.extra_power_w", watts, list(again.extra_it_w), RELATIVE_TOL)
    report.equal(f"{path}.capacity", row["capacity"], again.capacity / sum(again.systems), RELATIVE_TOL)
    if not again.fits:
        report.say(path, "verify.does_not_fit")


Way = tuple[object, ...]
WAY = ("site", "system", "how", "offer", "topology", "network_size")


def _way(row: Mapping[str, Any]) -> Way:
    return tuple(row[key] for key in WAY)


def check_weights(report: Report, found: Adaptation) -> None:
    """Check that groups and paths weigh 1 each, and each leaf as much as its group and its path together, which are independent."""
    groups, paths = ([row["weight"] for row in rows] for rows in (found["groups"], found["paths"]))
    for name, weights in (("groups", groups), ("paths", paths)):
        report.equal(f"adaptation.{name}.weight", sum(map(abs, weights)), 1.0, RELATIVE_TOL)
    leaves = [group * path for group in groups for path in paths]
    report.equal("adaptation.tree.weight", found["tree"]["weight"], leaves, RELATIVE_TOL)


def _check_tables(report: Report, found: Adaptation) -> None:
    """Compare systems signed, ordered in the tree and kept open with the commitments."""
    start: dict[Way, float] = defaultdict(float)
    later: dict[tuple[Way, float], Floats] = {}
    dated = {(_way(row), row["decided_s"], row["returns"]) for row in found["commitments"]}
    for row in found["commitments"]:
        if row["decided_s"] == 0.0 and not row["returns"] and row["offer"].startswith("offers"):
            start[_way(row), row["from_s"]] += round(row["counts"][0])
        elif row["decided_s"] > 0.0 and not row["returns"]:
            key = _way(row), row["decided_s"]
            later[key] = later.get(key, np.zeros(len(row["counts"]))) + np.array(row["counts"])
    signed = {(_way(row), row["from_s"]): float(row["count"]) for row in found["sign"]}
    if signed != {key: count for key, count in start.items() if count}:
        report.say("adaptation.sign", "verify.order_missing", date="0")
    orders = {(_way(row), row["decided_s"]): row for row in found["tree"]["orders"]} if "tree" in found else {}
    for key, counts in later.items():
        row_of = orders.pop(key, None)
        if row_of is not None:
            report.equal("adaptation.tree.orders", row_of["counts"], counts.tolist(), RELATIVE_TOL)
        elif (counts > ORDERED).any():
            report.say("adaptation.tree.orders", "verify.order_missing", date=f"{key[1]:g}")
    for _, decided in orders:
        report.say("adaptation.tree.orders", "verify.order_missing", date=f"{decided:g}")
    for i, kept in enumerate(found["open"]):
        decided_s = kept["decided_s"]
        if decided_s is not None and (_way(kept), decided_s, kept.get("returns", False)) not in dated:
            report.say(f"adaptation.open[{i}].decided_s", "verify.order_missing", date=f"{decided_s:g}")
