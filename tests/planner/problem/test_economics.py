"""Cost of owning: what a purchase is charged, against a cash-flow sheet, and when buying beats renting."""

from __future__ import annotations

import copy
import math
from itertools import pairwise

import numpy as np
import numpy_financial as npf
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from catalog.units import YEAR_S
from planner.errors import SpecError
from planner.plan import Plan
from planner.problem.economics import Economics, Residual, charges
from planner.problem.phases import terms_of
from planner.resolve.resolver import resolve_document
from planner.verify.fleet.economics import charged
from planner.verify.plan import verify_plan

SYSTEM = "DGX H100"


# -- the rule against a cash-flow sheet -----------------------------------------------------------------------------


def sheet(rate, life, begin, end, maintenance, building_life, ages, fractions):
    """Discount every payment of a purchase on its own day by numpy-financial: (of price less sales, maintenance, building)."""
    bought, payments = begin, []
    while end - bought > 1e-9:
        sold = min(bought + life, end)
        curve = [(0.0, 1.0), *zip(ages, fractions, strict=True)]
        slope = (curve[-1][1] - curve[-2][1]) / (curve[-1][0] - curve[-2][0])
        age = sold - bought
        left = np.interp(age, *np.array(curve).T) if age <= ages[-1] else curve[-1][1] + slope * (age - ages[-1])
        payments += [(bought, 1.0), (sold, -max(float(left), 0.0))]
        bought = sold
    price = sum(float(npf.pv(rate, day, 0.0, -amount)) for day, amount in payments)
    held = [max(0.0, min(end, k + 1) - max(begin, k)) for k in range(math.ceil(end))]
    worth = float(npf.npv(rate, [0.0, *held]))
    yearly = -float(npf.pmt(rate, building_life, 1.0))  # equal payments at the end of each year that repay one
    return price, maintenance * worth, yearly * worth


def random_case(seed):
    draw = np.random.default_rng([36, seed])
    rate = 0.0 if seed % 7 == 0 else float(draw.uniform(0.005, 0.25))
    years = int(draw.integers(1, 13))
    begin = 0.0 if seed % 2 else float(draw.uniform(0.0, years - 0.01))
    end = float(years) if seed % 3 else float(draw.uniform(begin + 0.005, years))
    life = float(draw.integers(1, 8)) if seed % 2 else float(draw.uniform(0.3, 9.0))
    points = int(draw.integers(1, 6))
    ages = tuple(np.cumsum(draw.uniform(0.2, 2.5, points)).tolist())
    fractions = tuple(np.sort(draw.uniform(0.0, 1.0, points))[::-1].tolist())
    return rate, years, life, begin, end, float(draw.uniform(0.0, 0.1)), int(draw.integers(10, 31)), ages, fractions


@pytest.mark.parametrize("seed", range(50))
def test_capital_residual_and_replacement_against_a_cash_flow_sheet(seed):
    """Both writings of the rule, in the problem and in the check, give the payments of the sheet to 1e-9."""
    rate, years, life, begin, end, maintenance, building, ages, fractions = random_case(seed)
    price, upkeep, facility = sheet(rate, life, begin, end, maintenance, building, ages, fractions)
    money = Economics(rate, years, 5.0, float(building), maintenance, {SYSTEM: Residual(ages, fractions)})
    ours, theirs = charges(money, SYSTEM, life, begin, end), charged(money, SYSTEM, life, begin, end)
    exact = dict(rel=1e-9, abs=1e-12)
    assert (ours.share - ours.upkeep, ours.upkeep, ours.facility) == pytest.approx((price, upkeep, facility), **exact)
    assert (theirs.price, theirs.upkeep, theirs.building) == pytest.approx((price, upkeep, facility), **exact)


RATES, YEARS = st.floats(0.0, 0.3), st.integers(1, 12)
CURVES = st.lists(st.tuples(st.floats(0.1, 3.0), st.floats(0.0, 1.0)), min_size=1, max_size=5).map(
    lambda points: (
        tuple(np.cumsum([step for step, _ in points]).tolist()),
        tuple(sorted((left for _, left in points), reverse=True)),
    )
)


def owning(rate, years, curve, maintenance=0.04, life=5.0):
    return charges(
        Economics(rate, years, life, 20.0, maintenance, {SYSTEM: Residual(*curve)}), SYSTEM, life, 0.0, float(years)
    )


@given(RATES, YEARS, CURVES, st.floats(0.0, 1.0))
def test_a_higher_residual_value_makes_owning_cheaper(rate, years, curve, part):
    ages, fractions = curve
    lower = ages, tuple(part * left for left in fractions)
    if ages[-1] >= 5.0:  # beyond the last point a curve that is lower there may fall less steeply
        assert owning(rate, years, lower).share >= owning(rate, years, curve).share - 1e-12


