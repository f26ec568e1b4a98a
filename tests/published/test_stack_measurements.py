"""Exchanges between experts, hit rates by capacity and moved caches, against published runs beside the project."""

from __future__ import annotations

import pytest

from benchmarks.stack import ALIKE, error, exchanges, hit_rates, in_order, transfers


def folder(measurements):
    found = measurements / "other"
    if not (found / "comm_bandwidth.csv").exists():
        pytest.skip("no tables of collectives beside the measurements")
    return found


def test_exchanges_between_experts_are_within_a_fifth(measurements):
    rows = exchanges(folder(measurements))
    assert len(rows) == 30 and error(rows) <= 0.20


def test_hit_rates_fall_with_the_load_as_measured(measurements):
    rows = hit_rates(folder(measurements))
    right, clear = in_order(rows)
    assert clear > 500 and right >= 0.85
    right, clear = in_order(rows, alike=ALIKE)
    assert clear > 50 and right >= 0.85  # where the runs repeat alike, the room in the cache decides


def test_a_prefill_on_ascend_is_predicted_without_a_cache(measurements):
    rows = {row["case"]: row for row in transfers(folder(measurements))}
    alone = rows["no cache"]
    assert abs(alone["predicted"] / alone["measured"] - 1.0) <= 0.25
    assert (
        rows["KV hit in local DRAM"]["predicted"]
        < rows["KV hit in the other node DRAM over RoCE"]["predicted"]
        < alone["predicted"]
    )
