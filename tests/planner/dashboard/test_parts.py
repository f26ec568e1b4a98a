"""Every part of every example: its headings on one page each, no exception, no blank, no figure that is none."""

import re
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from planner.dashboard import deciding, sources
from planner.dashboard.parts.operations import TABS
from planner.dashboard.parts.pages import PAGES, address_of
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan as plan_page
from planner.dashboard.workers import whatif
from planner.errors import Issue, SpecError
from planner.messages import languages
from planner.report.locale import Words
from planner.report.outputs.parts import DECISION, OPERATIONS, PARTS
from planner.report.outputs.sections import SECTIONS
from planner.report.report import render

HOME = Path(__file__).resolve().parents[3]
LONGEST_S = 120
NO_FIGURE = re.compile(r"\bNaN\b|\bnan\b|\de[+-]\d|Infinity|\bNone\b|undefined")


@pytest.fixture(autouse=True)
def nothing_is_started(tmp_path, monkeypatch):
    """Keep the work of each test in a folder of its own, and no spec solved: pages are looked at as they open."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))

    def refused(_):
        raise SpecError([Issue("server", "busy")])

    monkeypatch.setattr(whatif, "kept", refused)


def opened(name: str, part: str, language: str = "en") -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=LONGEST_S)
    page.query_params["lang"] = language
    page._page_hash = calc_hash(address_of(part))
    page.session_state.work = Work(Scenario(name))
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def texts(page: AppTest) -> list[str]:
    """All words of a page: headings, sentences, figures and cells."""
    kinds = (page.header, page.subheader, page.markdown, page.caption, page.metric, page.info, page.warning)
    found = [str(each.value) for kind in kinds for each in kind]
    found += [part.label for part in page.expander]
    cells = [table.value for table in (*page.dataframe, *page.table)]
    cell_values = [cell for table in cells for row in table.astype(object).values.tolist() for cell in row]
    return found + [cell for cell in cell_values if isinstance(cell, str)]  # numbers are written by the column's format


def headings(page: AppTest) -> set[str]:
    bold = {text.value.strip("*") for text in page.markdown if re.fullmatch(r"\*\*[^*]+\*\*", text.value)}
    return {each.value for each in page.subheader} | {part.label for part in page.expander} | bold


def plain(text: str) -> str:
    return text.replace("\\", "")


@pytest.mark.parametrize("name", sources.examples())
def test_every_heading_of_a_plan_is_on_the_page_of_one_part(name):
    plan = sources.plan_of_example(name)
    shown: dict[str, set[str]] = {}
    for part in PARTS:
        page = opened(name, part)
        shown[part] = set()
        for tab in tabs_of(page) if part == OPERATIONS else [None]:
            if tab is not None:
                page.button_group(key="tab").set_value(tab).run()
            assert not page.exception and not page.error, (part, tab)
            told = texts(page)
            assert len(" ".join(told)) > 100, (part, tab, "blank")
            wrong = [text for text in told if NO_FIGURE.search(text)]
            assert not wrong, (part, tab, wrong[:3])
            shown[part] |= {plain(heading) for heading in headings(page)}
    for heading in re.findall(r"(?m)^## (.*)$", render(plan, "md")):
        parts = [part for part, found in shown.items() if plain(heading) in found]
        assert len(parts) == 1, (heading, parts)


def tabs_of(page: AppTest) -> list[str]:
    """The tabs of the page, by their names."""
    titles = {Words()(f"operations.{tab}"): tab for tab in TABS}
    return [titles[option] for option in page.button_group(key="tab").options]


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("part", PAGES)
def test_a_part_opens_in_every_language(part, language):
    page = opened("owning", part, language)
    assert not page.exception and not page.error and len(" ".join(texts(page))) > 100


def test_every_section_of_operations_has_one_tab():
    keys = [key for keys in TABS.values() for key in keys]
    assert sorted(keys) == sorted(one.key for one in SECTIONS if one.part == OPERATIONS)


@pytest.mark.parametrize("name", sources.examples())
def test_a_decision_states_cost_odds_and_what_helps(name):
    plan, t = sources.plan_of_example(name), Words()
    odds, span = deciding.odds(plan), deciding.cost_span(plan)
    assert (odds is None) == (plan.document.get("confidence") is None) and deciding.odds_words(plan, t)
    assert deciding.risk(plan) in deciding.RISKS and (odds is None) == (deciding.risk(plan) == deciding.UNKNOWN)
    (*_, (total, _)) = deciding.cost_metrics(plan, t)
    assert total.value and not NO_FIGURE.search(" ".join((total.value, total.help, deciding.helps(plan, t))))
    if span is not None:
        low = plan.totals["cost"] if span.low is None else span.low
        assert low <= plan.totals["cost"] * (1 + 1e-6) and (span.high is None or span.high >= plan.totals["cost"])


def test_a_decision_is_red_where_a_plan_breaks_its_promises_more_often_than_not():
    at = {kept: deciding.Odds(kept, deciding.ASKED, 200, is_promised=False).risk for kept in (0.8, 0.79, 0.5, 0.49)}
    assert at == {0.8: deciding.LOW, 0.79: deciding.MEDIUM, 0.5: deciding.MEDIUM, 0.49: deciding.HIGH}
    assert deciding.Odds(0.93, 0.95, 200).risk == deciding.LOW  # samples differ by as much
    assert deciding.Odds(0.91, 0.95, 200).risk == deciding.MEDIUM
    page = opened("priorities", DECISION)
    assert any(text.value.startswith(":material/error: **High risk.**") for text in page.markdown)


def test_a_decision_alone_is_presented_without_navigation_and_choices():
    page = opened("owning", DECISION)
    assert page.selectbox and page.button(key="present")
    page.button(key="present").click().run()
    assert not page.exception and page.metric and not page.file_uploader and not page.text_input
    page.button(key="present-end").click().run()
    assert page.file_uploader and page.text_input
