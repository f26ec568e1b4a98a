"""The plan of highest confidence within the band of simplicity: by further systems and among plans alike; what it says of itself is checked."""

from __future__ import annotations

import copy
import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.plan import Plan, parse_plan
from planner.report.page import one_page
from planner.report.report import render
from planner.solving import confidence
from planner.solving.confidence_gain import bundles, most_confident
from planner.solving.deadline import options_of
from planner.verify.plan import verify_plan
from solvers.fixed_fleet.redispatch import Extension

WITHIN = 0.14


@pytest.fixture(scope="module")
def spec(tiny) -> dict:
    """Sixteen systems of one kind, so that one more costs 6 %."""
    found = tiny()
    found["workloads"][0]["demand"] = {"requests_per_s": 20000}
    found["sites"] = [{"region": "us-virginia"}]
    found["offers"] = [{"system": "DGX H100", "how": "buy"}]
    found["solver"] = {"gap": 1e-4}
    found["simplicity"] = {"within": 0}
    return found


@pytest.fixture(scope="module")
def plans(spec) -> tuple[Plan, Plan]:
    """The plan without a band and with one."""
    wide = copy.deepcopy(spec)
    wide["simplicity"] = {"within": WITHIN}
    return planner.solve(spec, threads=1), planner.solve(wide, threads=1)


def held(plan: Plan) -> int:
    return sum(row["count"] for row in plan["fleet"])


def test_what_the_band_leaves_is_spent_on_systems_that_make_the_plan_surer(spec, plans):
    plain, sure = plans
    assert "confidence_gain" not in plain.document and verify_plan(sure) == []
    row = sure["confidence_gain"]
    assert row["kept"] == sure["confidence"]["kept"] > plain["confidence"]["kept"] == row["kept_before"]
    assert row["value_before"] == pytest.approx(plain.objective["value"])
    more = sum(each["count"] for each in row["further"])
    assert held(sure) == held(plain) + more
    price = (sure.objective["value"] - plain.objective["value"]) / more
    assert plain.objective["value"] < sure.objective["value"] <= (1 + WITHIN) * plain.objective["value"]
    # one more would not fit, or keep no further scenario
    assert sure.objective["value"] + price > (1 + WITHIN) * plain.objective["value"] or row["kept"] == 1.0
    assert sure["simplicity"]["deployments"] == sure["simplicity"]["best"]["deployments"]
    told = f"{row['kept']:.1%} of scenarios instead of {row['kept_before']:.1%}"
    assert told in " ".join(one_page(sure).split()) and told in render(sure, "md").replace("\\", "")


@pytest.mark.parametrize("change", [{"kept": 1.0}, {"kept_before": 1.0}, {"within": 0.5}, {"further": 10_000}], ids=str)
def test_what_it_says_of_its_choice_is_checked(plans, change):
    document = json.loads(plans[1].to_json())
    if "further" in change:
        document["confidence_gain"]["further"][0]["count"] = change["further"]
    else:
        document["confidence_gain"] |= change
    assert any("confidence_gain" in str(finding) for finding in verify_plan(parse_plan(json.dumps(document))))


@pytest.fixture(scope="module")
def answered(spec):
    """What an answer is made of: problem, candidates, program and solution."""
    kept = {}

    def noted(plan, *parts):
        kept["parts"] = parts[:4]
        return plan

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(confidence, "with_confidence", noted)
        planner.solve(spec, threads=1)
    return kept["parts"]


def asked_within(problem, within: float):
    return replace(problem, spec=problem.spec.model_copy(update={"simplicity": problem.spec.simplicity.model_copy(update={"within": within})}))  # fmt: skip


def test_of_plans_alike_the_most_confident_is_taken_if_it_lies_within_the_band(answered):
    problem, candidates, form, solution = answered
    form = replace(form, data=replace(form.data, holding_upper=form.data.holding_upper + 2.0))
    u = int(np.argmax(solution.values["n"]))
    one = form.data.holding_cost["cost"][u] / solution.value
    more = solution.values["n"].copy()
    more[u] += 2
    larger = {**solution.values, "n": more}
    rival = replace(solution, others=(larger,))
    options = options_of(problem.spec, 1)
    taken = most_confident(asked_within(problem, 2.5 * one), candidates, form, rival, options)
    assert taken.solution.values["n"][u] == more[u] and taken.row["plans"] == 2 and taken.row["further"] == []
    assert taken.row["kept"] > taken.row["kept_before"] and taken.solution.before[0] == pytest.approx(solution.value)
    beyond = most_confident(asked_within(problem, 1.5 * one), candidates, form, rival, options)
    assert beyond.row["plans"] == 1 and beyond.solution.values["n"][u] == solution.values["n"][u] + 1
    broken = replace(solution, others=({**solution.values, "n": 0.0 * more},))
    assert most_confident(asked_within(problem, 0.5 * one), candidates, form, broken, options).row is None


@given(st.lists(st.integers(1, 20), max_size=8), st.integers(0, 50))
def test_of_one_kind_as_many_as_help_are_bought(needs: list[int], room: int):
    one = np.ones(1)
    extension = Extension(np.zeros(1, dtype=np.int64), 2.0 * one, np.inf * one, 0.0 * one, np.zeros(1, dtype=np.int64))
    found = bundles([need * one for need in needs], extension, float(room))
    affordable = [need for need in needs if 2 * need <= room]
    assert [float(systems[0]) for systems in found] == sorted(map(float, set(affordable)))


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)).filter(any), min_size=1, max_size=6), st.integers(0, 40)
)
def test_bundles_of_two_kinds_grow_within_the_room(needs: list[tuple[int, int]], room: int):
    cost, zero = np.array([3.0, 5.0]), np.zeros(2)
    extension = Extension(zero.astype(np.int64), cost, zero + np.inf, zero, zero.astype(np.int64))
    wanted = [np.array(need, float) for need in needs]
    found = bundles(wanted, extension, float(room))
    assert bool(found) == any(cost @ need <= room for need in wanted)
    for before, after in zip([zero, *found], found):
        assert (after >= before).all() and (after > before).any() and cost @ after <= room
        assert any((need <= after).all() and not (need <= before).all() for need in wanted)


# -- networks ----------------------------------------------------------------------------------------------------------

NETWORK = 64  # systems that one rail-only network of ports of this switch joins


@pytest.fixture(scope="module")
def on_one_network() -> Plan:
    """62 to 64 systems for the demand as predicted, with a band that would pay for ten more."""
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Llama-3.3-70B-Instruct", "demand": {"requests_per_s": 1220},
        "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "50 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
    }  # fmt: skip
    return planner.solve(
        {
            "name": "one network",
            "horizon": {"years": 3},
            "workloads": [chat],
            "sites": [{"region": "us-virginia", "topologies": ["rail-only"]}],
            "offers": [{"system": "DGX H100", "how": "buy"}],
            "simplicity": {"within": 0.15},
        },
        threads=1,
    )


def test_further_systems_fit_on_the_network(on_one_network):
    plan = on_one_network
    assert verify_plan(plan) == [] and plan["confidence"]["kept"] < 1.0
    assert {row["size"] for row in plan["fabrics"]} == {NETWORK} and held(plan) <= NETWORK
    surer = plan["confidence"]["upgrade"]
    assert surer is None or held(plan) + sum(row["count"] for row in surer["systems"]) <= NETWORK


def test_one_more_scenario_is_no_reason_to_pay(on_one_network):
    """The last system that fits keeps one or two scenarios of 200 more."""
    assert "confidence_gain" not in on_one_network.document
