"""Prices that rise from year to year, and running costs that are paid each month, against sums by hand."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from catalog.units import YEAR_S
from planner.problem.calendar import build_calendar
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.plans.one_server import NOTHING_ELSE, SYSTEM, cost_of, question, solved, worth
from tests.plans.test_contracts import contracted
from tests.plans.test_price_contents import HOURS, POWER_KW, electricity

RISING = {**NOTHING_ELSE, "staff_per_system": "1000 USD/year", "maintenance": 0.05}
MONTHLY = {"start": "2027-01-01", "years": 3, "discount_rate": 0.08, "payments": "monthly"}
SITE = question()["sites"][0]
PHASES = [{"name": "a", "start": "0 d", "budget": "9M USD"}, {"name": "b", "start": "18 months"}]


def rising(rate: float, years: int = 3, discount: float = 0.08) -> float:
    """Compute the present worth of one unit at the end of each year, which rises by `rate` after each."""
    return sum((1 + rate) ** k * (1 + discount) ** -(k + 1) for k in range(years))


def with_escalation(economics, **rates):
    return {**economics, "escalation": rates}


def metered(**changes):
    """Bill the server at 0.1 USD/kWh and 10 USD per kW and month."""
    return {**SITE, "electricity_price": "0.1 USD/kWh", "electricity": {"demand_charge": "10 USD/kW-month"}, **changes}


@pytest.mark.parametrize(
    ("key", "component", "per_year"), [("staff", "staff", 1000.0), ("maintenance", "maintenance", 15_000.0)]
)
def test_yearly_costs_of_owning_rise(key, component, per_year):
    plan = solved(question(economics=with_escalation(RISING, **{key: 0.1})))
    assert plan["costs"][component] == pytest.approx(per_year * rising(0.1))
    other = "staff" if key == "maintenance" else "maintenance"
    assert plan["costs"][other] == pytest.approx({"staff": 1000.0, "maintenance": 15_000.0}[other] * worth(3))


@pytest.mark.parametrize("site", [{**SITE, "electricity_price": "0.1 USD/kWh"}, metered()])
def test_electricity_rises(site):
    """The same draw in each year, at 1, 1.1 and 1.21 times the price; energy and demand charge alike."""
    flat = solved(question(sites=[site]))
    plan = solved(question(sites=[site], economics=with_escalation(NOTHING_ELSE, electricity=0.1)))
    for component in {"energy", "demand charge"} & set(flat["costs"]):
        assert plan["costs"][component] == pytest.approx(flat["costs"][component] * rising(0.1) / worth(3))
    prices = sorted({round(row["price_per_j"] * 3.6e6, 9) for row in plan["schedule"]})
    assert prices == pytest.approx([0.1, 0.11, 0.121])


def test_rent_of_a_hall_rises():
    site = {**SITE, "colocation": "150 USD/kW-month"}
    flat = solved(question(sites=[site], overrides={}))["costs"]["colocation"]
    plan = solved(question(sites=[site], economics=with_escalation(NOTHING_ELSE, rent=0.03), overrides={}))
    assert plan["costs"]["colocation"] == pytest.approx(flat * rising(0.03) / worth(3))


@pytest.mark.parametrize(
    ("how", "stated", "factor"),
    [("on_demand", {}, 1.03), ("on_demand", {"price_change_per_year": -0.2}, 1.0), ("reserved", {}, 1.0)],
)
def test_rent_of_systems_without_a_commitment_rises(how, stated, factor):
    """A commitment keeps its price, and an offer that states its own change follows that."""
    offers = [{"system": SYSTEM, "how": how, "price": "15 USD/h", **stated}]
    flat = solved(question(offers=offers))["costs"]["rent"]
    plan = solved(question(offers=offers, economics=with_escalation(NOTHING_ELSE, rent=0.03)))
    if stated:
        assert plan["costs"]["rent"] == pytest.approx(flat * rising(-0.2) / worth(3))
    else:
        assert plan["costs"]["rent"] == pytest.approx(flat * rising(factor - 1) / worth(3))


def test_zero_escalation_changes_nothing():
    site = metered(colocation="150 USD/kW-month")
    plain = solved(question(sites=[site], economics=RISING, phases=PHASES, overrides={}))
    zero = {"electricity": 0, "staff": 0, "rent": 0, "maintenance": 0}
    same = solved(question(sites=[site], economics=with_escalation(RISING, **zero), phases=PHASES, overrides={}))
    assert same["costs"] == plain["costs"]
    assert same["phases"] == plain["phases"]
    assert same["schedule"] == plain["schedule"]


def test_phases_pay_what_prices_have_risen_to():
    """18 months of the old staff price and of the next half year's; then half a year at 1.1 and a year at 1.21."""
    economics = with_escalation({**NOTHING_ELSE, "staff_per_system": "1000 USD/year"}, staff=0.1)
    plan, flat = (
        solved(question(economics=each, phases=PHASES)) for each in (economics, {**economics, "escalation": {}})
    )
    more = [a["paid"] - b["paid"] for a, b in zip(plan["phases"], flat["phases"], strict=True)]
    assert more == pytest.approx([1000 * 0.5 * 0.1, 1000 * (0.5 * 0.1 + 0.21)], abs=1)
    assert sum(row["cost"] for row in plan["phases"]) == pytest.approx(cost_of(plan))


