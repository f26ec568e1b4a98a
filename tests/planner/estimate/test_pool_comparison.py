"""Whether separate pools pay is said with the gain as a share, above 200 % as a factor."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from planner.estimate.pool_comparison import _verdict


def configuration(requests_per_s: float, meets: bool = True) -> SimpleNamespace:
    return SimpleNamespace(requests_per_s=requests_per_s, meets=meets, latency=lambda metric, percentile: 0.1)


@pytest.mark.parametrize(
    ("two", "said"),
    [
        (120.0, "it pays: 120 requests/s with separate pools, 100 with one, on the same chips (+20%; TTFT 100 against 100 ms"),
        (450.0, "(4.5 times as much; TTFT"),
        (60.0, "it does not pay: 60 requests/s with separate pools, 100 with one, on the same chips (-40%;"),
        (100.1, "it makes no difference: "),
    ],
)  # fmt: skip
def test_a_gain_above_200_percent_is_a_factor(two, said):
    assert said in _verdict(SimpleNamespace(kind="max"), configuration(100.0), configuration(two), alike=True)


def test_who_alone_meets_the_limits_is_named():
    load, good, bad = SimpleNamespace(kind="max"), configuration(100.0), configuration(90.0, meets=False)
    assert "it pays: only separate pools meet the limits" in _verdict(load, bad, good, alike=True)
    assert "it does not pay: only one pool meets the limits" in _verdict(load, good, bad, alike=True)
