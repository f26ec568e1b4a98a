"""Galleries of stored plans: of the examples, and of the folder of a read-only dashboard, with the page of each of its plans.

Nothing here starts a process.
"""

from __future__ import annotations

import html
from itertools import zip_longest

import streamlit as st

from planner.dashboard import headline, sources
from planner.dashboard.frozen import shelf
from planner.dashboard.frozen.stored import Held
from planner.dashboard.state.session import Shown, Work
from planner.dashboard.views.frozen import draw_frozen
from planner.escape import page
from planner.plan import Plan
from planner.report.charts.style import PALETTE
from planner.report.locale import Words
from planner.report.story import cost_of_kinds

PLAN = "plan"  # key of the address
COLUMNS = 2
BAR = (
    '<div role="img" aria-label="{words}" title="{words}" '
    'style="display:flex;height:.8rem;border-radius:.2rem;overflow:hidden">{parts}</div>'
)
BAR_PART = '<span style="flex:{share};background:{colour}"></span>'
OPEN = ":material/receipt_long:"


def draw(work: Work, t: Words) -> None:
    """Draw the examples: each with its title, what its plan buys in a sentence, and a bar of its chips."""
    st.caption(t("gallery.examples.words"))
    names = list(sources.examples())
    with st.container(key="gallery"):
        for pair in zip_longest(names[::COLUMNS], names[1::COLUMNS]):
            for column, name in zip(st.columns(COLUMNS), pair):
                if name is not None:
                    with column:
                        _example(work, name, t)


def _example(work: Work, name: str, t: Words) -> None:
    """Draw the card of an example; the one at hand is opened as it was left, like all others."""
    plan = sources.plan_to_list(name)
    title = t.phrase(sources.title_of(str(sources.example(name)["name"])))
    sentence = _sentence(plan, t) if plan is not None else t("gallery.without_plan")
    with st.container(border=True, height="stretch"):
        _card(title, sentence, plan, t)
        if st.button(t("gallery.open"), key=f"open-{name}", disabled=work.job is not None, icon=OPEN):
            work.choose(name)
            st.switch_page(st.session_state.pages["decision"])


def _card(title: str, sentence: str, plan: Plan | None, t: Words) -> None:
    st.subheader(page(title), anchor=False)
    st.markdown(sentence)
    if plan is not None and headline.tells_figures(plan) and (drawn := bar(plan, t)):
        st.html(drawn)


def bar(plan: Plan, t: Words) -> str:
    """Draw the share of each kind of system in what systems cost, as one bar of HTML with a colour for each, the dearest first."""
    costs: dict[str, float] = {}
    for (system, _), cost in cost_of_kinds(plan).items():
        costs[system] = costs.get(system, 0.0) + cost
    held = sorted(((cost, system) for system, cost in costs.items() if cost > 0), reverse=True)
    total = sum(cost for cost, _ in held)
    words = html.escape(t("gallery.bar", shares=", ".join(f"{system} {cost / total:.0%}" for cost, system in held)))
    parts = (
        BAR_PART.format(share=f"{cost / total:.4f}", colour=PALETTE[i % len(PALETTE)])
        for i, (cost, _) in enumerate(held)
    )
    return BAR.format(words=words, parts="".join(parts)) if held else ""


def draw_folder(t: Words) -> None:
    """Draw the plan of the folder that the address names, or the gallery of the folder."""
    name = st.query_params.get(PLAN, "")
    if not name:
        _gallery(t)
        return
    st.button(t("gallery.all"), key="gallery", on_click=_turn_to, args=("",), icon=":material/arrow_back:")
    held = shelf.opened(name)
    if held is None:
        st.header(t("gallery.unknown"), anchor=False)
        return
    draw_frozen(_shown(name, held), t)


def _shown(name: str, held: Held) -> Shown:
    """Prepare a plan for its page, once for a visitor."""
    known: dict[str, Shown] = st.session_state.setdefault("frozen", {})
    if name not in known or known[name].plan is not held.plan:
        known[name] = Shown(held.plan, name, held.findings)
    return known[name]


def _gallery(t: Words) -> None:
    st.header(t("gallery.title"), anchor=False)
    found = shelf.plans()
    st.caption(t("gallery.words") if found else t("gallery.none"))
    for name, plan in found.items():
        with st.container(border=True):
            _card(t.phrase(sources.title_of(str(plan.document["name"]))), _sentence(plan, t), plan, t)
            st.button(
                t("gallery.open"), key=f"open-{name}", on_click=_turn_to, args=(name,), icon=":material/receipt_long:"
            )


def _sentence(plan: Plan, t: Words) -> str:
    """Say what a plan buys and rents, or why it has nothing to say of that."""
    return headline.in_short(plan, t) if headline.tells_figures(plan) else headline.verdict(plan, t)[1]


def _turn_to(name: str) -> None:
    """Turn to a plan by its name, or to the gallery."""
    if name:
        st.query_params[PLAN] = name
    else:
        st.query_params.pop(PLAN, None)
