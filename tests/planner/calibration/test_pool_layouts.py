"""Layouts of prefill and decode workers in the spellings in which they are published."""

from types import SimpleNamespace

import pytest

from planner.calibration.measurements import Unpredictable
from planner.calibration.pool_layouts import pools_of


def fake(other, notes, tp, chips=32.0):
    text = {"other_metric": other, "notes": notes}
    return SimpleNamespace(text=text, count=lambda name: int(tp or 0), required=lambda name: chips)


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


@pytest.mark.parametrize(("told", "chips", "prefill", "decode"), [
    # 4 nodes of 16 dies: a worker of 32 spans both nodes of its pool, of 16 there are two
    ("P/D: prefill 2 nodes (tp8 dp4, tp8 dp4); decode 2 nodes (tp4 dp8, tp4 dp8)", 32, (1, 8, 4), (1, 4, 8)),
    ("P/D: prefill 2 nodes (tp8 dp2, tp8 dp2); decode 2 nodes (tp1 dp32, tp1 dp32)", 32, (2, 8, 2), (1, 1, 32)),
    ("P/D: prefill 1 nodes (tp4 dp4); decode 2 nodes (tp4 dp4, tp4 dp4)", 24, (1, 4, 4), (2, 4, 4)),
    ("P/D per node: P:tp16dp2 | P:tp16dp2 | D:tp4dp8 | D:tp4dp8", 32, (1, 16, 2), (1, 4, 8)),
    ("P/D per node: P:tp8dp2 | D:tp4dp4", 16, (1, 8, 2), (1, 4, 4)),
])  # fmt: skip
def test_layouts_that_nodes_state_are_those_of_workers(told, chips, prefill, decode):
    pools = pools_of(fake(told, f"{2 * chips} dies (2 per 910C); tp/dp count dies", "", chips))
    assert [(pool.workers, pool.layout["tp"], pool.layout["dp"]) for pool in pools] == [prefill, decode]


@pytest.mark.parametrize("told", [
    "P/D: prefill 2 nodes (tp8 dp2, tp4 dp4); decode 1 nodes (tp8 dp2)",  # unlike nodes
    "P/D: prefill 1 nodes (tp8 dp4); decode 1 nodes (tp8 dp2)",  # half a worker
    "P/D: prefill 1 nodes (tp8 dp2)",
])  # fmt: skip
def test_nodes_without_whole_workers_are_no_guess(told):
    with pytest.raises(Unpredictable, match="no layout"):
        pools_of(fake(told, "", "", 32))


def test_no_layout_is_no_guess():
    with pytest.raises(Unpredictable, match="no layout"):
        pools_of(fake("peak over P+D GPUs", "", ""))
    with pytest.raises(Unpredictable, match="no layout"):
        pools_of(fake("2P2D", "", ""))
