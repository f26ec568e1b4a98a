"""A Dask cluster answers as this machine does, survives a worker, and is refused with other versions or when it is gone."""

import json
import os
import signal
import time

import pytest

from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK, USAGE
from planner.studies import batch
from planner.studies.batch_lines import Settings, read_lines
from planner.studies.engines import EngineError, dask
from planner.studies.engines.dask import DaskEngine
from planner.studies.engines.local import LocalEngine
from tests.conftest import long_run

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, dashboard_address=":0", processes=False
    ) as cluster:
        yield cluster


@pytest.fixture
def lines(tiny, tmp_path):
    specs = [{**tiny(), "id": f"at {rate}"} for rate in (10, 20, 30)]
    for spec, rate in zip(specs, (10, 20, 30), strict=True):
        spec["workloads"][0]["demand"] = {"requests_per_s": rate}
    return [*specs, {"id": "wrong"}]


def answers(lines, engine, settings):
    found = {}
    read = read_lines("\n".join(map(json.dumps, lines)).encode(), settings)
    for answer in batch.answers(read, engine, settings):
        assert answer.line.id not in found
        record = json.loads(answer.record)
        plan = record.get("plan", {})
        found[answer.line.id] = record["status"], plan.get("objective"), plan.get("fleet"), record["digest"]
    return found


def test_a_cluster_answers_as_this_machine_does(cluster, lines, tmp_path):
    overlay = {"chips": []}
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "chips.json").write_text(json.dumps(overlay))
    settings = Settings(("solver.gap=0.001",), {"seed": 3}, (tmp_path / "own",))
    here = answers(lines, LocalEngine(), settings)
    there = answers(lines, DaskEngine(cluster.scheduler_address), settings)
    assert here == there and [here[name][0] for name in ("at 10", "wrong")] == ["optimal", "invalid"]


def slow(path):
    """Sleep, and kill the worker that makes the first call of all."""
    try:
        with open(path, "x"):
            os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        time.sleep(0.05)
    return path


@long_run
def test_a_worker_that_dies_takes_no_call_with_it(tmp_path):
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0", processes=True) as two:
        engine = DaskEngine(two.scheduler_address)
        found = list(engine.map_unordered(slow, [str(tmp_path / "dead")] * 6))
    assert sorted(number for number, _ in found) == list(range(6)) and all(result for _, result in found)


def test_other_versions_are_refused_with_their_names(cluster, monkeypatch):
    ours = dask.versions()
    monkeypatch.setattr(dask, "versions", lambda: ours)  # workers import the real one
    cluster_versions = {"worker": {**ours, "flopwatt": "0.0.1", "catalog": "other"}}

    class Client:
        def run(self, call):
            return cluster_versions

    with pytest.raises(EngineError) as refused:
        dask._check_versions(Client())
    assert "flopwatt 0.0.1" in refused.value.strerror and "catalog other" in refused.value.strerror


def test_a_cluster_without_a_scheduler_or_a_worker_is_told(monkeypatch):
    monkeypatch.setattr(dask, "CONNECT_S", 1)
    with pytest.raises(EngineError, match="no Dask scheduler"):
        list(DaskEngine("tcp://127.0.0.1:9").map_unordered(str, [1]))
    empty = distributed.LocalCluster(n_workers=0, dashboard_address=":0", processes=False)
    with empty, pytest.raises(EngineError, match="no worker"):
        list(DaskEngine(empty.scheduler_address).map_unordered(str, [1]))


@long_run
def test_a_lost_scheduler_ends_the_run_and_what_was_answered_stands(tmp_path):
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", processes=True) as cluster:
        calls = DaskEngine(cluster.scheduler_address).map_unordered(time.sleep, [0.01] + [0.5] * 20)
        assert next(calls) == (0, None)
        cluster.close()
        with pytest.raises(EngineError, match="lost"):
            list(calls)


def test_the_command_answers_on_a_cluster_and_asks_for_an_address(cluster, lines, tmp_path, capsys, monkeypatch):
    specs, output = tmp_path / "specs.jsonl", tmp_path / "answers.jsonl"
    specs.write_text("\n".join(map(json.dumps, lines[:3])))
    asked = ["batch", str(specs), "--output", str(output), "--engine", "dask", "-q"]
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    assert main(asked) == INVALID and "--address" in capsys.readouterr().err
    assert main([*asked, "--address", "tcp://127.0.0.1:9"]) == USAGE
    output.unlink(missing_ok=True)
    assert main([*asked, "--address", cluster.scheduler_address]) == OK
    assert {json.loads(line)["id"] for line in output.read_text().splitlines()} == {"at 10", "at 20", "at 30"}


def test_an_invalid_line_is_answered_before_it_is_sent(tiny):
    line = read_lines(json.dumps(tiny()).encode())[0]
    sent = batch._whole(line, Settings(("nothing",)))
    assert sent.status == "invalid" and sent.error
    with pytest.raises(SpecError):
        batch._asked(line, Settings(("nothing",)))
