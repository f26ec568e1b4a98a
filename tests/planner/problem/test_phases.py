"""Build-out in phases: what comes when, what it costs, what each date and each budget does, and how the plan is checked again."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from tests.conftest import few_of

RATE, YEARS = 0.08, 4
LEFT = {2: 0.425, 4: 0.175}  # share of its price that a system is worth, by age
PHASES = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "2 years"}]


@pytest.fixture(scope="module")
def spec(tiny):
    """`spec(offers=..., demand=...)`: chat that grows fivefold in the second of two phases; 310,000 USD a system."""

    def make(**changes):
        document = tiny(phases=copy.deepcopy(PHASES), horizon={"years": YEARS, "discount_rate": RATE})
        document["workloads"][0]["demand"] = {"requests_per_s": 4000, "factor_by_phase": {"second": 5}} | changes.pop(
            "demand", {}
        )
        document["offers"][0] |= changes.pop("offer", {})
        document["sites"][0] |= changes.pop("site", {})
        for phase, capital in changes.pop("capital", {}).items():
            next(p for p in document["phases"] if p["name"] == phase)["capital"] = capital
        return document | changes

    return make


def bought(plan, phase):
    return sum(row["count"] for row in plan["fleet"] if row["obtained"] == phase)


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


@pytest.fixture(scope="module")
def two(spec):
    return solved(spec())


# -- what a plan is ------------------------------------------------------------------------------------------------


def test_systems_are_bought_when_they_are_needed(two):
    early, late = bought(two, "first"), bought(two, "second")
    assert 0 < early < late
    assert {tuple(row["windows"]) for row in two["fleet"]} == {(0, 1), (1, 1)}
    assert [row["chips"] for row in two["phases"]] == [8 * early, 8 * (early + late)]


def test_a_system_is_charged_for_the_years_it_is_there(two):
    """Price at delivery, less what it is worth at the end of the horizon, and maintenance at the end of each year."""
    paid = {"first": 1 - LEFT[4] * (1 + RATE) ** -4, "second": (1 + RATE) ** -2 - LEFT[2] * (1 + RATE) ** -4}
    expected = sum(bought(two, phase) * 310_000 * share for phase, share in paid.items())
    assert two["costs"]["systems"] == pytest.approx(expected, rel=1e-12)
    years = {"first": (1, 2, 3, 4), "second": (3, 4)}
    each = {phase: sum(0.04 * (1 + RATE) ** -k for k in there) for phase, there in years.items()}
    capital = {row["name"]: row["capital"] / 1.02 for row in two["phases"]}  # spare parts are not maintained
    assert two["costs"]["maintenance"] == pytest.approx(sum(capital[p] * each[p] for p in each), rel=1e-12)


def test_what_is_left_at_the_end_is_the_residual_value_by_age(two):
    for row, age in zip(two["phases"], (4, 2), strict=True):
        assert row["residual"] == pytest.approx(row["capital"] * LEFT[age], rel=1e-12)


def test_the_phases_add_up_to_the_plan(two):
    assert sum(row["cost"] for row in two["phases"]) == pytest.approx(two["totals"]["cost"], rel=1e-12)
    assert sum(row["tokens"]["chat"] for row in two["phases"]) == pytest.approx(two["totals"]["tokens"], rel=1e-12)
    assert two["phases"][1]["tokens"]["chat"] == pytest.approx(5 * two["phases"][0]["tokens"]["chat"])


def test_one_phase_is_the_plan_without_phases(spec, tiny):
    """Phases over the whole horizon, within the life of the systems, change nothing but the words."""
    horizon = {"years": YEARS, "discount_rate": RATE}
    plain = planner.solve(tiny(horizon=horizon))
    phased = solved(tiny(horizon=horizon, phases=PHASES[:1]))
    assert phased["totals"] == pytest.approx(plain["totals"])
    assert "phases" not in plain.document and "obtained" not in plain["fleet"][0]


# -- each limit alone ----------------------------------------------------------------------------------------------


def test_a_price_that_falls_is_that_of_the_delivery(spec):
    plan = solved(spec(offer={"price_change_per_year": -0.2}))
    prices = {row["obtained"]: row["price"] for row in plan["fleet"]}
    assert prices == pytest.approx({"first": 310_000, "second": 310_000 * 0.8**2})


def test_a_price_by_phase(spec):
    plan = solved(spec(offer={"price_by_phase": {"second": "200000 USD"}}))
    assert {row["obtained"]: row["price"] for row in plan["fleet"]} == {"first": 310_000, "second": 200_000}


def test_much_dearer_later_is_bought_at_once(spec):
    plan = solved(spec(offer={"price_by_phase": {"second": "3000000 USD"}}))
    assert bought(plan, "second") == 0


def test_supply_of_a_phase(spec, two):
    most = bought(two, "second") - 1
    plan = solved(spec(offer={"supply_by_phase": {"second": most}}))
    assert bought(plan, "second") == most and bought(plan, "first") == bought(two, "first") + 1
    row = next(row for row in plan["limits"] if row["path"] == "offers[0].supply_by_phase.second")
    assert (row["value"], row["limit"]) == (most, most)


def test_capital_of_a_phase(spec, two):
    """One system fewer than is needed then has to be bought before."""
    ceiling = two["phases"][1]["capital"] - 1
    plan = solved(spec(capital={"second": f"{ceiling:.0f} USD"}))
    assert plan["phases"][1]["capital"] <= ceiling and bought(plan, "first") == bought(two, "first") + 1
    assert plan["totals"]["cost"] > two["totals"]["cost"]


def test_the_capital_of_the_plan_counts_all_phases(spec, two):
    capital = sum(row["capital"] for row in two["phases"])
    row = next(row for row in solved(spec(limits={"capital": "90M USD"}))["limits"] if row["path"] == "limits.capital")
    assert row["value"] == pytest.approx(capital)


def test_nothing_comes_before_it_can(spec):
    """Half a year without an offer is served by rent; then the offer comes in the same phase."""
    rent = {"system": "DGX H100", "how": "on_demand", "price": "30 USD/h"}
    document = spec(offer={"available_from": "26 weeks"})
    document["offers"].append(rent)
    plan = solved(document)
    own = [row for row in plan["fleet"] if row["how"] == "buy"]
    assert {(row["obtained"], tuple(row["windows"])) for row in own} == {("first", (1, 2)), ("second", (2, 2))}
    assert {row["window"] for row in plan["fleet"] if row["how"] == "on_demand"} == {0}


def test_an_offer_that_ends(spec, two):
    plan = solved(spec(offer={"available_until": "2028-06-01"}))
    assert bought(plan, "second") == 0 and bought(plan, "first") == bought(two, "first") + bought(two, "second")


def test_a_site_that_is_built_later(spec):
    document = spec(site={"fixed_cost": "100000 USD/year"})
    document["sites"].append(
        {
            "region": "us-texas",
            "systems": ["DGX H100"],
            "available_from": "2 years",
            "electricity_price": "0 USD/kWh",
            "fixed_cost": "1000 USD/year",
        }
    )
    document["sites"][0]["electricity_price"] = "2 USD/kWh"
    plan = solved(document)
    texas = [row for row in plan["fleet"] if row["site"] == "us-texas"]
    assert texas and all(row["obtained"] == "second" for row in texas)
    assert not any(row["power_w"] for row in plan["schedule"] if row["site"] == "us-texas" and row["window"] == 0)
    paid = next(row["amount"] for row in plan["cost_lines"] if (row["component"], row["site"]) == ("site", "us-texas"))
    assert paid == pytest.approx(1000 * sum((1 + RATE) ** -k for k in (3, 4)))


def test_what_is_worn_out_is_bought_again(spec):
    plan = solved(spec(offer={"life": "2 years"}, demand={"factor_by_phase": {}}))
    assert {(row["obtained"], tuple(row["windows"])) for row in plan["fleet"]} == {
        ("first", (0, 0)),
        ("second", (1, 1)),
    }
    assert plan["phases"][0]["residual"] == 0
    once = 1 - LEFT[2] * (1 + RATE) ** -2  # sold when it is replaced
    assert plan["costs"]["systems"] == pytest.approx(bought(plan, "first") * 310_000 * once * (1 + (1 + RATE) ** -2))


def test_growth_by_the_year(tiny):
    document = tiny(horizon={"years": 3})
    document["workloads"][0]["demand"]["growth_per_year"] = 0.5
    problem = resolve_document(document)
    rates = problem.serving[0].requests_by_slot(problem.calendar)
    assert rates[0, ::24] == pytest.approx([30, 45, 67.5])


def test_a_reservation_from_a_phase_on(spec):
    document = spec()
    document["offers"] = [
        {"system": "DGX H100", "how": "reserved", "price": "20 USD/h", "price_by_phase": {"second": "15 USD/h"}}
    ]
    plan = solved(document)
    assert {(row["obtained"], tuple(row["windows"]), round(row["price"] * 3600, 9)) for row in plan["fleet"]} == {
        ("first", (0, 1), 20),
        ("second", (1, 1), 15),
    }


def test_the_systems_of_all_phases_share_a_network(spec):
    """What stands on one network at once is limited by it, whenever it was bought."""
    plan = solved(spec(site={"topologies": ["rail-only"]}))
    network = plan["fabrics"][0]
    assert network["systems"] == bought(plan, "first") + bought(plan, "second") <= network["size"]


# -- what is asked wrongly -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "path", "word"),
    [
        ({"phases": [{"name": "a", "start": "1 d"}]}, "phases[0].start", "begins with the horizon"),
        (
            {"phases": [{"name": "a", "start": "0 d"}, {"name": "b", "start": "0 d"}]},
            "phases[1].start",
            "in their order",
        ),
        (
            {"phases": [{"name": "a", "start": "0 d"}, {"name": "b", "start": "2041-01-01"}]},
            "phases[1].start",
            "after the horizon",
        ),
        ({"phases": [{"name": "a", "start": "0 d"}, {"name": "a", "start": "1 d"}]}, "phases", "occurs twice"),
        ({"phases": [{"name": "1.", "start": "0 d"}]}, "phases[0].name", "begins with a letter"),
        ({"offer": {"supply_by_phase": {"secnd": 3}}}, "offers[0].supply_by_phase.secnd", "second"),
        ({"offer": {"price_by_phase": {"second": "3 USD/h"}}}, "offers[0]", "price_by_phase.second"),
        ({"offer": {"price_by_phase": {"second": "3 USD"}, "price_change_per_year": 0.1}}, "offers[0]", "not both"),
        ({"offer": {"available_from": "soon"}}, "offers[0].available_from", "2028-01-01"),
        ({"offer": {"available_from": "2045-01-01"}}, "offers[0].available_from", "after the horizon"),
        (
            {"offer": {"available_from": "2 years", "available_until": "1 year"}},
            "offers[0].available_until",
            "before the first",
        ),
        ({"demand": {"factor_by_phase": {"third": 2}}}, "workloads[0].demand.factor_by_phase.third", "unknown phase"),
        ({"site": {"available_from": "1 year", "electricity": {}}}, "sites[0].available_from", "electricity"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec, changes, path, word):
    with pytest.raises(SpecError) as error:
        resolve_document(spec(**changes))
    assert any(problem.path == path and word in problem.message for problem in error.value.problems), str(error.value)


def test_by_phase_needs_phases(tiny):
    document = tiny()
    document["offers"][0]["supply_by_phase"] = {"first": 3}
    with pytest.raises(SpecError, match='has no "phases"'):
        resolve_document(document)


# -- why there is none ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"capital": {"first": "300000 USD"}}, "phases[0].capital"),
        ({"offer": {"available_from": "10 weeks"}}, "offers[0].available_from"),
        ({"site": {"available_from": "10 weeks"}}, "sites[0].available_from"),
        ({"offer": {"supply_by_phase": {"first": 0}}}, "offers[0].supply_by_phase.first"),
    ],
)
def test_the_limit_of_a_phase_is_named_and_mended(spec, changes, path):
    found = planner.solve(spec(**changes))
    assert found.status == "infeasible"
    assert [row["path"] for row in found["diagnosis"]["conflict"]] == [path]
    assert [row["path"] for row in found["diagnosis"]["repair"]] == [path] and found["diagnosis"]["repair_checked"]


# -- the check of a plan -------------------------------------------------------------------------------------------


def numbers(node, path=()):
    if isinstance(node, dict | list):
        for key, value in node.items() if isinstance(node, dict) else enumerate(node):
            yield from numbers(value, (*path, key))
    elif isinstance(node, int | float) and not isinstance(node, bool):
        yield path


def test_every_number_of_the_phases_is_checked(two):
    document = copy.deepcopy(dict(two.document))
    paths = [
        *numbers(document["phases"], ("phases",)),
        *(p for p in numbers(document["fleet"], ("fleet",)) if p[-1] != "network_size"),
    ]
    assert len(paths) > 20
    for path in paths:
        place = document
        for key in path[:-1]:
            place = place[key]
        kept = place[path[-1]]
        place[path[-1]] = kept + 1 if isinstance(kept, int) else kept * (1 + 2e-5) + (1e-6 if kept == 0 else 0)
        assert verify_plan(Plan(document)), path
        place[path[-1]] = kept


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["fleet"][0].update(obtained="second"),
        lambda d: [d["fleet"][0].pop(key) for key in ("obtained", "windows", "price")],
        lambda d: d["phases"].pop(),
        lambda d: d.pop("phases"),
        lambda d: d["phases"][0].update(name="third"),
        lambda d: d["phases"][1].update(start="2028-12-30"),
        lambda d: d["phases"][1]["pools"].pop(),
    ],
)
def test_a_wrong_word_is_found(two, change):
    document = copy.deepcopy(dict(two.document))
    change(document)
    assert verify_plan(Plan(document))


# -- more room never costs more ------------------------------------------------------------------------------------


@settings(max_examples=few_of(8), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["capital", "supply", "from", "until", "life"]),
    st.integers(1, 3),
    st.sampled_from([1.0, 2.0, 4.0]),
    st.sampled_from([-0.3, 0.0, 0.3]),
)
def test_giving_way_never_costs_more(spec, what, size, factor, change):
    def asked(more):
        step = size + more
        offer = {"price_change_per_year": change}
        offer |= {
            "supply": {"supply_by_phase": {"second": step}},
            "from": {"available_from": f"{240 - 60 * step} d"},
            "until": {"available_until": f"{300 * step} d"},
            "life": {"life": f"{4 + more} years"},
        }.get(what, {})
        capital = {"second": f"{4_000_000 * step} USD"} if what == "capital" else {}
        return spec(
            offer=offer,
            capital=capital,
            demand={"factor_by_phase": {"second": factor}},
            solver={"gap": 1e-7, "time_limit": "120 s"},
        )

    tight, wide = planner.solve(asked(0)), planner.solve(asked(1))
    if tight.has_answer:
        assert wide.has_answer
        if what != "life":  # a longer life is another price per year
            assert wide["totals"]["cost"] <= tight["totals"]["cost"] * (1 + 1e-6)


def test_the_words_of_a_plan(two):
    from planner.report.report import render

    text = render(two, "table")
    assert "Phase by phase (USD)" in text and "second" in text


# -- own systems in a rented hall ----------------------------------------------------------------------------------


def test_a_rented_hall_takes_the_place_of_the_building(spec, two):
    """120 USD per kW and month of nameplate from delivery to the end, each year paid at its end; electricity as before."""
    plan = solved(spec(site={"colocation": "120 USD/kW-month"}))
    assert plan["costs"]["facility"] == 0 and {row["count"] for row in plan["fleet"]} == {
        row["count"] for row in two["fleet"]
    }
    paid = {"first": sum((1 + RATE) ** -k for k in (1, 2, 3, 4)), "second": sum((1 + RATE) ** -k for k in (3, 4))}
    expected = sum(bought(plan, phase) * 10.2 * 120 * 12 * worth for phase, worth in paid.items())
    assert plan["costs"]["colocation"] == pytest.approx(expected, rel=2e-3)  # a month is a twelfth of 365 days
    assert plan["costs"]["energy"] == pytest.approx(two["costs"]["energy"])


def test_a_bent_rent_of_the_hall_is_found(spec):
    document = copy.deepcopy(dict(solved(spec(site={"colocation": "120 USD/kW-month"})).document))
    document["costs"]["colocation"] *= 1.0001
    assert verify_plan(Plan(document))
    document["costs"]["colocation"] /= 1.0001
    document["spec"]["sites"][0]["colocation"] = "121 USD/kW-month"
    assert verify_plan(Plan(document))
