"""Fields of the program data, each from its own function and a few stated figures."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from catalog.units import YEAR_S
from planner.candidates.search import find_candidates
from planner.formulate.apis import token_costs
from planner.formulate.costs import (
    arc_terms,
    dates_of,
    holding_terms,
    paid_per_present_value,
    point_terms,
    site_terms,
    slot_rates,
)
from planner.formulate.electricity import meter_arrays
from planner.formulate.facility import facility_arrays
from planner.formulate.formulation import formulate
from planner.formulate.functionals import Functionals, capital_of, functionals_of, paid_in
from planner.formulate.limits import power_fields, supply_fields
from planner.formulate.lines import line_data
from planner.formulate.parts import part_limits
from planner.formulate.porting import needs, port_data
from planner.formulate.preemption import preemption_arrays
from planner.formulate.quality import choice_data
from planner.formulate.relays import relay_arrays, relay_terms, worker_price
from planner.formulate.residency import (
    is_spared,
    point_load_s,
    point_ready_s,
    residency_arrays,
    serves_on_systems,
    spare_workers,
)
from planner.formulate.spread import spread_data
from planner.formulate.storage import storage_arrays
from planner.money.components import GRID, REPLICA, REQUEST, SITE, SYSTEM
from planner.money.terms import CAPITAL, CARBON, COST, ENERGY, Flowing, coefficients
from planner.problem.economics import Economics
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

NS = SimpleNamespace
USD_PER_J = 0.10 / 3.6e6
IDLE_W, PUE = 0.273 * 10_200, 1.2  # DGX H100
BUY = {"system": "DGX H100", "how": "buy", "price": "300000 USD"}
RENT = {"system": "DGX H100", "how": "reserved", "price": "98 USD/h"}
TWO_PHASES = {
    "horizon": {"years": 2, "discount_rate": 0.0},
    "phases": [{"name": "one", "start": "0 years"}, {"name": "two", "start": "1 year"}],
}
JOB = {
    "name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "1T", "batch_tokens": "1M", "sequence_tokens": 4096,
    "deadline": "1 year",
}  # fmt: skip
NO_COSTS = Functionals({COST: ()})


@pytest.fixture(scope="module")
def made(tiny):
    """`made(sites=[...], ...)`: (resolved spec, formulation) of the tiny spec over a year without discount at 0.10 USD/kWh."""
    site = tiny()["sites"][0] | {"electricity_price": "0.10 USD/kWh", "pue": PUE, "fabrics": ["scale-up"]}

    def make(site_changes=(), workload_changes=(), **changes):
        document = tiny(horizon={"years": 1, "discount_rate": 0.0}, sites=[site | dict(site_changes)])
        document["workloads"][0] |= dict(workload_changes)
        problem = resolve(parse_spec(document | changes))
        return problem, formulate(problem, find_candidates(problem))

    return make


@pytest.fixture(scope="module")
def plain(made):
    """A system bought, or rented."""
    return made(offers=[BUY, RENT])


def added(terms, functional, decision, *shape):
    return coefficients([term for term in terms if term.functional == functional], decision, shape)


# -- terms -------------------------------------------------------------------------------------------------------------


def test_a_request_has_the_present_value_of_its_tokens_by_path():
    site = NS(path="apis[0]", api=NS(input_price=2e-6, output_price=10e-6, price_change=0.5))
    asked = NS(spec=NS(prompt_tokens=500, lengths=NS(output=200)))
    calendar = NS(
        edges_s=np.array([0.0, YEAR_S, 2 * YEAR_S]), window=np.array([0, 1]), seconds=np.array([10.0, 20.0]),
        discount=np.array([1.0, 0.5]), slots=2,
    )  # fmt: skip
    found = token_costs(site, asked, calendar)
    assert list(found) == ["apis[0].input", "apis[0].output"]
    assert found["apis[0].input"] == pytest.approx(
        [10 * 0.001, 10 * 0.001 * 1.5]
    )  # 20 s at half the worth, 1.5 times the price
    assert found["apis[0].output"] == pytest.approx([10 * 0.002, 10 * 0.002 * 1.5])
    assert token_costs(NS(api=None), asked, calendar) == {}


def test_idle_energy_is_drawn_by_bought_and_rented_systems_and_paid_for_by_their_owner(plain):
    problem, form = plain
    terms = holding_terms(problem, form.fleet_options, form.holdings, {"us-virginia": 0}, slot_rates(problem))
    counted, paid = (
        added([t for t in terms if t.component == "energy"], functional, SYSTEM, len(form.holdings))
        for functional in (ENERGY, COST)
    )
    owned = np.array([form.fleet_options[k].owned for k, _ in form.holdings])
    assert sorted(owned) == [False, True]
    assert counted == pytest.approx([IDLE_W * PUE * YEAR_S] * 2)
    assert paid == pytest.approx(counted * USD_PER_J * owned)


def test_a_replica_draws_its_power_above_idle_in_each_slot(plain):
    problem, form = plain
    terms = point_terms(problem, form.points, {"us-virginia": 0}, slot_rates(problem))
    shape = (len(form.points), problem.calendar.slots)
    energy, cost = (added(terms, functional, REPLICA, *shape).sum(axis=1) for functional in (ENERGY, COST))
    watts = [sum(use.extra_it_w for use in point.uses) * PUE for point in form.points]
    owned = np.array([point.uses[0].option.owned for point in form.points])
    assert energy == pytest.approx(np.array(watts) * YEAR_S)
    assert cost == pytest.approx(energy * USD_PER_J * owned)
    assert owned.any() and not owned.all()


def test_a_request_pays_for_its_bytes_in_each_second(made):
    problem, form = made(workload_changes={"origins": [{"region": "us-texas", "share": 1}]})
    terms = arc_terms(problem, find_candidates(problem), form.arcs, form.origins, form.arc_kinds, slot_rates(problem))
    path = problem.routes("chat", "us-texas", "us-virginia")[form.arc_kinds[0]]
    by_hand = problem.egress_bytes(problem.serving[0]) * path.price_per_byte * YEAR_S
    assert by_hand > 0
    found = added(terms, COST, REQUEST, len(form.arcs), problem.calendar.slots).sum(axis=1)
    assert found == pytest.approx([by_hand] * len(form.arcs))


def test_a_site_is_paid_for_from_when_it_exists():
    dates = dates_of_two_years()
    sites = (NS(region="old", fixed_cost_per_s=3.0, crew_per_s=1.0, from_s=0.0), NS(region="free", fixed_cost_per_s=0.0, crew_per_s=0.0, from_s=0.0),
             NS(region="new", fixed_cost_per_s=2.0, crew_per_s=0.0, from_s=YEAR_S))  # fmt: skip
    calendar = NS(
        windows=2, edges_s=np.array([0.0, YEAR_S, 2 * YEAR_S]), risen=lambda rate: np.array([1.0, 1.0 + rate])
    )
    economics = NS(escalation=NS(staff=0.1))
    rates = NS(dates=dates, worth=dates.seconds * dates.discount)
    found = coefficients(site_terms(NS(sites=sites, calendar=calendar, economics=economics), rates), SITE, (3,))
    crew = 1.0 + 1.1 * 0.5  # whose pay rises by a tenth in the second year
    assert found == pytest.approx([(3 * 1.5 + crew) * YEAR_S, 0.0, 2 * 0.5 * YEAR_S])


YEARS = (NS(start_s=0.0, end_s=YEAR_S), NS(start_s=YEAR_S, end_s=2 * YEAR_S))


def dates_of_two_years():
    """Two years of one slot each, the second worth half."""
    calendar = NS(
        window=np.array([0, 1]), seconds=np.array([YEAR_S, YEAR_S]), discount=np.array([1.0, 0.5]),
        edges_s=np.array([0.0, YEAR_S, 2 * YEAR_S]), windows=2,
    )  # fmt: skip
    return dates_of(NS(calendar=calendar, economics=Economics(0.0, 2, 5.0, 20.0), phases=YEARS))


def test_an_even_payment_is_more_than_its_present_value():
    calendar = NS(window_seconds=lambda: np.array([10.0, 10.0]), window_discount=lambda: np.array([1.0, 0.5]))
    assert paid_per_present_value(calendar, NS(start_s=0.0, end_s=10.0)) == pytest.approx(10 / 15)
    assert paid_per_present_value(calendar, NS(start_s=0.0, end_s=20.0)) == pytest.approx(20 / 15)


# -- functionals and limits --------------------------------------------------------------------------------------------


def test_a_functional_of_a_phase_exists_where_the_spec_limits_the_phase():
    limited, free = NS(name="one", capital=5.0, budget=np.inf), NS(name="two", capital=np.inf, budget=9.0)
    dates = dates_of_two_years()
    grid = {
        "decision": GRID,
        "at": np.array([0]),
        "places": (("here", "", ""),),
        "dates": dates,
        "follows": np.array([0]),
    }
    money = Flowing(component="energy", per_unit=np.array([2.0]), profile=np.ones((1, 2)), **grid)
    carbon = Flowing(
        component="operation", functional=CARBON, per_unit=np.array([7.0]), profile=np.ones((1, 2)), **grid
    )
    found = functionals_of(NS(phases=(limited, free)), [money, carbon])
    assert set(found.terms) == {COST, CARBON, CAPITAL, "capital of one", "paid in two"}
    assert (capital_of(limited), paid_in(free)) == ("capital of one", "paid in two")
    watt = found.of(GRID, 1, 2)
    assert watt[COST].tolist() == [[2.0, 2.0]] and watt[CARBON].tolist() == [[7.0, 7.0]]
    assert watt["paid in two"].tolist() == [[0.0, 4.0]]  # not discounted
    assert "capital of one" not in watt  # nothing is bought


def test_power_may_change_between_phases(made):
    problem, _ = made({"power": "2 MW"})
    assert power_fields(problem)["site_power_limit_w"].tolist() == [2e6]
    problem, _ = made({"power": "2 MW", "power_by_phase": {"two": "5 MW"}}, **TWO_PHASES)
    stages = power_fields(problem)["power_stages"]
    assert (stages.site.tolist(), stages.limit_w.tolist()) == ([0, 0], [2e6, 5e6])


def test_a_supply_counts_its_offer(made):
    problem, form = made(offers=[BUY | {"supply": 5}, RENT])
    found = supply_fields(problem, form.fleet_options, form.holdings)
    bought = [u for u, (k, _) in enumerate(form.holdings) if form.fleet_options[k].offer.how == "buy"]
    assert found["supply_limit"].tolist() == [5.0]
    assert found["supply_member"].tolist() == [[0, u] for u in bought]


def test_positions_count_racks_of_what_is_bought(made):
    problem, form = made({"rack_positions": 3}, offers=[BUY, RENT])
    found = facility_arrays(problem, form.fleet_options, form.holdings)
    share = 1 / problem.sites[0].hall.systems_in_rack(form.fleet_options[0].system.rack)
    owned = np.array([form.fleet_options[k].owned for k, _ in form.holdings])
    assert found["site_racks"].tolist() == [3.0]
    assert found["holding_racks"] == pytest.approx(share * owned)
    free, form = made()
    assert facility_arrays(free, form.fleet_options, form.holdings) == {}


def test_parts_are_counted_where_the_spec_limits_them(made):
    problem, form = made(
        simplicity={"within": 0, "most_sites": 2, "least_systems": 3}, offers=[BUY | {"least": 4}, RENT]
    )
    parts = part_limits(problem, form.fleet_options, form.holdings)["parts"]
    assert (parts.most_sites, parts.most_kinds, parts.least_systems) == (2.0, np.inf, 3)
    assert parts.order_least.tolist() == [4]
    at = [0 if form.fleet_options[k].offer.how == "buy" else -1 for k, _ in form.holdings]
    assert parts.order.tolist() == at and parts.counted.all()
    free, form = made()
    assert part_limits(free, form.fleet_options, form.holdings) == {}


# -- blocks of the program ---------------------------------------------------------------------------------------------


def test_slots_are_in_order_where_requests_may_wait(made):
    demand = {"requests_per_s": 30, "deferral": "3 h"}
    problem, _ = made(workload_changes={"demand": demand})
    found = meter_arrays(problem, NO_COSTS)
    assert found["wait_slots"].tolist() == [3] and found["meters"] is None
    assert found["order"].step_s == pytest.approx(np.full(24, 3600.0))
    assert found["order"].next.tolist() == [*range(1, 24), 0]
    assert meter_arrays(made()[0], NO_COSTS) == {}


def test_a_program_without_lines_has_no_data_of_lines(made):
    problem, form = made()
    assert line_data(problem, form.arcs, form.arc_kinds, form.origins, NO_COSTS) is None
    lines = [{"kind": "dedicated line", "capacity": "8 Gbit/s", "units": 4}]
    problem, form = made(lines=lines, workload_changes={"weights_from": "us-texas"})
    found = line_data(problem, form.arcs, form.arc_kinds, form.origins, NO_COSTS)
    names = [line.kind for line in problem.lines.lines]
    at = names.index("dedicated line")
    assert found.line_capacity[at] == pytest.approx(1e9) and found.line_upper[at] == 4
    assert found.channel_line.tolist() == [l for l in range(len(names)) for _ in (0, 1)]


def test_a_port_is_needed_by_points_of_its_family_and_architecture():
    def point(name, family):
        return NS(workload=NS(name=name), uses=[NS(option=NS(system=NS(family=family)))])

    facts = NS(family="hopper", workloads=("chat",), exchange=False)
    points = [point("chat", "hopper"), point("chat", "ampere"), point("other", "hopper")]
    assert [needs(facts, p) for p in points] == [True, False, False]
    found = port_data(NS(porting=[facts, NS(family="ampere", workloads=("chat",), exchange=False)]), points, NO_COSTS)
    assert found.member.tolist() == [[0, 0], [1, 1]] and found.groups == 2
    assert port_data(NS(porting=[]), points, NO_COSTS) is None


def test_an_exchange_of_caches_is_needed_by_pools_of_two_vendors():
    def point(*vendors):
        return NS(workload=NS(name="chat"), uses=[NS(option=NS(system=NS(vendor=vendor))) for vendor in vendors])

    facts = NS(family="", workloads=("chat",), exchange=True)
    assert [needs(facts, p) for p in (point("A", "B"), point("A", "A"), point("A"))] == [True, False, False]


def test_jobs_that_yield_lose_their_restart(made, tiny):
    problem, form = made(workloads=[*tiny()["workloads"], JOB | {"preemption": {"restart": "90 s"}}])
    found = preemption_arrays(problem, form.points)["point_restart_s"]
    assert found.tolist() == [90.0 if point.workload.name == "tune" else 0.0 for point in form.points]
    problem, form = made(workloads=[JOB | {"preemption": None}])
    assert preemption_arrays(problem, form.points) == {}
    problem, form = made(workloads=[JOB | {"preemption": {"least_run": "3 h"}}])
    assert set(preemption_arrays(problem, form.points)["point_least_run_s"]) == {3 * 3600.0}


def test_architectures_that_answer_the_same_demand_are_one_group(monkeypatch):
    monkeypatch.setattr("planner.formulate.quality.below_floors", lambda problem: {"small"})
    serving = [NS(name="alone"), NS(name="large"), NS(name="small")]
    asked = NS(members={"L": "large", "S": "small"}, scores={"L": 0.8, "S": 0.6}, mix="none", least=0.7)
    found = choice_data(NS(serving=serving, quality=[NS(members={"A": "alone"}), asked]))
    assert found.group.tolist() == [-1, 0, 0] and found.score.tolist() == [0.0, 0.8, 0.6]
    assert found.one.tolist() == [True] and found.able.tolist() == [True, True, False]
    assert found.least.tolist() == [-np.inf]  # one architecture alone: no mean
    assert choice_data(NS(serving=serving, quality=[NS(members={"A": "alone"})])) is None


def test_a_worker_is_ready_when_its_engine_has_started_and_its_weights_are_read(made):
    problem, form = made({"storage_bandwidth": "2 GB/s"}, workload_changes={"redundancy": "N+1"})
    point = form.points[0]
    start, weights = problem.constants.loading.engine_start_s, problem.serving[0].weights_bytes / 2e9
    assert sum(point_ready_s(problem, point).values()) == pytest.approx(start + weights)
    found = residency_arrays(problem, form.points)
    assert found["point_whole"].all() and found["point_load_s"][0] == pytest.approx(point_load_s(problem, point))
    assert serves_on_systems(point) and is_spared(point)
    (use,) = point.uses
    assert found["use_spares"][0] == spare_workers(use) == round(1 / use.systems_per_worker)
    assert found["use_workers"][0] == use.workers
    divisible, form = made(solver={"replicas": "divisible"})
    assert residency_arrays(divisible, form.points) == {}
    assert not is_spared(form.points[0])
    assert not serves_on_systems(NS(workload=point.workload, uses=[NS(role="api")]))


def test_a_spread_workload_has_its_zones_and_busiest_slots(made, tiny):
    sites = [{"region": region, "systems": ["DGX H100"]} for region in ("us-virginia", "us-texas")]
    problem, _ = made(
        sites=sites, workload_changes={"spread": {"zones": 2, "least_share": 0.2, "largest_share": 0.7, "survive": 1}}
    )
    demand = np.zeros((1, 1, problem.calendar.slots))
    demand[0, 0, 5] = 9.0
    found = spread_data(problem, demand, None)
    assert sorted(found.site_zone.tolist()) == [0, 1]
    assert (found.zones.tolist(), found.least_share.tolist(), found.largest_share.tolist()) == ([2], [0.2], [0.7])
    assert found.survives.tolist() == [True] and found.tried_slots.tolist() == [5]
    assert spread_data(made()[0], demand, None) is None


def test_storage_carries_jobs_where_it_is_limited(made):
    job = JOB | {"token_bytes": "4 B"}
    problem, form = made({"storage_bandwidth": "2 GB/s"}, workloads=[job])
    found = storage_arrays(problem, form.points)
    assert found["site_storage"].tolist() == [2e9]
    point = form.points[0]
    assert found["point_storage"][0] > 4 * point.capacity / point.goodput  # its data, and checkpoints beside them
    free, form = made(workloads=[job])
    assert storage_arrays(free, form.points) == {}


def test_a_load_costs_what_its_systems_do_meanwhile_and_in_36_seconds_more(made):
    problem, form = made({"storage_bandwidth": "2 GB/s"}, solver={"replicas": "whole"})
    point = form.points[0]
    (use,) = point.uses
    load_s, offer = point_load_s(problem, point), use.option.offer
    per_s = offer.prices[point.site] / offer.life_s(problem.economics)
    assert worker_price(problem, use, load_s) == pytest.approx(use.systems_per_worker * (load_s + 36) * per_s)
    (terms,) = relay_terms(problem, form.points, slot_rates(problem))
    assert (terms.component, terms.decision, terms.workload[0]) == ("relays", "load", point.workload.name)
    assert terms.per_unit[0] == pytest.approx(worker_price(problem, use, load_s))
    found = relay_arrays(problem, form.points, functionals_of(problem, [terms]))["relays"]
    calendar = problem.calendar
    assert found.per_day == 2.0
    assert found.cost["cost"][0, 3] == pytest.approx(
        terms.per_unit[0] * calendar.seconds[3] * calendar.discount[3] / 3600
    )


def test_loads_cost_what_is_stated_or_nothing(made):
    whole = {"solver": {"replicas": "whole"}}
    problem, form = made(operation={"relay_cost": "9 USD", "relays_per_day": None}, **whole)
    use = form.points[0].uses[0]
    assert worker_price(problem, use, 60.0) == pytest.approx(9 * use.systems_per_worker)
    assert np.isinf(form.data.relays.per_day)
    free, form = made(operation={"relay_cost": None, "relays_per_day": None}, **whole)
    assert form.data.relays is None and worker_price(free, form.points[0].uses[0], 60.0) == 0.0
    divisible, form = made(solver={"replicas": "divisible"})
    assert relay_terms(divisible, form.points, slot_rates(divisible)) == [] and form.data.relays is None
