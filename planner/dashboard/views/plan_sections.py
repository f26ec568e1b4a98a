"""Draw what of a plan is below its main figures: each part places rows of `answers` or a chart. The figures: `plan`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit import column_config

from catalog.units import DAY_S
from planner.dashboard import answers, headline
from planner.dashboard.views import looking
from planner.dashboard.views import site as site_view
from planner.dashboard.views.drawing import draw_chart, draw_to_pick, written
from planner.escape import markdown, page
from planner.messages import listed, stopped
from planner.plan import Plan
from planner.report import notes
from planner.report.charts import costs, fleet, flows, hours, needs
from planner.report.locale import Words
from planner.report.outputs import adapt, excel, html
from planner.report.outputs.sections import SECTIONS, tables_of
from planner.report.phases import phase_name
from planner.report.story import story

if TYPE_CHECKING:
    from planner.dashboard.state.session import Shown
    from planner.dashboard.views.plan_form import MoreTime

CHARTS_PER_ROW = 2
DRAWN = frozenset(
    [
        "fleet",
        "networks",
        "points",
        "workloads",
        "quality",
        "adapt",
        "costs",
        "routes",
        "phases",
        "limits",
        "runner_up",
        "dropped",
        "assumptions",
        "sources",
    ]
)
"""Sections of `planner.report.outputs.sections` that have a view of their own here; all others are tables that open."""
EXCEL = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def draw_rest(
    shown: Shown,
    t: Words,
    on_repair: Callable[[], None] | None,
    on_more_time: Callable[[], MoreTime | None],
    busy: bool = False,
) -> None:
    """Draw the part of a plan below its main figures, down to its sources; `on_repair` applies the repair of an infeasible one, once not `busy`."""
    plan = shown.plan
    _notes(plan, t)
    if headline.tells_figures(plan):
        _downloads(shown, t)
        _why(plan, t)
        _adapting(shown, t)
        st.subheader(t("section.fleet"))
        st.fragment(_places)(shown, t)
    elif plan.has_answer:
        _downloads(shown, t)
        _limits(plan, t)
    else:
        _diagnosis(plan, t, on_repair, busy)
        if plan.status == "limit":
            _out_of_time(t, on_more_time())
        _downloads(shown, t)
    _background(plan, t)


def _places(shown: Shown, t: Words) -> None:
    """Draw what a plan holds, pays and runs, at all its sites or at the one that was clicked; a fragment, for a click changes no more."""
    plan = shown.plan
    if (spec := written(shown, t, fleet.fleet_chart)) is not None:
        draw_to_pick(spec, "site", site_view.key("fleet"), site_view.choose)
    here = site_view.draw(plan, t)
    looking.write("site")
    part = shown if here is None else shown.at_site(here)
    _fleet(part.plan, t)
    _costs(part, t)
    _flows(part, t)
    _day(part, t)
    if here is None:
        _workloads(plan, t)
    _points(part.plan, t)
    _limits(part.plan, t)
    _runner_up(part.plan, t)
    if here is None:
        _further(plan, t)
        _assumptions(plan, t)


def _further(plan: Plan, t: Words) -> None:
    """Draw the tables of the sections that have no view of their own."""
    for one in SECTIONS:
        for table in () if one.key in DRAWN else tables_of(one, plan, t.language):
            with st.expander(table.heading):
                st.dataframe(_as_texts(table.rows), hide_index=True, width="stretch")
                if table.remark:
                    st.caption(page(table.remark))


def _as_texts(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Write each cell as a text, so that a column holds one type."""
    return [{str(key): "" if value is None else str(value) for key, value in row.items()} for row in rows]


def _notes(plan: Plan, t: Words) -> None:
    """Say how the spec was understood; open where something in it is at odds with known figures."""
    if said := list(notes.sentences(plan, t.language)):
        with st.expander(t("section.notes"), expanded=any(row["source"] for row in plan.document["notes"])):
            st.markdown("\n".join(f"- {page(sentence)}" for sentence in said))


