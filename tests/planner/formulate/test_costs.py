"""Terms of holdings, points, arcs and sites against numbers derived by hand: a year of one site at 0.10 USD/kWh, without discount."""

from __future__ import annotations

import numpy as np
import pytest

from catalog.units import YEAR_S
from planner.candidates.search import find_candidates
from planner.formulate.costs import copy_terms, dates_of, port_terms
from planner.formulate.formulation import formulate
from planner.money.components import COPY, PORT, REPLICA, REQUEST, SITE, SYSTEM
from planner.money.terms import COST, coefficients, in_phase
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

PRICE, PUE, RENT_PER_H = 300_000.0, 1.25, 40.0
USD_PER_J = 0.10 / 3.6e6


@pytest.fixture(scope="module")
def form(tiny):
    """Systems that are bought, half of whose price is left after the year, or rented on a commitment."""
    spec = tiny(
        horizon={"years": 1, "discount_rate": 0.0},
        economics={
            "residual": [{"age": "1 year", "fraction": 0.5}], "maintenance": 0.05, "spare_parts": 0.02,
            "staff_per_power": "0 USD/kW-month", "staff_per_system": "1000 USD/year", "software_per_system": "200 USD/year",
        },
        offers=[
            {"system": "DGX H100", "how": "buy", "price": f"{PRICE} USD"},
            {"system": "DGX H100", "how": "reserved", "price": f"{RENT_PER_H} USD/h"},
        ],
    )  # fmt: skip
    spec["workloads"][0]["origins"] = [{"region": "us-virginia", "share": 0.5}, {"region": "us-texas", "share": 0.5}]
    spec["sites"][0] |= {"electricity_price": "0.10 USD/kWh", "pue": PUE, "fixed_cost": "36500 USD/year"}
    problem = resolve(parse_spec(spec))
    return problem, formulate(problem, find_candidates(problem))


def of(form, component, decision, shape):
    return coefficients([t for t in form.terms if t.component == component and t.functional == COST], decision, shape)


def test_owning_a_system_for_a_year(form):
    problem, form = form
    assert problem.calendar.seconds.sum() == pytest.approx(YEAR_S)
    for u, (k, _) in enumerate(form.holdings):
        option = form.fleet_options[k]
        found = {name: of(form, name, SYSTEM, (len(form.holdings),))[u] for name in
                 ("systems", "fabric", "maintenance", "spare parts", "staff", "software", "energy", "rent")}  # fmt: skip
        network = option.fabric_capital
        idle = option.idle_it_w * PUE * YEAR_S * USD_PER_J
        by_hand = {
            "systems": PRICE / 2, "fabric": network / 2, "maintenance": 0.05 * (PRICE + network), "spare parts": 0.02 * PRICE / 2,
            "staff": 1000.0, "software": 200.0, "energy": idle, "rent": 0.0,
        }  # fmt: skip
        if not option.owned:
            by_hand = dict.fromkeys(by_hand, 0.0) | {"rent": RENT_PER_H * 8760, "software": 200.0}
        assert found == {name: pytest.approx(amount) for name, amount in by_hand.items()}


def test_the_objective_is_the_sum_of_all_terms(form):
    _, form = form
    terms = [t for t in form.terms if t.functional == COST]
    assert form.data.holding_cost[COST] == pytest.approx(coefficients(terms, SYSTEM, (len(form.holdings),)))
    shape = form.data.point_cost[COST].shape
    assert form.data.point_cost[COST] == pytest.approx(coefficients(terms, REPLICA, shape))
    owned = np.array([form.fleet_options[k].owned for k, _ in form.holdings])
    capital = form.data.holding_cost["capital"]
    network = np.array([form.fleet_options[k].fabric_capital for k, _ in form.holdings])
    assert capital == pytest.approx(np.where(owned, 1.02 * PRICE + network, 0.0))


def test_a_busy_replica_pays_for_energy_above_idle_where_systems_are_owned(form):
    _, form = form
    found = of(form, "energy", REPLICA, form.data.point_cost[COST].shape).sum(axis=1)
    for p, point in enumerate(form.points):
        watts = sum(use.extra_it_w * PUE for use in point.uses if use.option.owned)
        assert found[p] == pytest.approx(watts * YEAR_S * USD_PER_J)


def test_a_request_pays_for_the_bytes_of_its_answer(form):
    problem, form = form
    found = of(form, "egress", REQUEST, form.data.arc_cost[COST].shape).sum(axis=1)
    for a, (w, o, _, _) in enumerate(form.arcs):
        workload = problem.serving[w]
        path = problem.routes(workload.name, form.origins[o], problem.sites[0].region)[""]
        assert found[a] == pytest.approx(problem.egress_bytes(workload) * path.price_per_byte * YEAR_S)
    assert found.any()


