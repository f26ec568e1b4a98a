"""Every coefficient of the program data, derived by hand from a spec of a few stated figures."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from planner.candidates.search import find_candidates
from planner.formulate.apis import price_parts, request_price
from planner.formulate.costs import slot_rates
from planner.formulate.facility import rack_room, racks_of
from planner.formulate.formulation import formulate, list_points
from planner.formulate.limits import functional_limits, largest_counts
from planner.formulate.preemption import restart_s
from planner.formulate.residency import point_load_s, spare_workers
from planner.formulate.spread import tried_slots
from planner.formulate.storage import rates
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec

IDLE_KW, FULL_KW, PUE = 0.273 * 10.2, 10.2, 1.2  # DGX H100
HOURS, DAY_SLOTS, KWH_J = 8760, 24, 3.6e6
SITE = {
    "region": "us-virginia",
    "systems": ["DGX H100"],
    "fabrics": ["scale-up"],
    "electricity_price": "0.10 USD/kWh",
    "pue": PUE,
}
OWNING = {
    "residual": [{"age": "1 year", "fraction": 0.6}, {"age": "5 years", "fraction": 0.1}],
    "maintenance": 0.05,
    "spare_parts": 0.0,
    "staff_per_power": "0 USD/kW-month",
    "staff_per_system": "0 USD/h",
}
RENT = {"system": "DGX H100", "how": "reserved", "price": "98 USD/h"}
PHASES = [{"name": "first", "start": "0 years"}, {"name": "second", "start": "1 year"}]
JOB = {
    "name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "1T", "batch_tokens": "1M", "sequence_tokens": 4096,
    "deadline": "1 year",
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tiny):
    """`made(sites=[...], ...)`: (resolved spec, formulation) of the tiny spec at 10 % a year, held in a hall at 100 USD per kW and month."""

    def make(years=1, **changes):
        document = tiny(
            **{
                "horizon": {"years": years, "discount_rate": 0.1},
                "sites": [SITE | {"colocation": "100 USD/kW-month"}],
                "economics": OWNING,
            }
            | changes
        )
        problem = resolve(parse_spec(document))
        return problem, formulate(problem, find_candidates(problem))

    return make


def test_a_bought_system_costs_its_loss_of_value_upkeep_hall_and_idle_power(made):
    _, form = made()
    price, hall, energy = 310_000, 100 * 12 * FULL_KW, IDLE_KW * PUE * HOURS * 0.10
    expected = price * (1 - 0.6 / 1.1) + (0.05 * price + hall + energy) / 1.1
    assert form.data.holding_cost["cost"] == pytest.approx([expected])
    assert form.data.holding_cost["capital"] == pytest.approx([price])
    assert form.data.holding_power_w == pytest.approx([IDLE_KW * PUE * 1e3])


def test_a_rented_system_costs_its_rent_alone(made):
    problem, form = made(years=2, offers=[RENT])
    assert form.data.holding_cost["cost"] == pytest.approx([98 * HOURS * (1 / 1.1 + 1 / 1.1**2)])
    assert form.data.holding_cost["capital"] == form.data.holding_power_w == [0.0]
    site, system = problem.sites[0], form.fleet_options[0].system
    mean_kg = float(site.carbon_kg_per_j[problem.calendar.hour].mean())
    made_kg = system.embodied_kg * 2 / form.fleet_options[0].offer.life_s(problem.economics) * HOURS * 3600
    operation_kg = IDLE_KW * 1e3 * PUE * 2 * HOURS * 3600 * mean_kg
    assert form.data.holding_cost["carbon_kg"] == pytest.approx([operation_kg + made_kg])


def test_each_point_is_listed_once_with_its_pool_or_its_job(made, tiny):
    problem, _ = made(workloads=[*tiny()["workloads"], JOB])
    candidates = find_candidates(problem)
    points, pools, jobs = list_points(candidates, problem)
    assert {-1, 0} == set(pools.tolist()) == set(jobs.tolist())
    for point, q, j in zip(points, pools, jobs, strict=True):
        assert (q < 0) != (j < 0)
        assert point in (candidates.training[problem.training[j].name] if q < 0 else candidates.pools[q].points)
    asked = [*candidates.training.values(), *(pool.points for pool in candidates.pools)]
    assert len({id(point) for point in points}) == len(points) == sum(map(len, asked))


def test_a_watt_costs_the_price_of_its_hour_and_emits_without_discount(made):
    problem, _ = made()
    found, seconds = slot_rates(problem), HOURS * 3600 / DAY_SLOTS
    assert found.cost_per_w == pytest.approx(np.full((1, DAY_SLOTS), 0.10 / KWH_J * seconds / 1.1))
    assert found.carbon_per_w[0] == pytest.approx(problem.sites[0].carbon_kg_per_j[problem.calendar.hour] * seconds)


def test_a_replica_costs_its_power_above_idle_at_the_meter(made):
    problem, form = made()
    (point,) = form.points
    above_w = sum(use.extra_it_w for use in point.uses) * PUE
    seconds = HOURS * 3600 / DAY_SLOTS
    assert form.data.point_power_w == pytest.approx([above_w])
    assert form.data.point_cost["cost"] == pytest.approx(
        np.full((1, DAY_SLOTS), above_w * 0.10 / KWH_J * seconds / 1.1)
    )
    assert form.data.point_cost["carbon_kg"] == pytest.approx(
        above_w * seconds * problem.sites[0].carbon_kg_per_j[problem.calendar.hour][None, :]
    )


def test_the_owner_pays_for_power_of_a_rented_system_above_idle(made):
    _, form = made(offers=[RENT])
    assert not form.data.point_cost["cost"].any() and not form.data.point_power_w.any()
    assert (form.data.point_cost["carbon_kg"] > 0).all()


# -- tokens and traffic ------------------------------------------------------------------------------------------------

API = {
    "name": "bought", "region": "us-virginia", "input": "2 USD/1M tokens", "output": "10 USD/1M tokens",
    "latency": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "20 ms"}}, "price_change_per_year": 0.5,
}  # fmt: skip


def test_a_request_costs_its_tokens_and_more_each_year(made):
    problem, form = made(years=2, apis=[API], phases=PHASES)
    place, workload = next((r, s) for r, s in enumerate(problem.sites) if s.api is not None), problem.serving[0]
    site, calendar = place[1], problem.calendar
    year = calendar.edges_s[calendar.window] / (HOURS * 3600)
    assert set(np.round(year, 9)) == {0.0, 1.0}
    prompt, answer = 500 * 2e-6, 200 * 10e-6
    assert request_price(site, workload, calendar) == pytest.approx((prompt + answer) * 1.5**year)
    parts = price_parts(site, workload, calendar)
    assert [float(part[0]) for part in parts.values()] == pytest.approx([prompt, answer])
    assert not request_price(problem.sites[0], workload, calendar).any()
    bought = [a for a, arc in enumerate(form.arcs) if arc[2] == place[0]]
    weight = calendar.seconds * calendar.discount
    for a in bought:
        route = problem.routes("chat", "us-virginia", site.region)[form.arc_kinds[a]]
        egress = problem.egress_bytes(workload) * route.price_per_byte
        assert form.data.arc_cost["cost"][a] == pytest.approx(weight * ((prompt + answer) * 1.5**year + egress))
    assert bought


# -- limits and supplies -----------------------------------------------------------------------------------------------


def test_a_supply_counts_all_phases_and_one_of_a_phase_its_own(made):
    offer = {"system": "DGX H100", "how": "buy", "price": "310000 USD"}
    problem, form = made(years=2, phases=PHASES, offers=[offer | {"supply": 5}, offer | {"price": "320000 USD"}])
    first = [u for u, (k, _) in enumerate(form.holdings) if form.fleet_options[k].offer.order == "offers[0]"]
    members = [tuple(pair) for pair in form.data.supply_member if form.data.supply_limit[pair[0]] == 5]
    assert {form.holdings[u][1].phase for u in first} == {0, 1}
    assert sorted(u for _, u in members) == first and len(problem.phases) == 2


def test_racks_of_a_hall_limit_what_stands_in_it(made):
    _, form = made(sites=[SITE | {"rack_positions": 3}])
    (option,) = form.fleet_options
    share = racks_of(option)  # a DGX H100 shares a rack with others
    assert share == pytest.approx(1 / option.site.hall.systems_in_rack(option.system.rack)) and share < 1
    assert rack_room(option) == pytest.approx(3 / share)
    assert form.data.site_racks == pytest.approx([3]) and form.data.holding_racks == pytest.approx([share])
    _, rented = made(sites=[SITE | {"rack_positions": 3}], offers=[RENT])
    assert racks_of(rented.fleet_options[0]) == 0 and rack_room(rented.fleet_options[0]) == math.inf


def test_the_most_systems_carry_all_demand_at_the_slowest_point(made, tiny):
    workload = tiny()["workloads"][0] | {"demand": {"requests_per_s": 30000}}
    problem, form = made(workloads=[workload], solver={"replicas": "divisible"})
    (point,) = form.points
    (use,) = point.uses
    counts = largest_counts(problem, form.fleet_options, form.holdings, form.points, form.data.holding_cost, (), False)
    assert counts == pytest.approx([math.ceil(30000 * use.systems / point.capacity)]) and counts[0] > 10
    tight, form = made(
        workloads=[workload], solver={"replicas": "divisible"}, limits={"capital": "1.5M USD"},
        offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
    )  # fmt: skip
    assert form.data.holding_upper == pytest.approx([4])  # 4 x 310,000 = 1.24M, 5 are 1.55M
    (limit,) = functional_limits(tight)
    assert (limit.functional, limit.upper) == ("capital", 1.5e6)


def test_the_power_limit_is_that_of_the_site(made):
    _, form = made(sites=[SITE | {"power": "2 MW"}])
    assert form.data.site_power_limit_w == pytest.approx([2e6])
    _, form = made(years=2, phases=PHASES, sites=[SITE | {"power": "2 MW", "power_by_phase": {"second": "5 MW"}}])
    stages = form.data.power_stages
    assert stages.limit_w == pytest.approx([2e6, 5e6])
    assert stages.first.tolist() == [0, int(stages.last[0]) + 1]


# -- replicas, jobs and zones ------------------------------------------------------------------------------------------


def test_a_failing_system_takes_its_workers_down(made):
    _, form = made()
    (use,) = form.points[0].uses
    assert spare_workers(replace(use, systems=0.25, workers=1)) == 4
    assert spare_workers(replace(use, systems=0.25, workers=2)) == 8
    assert spare_workers(replace(use, systems=3.0, workers=1)) == 1
    spot = {
        "system": "DGX H100",
        "how": "spot",
        "price": "40 USD/h",
        "interruption_interval": "10 days",
        "headroom": 0.25,
    }
    _, form = made(offers=[spot])
    (use,) = form.points[0].uses
    assert spare_workers(replace(use, systems=1.25 * 0.25, workers=1)) == 4  # the headroom is held beside them


def test_a_worker_loads_its_weights_from_storage(made):
    problem, form = made(sites=[SITE | {"storage_bandwidth": "2 GB/s"}])
    start = problem.constants.loading.engine_start_s
    assert point_load_s(problem, form.points[0]) == pytest.approx(start + problem.serving[0].weights_bytes / 2e9)


def test_a_job_reads_its_data_and_writes_checkpoints(made):
    problem, form = made(workloads=[JOB | {"token_bytes": "4 B"}], sites=[SITE | {"storage_bandwidth": "2 GB/s"}])
    point = form.points[0]
    read, written = rates(problem, point)
    assert read == pytest.approx(4 * point.capacity / point.goodput) and written > 0
    assert form.data.point_storage[0] == pytest.approx(read + written)
    assert form.data.site_storage == pytest.approx([2e9])
    _, free = made(workloads=[JOB])
    assert free.data.point_storage is None


def test_a_job_loses_the_stated_restart_and_serving_nothing(made, tiny):
    problem, form = made(workloads=[*tiny()["workloads"], JOB | {"preemption": {"restart": "90 s"}}])
    found = {point.workload.name: restart_s(problem, point) for point in form.points}
    assert found == {"chat": 0.0, "tune": 90.0}
    assert sorted(set(form.data.point_restart_s.tolist())) == [0.0, 90.0]


def test_the_busiest_slot_of_each_window_is_tried(made):
    problem, _ = made()
    rows = np.ones((2, DAY_SLOTS))
    rows[0, 7], rows[0, 9] = 5.0, 5.0 * (1 + 1e-15)  # equal within rounding: the first of them
    rows[1, 20] = 2.0
    assert tried_slots(problem, rows).tolist() == [7, 20]
