"""Format pools by prompt length: what each takes, the rule of the router, and what the division saves. Its contents: `planner.solving.pools`."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.units import show
from planner.messages import commas, say
from planner.plan import Plan
from planner.plan.rows.length_pools import DividedWorkload, LengthPool, LengthPools
from planner.report.heads import Row

HEADING = say("heading.length_pools")


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload is divided."""
    found = plan.document.get("length_pools")
    rows = [_row(pool) for each in found["workloads"] for pool in each["pools"]] if found else []
    return [(HEADING, rows)]


def _row(pool: LengthPool) -> Row:
    return {
        "pool": pool["name"],
        "prompts": _prompts(pool),
        "requests_s": f"{pool['requests_per_s']:,.4g}",
        "of_the_requests": f"{pool['share']:.1%}",
        "of_the_prompt_tokens": f"{pool['input_share']:.1%}",
        "of_the_answer_tokens": f"{pool['output_share']:.1%}",
        "mean_prompt": f"{pool['input']:,.0f}",
        "mean_answer": f"{pool['output']:,.0f}",
    }


def _prompts(pool: LengthPool) -> str:
    least, most = pool["above"] + 1, pool["up_to"]
    if most is None:
        return say("pools.prompts_from", least=f"{least:,}")
    if not pool["above"]:
        return say("pools.prompts_to", most=f"{most:,}")
    return say("pools.prompts_between", least=f"{least:,}", most=f"{most:,}")


def sentences(plan: Plan) -> Iterator[str]:
    """State boundaries with what they save, and the rule of the router; of an undivided workload that none saves."""
    found = plan.document.get("length_pools")
    if found is None or not plan.has_answer:
        return
    divided = [each for each in found["workloads"] if each["boundaries"]]
    if divided:
        yield _saving(plan, found, divided)
    for each in found["workloads"]:
        yield _rule(each) if each["boundaries"] else _undivided(each, found)


def _saving(plan: Plan, found: LengthPools, divided: list[DividedWorkload]) -> str:
    boundaries = commas(f"{edge:,}" for each in divided for edge in each["boundaries"])
    if found["saving"] is None:
        return say("pools.no_undivided", boundaries=boundaries)
    told = {
        "boundaries": boundaries,
        "saving": f"{abs(found['saving']):.2%}",
        "gap": _gap(plan.gap),
        "before": _gap(found["undivided"]["gap"]),
    }
    if found["saving"] < 0.0:
        return say("pools.costs_more", **told)
    return say("pools.saves", **told, proof=say("pools.is_proven" if found["proven"] else "pools.is_unproven"))


def _gap(gap: float | None) -> str:
    return "-" if gap is None else f"{gap:.2%}"


def _rule(each: DividedWorkload) -> str:
    rules = [say("pools.one_rule", prompts=_prompts(pool), pool=pool["name"]) for pool in each["pools"]]
    *others, last = each["pools"]
    if "ttft" not in last:
        return say("pools.rule", rules=commas(rules))
    told = {"last": last["name"], "ttft": _kept(last), "others": _kept(others[0])}
    return say("pools.rule_together", rules=commas(rules), **told)


def _kept(pool: LengthPool) -> str:
    """Name the limits that a pool keeps on the time to first token."""
    limits = pool.get("ttft", {}).items()
    return commas(say("pools.keeps", percentile=name, time=show(limit, "s")) for name, limit in limits) or say(
        "pools.keeps_none"
    )


def _undivided(each: DividedWorkload, found: LengthPools) -> str:
    value = found["undivided"]["value"]
    told: dict[str, str | int] = {"workload": each["workload"], "count": len(found["tried"])}
    settled = value is not None and all(
        row["bound"] is None or row["bound"] >= value * (1.0 - 1e-7) or row["value"] is not None
        for row in found["tried"]
    )
    if found["untried"] or not settled:
        return say("pools.none_found", **told, untried=found["untried"])
    return say("pools.none_better", **told)
