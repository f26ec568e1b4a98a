"""The gallery of the examples: a card for each, with the title, the sentence and the bar of its stored plan."""

import re

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from planner.dashboard import headline, sources
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import gallery
from planner.dashboard.views import plan as plan_page
from planner.messages import languages
from planner.report.locale import Words
from planner.report.story import cost_of_kinds
from tests.planner.dashboard.test_page import HOME


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))


def opened(language: str) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    page._page_hash = calc_hash("gallery")
    page.session_state.work = Work(Scenario(sources.MAIN))
    page.session_state.lang = language
    page.session_state[plan_page.BEGUN] = True
    return page.run()


@pytest.mark.parametrize("language", languages())
def test_every_example_has_a_card_with_a_title_and_a_sentence(language, tmp_path):
    page, t = opened(language), Words(language)
    assert not page.exception
    titles = [t.phrase(sources.title_of(sources.example(name)["name"])) for name in sources.examples()]
    assert {title.value for title in page.subheader} == set(titles)
    said = {text.value for text in page.markdown}
    plans = {name: sources.plan_to_list(name) for name in sources.examples()}
    assert {headline.in_short(plan, t) for plan in plans.values() if plan and headline.tells_figures(plan)} <= said
    assert (t("gallery.without_plan") in said) == (None in plans.values())
    assert {button.key for button in page.button} >= {f"open-{name}" for name in sources.examples()}
    assert not (tmp_path / "works").exists()  # to look writes nothing


def test_a_card_opens_its_example():
    page = opened("en")
    page.button(key="open-quality").click().run()
    assert not page.exception and page.session_state.work.scenario == Scenario("quality")


@pytest.mark.parametrize("name", ["owning", "mixed_fleet", "pathway_edge"])
def test_the_parts_of_a_bar_are_the_shares_of_the_systems_in_their_cost(name):
    plan = sources.plan_of_example(name)
    shares = [float(share) for share in re.findall(r"flex:([\d.]+);", gallery.bar(plan, Words("en")))]
    costs = cost_of_kinds(plan)
    systems = {system for (system, _), cost in costs.items() if cost > 0}
    assert sum(shares) == pytest.approx(1.0, abs=1e-3) and len(shares) == len(systems)
    most = max(systems, key=lambda system: sum(cost for (each, _), cost in costs.items() if each == system))
    whole = sum(costs.values())
    assert shares[0] == max(shares) and re.search(re.escape(most), gallery.bar(plan, Words("en")))
    mine = sum(cost for (each, _), cost in costs.items() if each == most)
    assert shares[0] == pytest.approx(mine / whole, abs=1e-3)
