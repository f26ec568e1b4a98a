"""Write the comments at the head of a file: the tool and its version, the plan with its bound, and predictions with their intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from catalog import units
from planner.escape import terminal
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.points import Point
from planner.ways_out.deployed import ENCODE, Deployed, EnginePool, Job, Served


def plan_lines(deployed: Deployed, tool: str) -> list[str]:
    """Name the tool, the plan by name and id, its objective and the bound."""
    plan = deployed.plan
    return [
        Message.of("ways_out.tool", tool=tool).text(),
        Message.of("ways_out.plan", name=plan["name"], plan_id=deployed.plan_id).text(),
        _objective(plan),
    ]


def served_lines(deployed: Deployed, served: Served, tool: str) -> list[str]:
    """Write the head of a deployment: plan, workers, predicted latencies and throughput."""
    counts = ", ".join(f"{pool.workers} {pool.role} ({pool.per_replica})" for pool in served.pools)
    whole = "ways_out.deployment" if deployed.plan.document.get("replicas") == "whole" else "ways_out.rounded_up"
    return [
        *plan_lines(deployed, tool),
        Message.of(
            whole, point=served.point["id"], site=served.row["site"], replicas=served.row["replicas"], counts=counts
        ).text(),
        *_predicted(served.point, {**served.point["latency_s"]}),
    ]


def job_lines(deployed: Deployed, job: Job, tool: str) -> list[str]:
    """Write the head of a job: plan, chips, predicted times and throughput."""
    systems = job.pool["systems_per_replica"]
    named = Message.of(
        "ways_out.job",
        point=job.point["id"],
        site=job.point["site"],
        chips=job.chips,
        systems=systems,
        system=job.pool["system"],
    )
    return [*plan_lines(deployed, tool), named.text(), *_predicted(job.point, {**job.point["time_s"]})]


def remarks(served: Served, pool: EnginePool, engine: str, version: str, quantisation: bool) -> list[str]:
    """Say what the flags of an engine do not hold of a pool: formats that only a checkpoint brings, groups of experts, drafts."""
    found: list[Message] = []
    if not quantisation and pool.precision not in ("bf16", "fp16"):
        found.append(Message.of("ways_out.checkpoint_format", precision=pool.precision, model=served.model))
    if engine == "vllm" and 1 < pool.ep != pool.tp * pool.dp:
        found.append(Message.of("ways_out.expert_ranks", ep=pool.ep, ranks=pool.tp * pool.dp, version=version))
    if served.has_draft_model:
        found.append(Message.of("ways_out.draft_model"))
    if any(each.role == ENCODE for each in served.pools):
        found.append(Message.of("ways_out.connect_encoders"))
    return [each.text() for each in found]


def commented(lines: Iterable[str], mark: str = "# ") -> str:
    """Write lines as comments, whatever characters they hold; each ends with a line break."""
    return "".join(f"{mark}{terminal(line)}\n" for line in lines)


def interval(bounds: Sequence[float | None] | None, unit: str) -> str:
    """Write the interval in which 80 % of runs fall; an empty text without one."""
    if bounds is None or bounds[0] is None:
        return ""
    low = units.show(bounds[0], unit)
    if (high := bounds[1]) is None:
        return Message.of("ways_out.interval_without_end", low=low).text()
    return Message.of("ways_out.interval", low=low, high=units.show(high, unit)).text()


def _objective(plan: Plan) -> str:
    objective = plan.objective
    arguments: dict[str, str | float] = {"value": plan.value, "unit": objective["unit"], "status": plan.status}
    if plan["bound"] is None or plan.gap is None:
        return Message.of("ways_out.no_bound", **arguments).text()
    return Message.of("ways_out.bound", bound=plan["bound"], gap=f"{plan.gap:.2%}", **arguments).text()


def _predicted(point: Point, times_s: dict[str, float]) -> list[str]:
    """List predicted times and the capacity of a replica, each with its interval."""
    bounds = point["interval_80"] or {}
    rows = [(name, value, "s") for name, value in times_s.items()]
    rows.append(("throughput", point["capacity"], point["capacity_unit"]))
    return [
        Message.of(
            "ways_out.predicted",
            what=name,
            value=units.show(value, unit),
            interval=interval(bounds.get("capacity" if name == "throughput" else name), unit),
        ).text()
        for name, value, unit in rows
    ]