def _out_of_time(t: Words, more: MoreTime | None) -> None:
    """Say what to do where the time was not enough for any plan."""
    st.markdown(t("time.remedies"))
    if more is not None:
        st.button(t("time.more", limit=more.text), key="more-time", on_click=more.solve, icon=":material/timer:")


def _downloads(shown: Shown, t: Words) -> None:
    with st.container(horizontal=True):
        for file in shown.files:
            st.download_button(
                t(file.label), file.data, file.file, file.mime, on_click="ignore", icon=":material/download:"
            )
        for label, name, mime, write in (
            ("download.html", "plan.html", "text/html", partial(html.html_page, language=t.language)),
            ("download.excel", "plan.xlsx", EXCEL, excel.workbook),
        ):
            st.download_button(  # written when it is asked for
                t(label), partial(write, shown.plan), name, mime, on_click="ignore", icon=":material/download:"
            )


def _why(plan: Plan, t: Words) -> None:
    """Tell why the plan is as it is."""
    st.subheader(t("section.why"))
    told = [
        t("list.colon", question=f"**{t.phrase(question)}**", clauses=page(t.phrase(stopped(listed(clauses)))))
        for question, clauses in [*adapt.story(plan), *story(plan, whole=True)]
    ]
    st.markdown("\n".join(f"- {answer}" for answer in told))


def _adapting(shown: Shown, t: Words) -> None:
    """Draw the chips needed by date against the chips signed, and the tables of a plan that is adapted later; nothing for any other."""
    for table in (table for one in SECTIONS if one.key == "adapt" for table in tables_of(one, shown.plan, t.language)):
        is_drawn = table.heading == t.phrase(adapt.NEEDS)
        if is_drawn:
            st.subheader(table.heading)
            draw_chart(shown, t, needs.fan_chart)
        with st.expander(table.heading, expanded=not is_drawn):
            st.dataframe(_as_texts(table.rows), hide_index=True, width="stretch")
            if table.remark:
                st.caption(page(table.remark))


def _flows(shown: Shown, t: Words) -> None:
    place = st.container()
    if draw_chart(shown, t, flows.flow_chart):
        place.subheader(t("section.flows"))


def _fleet(plan: Plan, t: Words) -> None:
    st.dataframe(answers.fleet_table(plan, t), hide_index=True, width="stretch")
    if rows := answers.network_table(plan, t):
        with st.expander(t("section.networks")):
            st.dataframe(rows, hide_index=True, width="stretch")
    if rows := answers.phase_table(plan, t):
        st.subheader(t("section.phases"))
        st.dataframe(rows, hide_index=True, width="stretch")


def _costs(shown: Shown, t: Words) -> None:
    plan = shown.plan
    st.subheader(t("section.costs"))
    left, right = st.columns(2)
    draw_chart(shown, t, costs.cost_chart, place=left)
    money = t("column.amount", currency=headline.shown_currency(plan, t))
    config = {
        money: column_config.NumberColumn(format="localized", step=1),
        t("column.share"): column_config.NumberColumn(format="percent"),
    }
    right.dataframe(answers.cost_table(plan, t), hide_index=True, width="stretch", column_config=config)


def _day(shown: Shown, t: Words) -> None:
    """Draw load over price for each site, their hours aligned."""
    plan = shown.plan
    phase, phases = hours.first_loaded_phase(plan), hours.phases(plan)
    if phase is None:
        return
    st.subheader(t("section.day"))
    st.caption(t("day.words"))
    if len(phases) > 1:
        phase = st.segmented_control(
            t("day.phase"),
            list(phases),
            format_func=lambda p: t(
                "day.days", phase=page(phase_name(plan, p, t.language)), days=f"{phases[p] / DAY_S:,.0f}"
            ),
            default=phase,
            key="phase",
            required=True,
        )
    sites = hours.sites_with_load(plan, phase)
    if not sites:
        st.info(t("day.nothing"))
    for begin in range(0, len(sites), CHARTS_PER_ROW):
        for column, site in zip(
            st.columns(CHARTS_PER_ROW, gap="medium"), sites[begin : begin + CHARTS_PER_ROW], strict=False
        ):
            column.markdown(f"**{page(site)}**")
            draw_chart(shown, t, hours.load_chart, site, phase, place=column)
            draw_chart(shown, t, hours.price_chart, site, phase, place=column)


