"""Checks of the meter, derived by hand: cycles of a battery, its purchases, contracts and what the grid gives."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from planner.problem.economics import Economics
from planner.verify.electricity import ElectricityCheck, purchases_in, slot_rings
from planner.verify.findings import Report

YEAR_S = 8760 * 3600.0
NS = SimpleNamespace
CALENDAR = NS(
    slots=3, seconds=np.array([100.0, 200.0, 300.0]), discount=np.array([1.0, 0.5, 0.5]), hour=np.arange(3), step_s=np.full(3, 10.0),
    window=np.zeros(3, dtype=int), edges_s=np.array([0.0, 600.0]),
)  # fmt: skip
SITE = NS(
    path="sites[0]", region="a", electricity=NS(), price_per_j=np.array([1.0, 2.0, 3.0]), carbon_kg_per_j=np.array([1.0, 1.0, 2.0])
)  # fmt: skip


def checked():
    check = ElectricityCheck(NS(sites=[SITE], calendar=CALENDAR, economics=Economics(0.0, 1, 5.0, 20.0)), {}, Report())
    check._table = []
    return check


def cycle(stored):
    """What is said of 4 W charged for 10 s at an efficiency of 0.8, 2.56 W given for 10 s, and the stated levels."""
    rows = [
        {"charge_w": charge, "discharge_w": discharge, "stored_j": level}
        for charge, discharge, level in zip((4.0, 0.0, 0.0), (0.0, 0.0, 2.56), stated(stored))
    ]
    check = checked()
    check._check_cycle(SITE, NS(efficiency=0.8), rows, [0, 1, 2], 32.0, 4.0)
    return [finding.message for finding in check.report.found]


def stated(stored):
    return (0.0, stored, stored)


def test_a_cycle_stores_what_its_efficiency_leaves():
    """4 W x 10 s x 0.8 = 32 J, of which 2.56 W x 10 s / 0.8 = 32 J are taken."""
    assert cycle(32.0) == []
    assert cycle(40.0) == [f"says 40.0, computed {32.0!r}"] * 2


def test_a_battery_is_bought_again_after_each_life():
    whole, later = NS(start_s=0.0, end_s=10 * YEAR_S), NS(start_s=5 * YEAR_S, end_s=10 * YEAR_S)
    assert [purchases_in(phase, NS(life_years=4.0), 10 * YEAR_S) for phase in (whole, later)] == [3, 1]


def test_the_grid_is_paid_by_the_hour_and_emits_without_discount():
    check = checked()
    check._add_grid(SITE, [{"grid_w": watts} for watts in (2.0, 8.0, 10.0)], 5.0)
    assert check.costs["energy", "a"] == pytest.approx(2 * 1 * 100 + 8 * 2 * 200 * 0.5 + 10 * 3 * 300 * 0.5)
    assert check.carbon["operation", "a"] == pytest.approx(2 * 100 + 8 * 200 + 10 * 2 * 300)
    assert check.drawn_j == pytest.approx(2 * 100 + 8 * 200 + 10 * 300 + 5.0)


def test_slots_form_rings():
    assert list(slot_rings(np.array([1, 0, 3, 4, 2]))) == [[0, 1], [2, 3, 4]]
