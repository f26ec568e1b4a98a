"""One engine: each request alone as by the closed form, all of them as an engine that takes one step at a time, and nothing lost."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.serving.decode import ServingLayouts
from models.serving.prefill import Prompts, prefill_time
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from planner.replay.engine import Log, Memory, Work
from planner.replay.pipeline import engine_of
from planner.replay.steps import StepTimes
from tests.planner.replay.servers import requests_of, step_by_step, worker

ENDLESS = 1e18
KINDS = {"precisions": Precisions("bf16", "bf16")}


def serve(requests, cap=8, room=ENDLESS, of_request=None, per_token=0.0, reserved=0.0, layouts=None, ticks=()):
    """Serve requests on one engine; `ticks`: further times at which it is advanced."""
    w = worker(layouts=layouts) if layouts else worker()
    count = len(requests)
    log = Log.of(count)
    work = Work(requests.prompts.tolist(), [0.0] * count, (requests.outputs - 1).tolist(), 1.0)
    memory = Memory(room, list(of_request or [0.0] * count), per_token, reserved, cap)
    engine = engine_of(StepTimes(w, cap, requests.longest), work, memory, log)
    events = sorted([(at, i) for i, at in enumerate(requests.arrivals_s.tolist())] + [(at, -1) for at in ticks])
    for at, request in events:
        engine.advance(at)
        if request >= 0:
            engine.submit(request, at)
    engine.advance(math.inf)
    return engine


def test_one_request_alone_takes_the_time_of_the_closed_form():
    w, engine = worker(), serve(requests_of([0.0], [300], [50]))
    kinds = {"constants": w.constants, **KINDS}
    prompt = prefill_time(w.arch, w.chip, w.layouts, Prompts(300), None, **kinds)
    assert engine.log.first[0] == pytest.approx(float(prompt.latency_s), rel=1e-12)
    # over 49 steps it attends to 300 + 49/2 tokens on average
    step = step_time(w.arch, w.chip, w.layouts, StepLoad(1, 324.5), **kinds)
    assert (engine.log.end[0] - engine.log.first[0]) / 49 == pytest.approx(float(step.total_s), rel=1e-12)


def test_a_long_prompt_takes_a_step_for_each_chunk():
    w, engine = worker(), serve(requests_of([0.0], [1200], [1]))
    times = StepTimes(w, 8, 1201)
    chunks = [times.prompts_s(0, taken, taken) for taken in (512.0, 512.0, 176.0)]
    assert engine.log.first[0] == pytest.approx(sum(chunks) + times.attention_s(0, 1200), rel=1e-12)
    assert engine.log.end == engine.log.first and engine.log.steps == 3


requests_drawn = st.lists(
    st.tuples(st.floats(0.0, 0.3), st.integers(1, 1500), st.integers(1, 60)), min_size=1, max_size=12
)


@given(requests_drawn, st.integers(1, 6))
def test_many_steps_at_once_are_the_same_as_one_at_a_time(drawn, cap):
    gaps, prompts, outputs = zip(*drawn)
    requests = requests_of(np.cumsum(gaps), prompts, outputs)
    engine = serve(requests, cap)
    first, end = step_by_step(StepTimes(worker(), cap, requests.longest), requests, cap)
    assert engine.log.first == pytest.approx([first[i] for i in range(len(drawn))], rel=1e-9)
    assert engine.log.end == pytest.approx([end[i] for i in range(len(drawn))], rel=1e-9)


@given(requests_drawn, st.integers(1, 6), st.lists(st.floats(0.0, 3.0), max_size=8))
def test_looking_at_an_engine_in_between_changes_nothing(drawn, cap, ticks):
    gaps, prompts, outputs = zip(*drawn)
    requests = requests_of(np.cumsum(gaps), prompts, outputs)
    assert serve(requests, cap, ticks=ticks).log.end == pytest.approx(serve(requests, cap).log.end, rel=1e-9)


@given(
    requests_drawn,
    st.integers(1, 6),
    st.floats(0.0, 30.0),
    st.sampled_from([(1, 1, 1, 1), (1, 2, 1, 1), (1, 1, 2, 1), (1, 2, 2, 1)]),
)
def test_every_request_ends_or_is_refused_and_all_memory_is_given_back(drawn, cap, reserved, layout):
    gaps, prompts, outputs = zip(*drawn)
    requests = requests_of(np.cumsum(gaps), prompts, outputs)
    need = [prompt + reserved for prompt in prompts]
    engine = serve(requests, cap, 1200.0, need, 1.0, reserved, ServingLayouts(*layout))
    log = engine.log
    assert {i for i, at in enumerate(log.end) if math.isnan(at)} == log.refused
    assert all(log.end[i] >= log.first[i] > requests.arrivals_s[i] for i in range(len(drawn)) if i not in log.refused)
    assert {i for i in range(len(drawn)) if need[i] > 1200.0} <= log.refused
    assert engine.idle and engine.held == pytest.approx(0.0, abs=1e-6) and not engine.running
    lanes = getattr(engine, "lanes", [engine])
    assert not any(
        lane.growing or abs(lane.context) > 1e-6 for lane in lanes
    ) and engine.prefilling.left_on == pytest.approx([0.0] * engine.prefilling.ranks, abs=1e-6)


def test_answers_that_outgrow_the_cache_send_the_youngest_back_which_is_computed_again():
    # two requests of 100 + 50 tokens in room for 240: together they hold 200 + 2 k after k steps, so that the younger goes after 21
    requests = requests_of([0.0, 0.0], [100, 100], [50, 50])
    engine = serve(requests, room=240.0, of_request=[100.0, 100.0], per_token=1.0)
    assert engine.log.evicted == 1 and engine.log.end[1] > engine.log.end[0] and not engine.log.refused
    # it has 1 + 21 tokens when it goes, and waits until the older one ends; then they are computed, which gives one of the 28 left
    times = StepTimes(worker(), 8, requests.longest)
    alone = (
        times.prompts_s(0, 122.0, 122.0)
        + times.attention_s(0, 122.0)
        + sum(times.decode_s(1, 122.5 + k) for k in range(27))
    )
    assert engine.log.end[1] - engine.log.end[0] == pytest.approx(alone, rel=1e-9)


def test_chunks_of_a_prompt_follow_each_other_through_the_stages():
    w = worker(layouts=ServingLayouts(1, 2, 1, 1))
    engine = serve(requests_of([0.0], [700], [1]), layouts=w.layouts)
    times = StepTimes(w, 8, 701)
    first = times.prompts_s(0, 512.0, 512.0) + times.attention_s(0, 512)
    second = times.prompts_s(0, 188.0, 188.0) + times.attention_s(512, 700)
    # the second chunk enters behind the first, waits for it before the second stage, and takes half its time there
    assert second < first and engine.log.first[0] == pytest.approx(first + second / 2, rel=1e-12)


def test_micro_batches_decode_side_by_side():
    w = worker(layouts=ServingLayouts(1, 2, 1, 1))
    engine = serve(requests_of([0.0, 10.0, 10.0], [300, 300, 300], [50, 50, 50]), layouts=w.layouts)
    alone, *both = [(engine.log.end[i] - engine.log.first[i]) / 49 for i in range(3)]
    step = step_time(w.arch, w.chip, w.layouts, StepLoad(1, 324.5), constants=w.constants, **KINDS).total_s
    assert alone == pytest.approx(float(step), rel=1e-12)
    # each of two is alone in its micro-batch: no slower, but for the prompt of the other
    assert all(float(step) <= each * (1 + 1e-9) < 1.1 * float(step) for each in both)