@given(RATES, RATES, YEARS, CURVES)
def test_a_higher_rate_moves_the_balance_towards_renting(one, other, years, curve):
    """Owning over a rent of one per year, both at present value, rises with the rate: money is bound from the start."""
    low, high = sorted((one, other))

    def over_rent(rate):
        paid = sum((1 + rate) ** -(k + 1) for k in range(years))
        return owning(rate, years, curve, life=float(max(years, 5))).share / paid

    assert over_rent(high) >= over_rent(low) - 1e-9


@given(RATES, YEARS, CURVES)
def test_owning_never_pays_its_owner(rate, years, curve):
    charge = owning(rate, years, curve)
    assert charge.share - charge.upkeep >= -1e-12 and charge.upkeep >= 0


def test_a_system_that_is_replaced_is_charged_like_its_successor():
    """Ten years of systems that last five: the same again, five years later."""
    curve = (1.0, 5.0), (0.6, 0.1)
    once, twice = owning(0.08, 5, curve, 0.0).share, owning(0.08, 10, curve, 0.0).share
    assert twice == pytest.approx(once * (1 + 1.08**-5), rel=1e-12)


# -- buying and renting in plans ------------------------------------------------------------------------------------


def flat(years, *hows, **changes):
    """Chat at a flat load on nine DGX H100 at the catalog's typical prices."""
    return {
        "name": "flat", "horizon": {"years": years}, "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 3000},
            "lengths": {"input": 1000, "output": 250}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never",
        }],
        "sites": [{"region": "us-virginia", "systems": [SYSTEM], "topologies": ["rail-optimised"]}],
        "offers": [{"system": SYSTEM, "how": how} for how in hows], **changes,
    }  # fmt: skip


def ratio(years, **changes):
    """Cost of a plan that buys over one that rents."""
    bought, rented = (planner.solve(flat(years, how, **changes)).objective["value"] for how in ("buy", "reserved"))
    return bought / rented


@pytest.fixture(scope="module")
def ratios():
    return {years: ratio(years) for years in (1, 2, 3, 4, 5, 6)}


def test_renting_wins_at_one_year_and_buying_at_five(ratios):
    assert ratios[1] > 1 > ratios[5]
    for years, how in ((1, "reserved"), (5, "buy")):
        assert {row["how"] for row in planner.solve(flat(years, "buy", "reserved"))["fleet"]} == {how}


def test_the_break_even_lies_between_one_and_a_half_and_four_years(ratios):
    """Linear between whole years, and one only."""
    values = list(ratios.values())
    crossings = [k + (one - 1) / (one - two) for k, (one, two) in enumerate(pairwise(values), 1) if one > 1 >= two]
    assert len(crossings) == 1 and 1.5 < crossings[0] < 4


def test_the_balance_in_plans_moves_with_residual_value_interest_and_maintenance(ratios):
    worthless = ratio(2, economics={"residual": [{"age": "1 year", "fraction": 0}]})
    assert worthless > ratios[2] > ratio(2, economics={"residual": [{"age": "3 years", "fraction": 0.6}]})
    assert ratio(2, economics={"maintenance": 0.1}) > ratios[2] > ratio(2, economics={"maintenance": 0})
    horizon = {"years": 2, "discount_rate": 0.2}
    assert ratio(2, horizon=horizon) > ratios[2]


def test_the_balance_in_plans_moves_with_utilisation():
    """What is bought is there for all of four years, what is rented on demand while it is needed: the longer, the better buying looks."""

    def over_rent(busy_years):
        costs = []
        for how in ("buy", "on_demand"):
            phases = [{"name": "busy", "start": "0 d"}, {"name": "idle", "start": f"{busy_years} years"}]
            document = flat(4, how, phases=phases)
            document["workloads"][0]["demand"]["factor_by_phase"] = {"idle": 0}
            costs.append(solved(document).objective["value"])
        return costs[0] / costs[1]

    one, two, three = map(over_rent, (1, 2, 3))
    assert one > two > three


# -- in a spec and in a plan ----------------------------------------------------------------------------------------


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def assumption(plan, path):
    return next(row for row in plan["assumptions"] if row["path"] == path)


