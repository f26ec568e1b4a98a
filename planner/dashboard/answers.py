"""Format a plan for the page: headline figures and rows of tables, in units for people. No Streamlit here."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

from catalog.units import DAY_S, HOUR_S, MEGA, MWH_J, TONNE_KG, TRILLION, show
from planner.dashboard.locale import Words
from planner.escape import page
from planner.plan import Plan, binds
from planner.report.fleet import point_rows
from planner.report.report import csv_tables, render

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Metric:
    """A headline figure."""

    label: str
    value: str
    help: str


@dataclass(frozen=True, slots=True)
class Download:
    """A file that the page offers."""

    label: str  # key of the label's text
    file: str
    mime: str
    data: bytes


def currency(plan: Plan) -> str:
    """Return the currency of a plan's amounts."""
    found: str = plan["spec"].get("currency", "USD")
    return found


def amount(value: float, unit: str) -> str:
    """Write a number with its unit; factors and other plain numbers to four digits."""
    try:
        return show(value, unit)
    except KeyError:
        return f"{value:,.4g} {unit}"


def verdict(plan: Plan, t: Words) -> tuple[str, str]:
    """State the status and the proven gap: (level, sentence), the level success, warning or error."""
    level = {"optimal": "success", "within_gap": "success", "limit": "warning"}.get(plan.status, "error")
    words = t(f"status.{plan.status}")
    if not plan.has_answer:
        return level, words
    objective = plan.objective
    asked = plan["spec"].get("objective") or {}
    goal = t(
        f"goal.{asked.get('minimise') or asked.get('maximise') or 'cost'}",
        value=amount(objective["value"], objective["unit"]),
    )
    if plan.gap is None:
        return level, t("status.unproven", status=words, goal=goal)
    return level, t(
        "status.proven", status=words, goal=goal, bound=amount(plan["bound"], objective["unit"]), gap=f"{plan.gap:.3%}"
    )


def plan_metrics(plan: Plan, t: Words) -> list[Metric]:
    """List the headline figures of the whole plan."""
    totals = plan["totals"]
    return [
        Metric(t("metric.cost", currency=currency(plan)), show(totals["cost"], "1"), t("metric.cost.help")),
        Metric(t("metric.chips"), f"{totals['chips']:,}", t("metric.chips.help")),
        Metric(t("metric.peak"), f"{totals['peak_power_w'] / MEGA:.4g}", t("metric.peak.help")),
        Metric(t("metric.carbon"), f"{totals['carbon_kg'] / TONNE_KG:,.0f}", t("metric.carbon.help")),
        Metric(t("metric.gap"), t("metric.none") if plan.gap is None else f"{plan.gap:.3%}", t("metric.gap.help")),
    ]


def workload_metrics(plan: Plan, t: Words) -> list[Metric]:
    """List the tightest latency limit, and the cost per million tokens of each workload."""
    found = []
    tightest = min(slo_rows(plan), key=lambda row: row["slack_s"] / row["limit_s"], default=None)
    if tightest:
        words = t(
            "metric.slack.help",
            what=_latency(tightest),
            workload=page(tightest["workload"]),
            limit=show(tightest["limit_s"], "s"),
        )
        found.append(Metric(t("metric.slack"), show(tightest["slack_s"], "s"), words))
    for workload in plan["workloads"]:
        if (price := workload["cost_per_million_tokens"]) is not None:
            words = t(f"metric.per_million.{workload['kind']}.help")
            found.append(
                Metric(
                    t("metric.per_million", workload=page(workload["name"]), currency=currency(plan)),
                    f"{price:.4g}",
                    words,
                )
            )
    return found


