"""Draw what studies found: charts first, then tables; a point or an alternative that is chosen shows its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import streamlit as st
from streamlit import column_config

from planner.dashboard import deciding, exploring, headline
from planner.dashboard.figures import amount
from planner.dashboard.state.session import Work
from planner.dashboard.views.cards import draw_cards
from planner.dashboard.workers.study_worker import BEST
from planner.dashboard.workers.studying import (
    ALTERNATIVES,
    FRONTIER,
    LADDER,
    MEASURE,
    SENSITIVITY,
    SHARING,
    Study,
)
from planner.escape import page
from planner.plan import Plan
from planner.report.charts import bars, comparison, frontier, tornado
from planner.report.locale import Words
from planner.report.locale.display import MILLION

PERCENT = column_config.NumberColumn(format="percent")
NUMBER = column_config.NumberColumn(format="localized")
MONEY = column_config.NumberColumn(format="localized", step=1)
FACTOR = column_config.NumberColumn(format="%.3g")
Found = Mapping[str, Any]


def _table(rows: list[dict[str, Any]], **config: Any) -> None:
    if rows:
        st.dataframe(rows, hide_index=True, width="stretch", column_config=config)


# -- frontier ----------------------------------------------------------------------------------------------------------


def _frontier(work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    if "break_even" in found:
        draw_break_even(found, t)
        return
    if not found["points"]:
        st.info(t("frontier_page.none"))
    else:
        names = exploring.point_names(found, t)
        place = st.container()
        key = _chosen_point(names, t)
        chart = frontier.frontier_chart(found, t, key)
        with place:
            st.altair_chart(
                chart,
                width="stretch",
                key="frontier-chart",
                on_select=_take_click,
                selection_mode=frontier.PICKED,
            )
            st.caption(
                t("frontier_page.words")
                + (f" {page(t('frontier.scores', source=found['source']))}" if found["source"] else "")
            )
        if (chosen := study.plan(key)) is not None:
            _plan(work, chosen, plan, t)
        money = t("chart.frontier.cost", currency=found["currency"])
        _table(
            exploring.frontier_table(found, t),
            **{
                money: MONEY,
                t("chart.bound"): MONEY,
                t("metric.gap"): PERCENT,
                t(frontier.TITLES[found["measure"]]): NUMBER,
            },
        )
    if found["left_out"]:
        with st.expander(t("explore.left_out", count=len(found["left_out"]))):
            _table(exploring.left_out_table(found, t))


def _chosen_point(names: dict[str, str], t: Words) -> str | None:
    """Let the user choose a point by its name, for who does not click into the chart."""
    clicked = st.session_state.get("frontier-clicked")
    if st.session_state.get("frontier-point") not in names:
        st.session_state["frontier-point"] = None
    if clicked in names:
        st.session_state["frontier-point"], st.session_state["frontier-clicked"] = clicked, None
    return st.selectbox(
        t("frontier_page.open"),
        list(names),
        index=None,
        format_func=lambda key: names[key],
        key="frontier-point",
        placeholder=t("frontier_page.choose"),
    )


def _take_click() -> None:
    """Note the point that was clicked; the next run of the page chooses it."""
    picked = st.session_state["frontier-chart"].selection.get(frontier.PICKED) or []
    if picked:
        st.session_state["frontier-clicked"] = picked[0]["key"]


def draw_break_even(found: Found, t: Words) -> None:
    """Draw from where on buying costs less than renting."""
    chart = frontier.break_even_chart(found, t)
    if chart is None:
        st.info(t("break_even.none"))
    else:
        st.altair_chart(chart, width="stretch")
        st.caption(t("break_even.words"))
        _table(exploring.break_even_table(found, t))
    if found["left_out"]:
        with st.expander(t("explore.left_out", count=len(found["left_out"]))):
            _table(exploring.left_out_table(found, t))


# -- a plan that was found ---------------------------------------------------------------------------------------------


def _plan(work: Work, plan: Plan, base: Plan | None, t: Words, name: str = "") -> None:
    """Show a plan that a study found against that of the scenario, and offer to turn to it."""
    with st.container(border=True):
        st.markdown(headline.in_short(plan, t))
        draw_cards(base or plan, plan, t)
        if base is not None:
            plans = {t("explore.of_scenario"): base, t("explore.of_point"): plan}
            st.altair_chart(comparison.fleets_chart(plans, t), width="stretch")
        if st.button(t("explore.turn"), key="turn", disabled=work.job is not None):
            scenario, renamed = exploring.opened(work.scenario, plan, name)
            work.turn_to(scenario)
            work.verify(scenario.document(), renamed)
            there = st.session_state["pages"]["decision"]
            st.session_state["page"] = there.url_path  # what the server has to say of the plan is told there
            st.switch_page(there)


# -- the other studies -------------------------------------------------------------------------------------------------


def _tornado(work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    if found["value"] is None:
        st.info(t("explore.no_plan"))
        return
    st.markdown(
        t("tornado.base", value=page(amount(found["value"], found["unit"], Words(t.language))), solved=found["solved"])
    )
    chart = tornado.tornado_chart(found, t)
    if chart is not None:
        st.altair_chart(chart, width="stretch")
    _table(exploring.tornado_table(found, t), **{t("column.swing"): PERCENT})


def _alternatives(simpler: bool, work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    if found["best"] is None:
        st.info(t("explore.no_plan"))
        return
    rows = exploring.alternatives_of(found, simpler)
    if not rows:
        if study.has_ended:
            st.info(t("simplest.none" if simpler else "alternatives_page.none"))
        return
    unit = found["best"]["unit"]
    if worse := exploring.worse_by(rows, t):
        title = t("chart.worse")
        st.altair_chart(bars.bar_chart(worse, title, t("column.kind"), bars.SHARE, t), width="stretch")
    keys = {f"{row['kind']}/{row['name']}": row["name"] for row in rows if row["status"] == "found"}
    key = st.selectbox(
        t("alternatives_page.open"),
        list(keys),
        index=None,
        format_func=lambda key: t.phrase(keys[key]),
        key=f"alternative-{simpler}",
        placeholder=t("frontier_page.choose"),
    )
    if key is not None and (chosen := study.plan(key)) is not None:
        name = f"{work.scenario.document()['name']}: {t.phrase(keys[key])}"
        _plan(work, chosen, study.plan(BEST), t, name)
    _table(exploring.alternative_table(rows, unit, t), **{t("column.worse"): PERCENT})


def _ladder(work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    costs = {
        t.phrase(row["lever"]): row["cost_per_million_tokens"]
        for row in found["rungs"]
        if row["cost_per_million_tokens"] is not None
    }
    title = t("column.per_million", currency=found["currency"], per=t(f"per.{MILLION}"))
    if costs:
        st.altair_chart(bars.bar_chart(costs, title, t("column.lever"), bars.AMOUNT, t), width="stretch")
    if found["target_per_million_tokens"] is not None:
        st.caption(
            t("ladder_page.aim", target=f"{found['target_per_million_tokens']:.6g}", currency=page(found["currency"]))
        )
    factors = {t(key): FACTOR for key in ("column.cheaper", "column.from_today", "column.to_target")}
    _table(
        exploring.ladder_table(found, t),
        **{title: column_config.NumberColumn(format="%.4f"), **factors, t("metric.gap"): PERCENT},
    )


def _sharing(work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    worse = {t.phrase(row["capability"]): row["worse"] for row in found["rows"] if row["worse"] is not None}
    if worse:
        st.altair_chart(bars.bar_chart(worse, t("chart.worse"), t("column.without"), bars.SHARE, t), width="stretch")
    shares = {t(key): PERCENT for key in ("column.worse", "column.utilisation", "column.goodput", "column.efficiency")}
    _table(exploring.sharing_table(found, t), **shares)


def draw_hold(plan: Plan, t: Words) -> None:
    """Draw the chance that the plan at hand keeps its promises, as the plan states it."""
    sure = plan.document.get("confidence")
    if not sure:
        st.info(t("hold.none"))
        return
    with st.container(horizontal=True):
        st.metric(
            t("hold.kept"),
            f"{sure['kept']:.0%}",
            help=t("hold.kept.help", scenarios=f"{sure['scenarios']:,}"),
            border=True,
        )
    shares = exploring.kept_shares(plan)
    st.altair_chart(bars.bar_chart(shares, t("hold.share"), t("column.workload"), bars.SHARE, t), width="stretch")
    for sentence in (deciding.promise(plan, t), deciding.upgrade(plan, t)):
        if sentence:
            st.markdown(page(sentence))
    if sure["left_out"]:
        st.caption(page(t("hold.left_out", names=", ".join(t.named("left_out", name) for name in sure["left_out"]))))
    st.caption(t("hold.words"))


def _measure(work: Work, study: Study, plan: Plan | None, t: Words) -> None:
    found = study.found or {}
    currency = found["currency"]
    with st.container(horizontal=True):
        for key, value in (("expected", found["expected_cost"]), ("everything", found["worth_of_everything"])):
            st.metric(
                t(f"measure_page.{key}"),
                amount(value, currency, Words(t.language)),
                help=t(f"measure_page.{key}.help"),
                border=True,
                width=260,
            )
    best = found["best_set"]
    if best["cases"]:
        values = {name: page(amount(best[name], currency, Words(t.language))) for name in ("worth", "price")}
        st.markdown(t("measure_page.best", cases=page(", ".join(best["cases"])), **values))
    else:
        st.markdown(t("measure_page.nothing"))
    worth = {row["name"]: row["worth"] for row in found["cases"]}
    title = t("column.worth", currency=currency)
    if worth:
        st.altair_chart(bars.bar_chart(worth, title, t("column.case"), bars.AMOUNT, t), width="stretch")
    _table(exploring.measure_table(found, t), **{title: MONEY, t("column.price", currency=currency): MONEY})
    if found["cases"]:
        st.subheader(t("measure_page.how"))
        name = st.selectbox(t("column.case"), [row["name"] for row in found["cases"]], key="measure-case")
        commands: list[str] = next((row["commands"] for row in found["cases"] if row["name"] == name), [])
        st.code("\n".join(commands), language="sh", wrap_lines=True)
    if found["left_out"]:
        st.caption(page(t("hold.left_out", names=", ".join(t.named("left_out", name) for name in found["left_out"]))))


DRAW: dict[str, Callable[[Work, Study, Plan | None, Words], None]] = {
    FRONTIER: _frontier,
    SENSITIVITY: _tornado,
    ALTERNATIVES: partial(_alternatives, False),
    "simplest": partial(_alternatives, True),
    LADDER: _ladder,
    SHARING: _sharing,
    MEASURE: _measure,
}
