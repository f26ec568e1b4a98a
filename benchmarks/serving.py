"""Count serving operating points per second on one core, and time a whole search for one network on one system.

A point counts when its rate, its memory and every latency that the SLO names were computed. The search is the planner's own: layouts,
batches and precisions, one pool for both phases and separate pools, compared with all limits, the best kept.
Run: python benchmarks/serving.py [--profile]    The last line printed is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planner.candidates.search import find_candidates
from planner.candidates.serving import Grid, make_grid
from planner.evaluate.serving import engine_choices, limits_at_site
from planner.problem.facts import ResolvedSpec, ScaleOut
from planner.resolve.resolver import resolve_document

ROUNDS = 15
# A dense network, and one with experts, whose layouts are many.
NETWORKS = {"Llama-3.1-70B": ["fp8"], "DeepSeek-R1": ["fp8"]}
SYSTEM = "DGX H200"
SLO = {"ttft": {"p50": "1 s", "p95": "2 s"}, "tpot": {"p50": "40 ms", "p99": "60 ms"}, "e2e": {"p90": "60 s"}}


def problem_of(network: str, precision: Sequence[str]) -> ResolvedSpec:
    """Build a problem of one network on one system to buy, with a network between the systems."""
    document = {
        "schema_version": 1, "name": "serving benchmark", "currency": "USD",
        "horizon": {"start": "2027-01-01", "years": 3, "calendar": "representative-day"},
        "objective": {"minimise": "cost"},
        "workloads": [{
            "name": "assistant", "kind": "serving", "grade": "professional", "architecture": network,
            "demand": {"output_tokens": "20B tokens/day"}, "lengths": {"input": 4000, "output": 500, "input_cv": 1.0, "output_cv": 1.0},
            "origins": [{"region": "us-virginia", "share": 1.0}], "slo": SLO, "precision": list(precision), "disaggregation": "allowed",
        }],
        "sites": [{"region": "us-virginia", "power": "50 MW", "fabric": "InfiniBand NDR", "topologies": ["rail-optimised"]}],
        "offers": [{"system": SYSTEM, "how": "buy"}],
    }  # fmt: skip
    return resolve_document(document)


def least_s(work: Callable[[], object]) -> float:
    """Take the least processor time of several rounds: one thread computes, and other work on the machine only ever adds."""
    work()  # warm: imports and caches
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def grid_with_latencies(problem: ResolvedSpec) -> Grid:
    """Evaluate all layouts x batches of one precision, and compare the latencies of the SLO with its limits."""
    from models.serving.percentiles import within_slo

    workload, system = problem.serving[0], problem.systems[SYSTEM]
    choice, network = engine_choices(workload, system)[0], ScaleOut(system.nic_bytes_per_s)
    grid = make_grid(workload, system, choice, network, problem.constants.serving)
    within_slo(grid.point, limits_at_site(workload.spec, 0.0))
    return grid


def measure(network: str) -> dict[str, float]:
    problem = problem_of(network, NETWORKS[network])
    points = grid_with_latencies(problem).point.requests_per_s.size
    seconds = least_s(lambda: grid_with_latencies(problem))
    searched, kept = (
        find_candidates(problem).evaluated,
        sum(len(pool.points) for pool in find_candidates(problem).pools),
    )
    search_s = least_s(lambda: find_candidates(problem))
    return {
        "points_per_s": round(points / seconds), "points": points, "seconds": round(seconds, 5), "search_s": round(search_s, 4),
        "searched": searched, "searched_per_s": round(searched / search_s), "kept": kept,
    }  # fmt: skip


def profile(network: str) -> None:
    import cProfile
    import pstats

    problem = problem_of(network, NETWORKS[network])
    for name, work in (("grid", lambda: grid_with_latencies(problem)), ("search", lambda: find_candidates(problem))):
        work()
        recorder = cProfile.Profile()
        recorder.enable()
        for _ in range(ROUNDS):
            work()
        recorder.disable()
        print(f"{network}: {name}, {ROUNDS} times")
        pstats.Stats(recorder).sort_stats("tottime").print_stats(25)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--profile", action="store_true", help="show where the time goes, too")
    if parser.parse_args(argv).profile:
        for network in NETWORKS:
            profile(network)
    found = {network: measure(network) for network in NETWORKS}
    slowest = {
        "points_per_s": min(f["points_per_s"] for f in found.values()),
        "search_s": max(f["search_s"] for f in found.values()),
    }
    of = min(found.values(), key=lambda f: f["points_per_s"])
    print(json.dumps({**slowest, "points": of["points"], "seconds": of["seconds"], "by_network": found}))


if __name__ == "__main__":
    main()
