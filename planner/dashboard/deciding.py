"""Sum a plan up for who decides: risk, odds, what breaks first, cost a year and over the horizon with its range, what helps most. No Streamlit here."""

from __future__ import annotations

import time
from dataclasses import dataclass

from planner.dashboard.figures import amount, count, number, tidy
from planner.dashboard.headline import Metric, currency, money, per_tokens, shown_currency
from planner.escape import page
from planner.messages import commas, listed, stopped
from planner.plan import Plan
from planner.report import marginal_values, robust
from planner.report.locale import Words
from planner.report.outputs import adapt
from planner.report.why import looser
from planner.report.words import share_words
from planner.version import __version__

LOW, MEDIUM, HIGH, UNKNOWN = RISKS = ("low", "medium", "high", "unknown")
ASKED = 0.8
"""Share of the scenarios that a plan keeps where its spec asks for none; a plan states what keeping as many would cost."""
HALF = 0.5  # a plan that keeps its promises less often breaks one in more scenarios than not
PRICES = 4  # workloads whose prices are written
PROMISE_TOL = 0.03  # what two samples of scenarios differ by


@dataclass(frozen=True, slots=True)
class Odds:
    """In which share of sampled scenarios a plan keeps all its promises, and in which it is asked to."""

    kept: float
    asked: float
    scenarios: int
    is_promised: bool = True
    """Whether the spec asks for it."""

    @property
    def risk(self) -> str:
        """Return the risk of a promise that is broken: low, medium or high."""
        if self.kept >= self.asked - (PROMISE_TOL if self.is_promised else 0.0):
            return LOW
        return MEDIUM if self.kept >= HALF else HIGH


def odds(plan: Plan) -> Odds | None:
    """Return the odds that a plan states; None for one that was not tried in scenarios."""
    document = plan.document
    if found := document.get("adaptation"):
        return Odds(found["fresh"]["kept"], found["promise"], found["fresh"]["scenarios"])
    promised = document.get("robustness")
    if promised and "words" not in promised:
        return Odds(promised["fresh"]["kept"], promised["confidence"], promised["fresh"]["scenarios"])
    if sure := document.get("confidence"):
        return Odds(sure["kept"], ASKED, sure["scenarios"], is_promised=False)
    return None


def risk(plan: Plan) -> str:
    """Return the risk of a plan, one of `RISKS`."""
    found = odds(plan)
    return UNKNOWN if found is None else found.risk


def odds_words(plan: Plan, t: Words) -> str:
    """Say in which share of scenarios a plan keeps its promises, what breaks first, and what would keep more."""
    document = plan.document
    if document.get("adaptation"):
        return page(tidy(t.phrase(stopped(listed(adapt.clauses(plan)[1:])))))
    if document.get("robustness"):
        return page(tidy(t.phrase(stopped(robust.words(plan)))))
    found = odds(plan)
    if found is None:
        return t("decision.odds_unknown")
    kept = t("decision.odds", kept=f"{found.kept:.0%}", scenarios=f"{found.scenarios:,}")
    told = (kept, page(promise(plan, t)), page(upgrade(plan, t)) or page(hired(plan, t)))
    return t("decision.space").join(filter(None, told))


def promise(plan: Plan, t: Words) -> str:
    """Name the promise that breaks first; empty where none does."""
    sure = plan.document.get("confidence")
    first = sure["breaks_first"] if sure else None
    if first is None:
        return ""
    metric, _, percentile = first["promise"].partition(".")
    name = f"{metric.upper()} {percentile}" if percentile else t(f"promise.{metric}")
    return t("hold.first", workload=first["workload"], promise=name, kept=f"{first['kept']:.0%}")


def upgrade(plan: Plan, t: Words) -> str:
    """Say what keeping more would cost; empty where that is not known."""
    sure = plan.document.get("confidence")
    row = sure["upgrade"] if sure else None
    if row is None:
        return ""
    more = ", ".join(f"{each['count']:,} {each['system']} ({each['site']})" for each in row["systems"])
    total = plan.totals["cost"]
    return t(
        "hold.upgrade",
        share=f"{row['share']:.0%}",
        cost=amount(row["cost"], currency(plan), t),
        of=t.phrase(share_words(row["cost"] / total)) if total else "–",
        systems=more,
    )


