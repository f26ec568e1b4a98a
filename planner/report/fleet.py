"""Tables of a plan's fleet, what becomes of systems that were owned already, the networks it stands on, and the points at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.units import GIGA, show
from planner.messages import Message, listed, named
from planner.plan import Plan
from planner.plan.rows.fleet import DeployedPool, Deployment, Fabric, FleetRow, Rented
from planner.plan.rows.points import Point, Pool
from planner.plan.rows.workloads import Workload
from planner.report.phases import span_words, window_dates, windows_of
from planner.report.words import amount, cap_words, how_words

Row = dict[str, Any]
OWNED, RENTED = "owned", "rented"  # tables of a plan


def fleet_row(plan: Plan, row: FleetRow) -> Row:
    """Format a row of the fleet."""
    when = row.get("obtained") or span_words(plan, windows_of(row)) or "throughout"
    return {
        "site": row["site"],
        "system": row["system"],
        "count": f"{row['count']:,} tokens/s" if row.get("unit") else count_words(row),
        "how": how_words(row["how"]),
        "fabric": row["topology"],
        "when": when,
    }


def count_words(row: FleetRow) -> int | str:
    """Write how many systems of a row are had: one number, or the range of those that run where they are paid for by the hour."""
    hours = row.get("running") or [row["count"]]
    if min(hours) == max(hours):
        return row["count"]
    return Message.of("hourly.runs", least=min(hours), most=max(hours)).text()


def fabric_row(row: Fabric) -> Row:
    """Format a network: its parts, and how many of its places are taken."""
    return {
        "site": row["site"],
        "system": row["system"],
        "design": row["design"]
        + (
            f", {row['tiers']} tier{'s' if row['tiers'] > 1 else ''}"
            if row["tiers"] and row["design"] != "dragonfly"
            else ""
        ),
        "systems": f"{row['systems']:,} of {row['size']:,}",
        "switches": f"{row['switches']:,}",
        "links": f"{row['links']:,}",
        "optics": f"{row['optics']:,}",
        "power": show(row["power_w"], "W"),
        "price": f"{row['price']:,.0f}",
        "charged": f"{row['charged']:,.0f}",
        "bisection": show(row["bisection_bytes_per_s"], "byte/s"),
        "hops": f"{row['mean_hops']:.1f}, at most {row['most_hops']}",
    }


def point_rows(plan: Plan) -> list[Row]:
    """Format the points of all workloads; those that differ only in the origins they serve share a row, their replicas added up."""
    rows: dict[tuple[Any, ...], Row] = {}
    replicas: dict[tuple[Any, ...], float] = {}
    for workload in plan.document["workloads"]:
        for point in workload["points"]:
            row = _point_row(workload, point)
            key = tuple(row.values())
            rows[key] = row
            replicas[key] = replicas.get(key, 0.0) + point["peak_replicas"]
    return [{**row, "replicas": f"{replicas[key]:.1f}"} for key, row in rows.items()]


def _loads_for(row: Deployment) -> str:
    """Write the time that a worker loses at its start; with its parts where the spec states how it starts."""
    parts = row.get("load_parts_s", {})
    words = ", ".join(f"{name.replace('_', ' ')} {show(part, 's')}" for name, part in parts.items())
    return show(row["load_s"], "s") + (f" ({words})" if words else "")


def deployment_rows(plan: Plan) -> list[Row]:
    """Format the workers of each deployment; plans whose replicas are divisible have none."""
    return [
        {
            "deployment": row["point"],
            "system": " + ".join(dict.fromkeys(pool["system"] for pool in row["pools"])),
            "replicas": row["replicas"],
            "workers": "; ".join(_workers(pool) for pool in row["pools"]),
            "systems": "; ".join(f"{pool['systems']:,.4g}" for pool in row["pools"]),
            "loads for": _loads_for(row),
            "loads": f"{row['loads']:,.0f}",
        }
        for row in plan.document.get("deployments", ())
    ]


def _workers(pool: DeployedPool) -> str:
    """Write how many workers of a role are resident, at least and at most."""
    least, most = pool["least_workers"], pool["workers"]
    count = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return count if pool["role"] == "serve" else f"{pool['role']} {count}"


def _point_row(workload: Workload, point: Point) -> Row:
    top = max(point["breakdown"].items(), key=lambda item: item[1], default=("", 0.0))
    return {
        "workload": workload["name"],
        "site": point["site"],
        "system": " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"])),
        "layout": listed(layout_words(pool) for pool in point["pools"]),
        "precision": point["pools"][0]["precision"],
        "memory": "; ".join(_memory(pool) for pool in point["pools"]),
        "power cap": cap_words(point.get("power_cap")),
        "replicas": "",
        "capacity": f"{point['capacity']:,.4g} {point['capacity_unit']}",
        "mostly": Message.of("part.share", part=named("part", top[0]), share=f"{top[1]:.0%}").text(),
    }


def _memory(pool: Pool) -> str:
    """Write the memory that the fullest chip of a pool uses; plans of release 0.2 do not state it."""
    return f"{pool['memory_bytes'] / GIGA:.1f} GB" if pool.get("memory_bytes") else ""


def replica_words(pools: Sequence[Pool]) -> str:
    """Write precision of the weights and parallel degrees of a replica, such as "fp8 prefill 10 x tp1; decode 3 x tp2"."""
    precisions = " + ".join(dict.fromkeys(str(pool["precision"]) for pool in pools if pool.get("precision")))
    layouts = "; ".join(layout_words(pool, batch=False, alone="tp1") for pool in pools)
    return f"{precisions} {layouts}" if precisions else layouts


def layout_words(pool: Pool, batch: bool = True, alone: str = "") -> str:
    """Write the parallel degrees of a pool, such as "decode 3 x tp2 batch 362"; `alone`: the words for one chip."""
    sizes = (
        " ".join(
            f"{key}{value}"
            for key, value in pool["layout"].items()
            if key in ("tp", "pp", "dp", "cp", "ep") and value != 1
        )
        or alone
        or Message.of("point.one_chip").text()
    )
    copies = f"{pool['workers']} x " if pool["workers"] > 1 else ""
    together = f" batch {pool['batch']}" if batch and pool["batch"] else ""
    if pool["role"] == "api":
        return Message.of("point.bought_tokens").text()
    role = "" if pool["role"] in ("serve", "train") else f"{pool['role']} "
    return f"{role}{copies}{sizes}{together}" if role or copies or together else sizes


def owned_sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List the table of systems that are owned already, if the spec has any."""
    unit = plan.document["spec"].get("currency", "USD")
    rows = [
        {
            "system": row["system"],
            "site": row["site"],
            "owned": f"{row['count']:,}",
            "kept": f"{row['kept']:,}",
            "moved": ", ".join(f"{count:,} to {site}" for site, count in row["moved"].items()),
            "sold": f"{row['sold']:,}",
            "idle": f"{row['idle']:,}",
            f"worth of one, {unit}": amount(row["worth"]),
            f"proceeds, {unit}": amount(row["proceeds"]),
            **({f"gain over the books, {unit}": amount(row["gain"])} if "gain" in row else {}),
        }
        for row in plan.document.get("owned", ())
    ]
    return [("What is owned already", rows)] if rows else []


