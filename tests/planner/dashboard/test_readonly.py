"""A read-only dashboard: the plans of a folder, verified, and no process whatever a visitor does."""

import gzip
import json
from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest

from planner.cli import main as cli
from planner.dashboard import sources
from planner.dashboard.frozen import shelf
from planner.dashboard.state import store
from planner.dashboard.workers import bounds
from planner.exit_codes import OK, USAGE

HOME = Path(__file__).resolve().parents[3]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a plan, a packed one, a forged one, and files that are none; whoever starts a process fails."""
    owning = sources.plan_of_example("owning").to_json()
    forged = json.loads(owning)
    forged["totals"]["cost"] *= 0.5
    (tmp_path / "owning.json").write_text(owning)
    (tmp_path / "quality.json.gz").write_bytes(gzip.compress(sources.plan_of_example("quality").to_json().encode()))
    (tmp_path / "forged.json").write_text(json.dumps(forged))
    (tmp_path / "spec.json").write_text(json.dumps(sources.example("owning")))
    (tmp_path / "broken.json.gz").write_bytes(b"no plan")
    damaged = bytearray(gzip.compress(b'{"a": 1}' * 200))
    damaged[12] ^= 0x55
    (tmp_path / "damaged.json.gz").write_bytes(damaged)
    monkeypatch.setenv(shelf.READONLY, str(tmp_path))
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))

    def refused(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(bounds, "started", refused)
    return tmp_path


def opened(**query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    for key, value in query.items():
        page.query_params[key] = value
    return page.run()


def test_the_gallery_opens_each_plan_which_is_verified_and_cannot_be_changed(folder):
    page = opened()
    assert not page.exception and not page.error
    titles = {title.value for title in page.subheader}
    assert (
        len(titles) == 2 and sources.plan_of_example("quality")["name"] in titles
    )  # the forged one has the name of its model
    page.button(key="open-quality").click().run()
    assert not page.exception and page.metric and page.get("vega_lite_chart")
    assert page.query_params["plan"] in ("quality", ["quality"])
    assert not page.text_input and not page.file_uploader
    assert not [button for button in page.button if button.key in ("solve", "share-link", "repair", "more-time")]
    page.button(key="gallery").click().run()
    assert "plan" not in page.query_params and len(page.subheader) == 3
    assert not (folder / "works").exists()  # nothing is kept of a visit


def test_a_forged_plan_is_red_and_an_unknown_name_says_so_and_nothing_else(folder):
    page = opened(plan="forged")
    assert not page.exception and page.error and not page.success
    for name in ("nothing", "../forged", "spec", "broken"):
        page = opened(plan=name)
        assert [title.value for title in page.header] == ["There is no plan of this name here"]
        assert not page.exception and not page.metric and not page.dataframe


def test_a_changed_file_is_verified_anew(folder):
    assert shelf.opened("owning").findings == ()
    (folder / "owning.json").write_text((folder / "forged.json").read_text())
    assert shelf.opened("owning").findings


def test_the_command_takes_a_folder_and_names_one_that_is_none(tmp_path, monkeypatch, capsys):
    streamlit = pytest.importorskip("streamlit.web.cli")
    monkeypatch.setattr(streamlit, "main", lambda *_, **__: None)
    monkeypatch.setenv(shelf.READONLY, "")
    assert cli.main(["dashboard", "--readonly", str(tmp_path / "none")]) == USAGE
    assert "no folder" in capsys.readouterr().err and shelf.folder() is None
    assert cli.main(["dashboard", "--readonly", str(tmp_path)]) == OK
    assert shelf.folder() == tmp_path.resolve()
