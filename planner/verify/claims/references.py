"""Check that what a plan names exists: sites, systems and offers of the spec, its own points and pools, slots and windows of the calendar."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from models.formats import FORMATS
from planner.messages import Message
from planner.problem.facts import SystemFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.verify.checked_plan import CheckedPlan
from planner.verify.fleet.options import key_at

Row = Mapping[str, Any]
SIZES_OF_A_REPLICA = ("tp", "pp", "dp", "ep")
SIZES_OF_A_JOB = (*SIZES_OF_A_REPLICA, "cp", "vpp", "micro_batch", "zero", "recompute", "sequence_parallel")


def check_references(plan: CheckedPlan) -> None:
    """Report every name and number of a row that stands for nothing."""
    for path, message in _unknown(plan):
        plan.tell(path, message)


def _unknown(plan: CheckedPlan) -> Iterator[tuple[str, str]]:
    document, slots, windows = plan.document, plan.problem.calendar.slots, plan.problem.calendar.windows
    points = {point["id"] for workload in document["workloads"] for point in workload["points"]}
    origins = {workload.name: {o.region for o in workload.spec.origins} for workload in plan.serving.values()}
    names = [workload["name"] for workload in document["workloads"]]
    if sorted(names) != sorted([*plan.serving, *plan.training]):
        yield "workloads", Message.of("verify.those_of_spec").text()
    every = [row["routes"] for row in document.get("failures") or ()]
    served = {route["pool"] for routes in (document["routes"], *every) for route in routes}
    for i, row in enumerate(document["fleet"]):
        yield from _of_a_way(plan, f"fleet[{i}]", row["site"], row)
        ends = row.get("windows", [row["window"] or 0] * 2)
        if len(ends) != 2 or not 0 <= ends[0] <= ends[1] < windows:
            yield (
                f"fleet[{i}].{'windows' if 'windows' in row else 'phase'}",
                Message.of("verify.windows", last=str(windows - 1)).text(),
            )
    for w, workload in enumerate(document["workloads"]):
        path = f"workloads[{w}]"
        if workload["name"] not in plan.serving and workload["name"] not in plan.training:
            yield f"{path}.name", Message.of("verify.not_in_spec", name=repr(workload["name"])).text()
        for i, point in enumerate(workload["points"]):
            for j, pool in enumerate(point["pools"]):
                yield from _of_a_way(plan, f"{path}.points[{i}].pools[{j}]", point["site"], pool, f"{path}.points[{i}]")
            yield from _of_a_point(plan, f"{path}.points[{i}]", workload["name"], point, served)
    for i, row in enumerate(document["routes"]):
        yield from _of_a_route(plan, f"routes[{i}]", row, origins)
        if not 0 <= row["slot"] < slots:
            yield f"routes[{i}].slot", Message.of("verify.slots", last=str(slots - 1)).text()
    for i, row in enumerate(document["schedule"]):
        yield from _of_a_slot(plan, f"schedule[{i}]", row, points)
    for i, row in enumerate(document.get("failures") or ()):
        yield from _of_a_failure(plan, f"failures[{i}]", row, origins, points)
    for i, row in enumerate((document.get("robustness") or {}).get("standing_by") or ()):
        if row["workload"] not in plan.serving:
            yield (
                f"robustness.standing_by[{i}].workload",
                Message.of("verify.unknown_serving_workload", name=repr(row["workload"])).text(),
            )
        for j, pool in enumerate(row["pools"]):
            path = f"robustness.standing_by[{i}]"
            yield from _of_a_way(plan, f"{path}.pools[{j}]", row["site"], pool, path)
    for name in ("fabrics", "electricity", "facility", "storage"):
        for i, row in enumerate(document.get(name) or ()):
            if row["site"] not in plan.sites:
                yield f"{name}[{i}].site", Message.of("verify.unknown_site", name=repr(row["site"])).text()


def _of_a_point(plan: CheckedPlan, path: str, workload: str, point: Row, served: set[str]) -> Iterator[tuple[str, str]]:
    """Check the pools, latencies and requests of a point."""
    if not point["pools"]:
        yield f"{path}.pools", Message.of("verify.point_without_pool").text()
    if (
        workload in plan.training
        and isinstance(plan.training[workload], ReinforcementFacts)
        and "iteration" not in point
    ):
        yield f"{path}.iteration", Message.of("verify.missing").text()
    for j, pool in enumerate(point["pools"]):
        trains = workload in plan.training and pool["role"] != "rollout"
        sizes = SIZES_OF_A_JOB if trains else SIZES_OF_A_REPLICA
        system = plan.problem.systems.get(pool["system"])
        if (
            pool["role"] != "api"
            and system is not None
            and not _computes(plan, workload, system, pool["precision"], trains)
        ):
            yield (
                f"{path}.pools[{j}].precision",
                Message.of("verify.unknown_precision", name=repr(pool["precision"]), system=system.name).text(),
            )
        for name in sizes if pool["role"] != "api" else ():
            if name not in pool["layout"]:
                yield f"{path}.pools[{j}].layout.{name}", Message.of("verify.missing").text()
    if workload in plan.serving:
        if point["pool"] not in served:
            yield f"{path}.pool", Message.of("verify.no_route", pool=repr(point["pool"])).text()
        wanted = {limit.key for limit in plan.serving[workload].spec.limits()}
        for key in sorted(wanted ^ point["latency_s"].keys()):
            yield (
                f"{path}.latency_s.{key}",
                Message.of("verify.missing").text() if key in wanted else Message.of("verify.unknown_limit").text(),
            )


def _computes(plan: CheckedPlan, workload: str, system: SystemFacts, precision: str, trains: bool) -> bool:
    """Tell whether a system takes a format: as a recipe of training, or as weights that it multiplies, widened where it must."""
    if precision not in FORMATS:
        return False
    stated = plan.serving[workload].spec.arithmetic if workload in plan.serving else None
    return system.trains(precision) if trains else system.serves(precision, stated)


def _of_a_way(
    plan: CheckedPlan, path: str, site: str, row: Row, site_path: str | None = None
) -> Iterator[tuple[str, str]]:
    """Check the site, the system and the offer of a row of the fleet or of a pool."""
    if row.get("site", site) not in plan.sites:
        yield f"{path}.site", Message.of("verify.unknown_site", name=repr(row["site"])).text()
        return
    if site not in plan.sites:
        yield f"{site_path or path}.site", Message.of("verify.unknown_site", name=repr(site)).text()
    if row["system"] not in plan.problem.systems:
        yield f"{path}.system", Message.of("verify.unknown_system", name=repr(row["system"])).text()
    if row["offer"] not in plan.fleet_options.offers:
        yield f"{path}.offer", Message.of("verify.unknown_offer", name=repr(row["offer"])).text()
        return
    try:
        plan.fleet_options[key_at(site, row)]
    except (KeyError, ValueError) as error:
        yield path, Message.of("verify.no_such_way", error=str(error.args[0])).text()


def _of_a_route(plan: CheckedPlan, path: str, row: Row, origins: Mapping[str, set[str]]) -> Iterator[tuple[str, str]]:
    if row["workload"] not in plan.serving:
        yield f"{path}.workload", Message.of("verify.unknown_serving_workload", name=repr(row["workload"])).text()
    elif row["origin"] not in origins[row["workload"]]:
        yield (
            f"{path}.origin",
            Message.of("verify.unknown_origin", name=repr(row["origin"]), workload=row["workload"]).text(),
        )
    if row["site"] not in plan.sites:
        yield f"{path}.site", Message.of("verify.unknown_site", name=repr(row["site"])).text()


def _of_a_slot(plan: CheckedPlan, path: str, row: Row, points: set[str]) -> Iterator[tuple[str, str]]:
    slots = plan.problem.calendar.slots
    if row["site"] not in plan.sites:
        yield f"{path}.site", Message.of("verify.unknown_site", name=repr(row["site"])).text()
    if not 0 <= row["slot"] < slots:
        yield f"{path}.slot", Message.of("verify.slots", last=str(slots - 1)).text()
    for name in row["active"]:
        if name not in points:
            yield f"{path}.active.{name}", Message.of("verify.unknown_point").text()


def _of_a_failure(
    plan: CheckedPlan, path: str, row: Row, origins: Mapping[str, set[str]], points: set[str]
) -> Iterator[tuple[str, str]]:
    if not 0 <= row["slot"] < plan.problem.calendar.slots:
        yield f"{path}.slot", Message.of("verify.slots", last=str(plan.problem.calendar.slots - 1)).text()
    for i, route in enumerate(row["routes"]):
        yield from _of_a_route(plan, f"{path}.routes[{i}]", route, origins)
    for name in row["active"]:
        if name not in points:
            yield f"{path}.active.{name}", Message.of("verify.unknown_point").text()
