"""Format a plan for the page: rows of tables in units for people, and files. No Streamlit here; headline figures: `headline`."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import dataclass
from typing import Any

from catalog.units import TRILLION
from planner.dashboard.figures import amount, of_limit, tidy, worth
from planner.dashboard.headline import (
    Slo,
    bound,
    latency_intervals,
    money,
    per_tokens,
    price_of_tokens,
    shown_currency,
    slo_rows,
)
from planner.escape import page
from planner.money.components import component_words
from planner.plan import Plan, binds
from planner.plan.rows.framing import Repair
from planner.plan.rows.workloads import Workload
from planner.report.fleet import point_rows, standing
from planner.report.locale import Words
from planner.report.outputs.sections import csv_tables
from planner.report.phases import span_words, windows_of
from planner.report.report import render

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Download:
    """A file that the page offers."""

    label: str  # key of the label's text
    file: str
    mime: str
    data: bytes


def as_markup(rows: list[Row]) -> list[Row]:
    """Escape the texts of rows for `st.table`, which takes its cells for Markdown."""
    return [{key: page(value) if isinstance(value, str) else value for key, value in row.items()} for row in rows]


def _interval(plan: Plan, row: Slo, t: Words) -> str:
    """Write the widest interval of 80 % of a latency over the points at work."""
    found = [
        each
        for each in latency_intervals(plan)
        if (each["workload"], each["metric"], each["percentile"]) == (row["workload"], row["metric"], row["percentile"])
    ]
    if not found:
        return ""
    least, most = min(each["least_s"] for each in found), max(each["most_s"] for each in found)
    return f"{bound(least, t)} – {bound(most, t)}"


def _architecture(plan: Plan, workload: Workload) -> str:
    """Name the architecture that answers a workload: that of the plan, else that of the spec."""
    asked = {each["name"]: each.get("architecture") for each in plan.document["spec"]["workloads"]}
    found = workload.get("architecture") or asked.get(workload.get("of", workload["name"])) or ""
    return found if isinstance(found, str) else ", ".join(map(str, found))


def _latency(row: Slo) -> str:
    return f"{row['metric'].upper()} {row['percentile']}"


def fleet_table(plan: Plan, t: Words) -> list[Row]:
    """Format the fleet."""
    return [
        {
            t("column.site"): row["site"],
            t("column.system"): row["system"],
            t("column.count"): row["count"],
            t("column.how"): t.get(f"page_how.{standing(row) or row['how']}", row["how"]),
            t("column.fabric"): row["topology"],
            t("column.when"): row.get("obtained")
            or span_words(plan, windows_of(row), t.language)
            or t("when.throughout"),
        }
        for row in plan.document["fleet"]
    ]


def workload_table(plan: Plan, t: Words) -> list[Row]:
    """Format what each workload gets: tokens in trillions, shares as fractions."""
    return [
        {
            t("column.workload"): w["name"],
            t("column.architecture"): _architecture(plan, w),
            t("column.tokens"): w["tokens"] / TRILLION,
            t("column.per_million", **per_tokens(plan, t)): price_of_tokens(plan, w["cost_per_million_tokens"], t),
            t("column.mfu"): w["mfu"],
            t("column.utilisation"): w["utilisation"],
            t("column.sites"): ", ".join(dict.fromkeys(point["site"] for point in w["points"])),
        }
        for w in plan.document["workloads"]
    ]


def point_table(plan: Plan, t: Words) -> list[Row]:
    """Format the operating points at work, with their layouts, memory and power caps."""
    return [{t(f"column.{name}"): tidy(t.phrase(value)) for name, value in row.items()} for row in point_rows(plan)]


def slo_table(plan: Plan, t: Words) -> list[Row]:
    """Format the latency limits."""
    return [
        {
            t("column.workload"): row["workload"],
            t("column.latency"): _latency(row),
            t("column.predicted"): amount(row["predicted_s"], "s", t),
            t("column.interval"): _interval(plan, row, t),
            t("column.limit"): amount(row["limit_s"], "s", t),
            t("column.slack"): amount(row["slack_s"], "s", t),
        }
        for row in slo_rows(plan)
    ]


def network_table(plan: Plan, t: Words) -> list[Row]:
    """Format the networks between our own systems."""
    return [
        {
            t("column.site"): row["site"],
            t("column.system"): row["system"],
            t("column.design"): row["design"],
            t("column.systems"): row["systems"],
            t("column.switches"): row["switches"],
            t("column.price", currency=shown_currency(plan, t)): round(money(plan, row["price"], t)),
        }
        for row in plan.document["fabrics"]
    ]


def dispatch_table(plan: Plan, t: Words, site: str | None = None) -> list[Row]:
    """Format the grid, contracts and batteries that the plan decides on, of one site or of all."""
    return [
        {
            t("column.site"): row["site"],
            t("column.what"): " ".join(filter(None, (t(f"dispatch.{row['item']}"), row["name"]))),
            t("column.size"): amount(row["size"], row["unit"], t),
            t("column.energy"): "" if row["energy_j"] is None else amount(row["energy_j"], "J", t),
            t("column.cost", currency=shown_currency(plan, t)): round(money(plan, row["cost"], t)),
            t("column.carbon"): "" if row["carbon_kg"] is None else amount(row["carbon_kg"], "kg", t),
        }
        for row in plan.document.get("electricity") or ()
        if site in (None, row["site"])
    ]


def cost_table(plan: Plan, t: Words) -> list[Row]:
    """Format the costs by component, largest first."""
    total = sum(plan.document["costs"].values())
    return [
        {
            t("column.component"): component_words(name, t.language),
            t("column.amount", currency=shown_currency(plan, t)): money(plan, cost, t),
            t("column.share"): cost / total if total else None,
        }
        for name, cost in sorted(plan.document["costs"].items(), key=lambda item: -item[1])
    ]


def limit_table(plan: Plan, t: Words) -> list[Row]:
    """Format the limits with the share that is used, tightest first."""
    rows = [(row["value"] / row["limit"] if row["limit"] else None, row) for row in plan.document["limits"]]
    return [
        {
            t("column.limit_name"): t.said(row, "name"),
            t("column.used_share"): share,
            t("column.used"): of_limit(row["value"], row, t),
            t("column.allowed"): of_limit(row["limit"], row, t),
            t("column.slack"): t("limit.binding") if binds(row) else of_limit(row["slack"], row, t),
            t("column.marginal"): worth(row["marginal_value"], row, t),
            t("column.marginal_divisible"): worth(row["marginal_value_divisible"], row, t),
            t("column.path"): row["path"],
            t("column.note"): t.said(row, "note"),
        }
        for share, row in sorted(rows, key=lambda pair: -1.0 if pair[0] is None else pair[0], reverse=True)
    ]


def runner_up_table(plan: Plan, t: Words) -> list[Row]:
    """Format the runner-up at each site."""
    return [
        {
            t("column.site"): row["site"],
            t("column.system"): row["system"] or "",
            t("column.how"): t.get(f"page_how.{row['how']}", row["how"] or ""),
            t("column.words"): tidy(t.said(row, "words")),
        }
        for row in plan.document["runner_up"]
    ]


def assumption_table(plan: Plan, t: Words) -> list[Row]:
    """Format the assumptions, those with the largest share of the objective first."""
    rows = sorted(plan.document["assumptions"], key=lambda row: -(row["share"] or 0.0))
    return [
        {
            t("column.figure"): row["path"],
            t("column.value"): amount(row["value"], row["unit"], Words(t.language))
            if isinstance(row["value"], float)
            else tidy(str(row["value"]).removesuffix(" 1")),
            t("column.objective_share"): row["share"],
            t("column.why"): t.said(row, "reason"),
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
            else row["value"]
            if isinstance(row["value"], str)
            else amount(row["value"], row["unit"], Words(t.language)),
            t("column.kind"): row["kind"],
            t("column.source"): ", ".join(row["source"]),
            t("column.date"): row["date"] or "",
            t("column.confidence"): row["confidence"],
        }
        for row in plan.document["provenance"]
    ]


def dropped_table(plan: Plan, t: Words) -> list[Row]:
    """Format the reasons for which candidates were dropped."""
    codes = plan.document.get("dropped_message", {})
    return [
        {
            t("column.workload"): workload,
            t("column.reason"): t.said({"reason": reason, "reason_message": codes.get(reason)}, "reason"),
            t("column.count"): count,
        }
        for workload, reasons in plan.document["dropped"].items()
        for reason, count in sorted(reasons.items(), key=lambda item: -item[1])
    ]


def conflict_table(plan: Plan, t: Words) -> list[Row]:
    """Format the limits in conflict, of an infeasible spec."""
    found = plan.document["diagnosis"]
    return [
        {
            t("column.limit_name"): t.said(row, "name"),
            t("column.words"): tidy(t.said(row, "words")),
            t("column.path"): row["path"],
        }
        for row in (found["conflict"] if found else ())
    ]


def reach_table(plan: Plan, t: Words) -> list[Row]:
    """Format the most of the demand that an infeasible spec can serve."""
    found = plan.document["diagnosis"]
    return [
        {
            t("column.workload"): t("reach.every") if row["workload"] is None else row["workload"],
            t("column.at_most"): f"{row['at_most']:.1%}",
        }
        for row in (found.get("reach", ()) if found else ())
    ]


def repair_table(plan: Plan, t: Words) -> list[Row]:
    """Format the smallest change after which the spec has a plan."""
    return [
        {t("column.path"): row["path"], t("column.from"): written(row["from"]), t("column.to"): written(row["to"])}
        for row in repair(plan)
    ]


def repair(plan: Plan) -> list[Repair]:
    """List the changes of the smallest repair."""
    found = plan.document["diagnosis"]
    return found["repair"] if found else []


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
        Download("download.spec", f"{name}.json", "application/json", spec_text(plan.document["spec"])),
    )


def spec_text(document: dict[str, Any]) -> bytes:
    """Write a spec as a file."""
    return (json.dumps(document, indent=1, ensure_ascii=False) + "\n").encode()
