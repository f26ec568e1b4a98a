"""Format quality floors: the architectures that answer, the quality reached, and the cost of the next best choice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from catalog.units import show
from planner.messages import Message
from planner.plan import Plan
from planner.plan.rows.quality import Quality, QualityShare
from planner.report.words import share_words

TABLES = ("quality",)  # there only where the spec asks for it
HEADING = "Which architecture answers"
MIX = {
    "none": "one architecture for all requests",
    "each": "requests may be shared, each architecture keeps the floor",
    "hour": "requests may be shared, the mean over those of each hour keeps the floor",
    "mean": "requests may be shared, the mean over them keeps the floor",
}
SAME = 1e-6  # relative differences below this are rounding
MEANS = ("hour", "mean")  # ways to mix architectures whose mean keeps the floor
Row = dict[str, Any]


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    rows = [
        {
            "workload": row["workload"],
            "architecture": each["architecture"],
            "quality": f"{each['quality']:g}",
            "floor": _floor(row),
            "of the requests": f"{each['share']:.1%}" if each["share"] else "",
            "": _place(row, each),
        }
        for row in plan.document.get("quality", ())
        for each in sorted(row["architectures"], key=lambda each: -each["quality"])
    ]
    return [(HEADING, rows)] if rows else []


def _floor(row: Quality) -> str:
    floor = f"{row['floor']:g}"
    return Message.of(f"quality.{row['mix']}", floor=floor).text() if row["mix"] in MEANS else floor


def _place(row: Quality, each: QualityShare) -> str:
    if each["name"] is not None:
        return Message.of("quality.answers").text()
    if row["mix"] not in MEANS and each["quality"] < row["floor"]:
        return Message.of("quality.below_the_floor").text()
    is_next = row["runner_up"] and each["architecture"] in row["runner_up"]["architectures"]
    return Message.of("quality.next_best").text() if is_next else ""


def sentences(plan: Plan) -> Iterator[str]:
    """Explain the choice of architectures of each workload with a floor."""
    for row in plan.document.get("quality", ()):
        answering = [each for each in row["architectures"] if each["name"] is not None]
        who = _listed(
            [f"{each['architecture']}{f' ({_part(each)})' if len(answering) > 1 else ''}" for each in answering]
        )
        answer = "answer" if len(answering) > 1 else "answers"
        worst = (
            f" ({row['lowest_hour']:g} in the worst hour)" if row["lowest_hour"] < row["reached"] * (1 - SAME) else ""
        )
        mean = f"a mean of {row['reached']:g}{worst}" if len(answering) > 1 else f"{row['reached']:g}"
        yield f"{who} {answer} {row['workload']}: {mean} by {row['source']}, asked at least {row['floor']:g} ({MIX[row['mix']]}){_next(plan, row)}."


def _part(each: QualityShare) -> str:
    return f"{each['share']:.1%} of the requests"


def _next(plan: Plan, row: Quality) -> str:
    after = row["runner_up"]
    if after is None:
        return "; no other of its alternatives is as good" if row["mix"] not in MEANS else ""
    if after["value"] is None:
        return (
            f"; without {after['without']} there is no plan"
            if after["status"] == "infeasible"
            else f"; without {after['without']} none was found in time"
        )
    value = plan.value
    others = _listed(after["architectures"])
    if plan.objective["sense"] == "max":
        return f"; with {others} in its place the demand could be {after['value']:.4g} times as large, not {value:.4g}"
    worse, unit = after["difference"] or 0.0, plan.objective["unit"]
    share = f" ({share_words(worse / abs(value), '+.1%')})" if value else ""
    amount = show(worse, "kg") if unit == "kg" else f"{worse:,.0f} {unit}"
    return f"; the next best, {others}, would {'cause' if unit == 'kg' else 'cost'} {amount} more{share}"


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"
