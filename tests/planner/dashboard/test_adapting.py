"""The page of a plan that is adapted later: what to sign, the chips needed by date as a chart, and rules of later orders."""

import json
import pathlib

import pytest

pytest.importorskip("streamlit")
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

import planner
from planner.dashboard.state.session import Scenario, Work
from planner.dashboard.views import plan as plan_page
from planner.messages import languages
from planner.report.locale import Words
from planner.report.outputs import adapt
from tests.planner.report.outputs.test_adapt import adapting

HOME = pathlib.Path(__file__).resolve().parents[3]
TINY = json.loads((pathlib.Path(__file__).parent / "tiny.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def plain():
    return planner.solve(TINY)


def opened(plan, language: str) -> AppTest:
    work = Work(Scenario.of_upload(TINY))
    work.keep(TINY, plan, ())
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    page.query_params["lang"] = language
    page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True
    page._page_hash = calc_hash("reasons")
    return page.run()


@pytest.mark.parametrize("language", languages())
def test_the_page_draws_needs_and_lists_rules(plain, language):
    t = Words(language)
    page, before = opened(adapting(plain), language), opened(plain, language)
    assert not page.exception
    heading = t.phrase(adapt.NEEDS)
    assert heading in [each.value for each in page.subheader] and heading not in [
        each.value for each in before.subheader
    ]
    assert len(page.get("vega_lite_chart")) == len(before.get("vega_lite_chart")) + 1
    rules = t("heading.triggers")
    assert rules in [each.value for each in page.subheader]
    assert [table.value for table in page.dataframe if "DGX H100" in table.value.to_string() and len(table.value) == 1]
    assert any(t.phrase(adapt.QUESTION) in text.value for text in page.markdown)
