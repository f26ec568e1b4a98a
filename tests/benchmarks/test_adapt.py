"""The back-test of planning again: rent and weeks kept by hand, and that who knows the world is never dearer at the same promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st


def module() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "benchmark_adapt", Path(__file__).resolve().parents[2] / "benchmarks/adapt.py"
    )
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    __import__("sys").modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


ADAPT = module()


def test_rent_and_weeks_kept_by_hand():
    """Two systems of 10 requests/s at half speed carry 10: one of two halves of the year needs 15."""
    half = ADAPT.WEEKS // 2
    world = ADAPT.World(np.repeat([10.0, 15.0], half), 0.5)
    found = ADAPT.valued(world, 10.0, np.full(ADAPT.WEEKS, 2.0), np.zeros(ADAPT.WEEKS))
    assert found.cost == pytest.approx(52 * 168 * 2 * ADAPT.RESERVED)
    assert found.kept == 0.5 and found.served == pytest.approx(20 / 25)


@given(st.lists(st.floats(1.0, 100.0), min_size=52, max_size=52), st.floats(0.3, 2.0), st.integers(0, 40))
def test_who_knows_the_world_keeps_all_weeks_at_the_least_rent(demand, speed, reserved):
    world = ADAPT.World(np.array(demand), speed)
    best = ADAPT.clairvoyant(world, 10.0)
    assert best.kept == 1.0
    need = np.ceil(world.demand / (10.0 * speed))
    other = ADAPT.valued(world, 10.0, np.full(52, float(reserved)), np.maximum(need - reserved, 0.0))
    assert best.cost <= other.cost * (1 + 1e-12)


def test_on_demand_by_the_week_is_what_the_week_before_lacked():
    """A system carries 5 at half speed: of a demand of 10, then 20, two reserved lack two systems from the week after the step on."""
    world = ADAPT.World(np.repeat([10.0, 20.0], ADAPT.WEEKS // 2), 0.5)
    found = ADAPT.by_last_week(world, 10.0, np.full(ADAPT.WEEKS, 2.0))
    late = ADAPT.WEEKS // 2 - 1
    assert found.cost == pytest.approx(168 * (52 * 2 * ADAPT.RESERVED + late * 2 * ADAPT.ON_DEMAND))
    assert found.kept == pytest.approx(51 / 52)
