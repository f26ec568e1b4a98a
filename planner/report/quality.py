"""Format quality floors: the architectures that answer, the quality reached, and the cost of the next best choice."""

from __future__ import annotations

from collections.abc import Iterator

from catalog.units import show
from planner.messages import say
from planner.plan import Plan
from planner.plan.rows.quality import Quality, QualityShare
from planner.report.heads import Row
from planner.report.words import listed, share_words, whole

TABLES = ("quality",)  # there only where the spec asks for it
HEADING = say("heading.architectures")
SAME = 1e-6  # relative differences below this are rounding
MEANS = ("hour", "mean")  # ways to mix architectures whose mean keeps the floor


def sections(plan: Plan) -> list[tuple[str, list[Row]]]:
    """List (heading, rows) of the table; without rows where no workload has a floor."""
    rows: list[Row] = [
        {
            "workload": row["workload"],
            "architecture": each["architecture"],
            "quality": f"{each['quality']:g}",
            "floor": _floor(row),
            "of_the_requests": f"{each['share']:.1%}" if each["share"] else "",
            "": _place(row, each),
        }
        for row in plan.document.get("quality", ())
        for each in sorted(row["architectures"], key=lambda each: -each["quality"])
    ]
    return [(HEADING, rows)]


def _floor(row: Quality) -> str:
    floor = f"{row['floor']:g}"
    return say(f"quality.{row['mix']}", floor=floor) if row["mix"] in MEANS else floor


def _place(row: Quality, each: QualityShare) -> str:
    if each["name"] is not None:
        return say("quality.answers")
    if row["mix"] not in MEANS and each["quality"] < row["floor"]:
        return say("quality.below_the_floor")
    is_next = row["runner_up"] and each["architecture"] in row["runner_up"]["architectures"]
    return say("quality.next_best") if is_next else ""


def sentences(plan: Plan) -> Iterator[str]:
    """Explain the choice of architectures of each workload with a floor."""
    for row in plan.document.get("quality", ()):
        answering = [each for each in row["architectures"] if each["name"] is not None]
        several = len(answering) > 1
        worst, reached = "", f"{row['reached']:g}"
        if row["lowest_hour"] < row["reached"] * (1 - SAME):
            worst = say("quality.worst_hour", lowest=f"{row['lowest_hour']:g}")
        yield say(
            "quality.several_answer" if several else "quality.one_answers",
            architectures=listed([_part(each) if several else each["architecture"] for each in answering]),
            workload=row["workload"],
            reached=say("quality.mean_reached", reached=reached, worst=worst) if several else reached,
            source=row["source"],
            floor=f"{row['floor']:g}",
            mix=say(f"quality.mix.{row['mix']}"),
            further=_next(plan, row),
        )


def _part(each: QualityShare) -> str:
    return say("quality.part", architecture=each["architecture"], share=f"{each['share']:.1%}")


def _next(plan: Plan, row: Quality) -> str:
    after = row["runner_up"]
    if after is None:
        return say("quality.no_other") if row["mix"] not in MEANS else ""
    if after["value"] is None:
        found = "no_plan_without" if after["status"] == "infeasible" else "none_found_without"
        return say(f"quality.{found}", architecture=after["without"])
    value, others = plan.value, listed(after["architectures"])
    if plan.objective["sense"] == "max":
        return say("quality.demand_with", others=others, factor=f"{after['value']:.4g}", value=f"{value:.4g}")
    worse, unit = after["difference"] or 0.0, plan.objective["unit"]
    share = say("confidence.price_share", share=share_words(worse / abs(value), "+.1%")) if value else ""
    amount = show(worse, "kg") if unit == "kg" else say("amount.in_unit", amount=whole(worse), unit=unit)
    return say(f"quality.next_{'emits' if unit == 'kg' else 'costs'}", others=others, amount=amount, share=share)
