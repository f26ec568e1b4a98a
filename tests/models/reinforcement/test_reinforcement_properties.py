"""What must hold of an iteration of reinforcement learning, whatever the figures."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.reinforcement.iteration import ASYNCHRONOUS, COLOCATED, STREAMING, SYNCHRONOUS, WAYS, Phases, iteration
from models.reinforcement.lengths import ResponseLengths, courses, longer_share, running_age, uncut_mean_tokens
from models.reinforcement.rollout import Batch, Turns, rollout
from models.reinforcement.synchronise import Sharding, Side, Software, Weights, synchronise_s

MEANS = st.floats(50.0, 4000.0)
CVS = st.sampled_from([0.0, 0.3, 0.7, 1.0, 1.5])
LENGTHS = st.builds(
    lambda mean, cv, room, endless: ResponseLengths(mean, cv, mean * room, endless),
    MEANS,
    CVS,
    st.floats(1.0, 20.0),
    st.sampled_from([0.0, 0.01, 0.2]),
)
SECONDS = st.floats(0.01, 1000.0)
TOL = 1e-9


def cost(batch, context):
    seconds = 0.01 + 2e-4 * batch + 2e-8 * batch * context
    return seconds, {"all": seconds}


def rolled(responses, lengths, replicas=4.0, slots=32.0, turns=None, ahead=0.0):
    return rollout(cost, Batch(responses, 200.0, lengths, turns), replicas, slots, 0.0, ahead)


@given(LENGTHS)
def test_the_mean_of_the_lengths_is_the_one_stated(lengths):
    n = (np.arange(4000) + 0.5) / 4000 * lengths.limit_tokens
    mean = float(np.mean(longer_share(lengths, n))) * lengths.limit_tokens
    assert mean == pytest.approx(lengths.mean_tokens, rel=8e-3)  # lengths on a grid of 4,000
    assert uncut_mean_tokens(lengths) >= lengths.ending_mean_tokens * (1 - 1e-6)
    assert 0.45 * lengths.mean_tokens <= running_age(lengths) <= lengths.limit_tokens


@given(LENGTHS, st.floats(0.1, 30.0))
def test_steps_and_the_tail_make_all_tokens(lengths, waves):
    """Slots are taken for as many steps as their responses have tokens."""
    course = courses(lengths, waves)
    taken = course.full_steps[0] + course.running[0] @ course.node_steps[0]
    assert taken == pytest.approx(max(waves, 1.0) * lengths.mean_tokens, rel=0.06)


@given(LENGTHS, st.integers(1, 4000), st.floats(1.05, 3.0))
def test_more_responses_never_take_less_time(lengths, responses, more):
    few, many = rolled(float(responses), lengths), rolled(responses * more, lengths)
    assert many.completion_s[0] >= few.completion_s[0] * (1 - 0.01)  # lengths lie on a grid
    assert many.flow_s[0] >= few.flow_s[0] * (1 - TOL)


@given(LENGTHS, st.integers(8, 4000))
def test_waits_never_shorten_a_rollout_and_slots_for_environments_never_lengthen_it(lengths, responses):
    turns = Turns(4.0, think_s=1.0, service_s=2.0, slots=40.0)
    plain, waiting, scarce = (
        rolled(responses, lengths, turns=some)
        for some in (None, Turns(4.0, think_s=1.0, service_s=2.0, slots=400.0), turns)
    )
    assert plain.completion_s[0] <= waiting.completion_s[0] * (1 + 1e-6)
    assert waiting.completion_s[0] <= scarce.completion_s[0] * (1 + 1e-6)
    assert scarce.environment_load[0] <= 1.0


@given(LENGTHS, st.integers(8, 4000), SECONDS, SECONDS, SECONDS, st.integers(1, 32), st.booleans())
def test_a_staleness_of_zero_is_synchronous_and_more_is_never_slower(
    lengths, responses, scoring, update, sync, parts, partial
):
    phases = Phases(rolled(responses, lengths), scoring, update, sync, 0.0, 1.0, parts)
    synchronous = iteration(SYNCHRONOUS, phases).iteration_s[0]
    times = [iteration(ASYNCHRONOUS, phases, k, partial).iteration_s[0] for k in (0.0, 0.25, 0.5, 1.0, 2.0, 8.0)]
    assert times[0] == pytest.approx(synchronous, rel=TOL)
    assert all(later <= sooner * (1 + TOL) for sooner, later in itertools.pairwise(times))
    streamed = iteration(STREAMING, phases).iteration_s[0]
    assert times[-1] * (1 - TOL) <= streamed <= synchronous * (1 + TOL)
    assert iteration(COLOCATED, phases).iteration_s[0] == pytest.approx(synchronous, rel=TOL)


@given(LENGTHS, st.integers(8, 4000), SECONDS, SECONDS)
def test_free_synchronisation_reaches_the_slower_pool(lengths, responses, scoring, update):
    found = rolled(responses, lengths, ahead=8.0)
    side = Side(8, 8, np.inf, np.inf, np.inf)
    free = synchronise_s(Weights(16e9, 16e9), Sharding(8), side, side, Software(np.inf, 0.0, 0.0))
    times = iteration(ASYNCHRONOUS, Phases(found, scoring, update, free), 8.0, True).iteration_s[0]
    assert times == pytest.approx(max(min(found.flow_s[0], found.completion_s[0]), scoring + update), rel=TOL)


@given(
    LENGTHS,
    st.integers(8, 4000),
    SECONDS,
    SECONDS,
    SECONDS,
    st.sampled_from(WAYS),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
)
def test_parts_cover_the_iteration_and_idle_shares_are_shares(lengths, responses, scoring, update, sync, way, k):
    found = iteration(way, Phases(rolled(responses, lengths), scoring, update, sync, 2.0, 0.5, 4), k)
    assert sum(part[0] for part in found.parts.values()) >= found.iteration_s[0] * (1 - TOL)
    for idle in (found.rollout_idle[0], found.update_idle[0]):
        assert -TOL <= idle <= 1.0


def test_layouts_are_evaluated_as_alone():
    lengths, batch = ResponseLengths(300.0, 1.0, 3000.0), 512.0
    together = rolled(batch, lengths, np.array([1.0, 4.0, 16.0]), np.array([8.0, 64.0, 256.0]))
    for i, (replicas, slots) in enumerate(((1.0, 8.0), (4.0, 64.0), (16.0, 256.0))):
        alone = rolled(batch, lengths, replicas, slots)
        assert together.completion_s[i] == pytest.approx(alone.completion_s[0], rel=TOL)
        assert together.flow_s[i] == pytest.approx(alone.flow_s[0], rel=TOL)


def test_responses_that_are_given_leave_scoring_and_update():
    found = iteration(COLOCATED, Phases(None, 2.0, 6.0, 0.0))
    assert found.iteration_s[0] == 8.0 and found.parts["generation"][0] == 0.0


def test_lengths_beyond_their_limit_are_refused():
    with pytest.raises(ValueError, match="within the limit"):
        ResponseLengths(500.0, 1.0, 400.0)
