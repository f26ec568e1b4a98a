"""Draw what all pages share: navigation, the choice of a scenario, its address, its sharing, and a solve under way."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from importlib import import_module

import streamlit as st
from streamlit.navigation.page import StreamlitPage
from streamlit.runtime.scriptrunner import get_script_run_ctx

from planner.dashboard import history, sources
from planner.dashboard.frozen import links, shelf
from planner.dashboard.frozen.front import MINE, VIEW
from planner.dashboard.frozen.links import LINK
from planner.dashboard.parts.pages import BEFORE, FIRST, FURTHER, PAGES, PRESENT, PageOf, address_of
from planner.dashboard.state import store
from planner.dashboard.state.scenario import BASE, UPLOAD, Scenario, not_kept
from planner.dashboard.state.session import ID, Work, forked, opened
from planner.dashboard.state.workspace import WORKSPACE, is_kept
from planner.dashboard.views import looking
from planner.dashboard.views import units as units_view
from planner.dashboard.views.blocks import drafting
from planner.dashboard.views.plan import BEGUN
from planner.dashboard.workers import studying
from planner.dashboard.workers.solving import STAGES, Job
from planner.errors import SpecError
from planner.escape import page
from planner.messages import DEFAULT, languages
from planner.report.locale import Words
from planner.report.outputs.parts import CHANGE

POLL_S = 0.5
FORK = "fork"  # in the state of the session: the link whose plan the visitor takes over
VIEWS = "planner.dashboard.views"


def draw() -> None:
    """Draw everything, top to bottom."""
    t = Words(_language())
    st.set_page_config(page_title=t("page.title"), page_icon=str(sources.DATA / "icon.png"), layout="wide")
    st.html(STYLE)
    if shelf.folder() is not None:
        _choose_language(t)
        import_module(f"{VIEWS}.gallery").draw_folder(t)
        return
    st.html(history.SCRIPT, unsafe_allow_javascript=True)
    query = {name: st.query_params.get_all(name) for name in st.query_params}
    if LINK in query and not _takes(query):
        _frozen(query)
        return
    looking.begin(query)
    work = _work(query)
    t = units_view.chosen(work, t.language, query)
    pages = _pages(work, t)
    st.session_state.pages = pages
    presents = bool(st.session_state.get(PRESENT))
    chosen = st.navigation(list(pages.values()), position="hidden" if presents else "top")
    if st.session_state.setdefault("page", chosen.url_path) != chosen.url_path:
        st.session_state.page, work.problems = chosen.url_path, ()  # what was refused on another page is over
    bar = st.container(key="bar")
    first_look = chosen is pages[FIRST] and BEGUN not in st.session_state  # nothing was chosen in the bar yet
    if not first_look and not presents:
        with bar:
            _bar(work, t)
    _links(chosen.url_path, t)
    if work.job:
        st.fragment(_watch, run_every=POLL_S)(work, t)
    if studying.under_way(work.visitor):
        import_module(f"{VIEWS}.explore").keep_alive(work, t)
    if work.scenario.problems:
        _dead(work, t)
    else:
        chosen.run()
    if first_look:  # what draws the bar is loaded after what draws the figures
        with bar:
            _bar(work, t)
    _write_address(work, t)
    if work.workspace.kept and work.browser != _cookie() and not st.session_state.get("addressed"):
        st.html(SET_COOKIE.format(name=COOKIE, value=work.browser), unsafe_allow_javascript=True)


def _takes(query: dict[str, list[str]]) -> bool:
    """Tell whether the visitor takes the plan of a link over: by the button of its page here, or by the address that its report links to."""
    state, name = st.session_state, query[LINK][0]
    if query.get(VIEW) == [MINE] and state.get("taken") != name:
        state[FORK] = state.taken = name
    return FORK in state


def _work(query: dict[str, list[str]]) -> Work:
    """Return the visitor's work: begun at the first look, led by the history of the browser, and with the plan of a link that was taken over."""
    state = st.session_state
    fork = links.opened(state.pop(FORK)) if FORK in state else None
    if "work" not in state:
        state.work = opened({} if fork else query)
        secret = next(iter(query.get(WORKSPACE, ())), "")
        state.addressed = is_kept(
            secret
        )  # the browser keeps its own workspace: whoever sends an address must not choose it
        state.work.remember(secret if state.addressed else _cookie() or store.new_id())
        if secret and not is_kept(secret):
            state.work.scenario = Scenario.of_nothing([not_kept()])
        elif BASE not in query and ID not in query and not fork and state.work.workspace.last:
            state.work.choose(state.work.workspace.last)
    elif _has_come_back():
        state.work.follow(query)
    if fork and fork.plan and fork.record:
        forked(state.work, fork.plan, fork.record.base, fork.record.edits)
    work: Work = state.work
    return work


