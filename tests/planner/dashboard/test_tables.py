"""Tables of a spec: what their rows show, what becomes of the spec when rows change, come and go, and where problems are told."""

import copy
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard import sources
from planner.dashboard.editor.columns import TABLES
from planner.dashboard.editor.draft import Draft, change_of
from planner.dashboard.editor.tables import Change, Place, edits_of, place_of, rows_of
from planner.dashboard.state.scenario import Scenario

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
BY_NAME = {table.name: table for table in TABLES}
MAIN = sources.example(sources.MAIN)


def edited(document: dict, name: str, change: Change) -> dict:
    """The spec after a change of one table."""
    return Scenario.of_upload(document).with_edits(edits_of(BY_NAME[name], document, change)).document()


@pytest.mark.parametrize("name", sources.examples())
def test_a_cell_typed_again_changes_nothing(name):
    document = sources.example(name)
    for table in TABLES:
        rows = rows_of(table, document)
        assert not table.path or table.inner or table.kind or len(rows) == len(document.get(table.path) or [])
        again = Change({i: dict(row.cells) for i, row in enumerate(rows)})
        assert edits_of(table, document, again) == {}, table.name


def test_cells_go_where_they_belong():
    change = Change(
        {0: {"demand.requests_per_s": "60", "slo.tpot.p95": "", "architecture": "Qwen3-32B", "slo.e2e.p95": "20 s"}}
    )
    before = copy.deepcopy(TINY)
    assert edits_of(BY_NAME["serving"], TINY, change) == {
        "workloads[0].demand.requests_per_s": 60,
        "workloads[0].slo.tpot": None,  # a block without values goes as a whole
        "workloads[0].architecture": "Qwen3-32B",
        "workloads[0].slo.e2e.p95": "20 s",
    }
    assert before == TINY
    limits = edited(TINY, "limits", Change({0: {"limits.budget": "3M USD", "limits.export_control": False}}))
    assert limits["limits"] == {"budget": "3M USD", "export_control": False}
    assert edited(limits, "limits", Change({0: {"limits.budget": None, "limits.export_control": None}})) == TINY
    origins = edited(TINY, "serving", Change({0: {"origins": "us-texas 0.6, us-oregon 40 %"}}))
    assert [tuple(each.values()) for each in origins["workloads"][0]["origins"]] == [
        ("us-texas", 0.6),
        ("us-oregon", 0.4),
    ]


def test_rows_come_and_go():
    names = [site["region"] for site in MAIN["sites"]]
    after = edited(MAIN, "sites", Change({2: {"power": "7 MW"}}, [{"region": "us-ohio", "power": "1 MW"}], [1]))
    assert [site["region"] for site in after["sites"]] == [names[0], names[2], names[3], "us-ohio"]
    assert after["sites"][1] == {**MAIN["sites"][2], "power": "7 MW"}
    jobs = edited(
        MAIN,
        "training",
        Change(added=[{"name": "second", "architecture": "Qwen3-32B", "tokens": "1T", "deadline": "60 d"}]),
    )
    assert jobs["workloads"][:-1] == MAIN["workloads"] and jobs["workloads"][-1]["kind"] == "training"
    sources.resolved(jobs)
    without = edited(MAIN, "serving", Change(removed=[0]))
    assert without["workloads"] == MAIN["workloads"][1:]
    assert "offers" not in edited(MAIN, "offers", Change(removed=range(len(MAIN["offers"]))))


def test_contracts_stand_at_their_sites_and_move_between_them():
    new = {"site": "us-texas", "name": "sun", "capacity": "1 MW", "price": "0.03 USD/kWh", "profile": "solar"}
    one = edited(MAIN, "contracts", Change(added=[new]))
    ppa = {key: value for key, value in new.items() if key != "site"}
    assert one["sites"][1]["electricity"] == {"ppa": [ppa]}
    sources.resolved(one)
    moved = edited(one, "contracts", Change({0: {"site": "us-oregon", "capacity": "2 MW"}}))
    assert moved["sites"][3]["electricity"]["ppa"] == [{**ppa, "capacity": "2 MW"}]
    assert not moved["sites"][1]["electricity"].get("ppa")
    sources.resolved(moved)


