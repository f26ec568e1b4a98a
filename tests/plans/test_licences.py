"""Licences and support are due wherever a chip is held, unless the price of its offer includes them."""

from __future__ import annotations

import pytest

from tests.plans.one_server import SYSTEM, cost_of, question, solved, worth

LICENCE = 4500.0  # list price of NVIDIA AI Enterprise per GPU and year
WITH_LICENCES = {"software_per_chip": f"{LICENCE} USD/year"}
YEARS = 3
RENT = {"system": SYSTEM, "how": "on_demand", "price": "15 USD/h"}
BUY = {"system": SYSTEM, "how": "buy", "price": "300000 USD"}
OWN_BUILDING = {"regions/us-virginia/construction_cost": {"value": "11.7 USD/W", "note": "as the default"}}
RENT_PAID = 15 * 8760 * worth(YEARS)


def asked(*offers, **changes):
    return question(offers=list(offers), overrides=OWN_BUILDING, economics=WITH_LICENCES, **changes)


def bought_by_hand():
    """Add up buying one system by the defaults: price less residual value, parts, maintenance, staff, licences, building."""
    price, later, pw = 300_000.0, 1.08**-YEARS, worth(YEARS)
    systems = price * (1 - 0.3 * later)
    annuity = 0.08 / (1 - 1.08**-20)
    building = 11.7 * 1.085 * 10_200 * annuity * pw
    return systems + 0.02 * systems + (0.04 * price + 400 * 10.2 + 1200 + 8 * LICENCE) * pw + building


def test_licences_on_rented_chips_turn_renting_into_buying():
    """By hand: 431,407 USD to rent with licences, 404,421 to buy; without them renting (338,631) would cost less."""
    plan = solved(asked(RENT, BUY))
    assert [row["how"] for row in plan["fleet"]] == ["buy"]
    assert cost_of(plan) == pytest.approx(bought_by_hand(), rel=1e-5)
    assert cost_of(plan) == pytest.approx(404_421, abs=1)


def test_a_rented_chip_pays_its_licence():
    plan = solved(asked(RENT))
    assert plan["costs"]["rent"] == pytest.approx(RENT_PAID)
    assert plan["costs"]["software"] == pytest.approx(8 * LICENCE * worth(YEARS))
    assert cost_of(plan) == pytest.approx(431_407, abs=1)


@pytest.mark.parametrize("how", ["on_demand", "buy"])
def test_an_offer_may_include_them(how):
    offer = {**(RENT if how == "on_demand" else BUY), "includes": ["software"]}
    plan = solved(asked(offer))
    assert "software" not in plan["costs"]
    if how == "on_demand":
        assert cost_of(plan) == pytest.approx(RENT_PAID)
    else:
        assert cost_of(plan) == pytest.approx(bought_by_hand() - 8 * LICENCE * worth(YEARS))


def test_phases_pay_the_licences_of_rents_as_they_fall_due():
    phases = [{"name": "a", "start": "0 d", "budget": "9M USD"}, {"name": "b", "start": "2 years"}]
    plan = solved(asked({**RENT, "how": "reserved"}, phases=phases))
    yearly = 15 * 8760 + 8 * LICENCE
    first, second = plan["phases"]
    assert first["paid"] == pytest.approx(2 * yearly)
    assert second["paid"] == pytest.approx(yearly)