def hired(plan: Plan, t: Words) -> str:
    """Say about what keeping more costs where systems are rented by the hour once they are needed; empty where that is not known."""
    sure = plan.document.get("confidence")
    row = sure.get("hired") if sure else None
    if not row or plan.document.get("adaptation"):
        return ""
    return t("decision.hired", share=f"{row['share']:.0%}", cost=page(amount(row["cost"], currency(plan), t)))


def helps(plan: Plan, t: Words) -> str:
    """Say what one more unit of the limit that helps most is worth, or which latency limit is worth loosening; empty where nothing is known to help."""
    told = [sentence for _, sentences in marginal_values.chapters(plan) for sentence in sentences]
    told = told or looser.sentences(plan)
    return page(tidy(t.phrase(told[0]))) if told else ""


def made_words(made_s: float, author: str, stored: bool, t: Words) -> str:
    """Say when a plan was made, and by whom; empty where neither is known."""
    if stored:
        return t("decision.made_stored", version=__version__)
    if not made_s:
        return t("decision.made_by", author=page(author)) if author else ""
    date = time.strftime("%Y-%m-%d", time.gmtime(made_s))
    return t("decision.made_on_by", date=date, author=page(author)) if author else t("decision.made_on", date=date)


def prices_words(plan: Plan, t: Words) -> str:
    """Write the price of each workload's tokens; empty where none has one."""
    found = [
        f"{page(workload['name'])} {number(t.display.per_tokens(price, currency(plan)))}"
        for workload in plan.document["workloads"]
        if (price := workload["cost_per_million_tokens"]) is not None
    ]
    more = [t("decision.prices_more", count=len(found) - PRICES)] if len(found) > PRICES else []
    return t("decision.prices", prices=commas(found[:PRICES] + more), **per_tokens(plan, t)) if found else ""


# -- cost --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Span:
    """The range of a plan's cost over the horizon, in the plan's currency; an end may be unknown. `source` names what it comes from."""

    low: float | None
    high: float | None
    source: str


def cost_span(plan: Plan) -> Span | None:
    """Return the range of the cost: over sampled scenarios where the plan was tried in them, else from the proven bound to what a surer plan costs.

    None where neither is known.
    """
    document, cost = plan.document, plan.totals["cost"]
    if found := document.get("adaptation"):
        return Span(found["fresh"]["p10"], found["fresh"]["p90"], "adaptive")
    promised = document.get("robustness")
    if promised and "words" not in promised:
        sampled = promised["fresh"]["cost"]
        return Span(sampled["p5"], sampled["p95"], "robust")
    asked = (document["spec"].get("objective") or {}).get("minimise", "cost")
    is_least = plan.objective["sense"] == "min" and asked == "cost"
    low = document["bound"] if is_least else None
    sure = document.get("confidence")
    more = (sure["upgrade"] or sure.get("hired")) if sure else None
    if low is None and more is None:
        return None
    high = None if more is None else cost + more["cost"]
    return Span(low, high, "bound_to_surer" if low is not None and more else "surer" if more else "bound")


def expected_cost(plan: Plan) -> float:
    """Return the cost of a plan; of one that is adapted later, the mean of its fresh scenarios, among which its range lies."""
    later = plan.document.get("adaptation")
    cost: float = later["fresh"]["cost"] if later else plan.totals["cost"]
    return cost


def cost_metrics(plan: Plan, t: Words) -> list[tuple[Metric, str]]:
    """List the cost a year and over the horizon, each with its range in words; over a horizon of one year once."""
    years = float((plan.document["spec"].get("horizon") or {}).get("years", 1))
    span, cost = cost_span(plan), expected_cost(plan)
    shown = shown_currency(plan, t)
    told = [(t("decision.cost_over", years=number(years), currency=page(shown)), 1.0)]
    if years != 1:
        told.insert(0, (t("decision.cost_yearly", currency=page(shown)), years))
    help_text = t("decision.cost.help") + (t("decision.space") + t(f"decision.range.{span.source}") if span else "")
    return [
        (Metric(label, _money(plan, cost / parts, t), help_text), _span_words(plan, span, parts, t))
        for label, parts in told
    ]


def _money(plan: Plan, value: float, t: Words) -> str:
    return count(money(plan, value, t), t)


def _span_words(plan: Plan, span: Span | None, parts: float, t: Words) -> str:
    if span is None:
        return t("decision.range.unknown")
    low, high = (None if end is None else _money(plan, end / parts, t) for end in (span.low, span.high))
    if low is not None and high is not None:
        return t("decision.range", low=low, high=high)
    return t("decision.range_to", high=high) if low is None else t("decision.range_from", low=low)
