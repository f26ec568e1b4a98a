"""The page of what-if questions: sliders of the figures that are worth most, answered by a spec that stays solved."""

from __future__ import annotations

from functools import partial

import streamlit as st

from planner.dashboard import editing, headline, sources
from planner.dashboard.baseline import carried_over
from planner.dashboard.figures import amount, number, tidy
from planner.dashboard.levers import Lever, levers
from planner.dashboard.state.session import Work
from planner.dashboard.views.parts import draw_changes
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.dashboard.workers import bounds, whatif
from planner.dashboard.workers.whatif import Kept, Question
from planner.errors import SpecError
from planner.escape import page
from planner.plan import Plan
from planner.report.charts import comparison
from planner.report.locale import Words
from planner.report.words import MOST_SHARE, share_words
from planner.spec.document import at

POLL_S, LOOK_S = 0.25, 20.0
"""How often the page looks for an answer, and how often it says that it is still there."""
CARD_PX = 190


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    try:
        base = work.scenario.base_document()
        problem = sources.resolved(base)
        fields = editing.main_figures(base, problem.offers, problem.spec.currency)
        kept = whatif.kept(base)
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    st.caption(t("whatif.words"))
    draw_changes(work.scenario.changes(), t)  # some changes have no slider
    draw_problems(work, t)
    question = _asked(work, kept)
    if question is not None and question.is_answered:
        st.session_state.seen = _state(kept, question)  # what is drawn below
    st.fragment(_watch, run_every=LOOK_S if _is_settled(kept, question) else POLL_S)(kept, question, t)
    plan = kept.base
    _sliders(work, levers(base, fields, plan or _plan_shown(work)), t)
    _other(work, fields, t)
    if plan is not None and question is not None and question.is_answered:
        with st.container(key=f"answer-{work.scenario.key}"):
            _answer(work, plan, question, t)


def _asked(work: Work, kept: Kept) -> Question | None:
    """Ask about the scenario at hand, once; None until the base is solved."""
    if kept.base is None:
        return None
    question: Question | None = st.session_state.get("question")
    changes = dict(work.scenario.edits)
    if question is None or question.changes != changes or st.session_state.get("asked_of") is not kept:
        question = kept.ask(work.visitor, changes)
        st.session_state.question, st.session_state.asked_of = question, kept
    return question


def _is_settled(kept: Kept, question: Question | None) -> bool:
    return bool(kept.problems) or (question is not None and question.is_answered)


def _state(kept: Kept, question: Question) -> tuple[int, bool, bool]:
    """Tell one state of a question from another: a page draws each once."""
    return id(question), kept.base is not None, question.is_answered


def _watch(kept: Kept, question: Question | None, t: Words) -> None:
    """Name the work under way; a fragment that reruns by itself, and redraws the page once there is an answer."""
    kept.touch()
    if kept.may_restart and all(problem.message != bounds.ROOM for problem in kept.problems):
        st.rerun()  # the page starts another; after ROOM only who does something gets one, or open pages would end each other's
    if kept.problems and not (question is not None and question.plan):
        for problem in kept.problems:
            st.error(page(t.phrase(problem.message)))
        if st.button(t("whatif.again"), key="again"):
            whatif.forget_kept(kept)
            st.rerun()
        return
    if question is not None and question.is_answered:
        if st.session_state.get("seen") != _state(kept, question):
            st.rerun()
        st.caption(t("whatif.answered", seconds=f"{question.seconds:.1f}"))
    elif kept.base is None:
        st.progress(0.1, text=t("whatif.base", seconds=f"{kept.seconds:.0f}"))
    elif question is None:  # the base was solved since the page was drawn
        st.rerun()
    else:
        before = kept.position(question)
        st.progress(0.6, text=t("whatif.queued", before=before) if before else t("whatif.solving"))


def _sliders(work: Work, found: list[Lever], t: Words) -> None:
    """Draw the sliders; one that is released changes the scenario."""
    columns = st.columns(3)
    document = work.scenario.document()
    for i, lever in enumerate(found):
        name, _, what = lever.field.subject.partition("|")
        now = at(document, lever.path)
        key = f"lever/{work.scenario.origin}/{lever.path}"
        st.session_state[key] = lever.place(lever.base if now is None else now)  # whatever an earlier run left there
        with columns[i % 3]:
            st.select_slider(
                t(lever.field.label, name=page(name), what=page(what)),
                options=range(len(lever.values)),
                format_func=partial(_value_text, lever),
                key=key,
                help=page(lever.path),
                on_change=_move,
                args=(work, lever, key),
            )


def _move(work: Work, lever: Lever, key: str) -> None:
    """Take the value of a slider that was released; back at the base of a figure that the spec does not state, it is not stated again."""
    value = lever.values[st.session_state[key]]
    is_base = value == lever.base and at(work.scenario.base_document(), lever.path) is None
    work.turn_to(work.scenario.with_edits({lever.path: None if is_base else value}))


