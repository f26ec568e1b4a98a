"""Put plans of scenarios beside each other: what differs, in words and in tables. No Streamlit here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dashboard.answers import written
from planner.dashboard.figures import amount, number, tidy
from planner.dashboard.headline import currency, plan_metrics, shown_currency
from planner.dashboard.state.scenario import Scenario
from planner.escape import page
from planner.money.components import COMPONENTS, component_words
from planner.plan import Plan
from planner.report.charts.fleet import fleet_rows
from planner.report.locale import Words
from planner.report.words import share_words
from planner.spec.changes import spec_changes

Row = dict[str, Any]
NAMED = 3  # components and systems that a sentence names
LEAST_SHARE = 5e-6  # share of the first amount: smaller differences are rounding


def difference_words(first: str, second: str, plans: Mapping[str, Plan], t: Words) -> list[str]:
    """Say how the second plan differs from the first: its value, what drives it, its fleet."""
    a, b = plans[first], plans[second]
    names = {"first": page(first), "second": page(second)}
    if not (a.has_answer and b.has_answer):
        without = [page(name) for name in (first, second) if not plans[name].has_answer]
        return [t("compare_page.none", names=", ".join(without))]
    if (a.objective["unit"], a.objective["sense"]) != (b.objective["unit"], b.objective["sense"]):
        return [t("compare_page.other_goal", **names)]
    value, old, unit = b.value, a.value, a.objective["unit"]
    if abs(value - old) <= LEAST_SHARE * abs(old):
        said = [t("compare_page.equal", value=amount(old, unit, t), **names)]
    else:
        share = t.phrase(share_words(abs(value / old - 1), ".2%")) if old else "–"
        key = "compare_page.more" if value > old else "compare_page.less"
        said = [t(key, difference=amount(abs(value - old), unit, t), share=share, value=amount(old, unit, t), **names)]
        open_ = sum(abs(plan.document["bound"] - plan.value) for plan in (a, b) if plan.document["bound"] is not None)
        if abs(value - old) <= open_:
            said.append(t("compare_page.gaps", gaps=amount(open_, unit, t)))
    parts = sorted(
        ((name, b.document["costs"].get(name, 0.0) - a.document["costs"].get(name, 0.0)) for name in COMPONENTS),
        key=lambda item: -abs(item[1]),
    )
    moved = [
        f"{component_words(name, t.language)} {_signed(change, currency(b), t)}"
        for name, change in parts[:NAMED]
        if abs(change) > LEAST_SHARE * abs(a.totals["cost"])
    ]
    if moved:
        said.append(t("compare_page.drivers", parts=page(", ".join(moved))))
    fleet = [f"{system} {change:+,.0f}" for system, change in _chips_changed(a, b)[:NAMED]]
    said.append(t("compare_page.fleet", parts=page(", ".join(fleet))) if fleet else t("compare_page.same_fleet"))
    return said


def _chips_changed(a: Plan, b: Plan) -> list[tuple[str, float]]:
    """List by how many chips each system differs, the largest first."""
    chips: dict[str, float] = {}
    for sign, plan in ((-1, a), (1, b)):
        for row in fleet_rows(plan):
            chips[row["system"]] = chips.get(row["system"], 0.0) + sign * row["chips"]
    return sorted(((name, change) for name, change in chips.items() if change), key=lambda item: -abs(item[1]))


def _signed(change: float, unit: str, t: Words) -> str:
    return ("+" if change > 0 else "") + amount(change, unit, t)


def spec_rows(first: str, scenarios: Mapping[str, Scenario], t: Words) -> list[Row]:
    """List the places of the specs in which any scenario differs from the first, with the value of each."""
    documents = {name: scenario.document() for name, scenario in scenarios.items()}
    found: dict[str, dict[str, Any]] = {}
    for name, document in documents.items():
        for row in spec_changes(documents[first], document):
            found.setdefault(row["path"], {first: row["first"]})[name] = row["second"]
    return [
        {t("column.path"): path, **{name: tidy(written(values.get(name, values[first]))) for name in scenarios}}
        for path, values in found.items()
        if path != "name"
    ]


def total_rows(plans: Mapping[str, Plan], t: Words) -> list[Row]:
    """List the headline figures that are not the same in all plans."""
    found = []
    listed = {name: plan_metrics(plan, t) for name, plan in plans.items() if plan.has_answer}
    for i in range(max(map(len, listed.values()), default=0)):
        values = {name: metrics[i].value for name, metrics in listed.items()}
        if len(set(values.values())) > 1:
            found.append({t("column.figure"): next(iter(listed.values()))[i].label, **values})
    workloads = dict.fromkeys(w["name"] for plan in plans.values() for w in plan.document["workloads"])
    for workload in workloads:
        values = {
            name: number(t.display.per_tokens(price, currency(plan)))
            for name, plan in plans.items()
            for w in plan.document["workloads"]
            if w["name"] == workload and (price := w["cost_per_million_tokens"]) is not None
        }
        if len(set(values.values())) > 1:
            unit = " / ".join(dict.fromkeys(shown_currency(plan, t) for plan in plans.values()))
            label = t("metric.per_million", workload=workload, currency=unit, per=t(f"per.{t.display.tokens}"))
            found.append({t("column.figure"): label, **{name: values.get(name, "") for name in listed}})
    return found
