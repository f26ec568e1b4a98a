"""The page of a plan link: a plan as it was frozen, without any work of its visitor, until the visitor takes it over."""

import json
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

from planner.dashboard import headline, sources
from planner.dashboard.frozen import links
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work
from planner.dashboard.views import plan as plan_page
from planner.dashboard.workers import bounds
from planner.messages import languages
from planner.report.locale import Words
from tests.planner.dashboard.test_links import files, later

HOME = Path(__file__).resolve().parents[3]
OWNER = store.new_id()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """Keep the links of each test in a folder of its own; whoever starts a process fails."""
    monkeypatch.setenv(store.FOLDER, str(tmp_path))

    def refused(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(bounds, "started", refused)
    return tmp_path / links.HOME


@pytest.fixture
def plan():
    return sources.plan_of_example("quality")


def opened(work: Work | None = None, **query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    if work is not None:
        page.session_state.work = work
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def values(page: AppTest) -> list[str]:
    return [metric.value for metric in page.metric]


def keys(page: AppTest) -> list[str]:
    return [button.key for button in page.button]


def shared(page: AppTest) -> str:
    """Make a link on a page that shows a plan."""
    page.button(key="share-link").click().run()
    assert not page.exception
    query = parse_qs(urlparse(page.code[0].value).query)
    assert set(query) <= {"link", "lang", "currency"}  # nothing by which a workspace is found
    return query["link"][0]


@pytest.mark.parametrize("language", languages())
def test_a_link_shows_the_plan_frozen_and_keeps_nothing_of_the_visit(home, plan, language):
    name = links.make(plan, OWNER, title="A *title*", author="Ann")
    before = files(home)
    page, t = opened(link=name, lang=language), Words(language)
    assert not page.exception and not page.error
    assert [title.value for title in page.header] == ["A \\*title\\*"]
    assert set(values(page)) >= {metric.value for metric in headline.plan_metrics(plan, t)[1:4]}
    assert "Ann" in page.caption[0].value and page.get("vega_lite_chart")
    assert (
        keys(page) == ["fork"] and not page.text_input and not page.file_uploader and "work" not in page.session_state
    )
    assert dict(page.query_params) == {"link": name, **({} if language == "en" else {"lang": language})}
    assert files(home) == before and [each.name for each in home.parent.iterdir()] == [links.HOME]


@pytest.mark.parametrize("over", ["unknown", "expired", "removed", "damaged"])
@pytest.mark.parametrize("language", languages())
def test_a_link_that_is_over_says_so_and_nothing_else(home, plan, monkeypatch, over, language):
    name = links.make(plan, OWNER, title="a secret")
    if over == "unknown":
        name = store.new_id()
    elif over == "expired":
        later(monkeypatch, 91 * 86_400)
    elif over == "removed":
        links.remove(name, OWNER)
    else:
        (home / f"{name}.json.gz").write_bytes(b"")
    page, t = opened(link=name, lang=language), Words(language)
    assert not page.exception and [title.value for title in page.header] == [t("links.dead")]
    (words,) = [each.value for each in page.markdown if "<style>" not in each.value]
    assert words.startswith(t(f"links.dead.{over}", date="|").partition("|")[0])
    assert not (page.metric or page.dataframe or page.button or page.caption or page.selectbox or page.text_input)


def test_what_is_shared_opens_for_others_and_is_theirs_once_they_take_it(plan):
    page = opened(base="quality")
    page.text_input(key="link-author").set_value("Ann").run()
    name = shared(page)
    guest = opened(link=name)
    assert values(guest) == values(page)
    guest.button(key="fork").click().run()
    assert not guest.exception and values(guest) == values(page) and "link" not in guest.query_params
    work = guest.session_state.work
    assert work.scenario == Scenario("quality") and work.browser != page.session_state.work.browser
    assert work.id != page.session_state.work.id
    again = opened(base="quality", id=work.id)
    assert values(again) == values(page)


def test_a_link_of_an_upload_holds_its_spec_alone(plan):
    """Edits and the base that they change stay with the owner."""
    document = {**plan.document["spec"], "name": "before"}
    work = Work(Scenario.of_upload(document).with_edits({"name": plan.document["spec"]["name"]}))
    work.remember(store.new_id())
    work.keep(work.scenario.document(), plan, ())
    name = shared(opened(work))
    found = links.opened(name)
    assert found.record.base == "" and found.record.edits == ()
    guest = opened(link=name)
    guest.button(key="fork").click().run()
    scenario = guest.session_state.work.scenario
    assert scenario.document() == plan.document["spec"] and not scenario.edits


def test_edits_of_an_example_are_those_of_the_fork_too(plan):
    scenario = Scenario("quality").with_edits({"name": "changed"})
    document = json.loads(plan.to_json())
    document["spec"]["name"] = document["name"] = "changed"
    work = Work(scenario)
    work.keep(scenario.document(), type(plan).of(document), ())
    guest = opened(link=shared(opened(work)))
    guest.button(key="fork").click().run()
    assert guest.session_state.work.scenario == scenario


def test_the_owner_finds_links_again_and_removes_them(plan):
    page = opened(base="quality")
    name = shared(page)
    assert f"unlink-{name}" in keys(page)
    later = Work(Scenario("owning"))
    later.remember(page.session_state.work.browser)  # the cookie of the browser
    again = opened(later)
    again.button(key=f"unlink-{name}").click().run()
    assert f"unlink-{name}" not in keys(again) and links.opened(name).over == "removed"
    other = Work(Scenario("owning"))
    other.remember(store.new_id())
    assert not [key for key in keys(opened(other)) if key.startswith("unlink-")]


def test_a_full_store_is_told_where_one_shares(monkeypatch):
    monkeypatch.setattr(links, "MOST_LINKS", 0)
    page = opened(base="quality")
    page.button(key="share-link").click().run()
    assert not page.exception and [error.value for error in page.error] == [Words("en")("links.full")]


def test_a_plan_without_an_answer_offers_no_repair_where_nothing_can_be_solved(home, plan):
    document = json.loads(plan.to_json())
    path, limit = "limits.budget", "100 M USD"
    document |= {"status": "infeasible", "fleet": [], "schedule": [], "workloads": [], "routes": [], "runner_up": []}
    document["objective"]["value"] = None
    document["diagnosis"] = {
        "conflict": [], "conflict_of": "limits", "reach": [], "repair_checked": True,
        "repair": [{"path": path, "from": "1 USD", "to": limit, "words": "more budget"}],
    }  # fmt: skip
    page = opened(link=links.make(type(plan).of(document), OWNER))
    assert not page.exception and path in str(page.table[0].value) and keys(page) == ["fork"]
