"""Derive from a tree the options to keep open, and the rules of later orders: at most ten, the dearest first."""

from __future__ import annotations

import numpy as np

from models.arrays import Floats
from planner.adapt.dates import BORDER_TOL_S
from planner.adapt.model import AdaptModel
from planner.adapt.search import Adapted, money
from planner.candidates.fleet_options import FleetOption
from planner.plan.rows.adapt import DecisionTree, Open, TreeNeed, TreeOrder, Trigger, Way

MOST = 10  # rules
COUNT_TOL = 0.5  # systems
ALWAYS = 1e-9


def row_of(option: FleetOption) -> Way:
    """Name a fleet option in a row."""
    return {
        "site": option.site.region, "system": option.system.name, "how": option.offer.how, "offer": option.offer.path,
        "topology": option.fabric, "network_size": option.size,
    }  # fmt: skip


def opened(found: Adapted) -> list[Open]:
    """List the options that are used in fresh scenarios beyond the systems signed: paid by use, ordered later, or given back early."""
    model, data, rows = found.model, found.model.data, []
    for k, option in enumerate(model.options):
        if data.by_use[k]:
            rows.append(_open(option, None, found.fresh.used[:, k]))
            continue
        for returns in (False, True):
            mine = (data.option == k) & ((data.parent >= 0) == returns) & ((data.stage > 0) | returns)
            for stage in np.unique(data.stage[mine]):
                counts = found.fresh.held[:, mine & (data.stage == stage)].sum(axis=1)
                rows.append(_open(option, model.dates.at_s[int(stage)], counts, returns))
    return [row for row in rows if row["share"] > 0]


def _open(option: FleetOption, decided_s: float | None, counts: Floats, returns: bool = False) -> Open:
    return {
        **row_of(option), "decided_s": decided_s, "share": float((counts > COUNT_TOL).mean()), "mean": float(counts.mean()),
        "high": float(np.quantile(counts, 0.9)), "returns": returns,
    }  # fmt: skip


def needs_by_workload(model: AdaptModel, efficiency: Floats, growth: Floats, signed: Floats) -> dict[str, Floats]:
    """Return the systems that each workload needs over those predicted, [scenario]: demand over what a system does, on the fleet signed."""
    data = model.data
    best = efficiency.max(axis=0)
    found = {}
    for w, workload in enumerate(model.problem.serving):
        ways = [
            g for g, layouts in enumerate(model.layouts)
            if layouts[0].point.workload.name == workload.name and signed[data.way_option[g]] > 0 and best[g] > 0
        ]  # fmt: skip
        if not ways:
            continue
        weights = np.array([signed[data.way_option[g]] for g in ways])
        rates = efficiency[:, ways] @ weights
        classes = np.flatnonzero(data.class_workload == w)
        asked = growth[:, classes].max(axis=(1, 2))
        found[workload.name] = asked / np.maximum(rates, 1e-9 * rates.max())
    return found


def tree_of(found: Adapted, other_cost: float) -> DecisionTree:
    """Write the leaves of the tree; `other_cost` is added to the cost of each."""
    model, data, tree, first = found.model, found.model.data, found.tree.leaves, found.first
    signed = np.zeros(len(model.options))
    own = (data.stage == 0) & (data.parent < 0)
    np.add.at(signed, data.option[own], first.held[own, 0])
    ends = np.asarray(model.problem.calendar.edges_s)[1:][data.window]
    needs: list[TreeNeed] = []
    orders: list[TreeOrder] = []
    for at_s in model.dates.at_s[1:]:
        seen = ends <= at_s + BORDER_TOL_S  # no later demand is known at the date
        predicted = needs_by_workload(model, found.certain.efficiency, found.certain.growth[:, :, seen], signed)
        asked = needs_by_workload(model, tree.efficiency, tree.growth[:, :, seen], signed)
        for name, values in asked.items():
            if name in predicted:
                needs.append({"workload": name, "decided_s": at_s, "over": (values / predicted[name][0]).tolist()})
    for k, option in enumerate(model.options):
        later = np.flatnonzero((data.option == k) & (data.stage > 0) & (data.parent < 0))
        for stage in np.unique(data.stage[later]):
            mine = later[data.stage[later] == stage]
            counts, costs = first.held[mine].sum(axis=0), (first.held[mine] * tree.cost[:, mine].T).sum(axis=0)
            if (counts > COUNT_TOL).any():
                row: TreeOrder = {
                    **row_of(option), "decided_s": model.dates.at_s[int(stage)], "cost": float(tree.weight @ costs), "counts": counts.tolist()
                }  # fmt: skip
                orders.append(row)
    return {
        "weight": tree.weight.tolist(), "cost": (money(first, found.factor) + other_cost).tolist(),
        "kept": [bool(each) for each in first.kept], "needs": needs, "orders": orders,
    }  # fmt: skip


def triggers(tree: DecisionTree) -> list[Trigger]:
    """Write what the tree orders later as rules on the need of one workload; without those that agree in fewer scenarios than never to order."""
    weight = np.array(tree["weight"])
    rules = []
    for order in tree["orders"]:
        needs = {
            row["workload"]: np.array(row["over"]) for row in tree["needs"] if row["decided_s"] == order["decided_s"]
        }
        rules.append((-order["cost"], _rule(order, np.array(order["counts"]), needs, weight)))
    told = [(cost, rule) for cost, rule in rules if rule["agrees"] > 1 - rule["share"] + ALWAYS]
    return [rule for _, rule in sorted(told, key=lambda pair: pair[0])[:MOST]]


def _rule(order: TreeOrder, counts: Floats, needs: dict[str, Floats], weight: Floats) -> Trigger:
    """Choose the workload and the threshold that agree with the tree in most of its scenarios."""
    fires = counts > COUNT_TOL
    share = float(weight @ fires)
    best, workload, above = share, None, 0.0
    for name, values in needs.items():
        for threshold in np.unique(values):
            agrees = float(weight @ ((values >= threshold * (1 - ALWAYS)) == fires))
            if agrees > best + ALWAYS:
                best, workload, above = agrees, name, float(threshold)
    return {
        "site": order["site"], "system": order["system"], "how": order["how"], "offer": order["offer"], "topology": order["topology"],
        "network_size": order["network_size"], "decided_s": order["decided_s"], "workload": workload, "above": above,
        "count": float(weight[fires] @ counts[fires] / weight[fires].sum()), "share": share, "agrees": best,
    }  # fmt: skip
