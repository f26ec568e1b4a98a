"""A scenario as an address, a file and a command: what comes back is what went out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.cli.main import main
from planner.dashboard import sources
from planner.dashboard.state import store
from planner.dashboard.state.scenario import Scenario
from planner.dashboard.state.session import Work, opened
from planner.errors import SpecError
from planner.spec.document import read_document

HOME = Path(planner.__file__).resolve().parents[1]
TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
POWER = "sites[0].power"

paths = st.sampled_from([POWER, "sites[1].power", "limits.budget", "solver.gap", "workloads[0].slo.ttft.p95", "name"])
values = st.one_of(
    st.none(), st.integers(-9, 9), st.floats(allow_nan=False, allow_infinity=False), st.text(max_size=12), st.booleans()
)


@given(st.dictionaries(paths, values, max_size=4))
def test_an_address_and_a_file_hold_the_scenario(edits):
    scenario = Scenario(sources.MAIN).with_edits(edits)
    address = scenario.address()
    assert Scenario.from_address(address["base"][0], address.get("set", [])).document() == scenario.document()
    again = Scenario.from_json(json.loads(json.dumps(scenario.to_json())))
    assert again == scenario and again.document() == scenario.document() and again.key == scenario.key


@given(st.lists(st.tuples(paths, values), max_size=6))
def test_edits_one_after_the_other_come_to_the_same_spec(edits):
    step = Scenario(sources.MAIN)
    for path, value in edits:
        step = step.with_edits({path: value})
    assert step.document() == Scenario(sources.MAIN).with_edits(dict(edits)).document()


def test_an_edit_back_to_the_base_is_none():
    scenario = Scenario.of_upload(TINY).with_edits({POWER: "3 MW"})
    assert [row["path"] for row in scenario.changes()] == [POWER]
    assert scenario.with_edits({POWER: TINY["sites"][0]["power"]}).edits == ()


def test_an_edit_of_a_block_replaces_the_edits_inside_it():
    scenario = Scenario.of_upload(TINY).with_edits({POWER: "3 MW"}).with_edits({"sites": TINY["sites"] * 2})
    assert [path for path, _ in scenario.edits] == ["sites"]
    inside = scenario.with_edits({POWER: TINY["sites"][0]["power"]})  # no change of the base, but one of the block
    assert inside.document()["sites"] == TINY["sites"] * 2


def test_a_place_that_is_not_there_is_told():
    with pytest.raises(SpecError, match=r"sites\[9\]"):
        Scenario.of_upload(TINY).with_edits({"sites[9].power": "1 MW"}).document()
    for base, texts in (("nothing", []), ("quality", ["sites[9].power=1 MW"]), ("quality", ["nonsense"])):
        with pytest.raises(SpecError):
            Scenario.from_address(base, texts)


def test_the_command_and_the_python_give_the_spec_of_the_scenario(tmp_path, monkeypatch, capsys):
    """Both are run as they stand, with `check` for `plan`, from a folder that holds the spec."""
    (tmp_path / "spec.json").write_text(json.dumps(TINY))
    monkeypatch.chdir(tmp_path)
    scenario = Scenario.of_upload(TINY).with_edits({POWER: "3 MW", "name": "it's"})
    line = scenario.command().replace("\\\n", " ").replace("flopwatt plan", f"{sys.executable} -m planner.cli check")
    done = subprocess.run(line, shell=True, capture_output=True, text=True, env={"PYTHONPATH": str(HOME)})
    assert done.stdout.startswith("valid: 1 workloads"), done.stderr
    seen = []
    monkeypatch.setattr(planner, "solve", seen.append)
    exec(scenario.python(), {})
    assert seen == [scenario.document()]
    assert main(["check", "spec.json", "--set", f"{POWER}=3 MB"]) == 3  # the options are read
    capsys.readouterr()


# -- kept between visits -----------------------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path))
    return tmp_path


def test_work_comes_back_under_a_new_id_as_it_was_left(home):
    work = Work(Scenario(sources.MAIN))
    work.turn_to(Scenario.of_upload(TINY).with_edits({POWER: "3 MW"}))
    work.choose("quality")
    again = opened({"id": [work.id], "base": ["quality"]})
    assert again.scenario == work.scenario and again.by_base == work.by_base and again.id != work.id
    assert opened({"id": [again.id], "base": ["quality"]}).by_base == work.by_base  # the copy is kept too
    upload = next(scenario for scenario in again.by_base.values() if scenario.upload)
    assert upload.document() == Scenario.of_upload(TINY).with_edits({POWER: "3 MW"}).document()
    other = opened({"id": [work.id], "base": [sources.MAIN], "set": ["limits.budget=9M USD"]})
    assert other.scenario.document()["limits"]["budget"] == "9M USD" and "quality" in other.by_base


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 100, "0123456789abcdef"])
def test_an_id_that_names_nothing_opens_the_main_example(home, name):
    assert store.load(name) is None
    assert opened({"id": [name]}).scenario == Scenario(sources.MAIN)


def test_the_oldest_works_go_and_a_folder_that_cannot_be_written_is_told(home, monkeypatch):
    monkeypatch.setattr(store, "MOST_WORKS", 3)
    names = [store.new_id() for _ in range(5)]
    assert all(store.save(name, {}) for name in names) and len(list(home.iterdir())) == 3
    (home / "file").write_text("")
    monkeypatch.setenv(store.FOLDER, str(home / "file"))
    assert not store.save(names[0], {})


def test_the_main_example_is_read_once_as_it_is():
    assert Scenario(sources.MAIN).document() == read_document(sources.examples()[sources.MAIN].read_bytes())
