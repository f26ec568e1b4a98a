"""The independent solves of a study come to the same on any engine: in one process, in several, and on a Dask cluster without our files."""

import json
import os
import signal
import threading
from functools import partial
from pathlib import Path

import pytest

import planner
from planner.cli.main import main
from planner.errors import BrokenPlanError, Issue, SpecError
from planner.exit_codes import INVALID, OK
from planner.studies.engines.calls import _MADE, Call, files_of, solved_on, unpacked
from planner.studies.engines.local import LocalEngine
from planner.studies.sensitivity import NOT_TRIED
from tests.conftest import long_run

ENGINES = [LocalEngine(1), pytest.param(LocalEngine(2), marks=long_run)]


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", processes=False
    ) as cluster:
        from planner.studies.engines.dask import DaskEngine

        yield DaskEngine(cluster.scheduler_address)


def squares(added, overlays):
    """Make what adds to a square the number of files in the overlays; 13 is refused."""
    files = sum(len(list(Path(folder).glob("*.json"))) for folder in overlays)

    def square(item):
        if item == 13:
            raise SpecError([Issue("item", "unlucky")])
        return item * item + added + files

    return square


@pytest.fixture
def overlays(tmp_path):
    for name, count in (("one", 2), ("other", 1)):
        (tmp_path / name).mkdir()
        for number in range(count):
            (tmp_path / name / f"{number}.json").write_text("{}")
    return [tmp_path / "one", tmp_path / "other"]


@pytest.mark.parametrize("engine", ENGINES)
def test_each_item_is_solved_once_with_what_is_shared(engine, overlays):
    found = dict(solved_on(engine, partial(squares, 10), [1, 2, 3], overlays))
    assert found == {0: 14, 1: 17, 2: 22}


def test_overlays_reach_a_cluster_by_content(cluster, overlays):
    assert dict(solved_on(cluster, partial(squares, 10), [1, 2, 3], overlays)) == {0: 14, 1: 17, 2: 22}


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_call_raises_is_raised_where_the_study_runs(engine):
    with pytest.raises(SpecError, match="unlucky"):
        list(solved_on(engine, partial(squares, 0), [13, 13], ()))


def test_what_a_call_on_a_cluster_raises_is_raised_here(cluster):
    with pytest.raises(SpecError, match="unlucky"):
        list(solved_on(cluster, partial(squares, 0), [13], ()))


def test_errors_keep_their_places_between_processes():
    import pickle

    issues = [Issue("a", "b"), Issue("c", "d")]
    assert pickle.loads(pickle.dumps(SpecError(issues))).problems == issues
    assert pickle.loads(pickle.dumps(BrokenPlanError(["x", "y"]))).findings == ["x", "y"]


def test_a_study_leaves_nothing_of_it_behind(overlays):
    list(solved_on(LocalEngine(), partial(squares, 0), [1], overlays))
    assert _MADE.solve is None
    with unpacked(files_of(overlays)) as folders:
        assert [[file.name for file in sorted(one.iterdir())] for one in folders] == [["0.json", "1.json"], ["0.json"]]
    assert not any(folder.exists() for folder in folders)


def dying(overlays):
    """Make what ends its process for an item below 0."""

    def die(item):
        if item < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    return die


@long_run
def test_an_item_that_kills_its_workers_is_told_and_the_others_are_solved():
    assert dict(solved_on(LocalEngine(2), dying, [1, -1, 2, 3], ())) == {0: 1, 1: None, 2: 2, 3: 3}


# -- studies -----------------------------------------------------------------------------------------------------------

GAP = 1e-3
VARY = ["workloads[0].demand.requests_per_s=-20%:+20%", "sites[0].electricity_price=20 USD/MWh:90 USD/MWh"]


@pytest.fixture
def spec(tiny):
    document = {**tiny(), "solver": {"gap": GAP, "time_limit": "30 s", "replicas": "divisible"}}
    document["simplicity"] = {"within": 0}
    return document


def frontier_of(spec, engine):
    found = planner.frontier(spec, "throughput", 3, engine=engine)
    return [(row["demand_factor"], row["cost"], row["bound"]) for row in found.rows], found.left_out, found.status