def test_a_site_costs_its_fixed_amount_for_the_year(form):
    _, form = form
    assert of(form, "site", SITE, (1,)) == pytest.approx([36500.0])


# -- what falls due at dates ---------------------------------------------------------------------------------------------

TWO_YEARS = {"years": 2, "discount_rate": 0.0}
PHASES = [{"name": "one", "start": "0 years"}, {"name": "two", "start": "1 year"}]


@pytest.fixture(scope="module")
def phased(tiny):
    """A commitment of four years for two, half of whose rest is owed; tokens at 3 USD per million, dearer by a tenth each year."""
    kept = {"ttft": {"p99": "500 ms"}, "tpot": {"p95": "30 ms"}}
    sold = {"name": "gateway", "region": "us-ohio", "output": "3 USD/1M tokens", "price_change_per_year": 0.1}
    spec = tiny(
        horizon=TWO_YEARS,
        phases=PHASES,
        offers=[
            {"system": "DGX H100", "how": "reserved", "price": "40 USD/h", "term": "4 years", "exit_fee": 0.5},
            {"system": "DGX H100", "how": "buy", "price": f"{PRICE} USD"},
        ],
        apis=[sold | {"latency": kept}],
        economics={"maintenance": 0.05, "spare_parts": 0.02},
    )
    spec["workloads"][0]["slo"] = {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}
    problem = resolve(parse_spec(spec))
    return problem, formulate(problem, find_candidates(problem))


def test_the_rest_of_a_commitment_is_owed_in_the_last_phase(phased):
    _, form = phased
    found = of(form, "early exit", SYSTEM, (len(form.holdings),))
    owed = [
        coefficients(in_phase([t for t in form.terms if t.component == "early exit"], p), SYSTEM, found.shape)
        for p in (0, 1)
    ]
    for u, (k, term) in enumerate(form.holdings):
        years = 4 - (2 - term.phase) if form.fleet_options[k].offer.how == "reserved" else 0
        assert found[u] == pytest.approx(0.5 * years * RENT_PER_H * 8760)
        assert (owed[0][u], owed[1][u]) == pytest.approx((0.0, found[u]))


def test_a_phase_pays_for_what_is_delivered_and_kept_in_it(phased):
    _, form = phased
    shape = (len(form.holdings),)
    for component, first, yearly in (
        ("systems", PRICE, 0.0),
        ("spare parts", 0.02 * PRICE, 0.0),
        ("maintenance", 0.0, 0.05 * PRICE),
    ):
        terms = [t for t in form.terms if t.component == component and t.functional == COST]
        paid = [coefficients(in_phase(terms, p), SYSTEM, shape) for p in (0, 1)]
        for u, (k, term) in enumerate(form.holdings):
            option = form.fleet_options[k]
            if option.owned and not option.fabric_capital:
                by_hand = [first * (term.phase == p) + yearly * (term.phase <= p) for p in (0, 1)]
                assert [paid[0][u], paid[1][u]] == pytest.approx(by_hand)


def test_an_api_is_paid_by_the_token_at_the_price_of_the_year(phased):
    problem, form = phased
    found = of(form, "api", REQUEST, form.data.arc_cost[COST].shape)
    tokens = problem.serving[0].spec.lengths.output
    bought = [a for a, (_, _, r, _) in enumerate(form.arcs) if problem.sites[r].api is not None]
    assert bought
    for a in range(len(form.arcs)):
        by_hand = 3e-6 * tokens * YEAR_S * (1 + 1.1) if a in bought else 0.0
        assert found[a].sum() == pytest.approx(by_hand)


def test_ports_are_paid_in_the_first_phase(tiny):
    problem = resolve(
        parse_spec(tiny(porting=[{"family": "hopper", "cost": "5000 USD"}], horizon=TWO_YEARS, phases=PHASES))
    )
    terms = port_terms(problem, dates_of(problem))
    assert coefficients(terms, PORT, (1,)).tolist() == [5000.0]
    assert [coefficients(in_phase(terms, p), PORT, (1,)).tolist() for p in (0, 1)] == [[5000.0], [0.0]]


def test_weights_are_sent_evenly_over_the_phases(tiny):
    spec = tiny(horizon=TWO_YEARS, phases=PHASES)
    spec["sites"].append({"region": "us-texas"})
    spec["workloads"][0] |= {"weights_from": "us-oregon", "weight_updates_per_year": 12}
    problem = resolve(parse_spec(spec))
    terms = copy_terms(problem, dates_of(problem))
    cost = problem.trees["chat"].edge_cost
    assert any(cost)
    assert coefficients(terms, COPY, (len(cost),)) == pytest.approx(cost)
    for p in (0, 1):
        assert coefficients(in_phase(terms, p), COPY, (len(cost),)) == pytest.approx(np.array(cost) / 2)
