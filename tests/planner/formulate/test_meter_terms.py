"""Terms of meters against numbers derived by hand: two years without discount, from the grid at 0.10 USD/kWh and 500 g/kWh."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.units import HOUR_S, YEAR_S
from planner.formulate.costs import slot_rates
from planner.formulate.electricity import meter_terms
from planner.money.components import CONTRACT, GRID, PEAK, POWER, STORE, TAKEN
from planner.money.terms import CARBON, COST, ENERGY, coefficients, in_phase, purchases
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

KWH_J, KW = 3.6e6, 1e3
BLOCK = {
    "demand_charge": "15 USD/kW-month",
    "ppa": [
        {"name": "base", "capacity": "5 kW", "price": "0.03 USD/kWh", "profile": "flat", "pays": "taken", "carbon": "10 g/kWh"},
        {"name": "plant", "capacity": "5 kW", "price": "0.02 USD/kWh", "profile": "flat", "pays": "produced"},
    ],
    "battery": {"energy": "200 kWh", "power": "50 kW", "energy_price": "60 USD/kWh", "power_price": "20 USD/kW", "life": "1 year"},
}  # fmt: skip


def resolved(tiny, block):
    spec = tiny(
        horizon={"years": 2, "discount_rate": 0.0},
        phases=[{"name": "one", "start": "0 years"}, {"name": "two", "start": "1 year"}],
    )
    spec["sites"][0] |= {"electricity_price": "0.10 USD/kWh", "electricity": block}
    return resolve(parse_spec(spec))


@pytest.fixture(scope="module")
def problem(tiny):
    return resolved(tiny, BLOCK)


@pytest.fixture(scope="module")
def terms(problem):
    return meter_terms(problem, slot_rates(problem))


def of(terms, functional, decision, *shape):
    """Add up the coefficients over the slots, if there are any."""
    found = coefficients([t for t in terms if t.functional == functional], decision, shape)
    return found.sum(axis=1) if len(shape) == 2 else found


def test_a_watt_from_the_grid_costs_its_price_and_counts_its_energy(problem, terms):
    slots = problem.calendar.slots
    assert of(terms, COST, GRID, 1, slots) == pytest.approx([0.10 * 2 * 8760 / KW])
    assert of(terms, ENERGY, GRID, 1, slots) == pytest.approx([2 * YEAR_S])
    kg = float(problem.sites[0].carbon_kg_per_j[problem.calendar.hour] @ problem.calendar.seconds)
    assert of(terms, CARBON, GRID, 1, slots) == pytest.approx([kg])


def test_the_peaks_of_all_months_cost_the_charge_of_each_month(problem, terms):
    peaks = sum(len(term.at) for term in terms if term.decision == PEAK)
    assert of(terms, COST, PEAK, peaks).sum() == pytest.approx(15 * 24 / KW)
    for p in (0, 1):
        assert of(in_phase(terms, p), COST, PEAK, peaks).sum() == pytest.approx(15 * 12 / KW)


def test_a_contract_is_paid_for_what_is_taken_or_for_what_is_produced(problem, terms):
    slots, hours = problem.calendar.slots, 2 * YEAR_S / HOUR_S
    assert of(terms, COST, TAKEN, 2, slots) == pytest.approx([0.03 * hours / KW, 0.0])
    assert of(terms, COST, CONTRACT, 2) == pytest.approx([0.0, 0.02 * hours / KW])
    assert of(terms, CARBON, TAKEN, 2, slots)[0] == pytest.approx(0.010 * hours / KW)
    assert of(terms, ENERGY, TAKEN, 2, slots) == pytest.approx([2 * YEAR_S] * 2)
    assert of(in_phase(terms, 1), COST, CONTRACT, 2) == pytest.approx([0.0, 0.02 * hours / 2 / KW])


def test_a_battery_is_bought_at_first_and_again_after_its_life(terms):
    assert of(purchases(terms), COST, STORE, 1) == pytest.approx([60 / KWH_J])
    assert of(purchases(terms), COST, POWER, 1) == pytest.approx([20 / KW])
    assert of(terms, COST, STORE, 1) == pytest.approx([2 * 60 / KWH_J])
    for p in (0, 1):
        assert of(in_phase(terms, p), COST, POWER, 1) == pytest.approx([20 / KW])


def test_a_battery_that_lasts_is_bought_once(tiny):
    lasting = resolved(tiny, BLOCK | {"battery": BLOCK["battery"] | {"life": "5 years"}})
    terms = meter_terms(lasting, slot_rates(lasting))
    paid = [of(in_phase(terms, p), COST, STORE, 1)[0] for p in (0, 1)]
    assert paid == pytest.approx([60 / KWH_J, 0.0])


def test_a_site_without_a_meter_has_no_such_terms(tiny):
    plain = resolve(parse_spec(tiny()))
    assert meter_terms(plain, slot_rates(plain)) == []
    assert np.isfinite(slot_rates(plain).cost_per_w).all()
