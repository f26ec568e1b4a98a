"""Sums that the check makes by its own code, derived by hand: energy of a place, payments of a purchase, systems at work."""

from __future__ import annotations

from collections import defaultdict
from types import SimpleNamespace

import numpy as np
import pytest

from planner.problem.economics import Escalation
from planner.verify.fleet.economics import charged
from planner.verify.schedule import _check_installed
from planner.verify.sums import _Adder

NS = SimpleNamespace
PLACE = ("a", "DGX H100", "buy")


def added(electricity):
    """What 4 W add in a slot of 100 s at a discount of one half: 3 per joule of energy in hour 1, risen by a half, where a joule emits 2 kg."""
    site = NS(electricity=electricity, carbon_kg_per_j=np.array([1.0, 2.0]))
    option = NS(owned=True, site=site, drawn_per_j=lambda hour, risen: {"energy": (1.0, 3.0)[hour] * risen})
    sums = NS(lines=defaultdict(float), carbon=defaultdict(float), energy_j=0.0, risen=[1.5])
    _Adder._energy(sums, option, PLACE, 4.0, (0, 0, 1, 100.0, 0.5))
    return sums


def test_energy_costs_its_present_value_and_emits_without_discount():
    sums = added(None)
    assert sums.lines["energy", *PLACE] == pytest.approx(4 * 100 * 3 * 1.5 * 0.5)
    assert sums.carbon["operation", *PLACE] == pytest.approx(4 * 100 * 2)
    assert sums.energy_j == pytest.approx(4 * 100)


def test_what_a_meter_settles_is_not_counted_twice():
    sums = added(NS())
    assert not sums.carbon and sums.energy_j == 0.0


def test_a_purchase_is_its_price_less_what_is_left_at_the_end_of_each_life():
    """Bought for 1 at 0 and 2 years, sold for 0.4 at 2 and at 0.7 (half of the way to 0.4 of two years) after 3, at 10 % a year."""
    residual = NS(ages_years=(2.0,), fractions=(0.4,))
    money = NS(
        discount_rate=0.1, years=3, maintenance=0.05, facility_life_years=15, residual_of=lambda system: residual,
        payments_per_year=1, escalation=Escalation(),
    )  # fmt: skip
    found = charged(money, "DGX H100", 2.0, 0.0, 3.0)
    assert found.price == pytest.approx(1 - 0.4 / 1.1**2 + 1 / 1.1**2 - 0.7 / 1.1**3)


def test_systems_at_work_are_replicas_times_systems_of_each():
    said = []
    row = {
        "site": "a",
        "pools": [{"system": "DGX H100", "how": "buy", "topology": "", "network_size": None, "offer": "offers[0]"}],
    }
    plan = NS(
        problem=NS(calendar=NS(slots=2, window=np.array([0, 0]))), active={"p": [2.0, 5.0]}, points={"p": (row, NS(systems=[3.0]))},
        running=defaultdict(lambda: [15.0, 15.0]), document={"fleet": []}, at_most=lambda where, found, most, what: said.append((where, found, most)),
    )  # fmt: skip
    _check_installed(plan)
    assert said == [("schedule slot 0", 6.0, 15.0), ("schedule slot 1", 15.0, 15.0)]
