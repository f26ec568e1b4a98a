"""The workspace of a browser: its works and drafts of all bases, found again by a secret that nothing for others contains."""

import json
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

from planner.dashboard import page as dashboard_page
from planner.dashboard import sources
from planner.dashboard.frozen import links
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work, opened
from planner.dashboard.state.workspace import MOST_WORKS, Workspace, _last, is_kept, list_of
from planner.dashboard.views import plan as plan_page
from planner.messages import languages
from planner.report.locale import Words

HOME = Path(__file__).resolve().parents[3]
TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
ANN, BOB = store.new_id(), store.new_id()
EDIT = {"sites[0].power": "3 MW"}


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path))
    return tmp_path


def visit(secret: str, **query: str) -> Work:
    work = opened({key: [value] for key, value in query.items()})
    work.remember(secret)
    return work


def test_a_visit_finds_drafts_saved_scenarios_and_uploads_of_all_bases():
    work = visit(ANN)
    work.turn_to(Scenario.of_upload(TINY).with_edits(EDIT))
    work.save_as("mine")
    work.choose("quality")
    work.turn_to(work.scenario.with_edits(EDIT))
    work.save_as("other")
    work.choose("owning")
    work.turn_to(work.scenario.with_edits({"name": "draft"}))  # neither saved nor solved
    again = visit(ANN)
    assert again.workspace.last == "owning" and {title for _, title in again.uploads.values()} == {TINY["name"]}
    for origin, scenario in work.by_base.items():
        if origin != sources.MAIN:
            again.choose(origin)
            assert again.scenario == scenario and again.scenario.document() == scenario.document()
    assert {each.name for each in again.saved} == {"mine", "other"}
    assert not visit(BOB).workspace.kept and not visit(BOB).uploads


def test_to_look_and_to_change_a_figure_keeps_nothing_until_there_is_something_to_come_back_to(home):
    work = visit(ANN)
    work.choose("quality")
    work.turn_to(work.scenario.with_edits(EDIT))
    assert not list(home.iterdir()) and not work.workspace.kept
    work.save_as("first")
    assert visit(ANN).workspace.drafts["quality"] == tuple(EDIT.items())


def test_two_windows_of_one_workspace_lose_nothing():
    one, other = visit(ANN), visit(ANN)
    one.choose("quality")
    one.save_as("in one")
    other.choose("owning")
    other.save_as("in the other")
    one.workspace.rename("Ann's plans")
    other.turn_to(other.scenario.with_edits({"name": "changed"}))
    again = Workspace.of(ANN)
    assert set(again.works) == {"quality", "owning"} and again.name == "Ann's plans"
    assert again.drafts["owning"] == (("name", "changed"),)


def test_a_workspace_holds_no_more_works_than_its_bound():
    space = Workspace(ANN)
    for i in range(MOST_WORKS + 5):
        space.list_work(Scenario(f"base{i}"), store.new_id())
    assert len(Workspace.of(ANN).works) == MOST_WORKS and f"base{MOST_WORKS + 4}" in Workspace.of(ANN).works


def test_a_draft_that_fits_its_base_no_more_is_left(home):
    work = visit(ANN)
    work.choose("quality")
    work.save_as("first")
    work.workspace.drafts["quality"] = (("sites[9].power", "3 MW"),)
    work.by_base.pop("quality")
    work.choose("quality")
    assert work.scenario == Scenario("quality") and not work.problems


def test_a_list_of_an_earlier_release_is_a_workspace():
    name = store.new_id()
    assert store.save(list_of(ANN), {"uploads": {"upload-x": [name, "a title"]}})
    space = Workspace.of(ANN)
    assert space.uploads == {"upload-x": (name, "a title")} and space.kept and not space.works and not space.name


@pytest.mark.parametrize("secret", ["", "..", "short", "a" * 100, "new"])
def test_a_secret_that_nobody_has_opens_no_workspace(secret):
    assert not is_kept(store.new_id() if secret == "new" else secret)


def test_an_id_of_a_work_is_no_secret_of_a_workspace():
    work = visit(ANN)
    work.choose("quality")
    work.save_as("first")
    assert not is_kept(work.id) and visit(work.id).workspace.uploads == {}


# -- on the page -------------------------------------------------------------------------------------------------------


def page_of(**query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def cookie_is(monkeypatch, secret: str) -> None:
    monkeypatch.setattr(dashboard_page, "_cookie", lambda: secret)


def test_a_visit_without_an_address_goes_on_where_the_last_one_ended(monkeypatch):
    work = visit(ANN)
    work.choose("quality")
    work.save_as("first")
    work.turn_to(work.scenario.with_edits({"name": "draft"}))
    cookie_is(monkeypatch, ANN)
    page = page_of()
    assert not page.exception and page.session_state.work.scenario == work.scenario
    assert page_of(base="owning").session_state.work.scenario == Scenario("owning")
    cookie_is(monkeypatch, "")
    assert page_of().session_state.work.scenario == Scenario(sources.MAIN)


@pytest.mark.parametrize("language", languages())
def test_a_workspace_is_named_and_opened_in_another_browser_by_its_private_address(monkeypatch, language):
    cookie_is(monkeypatch, ANN)
    t = Words(language)
    page = page_of(base="quality", lang=language)
    assert t("workspace.empty") in [text.value for text in page.caption]
    page.text_input(key="workspace-name-").set_value("Ann's plans").run()
    assert not page.exception and Workspace.of(ANN).name == "Ann's plans"
    private = [code.value for code in page.code if "workspace=" in code.value]
    assert len(private) == 1 and private[0].endswith(f"?workspace={ANN}")
    cookie_is(monkeypatch, "")
    other = page_of(workspace=ANN)
    assert not other.exception and other.session_state.work.browser == ANN and "workspace" not in other.query_params
    assert other.session_state.addressed  # no cookie is set by the address of somebody else
    dead = page_of(workspace=BOB)
    assert [title.value for title in dead.header] == [Words("en")("link.dead")] and not dead.metric


def test_what_is_for_others_holds_no_secret_of_the_workspace(monkeypatch):
    cookie_is(monkeypatch, ANN)
    page = page_of(base="quality")
    page.button(key="share-link").click().run()
    (link,) = [code.value for code in page.code if "link=" in code.value]
    assert ANN not in link and page.session_state.work.id not in link
    assert Workspace.of(ANN).kept and [each.owner for each in links.of_owner(ANN)] == [links.owner_of(ANN)]
    assert ANN not in str(dict(page.query_params))


def test_the_entry_at_hand_is_never_given_up_for_older_ones():
    entries = {str(i): i for i in range(5)}
    kept = dict(list(_last(entries, "0", 9).items())[-3:])
    assert kept == {"3": 3, "4": 4, "0": 9}