def becomes(plan: Plan) -> list[tuple[str, str]]:
    """Say of each entry what stands where, and what becomes of it."""
    unit = plan.document["spec"].get("currency", "USD")
    told = []
    for row in plan.document.get("owned", ()):
        parts = [f"{row['kept']:,} of {row['count']:,} kept"]
        parts += [f"{count:,} moved to {site}" for site, count in row["moved"].items()]
        if row["sold"]:
            parts.append(
                f"{row['sold']:,} sold at {amount(row['worth'])} {unit} each, {amount(row['proceeds'])} in all"
            )
        if row["idle"]:
            parts.append(f"{row['idle']:,} idle, worth nothing")
        told.append((f"{row['system']} in {row['site']}", "; ".join(parts)))
    return told


def rented_sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List the table of systems that are rented already, if the spec has any."""
    rows = [
        {"system": row["system"], "site": row["site"], "count": f"{row['count']:,}", "plan": _return(plan, row)}
        for row in plan.document.get("rented", ())
    ]
    return [(Message.of("rented.heading").text(), rows)] if rows else []


def goes_back(plan: Plan) -> list[tuple[str, str]]:
    """Say of each entry of rented systems where they stand, and how many are kept, given back and kept longer."""
    rows = plan.document.get("rented", ())
    return [(f"{row['system']} in {row['site']}", _return(plan, row)) for row in rows]


def _return(plan: Plan, row: Rented) -> str:
    """Say what becomes of the systems of an entry: first those that go back early."""
    unit, end = plan.document["spec"].get("currency", "USD"), window_dates(plan)[-1].isoformat()
    count, until, parts = f"{row['count']:,}", row["until"], []
    for back in row["given_back"]:
        saved = {"day": back["day"], "amount": amount(back["saves"]), "unit": unit}
        parts.append(Message.of("rented.give_back", kept=f"{back['count']:,}", count=count, **saved))
    if row["kept"]:
        code = "rented.kept" if until <= end else "rented.kept_to_horizon"
        parts.append(Message.of(code, kept=f"{row['kept']:,}", count=count, day=until))
    for more in row["extended"]:
        code = "rented.extend" if more["day"] < end else "rented.extend_to_horizon"
        paid = {"day": more["day"], "amount": amount(more["costs"]), "unit": unit}
        parts.append(Message.of(code, kept=f"{more['count']:,}", count=count, until=until, **paid))
    return "; ".join(part.text() for part in parts)


def ways_to_have(plan: Plan) -> dict[tuple[str, str], str]:
    """Name how each (system, way to obtain it) of the fleet is had: a kept or moved system is owned, not bought; one may be rented already."""
    had: dict[tuple[str, str], set[str]] = {}
    for row in plan.document["fleet"]:
        had.setdefault((row["system"], row["how"]), set()).add(row["offer"].partition("[")[0])
    return {kind: _had(kind[1], ways) for kind, ways in had.items()}


def _had(how: str, lists: set[str]) -> str:
    """Name how systems of a kind are had, by the lists of the spec that their offers stand in."""
    for name in (OWNED, RENTED):
        if name in lists:
            return how_words(name if lists == {name} else f"{how} and {name}")
    return how_words(how)
