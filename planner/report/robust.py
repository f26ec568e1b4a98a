"""Format how sure a plan is, and the promise of a robust one: shares kept, cost, uncertain figures, and standby layouts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from planner.plan import Plan
from planner.plan.rows.robust import Confidence, Outcome, PriceRange, StandingBy
from planner.report.why.verdict import OPTIMAL_GAP, percent
from planner.report.words import amount, cap_words, listed, share_words

PROMISE, UNCERTAIN, PRICES, STANDING = (
    "How sure it is",
    "What was uncertain",
    "Prices that were uncertain",
    "Layouts that stand by",
)
QUESTION = "How sure"
NAMED = 3  # workloads that the sentence names; of further ones the least sure
NOTES = {
    PROMISE: "Share of sampled scenarios in which all demand is served within the latency limits, all jobs end in time and the cost stays within the budget. "
    "In each scenario the fleet and its layouts stay; batches and routes are chosen anew. Fresh scenarios were not seen when the fleet was chosen.",
    UNCERTAIN: "Factors on demand, and measured over predicted on runs that the models had not been fitted to; one draw per chip for all its points.",
    STANDING: "Layouts besides those at work as predicted, for scenarios in which a chip is slower than predicted.",
}


def words(plan: Plan) -> str:
    """State the promise in a sentence."""
    found = plan.document.get("robustness")
    if not found or "words" in found:
        return found["words"] if found else ""
    unit = plan.objective["unit"]
    price = f"{found['price']:,.0f}" if abs(found["price"]) >= 1000 else f"{found['price']:.3g}"
    fresh, nominal = found["fresh"], found["nominal"]
    share = f" ({share_words(found['price'] / nominal['value'], '+.1%')})" if nominal["value"] else ""
    left = f"; not modelled: {', '.join(found['left_out'])}" if found["left_out"] else ""
    return (
        f"kept in {fresh['kept']:.1%} of {fresh['scenarios']:,} fresh scenarios, {found['confidence']:.0%} asked; the best plan as predicted keeps {nominal['kept']:.1%}; "
        f"price of the promise: {price} {unit}{share} as predicted{left}"
    )


def sections(plan: Plan) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return (heading, rows) of each table; none for a plan that is not robust."""
    found = plan.document.get("robustness")
    if not found or "words" in found:
        return []
    rows = [
        outcome_row("this plan, scenarios it was chosen for", found["sampled"]),
        outcome_row("this plan, fresh scenarios", found["fresh"]),
        outcome_row("best as predicted, fresh scenarios", found["nominal"]),
    ]
    levels = [f"{level:.0%} level" for level in found["levels"]]
    return [
        (PROMISE, rows),
        (UNCERTAIN, [{"what": row["what"], "of": row["of"], "metric": row["metric"], **{name: f"{factor:.3f}" for name, factor in zip(levels, row["factors"])}} for row in found["uncertain"]]),
        (PRICES, [price_row(row) for row in found["prices"]]),
        (STANDING, [_standing(row) for row in found["standing_by"]]),
    ]  # fmt: skip


def outcome_row(name: str, outcome: Outcome) -> dict[str, Any]:
    """Format the outcome of a plan in scenarios as a row."""
    cost = outcome["cost"]
    return {
        "plan": name, "scenarios": f"{outcome['scenarios']:,}", "all kept": f"{outcome['kept']:.1%}",
        **{f"{workload} kept": f"{share:.1%}" for workload, share in outcome["workloads"].items()},
        "budget kept": f"{outcome['budget']:.1%}", "cost, 5 to 95 % of scenarios": f"{cost['p5']:,.0f} to {cost['p95']:,.0f}",
    }  # fmt: skip


def price_row(row: PriceRange) -> dict[str, Any]:
    """Format an uncertain price; `amount`: the part of the plan's cost in proportion to it."""
    return {
        "figure": row["path"],
        "low": f"{row['low']:,.4g} {row['unit']}",
        "typical": f"{row['typical']:,.4g} {row['unit']}",
        "high": f"{row['high']:,.4g} {row['unit']}",
        "of the plan's cost": f"{row['amount']:,.0f}",
    }


def _standing(row: StandingBy) -> dict[str, Any]:
    pools = row["pools"]
    return {
        "workload": row["workload"], "site": row["site"], "system": " + ".join(dict.fromkeys(pool["system"] for pool in pools)), "precision": pools[0]["precision"],
        "layout": "; ".join(f"{pool['workers']} x {' '.join(f'{name}{size}' for name, size in pool['layout'].items() if size != 1) or '1 chip'}" for pool in pools),
        "power cap": cap_words(row.get("power_cap")),
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
    """Say it in a sentence; empty where the plan does not say, or as a robust plan says it elsewhere."""
    found = sure_clauses(plan) if plan.document.get("confidence") else []
    found += [words for words in [chosen_words(plan)] if words and found]
    return f"{QUESTION}: {'; '.join(found)}." if found else ""


def _sure_clauses(plan: Plan) -> Iterator[str]:
    found = plan.document["confidence"]
    least = "at least " if found["open"] else ""
    yield f"{least}{found['kept']:.0%} of {found['scenarios']:,} sampled scenarios keep all promises{_by_workload(found)}"
    if found["upgrade"] is not None:
        row, total = found["upgrade"], plan.totals["cost"]
        share = f" ({share_words(row['cost'] / total, '+.1%')})" if total else ""
        more = listed([f"{each['count']:,} {each['system']}" for each in row["systems"]])
        yield f"{row['share']:.0%} would cost {amount(row['cost'])} {_currency(plan)}{share} at most: {more} more"
    if found["left_out"]:
        yield f"not modelled: {', '.join(found['left_out'])}"


def chosen_words(plan: Plan) -> str:
    """Say that a plan of higher confidence than the one found first was chosen, and what it costs; empty where none was."""
    row = plan.document.get("confidence_gain")
    if row is None:
        return ""
    value, before = plan.value, row["value_before"]
    change = (value - before) / abs(before) if before else 0.0
    cost = f" for {percent(abs(change))} {'more' if change > 0 else 'less'}" if abs(change) > OPTIMAL_GAP else ""
    further = [f"{each['count']:,} {each['system']}" for each in row["further"]]
    by = f" with {listed(further)} more" if further else ""
    return f"highest confidence within {row['within']:.0%}: {row['kept']:.1%} of scenarios instead of {row['kept_before']:.1%}{cost}{by}"


def _by_workload(found: Confidence) -> str:
    """Write the share of each workload that is not always kept in brackets, the least sure first, and the promise that breaks first."""
    first = found["breaks_first"]
    if first is None:
        return ""
    broken = {name: share for name, share in found["workloads"].items() if share < 1.0}
    ranked = sorted(broken.items(), key=lambda item: (item[1], item[0] != first["workload"]))[:NAMED]
    parts = [
        f"{name} {share:.0%}" + (f" by {first['promise'].replace('.', ' ')}" if name == first["workload"] else "")
        for name, share in ranked
    ]
    return f" ({', '.join(parts)})"


def _currency(plan: Plan) -> str:
    currency: str = plan.document["spec"].get("currency", "USD")
    return currency
