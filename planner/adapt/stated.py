"""State the policy of an adaptive plan, so that others can replay it: commitments with their prices, layouts, and what the leaves stand for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import numpy as np

from planner.adapt.model import AdaptModel
from planner.adapt.search import Adapted
from planner.adapt.tree import Tree
from planner.candidates.points import OperatingPoint, use_row
from planner.plan.rows.adapt_policy import Commitment, DemandPath, Layout, PerformanceGroup

LEAST = 1e-9  # systems


def used_options(found: Adapted) -> frozenset[int]:
    """Return the options that the tree or some fresh scenario may use: all that are paid by use, and those that are held."""
    data, fresh = found.model.data, found.fresh
    most = np.maximum(found.first.held.max(axis=1, initial=0.0), fresh.held.max(axis=0, initial=0.0))
    held = {int(data.option[u]) for u in np.flatnonzero(most > LEAST)}
    return frozenset(held | {int(k) for k in np.flatnonzero(data.by_use)})


def commitments(found: Adapted) -> list[Commitment]:
    """List the holdings of all options in use, at each date."""
    model, data = found.model, found.model.data
    rows: list[Commitment] = []
    edges, cost, used = model.problem.calendar.edges_s, model.unit_cost(), used_options(found)
    for u, k in enumerate(data.option.tolist()):
        if k not in used:
            continue
        option, windows = model.options[k], np.flatnonzero(data.covers[u])
        if not len(windows) or data.upper[u] <= 0:
            continue
        counts = found.first.held[u]
        row: Commitment = {
            "site": option.site.region, "system": option.system.name, "how": option.offer.how, "offer": option.offer.path,
            "topology": option.fabric, "network_size": option.size,
            "decided_s": model.dates.at_s[int(data.stage[u])], "from_s": float(edges[windows[0]]), "until_s": float(edges[windows[-1] + 1]),
            "returns": bool(data.parent[u] >= 0), "cost": float(cost[u]),
            "most": float(data.upper[u]) if np.isfinite(data.upper[u]) else None,
            "counts": [float(counts[0])] if data.stage[u] == 0 else counts.tolist(),
        }  # fmt: skip
        if option.tenant:
            row["tenant"] = option.tenant
        rows.append(row)
    return rows


def layouts(found: Adapted) -> list[Layout]:
    """List the layouts behind all ways to serve on options in use, and the points of jobs there; each once, whatever the demand that it serves."""
    model, data, used = found.model, found.model.data, used_options(found)
    points: dict[tuple[object, ...], OperatingPoint] = {}
    for g, each in enumerate(model.layouts):
        if int(data.way_option[g]) in used:
            for deployment in each:
                points.setdefault(deployment.key[:-1], deployment.point)
    rows = [_layout(point) for point in points.values()]
    return rows + [_layout(point) for h, point in enumerate(model.jobs) if int(data.job_option[h]) in used]


def _layout(point: OperatingPoint) -> Layout:
    systems = sum(use.systems for use in point.uses)
    row: Layout = {
        "workload": point.workload.name, "site": point.site, "capacity": float(point.capacity / systems),
        "pools": [{**use_row(use)} for use in point.uses],  # type: ignore[typeddict-item]
    }  # fmt: skip
    return row


def groups(model: AdaptModel, tree: Tree) -> list[PerformanceGroup]:
    """State the errors of each group of performance of the tree."""
    scenarios, weight = tree.drawn.scenarios, tree.leaves.weight
    rows: list[PerformanceGroup] = []
    for group, leaves in _members(tree):
        errors: dict[str, dict[str, float]] = {}
        for chip, each in scenarios.serving.items() if model.problem.serving else ():
            errors.setdefault(chip, {}).update({label: float(values[leaves[0]]) for label, values in each.items()})
        for (chip, label), values in scenarios.training.items() if model.problem.training else ():
            errors.setdefault(chip, {})[label] = float(values[leaves[0]])
        chips = {option.system.chip for option in model.options}
        kept = {chip: each for chip, each in errors.items() if chip and chip in chips}
        rows.append({"weight": float(weight[leaves].sum()), "errors": kept})
        assert group == len(rows) - 1
    return rows


def _members(tree: Tree) -> Iterator[tuple[int, list[int]]]:
    for group, members in groupby(range(tree.leaves.count), key=lambda s: int(tree.performance[s])):
        yield group, list(members)


def demand_paths(tree: Tree) -> list[DemandPath]:
    """State the paths of demand of the tree."""
    names = list(tree.drawn.growth)
    return [
        {"weight": float(weight), "factors": {name: growth[w].tolist() for w, name in enumerate(names)}}
        for weight, growth in zip(tree.paths.weight, tree.paths.growth, strict=True)
    ]
