"""Tables of a plan's fleet, what becomes of systems that were owned already, the networks it stands on, and the points at work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from catalog.units import GIGA, show
from planner.messages import Message, commas, listed, named, say
from planner.plan import Plan
from planner.plan.rows.fleet import DeployedPool, Deployment, Fabric, FleetRow, Rented
from planner.plan.rows.points import Point, Pool
from planner.plan.rows.workloads import Workload
from planner.report.heads import Row
from planner.report.phases import span_words, window_dates, windows_of
from planner.report.words import amount, between, cap_words, how_words, whole

OWNED, RENTED = "owned", "rented"  # tables of a plan


def fleet_row(plan: Plan, row: FleetRow) -> Row:
    """Format a row of the fleet."""
    when = row.get("obtained") or span_words(plan, windows_of(row)) or say("span.throughout")
    return {
        "site": row["site"],
        "system": row["system"],
        "count": say("fleet.tokens_per_s", count=row["count"]) if row.get("unit") else count_words(row),
        "how": how_words(standing(row) or row["how"]),
        "fabric": row["topology"],
        "when": when,
    }


def standing(row: FleetRow) -> str:
    """Return the list of the spec, "owned" or "rented", that has the systems of a row already; empty for systems obtained anew."""
    name = row["offer"].partition("[")[0]
    return name if name in (OWNED, RENTED) else ""


def peaks_of_sites(plan: Plan) -> dict[str, float]:
    """Find the power [W] of each site in the slot in which it draws most."""
    peaks: dict[str, float] = {}
    for row in plan.document["schedule"]:
        peaks[row["site"]] = max(peaks.get(row["site"], 0.0), row["power_w"])
    return peaks


def count_words(row: FleetRow) -> int | str:
    """Write how many systems of a row are had: one number, or the range over the hours where systems are paid for by the hour."""
    hours = row.get("running") or [row["count"]]
    if min(hours) == max(hours):
        return row["count"]
    return say("hourly.runs", least=min(hours), most=max(hours))


def fabric_row(row: Fabric) -> Row:
    """Format a network: its parts, and how many of its places are taken."""
    design = row["design"]
    if row["tiers"] and design != "dragonfly":
        design = say(f"fleet.network.{'tiers' if row['tiers'] > 1 else 'tier'}", design=design, tiers=row["tiers"])
    return {
        "site": row["site"],
        "system": row["system"],
        "design": design,
        "systems": say("amount.of", part=f"{row['systems']:,}", whole=f"{row['size']:,}"),
        "switches": f"{row['switches']:,}",
        "links": f"{row['links']:,}",
        "optics": f"{row['optics']:,}",
        "power": show(row["power_w"], "W"),
        "price": whole(row["price"]),
        "charged": whole(row["charged"]),
        "bisection": show(row["bisection_bytes_per_s"], "byte/s"),
        "hops": say("fleet.network.hops", mean=f"{row['mean_hops']:.1f}", most=row["most_hops"]),
    }


def point_rows(plan: Plan) -> list[Row]:
    """Format the points of all workloads; points that differ only in the origins they serve share a row, with their replicas added up."""
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
    words = commas(
        say("fleet.start_part", part=named("start", name), time=show(time, "s")) for name, time in parts.items()
    )
    total = show(row["load_s"], "s")
    return say("amount.with_parts", amount=total, parts=words) if words else total


def deployment_rows(plan: Plan) -> list[Row]:
    """Format the workers of each deployment; plans whose replicas are divisible have none."""
    return [
        {
            "deployment": row["point"],
            "system": " + ".join(dict.fromkeys(pool["system"] for pool in row["pools"])),
            "replicas": row["replicas"],
            "workers": listed(_workers(pool) for pool in row["pools"]),
            "systems": "; ".join(f"{pool['systems']:,.4g}" for pool in row["pools"]),
            "loads_for": _loads_for(row),
            "loads": f"{row['loads']:,.0f}",
        }
        for row in plan.document.get("deployments", ())
    ]


def _workers(pool: DeployedPool) -> str:
    """Write how many workers of a role are resident, at least and at most."""
    least, most = pool["least_workers"], pool["workers"]
    count = f"{most:,}" if least == most else between(f"{least:,}", f"{most:,}")
    return count if pool["role"] == "serve" else say("fleet.workers", role=named("role", pool["role"]), count=count)


def _point_row(workload: Workload, point: Point) -> Row:
    top = max(point["breakdown"].items(), key=lambda item: item[1], default=("", 0.0))
    return {
        "workload": workload["name"],
        "site": point["site"],
        "system": " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"])),
        "layout": listed(layout_words(pool) for pool in point["pools"]),
        "precision": point["pools"][0]["precision"],
        "memory": "; ".join(_memory(pool) for pool in point["pools"]),
        "power_cap": cap_words(point.get("power_cap")),
        "replicas": "",
        "capacity": f"{point['capacity']:,.4g} {point['capacity_unit']}",
        "mostly": say("part.share", part=named("part", top[0]), share=f"{top[1]:.0%}"),
    }


def _memory(pool: Pool) -> str:
    """Write the memory that the fullest chip of a pool uses; plans of release 0.2 do not state it."""
    return f"{pool['memory_bytes'] / GIGA:.1f} GB" if pool.get("memory_bytes") else ""


def replica_words(pools: Sequence[Pool]) -> str:
    """Write precision of the weights and parallel degrees of a replica, such as "fp8 prefill 10 x tp1; decode 3 x tp2"."""
    precisions = " + ".join(dict.fromkeys(str(pool["precision"]) for pool in pools if pool.get("precision")))
    layouts = listed(layout_words(pool, batch=False, alone="tp1") for pool in pools)
    return say("point.replica", precision=precisions, layout=layouts) if precisions else layouts


def layout_words(pool: Pool, batch: bool = True, alone: str = "") -> str:
    """Write the parallel degrees of a pool, such as "decode 3 x tp2 batch 362"; `alone`: the words for one chip."""
    sizes = (
        " ".join(
            f"{key}{value}"
            for key, value in pool["layout"].items()
            if key in ("tp", "pp", "dp", "cp", "ep") and value != 1
        )
        or alone
        or say("point.one_chip")
    )
    if pool["role"] == "api":
        return say("point.bought_tokens")
    if pool["workers"] > 1:
        sizes = say("point.copies", count=f"{pool['workers']}", layout=sizes)
    if batch and pool["batch"]:
        sizes = say("point.batch", layout=sizes, batch=f"{pool['batch']}")
    if pool["role"] not in ("serve", "train"):
        sizes = say("point.role", role=named("role", pool["role"]), layout=sizes)
    return sizes


def owned_sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List the table of systems that are owned already, if the spec has any."""
    rows: list[Row] = [
        {
            "system": row["system"],
            "site": row["site"],
            "owned": f"{row['count']:,}",
            "kept": f"{row['kept']:,}",
            "moved": commas(say("fleet.moved_to", count=count, site=site) for site, count in row["moved"].items()),
            "sold": f"{row['sold']:,}",
            "idle": f"{row['idle']:,}",
            "worth_of_one": amount(row["worth"]),
            "proceeds": amount(row["proceeds"]),
            **({"gain_over_the_books": amount(row["gain"])} if "gain" in row else {}),
        }
        for row in plan.document.get("owned", ())
    ]
    return [(say("heading.owned"), rows)]