def test_everything_at_once_is_checked():
    rates = {"electricity": 0.04, "staff": 0.03, "rent": 0.02, "maintenance": 0.05}
    site = metered(colocation="150 USD/kW-month")
    plan = solved(
        question(sites=[site], economics=with_escalation(RISING, **rates), phases=PHASES, horizon=MONTHLY, overrides={})
    )
    for component in ("staff", "maintenance", "energy", "demand charge", "colocation"):
        broken = copy.deepcopy(plan)
        broken["costs"][component] *= 1.001
        assert verify_plan(broken)


def paid_monthly(years: int = 3, rate: float = 0.08) -> float:
    """Compute the present worth of a twelfth of a unit at the end of each month."""
    return sum((1 + rate) ** (-(k + 1) / 12) / 12 for k in range(12 * years))


@pytest.mark.parametrize("stands_for", [None, np.arange(365), np.arange(365) // 91 * 91])
@pytest.mark.parametrize(("payments", "years"), [(1, 3), (4, 1), (12, 3)])
def test_slots_are_worth_what_is_paid_at_the_end_of_each_part_of_the_year(stands_for, payments, years):
    """On a typical day, in all hours and on five days: equal parts over the horizon, and over each window."""
    borders = [10 * 86400.0, 200 * 86400.0]
    calendar = build_calendar(years, 0.08, borders, stands_for=stands_for, payments_per_year=payments)
    by_hand = sum(1.08 ** (-(k + 1) / payments) / payments for k in range(years * payments))
    assert calendar.seconds @ calendar.discount / YEAR_S == pytest.approx(by_hand, rel=1e-9)
    for w, (seconds, each) in enumerate(zip(calendar.window_seconds(), calendar.window_discount(), strict=True)):
        inside = calendar.window == w
        assert calendar.seconds[inside] @ calendar.discount[inside] == pytest.approx(seconds * each, rel=1e-9)


@pytest.mark.parametrize("calendar", [{}, {"calendar": "sampled-days", "days": 2, "years": 1}])
def test_monthly_payments(calendar):
    """Staff, maintenance, energy and demand charges a twelfth at the end of each month; the purchase on delivery as ever."""
    horizon = {**MONTHLY, **calendar}
    document = question(sites=[metered()], economics=RISING, horizon=horizon)
    monthly, yearly = solved(document), solved({**document, "horizon": {**horizon, "payments": "yearly"}})
    years = horizon["years"]
    assert monthly["costs"]["staff"] == pytest.approx(1000 * paid_monthly(years))
    for component in ("maintenance", "energy", "demand charge"):
        moved = monthly["costs"][component] / yearly["costs"][component]
        assert moved == pytest.approx(
            paid_monthly(years) / worth(years), rel=1e-9 if not calendar and component != "demand charge" else 2e-3
        )
    assert monthly["costs"]["systems"] == pytest.approx(yearly["costs"]["systems"])


def test_a_building_costs_the_same_by_any_payments():
    """What repays it over its life is paid in as many parts, so that its present value over whole years stays."""
    document = question(overrides={})
    yearly, monthly = (solved({**document, "horizon": {**MONTHLY, "payments": each}}) for each in ("yearly", "monthly"))
    assert monthly["costs"]["facility"] == pytest.approx(yearly["costs"]["facility"])


def test_what_is_stated_stands_among_the_assumptions():
    economics = with_escalation(NOTHING_ELSE, electricity=0.02)
    problem = resolve_document(question(economics=economics, horizon=MONTHLY))
    stated = {row.path: row.value for row in problem.assumptions}
    assert stated["economics.escalation.electricity"] == 0.02
    assert stated["horizon.payments"] == "monthly"
    assert "economics.escalation.staff" not in stated


def test_a_contract_keeps_its_price_while_delivery_and_the_market_rise():
    """Over the grid 0.03 USD/kWh throughout and 0.02 of delivery that rises; a financial one settles against a market that rises."""
    over_grid = contracted(capacity="10.455 kW", price="0.03 USD/kWh")
    financial = contracted(kind="financial", price="0.03 USD/kWh")
    found = []
    for document in (over_grid, financial):
        document["economics"] = with_escalation(document["economics"], electricity=0.1)
        found.append(electricity(solved(document)))
    assert found[0] == pytest.approx(POWER_KW * HOURS * (0.03 * worth(3) + 0.02 * rising(0.1)), rel=1e-6)
    rest = 11 * HOURS * (0.03 * worth(3) - 0.04 * rising(0.1))
    assert found[1] == pytest.approx(POWER_KW * HOURS * 0.06 * rising(0.1) + rest, rel=1e-6)


def test_robust_plans_and_days_of_the_year_take_the_prices_of_their_year():
    site = {**SITE, "electricity_price": "0.1 USD/kWh"}
    document = question(sites=[site], economics=with_escalation(NOTHING_ELSE, electricity=0.1, rent=0.02))
    flat = solved(question(sites=[site]))["costs"]["energy"]
    solved({**document, "robust": {"scenarios": 50}})
    days = {"start": "2027-01-01", "years": 3, "discount_rate": 0.08, "calendar": "sampled-days", "days": 4}
    plan = solved({**document, "horizon": days})
    assert plan["costs"]["energy"] == pytest.approx(flat * rising(0.1) / worth(3), rel=1e-6)
