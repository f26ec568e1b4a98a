"""Several engines under one clock: a queue in order of arrival, transfers that share links, two pools, routers, and draws that a seed fixes."""

from dataclasses import replace

import numpy as np
import pytest
import simpy

from models.serving import examples
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink
from models.serving.kv_cache import transfer_s
from models.serving.prefill import Prompts, prefill_time
from models.serving.workload import Lengths, Precisions
from planner.replay.pools import Link, Transfers
from planner.replay.requests import Stream, drawn
from planner.replay.simulate import Server, simulate
from planner.replay.steps import StepTimes
from tests.planner.replay.servers import requests_of, worker

RUN = {"replicas": 1, "router": "random", "seed": 1, "requests_per_s": 1.0}


def test_prompts_of_a_whole_chunk_without_decode_wait_as_in_a_queue_of_constant_service():
    w = worker(Lengths(512, 1))
    service = StepTimes(w, 1, 513).prompts_s(0, 512.0, 512.0) + StepTimes(w, 1, 513).attention_s(0, 512.0)
    load, count = 0.7, 40_000
    arrivals = np.cumsum(np.random.default_rng(5).exponential(service / load, count))
    run = simulate(Server(w), requests_of(arrivals, [512] * count, [1] * count), samples=10, **RUN)
    waits = run.ttft_s - w.overhead_s - service
    # Lindley's recursion on the same arrivals
    expected, wait = [], 0.0
    for gap in np.diff(arrivals, append=arrivals[-1]):
        expected.append(wait)
        wait = max(wait + service - gap, 0.0)
    assert waits == pytest.approx(np.array(expected), abs=1e-9)
    # Pollaczek-Khinchine: u S/(2 (1 - u)), within four standard errors of means of long batches
    means = waits.reshape(40, -1).mean(axis=1)
    assert abs(waits.mean() - load * service / (2 * (1 - load))) < 4 * means.std(ddof=1) / np.sqrt(40)
    assert run.ended == count and not len(run.tpot_s)


def test_transfers_share_the_links_of_a_side():
    clock, arrived = simpy.Environment(), {}
    link = Link(10.0, 2.0, 2.0, 0.0)  # 20 bytes/s in all
    transfers = Transfers(clock, link, lambda request: arrived.setdefault(request, clock.now))
    transfers.send(0, 40.0)
    clock.timeout(1.0).callbacks.append(lambda _: transfers.send(1, 40.0))
    clock.run()
    # 20 bytes of the first move alone in 1 s, the other 20 in 2 s beside 20 of the second, whose last 20 take 1 s
    assert arrived == pytest.approx({0: 3.0, 1: 4.0})


def test_one_request_alone_in_two_pools_takes_pass_transfer_and_steps():
    w = worker()
    link = TransferLink(25e9, 1e-3)
    run = simulate(Server(w, w, (2, 2), link), requests_of([0.0, 50.0], [300, 300], [50, 50]), **RUN)
    kinds = {"precisions": Precisions("bf16", "bf16"), "constants": w.constants}
    alone = float(prefill_time(w.arch, w.chip, w.layouts, Prompts(300), None, **kinds).latency_s)
    moved = float(transfer_s(w.arch, 300, "bf16", 25e9, 1, 1e-3))
    factor = examples.SERVING.disaggregated_first_token_factor
    assert run.ttft_s == pytest.approx(np.full(2, factor * (w.overhead_s + alone + moved)), rel=1e-9)
    assert run.tpot_s == pytest.approx(np.full(2, StepTimes(w, 2, 350).decode_s(1, 324.5)), rel=1e-9)


def test_the_same_seed_gives_the_same_run_and_another_seed_another():
    server, stream = Server(worker()), Stream(20.0, Lengths(300, 50, 1.0, 1.0))
    runs = [simulate(server, drawn(stream, 300, seed), 2, "random", seed, requests_per_s=10.0) for seed in (1, 1, 2)]
    assert np.array_equal(runs[0].ttft_s, runs[1].ttft_s) and runs[0].series == runs[1].series
    assert not np.array_equal(runs[0].ttft_s, runs[2].ttft_s)


def test_a_request_goes_to_the_replica_that_holds_fewest():
    # the first prompt takes one replica, so that the second, of the same time, is as fast as alone
    w = worker()
    two = requests_of([0.0, 1e-6], [512, 512], [20, 20])
    least = simulate(Server(w), two, 2, "least-loaded", 1, requests_per_s=1.0)
    assert least.ttft_s[1] == pytest.approx(least.ttft_s[0], rel=1e-9)
    one = simulate(Server(w), two, 1, "least-loaded", 1, requests_per_s=1.0)
    assert one.ttft_s[1] > 1.5 * one.ttft_s[0]


def test_a_first_token_waits_the_further_steps_that_measured_engines_take():
    w = worker(constants=replace(worker().constants, interleave_tokens=150.0, steps_waited=1.25))
    plain = simulate(Server(worker()), requests_of([0.0], [300], [50]), **RUN)
    found = simulate(Server(w), requests_of([0.0], [300], [50]), **RUN)
    # a quarter of a step, and the second of the two steps of 150 tokens
    bare = StepTimes(w, 1, 350).decode_s(1, 300.0)
    assert found.ttft_s[0] - plain.ttft_s[0] == pytest.approx(1.25 * bare, rel=1e-9)
    assert found.tpot_s[0] == pytest.approx(plain.tpot_s[0], rel=1e-9)


def test_a_long_prompt_of_one_rank_does_not_hold_up_the_other():
    w = worker(layouts=ServingLayouts(1, 1, 2, 1))
    link = TransferLink(1e15)
    run = simulate(Server(w, w, (1, 1), link), requests_of([0.0, 0.0], [5120, 300], [2, 2]), **RUN)
    times = StepTimes(w, 2, 5122)
    # the short prompt ends with the first of ten passes, in which both ranks have a part
    first = times.prompts_s(0, 512.0, 812.0) + max(times.attention_s(0, 512), times.attention_s(0, 300))
    factor = examples.SERVING.disaggregated_first_token_factor
    assert run.ttft_s[1] == pytest.approx(factor * (w.overhead_s + first), rel=1e-6)
    assert run.ttft_s[0] > 9 * first
