"""Wait at one server with a finite source, against the chain of births and deaths solved as linear equations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.queueing.finite_source import finite_source_wait


def balance(customers: int, service_s: float, think_s: float) -> np.ndarray:
    """Shares of time with 0, 1, ... customers at the server, from the balance equations."""
    rates = np.zeros((customers + 1, customers + 1))
    for k in range(customers):
        rates[k, k + 1] = (customers - k) / think_s
        rates[k + 1, k] = 1.0 / service_s
    rates -= np.diag(rates.sum(axis=1))
    left, right = np.vstack([rates.T, np.ones(customers + 1)]), np.append(np.zeros(customers + 1), 1.0)
    return np.linalg.lstsq(left, right, rcond=None)[0]


@given(st.integers(2, 12), st.floats(0.05, 20.0))
def test_arrivals_see_the_others_as_a_loop_of_one_customer_less(customers: int, think_s: float):
    """Of exponential service: k found make a wait of k services, Erlang distributed."""
    seen, k = balance(customers - 1, 1.0, think_s), np.arange(customers)
    chance, scv = finite_source_wait(customers, 1.0, think_s, service_scv=1.0)
    assert float(chance) == pytest.approx(1.0 - seen[0], abs=1e-9)
    wait, square = seen @ k / chance, seen @ (k * (k + 1)) / chance
    assert float(scv) == pytest.approx(square / wait**2 - 1.0, rel=1e-6)


def test_the_ends():
    assert finite_source_wait(1, 1.0, 5.0) == (0.0, 1.0)
    chance, scv = finite_source_wait(np.array([50.0, 50.0]), 1.0, np.array([1e-3, 1e9]))
    assert chance[0] == pytest.approx(1.0) and chance[1] < 1e-6
    assert scv[0] < 0.03 and scv[1] == pytest.approx(1.0 / 3.0, abs=1e-3)
    assert np.all(np.isfinite(finite_source_wait(np.array([4.0, np.nan]), np.inf, 1.0)[0]))
