"""The page that compares: two to four scenarios, differences only, words first."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import streamlit as st

from planner.dashboard import comparing
from planner.dashboard.headline import shown_currency
from planner.dashboard.state.scenario import UPLOAD, Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.charts import comparison
from planner.report.locale import Words

MOST = 4


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    st.caption(t("compare_page.words"))
    draw_problems(work, t)
    _save(work, t)
    known = _labelled(work, t)
    if not known:
        st.info(t("compare_page.empty"))
        return
    chosen = st.pills(
        t("compare_page.choose", most=MOST),
        list(known),
        selection_mode="multi",
        default=list(known)[:MOST],
        key=f"chosen-{len(known)}",
    )
    scenarios = {name: known[name] for name in list(chosen)[:MOST]}
    if len(chosen) > MOST:
        st.caption(t("compare_page.too_many", most=MOST))
    _list(work, scenarios, t)
    try:
        plans = {name: shown.plan for name, each in scenarios.items() if (shown := work.shown_of(each)) is not None}
        if len(plans) >= 2:
            _differences({name: scenarios[name] for name in plans}, plans, t)
    except SpecError as error:
        draw_refusal(work, error, t)


def _save(work: Work, t: Words) -> None:
    """Let the user save the scenario at hand under a name."""
    with st.form("save", border=False), st.container(horizontal=True, vertical_alignment="bottom"):
        name = st.text_input(
            t("compare_page.name"), _proposed(work, t), key=f"name-{work.scenario.key}", max_chars=60, width=330
        )
        if st.form_submit_button(t("compare_page.save"), icon=":material/bookmark_add:", key="save-scenario"):
            if name.strip():
                work.save_as(name.strip())
            st.rerun()


def _labelled(work: Work, t: Words) -> dict[str, Scenario]:
    """Return the saved scenarios by name, with the base where two bases have one name."""
    times = Counter(each.name for each in work.saved)
    return {
        each.name if times[each.name] == 1 else f"{each.name} · {_base_of(each, t)} {each.digest[:4]}".strip(): each
        for each in work.saved
    }


def _proposed(work: Work, t: Words) -> str:
    """Propose a name: the last change, or the base."""
    if not work.scenario.edits:
        return _base_of(work.scenario, t)[:60]
    path, value = work.scenario.edits[-1]
    return f"{path.rsplit('.', 1)[-1]} {value}"[:60]


def _base_of(scenario: Scenario, t: Words) -> str:
    """Name the base of a scenario: an example, or what was uploaded."""
    if scenario.base == UPLOAD:
        return str((scenario.upload or {}).get("name", scenario.base))
    return t.named("example", scenario.base)


def _list(work: Work, scenarios: dict[str, Scenario], t: Words) -> None:
    """List the chosen scenarios: open one, solve one without a plan, remove one."""
    for name, scenario in scenarios.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            try:
                has_plan = work.shown_of(scenario) is not None
            except SpecError:
                has_plan = False
            edits = "; ".join(f"{path} = {value}" for path, value in scenario.edits) or t("compare_page.base")
            st.markdown(f"**{page(name)}** · {page(_base_of(scenario, t))} · {page(edits)}", width=560)
            if st.button(t("compare_page.open"), key=f"open-{name}"):
                work.turn_to(replace(scenario, name=""))
                st.rerun()
            if not has_plan and st.button(t("edit.solve"), key=f"solve-{name}", disabled=work.job is not None):
                work.start(replace(scenario, name=""))
                st.rerun()
            if st.button(t("compare_page.remove"), key=f"remove-{name}"):
                work.remove(scenario)
                st.rerun()


def _differences(scenarios: dict[str, Scenario], plans: dict[str, Plan], t: Words) -> None:
    """Draw what differs from the pinned scenario."""
    first = next(iter(plans))
    if len(plans) > 1:
        pinned = st.segmented_control(t("compare_page.pin"), list(plans), default=first, key="pinned", required=True)
        first = pinned if pinned in plans else first
    others = [name for name in plans if name != first]
    for name in others:
        st.markdown("\n".join(f"- {sentence}" for sentence in comparing.difference_words(first, name, plans, t)))
    if rows := comparing.spec_rows(first, scenarios, t):
        st.subheader(t("compare_page.specs"))
        st.dataframe(rows, hide_index=True, width="stretch")
    if rows := comparing.total_rows(plans, t):
        st.subheader(t("compare_page.figures"))
        st.dataframe(rows, hide_index=True, width="stretch")
    answered = {name: plan for name, plan in plans.items() if plan.has_answer}
    if first in answered and len({shown_currency(plan, t) for plan in answered.values()}) == 1:
        st.subheader(t("compare_page.costs", first=page(first)))
        for name in others:
            if name in answered and comparison.cost_differences(answered[first], answered[name]):
                st.markdown(f"**{page(name)}**")
                st.altair_chart(comparison.difference_chart(answered[first], answered[name], t), width="stretch")
    if len(answered) > 1:
        st.subheader(t("section.fleet"))
        st.altair_chart(comparison.fleets_chart(answered, t), width="stretch")