def as_markup(rows: list[Row]) -> list[Row]:
    """Escape the texts of rows for `st.table`, which takes its cells for Markdown."""
    return [{key: page(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def slo_rows(plan: Plan) -> list[Row]:
    """List every latency limit for which the plan predicts a value."""
    return [{"workload": w["name"], **row} for w in plan["workloads"] for row in w["slo"] if row["slack_s"] is not None]


def _latency(row: Row) -> str:
    return f"{row['metric'].upper()} {row['percentile']}"


def fleet_table(plan: Plan, t: Words) -> list[Row]:
    """Format the fleet."""
    return [
        {
            t("column.site"): row["site"],
            t("column.system"): row["system"],
            t("column.count"): row["count"],
            t("column.how"): t.get(f"how.{row['how']}", row["how"]),
            t("column.fabric"): row["fabric"],
            t("column.when"): row.get("obtained") or t("when.throughout")
            if row["phase"] is None
            else t("when.phase", phase=row["phase"]),
        }
        for row in plan["fleet"]
    ]


def workload_table(plan: Plan, t: Words) -> list[Row]:
    """Format what each workload gets: tokens in trillions, shares as fractions."""
    return [
        {
            t("column.workload"): w["name"],
            t("column.tokens"): w["tokens"] / TRILLION,
            t("column.per_million", currency=currency(plan)): w["cost_per_million_tokens"],
            t("column.mfu"): w["mfu"],
            t("column.utilisation"): w["utilisation"],
            t("column.sites"): ", ".join(dict.fromkeys(point["site"] for point in w["points"])),
        }
        for w in plan["workloads"]
    ]


POINT_COLUMNS = {
    "workload": "column.workload",
    "site": "column.site",
    "system": "column.system",
    "layout": "column.layout",
    "precision": "column.precision",
    "memory": "column.memory",
    "power cap": "column.power_cap",
    "replicas": "column.replicas",
    "capacity": "column.capacity",
    "mostly": "column.mostly",
}


def point_table(plan: Plan, t: Words) -> list[Row]:
    """Format the operating points at work, with their layouts, memory and power caps."""
    return [{t(POINT_COLUMNS[name]): value for name, value in row.items()} for row in point_rows(plan)]


def slo_table(plan: Plan, t: Words) -> list[Row]:
    """Format the latency limits."""
    return [
        {
            t("column.workload"): row["workload"],
            t("column.latency"): _latency(row),
            t("column.predicted"): show(row["predicted_s"], "s"),
            t("column.limit"): show(row["limit_s"], "s"),
            t("column.slack"): show(row["slack_s"], "s"),
        }
        for row in slo_rows(plan)
    ]


def cost_table(plan: Plan, t: Words) -> list[Row]:
    """Format the costs by component, largest first."""
    total = sum(plan["costs"].values())
    return [
        {
            t("column.component"): t.get(f"component.{name}", name),
            t("column.amount", currency=currency(plan)): cost,
            t("column.share"): cost / total if total else None,
        }
        for name, cost in sorted(plan["costs"].items(), key=lambda item: -item[1])
    ]


def limit_table(plan: Plan, t: Words) -> list[Row]:
    """Format the limits with the share that is used, tightest first."""
    rows = [(row["value"] / row["limit"] if row["limit"] else None, row) for row in plan["limits"]]
    return [
        {
            t("column.limit_name"): row["name"],
            t("column.used_share"): share,
            t("column.used"): _quantity(row["value"], row),
            t("column.allowed"): _quantity(row["limit"], row),
            t("column.slack"): t("limit.binding") if binds(row) else _quantity(row["slack"], row),
            t("column.marginal"): _price(row["marginal_value"], row),
            t("column.marginal_divisible"): _price(row["marginal_value_divisible"], row),
            t("column.path"): row["path"],
            t("column.note"): row["note"],
        }
        for share, row in sorted(rows, key=lambda pair: -1.0 if pair[0] is None else pair[0], reverse=True)
    ]


def _price(value: float | None, row: Row) -> str:
    return "" if value is None else amount(value, row["marginal_unit"])


def runner_up_table(plan: Plan, t: Words) -> list[Row]:
    """Format the runner-up at each site."""
    return [
        {
            t("column.site"): row["site"],
            t("column.system"): row["system"] or "",
            t("column.how"): t.get(f"how.{row['how']}", row["how"] or ""),
            t("column.words"): row["words"],
        }
        for row in plan["runner_up"]
    ]


def _quantity(value: float, row: Row) -> str:
    if row["unit"] == "s" and abs(row["limit"]) > DAY_S:
        return f"{value / HOUR_S:,.0f} h"
    return amount(value, row["unit"])


def assumption_table(plan: Plan, t: Words) -> list[Row]:
    """Format the assumptions, those with the largest share of the objective first."""
    rows = sorted(plan["assumptions"], key=lambda row: -(row["share"] or 0.0))
    return [
        {
            t("column.figure"): row["path"],
            t("column.value"): amount(row["value"], row["unit"])
            if isinstance(row["value"], float)
            else str(row["value"]).removesuffix(" 1"),
            t("column.objective_share"): row["share"],
            t("column.why"): row["reason"],
        }
        for row in rows
    ]


def provenance_table(plan: Plan, t: Words) -> list[Row]:
    """Format the catalog figures with their sources."""
    return [
        {
            t("column.figure"): row["path"],
            t("column.value"): t("values.many", count=len(row["value"]))
            if isinstance(row["value"], list)
            else amount(row["value"], row["unit"]),
            t("column.kind"): row["kind"],
            t("column.source"): ", ".join(row["source"]),
            t("column.date"): row["date"] or "",
            t("column.confidence"): row["confidence"],
        }
        for row in plan["provenance"]
    ]


def dropped_table(plan: Plan, t: Words) -> list[Row]:
    """Format the reasons for which candidates were dropped."""
    return [
        {t("column.workload"): workload, t("column.reason"): reason, t("column.count"): count}
        for workload, reasons in plan["dropped"].items()
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
    ]


def conflict_table(plan: Plan, t: Words) -> list[Row]:
    """Format the limits in conflict, of an infeasible spec."""
    return [
        {t("column.limit_name"): row["name"], t("column.words"): row["words"], t("column.path"): row["path"]}
        for row in (plan["diagnosis"] or {}).get("conflict", [])
    ]


def repair_table(plan: Plan, t: Words) -> list[Row]:
    """Format the smallest change after which the spec has a plan."""
    return [
        {t("column.path"): row["path"], t("column.from"): written(row["from"]), t("column.to"): written(row["to"])}
        for row in repair(plan)
    ]


def repair(plan: Plan) -> list[Row]:
    """List the changes of the smallest repair."""
    found: list[Row] = (plan["diagnosis"] or {}).get("repair", [])
    return found


def written(value: Any) -> str:
    """Write a value as the spec does; empty for none."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def downloads(plan: Plan, name: str) -> tuple[Download, ...]:
    """Write the plan as files; done once per plan."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as bundle:
        for table, text in csv_tables(plan).items():
            bundle.writestr(f"{table}.csv", text)
    return (
        Download("download.json", f"{name}_plan.json", "application/json", plan.to_json().encode()),
        Download("download.csv", f"{name}_tables.zip", "application/zip", archive.getvalue()),
        Download("download.md", f"{name}_plan.md", "text/markdown", render(plan, "md").encode()),
        Download(
            "download.spec",
            f"{name}.json",
            "application/json",
            (json.dumps(plan["spec"], indent=1, ensure_ascii=False) + "\n").encode(),
        ),
    )


def energy_line(plan: Plan, t: Words) -> str:
    """Write energy and tokens in a line."""
    totals = plan["totals"]
    return t("totals", energy=f"{totals['energy_j'] / MWH_J:,.0f}", tokens=f"{totals['tokens'] / TRILLION:,.1f}")