def _frozen(query: dict[str, list[str]]) -> None:
    """Draw the page of a plan link, without any work of the visitor; the choice of a language comes last, for the figures are waited for."""
    bar = st.container()
    t = import_module(f"{VIEWS}.frozen").draw(query[LINK][0], _language(), query)
    with bar:
        _choose_language(t)
    wanted = {**{key: query[key] for key in (LINK, VIEW) if key in query}, **units_view.ways(t)}
    if query != wanted:
        st.query_params.from_dict(wanted)


def _cookie() -> str:
    """Return the secret of the visitor's browser; empty where its cookie holds none of ours."""
    found = st.context.cookies.to_dict().get(COOKIE)
    return found if isinstance(found, str) and store.is_id(found) else ""


def _has_come_back() -> bool:
    """Tell whether the browser went back or on in its history, so that the address says what to show; otherwise the work does."""
    context = get_script_run_ctx()
    return context is not None and context.is_history_navigation


def _dead(work: Work, t: Words) -> None:
    """Say that the address leads to nothing, and why; no plan is shown in its place."""
    st.header(t("link.dead"), anchor=False)
    for problem in work.scenario.problems:
        st.error(f"{page(problem.path)}: {page(t.phrase(problem.message))}")
    st.markdown(t("link.dead.words"))


def _pages(work: Work, t: Words) -> dict[str, StreamlitPage]:
    """List all pages by their names: the navigation, the further pages of its parts, and the addresses of before."""
    return {
        name: st.Page(
            partial(_draw_page, each, work, t),
            title=t(f"nav.{name}"),
            url_path=address_of(name),
            icon=each.icon or None,
            default=name == FIRST,
            visibility="visible" if name in PAGES else "hidden",
        )
        for name, each in {**PAGES, **FURTHER, **BEFORE}.items()
    }


def _draw_page(each: PageOf, work: Work, t: Words) -> None:
    """Load a page, and draw it."""
    draw_it = import_module(f"planner.dashboard.{each.module}").draw
    draw_it(work, t, each.opens) if each.module.startswith("parts.") else draw_it(work, t)


def _links(here: str, t: Words) -> None:
    """Link the pages of a part from each of them."""
    part = FURTHER[here].part if here in FURTHER else CHANGE if here == "whatif" else here
    names = [name for name, each in FURTHER.items() if each.part == part]
    if names:
        pages = st.session_state.pages
        with st.container(horizontal=True, gap="medium", key="links"):
            st.page_link(pages[part], label=t(f"links.{part}"), icon=":material/linear_scale:")
            for name in names:
                st.page_link(pages[name], label=t(f"nav.{name}"), icon=FURTHER[name].icon)


STYLE = """<style>
.stMainBlockContainer { padding-top: 4rem; padding-bottom: 1rem; }
.st-key-bar { min-height: 2.6rem; }
.st-key-head h2 { font-size: 1.6rem; padding: 0; }
.st-key-tables-head { min-height: 8rem; }
.st-key-dimmed { opacity: .45; }
[class*="st-key-risk-"] { border-left: .4rem solid #888; padding: .2rem 0 .2rem 1rem; }
.st-key-risk-low { border-color: #1a7f37; } .st-key-risk-medium { border-color: #d29922; } .st-key-risk-high { border-color: #cf222e; }
.st-key-chips button { border: 1px solid #8886; border-radius: 1rem; padding: .1rem .7rem; }
@media (max-width: 640px) { .stMainBlockContainer h2 { font-size: 1.5rem; } }
</style>"""


COOKIE = "flopwatt"
"""Holds the secret of a browser's workspace; set once there is something to keep."""
SET_COOKIE = """<script>
document.cookie = "{name}={value}; path=/; max-age=31536000; SameSite=Strict" + (location.protocol === "https:" ? "; Secure" : "");
</script>"""


# -- the scenario ------------------------------------------------------------------------------------------------------


