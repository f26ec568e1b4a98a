"""A scenario as an address, a file and a command: what comes back is what went out."""

import gzip
import json
import os
import subprocess
import sys
import time
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
    assert Scenario(address["base"][0]).with_texts(address.get("set", [])).document() == scenario.document()
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
            Scenario(base).with_texts(texts)


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


UPLOADED = Scenario.of_upload(TINY).with_edits({POWER: "3 MW"})
LONG = {"workloads[0].name": "x" * 2000}


def query_of(work: Work) -> dict[str, list[str]]:
    """The address of the page, as the browser holds it."""
    return {**work.scenario.address(), "id": [work.id]}


def files(home) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in home.iterdir()}


def named(work: Work) -> list[str]:
    return [scenario.name for scenario in work.saved]


@pytest.fixture(scope="module")
def plan():
    return planner.solve(UPLOADED.document())


@pytest.mark.parametrize("scenario", [UPLOADED, UPLOADED.with_edits(LONG), Scenario("quality").with_edits(LONG)])
def test_an_address_opens_the_scenario_again_under_its_id(home, scenario):
    work = Work(Scenario(sources.MAIN))
    work.turn_to(scenario)
    again = opened(query_of(work))
    assert again.scenario == scenario and again.scenario.document() == scenario.document() and again.id == work.id
    later = again.scenario.with_edits({"name": "later"})  # whatever is edited after
    again.turn_to(later)
    assert opened(query_of(work)).scenario == scenario and opened(query_of(again)).scenario == later


def test_opening_addresses_writes_nothing_and_removes_nothing(home):
    work = Work(Scenario(sources.MAIN))
    work.turn_to(UPLOADED)
    link = work.share()
    before = files(home)
    assert len(before) == 2
    for query in (query_of(work), link, {"base": ["quality"]}, {"base": [UPLOADED.base], "id": [store.new_id()]}):
        for _ in range(30):
            visitor = opened(query)
            visitor.choose("quality")
            visitor.turn_to(visitor.scenario.with_edits({"name": "short"}))  # which an address holds
    assert files(home) == before


def test_an_address_opens_one_base_and_nothing_of_the_others(home, plan):
    owner = Work(Scenario(sources.MAIN))
    owner.turn_to(UPLOADED)
    owner.save_as("a secret")
    owner.keep(UPLOADED.document(), plan, ())
    owner.turn_to(Scenario.of_upload({**TINY, "name": "another"}))
    owner.choose("quality")
    owner.save_as("for all")
    for query in (query_of(owner), owner.share(), {"base": ["quality"], "id": [owner._ids[UPLOADED.origin]]}):
        visitor = opened(query)
        assert visitor.scenario == Scenario("quality") and not visitor.plans
        assert not [scenario for scenario in visitor.by_base.values() if scenario.upload is not None]
        assert "a secret" not in named(visitor)
        visitor.save_as("of a visitor")
    assert named(opened({"base": ["upload"], "id": [owner._ids[UPLOADED.origin]]})) == ["a secret"]


def test_a_link_for_others_holds_a_scenario_with_its_plan_and_is_never_written(home, plan):
    owner = Work(Scenario(sources.MAIN))
    owner.turn_to(UPLOADED)
    owner.keep(UPLOADED.document(), plan, ())
    owner.save_as("a secret")
    link = owner.share()
    assert link["id"] != [owner.id] and owner.share() == link  # the same as long as nothing changes
    before = files(home)
    guest = opened(link)
    assert guest.shown().plan.document == plan.document and not guest.saved and guest.id == link["id"][0]
    guest.save_as("of the guest")
    assert guest.id not in (owner.id, link["id"][0])  # a copy
    assert files(home).items() > before.items()
    again = opened(query_of(guest))
    assert named(again) == ["of the guest"] and again.shown().plan.document == plan.document
    assert named(opened(link)) == [] and named(opened(query_of(owner))) == ["a secret"]
    assert "id" not in Work(Scenario("quality").with_edits({POWER: "3 MW"})).share()  # the address holds it all


def test_what_is_saved_after_a_bookmark_was_opened_is_there_at_the_next_visit(home):
    bookmark = query_of(opened({"base": ["owning"]}))
    for name in ("first", "second"):
        visit = opened(bookmark)
        visit.turn_to(visit.scenario.with_edits({"name": name}))
        visit.save_as(name)
        assert visit.id == bookmark["id"][0]
    one, other = opened(bookmark), opened(bookmark)  # two windows
    assert named(one) == ["first", "second"] and one.scenario == Scenario("owning")
    one.save_as("third")
    other.remove(other.saved[0])
    other.save_as("fourth")
    assert named(opened(bookmark)) == ["second", "third", "fourth"]


def test_a_base_that_was_changed_by_hand_in_an_address_begins_a_work_of_its_own(home):
    bookmark = query_of(opened({"base": ["owning"]}))
    other = opened({**bookmark, "base": ["quality"]})  # before anything was kept
    work = opened(bookmark)
    work.save_as("mine")
    other.save_as("other")
    assert other.id != work.id and named(opened(query_of(work))) == ["mine"]
    assert named(opened(query_of(other))) == ["other"]


def test_a_browser_finds_its_uploads_again_and_no_other_does(home):
    work = Work(Scenario(sources.MAIN))
    work.remember("of this browser")
    work.turn_to(UPLOADED)
    work.choose("quality")
    again, other = opened(query_of(work)), opened(query_of(work))
    again.remember("of this browser")
    other.remember("of another browser")
    assert {title for _, title in again.uploads.values()} == {TINY["name"]} and not other.uploads
    again.choose(UPLOADED.origin)
    assert again.scenario == UPLOADED and again.id == work._ids[UPLOADED.origin]  # as it was left
    (listed,) = set(files(home)) - {f"{again.id}.json.gz"}
    assert opened({"id": [listed.partition(".")[0]]}).scenario.problems  # no work
    visitor = opened(Work(UPLOADED).share())  # the work belongs to somebody else
    visitor.remember("of a third browser")
    visitor.save_as("mine")  # a copy, from now on listed
    assert visitor.uploads[UPLOADED.origin][0] == visitor.id


