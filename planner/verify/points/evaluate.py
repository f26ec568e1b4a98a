"""Evaluate one used point of a plan again, from its row alone.

Uses the closed forms through `planner.evaluate`, one point at a time, where the way to the plan evaluates grids of points. The
search for the order of ranks (`planner.evaluate.rank_placement`) is used by both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from planner.evaluate.power_caps import capped_at, capped_row
from planner.messages import Message
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.fleet.options import CheckedOption, FleetOptions, key_at
from planner.verify.points.cache_paths import cache_paths_of
from planner.verify.points.evaluated import Evaluated, Recomputed, as_evaluated
from planner.verify.points.exchange import stands_apart
from planner.verify.points.paths import path_of
from planner.verify.points.reinforcement import reinforcement_point
from planner.verify.points.serving import bought, one_pool, two_pools
from planner.verify.points.training import training_point

TWO_POOLS = (["prefill", "decode"], ["update", "rollout"])  # that may stand at two sites


def evaluate_point(
    problem: ResolvedSpec, fleet_options: FleetOptions, workload: ServingFacts | TrainingFacts, row: Mapping[str, Any]
) -> Evaluated:
    """Evaluate the row of a point. Raises KeyError or ValueError for an invalid row."""
    pools = row["pools"]
    for pool in pools:
        sizes = [pool["batch"], pool["workers"], *pool["layout"].values()]
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError(Message.of("verify.whole_sizes", point=row["id"], given=str(sizes)).text())
    options = [fleet_options[key_at(row["site"], pool)] for pool in pools]
    recomputed = computed_again(problem, workload, options, row)
    found = as_evaluated(workload.name, row, options, recomputed)
    path = path_of(workload, options, row, recomputed)
    if path is not None:
        found = replace(found, stated={**found.stated, "path": path})
    if rows := cache_paths_of(workload, options, row, recomputed):
        found = replace(found, stated={**found.stated, "cache_paths": dict(enumerate(rows))})
    return found if row.get("power_cap") is None else _capped(found, options, row)


def computed_again(
    problem: ResolvedSpec,
    workload: ServingFacts | TrainingFacts,
    options: Sequence[CheckedOption],
    row: Mapping[str, Any],
) -> Recomputed:
    """Evaluate the pools of a row by the closed forms. Raises KeyError or ValueError for an invalid row."""
    if stands_apart(row) and [pool["role"] for pool in row["pools"]] not in TWO_POOLS:
        raise ValueError(Message.of("path.verify_no_line", point=row["id"], kind="").text())
    if isinstance(workload, ReinforcementFacts):
        return reinforcement_point(problem, workload, options, row)
    if isinstance(workload, TrainingFacts):
        return training_point(problem, workload, options, row)
    roles = [pool["role"] for pool in row["pools"]]
    if roles in (["serve"], ["serve", "encode"]):
        return one_pool(problem, workload, options, row)
    if roles == ["api"]:
        return bought(workload, options[0], row)
    if roles == ["prefill", "decode"] and isinstance(workload, ServingFacts):
        return two_pools(problem, workload, options, row)
    raise ValueError(Message.of("verify.pools_of_serving", roles=str(roles)).text())


def _capped(plain: Evaluated, options: Sequence[CheckedOption], row: Mapping[str, Any]) -> Evaluated:
    """Slow the point down by its power cap."""
    cap, site = row["power_cap"], options[0].site
    if cap not in site.power_caps or site.cap_curve is None or not all(option.owned for option in options):
        raise ValueError(Message.of("verify.cap_not_offered", point=row["id"], cap=str(cap)).text())
    pools = [
        (option.system, pool["systems_per_replica"], pool["extra_power_w"])
        for option, pool in zip(options, plain.stated["pools"].values(), strict=True)
    ]
    capped = capped_at(cap, site.cap_curve, pools)
    if capped is None:
        raise ValueError(Message.of("verify.cap_without_effect", point=row["id"], cap=str(cap)).text())
    return replace(plain, stated=capped_row(plain.stated, capped))
