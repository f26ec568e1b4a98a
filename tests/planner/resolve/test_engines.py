"""Engines and compilers by name: what their records change, what is listed, and what is refused."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from models.serving.constants import ENGINES
from models.serving.examples import SERVING
from models.serving.software import Software, with_software
from planner.errors import SpecError
from planner.estimate.answer import estimate

CASE = {
    "workload": {
        "kind": "serving",
        "architecture": "Llama-3.1-8B",
        "lengths": {"input": 1000, "output": 300},
        "precision": ["fp8"],
        "disaggregation": "never",
    },
    "system": "DGX H100",
    "chips": 8,
    "load": {"concurrency": 8},
}


def answer(workload: dict, **changes) -> dict:
    case = copy.deepcopy(CASE) | changes
    case["workload"] |= workload
    found = estimate(case).answer
    assert found is not None
    return found


def engine_assumptions(found: dict) -> dict[str, str]:
    return {a["path"]: a["reason"] for a in found["assumptions"] if a["path"].startswith("engines/")}


def test_no_software_changes_nothing():
    assert with_software(SERVING, [], "hopper") == SERVING
    assert with_software(SERVING, [Software()], "hopper") == SERVING


@given(factor=st.floats(0.1, 10.0))
def test_nothing_is_faster_than_the_roofline(factor):
    tuned = with_software(
        SERVING, [Software(compute=factor, memory=factor, families=(("ascend", 2.0, 2.0),))], "ascend"
    )
    assert (
        0 < tuned.memory_efficiency <= 1 and 0 < tuned.compute_efficiency_8bit <= 1 and tuned.attention_efficiency <= 1
    )
    assert tuned.memory_efficiency == pytest.approx(min(SERVING.memory_efficiency * 2 * factor, 1.0))
    elsewhere = with_software(SERVING, [Software(families=(("ascend", 2.0, 2.0),))], "hopper")
    assert elsewhere == SERVING


def test_layers_multiply_and_stated_times_replace_fitted_ones():
    tuned = with_software(
        SERVING, [Software(host=0.5, times_s=(("host_step_s", 0.004),)), Software(host=0.5)], "hopper"
    )
    assert tuned.host_step_s == pytest.approx(0.001)
    assert tuned.host_request_s == pytest.approx(SERVING.host_request_s / 4)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_fitted_engine_by_its_record_keeps_its_figures(engine):
    found = answer({"engine": engine})
    assert not engine_assumptions(found)
    own = {"name": "mine", "text": {"role": "engine", "base": engine}, "figures": {}}
    assert answer({"engine": "mine"}, catalog={"engines": [own]})["tokens_per_s"] == found["tokens_per_s"]


def test_claims_are_listed_and_bounded():
    usual, persistent = answer({}), answer({"engine": "persistent kernels"})
    compiled = answer({"compiler": "fusion compiler"})
    assert usual["tokens_per_s"] < persistent["tokens_per_s"] < 4 * usual["tokens_per_s"]
    assert (
        usual["tokens_per_s"] < compiled["tokens_per_s"] < 1.2 * usual["tokens_per_s"]
    )  # 0.84 of the bandwidth before
    reasons = engine_assumptions(persistent) | engine_assumptions(compiled)
    assert set(reasons) == {
        "engines/persistent kernels/host",
        "engines/persistent kernels/launch",
        "engines/fusion compiler/compute",
        "engines/fusion compiler/memory",
    }
    assert all(reason.startswith("claimed") for reason in reasons.values())


def test_an_engine_of_the_case_acts_on_its_family_only():
    mine = {
        "name": "mine",
        "text": {"role": "engine", "base": "vllm"},
        "figures": {"memory_ascend": {"value": 1.1, "note": "measured"}},
    }
    changes = {"catalog": {"engines": [mine]}}
    assert answer({"engine": "mine"}, **changes)["tokens_per_s"] == answer({"engine": "vllm"})["tokens_per_s"]
    ascend = {"system": "Atlas 800T A2", **changes}
    there = [answer({"engine": name, "precision": ["bf16"]}, **ascend)["tokens_per_s"] for name in ("vllm", "mine")]
    assert there[1] > there[0]
    assert answer({"engine": "mine"}, **changes)["assumptions"]


@pytest.mark.parametrize(
    "workload, message",
    [
        ({"engine": "vlm"}, "unknown engine"),
        ({"engine": "fusion compiler"}, '"compiler"'),
        ({"compiler": "vllm"}, '"engine"'),
    ],
)
def test_what_is_named_wrongly_is_refused(workload, message):
    with pytest.raises(SpecError) as caught:
        answer(workload)
    assert message in str(caught.value) and caught.value.problems[0].path.startswith("workload.")


def test_a_plan_lists_its_software_and_holds():
    spec = {
        "schema_version": 1,
        "name": "compiled",
        "horizon": {"start": "2027-01-01", "years": 1},
        "objective": {"minimise": "cost"},
        "workloads": [
            {
                **CASE["workload"],
                "name": "chat",
                "engine": "persistent kernels",
                "compiler": "fusion compiler",
                "demand": {"requests_per_s": 50},
                "origins": [{"region": "us-texas", "share": 1}],
                "slo": {"tpot": {"p95": "40 ms"}},
            }
        ],
        "sites": [{"region": "us-virginia", "power": "60 kW", "systems": ["DGX H100"]}],
        "offers": [{"system": "DGX H100", "how": "buy"}],
        "solver": {"replicas": "divisible"},
    }
    plan = planner.solve(spec)
    assert not planner.verify_plan(plan)
    listed = {a["path"] for a in plan["assumptions"]}
    assert {"engines/persistent kernels/launch", "engines/fusion compiler/memory"} <= listed
    mine = {
        "name": "mine",
        "text": {"role": "compiler"},
        "figures": {"compute_hopper": {"value": 0.5, "note": "our kernels, measured"}},
    }
    slower = copy.deepcopy(spec) | {"catalog": {"engines": [mine]}}
    slower["workloads"][0]["compiler"] = "mine"
    own = planner.solve(slower)
    assert not planner.verify_plan(own) and own.objective["value"] > plan.objective["value"]
    assert (
        "our kernels, measured" in {a["path"]: a["reason"] for a in own["assumptions"]}["engines/mine/compute_hopper"]
    )
    del spec["workloads"][0]["engine"], spec["workloads"][0]["compiler"]
    assert planner.solve(spec).objective["value"] > plan.objective["value"]
    spec["workloads"][0]["engine"] = "vlm"
    with pytest.raises(SpecError, match=r"workloads\[0\].engine"):
        planner.solve(spec)
