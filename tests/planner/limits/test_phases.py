"""What phases limit: money that may be paid in one, and power of a site that grows with them. Each alone, hand-known, and checked again."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import formulate
from planner.plan import Plan
from planner.problem.phases import power_limits
from planner.report.report import render
from planner.report.words import whole
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from solvers.interface import Options
from solvers.search.joint import solve
from tests.conftest import few_of

RATE, YEARS, LIFE, BUILDING = 0.08, 4, 5.0, 20.0
PHASES = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "2 years"}]
RENT = {"system": "DGX H100", "how": "on_demand", "price": "30 USD/h"}


@pytest.fixture(scope="module")
def spec(tiny):
    """`spec(budget={"second": ...}, site={"power_by_phase": ...})`: chat that grows fivefold in the second of two phases; 310,000 USD a system."""

    def make(rate=RATE, **changes):
        document = tiny(phases=copy.deepcopy(PHASES), horizon={"years": YEARS, "discount_rate": rate})
        document["workloads"][0]["demand"] = {"requests_per_s": 4000, "factor_by_phase": {"second": 5}} | changes.pop(
            "demand", {}
        )
        document["offers"][0] |= changes.pop("offer", {})
        document["sites"][0] |= changes.pop("site", {})
        for phase, budget in changes.pop("budget", {}).items():
            next(p for p in document["phases"] if p["name"] == phase)["budget"] = budget
        return document | changes

    return make


def count(plan, phase):
    return sum(row["count"] for row in plan["fleet"] if row["how"] == "buy" and row["obtained"] == phase)


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def limit_of(plan, path):
    return next(row for row in plan["limits"] if row["path"] == path)


@pytest.fixture(scope="module")
def free(spec):
    return solved(spec())


# -- what counts as paid -------------------------------------------------------------------------------------------


def test_purchases_count_when_they_come_and_the_building_by_its_annuities(spec):
    """Without energy and weights a phase pays what it buys in full, maintenance, traffic, and two years of building and staff of all that stands."""
    document = spec(site={"electricity_price": "0 USD/kWh"})
    document["workloads"][0] |= {"weight_updates_per_year": 0}
    plan = solved(document)
    problem = resolve_document(document)
    per_request = (
        problem.egress_bytes(problem.serving[0])
        * problem.routes("chat", "us-virginia", "us-virginia")[""].price_per_byte
    )
    worth = {k: sum((1 + RATE) ** -year for year in range(1, k + 1)) for k in (2, 4)}
    early, late = count(plan, "first"), count(plan, "second")
    held = early * worth[4] + late * (worth[4] - worth[2])
    building = (plan["costs"]["facility"] + plan["costs"]["staff"]) / held  # and its people, of one system for a year
    capital = 0.0
    for row, stands, requests in zip(plan["phases"], (early, early + late), (4000, 20_000), strict=True):
        capital += row["capital"]
        running = 2 * 0.04 * capital / 1.02 + 2 * building * stands + per_request * requests * 2 * 365 * 86400
        assert row["paid"] == pytest.approx(row["capital"] + running, rel=1e-9)


@pytest.fixture(scope="module")
def rich(spec):
    """`rich(rate)`: every kind of payment at once, the first phase short of systems; an API for a tenth of what is asked."""

    def make(rate):
        family = resolve_document(spec()).systems["DGX H100"].family
        document = spec(
            rate=rate,
            site={"fixed_cost": "100000 USD/year", "colocation": "120 USD/kW-month"},
            porting=[{"family": family, "cost": "1M USD"}],
        )
        document["workloads"][0]["weights_from"] = "us-texas"
        document["offers"] += [
            RENT,
            {"system": "DGX H100", "how": "reserved", "price": "9 USD/h", "supply_by_phase": {"first": 1, "second": 2}},
        ]
        document["offers"][0]["supply_by_phase"] = {"first": 2, "second": 9}
        document["apis"] = [{"name": "gateway", "region": "us-virginia", "input": "0.001 USD/1M tokens", "output": "0.001 USD/1M tokens", "price_change_per_year": 0.1,
                             "latency": {"ttft": {"p99": "1 s"}, "tpot": {"p99": "20 ms"}}, "supply": 900000}]  # fmt: skip
        return document

    return make


def test_without_discounting_all_that_is_paid_is_the_cost_with_whole_purchases(rich):
    """At no interest the phases pay what the plan costs, with purchase prices and no residual values: energy, rent, halls, sites, weights, all."""
    plan = solved(rich(0.0))
    assert {"systems", "colocation", "rent", "energy", "site", "porting", "weights", "api"} <= {
        name for name, amount in plan["costs"].items() if amount
    }
    charged = sum(plan["costs"][component] for component in ("systems", "fabric", "spare parts"))
    once = sum(row["capital"] for row in plan["phases"]) - charged
    assert sum(row["paid"] for row in plan["phases"]) == pytest.approx(plan["totals"]["cost"] + once, rel=1e-9)
    assert plan["phases"][0]["paid"] > 1e6  # porting at the start


def lined(rate):
    """Rented lines with a set-up time, streams and weights beside requests, over two phases."""
    return {
        "name": "lines", "horizon": {"years": 2, "discount_rate": rate}, "phases": [PHASES[0], {"name": "second", "start": "1 year"}],
        "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 60, "factor_by_phase": {"second": 3}},
            "lengths": {"input": 1000, "output": 250}, "origins": [{"region": "us-texas", "share": 0.6}, {"region": "us-california", "share": 0.4}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never", "security": "encrypted",
            "traffic": {"telemetry": {"rate": "300 Mbit/s"}}, "spread": {"largest_share": 0.7},
        }],
        "sites": [{"region": "us-oregon", "systems": ["DGX H100"], "fixed_cost": "30000 USD/year"}, {"region": "us-texas", "systems": ["DGX H100"], "zone": "south"}],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
        "lines": [{"kind": "dedicated line", "setup": "0 s", "units": 4}, {"kind": "IPSec VPN", "between": ["us-texas", "us-oregon"], "capacity": "200 Mbit/s"}, {"kind": "SD-WAN", "setup": "90 d"}, {"kind": "TLS"}],
        "solver": {"gap": 1e-6},
    }  # fmt: skip


def test_lines_are_paid_for_the_time_that_they_are_rented():
    """As above, at no interest; what is rented throughout is paid half in each year."""
    plan = solved(lined(0.0))
    assert {"lines", "telemetry", "egress"} & {name for name, amount in plan["costs"].items() if amount}
    charged = sum(plan["costs"][component] for component in ("systems", "fabric", "spare parts"))
    once = sum(row["capital"] for row in plan["phases"]) - charged
    assert sum(row["paid"] for row in plan["phases"]) == pytest.approx(plan["totals"]["cost"] + once, rel=1e-9)


@pytest.mark.parametrize("kind", ["rich", "lines"])
def test_the_program_counts_what_the_plan_tells(rich, kind):
    """The functional that the budget limits against the payments that are added up from the decisions."""
    document = rich(RATE) if kind == "rich" else lined(RATE)
    for phase in document["phases"]:
        phase["budget"] = "900M USD"
    problem = resolve_document(document)
    form = formulate(problem, find_candidates(problem))
    counted = solve(form.data, Options(gap=1e-9)).functionals
    plan = solved(document | {"solver": {"gap": 1e-9}})
    for row in plan["phases"]:
        assert counted[f"paid in {row['name']}"] == pytest.approx(row["paid"], rel=1e-6)


def test_energy_is_paid_as_it_is_drawn(spec, free):
    """Between two prices of electricity lies the energy of the phase, not discounted."""
    prices = {}
    for price in (0.05, 0.25):
        plan = solved(spec(site={"electricity_price": f"{price} USD/kWh"}))
        prices[price] = [row["paid"] for row in plan["phases"]]
        joules = [
            sum(row["power_w"] * row["seconds"] for row in plan["schedule"] if row["window"] == p) for p in range(2)
        ]
    for p in range(2):
        assert prices[0.25][p] - prices[0.05][p] == pytest.approx(0.2 * joules[p] / 3.6e6, rel=1e-6)


def metered(charge=10, battery=200, contract=40, power=100, life="10 years"):
    """A demand charge, a battery and a contract paid by its output, both of given size."""
    price = f"{contract} USD/MWh"
    base = {
        "name": "base",
        "capacity": "10 kW",
        "least": "10 kW",
        "price": price,
        "profile": "flat",
        "pays": "produced",
    }
    storage = {
        "energy": "20 kWh",
        "power": "10 kW",
        "sizing": "given",
        "energy_price": f"{battery} USD/kWh",
        "power_price": f"{power} USD/kW",
        "life": life,
    }
    return {
        "delivery": "0.03 USD/kWh",
        "electricity": {"demand_charge": f"{charge} USD/kW-month", "battery": storage, "ppa": [base]},
    }


def test_each_payment_for_electricity_has_its_phase(spec):
    """Dearer by a known amount, each part adds that amount times what is used of it in the phase, not discounted."""
    paid = lambda plan: [row["paid"] for row in plan["phases"]]
    difference = lambda **dearer: [
        b - a for a, b in zip(paid(usual), paid(solved(spec(site=metered(**dearer)))), strict=True)
    ]
    usual = solved(spec(site=metered()))
    assert difference(battery=300) == pytest.approx([20 * 100, 0.0], abs=1.0)
    assert difference(battery=300, power=150) == pytest.approx([20 * 100 + 10 * 50, 0.0], abs=1.0)
    peaks = [max(row["grid_w"] for row in usual["schedule"] if row["window"] == p) for p in range(2)]
    assert difference(charge=10.001) == pytest.approx([0.001 * 24 * peak / 1e3 for peak in peaks], rel=1e-2)
    produced = next(row["size"] for row in usual["electricity"] if row["item"] == "ppa") * 2 * 8760 / 1e6
    assert difference(contract=41) == pytest.approx([produced, produced], rel=1e-3)


def test_a_battery_is_bought_again_after_its_life(spec):
    short, long = (solved(spec(site=metered(life=life))) for life in ("2 years", "10 years"))
    price = 20 * 200 + 10 * 100
    found = [a["paid"] - b["paid"] for a, b in zip(short["phases"], long["phases"], strict=True)]
    assert found == pytest.approx([0.0, price], abs=1.0)


def test_a_month_that_a_phase_cuts_is_charged_in_parts(spec):
    """Without discount the phases pay, together, the demand charge of the plan; the second begins in the middle of a month."""
    phases = [{"name": "first", "start": "0 d"}, {"name": "second", "start": "400 d"}]
    low, high = (solved(spec(rate=0.0, phases=phases, site=metered(charge=charge))) for charge in (10, 10.001))
    paid = [b["paid"] - a["paid"] for a, b in zip(low["phases"], high["phases"], strict=True)]
    assert sum(paid) == pytest.approx(high["costs"]["demand charge"] - low["costs"]["demand charge"], rel=1e-3)
    assert min(paid) > 0


@pytest.mark.parametrize("backend", ["highs", "pulp"])
def test_a_budget_counts_electricity(spec, backend):
    """A budget below what the best plan pays in a phase is kept, by both solvers at the same cost, and costs no less."""
    words = {"site": metered(), "solver": {"backend": backend, "gap": 1e-6}}
    free = solved(spec(**words))
    ceiling = free["phases"][1]["paid"] - 1000
    plan = solved(spec(**words, budget={"second": f"{ceiling:.2f} USD"}))
    assert plan["phases"][1]["paid"] <= ceiling * (1 + 1e-6) and limit_of(plan, "phases[1].budget")["limit"] > 0
    assert plan["totals"]["cost"] >= free["totals"]["cost"] * (1 - 1e-6)
    ours = solved(spec(site=metered(), solver={"gap": 1e-6}, budget={"second": f"{ceiling:.2f} USD"}))
    assert plan["totals"]["cost"] == pytest.approx(ours["totals"]["cost"], rel=1e-5)


# -- each limit alone ----------------------------------------------------------------------------------------------


def test_a_budget_moves_a_purchase_forward(spec, free):
    ceiling = free["phases"][1]["paid"] - 1
    plan = solved(spec(budget={"second": f"{ceiling:.0f} USD"}))
    assert (count(plan, "first"), count(plan, "second")) == (count(free, "first") + 1, count(free, "second") - 1)
    row = limit_of(plan, "phases[1].budget")
    assert row["value"] == plan["phases"][1]["paid"] <= row["limit"] == float(f"{ceiling:.0f}")
    assert plan["totals"]["cost"] > free["totals"]["cost"]
    assert f" of {whole(ceiling)}" in render(plan, "table")


def test_what_cannot_be_bought_is_rented(spec, free):
    """Four systems are needed in the first phase; three of them bought are beyond its budget with all that runs, so some are rented."""
    each = free["phases"][0]["paid"] / count(free, "first")
    document = spec(budget={"first": f"{each * 5.4:.0f} USD"}, rate=RATE)
    document["offers"].append(RENT | {"price": "16 USD/h"})
    wide = solved(document)
    document["phases"][0]["budget"] = f"{each * 3.9:.0f} USD"
    tight = solved(document)
    assert not any(row["window"] == 0 for row in wide["fleet"]) and count(wide, "first") == 4
    assert (
        0 < count(tight, "first") < 4
        and count(tight, "first") + sum(row["count"] for row in tight["fleet"] if row["window"] == 0) == 4
    )
    assert tight["phases"][0]["paid"] <= each * 3.9 * (1 + 1e-6)


def test_power_by_phase_is_that_of_the_phase(spec, free):
    """Just what the plan draws in each phase changes nothing; a watt less in the second leaves no plan, and more in the first does not help."""
    drawn = [max(row["power_w"] for row in free["schedule"] if row["window"] == p) for p in range(2)]
    plan = solved(spec(site={"power": f"{drawn[0] + 1:.0f} W", "power_by_phase": {"second": f"{drawn[1] + 1:.0f} W"}}))
    assert plan["totals"] == pytest.approx(free["totals"])
    rows = [limit_of(plan, path) for path in ("sites[0].power", "sites[0].power_by_phase.second")]
    assert [row["value"] for row in rows] == pytest.approx(drawn) and [row["name"] for row in rows] == [
        "power in us-virginia",
        "power in us-virginia from second on",
    ]
    for site in (
        {"power": "1 GW", "power_by_phase": {"second": "60 kW"}},
        {"power_by_phase": {"first": "1 GW", "second": "60 kW"}},
        {"power_by_phase": {"second": "60 kW"}},
    ):
        assert planner.solve(spec(site=site)).status == "infeasible"


def test_a_phase_without_a_limit_of_its_own_keeps_the_one_before(spec):
    problem = resolve_document(
        spec(
            site={"power": "50 kW", "power_by_phase": {"second": "90 kW"}},
            phases=[*PHASES, {"name": "third", "start": "3 years"}],
        )
    )
    assert [(limit.path, limit.windows, limit.most_w) for limit in power_limits(problem)] == [
        ("sites[0].power", (0, 0), 50e3), ("sites[0].power_by_phase.second", (1, 2), 90e3)]  # fmt: skip
    assert problem.sites[0].power_limit_w == 90e3


def test_power_that_comes_later_sends_the_first_phase_elsewhere(spec, free):
    """A second site with dearer electricity carries what the first has no power for until the second phase."""
    document = spec(site={"power": "12 kW", "power_by_phase": {"second": "10 MW"}, "electricity_price": "0.01 USD/kWh"})
    document["sites"].append({"region": "us-texas", "systems": ["DGX H100"], "electricity_price": "0.5 USD/kWh"})
    plan = solved(document)
    placed = {(row["site"], row["obtained"]): row["count"] for row in plan["fleet"]}
    assert (
        placed["us-texas", "first"] > 0 and placed["us-virginia", "second"] > 0 and ("us-texas", "second") not in placed
    )
    by_phase = [
        max(
            row["own_power_w"] if "own_power_w" in row else row["power_w"]
            for row in plan["schedule"]
            if (row["site"], row["window"]) == ("us-virginia", p)
        )
        for p in range(2)
    ]
    assert by_phase[0] <= 12e3 < by_phase[1]


def test_throughput_under_the_budgets_of_phases(spec, free):
    """What the plan pays in each phase is enough for all of its demand; half as much more in one phase only is of no use."""
    budget = {row["name"]: f"{row['paid'] * 1.0001:.0f} USD" for row in free["phases"]}
    asked = {"objective": {"maximise": "throughput"}, "solver": {"gap": 1e-6}}
    base = solved(spec(budget=budget, **copy.deepcopy(asked)))
    assert 1.0 - 1e-9 <= base["objective"]["value"] < 1.4
    more = solved(
        spec(
            budget={name: f"{row['paid'] * 1.5:.0f} USD" for name, row in zip(budget, free["phases"])},
            **copy.deepcopy(asked),
        )
    )
    assert more["objective"]["value"] > base["objective"]["value"]


# -- worth, conflict, mistakes -------------------------------------------------------------------------------------


def test_the_worth_of_what_binds(spec):
    """In the linear program a dollar more in a phase, or a watt more at the cheap site, makes the plan cheaper by what it displaces."""
    document = spec(site={"power": "12 kW", "power_by_phase": {"second": "30 kW"}, "electricity_price": "0.01 USD/kWh"})
    document["sites"].append({"region": "us-texas", "systems": ["DGX H100"], "electricity_price": "0.5 USD/kWh"})
    plan = solved(document)
    for path in ("sites[0].power", "sites[0].power_by_phase.second"):
        row = limit_of(plan, path)
        years = 2 * 365 * 24 / 1000
        # at most what the electricity of a watt costs more elsewhere, and what else a system there saves
        assert (
            -3 * 0.49 * years < row["marginal_value_divisible"] < -0.2 * 0.49 * years
            and row["marginal_unit"] == "USD/W"
            and row["note"] == ""
        )
    kept = {
        "residual": [{"age": "4 years", "fraction": 0.6}],
        "maintenance": 0,
    }  # so that buying beats renting in each phase
    rented = spec(budget={"first": "900000 USD"}, economics=kept)
    rented["offers"].append(RENT | {"price": "12 USD/h"})
    row = limit_of(solved(rented), "phases[0].budget")
    assert row["marginal_value_divisible"] < -0.01 and row["marginal_unit"] == "USD/USD"


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"budget": {"first": "300000 USD"}}, "phases[0].budget"),
        ({"budget": {"second": "0 USD"}}, "phases[1].budget"),
        ({"site": {"power": "20 kW"}}, "sites[0].power"),
        ({"site": {"power": "20 kW", "power_by_phase": {"second": "10 MW"}}}, "sites[0].power"),
        ({"site": {"power": "30 kW", "power_by_phase": {"second": "60 kW"}}}, "sites[0].power_by_phase.second"),
        ({"site": {"power_by_phase": {"second": "60 kW"}}}, "sites[0].power_by_phase.second"),
    ],
)
def test_the_limit_is_named_and_mended(spec, changes, path):
    found = planner.solve(spec(**changes))
    assert found.status == "infeasible"
    assert [row["path"] for row in found["diagnosis"]["conflict"]] == [path]
    assert [row["path"] for row in found["diagnosis"]["repair"]] == [path] and found["diagnosis"]["repair_checked"]


@pytest.mark.parametrize(
    ("changes", "path", "word"),
    [
        ({"site": {"power_by_phase": {"secnd": "1 MW"}}}, "sites[0].power_by_phase.secnd", "second"),
        ({"site": {"power": "2 MW", "power_by_phase": {"first": "1 MW"}}}, "sites[0].power", "never holds"),
        ({"site": {"power_by_phase": {"second": "1 MJ"}}}, "sites[0].power_by_phase.second", "20 MW"),
        ({"budget": {"second": "12 MW"}}, "phases[1].budget", "420M CNY"),
        ({"budget": {"second": "12M XYZ"}}, "phases[1].budget", "XYZ"),
        ({"budget": {"second": "1M USD"}, "robust": {"confidence": 0.8}}, "phases[1].budget", "robust"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec, changes, path, word):
    with pytest.raises(SpecError) as error:
        resolve_document(spec(**changes))
    assert any(problem.path == path and word in problem.message for problem in error.value.problems), str(error.value)


# -- the check of a plan -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["phases"][0].update(paid=d["phases"][0]["paid"] + 1),
        lambda d: limit_of(d, "phases[1].budget").update(value=1.0),
        lambda d: d["limits"].remove(limit_of(d, "phases[1].budget")),
        lambda d: d["limits"].remove(limit_of(d, "sites[0].power_by_phase.second")),
        lambda d: limit_of(d, "sites[0].power").update(value=limit_of(d, "sites[0].power_by_phase.second")["value"]),
        lambda d: d["spec"]["phases"][1].update(budget="2M USD"),
        lambda d: d["spec"]["sites"][0]["power_by_phase"].update(second="60 kW"),
    ],
)
def test_a_wrong_word_is_found(limited, change):
    document = copy.deepcopy(dict(limited.document))
    change(document)
    assert verify_plan(Plan(document))


@pytest.fixture(scope="module")
def limited(spec):
    return solved(spec(budget={"second": "5M USD"}, site={"power": "60 kW", "power_by_phase": {"second": "200 kW"}}))


# -- more room never costs more ------------------------------------------------------------------------------------


@settings(max_examples=few_of(8), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["budget", "power", "power later"]),
    st.integers(3, 5),
    st.sampled_from([1.0, 2.0, 4.0]),
    st.sampled_from([-0.3, 0.0, 0.3]),
)
def test_giving_way_never_costs_more(spec, what, size, factor, change):
    def asked(more):
        step = size + more
        budget = {"second": f"{1_000_000 * step} USD"} if what == "budget" else {}
        site = {
            "power": {"power": f"{10 * step} kW", "power_by_phase": {"second": "150 kW"}},
            "power later": {"power_by_phase": {"second": f"{30 * step} kW"}},
        }.get(what, {})
        return spec(
            budget=budget,
            site=site,
            offer={"price_change_per_year": change},
            demand={"factor_by_phase": {"second": factor}},
            solver={"gap": 1e-7, "time_limit": "120 s"},
        )

    tight, wide = planner.solve(asked(0)), planner.solve(asked(1))
    if tight.has_answer:
        assert wide.has_answer and wide["totals"]["cost"] <= tight["totals"]["cost"] * (1 + 1e-6)


def test_a_budget_of_a_phase_is_dispatched_over_all_hours_of_the_year(small_spec):
    """Demand by month is dispatched over 8,760 hours, with options that were held from the typical day."""
    spec = copy.deepcopy(small_spec)
    spec["horizon"] = {"start": "2027-01-01", "years": 2}
    spec["workloads"][0]["demand"]["months"] = list(range(1, 13))
    spec["phases"] = [
        {"name": "a", "start": "0 d", "budget": "100M USD"},
        {"name": "b", "start": "2028-01-01"},
    ]
    assert planner.solve(spec).has_answer
