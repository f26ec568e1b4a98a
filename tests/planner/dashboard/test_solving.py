"""The worker process: it answers as the library does, says what is wrong, and never outlives its job."""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import planner
from planner.dashboard.solving import Job

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
    script = f"from planner.dashboard.solving import Job; job = Job({TINY!r}); print(job._process.pid)"
    done = subprocess.run([sys.executable, "-c", script], cwd=HOME, capture_output=True, text=True, check=True)
    assert not alive(int(done.stdout))
