"""The page Change: one rail of levers ranked by worth, all active changes, and what they do, answered by a spec that stays solved."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from planner.dashboard import answers, editing, headline, sources
from planner.dashboard.baseline import carried_over
from planner.dashboard.figures import amount, tidy
from planner.dashboard.levers import Lever, levers
from planner.dashboard.parts.before import Before, compared
from planner.dashboard.parts.questions import EACH, Asked, ask
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan_form
from planner.dashboard.views.cards import draw_cards, share_of_change
from planner.dashboard.views.parts import to_decision
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.dashboard.workers import bounds, whatif
from planner.dashboard.workers.whatif import Kept
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.charts import comparison
from planner.report.locale import Words
from planner.report.marginal_values import worth_unit
from planner.spec.document import at

POLL_S, LOOK_S = 0.25, 20.0
"""How often the page looks for an answer, and how often it says that it is still there."""
LAST = "change_last"  # the answer drawn last, which stays in sight, dimmed, until the next


def draw(work: Work, t: Words, opens: str = "") -> None:
    """Draw the page."""
    try:
        base = work.scenario.base_document()
        problem = sources.resolved(base)
        fields = editing.main_figures(base, problem.offers, problem.spec.currency)
        against = compared(work)
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    st.caption(t("change.words"))
    draw_problems(work, t)
    kept = _kept(base, t)
    asked = ask(work, kept, against)
    _chips(work, fields, asked, t)
    rail, effect = st.columns([1, 2], gap="large")
    with effect:
        if kept is not None:
            st.session_state.seen = asked.state  # what is drawn below
            st.fragment(_watch, run_every=LOOK_S if asked.is_settled else POLL_S)(kept, asked, t)
            _effect(work, kept, asked, against, t)
        _solve(work, t)
    plan = kept.base if kept is not None and kept.base is not None else against.shown.plan if against else None
    with rail:
        st.subheader(t("change.rail"), anchor=False)
        _rail(work, levers(base, fields, plan), plan, t)
        _other(work, fields, t)
    form = st.expander(t("edit.title"), key=f"edit-{st.session_state.get('solves', 0)}", icon=":material/edit:")
    try:
        with form:
            plan_form.draw(work, t)
    except SpecError as error:
        draw_refusal(work, error, t)


def _kept(base: dict[str, Any], t: Words) -> Kept | None:
    """Return the process that answers changes of a spec; None where it cannot be kept, which is told."""
    try:
        return whatif.kept(base)
    except SpecError as error:
        for problem in error.problems:
            st.info(t("change.not_kept", reason=page(t.phrase(problem.message))))
        return None


# -- what is changed ---------------------------------------------------------------------------------------------------


def _chips(work: Work, fields: list[editing.Field], asked: Asked, t: Words) -> None:
    """List all active changes, sliders or not, each with what it does alone, and a button that takes it back."""
    changes = work.scenario.changes()
    if not changes:
        st.caption(t("change.none"))
        return
    names = {field.key: _name(field, t) for field in fields}
    with st.container(horizontal=True, gap="small", key="chips"):
        for row in changes:
            path = row["path"]
            words = f"{names.get(path, path)}: {_value(row['from'])} → {_value(row['to'])}"
            alone = asked.alone.get(path)
            if (effect := _alone(asked, alone, t)) is not None:
                words += f" · {effect}"
            st.button(
                page(words), key=f"undo-{path}", on_click=_undo, args=(work, [path]), icon=":material/close:",
                help=t("change.undo", path=page(path)), type="tertiary",
            )  # fmt: skip
        if len(changes) > 1:
            paths = [row["path"] for row in changes]
            st.button(t("whatif.reset"), key="reset", on_click=_undo, args=(work, paths), icon=":material/undo:")
    if len(changes) > EACH:
        st.caption(t("change.effects_of_few", count=EACH))


def _value(value: object) -> str:
    """Write a value of a spec briefly."""
    words = tidy(answers.written(value)) or "–"
    return words if len(words) <= 40 else f"{words[:38]}…"


def _alone(asked: Asked, plan: Plan | None, t: Words) -> str | None:
    """Say what a change alone does to the objective; None until that is known."""
    if plan is None or asked.base is None or not asked.base.has_answer:
        return None
    if not plan.has_answer:
        return t("change.no_plan")
    return share_of_change(asked.base.value, plan.value, t) or t("change.nothing")


def _undo(work: Work, paths: list[str]) -> None:
    """Take changes back: each figure is that of the base again."""
    base = work.scenario.base_document()
    work.turn_to(work.scenario.with_edits({path: at(base, path) for path in paths}))


# -- the rail ----------------------------------------------------------------------------------------------------------


def _rail(work: Work, found: list[Lever], plan: Plan | None, t: Words) -> None:
    """Draw the levers, the one worth most first; one that is released changes the scenario."""
    document = work.scenario.document()
    for lever in found:
        name, _, what = lever.field.subject.partition("|")
        now = at(document, lever.path)
        key = f"lever/{work.scenario.origin}/{lever.path}"
        st.session_state[key] = lever.place(lever.base if now is None else now)  # whatever an earlier run left there
        st.select_slider(
            t(lever.field.label, name=page(name), what=page(what)),
            options=range(len(lever.values)),
            format_func=partial(_value_text, lever),
            key=key,
            help=f"{page(lever.path)} · {_worth(lever, plan, t)}",
            on_change=_move,
            args=(work, lever, key),
        )


def _worth(lever: Lever, plan: Plan | None, t: Words) -> str:
    """Say what a tenth of a figure is worth in the plan."""
    if not lever.worth or plan is None:
        return t("change.worth_unknown")
    unit = plan.objective["unit"] if plan.objective["sense"] == "min" else worth_unit(plan)
    return t("change.worth", worth=page(amount(lever.worth, unit, t)))


def _move(work: Work, lever: Lever, key: str) -> None:
    """Take the value of a slider that was released; back at the base of a figure that the spec does not state, it is not stated again."""
    value = lever.values[st.session_state[key]]
    is_base = value == lever.base and at(work.scenario.base_document(), lever.path) is None
    work.turn_to(work.scenario.with_edits({lever.path: None if is_base else value}))


def _value_text(lever: Lever, place: int) -> str:
    return tidy(str(lever.values[place]))


def _other(work: Work, fields: list[editing.Field], t: Words) -> None:
    """Let the user change any other figure, found by its name."""
    names = {field.key: _name(field, t) for field in fields}
    path = st.selectbox(
        t("whatif.other"),
        list(names),
        index=None,
        format_func=lambda key: names[key],
        key="other",
        placeholder=t("choose.some"),
    )
    if path is not None:
        field = next(field for field in fields if field.key == path)
        now = at(work.scenario.document(), path)
        text = st.text_input(
            t("whatif.value"),
            "" if now is None else str(now),
            placeholder=field.fallback,
            key=f"other/{path}/{now}",
        )
        if text != ("" if now is None else str(now)):
            _take(work, editing.new_values(work.scenario.document(), {path: text}, [field_with(field, now)]))


def field_with(field: editing.Field, now: object) -> editing.Field:
    """Return a field with the text of the scenario in place of that of the base."""
    return editing.Field(
        field.path, field.group, field.label, field.subject, "" if now is None else str(now), field.fallback
    )


def _name(field: editing.Field, t: Words) -> str:
    name, _, what = field.subject.partition("|")
    return f"{t('group.' + field.group)}: {t(field.label, name=name, what=what)}"


def _take(work: Work, edits: dict[str, object]) -> None:
    try:
        scenario = work.scenario.with_edits(edits)
        sources.resolved(scenario.document())
    except SpecError as error:
        work.problems = tuple(error.problems)
    else:
        work.turn_to(scenario)
    st.rerun()


# -- the effect --------------------------------------------------------------------------------------------------------


def _watch(kept: Kept, asked: Asked, t: Words) -> None:
    """Name the work under way; a fragment that reruns by itself, and redraws the page once there is an answer."""
    kept.touch()
    if kept.may_restart and all(problem.message != bounds.ROOM for problem in kept.problems):
        st.rerun()  # the page starts another; after ROOM only who does something gets one, or open pages would end each other's
    question = asked.question
    if kept.problems and not (question is not None and question.plan):
        for problem in kept.problems:
            st.error(page(t.phrase(problem.message)))
        if st.button(t("whatif.again"), key="again"):
            whatif.forget_kept(kept)
            st.rerun()
        return
    if st.session_state.get("seen") != asked.now():
        st.rerun()
    if question is not None and question.is_answered:
        st.caption(t("whatif.answered", seconds=f"{question.seconds:.1f}"))
    elif kept.base is None:
        st.progress(0.1, text=t("whatif.base", seconds=f"{kept.seconds:.0f}"))
    else:
        waits = kept.position(question) if question is not None else 0
        st.progress(0.6, text=t("whatif.queued", before=waits) if waits else t("whatif.solving"))


def _effect(work: Work, kept: Kept, asked: Asked, against: Before | None, t: Words) -> None:
    """Draw what the changes do; the answer before them stays in sight, dimmed, until there is one."""
    question, last = asked.question, st.session_state.get(LAST)
    if question is not None and question.is_answered and kept.base is not None:
        st.session_state[LAST] = (kept, asked)
        with st.container(key=f"answer-{work.scenario.key}"):
            _answer(work, kept.base, asked, against, t)
    elif last is not None and last[0] is kept and kept.base is not None:
        with st.container(key="dimmed"):
            _answer(work, kept.base, last[1], against, t)
    elif against is not None:
        with st.container(key="dimmed"):
            draw_cards(against.shown.plan, against.shown.plan, t)


def _answer(work: Work, base: Plan, asked: Asked, against: Before | None, t: Words) -> None:
    """Draw what the changes do: main figures against the plan that was shown, costs, fleet before and after."""
    question = asked.question
    assert question is not None
    if question.problems:
        for problem in question.problems:
            st.error(f"{page(problem.path)}: {page(t.phrase(problem.message))}")
        return
    plan = question.plan
    if plan is None:
        return
    level, sentence = headline.verdict(plan, t)
    if level == "error" or not plan.has_answer or not base.has_answer:
        {"success": st.success, "warning": st.warning, "error": st.error}[level](sentence)
        return
    before = asked.before if asked.before is not None and asked.before.has_answer else base
    if against is None:
        st.markdown(sentence)
        draw_cards(before, plan, t)
    else:
        shown = against.shown.plan
        draw_cards(shown, carried_over(shown, before, plan), t)
        st.caption(t("whatif.carried", shown=_cost(shown, t), before=_cost(before, t), after=_cost(plan, t)))
        st.caption(t("whatif.in_fractions", sentence=sentence))
    if work.scenario.edits:
        _draw_charts(before, plan, t)


def _draw_charts(before: Plan, plan: Plan, t: Words) -> None:
    left, right = st.columns(2)
    with left:
        st.subheader(t("whatif.fleet"), anchor=False)
        plans = {t("whatif.before"): before, t("whatif.after"): plan}
        st.altair_chart(comparison.fleets_chart(plans, t), width="stretch")
    with right:
        st.subheader(t("whatif.costs"), anchor=False)
        if comparison.cost_differences(before, plan):
            st.altair_chart(comparison.difference_chart(before, plan, t), width="stretch")
        else:
            st.caption(t("whatif.same"))


def _solve(work: Work, t: Words) -> None:
    """Offer to make a plan of the changes, unless there is one."""
    if work.shown() is not None:
        return
    if st.button(t("whatif.whole"), key="whole", disabled=work.job is not None, type="primary"):
        work.start(work.scenario)
        to_decision(work)


def _cost(plan: Plan, t: Words) -> str:
    return page(amount(plan.totals["cost"], headline.currency(plan), t))
