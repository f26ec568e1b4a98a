"""Draw the sections and chapters of a plan, part by part: each has a view of its own here, or is a table that opens. The figures: `plan`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import streamlit as st
from streamlit import column_config

from catalog.units import DAY_S
from planner.dashboard import answers, headline
from planner.dashboard.figures import tidy
from planner.dashboard.views.drawing import draw_chart
from planner.escape import markdown, page
from planner.messages import listed, stopped
from planner.plan import Plan
from planner.report import notes
from planner.report.charts import costs, flows, hours, needs
from planner.report.locale import Words
from planner.report.outputs import adapt
from planner.report.outputs.chapters import chapters_of
from planner.report.outputs.sections import SECTIONS, PlanSection, tables_of
from planner.report.phases import phase_name
from planner.report.story import story

if TYPE_CHECKING:
    from planner.dashboard.state.session import Shown
    from planner.dashboard.views.plan_form import MoreTime

CHARTS_PER_ROW = 2
OPEN_ROWS = 12
"""Rows of a table from which on it is folded."""
MOST_SENTENCES = 6
"""Sentences of a chapter from which on it is folded."""
ROW_PX, SCREEN_ROWS = 35, 4
"""Height of a row of a table, and rows of a table on the screen of a decision, which scrolls to further ones."""


# -- the screen of a decision ------------------------------------------------------------------------------------------


def draw_decision(
    shown: Shown,
    t: Words,
    on_repair: Callable[[], None] | None,
    on_more_time: Callable[[], MoreTime | None],
    busy: bool = False,
) -> None:
    """Draw what stands below the main figures: fleet and costs, or why there is no plan; `on_repair` applies the repair of an infeasible one, once not `busy`."""
    plan = shown.plan
    if headline.tells_figures(plan):
        left, right = st.columns([3, 2], gap="medium")
        with left:
            _screen_fleet(plan, t)
        with right:
            _screen_costs(plan, t)
    elif plan.has_answer:
        _limits(shown, t)
    else:
        _diagnosis(plan, t, on_repair, busy)
        if plan.status == "limit":
            _out_of_time(t, on_more_time())
    versions = ", ".join(f"{name} {version}" for name, version in plan.document["versions"].items())
    st.caption(t("versions.words", versions=versions, digest=plan.document["catalog_digest"][:12]))


def _heading(plan: Plan, key: str, t: Words) -> str:
    """Return the heading of a section, as every output has it; empty for one that the plan has not."""
    one = next(each for each in SECTIONS if each.key == key)
    return next((table.heading for table in tables_of(one, plan, t.language)), "")


def _screen_fleet(plan: Plan, t: Words) -> None:
    """Draw what to obtain, where and when: as high as a few rows."""
    st.markdown(f"**{page(_heading(plan, 'fleet', t))}**")
    rows = answers.fleet_table(plan, t)
    st.dataframe(rows, hide_index=True, width="stretch", height=_height(len(rows)), row_height=ROW_PX)


def _screen_costs(plan: Plan, t: Words) -> None:
    """Draw the components of the cost, the largest first: as high as a few rows."""
    st.markdown(f"**{page(_heading(plan, 'costs', t))}**")
    _cost_table(plan, t, _height(len(plan.document["costs"])))


def _height(rows: int) -> int:
    """Return the height of a table on the screen [px]."""
    return ROW_PX * (min(rows, SCREEN_ROWS) + 1) + 3


# -- the sections and chapters of a part -------------------------------------------------------------------------------


def draw_chapters(plan: Plan, t: Words, part: str) -> None:
    """Draw the chapters of sentences of a part; long ones are folded."""
    for heading, sentences in chapters_of(plan, t.language, part):
        told = "\n".join(f"- {page(tidy(sentence))}" for sentence in sentences)
        if len(sentences) > MOST_SENTENCES:
            with st.expander(page(heading)):
                st.markdown(told)
        else:
            st.subheader(page(heading), anchor=False)
            st.markdown(told)


def draw_sections(shown: Shown, t: Words, part: str, keys: Collection[str] | None = None) -> None:
    """Draw the sections of a part that the plan has, all or only some keys, in the order of `SECTIONS`."""
    for one in SECTIONS:
        if one.part == part and (keys is None or one.key in keys):
            draw_section(shown, one, t)


def draw_section(shown: Shown, one: PlanSection, t: Words) -> None:
    """Draw a section: by its own view, or table by table; long tables are folded. One without rows is left out."""
    tables = list(tables_of(one, shown.plan, t.language))
    if tables and one.key in VIEWS:
        for table in tables:
            st.subheader(page(table.heading), anchor=False)
        VIEWS[one.key](shown, t)
        return
    for table in tables:
        folded = len(table.rows) > OPEN_ROWS
        if not folded:
            st.subheader(page(table.heading), anchor=False)
        if table.heading == t.phrase(adapt.NEEDS):
            draw_chart(shown, t, needs.fan_chart)
        with st.expander(page(table.heading)) if folded else st.container():
            st.dataframe(_as_texts(table.rows), hide_index=True, width="stretch")
            if table.remark:
                st.caption(page(table.remark))


def has_any(plan: Plan, t: Words, keys: Collection[str]) -> bool:
    """Tell whether a plan has a section of some keys."""
    return any(next(tables_of(one, plan, t.language), None) is not None for one in SECTIONS if one.key in keys)


def _as_texts(rows: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Write each cell as a text, so that a column holds one type."""
    return [{str(key): "" if value is None else tidy(str(value)) for key, value in row.items()} for row in rows]


