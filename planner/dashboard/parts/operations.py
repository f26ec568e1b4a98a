"""The page Operations: how the plan runs, tab by tab; a plan has the tabs of what it has."""

from __future__ import annotations

import streamlit as st

from planner.dashboard import headline
from planner.dashboard.figures import amount
from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views import hours as hours_view
from planner.dashboard.views import looking, plan_sections
from planner.dashboard.views import site as site_view
from planner.dashboard.views.drawing import draw_to_pick, written
from planner.dashboard.views.parts import choose_part, draw_no_plan
from planner.dashboard.views.problems import draw_problems
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.charts import fleet, hours
from planner.report.locale import Words
from planner.report.outputs.parts import OPERATIONS

DEPLOYMENTS, WORKLOADS, HOURS, JOBS = "deployments", "workloads", "hours", "jobs"
CARD_PX = 200
TABS = {
    DEPLOYMENTS: ("networks", "points", "deployments"),
    WORKLOADS: ("workloads", "first_token", "quality", "grades", "length_pools", "prefix_routing"),
    HOURS: ("routes", "electricity"),
    "lines": ("lines",),
    "phases": ("phases",),
    JOBS: ("interruptions",),
    "reinforcement": ("reinforcement",),
    "sessions": ("sessions",),
    "classes": ("classes",),
    "packing": ("packing",),
    "halls": ("facility",),
    "kv_tiers": ("kv_tiers",),
    "owned": ("owned", "rented"),
}
"""The tabs, with the sections of each."""
AT_A_SITE = ("networks", "points", "deployments")
"""Sections that show the rows of one site."""


def draw(work: Work, t: Words, opens: str = "") -> None:
    """Draw the page; `opens`: the tab that it opens at."""
    try:
        shown = work.shown()
    except SpecError as error:
        work.problems = tuple(error.problems)
        shown = None
    draw_problems(work, t)
    if shown is None or not headline.tells_figures(shown.plan):
        if not work.problems:
            draw_no_plan(work, t)
        return
    draw_operations(shown, t, opens)


def tabs_of(plan: Plan, t: Words) -> list[str]:
    """List the tabs for which a plan has something to show."""
    has = {
        HOURS: hours.first_loaded_phase(plan) is not None,
        JOBS: any(workload["kind"] != "serving" for workload in plan.document["workloads"]),
    }
    return [name for name, keys in TABS.items() if has.get(name) or plan_sections.has_any(plan, t, keys)]


def draw_operations(shown: Shown, t: Words, opens: str = "") -> None:
    """Draw the card of the objective and the tab that is chosen."""
    plan = shown.plan
    _throughput(plan, t)
    tabs = tabs_of(plan, t)
    first = opens if opens in tabs else tabs[0]
    tab = choose_part(t("operations.tab"), tabs, first, lambda name: f"operations.{name}", "tab", t, named="tab")
    if tab == HOURS:
        hours_view.draw_hours(shown, t)
        if site_view.chosen(plan) is None:
            plan_sections.draw_sections(shown, t, OPERATIONS, TABS[HOURS])
    elif tab == DEPLOYMENTS:
        st.fragment(_deployments)(shown, t)
    else:
        if tab == JOBS:
            _jobs(plan, t)
        elif tab == WORKLOADS:
            _cards(plan, t)
        plan_sections.draw_sections(shown, t, OPERATIONS, TABS[tab])


def _throughput(plan: Plan, t: Words) -> None:
    """Draw how much of the demand is served, where most throughput is what was asked for."""
    if plan.objective["sense"] != "max":
        return
    bound = plan.document["bound"]
    unit = plan.objective["unit"]
    words = t("operations.bound", bound=amount(bound, unit, t)) if bound is not None else t("operations.unproven")
    st.metric(
        t("operations.throughput"), amount(plan.value, unit, t), words, delta_color="off", delta_arrow="off",
        help=t("operations.throughput.help"), border=True, width=260,
    )  # fmt: skip


def _deployments(shown: Shown, t: Words) -> None:
    """Draw what a plan holds and runs, at all its sites or at the one that was clicked; a fragment, for a click changes no more."""
    plan = shown.plan
    if (spec := written(shown, t, fleet.fleet_chart)) is not None:
        draw_to_pick(spec, "site", site_view.key("fleet"), site_view.choose)
    here = site_view.draw(plan, t)
    looking.write("site")
    part = shown if here is None else shown.at_site(here)
    if here is not None:
        plan_sections.VIEWS["fleet"](part, t)
        plan_sections.draw_costs(part, t)
    plan_sections.draw_sections(part, t, OPERATIONS, TABS[DEPLOYMENTS] if here is None else AT_A_SITE)
    plan_sections.draw_day(part, t)


def _cards(plan: Plan, t: Words) -> None:
    """Draw how many latencies are sure to hold, and the price of each workload's tokens."""
    with st.container(horizontal=True, gap="small"):
        for found in headline.workload_metrics(plan, t):
            st.metric(found.label, found.value, help=found.help, border=True, width=CARD_PX)


def _jobs(plan: Plan, t: Words) -> None:
    """Draw each job with its step time, its MFU, and how much of its deadline is left."""
    rows = [
        {
            t("column.workload"): workload["name"],
            t("column.site"): point["site"],
            t("column.system"): " + ".join(dict.fromkeys(pool["system"] for pool in point["pools"])),
            t("operations.step"): amount(point["time_s"]["step"], "s", t) if "step" in point["time_s"] else "",
            t("operations.step_interval"): _interval(point["interval_80"], t),
            t("column.mfu"): "" if point["mfu"] is None else f"{point['mfu']:.1%}",
            t("operations.run"): amount(point["time_s"]["run"], "s", t) if "run" in point["time_s"] else "",
            t("column.slack"): "" if workload.get("slack_s") is None else amount(workload["slack_s"], "s", t),
        }
        for workload in plan.document["workloads"]
        if workload["kind"] != "serving"
        for point in workload["points"]
    ]
    st.subheader(t("operations.jobs"), anchor=False)
    st.dataframe(rows, hide_index=True, width="stretch")


def _interval(found: object, t: Words) -> str:
    """Write the interval of 80 % of a step."""
    ends = found.get("step") if isinstance(found, dict) else None
    if not ends:
        return ""
    low, high = (t("interval.unbounded") if end is None else amount(end, "s", t) for end in ends)
    return f"{low} – {high}"
