"""Share the scenario at hand: freeze its plan under a link, list and remove the links made before, and give the command that makes the plan."""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from planner.dashboard import answers, sources
from planner.dashboard.frozen import life, links
from planner.dashboard.frozen.links import LINK, Record, day
from planner.dashboard.state.scenario import UPLOAD
from planner.dashboard.state.session import Shown, Work
from planner.errors import SpecError
from planner.escape import page
from planner.report.locale import Words
from planner.report.outputs.html import html_page

MADE = "link"  # (key of the scenario, its link) in the state of the session
MINE = "links"  # links of the visitor


def draw(work: Work, ways: dict[str, list[str]], t: Words) -> None:
    """Draw the ways to share; `ways`: units and language as parameters of an address."""
    if work.scenario.problems:
        return
    st.caption(t("share.own" if work.kept else "share.not_kept"))
    try:
        shown = work.shown()
    except SpecError:
        shown = None
    if shown is None or shown.findings:
        st.caption(t("links.unsolved"))
        if st.button(t("share.link"), key="share-link", icon=":material/link:"):
            _made(work, f"{st.context.url or ''}?{urlencode({**work.share(), **ways}, doseq=True)}")
    else:
        _freeze(work, shown, ways, t)
    of, link = st.session_state.get(MADE, ("", ""))
    if link and of == work.scenario.key:
        st.code(link, language=None, wrap_lines=True)
    _mine(work, ways, t)
    st.caption(t("share.command"))
    st.code(work.scenario.command(), language="sh", wrap_lines=True)
    st.code(work.scenario.python(), language="python", wrap_lines=True)
    st.download_button(
        t("download.scenario"),
        lambda: answers.spec_text(work.scenario.document()),
        "spec.json",
        "application/json",
        on_click="ignore",
        icon=":material/download:",
    )


def _freeze(work: Work, shown: Shown, ways: dict[str, list[str]], t: Words) -> None:
    """Ask for title, author and life of a link, and make it."""
    st.caption(t("links.words"))
    key = work.scenario.key
    title = st.text_input(
        t("links.title"),
        placeholder=str(t.phrase(sources.title_of(str(shown.plan.document["name"])))),
        key=f"link-title-{key}",
    )
    author = st.text_input(t("links.author"), key="link-author")
    keep = st.selectbox(
        t("links.keep"),
        life.days(),
        index=len(life.days()) - 1,
        format_func=lambda days: t("links.days", days=days),
        key="link-days",
    )
    if st.button(t("links.make"), key="share-link", icon=":material/ac_unit:"):
        scenario = work.scenario
        base, edits = ("", ()) if scenario.base == UPLOAD else (scenario.base, scenario.edits)
        try:
            name = links.make(
                shown.plan,
                work.browser,
                address=_address_of_client(),
                title=title,
                author=author,
                base=base,
                edits=edits,
                keep_days=keep,
                report=(t.language, html_page(shown.plan, t.language)),
            )
        except SpecError as error:
            st.error(" ".join(page(t.phrase(problem.message)) for problem in error.problems))
        else:
            work.workspace.begin()  # so that the browser is known again
            _made(work, _address(name, ways))
            st.session_state[MINE] = links.of_owner(work.browser)


def _address_of_client() -> str | None:
    """Return the address that the visitor's browser connects from; None where it is that of the server or not known."""
    found = st.context.ip_address
    return found if isinstance(found, str) else None


def _made(work: Work, link: str) -> None:
    st.session_state[MADE] = (work.scenario.key, link)


def root() -> str:
    """Return the address of the first page, whatever page is at hand."""
    here = st.session_state.get("page", "")
    return f"{(st.context.url or '').rstrip('/').removesuffix(f'/{here}' if here else '')}/"


def _address(name: str, ways: dict[str, list[str]]) -> str:
    """Return the address of a link: of the first page, whatever page it was made on."""
    return f"{root()}?{urlencode({LINK: [name], **ways}, doseq=True)}"


def _mine(work: Work, ways: dict[str, list[str]], t: Words) -> None:
    """List the links of the visitor, each with a button that removes it."""
    if MINE not in st.session_state:
        st.session_state[MINE] = links.of_owner(work.browser)
    mine: list[Record] = st.session_state[MINE]
    if not mine:
        return
    with st.expander(t("links.yours", count=len(mine))):
        for record in mine:
            with st.container(horizontal=True, vertical_alignment="center"):
                words = t(
                    "links.row",
                    title=page(record.title or t("links.untitled")),
                    made=day(record.made_s),
                    until=day(record.until_s),
                )
                st.markdown(f"[{words}]({_address(record.id, ways)})")
                st.button(
                    t("links.remove"),
                    key=f"unlink-{record.id}",
                    on_click=_remove,
                    args=(work, record),
                    icon=":material/link_off:",
                )


def _remove(work: Work, record: Record) -> None:
    links.remove(record.id, work.browser)
    st.session_state.pop(MINE, None)
    if record.id in st.session_state.get(MADE, ("", ""))[1]:
        st.session_state.pop(MADE)
