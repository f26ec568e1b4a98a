"""The closed form of a rollout against an event simulation: time of the last response, and of a replica's last."""

import numpy as np
import pytest

from models.reinforcement.lengths import ResponseLengths, longer_share
from models.reinforcement.rollout import Batch, Turns, rollout
from tests.conftest import long_run
from tests.models.reinforcement.rollout_simulation import simulate

WITHIN = 0.10
SEEDS = 24  # the last of 256 responses varies by 20 % from batch to batch


def step_s(batch, context):
    """A decode step as engines have it: a fixed part, one for each response, and one for its context."""
    return 0.01 + 2e-4 * batch + 2e-8 * batch * context


def cost(batch, context):
    seconds = step_s(batch, context)
    return seconds, {"all": seconds}


def compared(batch, replicas, slots):
    """Return (predicted, simulated) completion and busy time, and the simulated load of the environment slots."""
    found = rollout(cost, batch, replicas, slots, 0.0)
    runs = 1 if not batch.lengths.cv else SEEDS if batch.lengths.cv >= 1 else SEEDS // 4
    seen = np.mean([simulate(step_s, batch, replicas, slots, seed) for seed in range(runs)], axis=0)
    return (found.completion_s[0], seen[0]), (found.busy_s[0], seen[1]), (found.environment_load[0], seen[2])


@pytest.mark.parametrize(
    "shape",
    [(256, 4, 64), (256, 8, 8), *(pytest.param(shape, marks=long_run) for shape in ((256, 4, 32), (512, 2, 32)))],
    ids="{0[0]}x{0[1]}x{0[2]}".format,
)
@pytest.mark.parametrize(
    "lengths",
    [(1.0, 100, 1000), (0.5, 150, 500), (1.5, 100, 2000), (1.0, 200, 250), (0.0, 100, 200), (0.5, 100, 800, 0.01)],
    ids=str,
)
def test_the_tail_of_single_turns(shape, lengths):
    responses, replicas, slots = shape
    cv, mean, *limit = lengths
    completion, busy, _ = compared(Batch(responses, 100.0, ResponseLengths(mean, cv, *limit)), replicas, slots)
    assert completion[0] == pytest.approx(completion[1], rel=WITHIN)
    assert busy[0] == pytest.approx(busy[1], rel=WITHIN)


def last_of_all(lengths, count):
    """The mean of the largest of `count` lengths, in tokens: the integral of 1 - (1 - S)^count, over 400,000 points."""
    edges = np.linspace(0.0, lengths.limit_tokens, 400_001)
    share = np.asarray(longer_share(lengths, 0.5 * (edges[1:] + edges[:-1])))
    return float(-np.expm1(count * np.log1p(-np.minimum(share, 1.0 - 1e-16))).mean() * lengths.limit_tokens)


@pytest.mark.parametrize("ratio", [10, 66, 300, 2000])
@pytest.mark.parametrize("cv", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("endless", [0.0, 0.01])
def test_the_longest_response_of_a_batch_at_a_far_limit(ratio, cv, endless):
    """All start at once and every step takes as long: the batch ends with the largest of 4,096 lengths, wherever the limit lies."""
    lengths = ResponseLengths(200.0, cv, 200.0 * ratio, endless)
    found = rollout(
        lambda batch, context: (0.01 + 0.0 * batch, {}), Batch(4096, 100.0, lengths), [16.0], [256.0], [0.0]
    )
    assert found.completion_s[0] == pytest.approx(0.01 * last_of_all(lengths, 4096), rel=0.02)


@pytest.mark.parametrize("cv", [0.5, 1.0])
def test_a_limit_that_no_response_reaches_changes_nothing(cv):
    """In waves too: gamma lengths of mean 200 end before 66 times that, so that a limit twenty times as far bounds nothing."""
    times = [
        rollout(cost, Batch(4096, 100.0, ResponseLengths(200.0, cv, 200.0 * ratio)), [16.0], [32.0], [0.0])
        for ratio in (66, 1320)
    ]
    assert times[1].completion_s[0] == pytest.approx(times[0].completion_s[0], rel=0.01)
    assert times[1].busy_s[0] == pytest.approx(times[0].busy_s[0], rel=0.01)
    assert times[1].flow_s[0] == pytest.approx(times[0].flow_s[0], rel=1e-6)


@pytest.mark.parametrize("lengths", [(1.0, 100, 1000), (0.5, 150, 500)], ids=str)
@pytest.mark.parametrize(
    "turns", [(0.5, 0.0, np.inf), (0.2, 0.5, 80), (0.2, 0.5, 40), (0.1, 1.0, 120), (0.1, 1.0, 80)], ids=str
)
def test_turns_with_tools_up_to_a_load_of_85_percent(turns, lengths):
    think, service, slots = turns
    cv, mean, limit = lengths
    batch = Batch(256, 100.0, ResponseLengths(mean, cv, limit), Turns(5, think, 1.0, service, 1.0, slots))
    completion, busy, load = compared(batch, 2, 32)
    assert load[1] < 0.9
    assert load[0] == pytest.approx(load[1], abs=0.06)
    assert completion[0] == pytest.approx(completion[1], rel=WITHIN)
    assert busy[0] == pytest.approx(busy[1], rel=WITHIN)


def test_throughput_of_slots_that_never_run_empty():
    """The flow is what a rollout of very many batches takes per batch."""
    lengths = ResponseLengths(100.0, 1.0, 600.0)
    batch, replicas, slots, repeats = Batch(64, 100.0, lengths), 2, 16, 40
    found = rollout(cost, batch, replicas, slots, 0.0, ahead=10.0)
    long = Batch(64 * repeats, 100.0, lengths)
    seen = np.mean([simulate(step_s, long, replicas, slots, seed)[0] for seed in range(3)])
    assert found.flow_s[0] * repeats == pytest.approx(seen, rel=WITHIN)
