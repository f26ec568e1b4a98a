"""Every two features together: a plan that holds, or a refusal in words.

A covering array takes each pair of values of two features into some spec (Cohen, Dalal, Fredman, Patton: The AETG system, 1997); the specs
are tiny. What fails here fails for a pair of features, whatever the amounts.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator
from typing import Any

import pytest

import planner
from planner.errors import SpecError

ORIGINS = [{"region": "us-virginia", "share": 1}]
SERVING = {
    "kind": "serving", "architecture": "Llama-3.2-1B", "demand": {"requests_per_s": 900, "profile": [1, 0.5] * 12},
    "lengths": {"input": 500, "output": 200}, "origins": ORIGINS, "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}},
    "precision": ["bf16"], "disaggregation": "never",
}  # fmt: skip
RUN = {"kind": "training", "architecture": "Llama-3.2-1B", "tokens": "1T", "deadline": "365 d"}
ENCODER = {"parameters": 3e8, "layers": 24, "hidden": 1024, "input_tokens": 1024, "output_tokens": 256}
SCORES = [
    {"architecture": f"Llama-3.2-{size}", "quality": score, "source": "stated"}
    for size, score in (("1B", 30.0), ("3B", 50.0))
]

WORK: dict[str, dict[str, Any]] = {
    "serving": SERVING,
    "pools": SERVING | {"disaggregation": "always"},
    "batch": SERVING | {"demand": {"output_tokens": "10B tokens/day", "profile": [1, 0.2] * 12, "deferral": "6 h"}, "slo": {}},
    "sessions": SERVING | {"demand": {"tasks_per_s": 60}, "session": {"calls": 4, "growth": 200, "wait": "2 s"}, "slo": {"ttft": {"p95": "5 s"}}},
    "users": SERVING | {"demand": {"sessions": 4000}, "session": {"calls": 4, "growth": 200, "wait": "2 s"}, "slo": {"ttft": {"p95": "5 s"}}},
    "classes": SERVING | {"classes": [{"name": "gold", "share": 0.3, "priority": 1, "ttft": {"p95": "1 s"}}, {"name": "rest", "share": 0.7, "priority": 2}]},
    "media": SERVING | {"media": [{"kind": "image", "items": 1, "encoder": ENCODER}]},
    "choice": SERVING | {"alternatives": SCORES, "quality_floor": {"least": 40, "source": "stated", "mix": "mean"}},
    "training": RUN,
    "interrupted": RUN | {"preemption": {}},
    "waiting": RUN | {"priority": 2},
    "reinforcement": {
        "kind": "reinforcement", "architecture": "Llama-3.2-1B", "prompts": 64, "samples": 4, "iterations": 3000, "deadline": "365 d",
        "lengths": {"prompt": 200, "response": 400, "limit": 2000, "cv": 0.5},
    },
}  # fmt: skip
REGIONS = ("us-virginia", "us-texas", "us-oregon")
OFFERS: dict[str, list[dict[str, Any]]] = {
    "buy": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
    "two kinds": [{"system": "DGX H100", "how": "buy", "supply": 3}, {"system": "DGX H200", "how": "buy"}],
    "rent": [{"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
    "spot": [{"system": "DGX H100", "how": "spot", "price": "30 USD/h", "interruption_interval": "24 h", "headroom": 0.2}, {"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
}  # fmt: skip
OWNED = {"system": "DGX H100", "count": 3, "age": "2 years", "price": "300000 USD"}
PHASES = [{"name": "first", "start": "2027-01-01", "capital": "20M USD"}, {"name": "second", "start": "2027-07-01"}]
FEATURES: dict[str, tuple[Any, ...]] = {
    "work": tuple(WORK),
    "beside": (None, "serving", "training"),  # a second workload on the same systems
    "sites": (1, 2, 3),
    "offers": tuple(OFFERS),
    "phases": (False, True),
    "owned": (None, "stays", "moves"),
    "redundancy": (None, "N+1", "two zones"),
    "objective": ("cost", "carbon", "throughput"),
    "robust": (False, True),
    "simplicity": (0.01, 0.0, 0.1),
    "replicas": ("auto", "whole", "divisible"),
    "limits": (None, "budget", "power"),
    "electricity": (None, "battery"),
}
JOBS = ("training", "interrupted", "waiting", "reinforcement")
REFUSED: tuple[dict[str, tuple[Any, ...]], ...] = (  # together; each is refused in words
    {"redundancy": ("N+1",), "robust": (True,)},
    {"redundancy": ("N+1",), "replicas": ("divisible",)},
    {"robust": (True,), "replicas": ("whole",)},
    {"robust": (True,), "work": ("sessions", "users", "classes", "waiting", "reinforcement")},
    {"objective": ("throughput",), "work": ("users", "waiting")},
    {"objective": ("throughput",), "work": JOBS, "beside": (None, "training")},
)


def refused(case: dict[str, Any]) -> bool:
    """Tell whether values of a case, of all features or of some, are refused together."""
    return any(all(name in case and case[name] in values for name, values in rule.items()) for rule in REFUSED)


def covering(features: dict[str, tuple[Any, ...]], most: int) -> list[dict[str, Any]]:
    """List cases that hold every pair of values of two features but those refused, each built greedily from the pair that comes first.

    At most so many features of a case are not plain, which is their first value: what fails is then soon found, and quick.
    """
    left = {
        ((a, x), (b, y)): None
        for (a, xs), (b, ys) in itertools.combinations(features.items(), 2)
        for x in xs
        for y in ys
        if not refused({a: x, b: y})
    }
    cases: list[dict[str, Any]] = []

    def pairs(case: dict[str, Any]) -> Iterator[Any]:
        return itertools.combinations([(name, case[name]) for name in features if name in case], 2)

    while left:
        case: dict[str, Any] = dict(next(iter(left)))
        for name in (name for name in features if name not in case):
            full = sum(case[other] != features[other][0] for other in case) >= most
            able = [value for value in features[name][: 1 if full else None] if not refused({**case, name: value})]
            able = able or [value for value in features[name] if not refused({**case, name: value})]
            case[name] = max(able, key=lambda value: sum(pair in left for pair in pairs({**case, name: value})))
        for pair in pairs(case):
            left.pop(pair, None)
        cases.append({name: case[name] for name in features})
    return cases


CASES = covering(FEATURES, 5)


def spec_of(case: dict[str, Any]) -> dict[str, Any]:
    """Build the spec of a case."""
    names = [case["work"], *([case["beside"]] if case["beside"] else [])]
    workloads = [copy.deepcopy(WORK[name]) | {"name": f"{name} {i}"} for i, name in enumerate(names)]
    serving = [workload for workload in workloads if workload["kind"] == "serving"]
    if case["redundancy"]:
        added = {"redundancy": "N+1"} if case["redundancy"] == "N+1" else {"spread": {"zones": 2, "survive": 1}}
        for workload in serving:
            workload |= added
    sites: list[dict[str, Any]] = [
        {"region": region, "power": "2 MW", "topologies": ["rail-optimised"]} for region in REGIONS[: case["sites"]]
    ]
    if case["electricity"]:
        store = {"energy": "2 MWh", "power": "1 MW", "energy_price": "200 USD/kWh"}
        sites[0] |= {"delivery": "0.03 USD/kWh", "electricity": {"battery": store, "demand_charge": "10 USD/kW-month"}}
    if case["limits"] == "power":
        sites[0]["power"] = "25 kW"
    document: dict[str, Any] = {
        "name": "pairs",
        "horizon": {"years": 1, "calendar": "representative-day"},
        "workloads": workloads,
        "sites": sites,
        "offers": copy.deepcopy(OFFERS[case["offers"]]),
        "simplicity": {"within": case["simplicity"]},
        "solver": {"gap": 0.5, "time_limit": "60 s", "points_per_system": 1, "replicas": case["replicas"]},
    }
    if case["objective"] == "throughput":
        document["objective"] = {"maximise": "throughput"}
        document["limits"] = {"capital": "3M USD", "budget": "5M USD"}
    else:
        document["objective"] = {"minimise": case["objective"]}
    if case["limits"] == "budget":
        document["limits"] = {"capital": "2M USD", "budget": "4M USD"}
    if case["phases"]:
        document["phases"] = PHASES
    if case["owned"]:
        at = REGIONS[0] if case["owned"] == "stays" else REGIONS[case["sites"] - 1]
        document["owned"] = [OWNED | {"region": at, "movable": case["owned"] == "moves"}]
    if case["robust"]:
        document["robust"] = {"confidence": 0.8, "scenarios": 50}
    return document


def test_every_pair_of_values_of_two_features_is_in_some_case():
    for a, b in itertools.combinations(FEATURES, 2):
        pairs = {(x, y) for x in FEATURES[a] for y in FEATURES[b] if not refused({a: x, b: y})}
        assert {(case[a], case[b]) for case in CASES} == pairs


@pytest.mark.parametrize("number", range(len(CASES)))
def test_every_pair_of_features_gets_a_plan_that_holds_or_a_refusal(number):
    plan = planner.solve(spec_of(CASES[number]), threads=1)  # BrokenPlanError where its plan does not hold
    assert plan.has_answer or plan["status"] in {"infeasible", "unbounded", "limit"}


@pytest.mark.parametrize("rule", range(len(REFUSED)))
def test_what_cannot_be_asked_together_is_refused_in_words(rule):
    neutral = {name: values[0] for name, values in FEATURES.items()}
    for values in itertools.product(*REFUSED[rule].values()):
        with pytest.raises(SpecError) as caught:
            planner.solve(spec_of(neutral | dict(zip(REFUSED[rule], values, strict=True))))
        assert all(problem.path and problem.message for problem in caught.value.problems)
