"""What owning a system costs, by hand: bought for 1,000 with 200 of network, 300 of building, 40 of staff and 10 of software a year."""

from __future__ import annotations

import numpy as np
import pytest

from planner.money.owning import Purchase, holding_worth, owning, total_worth

BOUGHT = Purchase(
    price=1000.0, fabric=200.0, building=300.0, staff=40.0, software=10.0,
    system=0.7, share=0.9, upkeep=0.15, facility=0.5, spare_parts=0.02, per_year=3.0, staffed=3.3,
    paid=1.0, parts=0.03, maintenance=0.05, levies=0.02, annuity=0.1,
)  # fmt: skip
BY_HAND = {  # present value, on delivery, per year
    "systems": (700.0, 1000.0, 0.0),
    "fabric": (200 * 0.75, 200.0, 0.0),
    "maintenance": (1200 * 0.15, 0.0, 60.0),
    "spare parts": (20.0, 30.0, 0.0),
    "facility": (150.0, 0.0, 30.0),
    "staff": (132.0, 0.0, 40.0),
    "software": (30.0, 0.0, 10.0),
    "levies": (1200 * 0.02 * 3, 0.0, 24.0),
}


def test_each_component_of_owning():
    found = {part.component.key: (part.worth, part.on_delivery, part.per_year) for part in owning(BOUGHT)}
    assert found == {key: pytest.approx(amounts) for key, amounts in BY_HAND.items()}
    assert total_worth(BOUGHT) == pytest.approx(sum(worth for worth, _, _ in BY_HAND.values()))


def test_only_purchases_are_paid_on_delivery():
    assert {part.component.key for part in owning(BOUGHT) if part.component.capital} == {
        key for key, (_, first, _) in BY_HAND.items() if first
    }


def test_many_systems_at_once():
    many = Purchase(*(np.array([value, 2 * value]) for value in BOUGHT.row()))
    for part, (one, delivered, yearly) in zip(owning(many), BY_HAND.values(), strict=True):
        assert [np.asarray(x)[0] for x in (part.worth, part.on_delivery, part.per_year)] == pytest.approx(
            [one, delivered, yearly]
        )


def test_holding_a_system_is_what_is_paid_for_it_and_its_hall_or_rent_by_the_second():
    """300,000 bought, 0.001 per second of hall over 2e7 s: 320,000. Rented for 1e6 s at 0.03 per second: 30,000."""
    assert holding_worth(300_000.0, 0.001, 2e7) == pytest.approx(320_000.0, rel=1e-12)
    assert holding_worth(0.0, 0.03, 1e6) == pytest.approx(30_000.0, rel=1e-12)
