"""The page of serving and training: all operating points, the roofline, where time and memory go, and layouts."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from catalog.lookup import Catalog
from catalog.units import MICRO
from planner.dashboard import answers, running, sources
from planner.dashboard.figures import amount, number
from planner.dashboard.running import CLIENTS, LOADS, MAX, MOST_CHIPS, WORKLOAD, Choice, Settings
from planner.dashboard.state.session import Work
from planner.dashboard.views import looking
from planner.dashboard.views.problems import draw_problems, draw_refusal
from planner.errors import Issue, SpecError
from planner.escape import page
from planner.estimate.profile.profile import profile
from planner.evaluate.serving import FIRST_TOKEN
from planner.messages import commas
from planner.report.charts.interactivity import interactivity_chart
from planner.report.charts.roofline import roofline_chart
from planner.report.charts.running import gap_chart, layouts_chart, memory_chart
from planner.report.locale import Words

KEPT = 12
CARD_PX = 200
Chart = Callable[[Mapping[str, Any], Words], Any]


def draw(work: Work, t: Words) -> None:
    """Draw the page."""
    try:
        document = work.scenario.document()
        sources.resolved(document)
        catalog = running.catalog_for(document)
        shown = work.shown()
        found = [*_own(), *running.choices(document, None if shown is None else shown.plan, catalog)]
    except SpecError as error:
        draw_refusal(work, error, t)
        return
    st.caption(t("running.words"))
    draw_problems(work, t)
    choice = _choose(found, t)
    if choice is None:
        st.info(t("running.none"))
        return
    if choice.origin == WORKLOAD:
        choice = replace(choice, case=_fitting(choice.case, document, catalog))
    settings = _settings(choice, catalog, t)
    case = choice.case if settings is None else running.changed(choice.case, settings)
    drawn = _profile(case, choice.away_s, catalog)
    if isinstance(drawn, tuple):
        for problem in drawn:
            st.error(f"{page(problem.path)}: {page(t.phrase(problem.message))}")
        return
    _cards(drawn, t)
    if drawn["kind"] == "serving":
        st.subheader(t("running.points"))
        _chart(drawn, t, interactivity_chart)
        st.caption(t("running.points.words", percentile=drawn["percentile"]))
    left, right = st.columns(2)
    with left:
        _section(drawn, t, gap_chart)
        _section(drawn, t, memory_chart)
    with right:
        _section(drawn, t, roofline_chart)
        _section(drawn, t, layouts_chart)
    _reasons(drawn, t)


def _section(drawn: dict[str, Any], t: Words, make: Chart) -> None:
    place = st.container()
    if _chart(drawn, t, make):
        name = make.__name__.removesuffix("_chart")
        place.subheader(t(f"running.{name}"))
        st.caption(t(f"running.{name}.words"))


def _chart(drawn: dict[str, Any], t: Words, make: Chart) -> bool:
    """Draw a chart of a profile, written once; False for one that the profile has nothing for."""
    kept = drawn.setdefault("charts", {})
    key = (make.__name__, t.language, t.display)
    if key not in kept:
        chart = make(drawn, t)
        kept[key] = None if chart is None else chart.to_json()
    if kept[key] is None:
        return False
    st.vega_lite_chart(json.loads(kept[key]), width="stretch")
    return True


# -- the case ----------------------------------------------------------------------------------------------------------


def _own() -> list[Choice]:
    own: list[Choice] = st.session_state.setdefault("own_cases", [])
    return own


def _choose(found: list[Choice], t: Words) -> Choice | None:
    """Let the visitor choose a case, or bring one; None where there is none."""
    by_key = {choice.key: choice for choice in found}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        key = st.selectbox(
            t("running.case"),
            list(by_key),
            index=list(by_key).index(looking.first("case", list(by_key), found[0].key)) if found else None,
            format_func=lambda key: f"{t('origin.' + by_key[key].origin)}: {by_key[key].name}",
            key=f"case-of-{len(_own())}",
            width=520,
        )
        count = st.session_state.setdefault("case_uploads", 0)
        with st.popover(t("running.own"), icon=":material/upload:", key=f"own-case-{count}"):
            file = st.file_uploader(t("running.own.words"), type=["json"], key=f"case-file-{count}")
    looking.note("case", key, found[0].key if found else None)
    if file is not None:
        st.session_state.case_uploads = count + 1
        try:
            st.session_state.own_cases = [running.read_case(file.name, file.getvalue()), *_own()][:KEPT]
        except SpecError as error:
            for problem in error.problems:
                st.error(f"{page(problem.path or t('problems.file'))}: {page(t.phrase(problem.message))}")
        else:
            st.rerun()
    return by_key.get(key) if key is not None else None


def _settings(choice: Choice, catalog: Catalog, t: Words) -> Settings | None:
    """Draw what may be changed of a case; None for one that is not right."""
    try:
        base = Settings.of(choice.case)
    except (KeyError, TypeError, ValueError):
        return None
    trains = running.is_training(choice.case)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        systems = list(dict.fromkeys([base.system, *catalog.names("systems")]))
        system = st.selectbox(t("column.system"), systems, key=f"system-{choice.key}", width=250)
        chips = st.number_input(
            t("chart.chips"), 1, MOST_CHIPS, min(max(base.chips, 1), MOST_CHIPS), key=f"chips-{choice.key}", width=130
        )
        able = running.precisions(catalog, system, trains) or [base.precision]
        start = able.index(base.precision) if base.precision in able else 0
        precision = st.selectbox(t("column.precision"), able, start, key=f"precision-{choice.key}-{system}", width=110)
        names = ("sequence", "step") if trains else ("prompt", "answer")
        least, most = (1, 1) if trains else (1, 2), (10_000_000, 10**12) if trains else (10_000_000, 1_000_000)
        first, second = (
            st.number_input(
                t(f"running.{name}"), low, high, min(max(now, low), high), key=f"{name}-{choice.key}", width=150
            )
            for name, low, high, now in zip(names, least, most, base.lengths, strict=True)
        )
        if trains:
            return Settings(system, chips, precision, (first, second))
        load = st.selectbox(
            t("running.load"), LOADS, LOADS.index(base.load), format_func=lambda name: t(f"load.{name}"),
            key=f"load-{choice.key}", width=190,
        )  # fmt: skip
        value = 0.0
        if load != MAX:
            step = 1.0 if load == CLIENTS else None
            given = min(max(base.amount, 1e-6), 1e7) if load == base.load else 10.0
            value = st.number_input(
                t(f"load.{load}"), 1.0 if load == CLIENTS else 1e-6, 1e7, given, step, key=f"amount-{choice.key}-{load}",
                width=170,
            )  # fmt: skip
    return Settings(system, chips, precision, (first, second), load, value)


def _fitting(case: dict[str, Any], document: Mapping[str, Any], catalog: Catalog) -> dict[str, Any]:
    """Put a workload on the fewest systems of the first kind on which it runs within its limits, or else runs at all; as it is where on none."""
    found: dict[str, Any] = st.session_state.setdefault("fitting", {})
    key = running.digest_of(case, 0.0) + catalog.digest
    if key not in found:
        runs: dict[str, Any] | None = None
        for each in running.larger(case, document, catalog):
            drawn = _profile(each, 0.0, catalog)
            if isinstance(drawn, tuple) or drawn["at"] is None:
                continue
            runs = runs or each
            if drawn["at"].get("meets_slo", True):
                runs = each
                break
        found[key] = runs or case
    fitting: dict[str, Any] = found[key]
    return fitting


def _profile(case: Mapping[str, Any], away_s: float, catalog: Catalog) -> dict[str, Any] | tuple[Issue, ...]:
    """Profile a case, or return its problems; the last ones are kept."""
    kept: dict[str, Any] = st.session_state.setdefault("profiles", {})
    key = running.digest_of(case, away_s) + catalog.digest
    if key not in kept:
        try:
            kept[key] = profile(case, catalog, away_s)
        except SpecError as error:
            kept[key] = tuple(error.problems)
        while len(kept) > KEPT:
            kept.pop(next(iter(kept)))
    result: dict[str, Any] | tuple[Issue, ...] = kept[key]
    return result


# -- the answer --------------------------------------------------------------------------------------------------------


def _cards(drawn: Mapping[str, Any], t: Words) -> None:
    """Draw the figures of the point under the load, or why there is none."""
    at = drawn["at"]
    if at is None:
        st.warning(page(t.phrase(drawn["reason"])))
        return
    serves = drawn["kind"] == "serving"
    if serves and not at["meets_slo"]:
        st.warning(t("running.misses"))
    st.markdown(
        t("running.at", layout=page(at["layout"]), system=page(drawn["system"]), precision=page(drawn["precision"]))
    )
    cards: list[tuple[str, str]] = []
    if serves:
        low, high = at["user_80"]
        cards += [
            ("running.per_user", f"{number(at['user'])} ({number(low)} – {number(high)})"),
            ("running.per_chip", f"{number(at['chip'])} ({number(at['chip_80'][0])} – {number(at['chip_80'][1])})"),
            *(
                (label, " · ".join(amount(at["latency_s"]["ttft"][name], "s", t) for name in names))
                for label, names in (("running.ttft", FIRST_TOKEN[:2]), ("running.ttft_tail", FIRST_TOKEN[2:]))
            ),
            ("running.batch", number(float(at["batch"]))),
        ]
    else:
        low, high = at["step_80"]
        cards += [
            ("running.step_time", f"{amount(at['step_s'], 's', t)} ({amount(low, 's', t)} – {amount(high, 's', t)})"),
            ("running.tokens", number(at["tokens_per_s"])),
        ]
    cards.append(("column.mfu", f"{at['mfu']:.1%}"))
    with st.container(horizontal=True):
        for label, value in cards:
            st.metric(t(label), value, border=True, width=CARD_PX + 11 * max(len(value) - 13, 0))
    if serves:
        parts = (
            f"{t.phrase(row['part'])} {amount(row['mean_s'], 's', t)}"
            for row in at["first_token"]
            if row["mean_s"] > MICRO
        )
        st.caption(page(t("running.first_token", parts=commas(parts))))


def _reasons(drawn: Mapping[str, Any], t: Words) -> None:
    """List why layouts cannot run, each reason once with its sizes."""
    reasons: dict[str, list[str]] = {}
    for cell in drawn["layouts"]:
        if cell["why_not"]:
            reasons.setdefault(cell["why_not"], []).append(f"{cell['tp']} × {cell['pp']}")
    if reasons:
        with st.expander(t("running.reasons", count=len(reasons))):
            rows = [{t("column.reason"): t.phrase(why), "tp × pp": ", ".join(sizes)} for why, sizes in reasons.items()]
            st.table(answers.as_markup(rows), hide_index=True)
