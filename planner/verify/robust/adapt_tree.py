"""Check the tree of the section `adaptation`, and derive its triggers again from what the leaves need and order."""

from __future__ import annotations

from collections.abc import Sequence

from planner.plan.rows.adapt import Adaptation, DecisionTree, TreeOrder, Trigger
from planner.verify.findings import Report

MOST_RULES = 10
ORDERED = 0.5  # systems from which a leaf counts as ordering
SUM_TOL = 1e-6  # difference of two shares, and relative of two costs
SAME_TOL = 1e-9  # relative, of needs

WAY = ("site", "system", "how", "offer", "topology", "network_size", "decided_s")


def check_tree(plan: Report, found: Adaptation) -> None:
    """Compare sums over the leaves with the figures of the section, and its triggers with the orders of the leaves."""
    tree = found.get("tree")
    if tree is None:
        return
    leaves = len(tree["weight"])
    lengths = {len(tree["cost"]), len(tree["kept"])}
    lengths |= {len(row["over"]) for row in tree["needs"]} | {len(row["counts"]) for row in tree["orders"]}
    if leaves != found["leaves"] or lengths != {leaves}:
        plan.say("adaptation.tree", "verify.leaves_differ", count=str(found["leaves"]))
        return
    plan.equal("adaptation.tree.weight", sum(tree["weight"]), 1.0, SUM_TOL)
    plan.equal("adaptation.tree_cost", found["tree_cost"], _mean(tree, tree["cost"]), SUM_TOL)
    plan.equal("adaptation.tree_kept", found["tree_kept"], _mean(tree, [float(each) for each in tree["kept"]]), SUM_TOL)
    told = [order for order in tree["orders"] if _says_more_than_never(tree, order)]
    dearest = sorted(told, key=lambda row: -row["cost"])[:MOST_RULES]
    if [_way(row) for row in found["triggers"]] != [_way(row) for row in dearest]:
        plan.say("adaptation.triggers", "verify.rules_of_orders")
        return
    for i, (rule, order) in enumerate(zip(found["triggers"], dearest, strict=True)):
        _check_rule(plan, f"adaptation.triggers[{i}]", tree, rule, order)


def _way(row: TreeOrder | Trigger) -> list[object]:
    known: dict[str, object] = {**row}
    return [known[key] for key in WAY]


def _mean(tree: DecisionTree, values: Sequence[float]) -> float:
    return sum(weight * value for weight, value in zip(tree["weight"], values, strict=True))


def _orders(order: TreeOrder) -> list[bool]:
    return [count > ORDERED for count in order["counts"]]


def _needs(tree: DecisionTree, order: TreeOrder) -> dict[str, list[float]]:
    return {row["workload"]: row["over"] for row in tree["needs"] if row["decided_s"] == order["decided_s"]}


def _agreement(tree: DecisionTree, orders: Sequence[bool], over: Sequence[float], above: float) -> float:
    says = [need >= above * (1 - SAME_TOL) for need in over]
    return _mean(tree, [float(a == b) for a, b in zip(says, orders, strict=True)])


def _says_more_than_never(tree: DecisionTree, order: TreeOrder) -> bool:
    """Tell whether some rule, or always to order, says the same as the tree in more of its scenarios than never to order."""
    orders = _orders(order)
    share = _mean(tree, [float(each) for each in orders])
    best = [_agreement(tree, orders, over, above) for over in _needs(tree, order).values() for above in over]
    return max([share, *best]) > 1 - share + SAME_TOL


def _check_rule(plan: Report, path: str, tree: DecisionTree, rule: Trigger, order: TreeOrder) -> None:
    """Compute again how often the leaves order, how much, and how often the rule says the same; no other rule may say it more often."""
    orders = _orders(order)
    share = _mean(tree, [float(each) for each in orders])
    ordered = [count if each else 0.0 for count, each in zip(order["counts"], orders, strict=True)]
    plan.equal(f"{path}.share", rule["share"], share, SUM_TOL)
    plan.equal(f"{path}.count", rule["count"], _mean(tree, ordered) / share if share else 0.0, SUM_TOL)

    needs = _needs(tree, order)
    name = rule["workload"]
    if name is not None and name not in needs:
        plan.say(f"{path}.workload", "verify.rules_of_orders")
        return
    thresholds = [0.0] if name is None else needs[name]
    if min(abs(rule["above"] - over) for over in thresholds) > SAME_TOL * max(thresholds):
        plan.say(f"{path}.above", "verify.no_need_of_leaf", given=repr(rule["above"]))
    agrees = share if name is None else _agreement(tree, orders, needs[name], rule["above"])
    if abs(agrees - rule["agrees"]) > SUM_TOL:
        plan.say(f"{path}.agrees", "verify.rule_of_tree", given=f"{rule['agrees']:.4f}", found=f"{agrees:.4f}")
    for workload, over in needs.items():
        best = max(_agreement(tree, orders, over, above) for above in over)
        if best > rule["agrees"] + SUM_TOL:
            plan.say(path, "verify.better_rule", workload=workload, found=f"{best:.4f}", given=f"{rule['agrees']:.4f}")
