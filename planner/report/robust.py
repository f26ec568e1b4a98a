"""Format how sure a plan is, and the promise of a robust one: shares kept, cost, uncertain figures, and standby layouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from planner.messages import commas, enumerated, listed, named, say, stopped
from planner.plan import Plan
from planner.plan.rows.robust import Confidence, FurtherSystem, Outcome, PriceRange, StandingBy
from planner.report.heads import Row
from planner.report.why.verdict import OPTIMAL_GAP, percent
from planner.report.words import amount, between, cap_words, share_words, whole

QUESTION, LATER = say("confidence.question"), say("confidence.question_of_later")
NAMED = 3  # workloads that the sentence names; of further ones the least sure


def words(plan: Plan) -> str:
    """State the promise in a sentence."""
    found = plan.document.get("robustness")
    if not found or "words" in found:
        return found["words"] if found else ""
    unit = plan.objective["unit"]
    price = whole(found["price"]) if abs(found["price"]) >= 1000 else f"{found['price']:.3g}"
    fresh, nominal = found["fresh"], found["nominal"]
    share = (
        say("confidence.price_share", share=share_words(found["price"] / nominal["value"], "+.1%"))
        if nominal["value"]
        else ""
    )
    left = [_left_out(found["left_out"])] if found["left_out"] else []
    promise = say(
        "confidence.promise",
        kept=f"{fresh['kept']:.1%}",
        scenarios=f"{fresh['scenarios']:,}",
        asked=f"{found['confidence']:.0%}",
        nominal=f"{nominal['kept']:.1%}",
        price=price,
        unit=unit,
        share=share,
    )
    return listed([promise, *left])


def _left_out(names: Sequence[str]) -> str:
    """Say which features of the spec the scenarios do not model."""
    return say("confidence.not_modelled", names=commas(named("left_out", name) for name in names))


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of each table; none for a plan that is not robust."""
    found = plan.document.get("robustness")
    if not found or "words" in found:
        return []
    rows = [
        outcome_row(say("confidence.plan_sampled"), found["sampled"]),
        outcome_row(say("confidence.plan_fresh"), found["fresh"]),
        outcome_row(say("confidence.best_as_predicted"), found["nominal"]),
    ]
    levels = [say("head.level", level=f"{level:.0%}") for level in found["levels"]]
    uncertain: list[Row] = [
        {
            "what": named("uncertain", row["what"]),
            "of": row["of"],
            "metric": row["metric"],
            **{name: f"{factor:.3f}" for name, factor in zip(levels, row["factors"])},
        }
        for row in found["uncertain"]
    ]
    return [
        (say("heading.promise"), rows),
        (say("heading.uncertain"), uncertain),
        (say("heading.uncertain_prices"), [price_row(row) for row in found["prices"]]),
        (say("heading.standing_by"), [_standing(row) for row in found["standing_by"]]),
    ]


def outcome_row(name: str, outcome: Outcome) -> dict[str, Any]:
    """Format the outcome of a plan in scenarios as a row."""
    cost = outcome["cost"]
    return {
        "plan": name, "scenarios": f"{outcome['scenarios']:,}", "all_kept": f"{outcome['kept']:.1%}",
        **{say("head.workload_kept", workload=workload): f"{share:.1%}" for workload, share in outcome["workloads"].items()},
        "budget_kept": f"{outcome['budget']:.1%}", "cost_percentiles": between(whole(cost["p5"]), whole(cost["p95"])),
    }  # fmt: skip


def price_row(row: PriceRange) -> dict[str, Any]:
    """Format an uncertain price; `amount`: the part of the plan's cost in proportion to it."""
    return {
        "figure": row["path"],
        "low": f"{row['low']:,.4g} {row['unit']}",
        "typical": f"{row['typical']:,.4g} {row['unit']}",
        "high": f"{row['high']:,.4g} {row['unit']}",
        "of_the_plan_cost": whole(row["amount"]),
    }


def _standing(row: StandingBy) -> dict[str, Any]:
    pools = row["pools"]
    return {
        "workload": row["workload"], "site": row["site"], "system": " + ".join(dict.fromkeys(pool["system"] for pool in pools)), "precision": pools[0]["precision"],
        "layout": listed(say("point.copies", count=f"{pool['workers']}", layout=" ".join(f"{name}{size}" for name, size in pool["layout"].items() if size != 1) or say("point.one_chip")) for pool in pools),
        "power_cap": cap_words(row.get("power_cap")),
    }  # fmt: skip


# -- plans that were not made to be robust ---------------------------------------------------------------------------


