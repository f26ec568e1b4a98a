"""Properties of failures, checkpoints and spares."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats

from models.training.reliability import (
    best_goodput,
    checkpoint_interval_s,
    checkpoint_write_s,
    goodput,
    mean_time_between_interruptions_s,
    spares_needed,
)

seconds = st.floats(1.0, 1e4)
between = st.floats(1e4, 1e8)
chips = st.integers(1, 100_000)
CHIP_S = 5e4 * 3600


@given(write=seconds, restart=seconds, mean=between)
def test_daly_interval_is_near_the_true_optimum(write, restart, mean):
    found = goodput(checkpoint_interval_s(write, mean), write, restart, mean)
    best = optimize.minimize_scalar(
        lambda t: -goodput(np.exp(t), write, restart, mean), bounds=(np.log(1e-2), np.log(1e10)), method="bounded"
    )
    assert -best.fun * (1 - 5e-3) <= found <= -best.fun * (1 + 1e-6)


@given(n=chips, more=chips, write=seconds, restart=seconds)
def test_more_chips_never_help(n, more, write, restart):
    assert best_goodput(n + more, CHIP_S, write, restart) <= best_goodput(n, CHIP_S, write, restart) * (1 + 1e-9)


@given(n=chips, write=seconds, restart=seconds, worse=st.floats(1.0, 3.0))
def test_longer_writes_and_restarts_never_help(n, write, restart, worse):
    base = best_goodput(n, CHIP_S, write, restart)
    assert best_goodput(n, CHIP_S, write * worse, restart) <= base * (1 + 1e-9)
    assert best_goodput(n, CHIP_S, write, restart * worse) <= base * (1 + 1e-9)
    assert 0 < base < 1


def test_nothing_lost_costs_nothing():
    assert abs(goodput(1.0, 0.0, 0.0, 1e15) - 1.0) < 1e-12
    assert spares_needed(100, 1e30, 1.0, 0.99) == 0


@given(n=st.integers(0, 20_000), repair=st.floats(60.0, 1e6), share=st.floats(0.5, 0.999))
def test_spares_are_the_poisson_quantile(n, repair, share):
    mean = n * repair / 4e7
    assert spares_needed(n, 4e7, repair, share) == max(stats.poisson.ppf(share, mean), 0)


def test_one_number_and_many_take_the_same_path():
    n, write = np.array([1, 8, 4096]), np.array([10.0, 40.0, 300.0])
    for function, arguments in (
        (mean_time_between_interruptions_s, (n, CHIP_S)),
        (checkpoint_interval_s, (write, 1e5)),
        (goodput, (3600.0, write, 600.0, 1e5)),
        (best_goodput, (n, CHIP_S, write, 600.0)),
        (checkpoint_write_s, (n * 1e9, 14.0, 5e10)),
        (spares_needed, (n, 4e7, 86400.0, 0.95)),
    ):
        many = function(*arguments)
        for i in range(3):
            one = function(*(a[i] if isinstance(a, np.ndarray) else a for a in arguments))
            assert one == many[i]
            assert np.ndim(one) == 0