def _bar(work: Work, t: Words) -> None:
    """Draw the choice of a scenario, the upload, the shared link, and the languages."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _choose(work, t)
        closed = f"upload-{st.session_state.get('uploads', 0)}"  # another one after each upload, so that it closes
        with st.popover(t("choose.upload"), icon=":material/upload:", disabled=work.job is not None, key=closed):
            _upload(work, t)
        with st.popover(work.workspace.name or t("workspace.title"), icon=":material/folder_shared:", key="workspace"):
            import_module(f"{VIEWS}.workspace").draw(work, t)
        with st.popover(t("units.title"), icon=":material/straighten:"):
            units_view.draw(work, t)
        _choose_language(t)


def _choose(work: Work, t: Words) -> None:
    """Let the user choose an example, or an upload of before; each is found as it was left."""
    uploads = {origin: title for origin, (_, title) in work.uploads.items()}
    uploads |= {
        each.origin: str((each.upload or {}).get("name", "")) for each in work.by_base.values() if each.base == UPLOAD
    }
    names = [*sources.examples(), *uploads]
    at_hand = work.scenario.origin
    chosen = st.selectbox(
        t("choose.label"),
        names,
        index=names.index(at_hand) if at_hand in names else None,
        placeholder=t("choose.some"),
        format_func=lambda name: _title_of(name, uploads, t),
        key=f"source-{at_hand}",
        disabled=work.job is not None,
        label_visibility="collapsed",
        width=330,
    )
    if chosen is not None and chosen != at_hand:
        work.choose(chosen)
        st.rerun()


def _title_of(name: str, uploads: Mapping[str, str], t: Words) -> str:
    return t("choose.uploaded", name=uploads[name] or name) if name in uploads else t.named("example", name)


def _upload(work: Work, t: Words) -> None:
    """Take a spec or a plan, with hourly CSV files, and turn to it."""
    state = st.session_state
    count = state.setdefault("uploads", 0)
    files = st.file_uploader(t("choose.file"), type=["json", "csv"], key=f"file-{count}", accept_multiple_files=True)
    if not files:
        return
    state.uploads = count + 1  # a new uploader, so that the files are taken once
    try:
        try:
            at_hand = work.scenario.document()
        except SpecError:
            at_hand = {}
        document, plan = sources.read_upload([(file.name, file.getvalue()) for file in files], at_hand)
        scenario = Scenario.of_upload(document)
        if sources.missing_files(document):
            drafting.begin(work, scenario)
            st.switch_page(state.pages["tables"])
        sources.resolved(document)
    except SpecError as error:
        work.problems = tuple(error.problems)
        st.rerun()
    work.turn_to(scenario)
    if plan is not None:
        work.verify(document, plan)
    st.rerun()


def _write_address(work: Work, t: Words) -> None:
    """Put scenario, id and language into the address; unchanged parts stay untouched, and so does an address that leads to nothing."""
    if work.scenario.problems:
        return
    wanted = {**work.scenario.address(), "id": [work.id], **units_view.ways(t), **looking.address()}
    there = {name: st.query_params.get_all(name) for name in st.query_params}
    if there != wanted:
        st.query_params.from_dict(wanted)


# -- the solve ---------------------------------------------------------------------------------------------------------


def _watch(work: Work, t: Words) -> None:
    """Show the progress; a fragment that reruns by itself while a solve is under way."""
    job = work.job
    if job is None:  # ended meanwhile, the page is about to be redrawn
        return
    if job.poll():
        _finish(work, job)
        st.rerun()
    step = STAGES.index(job.stage)
    words = t(
        "solve.step", step=step + 1, steps=len(STAGES), what=t(f"stage.{job.stage}"), seconds=f"{job.seconds:.0f}"
    )
    st.progress((step + 1) / (len(STAGES) + 1), text=words)
    for line in job.lines:
        if t.knows(line):
            st.caption(page(t.phrase(line)))
    if st.button(t("solve.cancel"), key="cancel"):
        job.cancel()
        work.job = None
        st.rerun()


def _finish(work: Work, job: Job) -> None:
    """Take the outcome of a job, and keep its plan."""
    outcome = job.outcome
    assert outcome is not None
    work.job = None
    work.problems, work.trace = outcome.problems, outcome.trace
    if outcome.trace:
        print(outcome.trace, file=sys.stderr, flush=True)  # for who runs the server; the page may be shown to anybody
    if outcome.plan:
        work.keep(job.document, outcome.plan, outcome.findings, work.asked)


# -- the language ------------------------------------------------------------------------------------------------------


def _language() -> str:
    """Read the language from the address (`?lang=zh`) at first, and from the visitor's choice after."""
    asked = st.session_state.setdefault("lang", st.query_params.get("lang", DEFAULT))  # a turn to another page drops it
    return asked if asked in languages() else DEFAULT


def _choose_language(t: Words) -> None:
    """Let the user choose a language, if there are several."""
    known = languages()
    if len(known) < 2:
        return
    chosen = st.segmented_control(
        t("choose.language"),
        list(known),
        format_func=lambda code: known[code],
        default=t.language,
        key=f"language-{t.language}",
        label_visibility="collapsed",
    )
    if chosen and chosen != t.language:
        st.session_state.lang = chosen
        st.rerun()
