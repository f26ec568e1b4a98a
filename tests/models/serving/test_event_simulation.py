"""The event simulation does what it says, and closed forms agree with it on some of the sixty points of `benchmarks/simulation.py`."""

from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from models.serving.decode import ServingLayouts
from models.serving.step import StepLoad, step_time
from tests.models.serving.event_cases import CONSTANTS, Case, cases, errors, limits
from tests.models.serving.events import Kernel, Links, Memory, Request, Worker, World, popular

ONE = ServingLayouts(1, 1, 1, 1)


def engine_of(memory: Memory, layouts: ServingLayouts = ONE, most: int = 64):
    """Build one worker with its queue; tests put requests into it by hand."""
    world, waiting = World(), deque()
    case = Case("by hand")
    worker = Worker(world, Kernel(case.engine, most, 1000.0), layouts, memory, waiting)
    return world, waiting, worker


def put(world: World, waiting: deque, worker: Worker, requests: list[Request], at: float = 0.0) -> None:
    def come() -> None:
        for request in requests:
            world.came[request.number] = world.now
            waiting.append(request)
        worker.wake()

    world.at(at, come)


def test_sixty_points():
    assert len(list(cases())) == 60
    assert {case.cv for case in cases()} == {0.0, 1.0, 2.0, 3.0}


def test_a_lone_request_takes_its_prompt_and_one_step_for_each_token():
    world, waiting, worker = engine_of(Memory())
    put(world, waiting, worker, [Request(0, 500.0, 3, left=500.0)])
    world.run()
    engine, kinds = Case("by hand").engine, {"precisions": Case("by hand").engine.precisions, "constants": CONSTANTS}
    at = [
        float(step_time(engine.arch, engine.chip, engine.layouts, load, **kinds).total_s)
        for load in (StepLoad(0.0, 0.0, 500.0, 1000.0), StepLoad(1.0, 501.0), StepLoad(1.0, 502.0))
    ]
    assert world.first[0] == pytest.approx(at[0], rel=2e-3)  # between two levels of the table
    assert world.end[0] - world.first[0] == pytest.approx(at[1] + at[2], rel=1e-6)


def test_ranks_end_a_step_together_and_stages_run_side_by_side():
    """Two ranks take two prompts in the time of one; two stages give two lone requests of separate micro-batches the pace of one."""
    times = {}
    for layouts, count in (
        (ServingLayouts(1, 1, 1, 1), 1),
        (ServingLayouts(1, 1, 2, 1), 2),
        (ServingLayouts(1, 2, 1, 1), 2),
    ):
        world, waiting, worker = engine_of(Memory(), layouts)
        put(world, waiting, worker, [Request(i, 2048.0, 50, left=2048.0) for i in range(count)])
        world.run()
        times[layouts.dp, layouts.pp] = max(world.end.values())
    assert times[2, 1] == pytest.approx(times[1, 1], rel=1e-9)
    assert times[1, 1] < times[1, 2] < 1.1 * times[1, 1]


def test_memory_admits_by_tokens():
    """6,000 tokens hold five requests of 1,000 and 200 reserved; the sixth waits for the first to end."""
    world, waiting, worker = engine_of(Memory(tokens=6000.0, reserved=200))
    put(world, waiting, worker, [Request(i, 1000.0, 100, left=1000.0) for i in range(6)])
    world.run()
    assert world.first[5] > min(world.end.values())
    assert sum(first < min(world.end.values()) for first in world.first.values()) == 5


def test_answers_that_outgrow_the_memory_are_evicted_and_still_end():
    world, waiting, worker = engine_of(Memory(tokens=3000.0, reserved=10))
    put(world, waiting, worker, [Request(i, 900.0, 600, left=900.0) for i in range(3)])
    world.run()
    assert worker.evicted > 0 and sorted(world.end) == [0, 1, 2]
    assert all(rank.held == 0.0 and rank.admitted == 0 for rank in worker.ranks)


def test_prefixes_in_use_are_held_once_and_recent_ones_are_found():
    """Three requests of one prefix of 1,000 tokens and 100 of their own: the first computes 1,100 tokens, the others 100 each."""
    memory = Memory(tokens=3000.0, reserved=10, prefix_tokens=1000.0, kept=1)
    world, waiting, worker = engine_of(memory)
    requests = [Request(i, 100.0, 20, 0, 100.0) for i in range(3)]
    put(world, waiting, worker, requests)
    worker.begin(0)
    world.run()
    assert len(world.end) == 3 and worker.ranks[0].held == 0.0
    alone, waits, other = engine_of(memory)
    put(alone, waits, other, [Request(0, 100.0, 20, 0, 100.0)])
    again = Request(1, 100.0, 20, 0, 100.0)
    put(alone, waits, other, [again], at=100.0)
    alone.run()
    assert alone.first[1] - 100.0 < alone.first[0]


def test_transfers_share_links():
    """Two of 10 bytes over one link of 1 byte/s end at 20 s, together; over two links each at 10 s."""
    for side, end in ((1.0, 20.0), (2.0, 10.0)):
        world, arrived = World(), {}
        links = Links(
            world,
            1.0,
            1.0,
            side,
            lambda request, world=world, arrived=arrived: arrived.setdefault(request.number, world.now),
        )
        for number in (0, 1):
            world.at(0.0, lambda number=number, links=links: links.send(Request(number, 1.0, 2), 10.0))
        world.run()
        assert arrived == pytest.approx({0: end, 1: end})


def test_popular_prefixes_are_drawn_more_often():
    counts = np.bincount(popular(10, 1.0, 20_000, 3), minlength=10)
    assert counts[0] / counts[9] == pytest.approx(10.0, rel=0.2)


@pytest.mark.parametrize("place", [1, 6, 21, 24, 30, 43, 50])
def test_closed_forms_agree_with_the_simulation(place):
    """One pool, attention ranks, stages, two pools and prefixes at half load and more."""
    case = list(cases())[place]
    found, most = errors(case, 6000), limits()
    assert {name: error for name, error in found.items() if abs(error) > most[name]} == {}, str(case)
