"""Jobs that make room and what that costs them, storage that is too slow for them, and how a plan is checked again."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import planner
from models.storage import checkpoint_stall_s, computing_share, load_s
from models.training.layouts import Layouts
from models.training.reliability import best_goodput, checkpoint_interval_s, checkpoint_write_s
from models.transformer.architecture import parameter_counts
from planner.errors import SpecError
from planner.plan import Plan
from planner.report.report import render
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan
from solvers.mip import Options
from solvers.model.block_data.electricity import Chronology
from solvers.model.data import PlanData
from solvers.search.joint import solve
from tests.conftest import long_run

DAY = [1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 6, 5, 4, 3, 2, 1, 1]
CHAT = {
    "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 1500, "profile": DAY}, "lengths": {"input": 1000, "output": 300},
    "origins": [{"region": "us-virginia", "share": 1}], "slo": {"ttft": {"p95": "1 s"}, "tpot": {"mean": "50 ms"}}, "disaggregation": "never",
}  # fmt: skip
TUNE = {"name": "tune", "kind": "training", "architecture": "llama-3.1-8b", "tokens": "1500B", "deadline": "90 d"}
VIDEO = {"token_bytes": "100 kB"}


@pytest.fixture(scope="module")
def spec(tiny):
    def make(job=(), site=(), workloads=(CHAT, TUNE), **changes):
        document = tiny(workloads=copy.deepcopy(list(workloads)), **changes)
        document["solver"]["replicas"] = "divisible"  # so that values can be compared
        document["workloads"][-1] |= dict(job)
        document["sites"][0] |= dict(site)
        return document

    return make


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


def restart(time):
    return {"preemption": {"restart": time}}


@pytest.fixture(scope="module")
def plain(spec):
    return solved(spec(job={"preemption": None}))


@pytest.fixture(scope="module")
def interrupted(spec):
    return solved(spec(job={"preemption": {}}))


@pytest.fixture(scope="module")
def stored(spec):
    return solved(spec(job=VIDEO | {"preemption": {}}, site={"storage_bandwidth": "25 GB/s"}))


# -- the program by hand -----------------------------------------------------------------------------------------------


def job(restart_s, price=(1.0, 9.0, 1.0), work=2.0, **other):
    """Slots of an hour in a ring, one system at 1 unit/h."""
    T = len(price)
    return PlanData(
        slot_window=np.zeros(T, dtype=int), slot_hours_s=np.full(T, 3600.0), site_power_limit_w=np.array([np.inf]),
        option_site=np.array([0]), option_group=np.array([0]), option_fabric=np.array([-1]), holding_option=np.array([0]), holding_window=np.array([-1]),
        holding_upper=np.array([1.0]), holding_cost={"cost": np.array([10.0])}, holding_power_w=np.zeros(1), point_pool=np.array([-1]), point_job=np.array([0]),
        point_uses=np.array([[0, 0]]), point_uses_systems=np.ones(1), point_capacity=np.array([1 / 3600.0]), point_power_w=np.zeros(1),
        point_cost={"cost": np.array([price])}, demand=np.zeros((0, 0, T)), job_work=np.array([work]), job_window_mask=np.ones((1, T), dtype=bool),
        point_restart_s=np.array([restart_s]), order=Chronology(next=np.roll(np.arange(T), -1), step_s=np.full(T, 3600.0)), **other,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("restart_s", "shares", "cost"),
    [
        (0.0, [1, 0, 1], 12.0),  # the two cheap hours
        (
            360.0,
            [1, 1 / 11, 1],
            12.0 + 9 / 11,
        ),  # a tenth of an hour for each unit of width that comes back:  2 + v - (1 - v) / 10 = 2
        (1e6, [2 / 3, 2 / 3, 2 / 3], 10 + 11 * 2 / 3),  # so dear that it keeps one width throughout
    ],
)
def test_a_job_runs_on_through_a_dear_hour_as_far_as_stopping_costs_more(restart_s, shares, cost):
    found = solve(job(restart_s), Options(gap=0.0))
    assert found.values["v"][0] == pytest.approx(shares) and found.value == pytest.approx(cost)


def test_each_ring_is_followed_by_itself():
    """Two days of two hours: in either of them the width falls and comes back."""
    rings = replace(
        job(360.0, (1.0, 9.0, 1.0, 9.0), work=1.9),
        order=Chronology(next=np.array([1, 0, 3, 2]), step_s=np.full(4, 3600.0)),
    )
    share = solve(rings, Options(gap=0.0)).values["v"][0]  # both days together:  2 + a + b - (2 - a - b) / 10 = 1.9
    assert share[[0, 2]] == pytest.approx([1, 1]) and share[[1, 3]].sum() == pytest.approx(0.1 / 1.1)


def test_slots_that_come_round_often_lose_time_as_often():
    often = replace(job(360.0, work=200.0), slot_hours_s=np.full(3, 100 * 3600.0))  # a hundred days of three hours
    assert solve(often, Options(gap=0.0)).values["v"][0] == pytest.approx([1, 1 / 11, 1])


def test_at_a_price_below_zero_nothing_is_burnt_by_starting_again_and_again():
    """Without exact rises a job could run three hours at a price below zero for two hours of work."""
    found = solve(job(1800.0, (-1.0, -1.0, -1.0)), Options(gap=0.0))
    share = found.values["v"][0]
    lost = 0.5 * np.maximum(share - np.roll(share, 1), 0).sum()
    assert share.sum() - lost == pytest.approx(2.0)
    assert found.value == pytest.approx(10 - 7 / 3)  # full width in two hours, v in the third:  2 + v - (1 - v) / 2 = 2


def test_storage_bounds_what_runs_at_once():
    limited = job(0.0, (1.0, 9.0, 1.0), point_storage=np.array([4.0]), site_storage=np.array([3.0]))
    assert solve(limited, Options(gap=0.0)).values["v"][0] == pytest.approx([0.75, 0.5, 0.75])
    assert solve(replace(limited, site_storage=np.array([2.0])), Options(gap=0.0)).status == "infeasible"


# -- what it means for a plan ------------------------------------------------------------------------------------------


def test_where_nothing_is_stated_it_costs_what_the_catalog_says(spec, interrupted):
    omitted = solved(spec())
    assert omitted["totals"]["cost"] == pytest.approx(interrupted["totals"]["cost"], rel=1e-9)
    assert omitted["preemptions"] == interrupted["preemptions"]
    hidden = {key: value for key, value in omitted.document.items() if key != "preemptions"}
    assert verify_plan(Plan(hidden)), "of this release, no plan may leave the rows out"


@pytest.mark.parametrize(
    "changes",
    [
        {"horizon": {"start": "2027-01-01", "years": 1, "calendar": "full-year"}},
        {"robust": {"scenarios": 100}},
        {"solver": {"method": "decomposed"}},
    ],
)
def test_programs_taken_apart_by_slots_count_what_is_stated_alone(tiny, changes):
    document = tiny(workloads=copy.deepcopy([TUNE]), **changes)
    [job] = resolve_document(document).training
    assert job.spec.preemption is None
    document["workloads"][0]["preemption"] = {}
    if "robust" not in changes:
        assert resolve_document(document).training[0].spec.preemption is not None


def test_wide_jobs_stay_for_a_shift(spec):
    """A chat with a second peak at noon leaves room for three hours in between, too short for a job on more than 256 chips."""
    day = [1.0] * 7 + [6.0] * 4 + [1.0] * 3 + [6.0] * 10
    chat = CHAT | {"demand": {"requests_per_s": 12_000, "profile": day}}
    wide = TUNE | {"tokens": "60T"}
    stated = [
        solved(spec(workloads=(chat, wide), job={"preemption": {"restart": "10 min", "least_run": hours}}))
        for hours in ("6 h", "0 h")
    ]
    default = solved(spec(workloads=(chat, wide), job={"preemption": {"restart": "10 min"}}))
    [point] = default["workloads"][1]["points"]
    assert Layouts.of(**point["pools"][0]["layout"]).chips[0] > 256
    assert default["totals"]["cost"] == pytest.approx(stated[0]["totals"]["cost"], rel=1e-9)
    assert stated[1]["totals"]["cost"] <= stated[0]["totals"]["cost"] * (1 + 1e-9)
    slots = [row for row in default["schedule"] if row["window"] == 0]
    width = np.array([row["active"].get(point["id"], 0.0) for row in slots])
    back = np.maximum(width - np.roll(width, 1), 0.0)
    for t in range(24):
        assert sum(back[t - past] for past in range(6)) <= width[t] + 1e-6


def test_a_run_that_is_too_short_is_found(spec):
    plan = solved(spec(job={"preemption": {"restart": "0 s", "least_run": "2 h"}}))
    document = copy.deepcopy(dict(plan.document))
    document["spec"]["workloads"][1]["preemption"]["least_run"] = "1 d"
    found = verify_plan(Plan(document))
    rising = plan["preemptions"][0]["resumptions"] > 0
    assert rising and any("returned within 24 h" in str(line) for line in found)


def test_left_out_it_is_nothing(plain):
    assert "preemptions" not in plain.document and "storage" not in plain.document


def test_a_restart_of_no_time_changes_nothing(plain, spec):
    free = solved(spec(job=restart("0 s")))
    assert free["totals"]["cost"] == pytest.approx(plain["totals"]["cost"], rel=1e-9)
    assert free["preemptions"][0]["lost_s"] == 0.0


def test_each_resumption_costs_saving_and_recovery(interrupted, spec):
    row, facts = interrupted["preemptions"][0], resolve_document(spec()).constants.reliability
    size = (
        parameter_counts(resolve_document(spec()).training[0].architecture).total * facts.checkpoint_bytes_per_parameter
    )
    layout = interrupted["workloads"][1]["points"][0]["pools"][0]["layout"]
    rate = Layouts.of(**layout).chips[0] * facts.chip_checkpoint_bytes_per_s
    assert row["restart_s"] == pytest.approx(size / rate + facts.recovery_s + size / rate)
    assert row["lost_s"] == pytest.approx(row["restart_s"] * row["resumptions"])
    assert (
        90.0 - 1e-4 <= row["resumptions"] < 180.0
    )  # it makes room for the evening of each of 90 days, and gets a part of its width back in between at most


def test_the_work_is_done_besides_what_is_lost(interrupted):
    point, [row] = interrupted["workloads"][1]["points"][0], interrupted["preemptions"]
    seconds = sum(hour["seconds"] * hour["active"].get(point["id"], 0.0) for hour in interrupted["schedule"])
    assert point["capacity"] * (seconds - row["lost_s"]) == pytest.approx(1500e9)
    assert interrupted["workloads"][1]["tokens"] == pytest.approx(1500e9)


def test_a_shorter_restart_never_costs_more(spec):
    costs = [
        planner.solve(spec(job=restart(time)))["totals"]["cost"] for time in ("0 s", "10 min", "1 h", "6 h", "10 d")
    ]
    assert costs == sorted(costs) and costs[-1] > costs[0]


def test_a_job_alone_is_interrupted_for_the_price_of_the_hour_only(spec):
    flat, by_hour = (
        solved(spec(job=restart("1 h"), workloads=(TUNE,), site=site))
        for site in ({"electricity_price": "0.05 USD/kWh"}, {})
    )
    assert flat["preemptions"][0]["resumptions"] == pytest.approx(0.0, abs=1e-6)
    assert by_hour["preemptions"][0]["resumptions"] > 1


def test_more_bandwidth_never_costs_more(spec):
    costs = [
        planner.solve(spec(job=VIDEO | {"preemption": {}}, site={"storage_bandwidth": f"{rate} GB/s"}))["totals"][
            "cost"
        ]
        for rate in (20, 25, 50, 500)
    ]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]


def test_storage_states_what_a_job_asks_of_it(stored, spec):
    row = next(row for row in stored["storage"] if row["workload"] == "tune")
    point = next(p for w in stored["workloads"] for p in w["points"] if p["id"] == row["point"])
    facts = resolve_document(spec()).constants.reliability
    chips = int(np.prod([point["pools"][0]["layout"][name] for name in ("tp", "pp", "cp", "dp")]))
    write = checkpoint_write_s(1.0, row["load_bytes"], min(chips * facts.chip_checkpoint_bytes_per_s, 25e9))
    between = facts.chip_interruption_s / chips
    assert row["read_bytes_per_s"] == pytest.approx(point["capacity"] / point["goodput"] * 100e3)
    assert row["checkpoint_bytes_per_s"] == pytest.approx(
        row["load_bytes"] / (checkpoint_interval_s(write, between) + write)
    )
    assert point["goodput"] == pytest.approx(
        best_goodput(chips, facts.chip_interruption_s, write, facts.recovery_s + write)
    )
    assert row["load_s"] == pytest.approx(row["load_bytes"] / 25e9)


def test_the_worth_of_bandwidth_is_what_more_of_it_saves(spec):
    def at(rate):
        return planner.solve(
            spec(
                job=VIDEO,
                site={"storage_bandwidth": f"{rate!r} GB/s", "fixed_cost": "0 USD/year"},
                offers=[{"system": "DGX H100", "how": "reserved", "price": "20 USD/h"}],
            )
        )

    before, after = at(19.4), at(19.41)
    limit = next(row for row in before["limits"] if row["path"] == "sites[0].storage_bandwidth")
    assert limit["slack"] == pytest.approx(0.0, abs=1.0) and limit["marginal_unit"] == "USD/byte/s"
    assert limit["marginal_value"] <= 0 and limit["marginal_value_divisible"] < 0
    assert after["totals"]["cost"] <= before["totals"]["cost"]


@long_run
def test_too_slow_a_storage_is_the_conflict_and_the_repair_is_enough(spec):
    document = spec(job=VIDEO, site={"storage_bandwidth": "1 GB/s"})
    found = planner.solve(document)["diagnosis"]
    assert [row["path"] for row in found["conflict"]] == ["sites[0].storage_bandwidth"]
    [change] = found["repair"]
    document["sites"][0]["storage_bandwidth"] = change["to"]
    assert found["repair_checked"] and solved(document).has_answer
    document["sites"][0]["storage_bandwidth"] = f"{float(change['to'].split()[0]) * 0.98} GB/s"
    assert planner.solve(document).status == "infeasible"


def test_both_have_tables_for_people(stored, interrupted):
    words = render(stored, "table")
    assert "How often jobs make room" in words and "What runs through storage" in words and "GB/s" in words
    assert "tune makes room" in render(
        interrupted, "table"
    )  # which loses 2 % of its time, and named is what loses 0.5 %


@pytest.mark.parametrize(
    "changes",
    [
        {"job": restart("soon")},
        {"job": {"preemption": {"restarts": "1 h"}}},
        {"site": {"storage_bandwidth": "5 GB"}},
        {"job": {"token_bytes": "many"}},
    ],
)
def test_a_mistake_is_named_with_its_place(spec, changes):
    with pytest.raises(SpecError, match=r"preemption|storage_bandwidth|token_bytes"):
        resolve_document(spec(**changes))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["preemptions"][0].update(resumptions=d["preemptions"][0]["resumptions"] / 2),
        lambda d: d["preemptions"][0].update(lost_s=0.0),
        lambda d: d["preemptions"][0].update(restart_s=60.0),
        lambda d: d["preemptions"][0].update(lost_share=0.5),
        lambda d: d["preemptions"][0].update(workload="chat"),
        lambda d: d["preemptions"].clear(),
        lambda d: d.pop("preemptions"),
        lambda d: d["storage"][0].update(load_s=1.0),
        lambda d: d["storage"][1].update(read_bytes_per_s=1.0),
        lambda d: d["storage"][1].update(checkpoint_bytes_per_s=1.0),
        lambda d: d["storage"][0].update(site="elsewhere"),
        lambda d: d["storage"].pop(),
        lambda d: next(row for row in d["limits"] if row["path"].endswith("bandwidth")).update(value=1.0),
        lambda d: d["spec"]["workloads"][1].update(preemption={"restart": "1 h"}),
        lambda d: d["spec"]["workloads"][1].update(preemption=None),
        lambda d: d["spec"]["sites"][0].update(storage_bandwidth="15 GB/s"),
        lambda d: d["schedule"][3]["active"].update({d["storage"][1]["point"]: 0.2}),
    ],
)
def test_what_is_bent_is_found(stored, change):
    document = copy.deepcopy(dict(stored.document))
    change(document)
    assert verify_plan(Plan(document))


def test_every_number_of_both_tables_is_checked(stored):
    for key in ("preemptions", "storage"):
        for i, row in enumerate(stored[key]):
            for name, value in row.items():
                if isinstance(value, float) and value:
                    document = copy.deepcopy(dict(stored.document))
                    document[key][i][name] = value * (1 + 1e-5)
                    assert verify_plan(Plan(document)), (key, name)


# -- closed forms ------------------------------------------------------------------------------------------------------


def test_writing_in_the_background_stalls_less_until_storage_is_too_slow():
    blocking, quick, slow = checkpoint_stall_s(1e12, [50e9, 50e9, 1e9], [0.0, 1e12, 1e12], 100.0)
    assert (blocking, quick, slow) == (20.0, 1.0, 901.0)


def test_a_warm_cache_loads_at_the_pace_of_its_slowest_part():
    assert load_s(100.0, [0.0, 1.0], [10.0, 2.0]) == 50.0
    assert load_s(100.0, [0.8, 0.2], [10.0, 2.0]) == 10.0
    assert load_s(100.0, [1.0, 0.0], [10.0, 2.0], 4.0) == 25.0


def test_compute_that_asks_for_nothing_never_waits():
    assert computing_share([0.0, 2.0, 8.0], 4.0).tolist() == [1.0, 1.0, 0.5]
