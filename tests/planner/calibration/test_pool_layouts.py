"""Layouts of prefill and decode workers in the spellings in which they are published."""

from types import SimpleNamespace

import pytest

from planner.calibration.measurements import Unpredictable
from planner.calibration.pool_layouts import pools_of


def fake(other, notes, tp):
    return SimpleNamespace(text={"other_metric": other, "notes": notes}, count=lambda name: int(tp or 0))


@pytest.mark.parametrize(("told", "tp", "prefill", "decode"), [
    ("prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode 1x(tp8 pp1 dp8 moetp1 ep8)", "", (2, 4, 1), (1, 8, 8)),
    ("prefill 1x(tp8); decode 3x(tp4 dp2)", "", (1, 8, 1), (3, 4, 2)),
    ("P1D3, each worker TP2", "", (1, 2, 1), (3, 2, 1)), ("1P1D, TP8 each, RoCE", "", (1, 8, 1), (1, 8, 1)),
    ("1P3D TP4 + TP8", "", (1, 4, 1), (3, 8, 1)), ("2P4D; request_rate=2/s", "2", (2, 2, 1), (4, 2, 1)),
    ("1 prefill worker on 8 GPUs + 2 decode workers on 16 GPUs", "", (1, 8, 1), (2, 8, 1)),
])  # fmt: skip
def test_every_published_spelling_is_read(told, tp, prefill, decode):
    found = pools_of(fake(told, "", tp)), pools_of(fake("", told, tp))  # in either column
    for pools in found:
        assert [(pool.workers, pool.layout["tp"], pool.layout["dp"]) for pool in pools] == [prefill, decode]


def test_no_layout_is_no_guess():
    with pytest.raises(Unpredictable, match="no layout"):
        pools_of(fake("peak over P+D GPUs", "", ""))
    with pytest.raises(Unpredictable, match="no layout"):
        pools_of(fake("2P2D", "", ""))
