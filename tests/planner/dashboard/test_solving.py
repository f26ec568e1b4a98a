"""The worker process: it answers as the library does, says what is wrong, and never outlives its job."""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import planner
from planner.dashboard.workers import bounds
from planner.dashboard.workers.solving import Job
from planner.errors import SpecError

HOME = Path(planner.__file__).resolve().parents[1]
TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
LONGEST_S = 60


def ended(job: Job):
    end = time.monotonic() + LONGEST_S
    while not (outcome := job.poll()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return outcome


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_the_worker_gives_the_plan_of_the_library_checked():
    outcome = ended(job := Job(TINY))
    assert outcome.findings == () and not outcome.problems and not outcome.trace
    assert outcome.plan["objective"]["value"] == planner.solve(TINY).objective["value"]
    assert job.stage == "verify" and len(job.lines) >= 2


def test_the_worker_finds_our_packages_from_a_folder_full_of_others(tmp_path, monkeypatch):
    for name in ("catalog", "models", "solvers", "planner", "json"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not ours')\n")
    monkeypatch.chdir(tmp_path)
    assert ended(Job(TINY)).plan is not None


def test_problems_of_the_spec_come_back_place_by_place():
    outcome = ended(Job({**TINY, "name": "", "sites": [{"region": "us-virginia", "power": "1 MB"}]}))
    assert [problem.path for problem in outcome.problems] == ["name", "sites[0].power"]
    assert outcome.plan is None and not outcome.trace


def test_a_bug_comes_back_with_its_trace():
    outcome = ended(Job(["not", "an", "object"]))
    assert outcome.plan is None and not outcome.problems and "Traceback" in outcome.trace


def test_cancel_and_forgetting_end_the_process():
    cancelled, forgotten = Job(TINY), Job(TINY)
    pids = [cancelled._process.pid, forgotten._process.pid]
    assert all(map(alive, pids))
    cancelled.cancel()
    del forgotten
    gc.collect()
    assert not any(map(alive, pids))
    assert ended(cancelled).trace == "exit code -9"


def test_the_process_ends_with_the_one_that_started_it():
    script = f"from planner.dashboard.workers.solving import Job; job = Job({TINY!r}); print(job._process.pid)"
    done = subprocess.run([sys.executable, "-c", script], cwd=HOME, capture_output=True, text=True, check=True)
    assert not alive(int(done.stdout))


# -- what a server lets its visitors take ------------------------------------------------------------------------------

LONG = {**json.loads((HOME / "examples" / "mixed_fleet_year.json").read_text())}


def test_at_most_two_solves_at_once():
    first, second = Job(LONG), Job(LONG)
    with pytest.raises(SpecError, match="2 solves under way"):
        Job(TINY)
    first.cancel()
    assert ended(Job(TINY)).plan is not None
    second.cancel()


def test_a_solve_that_no_page_asks_for_is_ended(monkeypatch):
    monkeypatch.setattr(bounds, "HEARTBEAT_S", 2.0)
    asked, forgotten = Job(LONG), Job(LONG)
    end = time.monotonic() + LONGEST_S
    while alive(forgotten._process.pid):
        asked.poll()
        assert time.monotonic() < end
        time.sleep(0.1)
    assert alive(asked._process.pid)
    asked.cancel()
    assert [problem.message for problem in ended(forgotten).problems] == [bounds.FORGOTTEN]


def test_a_solve_that_takes_too_long_is_ended(monkeypatch):
    monkeypatch.setattr(bounds, "MOST_WALL_S", 1.0)
    assert [problem.message for problem in ended(Job(LONG)).problems] == [bounds.OVERDUE]


def test_a_time_limit_beyond_the_servers_is_refused():
    with pytest.raises(SpecError, match=r"solver\.time_limit: at most 5 min on this server"):
        Job({**TINY, "solver": {"time_limit": "1 h"}})
    assert [p.path for p in ended(Job({**TINY, "solver": {"time_limit": "x"}})).problems] == ["solver.time_limit"]


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_DATA holds on Linux")
def test_a_solve_beyond_its_memory_is_told(tmp_path):
    """A solve that asks for more than it may have, in place of ours; the limit is the real one."""
    script = (
        "import sys, planner.pipeline; from planner.dashboard.workers import bounds, worker;"
        "planner.pipeline.solve_unverified = lambda *_, **__: bytearray(bounds.MOST_BYTES);"
        "worker.main()"
    )
    command = [sys.executable, "-c", script, str(os.getpid())]
    run = subprocess.run(
        command, cwd=HOME, input=json.dumps({"spec": {}}), capture_output=True, text=True, timeout=LONGEST_S
    )
    assert run.returncode == bounds.OUT_OF_MEMORY, run.stderr[-300:]


def test_a_killed_server_leaves_no_solve_behind():
    script = f"import os, time; from planner.dashboard.workers.solving import Job; job = Job({LONG!r}); print(job._process.pid, flush=True); time.sleep(60)"
    server = subprocess.Popen([sys.executable, "-c", script], cwd=HOME, stdout=subprocess.PIPE, text=True)
    worker = int(server.stdout.readline())
    time.sleep(3)  # until the worker has begun to watch
    server.kill()
    server.communicate()
    end = time.monotonic() + LONGEST_S
    while alive(worker) and Path(f"/proc/{worker}/stat").read_text().split()[2] != "Z":
        assert time.monotonic() < end
        time.sleep(0.1)
