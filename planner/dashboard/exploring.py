"""Prepare studies for the page: what may be asked of a spec, and tables of what was found. No Streamlit here; how they run: `workers.studying`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from planner.dashboard.figures import amount, number, tidy
from planner.dashboard.state.digest import digest
from planner.dashboard.state.scenario import Scenario
from planner.errors import SpecError
from planner.messages import Message
from planner.plan import Plan
from planner.report.charts.frontier import TITLES, frontier_rows
from planner.report.locale import Words
from planner.report.locale.display import MILLION
from planner.spec.changes import MISSING, spec_changes

Row = dict[str, Any]
SIMPLER = Message.of(
    "studies.kind_fewer_parts"
).text()  # kind of the alternatives that make the ladder of simpler plans
CARBON, LATENCY, THROUGHPUT, QUALITY, HORIZON, UTILISATION = (
    "carbon",
    "latency",
    "throughput",
    "quality",
    "horizon",
    "utilisation",
)
SPANS = {  # values of a frontier: least, most, step, and what is asked at first
    LATENCY: (0.1, 4.0, 0.1, (0.5, 2.0)),
    THROUGHPUT: (0.1, 3.0, 0.1, (0.5, 1.5)),
    HORIZON: (1.0, 10.0, 1.0, (1.0, 6.0)),
    UTILISATION: (0.05, 1.0, 0.05, (0.1, 1.0)),
}
CHEAPER, LOOSER, MORE = "-30%", "+50%", "+50%"  # first proposals of a ladder


# -- what may be asked -------------------------------------------------------------------------------------------------


def frontiers(document: Mapping[str, Any]) -> list[str]:
    """List what a frontier of a spec may be drawn against."""
    scored = [workload for workload in document["workloads"] if workload.get("alternatives")]
    serves = any(workload["kind"] == "serving" for workload in document["workloads"])
    among = {LATENCY: serves, THROUGHPUT: serves, QUALITY: len(scored) == 1}
    return [name for name in (CARBON, LATENCY, THROUGHPUT, QUALITY, HORIZON, UTILISATION) if among.get(name, True)]


def proposed_levers(document: Mapping[str, Any], t: Words) -> list[str]:
    """Propose levers of a ladder, as the study reads them: cheaper systems, looser latencies, more power, where the spec states them."""
    prices = [
        f"offers[{i}].price={CHEAPER}"
        for i, offer in enumerate(document.get("offers") or ())
        if offer.get("price") is not None
    ]
    latencies = [
        f"workloads[{i}].slo.{metric}.{percentile}={LOOSER}"
        for i, workload in enumerate(document["workloads"])
        for metric, limits in (workload.get("slo") or {}).items()
        for percentile in limits or ()
    ]
    powers = [f"sites[{i}].power={MORE}" for i, site in enumerate(document["sites"]) if site.get("power") is not None]
    named = ((t("ladder_page.cheaper"), prices), (t("ladder_page.looser"), latencies), (t("ladder_page.power"), powers))
    return [f"{name}: {'; '.join(edits)}" for name, edits in named if edits]


def opened(scenario: Scenario, plan: Plan, name: str = "") -> tuple[Scenario, Plan]:
    """Return the scenario whose spec is that of a plan, and the plan; an upload where edits of the scenario cannot say it.

    `name`: of a plan that answers the same spec as another one; scenario and plan are named so, to be told apart.
    """
    if name:
        plan = Plan({**plan.document, "name": name, "spec": {**plan.document["spec"], "name": name}})
    spec = plan.document["spec"]
    rows = spec_changes(scenario.document(), spec)
    try:
        found = scenario.with_edits({row["path"]: _value(row["second"]) for row in rows})
        reached = digest(found.document()) == digest(spec)
    except (SpecError, KeyError, IndexError, TypeError):
        reached = False
    return (found if reached else Scenario.of_upload(spec)), plan


def _value(second: Any) -> Any:
    return None if second == MISSING else second


# -- what was found ----------------------------------------------------------------------------------------------------


def point_names(found: Mapping[str, Any], t: Words) -> dict[str, str]:
    """Name the points of a frontier by the keys of their plans."""
    unit, plain = t(TITLES[found["measure"]]), Words(t.language)
    return {
        row["key"]: f"{unit} {number(row['measure'])} · {amount(row['cost'], found['currency'], plain)}"
        for row in frontier_rows(found)
    }


def frontier_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format the points of a frontier."""
    return [
        {
            t("column.asked"): tidy(t.phrase(point["asked"])),
            t(TITLES[found["measure"]]): float(f"{row['measure']:.5g}"),
            t("chart.frontier.cost", currency=found["currency"]): row["cost"],
            t("chart.bound"): row["bound"],
            t("metric.gap"): row["gap"],
        }
        for point, row in zip(found["points"], frontier_rows(found), strict=True)
    ]


