"""A plan kept and changed in place says the same as one solved from nothing."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import planner
from planner.errors import SpecError
from planner.spec.document import edited
from planner.studies.whatif import WhatIf
from planner.verify.plan import verify_plan
from solvers import mip
from solvers.branch_and_bound import run
from solvers.search import joint
from solvers.search.reoptimize import FIRST, IN_PLACE, REBUILT, SEARCHED, Reoptimizer
from tests.plans.test_plan_properties import questions

GAP = 3e-3
SPEC = {
    "name": "kept",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": 90000.0},
            "lengths": {"input": 800, "output": 200}, "origins": [{"region": "us-california", "share": 0.4}, {"region": "us-virginia", "share": 0.6}],
            "slo": {"ttft": {"p95": "1 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["bf16"], "disaggregation": "never",
        },
    ],
    "sites": [{"region": "us-virginia", "power": "20 MW"}, {"region": "us-texas", "power": "20 MW", "fixed_cost": "200000 USD/year"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
        {"system": "DGX B200", "how": "buy", "price": "500000 USD"},
        {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "55 USD/h"},
    ],
    "limits": {"budget": "1000M USD"},
    "solver": {"gap": GAP, "replicas": "divisible"}, "simplicity": {"within": 0},
}  # fmt: skip


@pytest.fixture(scope="module")
def kept():
    return WhatIf(SPEC)


def cold(changes):
    return planner.solve(edited(SPEC, tuple(changes.items())))


def same(plan, other):
    assert plan.has_answer == other.has_answer and {plan.status, other.status} <= {
        "optimal",
        "within_gap",
        "infeasible",
    }
    if other.has_answer:
        assert plan.objective["value"] == pytest.approx(other.objective["value"], rel=2.1 * GAP)
        assert plan.gap <= GAP
        assert verify_plan(plan) == []
        assert plan["dropped"] == other["dropped"]


@pytest.mark.parametrize(
    "changes",
    [
        {"offers[0].price": "330000 USD"},
        {"offers[1].price": "250000 USD"},
        {"offers[2].price": "9 USD/h"},
        {"sites[0].electricity_price": "200 USD/MWh", "sites[1].electricity_price": "5 USD/MWh"},
        {"workloads[0].demand.requests_per_s": 95000.0},
        {"limits.budget": "9M USD"},
        {"limits.carbon": "2400 t"},
        {"limits.budget": "9000 USD"},
        {"offers[0].supply": 12},
        {"sites[0].power": "20 kW"},
        {"workloads[0].slo.tpot.p95": "15 ms"},
        {"sites[1].fixed_cost": None},
    ],
    ids=lambda changes: ",".join(changes),
)
def test_any_change_is_answered_as_from_nothing(kept, changes):
    plan = kept.plan(changes)
    same(plan, cold(changes))
    assert plan["spec"] == edited(SPEC, tuple(changes.items()))


def test_a_price_is_changed_in_place_and_each_question_counts_from_the_spec_as_given(kept):
    before = kept.plan({})
    dearer = kept.plan({"offers[0].price": "312000 USD"})
    assert kept.timing.how in (IN_PLACE, SEARCHED)
    assert dearer.objective["value"] >= before.objective["value"] * (1 - 2.1 * GAP)
    again = kept.plan({})
    assert kept.timing.how in (IN_PLACE, SEARCHED) and again.objective["value"] == pytest.approx(
        before.objective["value"], rel=2.1 * GAP
    )


def test_a_limit_is_moved_in_place_and_another_demand_needs_no_program_of_its_own(kept):
    for changes, how in (
        ({"limits.budget": "900M USD"}, {IN_PLACE}), ({"sites[0].power": "19 MW"}, {IN_PLACE}), ({"workloads[0].demand.requests_per_s": 91000.0}, {IN_PLACE, SEARCHED}),
        ({"sites[0].fixed_cost": None, "sites[1].fixed_cost": "210000 USD/year"}, {IN_PLACE, SEARCHED}),
    ):  # fmt: skip
        same(kept.plan(changes), cold(changes))
        assert kept.timing.how in how, changes


def test_another_shape_is_rebuilt_and_said_so(kept):
    kept.plan({"limits.capital": "500M USD"})
    assert kept.timing.how == REBUILT
    kept.plan({"limits.capital": "400M USD"})
    assert kept.timing.how in (IN_PLACE, SEARCHED)
    kept.plan({"offers[0].price": "311000 USD"})
    assert kept.timing.how in (IN_PLACE, SEARCHED)  # the first shape stays beside the last one


def test_what_cannot_be_changed_is_refused_by_its_place(kept):
    with pytest.raises(SpecError, match=r"offers\[9\]"):
        kept.plan({"offers[9].price": "1 USD"})
    with pytest.raises(SpecError, match="price"):
        kept.plan({"offers[0].price": "cheap"})


@settings(max_examples=3, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(questions(), st.data())
def test_in_place_says_the_same_as_from_nothing(spec, data):
    kept = WhatIf(spec, diagnosing=False)
    for _ in range(2):
        changes = {}
        for i, offer in enumerate(spec["offers"]):
            number, unit = offer["price"].split(" ")
            changes[f"offers[{i}].price"] = f"{float(number) * data.draw(st.floats(0.3, 3.0)):.6f} {unit}"
        for i in range(len(spec["sites"])):
            changes[f"sites[{i}].electricity_price"] = f"{data.draw(st.integers(0, 300))} USD/MWh"
        changes["workloads[0].demand.requests_per_s"] = spec["workloads"][0]["demand"]["requests_per_s"] * data.draw(
            st.floats(0.5, 2.0)
        )
        plan = kept.plan(changes, diagnosing=False)
        same(plan, planner.solve(edited(copy.deepcopy(spec), tuple(changes.items()))))


# -- the program -------------------------------------------------------------------------------------------------------


@pytest.fixture
def data():
    from planner.candidates.search import find_candidates
    from planner.formulate.formulation import formulate
    from planner.resolve.resolver import resolve_document

    problem = resolve_document(SPEC)
    return formulate(problem, find_candidates(problem)).data


def test_the_search_over_binaries_goes_on_in_place(data, monkeypatch):
    """As for large programs, whose binaries are branched on."""
    monkeypatch.setattr(run, "SETTINGS", replace(run.SETTINGS, least_columns=1))
    options = mip.Options(gap=GAP)
    program = Reoptimizer()
    program.solve(data, options)
    assert program.how == FIRST
    for factor in (1.02, 1.4, 0.5):
        changed = replace(
            data,
            holding_cost={
                **data.holding_cost,
                "cost": data.holding_cost["cost"] * np.linspace(1.0, factor, len(data.holding_option)),
            },
        )
        found, expected = program.solve(changed, options), joint.solve(changed, options)
        assert program.how == IN_PLACE
        assert found.value == pytest.approx(expected.value, rel=2.1 * GAP) and found.bound <= expected.value * (
            1 + 1e-9
        )


def test_a_demand_without_any_way_to_serve_it_is_infeasible(data):
    program = Reoptimizer()
    program.solve(data, mip.Options(gap=GAP))
    assert program.solve(replace(data, demand=data.demand * 1e6), mip.Options(gap=GAP)).status == "infeasible"


def test_points_of_questions_are_forgotten_and_those_of_the_base_kept(kept):
    faster = {"workloads[0].lengths.output": 210}
    kept.forget_points()
    of_base = set(kept._grids)
    before = kept.plan(faster)
    assert of_base and of_base < set(kept._grids)
    kept.forget_points()
    assert set(kept._grids) == of_base
    assert kept.plan(faster).objective == before.objective
    kept.forget_points(of_base=True)
    assert not kept._grids
    same(kept.plan({}), kept.base)
