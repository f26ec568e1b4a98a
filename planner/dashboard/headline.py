"""State the answer of a plan in a sentence and in its main figures. No Streamlit here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypedDict

from catalog.units import TRILLION
from planner.dashboard.figures import amount, count, number
from planner.escape import page
from planner.messages import enumerated, listed
from planner.plan import Plan
from planner.plan.rows.fleet import FleetRow
from planner.report.fleet import standing
from planner.report.locale import Words
from planner.report.outputs import adapt
from planner.report.story import cost_of_kinds
from planner.report.why.verdict import simplified_words
from planner.report.words import is_searched

NAMED = 4  # systems of a way that a sentence names


@dataclass(frozen=True, slots=True)
class Metric:
    """A headline figure."""

    label: str
    value: str
    help: str


def currency(plan: Plan) -> str:
    """Return the currency of a plan's amounts."""
    found: str = plan.document["spec"].get("currency", "USD")
    return found


def shown_currency(plan: Plan, t: Words) -> str:
    """Return the currency in which a plan's amounts are shown."""
    return t.display.shown(currency(plan))


def money(plan: Plan, amount: float, t: Words) -> float:
    """Convert an amount of a plan into the currency in which it is shown."""
    return t.display.money(amount, currency(plan))


def per_tokens(plan: Plan, t: Words) -> dict[str, str]:
    """Name what a price of tokens is stated in: currency, and number of tokens."""
    return {"currency": page(shown_currency(plan, t)), "per": t(f"per.{t.display.tokens}")}


def price_of_tokens(plan: Plan, per_million: float | None, t: Words) -> float | None:
    """Convert a price per million tokens into the currency and for the number of tokens that are shown."""
    return None if per_million is None else t.display.per_tokens(per_million, currency(plan))


def serves_nothing(plan: Plan) -> bool:
    """Tell whether the most throughput that a plan finds is none: it serves 0 times the demand."""
    return plan.has_answer and plan.objective["sense"] == "max" and plan.value <= 0


def tells_figures(plan: Plan) -> bool:
    """Tell whether a plan has main figures to show."""
    return plan.has_answer and not serves_nothing(plan)


def verdict(plan: Plan, t: Words) -> tuple[str, str]:
    """State the status and the proven gap: (level, sentence), the level success, warning or error."""
    searched = is_searched(plan)
    level = {"optimal": "success", "within_gap": "success", "limit": "warning"}.get(plan.status, "error")
    words = t("page_status.searched" if searched else f"page_status.{plan.status}")
    if not plan.has_answer:
        return level, t("page_status.no_time") if plan.status == "limit" else words
    if serves_nothing(plan):
        return "error", t("page_status.nothing", status=words)
    objective = plan.objective
    asked = plan.document["spec"].get("objective") or {}
    goal = t(
        f"goal.{asked.get('minimise') or asked.get('maximise') or 'cost'}",
        value=page(amount(plan.value, objective["unit"], t)),
    )
    level = "success" if searched else level
    if plan.gap is None or plan.document["bound"] is None:
        return level, t("page_status.unproven", status=words, goal=goal)
    bound = page(amount(plan.document["bound"], objective["unit"], t))
    proven = t("page_status.proven", status=words, goal=goal, bound=bound, gap=f"{plan.gap:.3%}")
    return level, " ".join(filter(None, (proven, simplified_words(plan, t))))


def in_short(plan: Plan, t: Words, sure: bool = True) -> str:
    """Say in short what to buy, rent and keep, where, what it comes to, and how sure it is unless that is told apart.

    A plan that is adapted later says what to sign, and what it is expected to cost.
    """
    kinds: dict[tuple[str, str, str], dict[str, int]] = {}
    for row in plan.document["fleet"]:
        held = kinds.setdefault((row["system"], row["how"], _way(row)), {})
        held[row["site"]] = max(held.get(row["site"], 0), row["count"])
    costs, parts = cost_of_kinds(plan), []
    for way in ("buy", "rent", "keep", "api"):
        mine = [kind for kind in kinds if kind[2] == way]
        mine.sort(key=lambda kind: -costs.get(kind[:2], 0.0))
        named = [
            t("buy.in", count=f"{sum(kinds[kind].values()):,}", system=kind[0], sites=t.phrase(enumerated(kinds[kind])))
            for kind in mine[:NAMED]
        ]
        more = [t("buy.others", count=len(mine) - NAMED)] if len(mine) > NAMED else []
        if mine:
            parts.append(t(f"buy.{way}", things=t("buy.comma").join(named + more)))
    years = (plan.document["spec"].get("horizon") or {}).get("years", 1)
    cost, unit = plan.totals["cost"], currency(plan)
    if later := plan.document.get("adaptation"):
        parts, cost = [t.phrase(adapt.clauses(plan)[0])], later["fresh"]["cost"]
    told = {"parts": listed(parts), "cost": amount(cost, unit, t)}
    if years == 1:
        words = t("buy.plan_of_a_year", **told)
    else:
        words = t("buy.plan", years=number(float(years)), yearly=amount(cost / years, unit, t), **told)
    found = plan.document.get("confidence")
    if sure and later:
        fresh = later["fresh"]
        words += t("buy.sure", kept=f"{fresh['kept']:.0%}", scenarios=f"{fresh['scenarios']:,}")
    elif sure and found:
        words += t("buy.sure", kept=f"{found['kept']:.0%}", scenarios=f"{found['scenarios']:,}")
    return page(words)