@pytest.mark.parametrize(
    "query",
    [
        {"base": ["upload"], "id": ["doesnotexist12345678"]},
        {"base": ["upload"], "id": ["../../etc/passwd"]},
        {"base": ["upload"]},
        {"id": ["0123456789abcdef"]},
        {"base": ["no_example"]},
        {"base": ["quality"], "set": ["sites[7].power=3 MW"]},
        {"base": ["quality"], "edits": ["0123456789ab"], "id": ["0123456789abcdef"]},
    ],
)
def test_an_address_that_leads_nowhere_shows_no_other_plan(home, query):
    work = opened(query)
    assert work.scenario.problems and work.scenario != Scenario(sources.MAIN)
    with pytest.raises(SpecError):
        work.shown()
    work.choose("quality")  # and on from there
    assert work.scenario == Scenario("quality") and not work.problems


def test_an_address_without_any_name_opens_the_main_example(home):
    assert opened({}).scenario == opened({"lang": ["zh"]}).scenario == Scenario(sources.MAIN)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "a" * 100, "0123456789abcdef"])
def test_a_name_that_is_no_id_or_names_nothing_reads_nothing(home, name):
    assert store.load(name) is None and (store.is_id(name) or not store.save(name, {}))


def test_works_go_by_bytes_and_age_those_looked_at_longest_ago_first(home, monkeypatch):
    names = [store.new_id() for _ in range(6)]
    long_ago = time.time() - 1000

    def date(name: str, ago_s: float) -> None:
        os.utime(home / f"{name}.json.gz", (long_ago - ago_s,) * 2)

    for i, name in enumerate(names):
        assert store.save(name, {"figures": [i] * 10})
        date(name, 100.0 * i)
    assert store.load(names[-1]) is not None  # looked at: now the newest
    size = max(path.stat().st_size for path in home.iterdir())
    monkeypatch.setattr(store, "MOST_FOLDER_BYTES", 4 * size)
    new = store.new_id()
    assert store.save(new, {})
    assert {path.name.partition(".")[0] for path in home.iterdir()} == {new, names[-1], names[0], names[1]}
    monkeypatch.setattr(store, "MOST_AGE_S", 1050.0)  # since it was looked at
    assert store.save(new, {})
    assert {path.name.partition(".")[0] for path in home.iterdir()} == {new, names[-1], names[0]}


def test_a_folder_that_cannot_be_written_is_told(home, monkeypatch):
    (home / "file").write_text("")
    monkeypatch.setenv(store.FOLDER, str(home / "file"))
    assert not store.save(store.new_id(), {})
    work = Work(Scenario(sources.MAIN))
    work.turn_to(UPLOADED)
    assert not work.kept and work.scenario == UPLOADED


def test_the_main_example_is_read_once_as_it_is():
    assert Scenario(sources.MAIN).document() == read_document(sources.examples()[sources.MAIN].read_bytes())


def test_a_work_of_version_1_opens_with_what_it_held_of_one_base():
    """One file held several bases then; an address opens that of the scenario at hand, and nothing of the others."""
    upload = Scenario.of_upload(TINY)
    changed, other = upload.with_edits({POWER: "3 MW"}), Scenario(sources.MAIN).with_edits({POWER: "4 MW"})
    name = store.new_id()
    work = {"scenario": changed.to_json(), "by_base": [changed.to_json(), other.to_json()], "plans": []}
    work["saved"] = [dict(each.to_json(), name=title) for each, title in ((changed, "mine"), (other, "theirs"))]
    store.folder().mkdir(parents=True, exist_ok=True)
    packed = gzip.compress(json.dumps({**work, "version": 1}).encode())
    (store.folder() / f"{name}.json.gz").write_bytes(packed)
    found = opened({"id": [name], "base": ["upload"], "set": [f"{POWER}=3 MW"]})
    assert not found.scenario.problems and found.scenario.document() == changed.document()
    assert [each.name for each in found.saved] == ["mine"]
    assert (store.folder() / f"{name}.json.gz").read_bytes() == packed


def test_what_only_looks_like_a_work_of_version_1_is_none():
    name = store.new_id()
    store.folder().mkdir(parents=True, exist_ok=True)
    (store.folder() / f"{name}.json.gz").write_bytes(gzip.compress(b'{"version": 1, "scenario": 3}'))
    assert store.load(name) is None


def test_a_damaged_file_is_no_work():
    """Each byte of a work, damaged in turn: the address then leads to nothing, or to the work where nothing is read of that byte."""
    name = store.new_id()
    assert store.save(name, {"root": Scenario(sources.MAIN).to_json(), "edits": {}, "saved": [], "plans": []})
    file = store.folder() / f"{name}.json.gz"
    whole, work = file.read_bytes(), store.load(name)
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        assert store.load(name) in (None, work)
        file.write_bytes(whole[:place])
        assert store.load(name) is None


def test_a_number_is_a_key_of_an_object_and_a_position_of_a_list():
    scenario = opened({"base": [sources.MAIN], "set": ["0[2].how=spot", "sites[0].name=x"]}).scenario
    document = scenario.document()
    assert document["0"] == {"2": {"how": "spot"}} and document["sites"][0]["name"] == "x"