def sure_clauses(plan: Plan) -> list[str]:
    """List the clauses of the sentence that says how sure a plan is, the most important first; none where the plan does not say."""
    if not plan.has_answer:
        return []
    if plan.document.get("robustness"):
        return [words(plan)]
    return list(_sure_clauses(plan)) if plan.document.get("confidence") else []


def sure_words(plan: Plan) -> str:
    """Say how sure a plan is in one sentence; empty where the plan does not say, or is robust and states its promise elsewhere."""
    found = sure_clauses(plan) if plan.document.get("confidence") else []
    found += later_clauses(plan) if found else []
    found += [words for words in [chosen_words(plan)] if words and found]
    return say("list.colon", question=QUESTION, clauses=stopped(listed(found))) if found else ""


def _sure_clauses(plan: Plan) -> Iterator[str]:
    found = plan.document["confidence"]
    told = {"kept": f"{found['kept']:.0%}", "scenarios": f"{found['scenarios']:,}", "workloads": _by_workload(found)}
    yield say("confidence.kept_at_least" if found["open"] else "confidence.kept", **told)
    if found["upgrade"] is not None:
        row, total = found["upgrade"], plan.totals["cost"]
        part = share_words(row["cost"] / total, "+.1%") if total else ""
        yield say(
            "confidence.upgrade",
            share=f"{row['share']:.0%}",
            cost=amount(row["cost"]),
            currency=_currency(plan),
            part=say("confidence.price_share", share=part) if part else "",
            systems=_systems(row["systems"]),
        )
    if found["left_out"]:
        yield _left_out(found["left_out"])


def later_clauses(plan: Plan, short: bool = False) -> list[str]:
    """State about what a promise costs where systems are rented by the hour later, in the scenarios that need them; none where the plan does not say."""
    sure = plan.document.get("confidence") if plan.has_answer else None
    found = sure.get("hired") if sure else None
    if not found or plan.document.get("adaptation"):
        return []
    total = plan.totals["cost"]
    part = say("confidence.price_share", share=share_words(found["cost"] / total, "+.1%")) if total else ""
    kinds = list(dict.fromkeys(row["system"] for row in found["systems"]))
    named = [*kinds[:NAMED], *([say("adapt.more", count=str(len(kinds) - NAMED))] if len(kinds) > NAMED else [])]
    told = {"share": f"{found['share']:.0%}", "cost": amount(found["cost"]), "currency": _currency(plan), "part": part}
    used = f"{found['used_in']:.0%}"
    if short:
        return [say("confidence.hired_short", **told, used=used)]
    return [say("confidence.hired", **told, systems=enumerated(named), used=used)]


def _systems(rows: Sequence[FurtherSystem]) -> str:
    """List systems with their counts."""
    return enumerated(say("amount.in_unit", amount=f"{row['count']:,}", unit=row["system"]) for row in rows)


def chosen_words(plan: Plan) -> str:
    """Say that a plan of higher confidence than the one found first was chosen, and what it costs; empty where none was."""
    row = plan.document.get("confidence_gain")
    if row is None:
        return ""
    value, before = plan.value, row["value_before"]
    change = (value - before) / abs(before) if before else 0.0
    cost = by = ""
    if abs(change) > OPTIMAL_GAP:
        cost = say("confidence.for_more" if change > 0 else "confidence.for_less", share=percent(abs(change)))
    if row["further"]:
        by = say("confidence.with_more", systems=_systems(row["further"]))
    return say(
        "confidence.chosen",
        within=f"{row['within']:.0%}",
        kept=f"{row['kept']:.1%}",
        before=f"{row['kept_before']:.1%}",
        cost=cost,
        further=by,
    )


def _by_workload(found: Confidence) -> str:
    """Write the share of each workload that is not always kept in brackets, the least sure first, and the promise that breaks first."""
    first = found["breaks_first"]
    if first is None:
        return ""
    broken = {name: share for name, share in found["workloads"].items() if share < 1.0}
    ranked = sorted(broken.items(), key=lambda item: (item[1], item[0] != first["workload"]))[:NAMED]
    parts = [
        say(
            "confidence.workload_by",
            workload=name,
            share=f"{share:.0%}",
            promise=named("promise_of", first["promise"].replace(".", " ")),
        )
        if name == first["workload"]
        else say("amount.in_unit", amount=name, unit=f"{share:.0%}")
        for name, share in ranked
    ]
    return say("confidence.by_workload", parts=commas(parts))


def _currency(plan: Plan) -> str:
    currency: str = plan.document["spec"].get("currency", "USD")
    return currency
