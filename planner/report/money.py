"""Set the money of a plan on its page: the levelised cost of tokens, what they earn, and what the plan costs in all."""

from __future__ import annotations

from catalog.units import MWH_J, TONNE_KG, show
from planner.messages import commas, say
from planner.money.components import component_words
from planner.plan import Plan
from planner.plan.rows.workloads import Workload
from planner.report import electricity
from planner.report.heads import left, right
from planner.report.paper import Block, further
from planner.report.story import tightest
from planner.report.words import amount, whole
from planner.report.workloads import latency_words

NATIONAL_W = 1e8  # power of a fleet from which on it is told before the total, which the page opens with
CARRIES = 0.01  # share of the cost: smaller parts of it are left out
NAMED_PARTS = 4  # parts of the cost with their shares; others are added up


def workloads(plan: Plan) -> Block:
    """List the levelised cost of a million tokens of each workload, and the latency nearest to its limit or the time of its run."""
    entries = [
        (
            workload["name"],
            "" if workload["cost_per_million_tokens"] is None else f"{workload['cost_per_million_tokens']:.4f}",
            tokens_words(workload["tokens"]),
            whole(workload["cost"]),
            "" if workload["utilisation"] is None else f"{workload['utilisation']:.0%}",
            _kept(plan, workload),
        )
        for workload in sorted(plan.document["workloads"], key=lambda row: -row["cost"])
    ]
    currency = currency_of(plan)
    cost = right("cost_in_currency", currency=currency)
    first = (right("amount_in_currency", currency=currency), right("tokens"), cost)
    columns = (*first, right("utilisation"), left("tightest_limit_or_run"))
    return Block(say("heading.levelised"), columns, entries, further(len(entries)), least=5)


def earnings(plan: Plan) -> Block:
    """List revenue and margin of each workload with a selling price, the largest loss first."""
    sold = sorted((row for row in plan.document["workloads"] if "revenue" in row), key=lambda row: row["margin"])
    entries = [
        (
            row["name"],
            whole(row["revenue"]),
            whole(row["cost"]),
            whole(row["margin"]),
            f"{row['margin'] / row['revenue']:.1%}" if row["revenue"] else "",
            say("money.loss" if row["margin"] < 0 else "money.gain"),
        )
        for row in sold
    ]
    currency = currency_of(plan)
    names = ("revenue_in_currency", "cost_in_currency", "margin_in_currency")
    columns = (*(right(name, currency=currency) for name in names), right("of_revenue"), left(""))
    return Block(say("heading.earnings"), columns, entries, further(len(entries)), least=2)


def tokens_words(tokens: float) -> str:
    """Write a number of tokens in trillions, billions or millions.

    >>> tokens_words(1.46e14), tokens_words(2.5e9), tokens_words(0.0), tokens_words(5.11e16)
    ('146.000T', '2.500B', '0.000M', '51,100T')
    """
    size, unit = next(((size, unit) for size, unit in ((1e12, "T"), (1e9, "B")) if tokens >= size), (1e6, "M"))
    scaled = tokens / size
    return f"{scaled:,.3f}{unit}" if scaled < 1000 else f"{scaled:,.0f}{unit}"


def _kept(plan: Plan, workload: Workload) -> str:
    """Write the latency nearest to its limit, the price of an iteration, or how long the run of a job takes."""
    row = tightest(workload)
    if row is not None:
        return latency_words(row)
    if workload.get("cost_per_iteration"):
        price = {"price": f"{workload['cost_per_iteration']:,.2f}", "currency": currency_of(plan)}
        return say("workload.iterations", count=f"{workload['iterations']:,.0f}", **price)
    runs = [point["time_s"]["run"] for point in workload["points"] if point["time_s"]]
    return say("workload.run_of", time=show(max(runs), "s")) if runs else ""


def costs(plan: Plan) -> Block:
    """List the cost of a year and of the horizon, its components, and what else the plan adds up to."""
    totals, currency = plan.totals, currency_of(plan)
    years = plan.document["spec"].get("horizon", {}).get("years", 1)
    total = sum(plan.document["costs"].values())
    parts = sorted(plan.document["costs"].items(), key=lambda item: -item[1])
    parts = [(name, part) for name, part in parts if total and abs(part) >= CARRIES * abs(total)]
    cost = {"cost": amount(totals["cost"]), "currency": currency}
    if years == 1:
        total_words = say("money.total_of_the_year", **cost)
    else:
        total_words = say("money.total", years=f"{years}", yearly=amount(totals["cost"] / years), **cost)
    counts = say(
        "money.counts",
        chips=f"{totals['chips']:,}",
        power=show(totals["peak_power_w"], "W"),
        energy=whole(totals["energy_j"] / MWH_J),
        carbon=whole(totals["carbon_kg"] / TONNE_KG),
        tokens=tokens_words(totals["tokens"]),
    )
    told = [say("part.share", part=component_words(name), share=f"{part / total:.1%}") for name, part in parts]
    if len(parts) > NAMED_PARTS + 1:
        rest = total - sum(part for _, part in parts[:NAMED_PARTS])
        told = [*told[:NAMED_PARTS], say("part.others", share=f"{rest / total:.1%}")]
    shares = commas(told)
    first = (counts, total_words, shares) if totals["peak_power_w"] >= NATIONAL_W else (total_words, shares, counts)
    entries = [(words,) for words in (*first, electricity.carbon_words(plan), electricity.dispatch_words(plan))]
    return Block("", (), [entry for entry in entries if entry[0]], least=2)


def currency_of(plan: Plan) -> str:
    """Return the currency of a plan's amounts."""
    currency: str = plan.document["spec"].get("currency", "USD")
    return currency