def becomes(plan: Plan) -> list[tuple[str, str]]:
    """Say of each entry of owned systems where the systems stand, and what becomes of them."""
    unit = plan.document["spec"].get("currency", "USD")
    told = []
    for row in plan.document.get("owned", ()):
        parts = [say("owned.kept", kept=row["kept"], count=row["count"])]
        parts += [say("owned.moved", count=count, site=site) for site, count in row["moved"].items()]
        if row["sold"]:
            sums = {"worth": amount(row["worth"]), "unit": unit, "proceeds": amount(row["proceeds"])}
            parts.append(say("owned.sold", count=row["sold"], **sums))
        if row["idle"]:
            parts.append(say("owned.idle", count=row["idle"]))
        told.append((say("fleet.system_in_site", system=row["system"], site=row["site"]), listed(parts)))
    return told


def rented_sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List the table of systems that are rented already, if the spec has any."""
    rows: list[Row] = [
        {"system": row["system"], "site": row["site"], "count": f"{row['count']:,}", "plan": _return(plan, row)}
        for row in plan.document.get("rented", ())
    ]
    return [(say("rented.heading"), rows)]


def goes_back(plan: Plan) -> list[tuple[str, str]]:
    """Say of each entry of rented systems where they stand, and how many are kept, given back and kept longer."""
    rows = plan.document.get("rented", ())
    return [(say("fleet.system_in_site", system=row["system"], site=row["site"]), _return(plan, row)) for row in rows]


def _return(plan: Plan, row: Rented) -> str:
    """Say what becomes of the systems of an entry, the early returns first."""
    unit, end = plan.document["spec"].get("currency", "USD"), window_dates(plan)[-1].isoformat()
    count, until, parts = f"{row['count']:,}", row["until"], []
    for back in row["given_back"]:
        saved = {"day": back["day"], "amount": amount(back["saves"]), "unit": unit}
        parts.append(Message.of("rented.give_back", kept=f"{back['count']:,}", count=count, **saved))
    if row["kept"]:
        code = "rented.kept" if until <= end else "rented.kept_to_horizon"
        said_until = {} if until <= end else {"until": until}
        parts.append(Message.of(code, kept=f"{row['kept']:,}", count=count, day=min(until, end), **said_until))
    for more in row["extended"]:
        code = "rented.extend" if more["day"] < end else "rented.extend_to_horizon"
        paid = {"day": more["day"], "amount": amount(more["costs"]), "unit": unit}
        parts.append(Message.of(code, kept=f"{more['count']:,}", count=count, until=until, **paid))
    return listed(part.text() for part in parts)


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
            return how_words(name if lists == {name} else f"{how}_and_{name}")
    return how_words(how)