def test_each_figure_is_an_assumption_with_its_share(tiny):
    plan = solved(tiny())
    lines, total = plan["costs"], plan["totals"]["cost"]
    assert assumption(plan, "economics.maintenance")["share"] == pytest.approx(lines["maintenance"] / total)
    for years in range(1, 6):
        row = assumption(plan, f"economics.residual.{years}y")
        assert row["share"] == pytest.approx((lines["systems"] + lines["fabric"]) / total)
    assert {row["path"] for row in plan["provenance"]} >= {f"defaults/residual_{years}y/value" for years in range(1, 6)}


def test_what_is_rented_alone_needs_its_licences_alone(tiny):
    plan = solved(tiny(offers=[{"system": SYSTEM, "how": "reserved"}]))
    used = {row["path"] for row in plan["assumptions"] if row["path"].startswith("economics")}
    assert used == {"economics.software_per_chip", "economics.software_per_system"}


def test_figures_of_the_spec_count_before_those_of_the_catalog(tiny):
    economics = {
        "residual": [{"age": "1 year", "fraction": 0.5}],
        "residual_of": {"8x H100": [{"age": "2 years", "fraction": 0.4}]},
        "maintenance": 0.1,
    }
    plan = solved(tiny(economics=economics))
    assert plan["costs"]["systems"] == pytest.approx(plan["fleet"][0]["count"] * 310_000 * (1 - 0.7 / 1.08))
    assert plan["costs"]["maintenance"] == pytest.approx(plan["fleet"][0]["count"] * 310_000 * 0.1 / 1.08)
    assert assumption(plan, "economics.residual_of.8x H100")["value"] == "0.4 at 2 years"
    del economics["residual_of"]
    plan = solved(tiny(economics=economics))
    assert plan["costs"]["systems"] == pytest.approx(plan["fleet"][0]["count"] * 310_000 * (1 - 0.5 / 1.08))


def test_a_kind_with_a_curve_of_its_own_in_the_catalog(tiny):
    document = tiny(sites=[{"region": "us-virginia", "systems": [SYSTEM, "DGX A100 80GB"]}])
    document["offers"].append({"system": "DGX A100 80GB", "how": "buy", "price": "120000 USD"})
    money = resolve_document(document).economics
    assert money.residual_of("DGX A100 80GB") == Residual((1.0, 3.0), (0.525, 0.225))
    assert money.residual_of(SYSTEM) == Residual((1.0, 2.0, 3.0, 4.0, 5.0), (0.625, 0.425, 0.3, 0.175, 0.125))


def test_the_charge_of_a_term_is_that_of_its_time(tiny):
    problem = resolve_document(tiny(horizon={"years": 7}))
    (term,) = terms_of(problem, problem.sites[0], problem.offers[0])
    assert problem.offers[0].life_s(problem.economics) == 5 * YEAR_S
    expected = 1 - 0.125 * 1.08**-5 + 1.08**-5 - 0.425 * 1.08**-7 + 0.04 * sum(1.08**-k for k in range(1, 8))
    assert term.charges.share == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("economics", "place"),
    [
        ({"residual": [{"age": "1 year", "fraction": 0.4}, {"age": "2 years", "fraction": 0.5}]}, "economics.residual"),
        ({"residual": [{"age": "2 years", "fraction": 0.4}, {"age": "1 year", "fraction": 0.3}]}, "economics.residual"),
        ({"residual": []}, "economics.residual"),
        ({"residual": [{"age": "1 year", "fraction": 1.5}]}, "economics.residual[0].fraction"),
        ({"residual_of": {"DGX B200": [{"age": "1 year", "fraction": 0.5}]}}, "economics.residual_of.DGX B200"),
        ({"residual_of": {"DGX H10": [{"age": "1 year", "fraction": 0.5}]}}, "economics.residual_of.DGX H10"),
        ({"maintenance": -0.1}, "economics.maintenance"),
    ],
)
def test_figures_without_sense_are_refused_with_their_place(tiny, economics, place):
    with pytest.raises(SpecError) as error:
        resolve_document(tiny(economics=economics))
    assert place in {problem.path for problem in error.value.problems}


def test_an_override_that_lets_values_rise_is_refused(tiny):
    override = {"defaults/residual_2y/value": {"value": 0.9, "note": "a mistake"}}
    with pytest.raises(SpecError, match="fall with age"):
        resolve_document(tiny(overrides=override))


@pytest.mark.parametrize("component", ["systems", "maintenance"])
def test_a_wrong_charge_is_found(tiny, component):
    document = copy.deepcopy(dict(planner.solve(tiny()).document))
    row = next(row for row in document["cost_lines"] if row["component"] == component)
    extra = 0.001 * row["amount"]
    row["amount"] += extra
    document["costs"][component] += extra
    document["totals"]["cost"] += extra
    assert any("cost_lines" in str(finding) for finding in verify_plan(Plan(document)))
