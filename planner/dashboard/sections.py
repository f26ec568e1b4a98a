"""Draw the parts of the page that show a plan: each places rows of `answers` or a chart of `charts`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import streamlit as st
from streamlit import column_config

from catalog.units import DAY_S
from planner.dashboard import answers, charts
from planner.dashboard.locale import Words
from planner.escape import page
from planner.plan import Plan

if TYPE_CHECKING:
    from planner.dashboard.state import Shown

NARROW_PX, WIDE_PX = 170, 214  # of metrics, which wrap where the page is narrow
CHARTS_PER_ROW = 2


def draw_plan(shown: Shown, t: Words, on_repair: Callable[[], None] | None) -> None:
    """Draw a plan from its verdict down to its sources; `on_repair` applies the repair of an infeasible one."""
    plan = shown.plan
    st.header(page(plan["name"]))
    _verdict(shown, t)
    if plan.has_answer:
        _metrics(plan, t)
        _downloads(shown, t)
        _fleet(plan, t)
        _costs(plan, t)
        _day(plan, t)
        _workloads(plan, t)
        _limits(plan, t)
        _runner_up(plan, t)
        _assumptions(plan, t)
    else:
        _diagnosis(plan, t, on_repair)
        _downloads(shown, t)
    _background(plan, t)


def _verdict(shown: Shown, t: Words) -> None:
    level, sentence = answers.verdict(shown.plan, t)
    {"success": st.success, "warning": st.warning, "error": st.error}[level](sentence)
    if shown.findings:
        st.error(t("check.broken") + "\n\n" + "\n".join(f"- {page(finding)}" for finding in shown.findings))
    elif shown.plan.has_answer:
        st.caption(t("check.stored" if shown.stored else "check.holds"))
    if shown.changes:
        st.caption(
            t(
                "changes.title",
                changes="; ".join(
                    f"{page(row['path'])} {page(row['from']) or '–'} → {page(row['to']) or '–'}"
                    for row in shown.changes
                ),
            )
        )


def _metrics(plan: Plan, t: Words) -> None:
    for found, width in ((answers.plan_metrics(plan, t), NARROW_PX), (answers.workload_metrics(plan, t), WIDE_PX)):
        with st.container(horizontal=True):
            for metric in found:
                st.metric(metric.label, metric.value, help=metric.help, border=True, width=width)
    st.caption(answers.energy_line(plan, t))


def _downloads(shown: Shown, t: Words) -> None:
    with st.container(horizontal=True):
        for file in shown.files:
            st.download_button(
                t(file.label), file.data, file.file, file.mime, on_click="ignore", icon=":material/download:"
            )


def _fleet(plan: Plan, t: Words) -> None:
    st.subheader(t("section.fleet"))
    st.altair_chart(charts.fleet_chart(plan, t), width="stretch")
    st.dataframe(answers.fleet_table(plan, t), hide_index=True, width="stretch")


def _costs(plan: Plan, t: Words) -> None:
    st.subheader(t("section.costs"))
    left, right = st.columns(2)
    left.altair_chart(charts.cost_chart(plan, t), width="stretch")
    money = t("column.amount", currency=answers.currency(plan))
    config = {
        money: column_config.NumberColumn(format="localized", step=1),
        t("column.share"): column_config.NumberColumn(format="percent"),
    }
    right.dataframe(answers.cost_table(plan, t), hide_index=True, width="stretch", column_config=config)


def _day(plan: Plan, t: Words) -> None:
    """Draw load over price for each site, their hours aligned."""
    sites, phases = charts.sites_with_load(plan), charts.phases(plan)
    if not sites:
        return
    st.subheader(t("section.day"))
    st.caption(t("day.words"))
    phase = next(iter(phases))
    if len(phases) > 1:
        phase = st.segmented_control(
            t("day.phase"),
            list(phases),
            format_func=lambda p: t("day.days", phase=page(str(p)), days=f"{phases[p] / DAY_S:.0f}"),
            default=phase,
            key="phase",
            required=True,
        )
    for begin in range(0, len(sites), CHARTS_PER_ROW):
        for column, site in zip(
            st.columns(CHARTS_PER_ROW, gap="medium"), sites[begin : begin + CHARTS_PER_ROW], strict=False
        ):
            column.markdown(f"**{page(site)}**")
            column.altair_chart(charts.load_chart(plan, site, phase, t), width="stretch")
            column.altair_chart(charts.price_chart(plan, site, phase, t), width="stretch")


def _workloads(plan: Plan, t: Words) -> None:
    st.subheader(t("section.workloads"))
    shares = {t(key): column_config.NumberColumn(format="percent") for key in ("column.mfu", "column.utilisation")}
    config = {
        **shares,
        t("column.tokens"): column_config.NumberColumn(format="%.2f"),
        t("column.per_million", currency=answers.currency(plan)): column_config.NumberColumn(format="%.4f"),
    }
    st.dataframe(answers.workload_table(plan, t), hide_index=True, width="stretch", column_config=config)
    if rows := answers.slo_table(plan, t):
        st.dataframe(rows, hide_index=True, width="stretch")
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


def _diagnosis(plan: Plan, t: Words, on_repair: Callable[[], None] | None) -> None:
    if rows := answers.conflict_table(plan, t):
        st.subheader(t("section.conflict"))
        st.table(answers.as_markup(rows), hide_index=True)
    if rows := answers.repair_table(plan, t):
        st.subheader(t("section.repair"))
        st.table(answers.as_markup(rows), hide_index=True)
        st.caption(t("repair.checked" if plan["diagnosis"]["repair_checked"] else "repair.unchecked"))
        st.button(t("repair.apply"), key="repair", on_click=on_repair, disabled=on_repair is None)


def _background(plan: Plan, t: Words) -> None:
    """Draw sources, dropped candidates and versions."""
    for key, rows in (("provenance", answers.provenance_table(plan, t)), ("dropped", answers.dropped_table(plan, t))):
        if rows:
            with st.expander(t(f"section.{key}", count=len(rows))):
                st.dataframe(rows, hide_index=True, width="stretch")
    versions = ", ".join(f"{name} {version}" for name, version in plan["versions"].items())
    st.caption(t("versions", versions=versions, digest=plan["catalog_digest"][:12]))
