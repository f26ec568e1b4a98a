"""Format the tables of workloads, costs and routes."""

from __future__ import annotations

from catalog.units import show
from planner.messages import commas, listed, say
from planner.money.components import component_words
from planner.plan import Plan
from planner.plan.rows.points import Placement, Point
from planner.plan.rows.workloads import LatencyRow, Workload
from planner.report.heads import Row
from planner.report.words import whole


def workload_row(workload: Workload) -> Row:
    """Format a workload: tokens, cost, utilisation, latencies, run and ranks."""
    slo = commas(latency_words(row) for row in workload["slo"] if row["predicted_s"] is not None)
    per_million = workload["cost_per_million_tokens"]
    return {
        "workload": workload["name"],
        "tokens": f"{workload['tokens'] / 1e12:,.3f}T",
        "levelised_per_million": "" if per_million is None else f"{per_million:.4f}",
        "mfu": _flops_utilisation(workload),
        "utilisation": "" if workload["utilisation"] is None else f"{workload['utilisation']:.0%}",
        "latency_at_the_user": slo,
        "run": listed(_run(point) for point in workload["points"] if point["time_s"]),
        "ranks": listed(_ranks(point["placement"]) for point in workload["points"] if point["placement"]),
    }


def latency_words(row: LatencyRow) -> str:
    """Write a predicted latency and its limit."""
    metric = f"{row['metric']} {row['percentile']}"
    return say(
        "workload.latency",
        metric=metric,
        predicted=show(row["predicted_s"] or 0.0, "s"),
        limit=show(row["limit_s"], "s"),
    )


def _flops_utilisation(workload: Workload) -> str:
    """Write the MFU, with the HFU of a job."""
    if workload["mfu"] is None:
        return ""
    return f"{workload['mfu']:.1%}" + (f", HFU {workload['hfu']:.1%}" if workload.get("hfu") else "")


def _run(point: Point) -> str:
    """Write how long a job takes at full width, with its 80 % interval."""
    low, high = (show(bound, "s") for bound in (point["interval_80"] or {})["run"] if bound is not None)
    time = {"time": show(point["time_s"]["run"], "s"), "low": low, "high": high}
    return say("workload.run", goodput=f"{point['goodput']:.1%}", **time)


def _ranks(placement: Placement) -> str:
    """Write the best order of the parallel dimensions on the network, and the load of the busiest link in it and in number order."""
    order = (
        " / ".join(" ".join(along) for along in placement["order"] if along)
        if "factors" in placement
        else " ".join(map(str, placement["order"]))
    )
    usual = placement["in_number_order_s"]
    against = "" if usual is None else say("workload.in_number_order", time=show(usual, "s"))
    return say("workload.ranks", order=order, time=show(placement["busiest_link_s"], "s"), against=against)


def cost_rows(plan: Plan) -> list[Row]:
    """Format the costs, largest first."""
    total = sum(plan.document["costs"].values())
    rows = sorted(plan.document["costs"].items(), key=lambda item: -item[1])
    return [
        {
            "component": component_words(name),
            "amount": whole(amount),
            "share": f"{amount / total:.1%}" if total else "",
        }
        for name, amount in rows
    ]


def route_rows(plan: Plan) -> list[Row]:
    """Average the output tokens per second over the horizon by workload, origin and site."""
    seconds = {row["slot"]: row["seconds"] for row in plan.document["schedule"]}
    total = sum(seconds.values())
    flows: dict[tuple[str, str, str, str | None], float] = {}
    for row in plan.document["routes"]:
        key = (row["workload"], row["origin"], row["site"], row.get("line"))
        flows[key] = flows.get(key, 0.0) + row["tokens_per_s"] * seconds[row["slot"]] / total
    return [
        {"workload": w, "from": origin, "served_in": site}
        | ({} if line is None else {"line": line})
        | {"output_tokens_s": whole(flow)}
        for (w, origin, site, line), flow in flows.items()
    ]
