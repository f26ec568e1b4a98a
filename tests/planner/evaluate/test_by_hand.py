"""What is evaluated of a given point, derived by hand: interruptions, spares, memory of an engine, start of a worker, sessions."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from models.training.memory import WEIGHT_BYTES
from planner.candidates.search import find_candidates
from planner.estimate.case import resolve_case
from planner.evaluate.engine_memory import GIB, MIB, static_share
from planner.evaluate.interruptions import RunTerms, interruptions, preemption_s_of, spares_of, state_sizes
from planner.evaluate.residency import LOAD, START, worker_ready_s
from planner.evaluate.sessions import session_figures
from planner.problem.engine import EngineChoice
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

CASE = {
    "workload": {
        "name": "job", "kind": "training", "architecture": "Llama-3.1-70B", "tokens": "1T", "deadline": "90 d", "batch_tokens": 4194304,
        "preemption": {},
    },
    "system": "DGX H100", "chips": 1024,
}  # fmt: skip


@pytest.fixture(scope="module")
def job():
    return resolve_case(CASE)


def test_a_restart_recovers_and_reads_the_checkpoint_back(job):
    known = replace(job.constants.reliability, reads_back=3.0)
    found = interruptions(job.job, 1024, known, RunTerms(storage_bytes_per_s=40e9))
    size, loaded = state_sizes(job.job, known)
    assert found.write_s == pytest.approx(size / 40e9)
    assert found.read_s == pytest.approx(3.0 * loaded / 40e9)
    assert found.restart_s == pytest.approx(known.recovery_s + found.read_s)
    assert preemption_s_of(job.job, 1024, known, 40e9) == pytest.approx(found.write_s + known.recovery_s + found.read_s)
    owned = interruptions(job.job, 1024, known, RunTerms(storage_bytes_per_s=40e9, owned=True))
    assert owned.restart_s == pytest.approx(found.restart_s + known.unspared_s)


def test_frozen_weights_are_loaded_and_never_written(job):
    tuned = resolve_case({**CASE, "workload": CASE["workload"] | {"tuning": "lora", "adapters": {"rank": 16}}})
    size, loaded = state_sizes(tuned.job, tuned.constants.reliability)
    parameters = (
        state_sizes(job.job, job.constants.reliability)[0] / job.constants.reliability.checkpoint_bytes_per_parameter
    )
    assert loaded - size == pytest.approx(WEIGHT_BYTES * parameters) and size < 0.01 * loaded


def test_a_spot_market_takes_whole_systems(job):
    """One system of 8 chips is reclaimed every 10 days: a chip every 80 days, beside its own failures."""
    document = {
        "name": "spot", "workloads": [CASE["workload"]], "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
        "offers": [{"system": "DGX H100", "how": "spot", "price": "40 USD/h", "interruption_interval": "10 days", "restart": "2 h"}],
    }  # fmt: skip
    (offer,) = resolve(parse_spec(document)).offers
    known = job.constants.reliability
    assert (offer.spot.interval_s, offer.spot.wait_s) == (864_000.0, 7_200.0)
    plain = interruptions(job.job, 1024, known, RunTerms(system_chips=8))
    found = interruptions(job.job, 1024, known, RunTerms(system_chips=8, spot=offer.spot))
    fails, taken = 1 / known.chip_interruption_s, 1 / (864_000.0 * 8)
    assert found.between_s == pytest.approx(1 / (fails + taken))
    assert found.restart_s == pytest.approx(plain.restart_s + 7_200.0 * taken / (fails + taken))


def test_spares_cover_the_systems_under_repair(job):
    """All 128 systems of 1,024 chips in a share of the time that no spare would reach, and one more for 1,025 chips."""
    known = replace(job.constants.reliability, chip_failure_s=8e6, repair_s=1e5, availability=0.99)
    spares = spares_of(job.job, 1024, job.system, True, known)
    away = 1e5 / (8e6 / 8 + 1e5)  # each system is away 1/11 of the time

    def share(held):
        return sum(math.comb(held, k) * away**k * (1 - away) ** (held - k) for k in range(held - 128 + 1))

    assert share(128 + int(spares)) >= 0.99 > share(127 + int(spares))
    assert spares_of(job.job, 1024, job.system, False, known) == 0.0
    # one system and a spare: 1 - 1/121 = 0.9917; two and a spare: 0.9767, so two spares
    assert [spares_of(job.job, chips, job.system, True, known) for chips in (8, 9, 16)] == [1.0, 2.0, 2.0]


def test_the_static_reserve_adds_tokens_requests_and_chips():
    """48 GiB: 512 + 1.5 x 4,096 + 2 x 160 + 128 x 8 MiB; 80 GiB: 512 + 1.5 x 8,192 + 2 x 512 + 1,024 = 14,848 MiB, above 10 GiB."""
    assert static_share(48 * GIB) == pytest.approx(1 - (512 + 6144 + 320 + 1024) * MIB / (48 * GIB))
    assert static_share(80 * GIB) == pytest.approx(1 - 14_848 * MIB / (80 * GIB))


@pytest.fixture(scope="module")
def serving(tiny):
    def make(**changes):
        document = tiny()
        document["workloads"][0] |= changes
        document["sites"][0]["storage_bandwidth"] = "2 GB/s"
        return resolve(parse_spec(document))

    return make


def test_weights_in_memory_load_beside_those_in_storage(serving):
    """A quarter of the weights lies on the system at 1 GB/s; the rest comes from storage at 2 GB/s and decides."""
    problem = serving(scale_up={"preloaded": 0.25, "preload_bandwidth": "1 GB/s", "start": "7 s"})
    workload = problem.serving[0]
    found = worker_ready_s(workload, problem.sites[0], [], EngineChoice("bf16", "bf16", "", ""), problem.constants)
    assert found == {
        START: 7.0,
        LOAD: pytest.approx(max(0.75 * workload.weights_bytes / 2e9, 0.25 * workload.weights_bytes / 1e9)),
    }
    usual = worker_ready_s(
        serving().serving[0], problem.sites[0], [], EngineChoice("bf16", "bf16", "", ""), problem.constants
    )
    assert usual[LOAD] == pytest.approx(workload.weights_bytes / 2e9)


def test_sessions_are_counted_by_littles_law(serving):
    """5 calls a task, 12 s between two of them, 10 calls/s of 2 s each: 20 at work, 10 x 4/5 x 12 = 96 waiting."""
    problem = serving(session={"calls": 5, "wait": "12 s"}, slo={"tpot": {"p95": "60 ms"}})
    (pool,) = find_candidates(problem).pools
    use = pool.points[0].uses[0]
    found = session_figures(problem.serving[0], use.choice, 10.0, 2.0, False)
    assert found["tasks_per_s"] == 2.0 and found["waiting_sessions"] == pytest.approx(96.0)
    assert found["sessions"] == pytest.approx(116.0)