def _out_of_time(t: Words, more: MoreTime | None) -> None:
    """Say what to do where the time was not enough for any plan."""
    st.markdown(t("time.remedies"))
    if more is not None:
        st.button(t("time.more", limit=more.text), key="more-time", on_click=more.solve, icon=":material/timer:")


def draw_why(plan: Plan, t: Words) -> None:
    """Tell why the plan is as it is."""
    st.subheader(t("section.why"), anchor=False)
    told = [
        t("list.colon", question=f"**{t.phrase(question)}**", clauses=page(tidy(t.phrase(stopped(listed(clauses))))))
        for question, clauses in [*adapt.story(plan), *story(plan, whole=True)]
    ]
    st.markdown("\n".join(f"- {answer}" for answer in told))


def draw_day(shown: Shown, t: Words) -> None:
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


def _cost_table(plan: Plan, t: Words, height: int | None = None) -> None:
    money = t("column.amount", currency=headline.shown_currency(plan, t))
    config = {
        money: column_config.NumberColumn(format="localized", step=1),
        t("column.share"): column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0),
    }
    st.dataframe(
        answers.cost_table(plan, t),
        hide_index=True,
        width="stretch",
        placeholder="",
        column_config=config,
        height=height or "auto",
    )


def _fleet(shown: Shown, t: Words) -> None:
    st.dataframe(answers.fleet_table(shown.plan, t), hide_index=True, width="stretch")


def draw_costs(shown: Shown, t: Words) -> None:
    """Draw the costs by component, as a chart and as a table."""
    left, right = st.columns(2)
    draw_chart(shown, t, costs.cost_chart, place=left)
    with right:
        _cost_table(shown.plan, t)


def _networks(shown: Shown, t: Words) -> None:
    st.dataframe(answers.network_table(shown.plan, t), hide_index=True, width="stretch")


def _workloads(shown: Shown, t: Words) -> None:
    plan = shown.plan
    shares = {t(key): column_config.NumberColumn(format="percent") for key in ("column.mfu", "column.utilisation")}
    config = {
        **shares,
        t("column.tokens"): column_config.NumberColumn(format="%.2f"),
        t("column.per_million", **headline.per_tokens(plan, t)): column_config.NumberColumn(format="%.4f"),
    }
    st.dataframe(
        answers.workload_table(plan, t), hide_index=True, width="stretch", placeholder="", column_config=config
    )
    if rows := answers.slo_table(plan, t):
        st.dataframe(rows, hide_index=True, width="stretch")


def _points(shown: Shown, t: Words) -> None:
    st.dataframe(answers.point_table(shown.plan, t), hide_index=True, width="stretch")


def _routes(shown: Shown, t: Words) -> None:
    if not draw_chart(shown, t, flows.flow_chart):
        one = next(each for each in SECTIONS if each.key == "routes")
        for table in tables_of(one, shown.plan, t.language):
            st.dataframe(_as_texts(table.rows), hide_index=True, width="stretch")


def _limits(shown: Shown, t: Words) -> None:
    st.caption(t("limits.words"))
    used = {t("column.used_share"): column_config.ProgressColumn(format="percent", min_value=0.0, max_value=1.0)}
    st.dataframe(
        answers.limit_table(shown.plan, t), hide_index=True, width="stretch", placeholder="", column_config=used
    )


def _runner_up(shown: Shown, t: Words) -> None:
    st.table(answers.as_markup(answers.runner_up_table(shown.plan, t)), hide_index=True)


def _dropped(shown: Shown, t: Words) -> None:
    st.dataframe(answers.dropped_table(shown.plan, t), hide_index=True, width="stretch")


def _assumptions(shown: Shown, t: Words) -> None:
    st.caption(t("assumptions.words"))
    config = {
        t("column.objective_share"): column_config.NumberColumn(format="percent", width="small"),
        t("column.value"): column_config.TextColumn(width="medium"),
    }
    st.dataframe(
        answers.assumption_table(shown.plan, t), hide_index=True, width="stretch", placeholder="", column_config=config
    )


def _sources(shown: Shown, t: Words) -> None:
    rows = answers.provenance_table(shown.plan, t)
    with st.expander(t("section.provenance", count=len(rows))):
        st.dataframe(rows, hide_index=True, width="stretch")


VIEWS: dict[str, Callable[[Shown, Words], None]] = {
    "fleet": _fleet,
    "networks": _networks,
    "points": _points,
    "workloads": _workloads,
    "costs": draw_costs,
    "routes": _routes,
    "limits": _limits,
    "runner_up": _runner_up,
    "dropped": _dropped,
    "assumptions": _assumptions,
    "sources": _sources,
}
"""Sections with a view of their own; all others are tables as the report has them."""
