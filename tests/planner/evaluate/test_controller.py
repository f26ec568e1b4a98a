"""Time of the controller in an iteration of reinforcement learning: shared by workers, hidden where the rollout runs ahead."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from models.reinforcement.iteration import ASYNCHRONOUS, SYNCHRONOUS, Phases, iteration
from models.reinforcement.rollout import Rollout
from planner.estimate.case import resolve_case
from planner.evaluate.controller import controller_s

CASE = {
    "workload": {
        "kind": "reinforcement", "architecture": "Qwen3-32B", "prompts": 4096, "samples": 16, "mini_batches": 4,
        "lengths": {"prompt": 300, "response": 3000, "limit": 16384},
    },
    "system": "DGX H100", "chips": 8192,
}  # fmt: skip


def controller(chips, **stated):
    facts = resolve_case({**CASE, "workload": CASE["workload"] | ({"controller": stated} if stated else {})})
    return controller_s(facts.learning, chips, facts.constants.reinforcement), facts.constants.reinforcement


def test_workers_share_the_responses():
    """65,536 responses at 15.8 ms on 1,024 workers: 1.01 s on 8,192 chips, twice that on half of them."""
    found, known = controller(8192)
    assert found == pytest.approx(65536 * known.worker_response_s / 1024)
    assert controller(4096)[0] == pytest.approx(2 * found)


def test_workers_and_their_time_can_be_stated():
    assert controller(8192, workers=1, response="2 ms")[0] == pytest.approx(131.072)
    assert controller(8192, workers=64)[0] == pytest.approx(65536 * controller(8192)[1].worker_response_s / 64)


@example(parts=(1.0, 1.0, 1.0, 1.0), host=7.0, staleness=0.5)
@given(
    parts=st.tuples(*[st.floats(0.1, 100.0)] * 4),
    host=st.floats(0.0, 300.0),
    staleness=st.floats(0.0, 3.0),
)
def test_an_iteration_ahead_is_no_shorter_than_any_of_its_parts_and_no_longer_than_all_in_turns(parts, host, staleness):
    generation, scoring, update, sync = parts
    flat = Rollout(*(np.array([value]) for value in (generation, generation, generation, 1.0, 0.0)), {}, np.array([[0.0, 1.0]]), np.array([[0.0, generation]]))  # fmt: skip
    phases = Phases(flat, scoring, update, sync, host_s=host)
    in_turns = iteration(SYNCHRONOUS, phases).iteration_s[0]
    ahead = iteration(ASYNCHRONOUS, phases, staleness).iteration_s[0]
    assert in_turns == pytest.approx(sum(parts) + host)
    longest = max(generation + sync, scoring + update)
    assert ahead <= in_turns * (1 + 1e-12) and ahead >= longest * (1 - 1e-12)
    if staleness >= 1:
        assert ahead == pytest.approx(max(longest, host))
    assert iteration(ASYNCHRONOUS, phases, staleness + 0.5).iteration_s[0] <= ahead * (1 + 1e-12)