def _workloads(plan: Plan, t: Words) -> None:
    st.subheader(t("section.workloads"))
    shares = {t(key): column_config.NumberColumn(format="percent") for key in ("column.mfu", "column.utilisation")}
    config = {
        **shares,
        t("column.tokens"): column_config.NumberColumn(format="%.2f"),
        t("column.per_million", **headline.per_tokens(plan, t)): column_config.NumberColumn(format="%.4f"),
    }
    st.dataframe(answers.workload_table(plan, t), hide_index=True, width="stretch", column_config=config)
    if rows := answers.slo_table(plan, t):
        st.dataframe(rows, hide_index=True, width="stretch")
    if rows := answers.quality_table(plan, t):
        st.subheader(t("section.quality"))
        st.dataframe(rows, hide_index=True, width="stretch")


def _points(plan: Plan, t: Words) -> None:
    st.subheader(t("section.points"))
    st.dataframe(answers.point_table(plan, t), hide_index=True, width="stretch")


def _limits(plan: Plan, t: Words) -> None:
    st.subheader(t("section.limits"))
    st.caption(t("limits.words"))
    used = {t("column.used_share"): column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0)}
    st.dataframe(answers.limit_table(plan, t), hide_index=True, width="stretch", column_config=used)


def _runner_up(plan: Plan, t: Words) -> None:
    if rows := answers.runner_up_table(plan, t):
        st.subheader(t("section.runner_up"))
        st.table(answers.as_markup(rows), hide_index=True)


def _assumptions(plan: Plan, t: Words) -> None:
    st.subheader(t("section.assumptions"))
    st.caption(t("assumptions.words"))
    config = {
        t("column.objective_share"): column_config.NumberColumn(format="percent", width="small"),
        t("column.value"): column_config.TextColumn(width="medium"),
    }
    st.dataframe(answers.assumption_table(plan, t), hide_index=True, width="stretch", column_config=config)


def _diagnosis(plan: Plan, t: Words, on_repair: Callable[[], None] | None, busy: bool) -> None:
    if told := list(notes.sentences(plan, t.language, notes.REASONS)):
        st.subheader(t("section.reasons"))
        for sentence in told:
            st.markdown(f"- {markdown(sentence)}")
    if rows := answers.conflict_table(plan, t):
        st.subheader(t("section.conflict"))
        st.table(answers.as_markup(rows), hide_index=True)
    if rows := answers.reach_table(plan, t):
        st.subheader(t("section.reach"))
        st.caption(t("reach.words"))
        st.table(answers.as_markup(rows), hide_index=True)
    found = plan.document["diagnosis"]
    if found and (rows := answers.repair_table(plan, t)):
        st.subheader(t("section.repair"))
        st.table(answers.as_markup(rows), hide_index=True)
        st.caption(t("repair.checked" if found["repair_checked"] else "repair.unchecked"))
        if found["conflict_of"] == "amounts":
            st.caption(t("repair.amounts"))
        if on_repair is not None:
            st.button(t("repair.apply"), key="repair", on_click=on_repair, disabled=busy)


def _background(plan: Plan, t: Words) -> None:
    """Draw sources, dropped candidates and versions."""
    for key, rows in (("provenance", answers.provenance_table(plan, t)), ("dropped", answers.dropped_table(plan, t))):
        if rows:
            with st.expander(t(f"section.{key}", count=len(rows))):
                st.dataframe(rows, hide_index=True, width="stretch")
    versions = ", ".join(f"{name} {version}" for name, version in plan.document["versions"].items())
    st.caption(t("versions.words", versions=versions, digest=plan.document["catalog_digest"][:12]))
