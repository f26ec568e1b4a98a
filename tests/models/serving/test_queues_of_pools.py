"""Queues before separate pools, and of clients in closed loops, at the ends where the answer follows from conservation."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.serving.closed_points import closed_pools, closed_sessions
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.examples import BF16, CHIP, DENSE, ONE, SERVING
from models.serving.offered_load import Replica, two_pools
from models.serving.percentiles import latency_s
from models.serving.sessions import Session, Task
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths


def pools(prompt, output, workers=(1, 1), layouts=(ONE, ONE), link=1e30, arrival_scv=1.0):
    sides = (WorkerPool(CHIP, layout, count, SERVING) for layout, count in zip(layouts, workers, strict=True))
    return partial(
        disaggregated, DENSE, *sides, link=TransferLink(link), lengths=Lengths(prompt, output), precisions=BF16, arrival_scv=arrival_scv
    )  # fmt: skip


def chunk_s(tokens, prompt, layout=ONE):
    """Compute the time of a pass of prompts alone [s]."""
    load = StepLoad(0.0, prefill_tokens=tokens, prompt_tokens=prompt)
    return float(step_time(DENSE, CHIP, layout, load, precisions=BF16, constants=SERVING).total_s)


@given(st.floats(16.0, 4000.0), st.integers(1, 4))
def test_prompts_fill_the_passes_of_prefill_workers(prompt, workers):
    """The most that w workers prefill is w full chunks of 8,192 tokens in the time of one each: 8,192/I prompts a pass, not one."""
    group = pools(prompt, 200, (workers, 1000))
    most = workers * (SERVING.chunk_tokens / prompt) / chunk_s(SERVING.chunk_tokens, prompt)
    found = group(np.geomspace(1e-3, 1e6, 4000))
    served = found.point.requests_per_s[np.isfinite(found.point.prefill_wait_s)].max()
    assert served == pytest.approx(most, rel=0.01)
    assert workers / chunk_s(prompt, prompt) <= most * (1 + 1e-9)  # one prompt a pass


@given(st.sampled_from([8, 16, 32]), st.floats(500.0, 8000.0), st.floats(0.2, 0.8))
def test_an_arrival_at_many_ranks_waits_for_the_pass_under_way(ranks, prompt, load):
    """With more than a few prompts a pass a worker always steps: half of a pass on average, of as many tokens as a rank has."""
    layouts = ServingLayouts(1, 1, ranks, 1), ONE
    group = pools(prompt, 200, (1, 50), layouts)
    pass_s = chunk_s(prompt * ranks, prompt, layouts[0])
    rate = max(load * ranks, 6.0) / pass_s
    batch = np.geomspace(0.01, 500.0, 2000)
    found = group(batch).point
    place = int(np.searchsorted(found.requests_per_s, rate))
    if place < batch.size and np.isfinite(found.prefill_wait_s[place]):
        assert found.prefill_wait_s[place] >= 0.5 * pass_s * 0.98


def test_clients_take_all_that_links_carry():
    """A loop of many clients waits at the slowest stage alone: 131,072 bytes of 4,000 tokens over the four links of the decode side."""
    group = pools(4000.0, 30, (36, 4), link=1e9)
    carried = 4 * 1e9 / (4000 * 131_072)
    found = closed_pools(group, 2000.0, SERVING)[0].point
    assert found.requests_per_s == pytest.approx(carried, rel=0.02)
    side = Replica(DENSE, CHIP, ONE, Lengths(4000.0, 30), BF16, SERVING)
    assert two_pools(side, side, 36, 4, 500.0, 1e9).tokens_per_s == pytest.approx(30 * carried, rel=0.02)


@given(st.floats(16.0, 8000.0), st.integers(2, 400), st.integers(1, 3000), st.integers(1, 4), st.integers(1, 4))
def test_clients_of_two_pools_are_conserved(prompt, output, clients, n_p, n_d):
    """Rate x time of a request is the number of clients, and no stage serves more than it can."""
    group, surplus = closed_pools(pools(prompt, output, (n_p, n_d), link=25e9), float(clients), SERVING)
    point = group.point
    cycle = point.ttft_s + (output - 1.0) * point.tpot_s
    assert point.requests_per_s * cycle == pytest.approx(clients, rel=0.02) and surplus >= 0.0
    assert point.requests_per_s * group.full_s / n_p <= 1.0 + 1e-9
    assert point.requests_per_s * group.links_s <= 1.0 + 1e-9


@given(st.floats(50.0, 8000.0), st.integers(2, 400), st.floats(0.0, 30.0))
def test_one_session_meets_nobody(prompt, output, wait):
    """Nothing else is in the engine: its TPOT is the step of its own request, and it waits for no prompt."""
    session = Session(Task(4.0, wait_s=wait), 200.0)
    first = Lengths(prompt, output)

    def at(batch):
        return aggregated(DENSE, CHIP, ONE, batch, lengths=first, precisions=BF16, constants=SERVING, cache=session)

    found = closed_sessions(at, 1.0)
    load = StepLoad(1.0, session.lengths(first).running_context_tokens)
    step = step_time(DENSE, CHIP, ONE, load, precisions=BF16, constants=SERVING).total_s
    assert found.tpot_s == pytest.approx(float(step), rel=1e-3) and found.prefill_wait_s < 1e-4
    assert found.requests_per_s * (latency_s(found, "e2e", "mean") + 0.75 * wait) == pytest.approx(1.0)
    assert found.batch <= 1.0


@given(st.sampled_from([0.0, 1.0, 4.0]), st.floats(0.5, 80.0), st.floats(1000.0, 8192.0))
def test_burstier_arrivals_never_wait_less(scv, batch, prompt):
    """At the same rate; in one pool the rate at a batch is another, so that two pools are compared, whose decode sets it."""
    calm, bursty = (pools(prompt, 200, (3, 2), arrival_scv=value)(batch).point for value in (scv, 2.0 * scv + 1.0))
    assert calm.requests_per_s == bursty.requests_per_s
    assert bursty.prefill_wait_s >= calm.prefill_wait_s or np.isinf(calm.prefill_wait_s)
