"""All-reduce by algorithm: message by message, where the choice turns, and the slowest of many delays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.network.algorithms import ALGORITHMS, all_reduce_times_s, chosen_algorithm, latency_share, slowest_s
from models.network.collectives import all_reduce_s


@given(size=st.floats(1, 1e10), power=st.integers(1, 12), rate=st.floats(1e9, 1e12), step=st.floats(1e-8, 1e-4))
def test_times_are_the_sum_of_their_messages(size, power, rate, step):
    g = 2**power
    ring, tree, switch = all_reduce_times_s(size, g, rate, step)
    messages = [size / g] * (2 * (g - 1))
    assert ring == pytest.approx(sum(step + part / rate for part in messages[:4]) / len(messages[:4]) * len(messages))
    assert tree == pytest.approx(2 * power * step + 2 * size / rate)
    assert switch == pytest.approx(2 * step + size / rate)
    assert float(all_reduce_times_s(size, g, rate, 0.0)[0]) == pytest.approx(float(all_reduce_s(size, g, rate)))


@given(power=st.integers(2, 12), rate=st.floats(1e9, 1e12), step=st.floats(1e-8, 1e-4))
def test_the_choice_turns_at_the_stated_size(power, rate, step):
    g = 2**power
    turn = step * rate * g * (g - 1 - power)
    below, above = (ALGORITHMS[int(chosen_algorithm(turn * factor, g, rate, step)[0])] for factor in (0.99, 1.01))
    assert (below, above) == ("tree", "ring")
    assert ALGORITHMS[int(chosen_algorithm(turn, g, rate, step, in_network=True)[0])] == "in network"


@given(size=st.floats(1, 1e9), step=st.floats(1e-8, 1e-4))
def test_waiting_falls_with_size_and_grows_with_latency(size, step):
    share = float(latency_share(size, 8, 50e9, step))
    assert 0.0 <= share <= 1.0
    assert float(latency_share(size * 100, 8, 50e9, step)) <= share + 1e-12
    assert float(latency_share(size, 8, 50e9, 0.0)) == 0.0
    assert chosen_algorithm(size, 1, 50e9, step)[1] == 0.0


def test_arrays_keep_their_shape():
    place, seconds = chosen_algorithm(np.array([[1e3], [1e9]]), np.array([8, 64, 512]), 50e9, 1e-6)
    assert place.shape == seconds.shape == (2, 3)
    assert latency_share(np.array([[1e3], [1e9]]), np.array([8, 64, 512]), 50e9, 1e-6).shape == (2, 3)


@pytest.mark.parametrize("ranks", [1, 2, 8, 512])
def test_the_slowest_of_many_equals_a_simulation(ranks):
    drawn = np.random.default_rng(5).exponential(1.0, (20000, ranks)).max(axis=1)
    assert float(slowest_s(1.0, ranks)) == pytest.approx(drawn.mean(), rel=0.03)
    assert float(slowest_s(1.0, ranks)) == pytest.approx(sum(1 / i for i in range(1, ranks + 1)), rel=2e-3)
