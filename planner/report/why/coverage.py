"""Say which operating points a bound covers, and which candidates were left out by rules that prove nothing."""

from __future__ import annotations

from planner.messages import Message, commas, said, say
from planner.plan import Plan


def short_words(plan: Plan) -> str:
    """Count the points that the bound covers and the candidates that it does not cover; empty where it covers all, or is none."""
    row = plan.document.get("coverage")
    if row is None or plan.document["bound"] is None or not row["left_out"]:
        return ""
    return say("coverage.short", points=f"{row['points']:,}", left_out=f"{row['left_out']:,}")


def words(plan: Plan) -> str:
    """Say what the bound covers, and list each rule that proves nothing with the candidates that it left out; empty without a bound."""
    row = plan.document.get("coverage")
    if row is None or plan.document["bound"] is None:
        return ""
    if not row["left_out"]:
        return say("coverage.all", points=f"{row['points']:,}")
    rules = commas(
        Message.of("coverage.rule", count=f"{each['count']:,}", reason=said(each, "reason")).text()
        for each in row["reasons"]
    )
    return say("coverage.full", points=f"{row['points']:,}", left_out=f"{row['left_out']:,}", rules=rules)
