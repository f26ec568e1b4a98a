"""Make cases of what a plan or a spec holds: of an operating point at work, and of a workload on a system."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from catalog.lookup import Catalog
from models.arrays import sum_of
from planner.estimate.case import without_demand
from planner.plan import Plan
from planner.spec.fabrics import PROVIDER

Document = dict[str, Any]
KINDS = ("serving", "training")
CARRIED_TOL = 1e-9  # relative, of sums and products of shares


@dataclass(frozen=True, slots=True)
class AtWork:
    """An operating point of a plan: its case, and the round trip that its latency limits leave to the network [s]."""

    id: str
    workload: str
    site: str
    case: Document
    away_s: float = 0.0


def points_at_work(plan: Plan, catalog: Catalog) -> list[AtWork]:
    """List the operating points of a plan that a case can state: serving in one pool or two, and training.

    A case of serving has the whole systems that the replica of a point shares with others, and the load of all of them.
    """
    asked = {each["name"]: each for each in plan.document["spec"]["workloads"]}
    found = []
    for workload in plan.document["workloads"]:
        stated = asked.get(workload.get("of", workload["name"]))
        if stated is None or workload["kind"] not in KINDS:
            continue
        for point in workload["points"]:
            case = _case_of(stated, workload, point, catalog)
            if case is not None:
                found.append(AtWork(point["id"], workload["name"], point["site"], case, _away_s(workload)))
    return found


def _away_s(workload: Mapping[str, Any]) -> float:
    """Return the round trip of the slowest route: the latency at the user less the largest at a site [s]."""
    found = [0.0]
    for row in workload["slo"]:
        key = f"{row['metric']}.{row['percentile']}"
        at_site = [point["latency_s"][key] for point in workload["points"] if key in point["latency_s"]]
        if row["metric"] in ("ttft", "e2e") and at_site and row["predicted_s"] is not None:
            found.append(row["predicted_s"] - max(at_site))
    return max(found)


def _case_of(
    stated: Mapping[str, Any], workload: Mapping[str, Any], point: Mapping[str, Any], catalog: Catalog
) -> Document | None:
    """Write the case of a point; None for one that a case cannot state, such as reinforcement learning, encoders apart, or tiers of KV cache."""
    pools = point["pools"]
    roles = [pool["role"] for pool in pools]
    if roles not in (["serve"], ["prefill", "decode"], ["train"]):
        return None
    known = set(catalog.names("systems"))
    if any(pool["system"] not in known for pool in pools):  # a system with tiers of KV cache has a name of its own
        return None
    first = pools[0]
    inner = without_demand(stated)
    inner |= {"precision": [first["precision"]]}
    if isinstance(workload.get("architecture"), str):
        inner["architecture"] = workload["architecture"]
    if isinstance(first.get("kv_precision"), str):
        inner["kv_precision"] = [first["kv_precision"]]
    each = sum_of(pool["systems_per_replica"] for pool in pools)
    systems = math.ceil(each - CARRIED_TOL)
    chips = systems * int(catalog.get("systems", first["system"]).figure("chips").number)
    case: Document = {
        "workload": inner,
        "system": first["system"],
        "chips": chips,
        "topology": first["topology"] or PROVIDER,
    }
    if point.get("power_cap") is not None:
        case["power_cap"] = point["power_cap"]
    if roles == ["train"]:
        return {**case, "chips": _chips(first["layout"]), "layout": dict(first["layout"])}
    if roles == ["serve"]:
        copies = math.floor(systems / each + CARRIED_TOL)
        return {**case, "layout": dict(first["layout"]), "load": _load(point, copies)}
    if len({pool["system"] for pool in pools}) > 1:
        return _two_systems(case, point, catalog)
    sides = {pool["role"]: {"layout": dict(pool["layout"]), "workers": int(pool["workers"])} for pool in pools}
    return {**case, "pools": sides, "load": _load(point, 1)}


def _two_systems(case: Document, point: Mapping[str, Any], catalog: Catalog) -> Document:
    """Write the case of pools on two kinds of system: each has whole systems of its own, and the smaller kind is that of the case."""
    each = {
        pool["system"]: int(catalog.get("systems", pool["system"]).figure("chips").number) for pool in point["pools"]
    }
    sides = {
        pool["role"]: {
            "system": pool["system"],
            "layout": dict(pool["layout"]),
            "workers": int(pool["workers"]),
            "chips": math.ceil(pool["systems_per_replica"] - CARRIED_TOL) * each[pool["system"]],
        }
        for pool in point["pools"]
    }
    chips, least = sum_of(side["chips"] for side in sides.values()), min(each, key=lambda name: each[name])
    return {**case, "system": least, "chips": chips, "pools": sides, "load": _load(point, 1)}


def _load(point: Mapping[str, Any], copies: int) -> Document:
    """Return the capacity of some replicas as a load, less what rounding could put beyond it."""
    return {"requests_per_s": point["capacity"] * copies * (1.0 - CARRIED_TOL)}


def _chips(layout: Mapping[str, int]) -> int:
    return int(np.prod([layout.get(name, 1) for name in ("tp", "pp", "dp", "cp")]))


def workloads_of(document: Mapping[str, Any], catalog: Catalog) -> Iterator[tuple[str, Document]]:
    """Yield (name, case) of the workloads of a spec, each on one of the first system that the spec names."""
    offers = document.get("offers") or []
    named = [offer["system"] for offer in offers if isinstance(offer, Mapping) and isinstance(offer.get("system"), str)]
    named = [name for name in named if catalog.has("systems", name)] or list(catalog.names("systems"))
    system = catalog.get("systems", named[0])
    for workload in document["workloads"]:
        if workload.get("kind") in KINDS:
            inner = without_demand(workload)
            if isinstance(cache := inner.get("cache"), Mapping) and "reuse" in cache and not cache.get("tiers"):
                del inner["cache"]  # its tiers are chosen by the whole plan
            yield (
                str(workload["name"]),
                {
                    "workload": inner,
                    "system": system.name,
                    "chips": int(system.figure("chips").number),
                    "topology": PROVIDER,
                },
            )