def left_out_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format what a frontier or a comparison of buying and renting left out."""
    return [
        {
            t("column.asked"): tidy(t.phrase(row["asked"])) if "asked" in row else row["system"],
            t("column.reason"): tidy(t.phrase(row["reason"])),
        }
        for row in found["left_out"]
    ]


def break_even_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format from where on buying costs less than renting."""
    is_years = found["against"] == HORIZON

    def shown(value: float | None) -> str:
        if value is None:
            return t("break_even.never")
        return t("break_even.years", years=f"{value:.2f}") if is_years else f"{value:.0%}"

    return [
        {
            t("column.system"): row["system"],
            t("column.how"): t.get(f"page_how.{row['how']}", row["how"]),
            t("break_even.from"): shown(row["years" if is_years else "share"]),
            t("break_even.earliest"): shown(row["earliest"]),
            t("break_even.latest"): shown(row["latest"]),
        }
        for row in found["break_even"]
    ]


def tornado_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format the figures that were moved, the widest swing first."""
    rows = []
    for row in found["factors"]:
        low, high = row["low"], row["high"]
        rows.append(
            {
                t("column.figure"): t.phrase(row["name"]),
                t("column.low"): low["level"],
                t("column.high"): high["level"],
                t("column.at_low"): _moved(low, found, t),
                t("column.at_high"): _moved(high, found, t),
                t("column.swing"): row["share"],
                t("column.fleet_low"): t.phrase(low["fleet"]),
                t("column.fleet_high"): t.phrase(high["fleet"]),
            }
        )
    return rows


def _moved(moved: Mapping[str, Any], found: Mapping[str, Any], t: Words) -> str:
    """Write the objective at a level, or why there is none."""
    return (
        t.named("outcome", moved["status"])
        if moved["value"] is None
        else amount(moved["value"], found["unit"], Words(t.language))
    )


def alternatives_of(found: Mapping[str, Any], simpler: bool) -> list[Row]:
    """List the alternatives of another kind, or of fewer parts."""
    return [row for row in found["alternatives"] if (row["kind"] == SIMPLER) == simpler]


def worse_by(rows: list[Row], t: Words) -> dict[str, float]:
    """Return by which share each alternative with a plan is worse, by its name."""
    return {t.phrase(row["name"]): row["share"] for row in rows if row["share"] is not None}


def alternative_table(rows: list[Row], unit: str, t: Words) -> list[Row]:
    """Format alternatives: how much worse, and what changes in the fleet."""
    return [
        {
            t("column.kind"): t.phrase(row["name"]),
            t("column.worse"): row["share"],
            t("column.worse_by"): _worse(row, unit, t),
            t("column.fleet_change"): t.phrase(row["fleet"]),
        }
        for row in rows
    ]


def _worse(row: Row, unit: str, t: Words) -> str:
    if row["worse"] is not None:
        return amount(row["worse"], unit, Words(t.language))
    if row["least_worse"] is not None:
        return t("alternatives_page.at_least", amount=amount(row["least_worse"], unit, Words(t.language)))
    return t.named("outcome", row["status"])


def ladder_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format the rungs of a ladder."""
    return [
        {
            t("column.lever"): t.phrase(row["lever"]),
            t("column.per_million", currency=found["currency"], per=t(f"per.{MILLION}")): row[
                "cost_per_million_tokens"
            ],
            t("column.cheaper"): row["factor"],
            t("column.from_today"): row["from_today"],
            t("column.to_target"): row["to_target"],
            t("metric.gap"): row["gap"],
        }
        for row in found["rungs"]
    ]


def sharing_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format the plans without each capability of a shared fleet."""
    return [
        {
            t("column.without"): t.phrase(row["capability"]),
            t("column.meaning"): t.phrase(row["off"]),
            t("column.value"): t.named("outcome", row["status"])
            if row["value"] is None
            else amount(row["value"], found["unit"], Words(t.language)),
            t("column.worse"): row["worse"],
            t("column.chips"): row["chips"],
            t("column.utilisation"): row["utilisation"],
            t("column.goodput"): row["goodput"],
            t("column.efficiency"): row["efficiency"],
        }
        for row in found["rows"]
    ]


def measure_table(found: Mapping[str, Any], t: Words) -> list[Row]:
    """Format the measurements that pay, the most net worth first; chosen: in the best set."""
    return [
        {
            t("column.case"): row["name"],
            t("column.workload"): row["workload"],
            t("column.system"): row["system"],
            t("column.hours"): row["hours"],
            t("column.systems"): row["systems"],
            t("column.price", currency=found["currency"]): row["price"],
            t("column.worth", currency=found["currency"]): row["worth"],
            t("column.chosen"): row["name"] in found["best_set"]["cases"],
        }
        for row in found["cases"]
    ]


def kept_shares(plan: Plan) -> dict[str, float]:
    """Return the share of scenarios in which each workload keeps its promises, the least first."""
    found: dict[str, float] = plan.document["confidence"]["workloads"]
    return dict(sorted(found.items(), key=lambda item: item[1]))