def _value_text(lever: Lever, place: int) -> str:
    return tidy(str(lever.values[place]))


def _other(work: Work, fields: list[editing.Field], t: Words) -> None:
    """Let the user change any other figure, found by its name."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = {field.key: _name(field, t) for field in fields}
        path = st.selectbox(
            t("whatif.other"),
            list(names),
            index=None,
            format_func=lambda key: names[key],
            key="other",
            placeholder=t("choose.some"),
            width=380,
        )
        if path is not None:
            field = next(field for field in fields if field.key == path)
            now = at(work.scenario.document(), path)
            text = st.text_input(
                t("whatif.value"),
                "" if now is None else str(now),
                placeholder=field.fallback,
                key=f"other/{path}/{now}",
                width=220,
            )
            if text != ("" if now is None else str(now)):
                _take(work, editing.new_values(work.scenario.document(), {path: text}, [field_with(field, now)]))
        if work.scenario.edits and st.button(t("whatif.reset"), icon=":material/undo:", key="reset"):
            work.turn_to(
                work.scenario.with_edits({p: at(work.scenario.base_document(), p) for p, _ in work.scenario.edits})
            )
            st.rerun()


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


# -- the answer --------------------------------------------------------------------------------------------------------


def _answer(work: Work, base: Plan, question: Question, t: Words) -> None:
    """Draw what the changes do: deltas of the main figures, costs, fleet before and after."""
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
        st.button(t("whatif.why"), key="why", on_click=lambda: work.start(work.scenario), type="primary")
        return
    shown = _plan_shown(work)
    if shown is None:
        st.markdown(sentence)
        draw_cards(base, plan, t)
    else:
        draw_cards(shown, carried_over(shown, base, plan), t)
        st.caption(t("whatif.carried", shown=_cost(shown, t), before=_cost(base, t), after=_cost(plan, t)))
        st.caption(t("whatif.in_fractions", sentence=sentence))
    if work.scenario.edits:
        left, right = st.columns(2)
        with left:
            st.subheader(t("whatif.fleet"))
            plans = {t("whatif.before"): base, t("whatif.after"): plan}
            st.altair_chart(comparison.fleets_chart(plans, t), width="stretch")
        with right:
            st.subheader(t("whatif.costs"))
            if comparison.cost_differences(base, plan):
                st.altair_chart(comparison.difference_chart(base, plan, t), width="stretch")
            else:
                st.caption(t("whatif.same"))
        st.button(
            t("whatif.whole"),
            key="whole",
            on_click=lambda: work.start(work.scenario),
            disabled=work.job is not None,
            type="primary",
        )


def _plan_shown(work: Work) -> Plan | None:
    """Return the plan that the page of plans shows of the base; None where there is none that holds."""
    shown = work.shown_of(work.scenario.root)
    return shown.plan if shown is not None and shown.plan.has_answer and not shown.findings else None


def _cost(plan: Plan, t: Words) -> str:
    return page(amount(plan.totals["cost"], headline.currency(plan), t))


def draw_cards(base: Plan, plan: Plan, t: Words) -> None:
    """Draw the main figures of a plan with their change against the base."""
    with st.container(horizontal=True):
        for card in cards(base, plan, t):
            width = CARD_PX + 9 * max(0, len(card.label) - 20)  # room for its label
            st.metric(
                card.label, card.value, card.delta, delta_color="inverse", help=card.help, border=True, width=width
            )


class Card:
    """A figure with its change."""

    def __init__(self, label: str, value: str, delta: str | None, help: str):
        self.label, self.value, self.delta, self.help = label, value, delta, help


def cards(base: Plan, plan: Plan, t: Words) -> list[Card]:
    """Write the main figures of a plan with their change against the base."""
    metrics = headline.plan_metrics(plan, t)[:4]
    keys = ("cost", "chips", "peak_power_w", "carbon_kg")
    pairs = [(metric, base.total(key), plan.total(key)) for metric, key in zip(metrics, keys)]
    before = {w["name"]: w["cost_per_million_tokens"] for w in base.document["workloads"]}
    after = {w["name"]: w["cost_per_million_tokens"] for w in plan.document["workloads"]}
    prices = [metric for metric in headline.workload_metrics(plan, t) if metric.label != t("metric.sure")]
    names = [name for name, price in after.items() if price is not None]
    pairs += [(metric, before.get(name), after[name]) for metric, name in zip(prices, names)]
    return [Card(metric.label, metric.value, _delta(old, new, t), metric.help) for metric, old, new in pairs]


def _delta(old: float | None, new: float | None, t: Words) -> str | None:
    """Write a change in percent, above 200 % as a factor of what was there; None where nothing changes, or nothing was there before."""
    if not old or new is None:
        return None
    change = 100 * (new / old - 1)
    if change > 100 * MOST_SHARE:
        return f"+ {t.phrase(share_words(new / old - 1))}"
    return None if abs(change) < 0.005 else f"{'+' if change > 0 else ''}{number(float(f'{change:.3g}'))} %"