def sensitivity_of(spec, engine):
    found = planner.sensitivity(spec, vary=VARY, engine=engine)
    return found.rows, found.solved, found.status


def test_a_frontier_is_the_same_on_a_cluster_and_within_the_gap_of_one_program(spec, cluster):
    here, there, warm = (frontier_of(spec, engine) for engine in (LocalEngine(), cluster, None))
    assert here == there
    assert [row[0] for row in here[0]] == [row[0] for row in warm[0]] and len(here[0]) == 3
    for one, other in zip(here[0], warm[0], strict=True):
        assert one[1] == pytest.approx(other[1], rel=2 * GAP) and one[2] <= other[1] * (1 + 1e-9)


def test_sensitivity_is_the_same_on_a_cluster_and_within_the_gap_of_one_program(spec, cluster):
    here, there, warm = (sensitivity_of(spec, engine) for engine in (LocalEngine(), cluster, None))
    assert here == there and here[1:] == warm[1:]
    others = {row["path"]: row for row in warm[0]}
    for row in here[0]:
        for side in ("low", "high"):
            one, other = row[side], others[row["path"]][side]
            assert one["status"] == other["status"] and one["level"] == other["level"]
            if one["value"] is not None:
                assert one["value"] == pytest.approx(other["value"], rel=2 * GAP)


@long_run
@pytest.mark.parametrize("study", [frontier_of, sensitivity_of])
def test_a_study_is_the_same_from_two_processes(spec, study):
    assert study(spec, LocalEngine(2)) == study(spec, LocalEngine(1))


class Reversed:
    """An engine that finishes the last item first, and loses every third one."""

    remote = False

    def map_unordered(self, call, items):
        for number in reversed(range(len(items))):
            yield number, None if number % 3 == 2 else call(items[number])


def test_results_stand_in_the_order_asked_for_whichever_is_finished_first(spec):
    told = []
    whole = planner.frontier(spec, "throughput", 3, engine=LocalEngine())
    found = planner.frontier(
        spec, "throughput", 3, engine=Reversed(), so_far=lambda part: told.append(len(part.points))
    )
    lost = [name for name, reason in found.left_out if "process" in reason]
    assert [point.name for point in found.points] == [p.name for p in whole.points if p.name not in lost] and len(
        lost
    ) == 1
    assert told == sorted(told)
    moved = planner.sensitivity(spec, vary=VARY, engine=Reversed())
    levels = [moved for bar in moved.bars for moved in (bar.low, bar.high)]
    assert any(level.status == NOT_TRIED and "process" in level.words for level in levels)


def test_levels_for_which_no_time_is_left_are_not_tried_on_an_engine(spec):
    found = planner.sensitivity(spec, engine=LocalEngine(), total_s=1e-6)
    assert found.bars and found.solved == 0


def test_the_commands_take_the_options_of_an_engine(spec, cluster, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec))
    asked = ["frontier", str(path), "--against", "throughput", "--points", "2", "--format", "json", "-q"]
    assert main([*asked, "--engine", "dask"]) == INVALID and "--address" in capsys.readouterr().err
    assert main([*asked, "--engine", "dask", "--address", cluster.address]) == OK
    there = json.loads(capsys.readouterr().out)
    assert main(asked) == OK
    here = json.loads(capsys.readouterr().out)
    assert [row["demand_factor"] for row in there["points"]] == [row["demand_factor"] for row in here["points"]]
    assert main([*asked[:3], "horizon", "-q", "--jobs", "2"]) == INVALID
    assert "--jobs" in capsys.readouterr().err


def test_each_thread_makes_its_own():
    """Workers of Dask have several threads, of which none may change what another one solves with."""
    call, made = Call(partial(squares, 0), "a study", (), None), []
    threads = [threading.Thread(target=lambda: made.append(_MADE.of(call))) for _ in range(2)]
    for thread in threads:
        thread.start()
        thread.join()
    assert made[0] is not made[1] and _MADE.solve is None
