"""Plan rows of deployments: the whole workers of each serving point that hold their weights, and the systems that they occupy.

Which workers are resident in which slot stands in the rows of the schedule, as `resident`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import Ints, sum_of
from planner.evaluate.residency import read_at_start
from planner.formulate.formulation import Formulation
from planner.formulate.relays import worker_price
from planner.formulate.residency import is_spared, point_ready_s, serves_on_systems, spare_workers
from solvers.solution import Solution

if TYPE_CHECKING:
    from planner.interpret.decisions import Decisions

STORAGE = "storage"  # kind of the path of weights


def resident_workers(form: Formulation, solution: Solution) -> dict[int, Ints]:
    """Read the workers that hold their weights [role, slot] of each point whose replicas are whole."""
    if "resident" not in solution.values:
        return {}
    resident = np.rint(solution.values["resident"]).astype(np.int64)
    point = form.data.point_uses[:, 0]
    return {
        p: resident[point == p]
        for p, operating in enumerate(form.points)
        if serves_on_systems(operating) and resident[point == p].any()
    }


def resident_of(decided: Decisions, region: str, t: int) -> dict[str, list[int]]:
    """List the workers by role that hold their weights at a site in a slot, by the id of their point."""
    return {
        decided.point_ids[p]: [int(count) for count in workers[:, t]]
        for p, workers in decided.resident.items()
        if p in decided.point_ids and decided.form.points[p].site == region and workers[:, t].any()
    }


def replicas_and_deployments(decided: Decisions) -> dict[str, Any]:
    """State whether serving replicas are whole, and list the deployments of whole ones; nothing for a question without serving."""
    if not decided.problem.serving:
        return {}
    if not decided.problem.spec.solver.whole:
        return {"replicas": "divisible"}
    return {"replicas": "whole", "deployments": _deployment_rows(decided)}


def _deployment_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each serving point with workers that hold their weights."""
    return [_row(decided, p, decided.resident[p]) for p in decided.used if p in decided.resident]


def _row(decided: Decisions, p: int, workers: Ints) -> dict[str, Any]:
    """Build the row of a point from its workers [role, slot]."""
    point = decided.form.points[p]
    parts = point_ready_s(decided.problem, point)
    load_s = sum_of(parts.values())
    pools: list[dict[str, Any]] = [
        {
            "role": use.role,
            "system": use.option.system.name,
            "workers_per_replica": use.workers,
            "systems_per_worker": use.systems_per_worker,
            "workers": int(mine.max()),
            "least_workers": int(mine.min()),
            "systems": float(mine.max() * use.systems_per_worker),
            **({"spare_workers": spare_workers(use)} if is_spared(point) else {}),
            **(
                {}
                if decided.problem.economics.relays is None
                else {
                    "relay_cost": worker_price(decided.problem, use, load_s),
                    "loads": _loads(decided, mine[None, :]),
                }
            ),
        }
        for use, mine in zip(point.uses, workers, strict=True)
    ]
    return {
        "point": decided.point_ids[p],
        "workload": point.workload.name,
        "site": point.site,
        "replicas": min(pool["workers"] // pool["workers_per_replica"] for pool in pools),
        "pools": pools,
        "load_s": load_s,
        **({} if point.serving.spec.scale_up is None else {"load_parts_s": parts}),
        "loads": _loads(decided, workers),
        **({} if decided.problem.economics.relays is None else {"weights_path": _weights_path(decided, p, workers)}),
    }


def _weights_path(decided: Decisions, p: int, workers: Ints) -> dict[str, Any]:
    """State the path from storage to the chips: the rate at which a worker reads, and what loads read of it on average over the horizon."""
    point, calendar = decided.form.points[p], decided.problem.calendar
    size, rate = read_at_start(point.serving, point.uses[0].option.site, decided.problem.constants)
    used = size * _loads(decided, workers) / float(calendar.seconds.sum())
    return {"kind": STORAGE, "bytes_per_s": rate, "used_bytes_per_s": used, "share": used / rate}


def _loads(decided: Decisions, workers: Ints) -> float:
    """Count how often a worker loads its weights over the horizon."""
    calendar = decided.problem.calendar
    return float(decided.arriving(workers).sum(axis=0) @ (calendar.seconds / calendar.step_s))
