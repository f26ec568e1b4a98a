"""Rows of a plan from decisions of a few stated numbers, each derived by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from planner.interpret import lines as line_rows
from planner.interpret.electricity import ElectricityDecisions, rings
from planner.interpret.facility import facility_limits, facility_rows
from planner.interpret.owned import owned_rows
from planner.interpret.preemption import preemption_rows
from planner.interpret.quality import quality_rows, requests_by_member
from planner.interpret.spread import spread_rows
from planner.interpret.storage import storage_used
from planner.money.terms import Dates, Flowing
from planner.problem.facility import HallFacts, RackFacts
from planner.problem.facts import QualityFacts
from planner.problem.lines import Carrier
from planner.problem.owned import OwnedFacts
from planner.resolve.resolver import resolve
from planner.spec.model import parse_spec
from solvers.model.block_data.electricity import Chronology, MeterData

NS = SimpleNamespace
CALENDAR = NS(
    slots=3, seconds=np.array([100.0, 200.0, 300.0]), discount=np.array([1.0, 0.5, 0.5]), hour=np.arange(3),
    next=np.array([1, 2, 0]), step_s=np.full(3, 10.0),
)  # fmt: skip


def test_storage_is_used_at_the_width_of_each_slot():
    site = NS(path="sites[0]", region="a", storage_bytes_per_s=5e9, api=None)
    decided = NS(
        problem=NS(calendar=CALENDAR, sites=[site]), used=[0, 1],
        form=NS(points=[NS(site="a"), NS(site="a")], data=NS(point_storage=np.array([1e9, 2e9]))),
        active=np.array([[1.0, 0.25, 0.0], [0.0, 0.25, 2.0]]),
    )  # fmt: skip
    ((_, used, limit),) = storage_used(decided)
    assert (used, limit) == (4e9, 5e9)  # 1, 0.25 + 0.5, and 4 GB/s


def hall_with(counts):
    """Two holdings of one kind of system, four of which share a rack of 40 kW."""
    rack = RackFacts(racks=1, in_rack=4, least_rack_w=10e3, cooling=("air",))
    site = NS(path="sites[0]", region="a", hall=HallFacts(positions=10, rack_w=40e3, cooling=("air",)))
    option = NS(owned=True, site=site, system=NS(name="node", rack=rack))
    masks = np.array([[True, True, True], [False, True, False]])
    held = [(None, count, option, mask) for count, mask in zip(counts, masks)]
    return NS(problem=NS(calendar=CALENDAR, sites=[site]), held=lambda: iter(held))


def test_racks_are_those_of_the_fullest_slot():
    decided = hall_with([6, 4])
    (row,) = facility_rows(decided)
    assert (row["systems"], row["racks_per_system"], row["racks"]) == (10, 0.25, 2.5)
    assert row["rack_power_w"] == 4 * 10e3
    (_, racks, positions, _), (_, watts, most_w, _) = facility_limits(decided)
    assert (racks, positions, watts, most_w) == (2.5, 10, 40e3, 40e3)


def test_owned_systems_that_are_neither_kept_nor_moved_are_sold():
    facts = OwnedFacts(region="a", age_years=2.0, worth=0.4, move=0.1, book_value=30.0)
    offer = NS(path="owned[0]", system="node", supply=10.0, owned=facts, prices={"a": 100.0})
    at = lambda region: NS(offer=offer, site=NS(region=region))
    decided = NS(problem=NS(offers=[offer]), held=lambda: iter([(None, 5, at("a"), None), (None, 2, at("b"), None)]))
    (row,) = owned_rows(decided)
    assert (row["kept"], row["moved"], row["sold"], row["idle"]) == (5, {"b": 2}, 3, 0)
    assert (row["worth"], row["proceeds"], row["gain"]) == (40.0, 120.0, 30.0)  # 3 x (40 - 30)


def quality_of():
    facts = QualityFacts(
        workload="chat", path="workloads[0]", least=70.0, source="a test", mix="mean", scores={"large": 90.0, "small": 60.0},
        members={"large": "chat/large", "small": "chat/small"},
    )  # fmt: skip
    problem = NS(serving=[NS(name="chat/large"), NS(name="chat/small")], quality=[facts], calendar=CALENDAR)
    return problem, NS(arcs=[(0, 0, 0, 0), (1, 0, 0, 1)])


def test_the_quality_of_a_mix_counts_requests_over_time():
    problem, form = quality_of()
    flow = np.array([[4.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    assert requests_by_member(problem, form, flow) == {"chat/large": 700.0, "chat/small": 700.0}
    (row,) = quality_rows(problem, form, flow)
    assert (row["reached"], row["lowest_hour"]) == (75.0, 60.0)
    assert [each["share"] for each in row["architectures"]] == [0.5, 0.5]


def test_shares_of_a_zone_are_those_of_each_slot():
    spread = NS(largest_share=0.8)
    workloads = [NS(name="chat", asked="chat", spec=NS(spread=spread))]
    sites = [NS(region="a", fails_with="north"), NS(region="b", fails_with="south"), NS(region="c", fails_with="south")]
    problem = NS(serving=workloads, demands=lambda: workloads, sites=sites, calendar=CALENDAR)
    flow = np.array([[3.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    rows = spread_rows(problem, [(0, 0, 0, 0), (0, 0, 1, 1), (0, 0, 2, 2)], flow)
    found = {row["zone"]: (row["least_share"], row["largest_share"]) for row in rows}
    assert found == {"north": (0.25, 0.75), "south": (0.25, 0.75)}


def test_a_job_loses_a_restart_for_each_width_that_returns(tiny):
    job = {"name": "tune", "kind": "training", "architecture": "Llama-3.2-1B", "tokens": "1T", "batch_tokens": "1M", "sequence_tokens": 4096,
           "deadline": "1 year", "preemption": {"restart": "60 s"}}  # fmt: skip
    (facts,) = resolve(parse_spec(tiny(workloads=[job]))).training
    order = Chronology(next=CALENDAR.next, step_s=CALENDAR.step_s)
    decided = NS(
        used=[0], form=NS(points=[NS(workload=facts)], data=NS(order=order, chronology=order, slot_hours_s=CALENDAR.seconds)),
        active=np.array([[1.0, 0.25, 0.5]]), point_ids={0: "p1"},
    )  # fmt: skip
    (row,) = preemption_rows(decided, np.array([60.0]))
    # half the width returns from the third slot to the first, a quarter from the second to the third
    assert row["resumptions"] == pytest.approx(0.5 * 100 / 10 + 0.25 * 300 / 10)
    assert row["lost_s"] == pytest.approx(60 * 12.5)
    assert row["lost_share"] == pytest.approx(60 * 12.5 / (100 + 0.25 * 200 + 0.5 * 300))


# -- electricity -------------------------------------------------------------------------------------------------------


def bought(pays_produced, taken=(8.0, 2.0, 0.0)):
    """One meter with a load of 10 W, and a contract of 8 W that gives all, half and none of it."""
    contract = NS(name="sun", pays_produced=pays_produced, price_per_j=2.0, carbon_kg_per_j=0.5)
    facts = NS(contracts=[contract], storage=None, demand_charge=0.0, timezone="UTC")
    site = NS(
        region="a", price_per_j=np.array([1.0, 2.0, 3.0]), carbon_kg_per_j=np.array([1.0, 1.0, 2.0]), electricity=facts
    )
    share = np.array([[1.0, 0.5, 0.0]])
    meters = MeterData(
        meter_site=np.array([0]), grid_upper_w=np.array([np.inf]), contract_meter=np.array([0]), contract_least_w=np.array([0.0]),
        contract_upper_w=np.array([8.0]), contract_share=share,
    )  # fmt: skip
    none = np.zeros((0, 3))
    values = {"contract": np.array([8.0]), "taken": np.array([taken]), "charge": none, "discharge": none}
    return ElectricityDecisions(NS(sites=[site], calendar=CALENDAR), meters, values, np.full((1, 3), 10.0))


@pytest.mark.parametrize("pays_produced, size", [(True, 8.0), (False, 8.0)])
def test_power_is_bought_for_what_the_contract_leaves(pays_produced, size):
    found = bought(pays_produced)
    assert found.grid.tolist() == [[2.0, 8.0, 10.0]]
    units = found.units()
    assert units["taken"].tolist() == [[8.0, 2.0, 0.0]] and units["contract"].tolist() == [size]


def test_a_contract_paid_by_energy_is_no_larger_than_needed():
    """4 W are taken of a plant at half its output, so 8 W would do; 2 W of it are taken: 4 W do."""
    found = bought(False, taken=[2.0, 2.0, 0.0])
    assert found.units()["contract"].tolist() == [4.0]
    assert bought(True, taken=[2.0, 2.0, 0.0]).units()["contract"].tolist() == [8.0]


def test_a_battery_is_charged_as_much_as_it_gives():
    """An efficiency of 0.8 each way: 4 W charged for 10 s store 32 J, of which 25.6 J are given, 2.56 W for 10 s."""
    storage = NS(efficiency=0.8)
    site = NS(region="a", electricity=NS(contracts=[], storage=storage, demand_charge=0.0, timezone="UTC"))
    meters = MeterData(
        meter_site=np.array([0]), grid_upper_w=np.array([np.inf]), battery_meter=np.array([0]), battery_least_j=np.array([0.0]),
        battery_upper_j=np.array([1e3]), battery_least_w=np.array([0.0]), battery_upper_w=np.array([1e3]), battery_efficiency=np.array([0.8]),
        contract_share=np.zeros((0, 3)),
    )  # fmt: skip
    values = {
        "contract": np.zeros(0), "taken": np.zeros((0, 3)), "charge": np.array([[4.1, 0.0, 0.0]]), "discharge": np.array([[0.0, 0.0, 2.56]]),
    }  # fmt: skip
    found = ElectricityDecisions(NS(sites=[site], calendar=CALENDAR), meters, values, np.full((1, 3), 10.0))
    assert found.charge[0] == pytest.approx([4.0, 0.0, 0.0])
    assert found.stored[0] == pytest.approx([0.0, 32.0, 32.0])
    assert found.grid[0] == pytest.approx([14.0, 10.0, 7.44])
    assert found.energy_j == pytest.approx([32.0]) and found.power_w == pytest.approx([4.0])


def test_slots_form_rings():
    assert [ring.tolist() for ring in rings(np.array([1, 0, 3, 4, 2]))] == [[0, 1], [2, 3, 4]]


# -- lines -------------------------------------------------------------------------------------------------------------


def test_answers_take_their_route_and_prompts_the_other_way():
    workload, network = NS(name="chat"), NS(lines=[NS()])
    carrier = Carrier(kind="wire", uses=((0, 1),))
    problem = NS(
        calendar=CALENDAR, serving=[workload], sites=[NS(region="b")], routes=lambda *_: {"wire": carrier},
        egress_bytes=lambda _: 10.0, prompt_bytes=lambda _: 4.0,
    )  # fmt: skip
    decided = object.__new__(line_rows.LineDecisions)
    decided.problem, decided.network, decided.flow = problem, network, np.array([[1.0, 2.0, 0.0]])
    decided.form = NS(arcs=[(0, 0, 0, 0)], arc_kinds=["wire"], origins=["a"])
    decided.load = np.zeros((1, 2, 3))
    decided.carried = line_rows.defaultdict(float)
    decided._requests()
    assert decided.load[0].tolist() == [[4.0, 8.0, 0.0], [10.0, 20.0, 0.0]]
    assert decided.carried[0, "chat", "requests"] == 14.0 * (1 * 100 + 2 * 200)


def test_lines_are_paid_for_the_bytes_of_answers_and_for_no_tokens():
    """One request/s for 100 s and two for 200 s at half the worth: 300 answers of 10 bytes, over lines of 0.02 and 0.05 per byte.

    The requests go to an API, whose arc costs 7 for the tokens of each request beside 0.7 for its bytes.
    """
    network = NS(lines=[NS(price_per_byte=0.02), NS(price_per_byte=0.0), NS(price_per_byte=0.05)])
    carrier = Carrier(kind="wire", uses=((0, 1), (1, 1), (2, 0)))
    problem = NS(
        calendar=CALENDAR, serving=[NS(name="chat")], sites=[NS(region="b")], routes=lambda *_: {"wire": carrier}
    )
    dates = Dates(
        window=np.zeros(3, int), seconds=CALENDAR.seconds, discount=CALENDAR.discount, year_worth=np.ones(1), phases=np.array([[0, 0]])
    )  # fmt: skip
    of_bytes, of_tokens = (
        Flowing(
            component="api", decision="request", at=np.array([0]), places=(("b", "wire", ""),), dates=dates, per_unit=np.array([each]),
            profile=(CALENDAR.seconds * CALENDAR.discount)[None, :], follows=np.array([0]), for_bytes=for_bytes,
        )
        for each, for_bytes in ((10 * (0.02 + 0.05), True), (7.0, False))
    )  # fmt: skip
    decided = object.__new__(line_rows.LineDecisions)
    decided.problem, decided.network, decided.sent, decided.flow = problem, network, [], np.array([[1.0, 2.0, 0.0]])
    decided.form = NS(arcs=[(0, 0, 0, 0)], arc_kinds=["wire"], origins=["a"], terms=[of_bytes, of_tokens], points=[])
    decided.active = np.zeros((0, 3))
    paid = decided._paid(lambda functional, decision: np.array([300 * 7.7]))
    assert paid == pytest.approx({(0, "requests"): 60.0, (1, "requests"): 0.0, (2, "requests"): 150.0})
