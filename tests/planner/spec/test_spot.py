"""Systems on the spot market: what interruptions cost a job, what serving keeps ready, and how the plan is checked again."""

from __future__ import annotations

import copy

import pytest

import planner
from models.training.reliability import best_goodput, checkpoint_write_s
from models.transformer.architecture import parameter_counts
from planner.errors import SpecError
from planner.plan import Plan
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

SPOT = {"system": "DGX H100", "how": "spot", "price": "10 USD/h", "interruption_interval": "12 h", "restart": "10 min"}
JOB = {"name": "tune", "kind": "training", "architecture": "llama-3.1-8b", "tokens": "3T", "deadline": "60 d"}


@pytest.fixture(scope="module")
def spec(tiny):
    def make(offers, job=False, **changes):
        document = tiny(offers=copy.deepcopy(offers), **changes)
        if job:
            document["workloads"] = [copy.deepcopy(JOB)]
        return document

    return make


def solved(document):
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    return plan


@pytest.fixture(scope="module")
def trained(spec):
    return solved(spec([SPOT], job=True))


def goodput(interval_s, wait_s, problem, chips):
    """By Daly, with failures of chips and systems taken away as two causes of one kind of interruption."""
    facts = problem.constants.reliability
    write = checkpoint_write_s(
        parameter_counts(problem.training[0].architecture).total,
        facts.checkpoint_bytes_per_parameter,
        chips * facts.chip_checkpoint_bytes_per_s,
    )
    failures, taken = chips / facts.chip_interruption_s, chips / 8 / interval_s  # per second, of the whole run
    restart = facts.recovery_s + write + wait_s * taken / (failures + taken)
    return float(best_goodput(1, 1 / (failures + taken), write, restart))


def test_a_job_loses_what_interruptions_cost(trained, spec):
    point = trained["workloads"][0]["points"][0]
    chips = point["pools"][0]["systems_per_replica"] * 8
    assert point["goodput"] == pytest.approx(
        goodput(12 * 3600, 600, resolve_document(spec([SPOT], job=True)), chips), rel=1e-9
    )
    rented = solved(spec([{"system": "DGX H100", "how": "on_demand", "price": "10 USD/h"}], job=True))
    assert point["goodput"] < rented["workloads"][0]["points"][0]["goodput"]
    assert trained["totals"]["cost"] >= rented["totals"]["cost"]  # at the same price an hour, in whole systems


def test_rarer_interruptions_never_cost_more(spec):
    costs = [
        planner.solve(spec([SPOT | {"interruption_interval": interval}], job=True))["totals"]["cost"]
        for interval in ("8 h", "1 d", "20 d")
    ]
    assert costs == sorted(costs, reverse=True) and costs[0] > costs[-1]


def test_spot_is_held_window_by_window(trained):
    assert all(row["how"] == "spot" and row["window"] is not None for row in trained["fleet"])


def test_nothing_is_served_without_headroom(spec):
    other = {"system": "DGX H100", "how": "on_demand", "price": "30 USD/h"}
    plan = solved(spec([SPOT, other]))
    assert {row["how"] for row in plan["fleet"]} == {"on_demand"}
    assert plan["dropped"]["chat"]["spot offer without headroom for serving"] == 1
    assert planner.solve(spec([SPOT])).status == "infeasible"


def test_serving_holds_the_headroom(spec):
    few = {"demand": {"requests_per_s": 4000}}
    base = spec([SPOT | {"headroom": 0.0}])
    base["workloads"][0] |= few
    more = spec([SPOT | {"headroom": 0.5}])
    more["workloads"][0] |= few
    plain, ready = solved(base), solved(more)
    systems = [plan["workloads"][0]["points"][0]["pools"][0]["systems_per_replica"] for plan in (plain, ready)]
    assert systems[1] == pytest.approx(1.5 * systems[0])
    assert sum(row["count"] for row in ready["fleet"]) > sum(row["count"] for row in plain["fleet"])


@pytest.mark.parametrize(
    ("offer", "word"),
    [
        ({key: value for key, value in SPOT.items() if key != "interruption_interval"}, "interruption_interval"),
        ({"system": "DGX H100", "how": "on_demand", "restart": "5 min"}, "belongs to"),
        ({"system": "DGX H100", "how": "buy", "headroom": 0.1}, "belongs to"),
    ],
)
def test_a_mistake_is_named_with_its_remedy(spec, offer, word):
    with pytest.raises(SpecError, match=word):
        resolve_document(spec([offer], job=True))


def test_the_catalog_has_spot_prices(spec):
    problem = resolve_document(spec([{"system": "DGX H100", "how": "spot", "interruption_interval": "1 d"}], job=True))
    assert problem.offers[0].prices["us-virginia"] == pytest.approx(10 / 3600)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["workloads"][0]["points"][0].update(goodput=0.999),
        lambda d: d["workloads"][0]["points"][0].update(capacity=d["workloads"][0]["points"][0]["capacity"] * 1.001),
        lambda d: d["fleet"][0].update(window=None),
        lambda d: d["fleet"][0].update(how="on_demand"),
    ],
)
def test_what_is_bent_is_found(trained, change):
    document = copy.deepcopy(dict(trained.document))
    change(document)
    assert verify_plan(Plan(document))
