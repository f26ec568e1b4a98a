"""The paths by which pools of a deployment exchange KV caches or weights, in sentences."""

from __future__ import annotations

from catalog.units import show
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.points import CachePath, Path, Point
from planner.spec.fabrics import PROVIDER


def path_lines(plan: Plan) -> list[str]:
    """Say for each workload and site over which path its pools exchange data or read caches, and the largest share of the path that they use."""
    return [*_between_pools(plan), *_from_tiers(plan)]


def _between_pools(plan: Plan) -> list[str]:
    """Say it of the paths between pools."""
    busiest: dict[tuple[str, str], Point] = {}
    for workload in plan.document["workloads"]:
        for point in workload["points"]:
            if "path" not in point:
                continue
            key = workload["name"], point["site"]
            known = busiest.get(key)
            if known is None or point["path"]["share"] > known["path"]["share"]:
                busiest[key] = point
    return [
        Message.of(
            "path.line",
            workload=name,
            site=site,
            what=Message.of("path.weights" if "iteration" in point else "path.caches").text(),
            way=_way(point["path"]),
            share=f"{point['path']['share']:.1%}",
            rate=show(point["path"]["bytes_per_s"], "byte/s"),
        ).text()
        for (name, site), point in busiest.items()
    ]


def _from_tiers(plan: Plan) -> list[str]:
    """Say it of the paths from tiers of KV cache."""
    busiest: dict[tuple[str, str, str], CachePath] = {}
    for workload in plan.document["workloads"]:
        for point in workload["points"]:
            for path in point.get("cache_paths", ()):
                key = workload["name"], point["site"], path["tier"]
                busiest[key] = max(busiest.get(key, path), path, key=lambda each: each["share"])
    return [
        Message.of(
            "path.line",
            workload=name,
            site=site,
            what=Message.of("path.caches").text(),
            way=Message.of(f"path.tier_{tier}").text(),
            share=f"{path['share']:.1%}",
            rate=show(path["bytes_per_s"], "byte/s"),
        ).text()
        for (name, site, tier), path in busiest.items()
    ]


def _way(path: Path) -> str:
    """Name a path: the scale-up fabric, or one network with the systems that it can join."""
    if path["kind"] == "line":
        return Message.of("path.over_line", design=path["design"], line=path["line"]).text()
    if path["kind"] == "scale-up":
        return Message.of("path.scale_up").text()
    if path["design"] == PROVIDER:
        return Message.of("path.provider").text()
    if path["size"] is None:
        return Message.of("path.network", design=path["design"]).text()
    return Message.of("path.network_of", design=path["design"], size=path["size"]).text()