def test_every_block_of_a_list_has_a_table():
    """Each list of the spec and each kind of workload that an example states is on the page, row by row."""
    shown = {
        table.name
        for name in sources.examples()
        for table in TABLES
        if table.path and rows_of(table, sources.example(name))
    }
    assert {"sessions", "reinforcement", "phases", "lines"} <= shown
    kinds = {workload["kind"] for name in sources.examples() for workload in sources.example(name)["workloads"]}
    assert kinds <= {table.kind for table in TABLES}


def test_cells_of_every_new_table_go_where_they_belong():
    owned = {"system": "DGX H100", "region": "us-texas", "count": "4", "age": "2 years", "movable": False}
    rented = {"system": "DGX H100", "region": "us-texas", "count": "2", "price": "90 USD/h", "until": "1 year"}
    line = {"kind": "dedicated-line", "between": ["us-texas", "us-oregon"], "units": "2"}
    for name, cells, stated in (
        ("owned", owned, {**owned, "count": 4}),
        ("rented", rented, {**rented, "count": 2}),
        ("lines", line, {**line, "units": 2}),
        ("phases", {"name": "first", "start": "0 s"}, {"name": "first", "start": "0 s"}),
    ):
        assert edited(TINY, name, Change(added=[cells]))[name] == [stated]
    calls = edited(TINY, "sessions", Change({0: {"session.calls": "12", "slo.task.p95": "5 min"}}))
    assert calls["workloads"][0]["session"] == {"calls": 12} and calls["workloads"][0]["slo"]["task"] == {
        "p95": "5 min"
    }
    job = edited(TINY, "reinforcement", Change(added=[{"name": "grpo", "prompts": "8", "lengths.limit": "900"}]))
    assert job["workloads"][1] == {"kind": "reinforcement", "name": "grpo", "prompts": 8, "lengths": {"limit": 900}}
    by_phase = edited(TINY, "offers", Change({0: {"supply_by_phase": '{"first": 3}'}}))
    assert by_phase["offers"][0]["supply_by_phase"] == {"first": 3}


def test_every_problem_is_told_at_its_cell():
    document = edited(MAIN, "serving", Change({1: {"slo.ttft.p95": "500 MB", "lengths.input": "many"}}))
    document = edited(document, "sites", Change({2: {"power": "-3 MW"}}, [{}]))
    document = edited(document, "horizon", Change({0: {"horizon.years": "99"}}))
    draft = Draft.of(Scenario.of_upload(document))
    places = {problem.path: place_of(problem.path, document, TABLES) for problem in draft.problems}
    assert places == {
        "workloads[1].slo.ttft.p95": Place("serving", 1, "slo.ttft.p95"),
        "workloads[1].lengths.input": Place("serving", 1, "lengths.input"),
        "sites[2].power": Place("sites", 2, "power"),
        "sites[4].region": Place("sites", 4, "region"),
        "horizon.years": Place("horizon", 0, "horizon.years"),
    }
    assert place_of("workloads[2].tokens", document, TABLES) == Place("training", 0, "tokens")
    assert place_of("workloads[1].demand", document, TABLES) == Place("serving", 1, "demand.requests_per_s")
    assert place_of("sites[0].electricity.battery.energy", document, TABLES) == Place(
        "electricity", 0, "electricity.battery.energy"
    )
    assert place_of("workloads", document, TABLES) == Place("serving")
    assert place_of("solver.gap", document, TABLES) is None


CELLS = st.one_of(st.none(), st.booleans(), st.text(max_size=8), st.lists(st.text(max_size=4), max_size=2))


@given(st.data())
def test_whatever_is_typed_is_a_spec_or_has_problems(data):
    table = data.draw(st.sampled_from(TABLES))
    keys = st.sampled_from([column.key for column in table.columns])
    cells, count = st.dictionaries(keys, CELLS, max_size=3), len(rows_of(table, MAIN))
    change = Change(
        data.draw(st.dictionaries(st.integers(0, max(count - 1, 0)), cells, max_size=2)),
        data.draw(st.lists(cells, max_size=2)) if table.grows else [],
        data.draw(st.lists(st.integers(0, max(count - 1, 0)), unique=True, max_size=2)) if table.grows else [],
    )
    draft = Draft.of(Scenario.of_upload(MAIN)).changed({table.name: change})
    assert draft.scenario.document() is not None
    if not draft.problems:
        sources.resolved(draft.scenario.document())
    assert change_of(
        {"edited_rows": change.cells, "added_rows": change.added, "deleted_rows": change.removed}
    ) == Change(dict(change.cells), tuple(change.added), tuple(change.removed))