def _way(row: FleetRow) -> str:
    """Name how systems of a row are had: bought or rented anew, kept (those that are owned or rented already), or as tokens of an API."""
    if standing(row):
        return "keep"
    return row["how"] if row["how"] in ("buy", "api") else "rent"


def plan_metrics(plan: Plan, t: Words) -> list[Metric]:
    """List the headline figures of the whole plan."""
    totals = plan.totals
    years = (plan.document["spec"].get("horizon") or {}).get("years", 1)
    return [
        Metric(
            t("metric.cost", currency=page(shown_currency(plan, t))),
            count(money(plan, totals["cost"], t), t),
            t(
                "metric.cost.help",
                years=number(float(years)),
                yearly=count(money(plan, totals["cost"], t) / years, t),
            ),
        ),
        Metric(t("metric.chips"), f"{totals['chips']:,}", t("metric.chips.help")),
        Metric(t("metric.peak"), amount(totals["peak_power_w"], "W", t), t("metric.peak.help")),
        Metric(t("metric.carbon"), amount(totals["carbon_kg"], "kg", t), t("metric.carbon.help")),
        Metric(t("metric.gap"), t("metric.none") if plan.gap is None else f"{plan.gap:.3%}", t("metric.gap.help")),
    ]


def workload_metrics(plan: Plan, t: Words) -> list[Metric]:
    """List how many latencies hold with their intervals, and the cost per million tokens of each workload."""
    found = []
    if latencies := list(latency_intervals(plan)):
        sure = sum(row["most_s"] <= row["limit_s"] for row in latencies)
        row = min(latencies, key=lambda row: (row["limit_s"] - row["most_s"]) / row["limit_s"])
        words = t(
            "metric.sure.help",
            what=f"{row['metric'].upper()} {row['percentile']}",
            workload=page(row["workload"]),
            site=page(row["site"]),
            predicted=amount(row["predicted_s"], "s", t),
            least=bound(row["least_s"], t),
            most=bound(row["most_s"], t),
            limit=amount(row["limit_s"], "s", t),
        )
        found.append(Metric(t("metric.sure"), t("metric.sure.of", sure=sure, all=len(latencies)), words))
    for workload in plan.document["workloads"]:
        if (price := workload["cost_per_million_tokens"]) is not None:
            words = t(f"metric.per_million.{workload['kind']}.help")
            label = t("metric.per_million", workload=page(workload["name"]), **per_tokens(plan, t))
            found.append(Metric(label, number(t.display.per_tokens(price, currency(plan))), words))
    return found


class Slo(TypedDict):
    """A latency limit for which a plan predicts a value."""

    workload: str
    metric: str
    percentile: str
    limit_s: float
    predicted_s: float
    slack_s: float


class LatencyInterval(TypedDict):
    """A limited latency of a point at work, with its interval of 80 %, as the user sees it."""

    workload: str
    site: str
    metric: str
    percentile: str
    limit_s: float
    predicted_s: float
    least_s: float
    most_s: float  # infinite where the plan states no bound


def slo_rows(plan: Plan) -> list[Slo]:
    """List every latency limit for which the plan predicts a value."""
    return [
        {
            "workload": w["name"],
            "metric": row["metric"],
            "percentile": row["percentile"],
            "limit_s": row["limit_s"],
            "predicted_s": row["predicted_s"],
            "slack_s": row["slack_s"],
        }
        for w in plan.document["workloads"]
        for row in w["slo"]
        if row["predicted_s"] is not None and row["slack_s"] is not None
    ]


def bound(seconds: float, t: Words) -> str:
    """Write a bound of a latency; where the load may be more than the point serves, it has none."""
    return amount(seconds, "s", t) if math.isfinite(seconds) else t("interval.unbounded")


def latency_intervals(plan: Plan) -> Iterator[LatencyInterval]:
    """Yield each limited latency of each point at work with its interval of 80 %, as the user sees it.

    The round trip is that of the workload's slowest route, the difference between the latency at the user and the largest at a site, so
    that an interval is never too early.
    """
    for workload in plan.document["workloads"]:
        for row in workload["slo"]:
            key = f"{row['metric']}.{row['percentile']}"
            points = [point for point in workload["points"] if key in point["latency_s"]]
            if row["predicted_s"] is None or not points:
                continue
            away = max(0.0, row["predicted_s"] - max(point["latency_s"][key] for point in points))
            for point in points:
                least, most = (point["interval_80"] or {}).get(key, (point["latency_s"][key],) * 2)
                yield {
                    "workload": workload["name"],
                    "site": point["site"],
                    "metric": row["metric"],
                    "percentile": row["percentile"],
                    "limit_s": row["limit_s"],
                    "predicted_s": point["latency_s"][key] + away,
                    "least_s": math.inf if least is None else least + away,
                    "most_s": math.inf if most is None else most + away,
                }


def energy_line(plan: Plan, t: Words) -> str:
    """Write energy and tokens in a line."""
    totals = plan.totals
    tokens = totals["tokens"] / TRILLION
    return t("totals.words", energy=amount(totals["energy_j"], "J", t), tokens=number(tokens))
