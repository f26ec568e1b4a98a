"""How full systems are: rows of a plan, what is found when they are bent, and the share that stays free."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from models.packing import nodes_without_moves
from planner.errors import SpecError
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from planner.verify.load.packing import _followed
from tests.conftest import ALL_CASES, few_of
from tests.plans.serving_enumeration import DAY, fewest_systems, said


def chat(name: str, architecture: str, rate: float, tpot: str) -> dict[str, Any]:
    return {
        "name": name, "kind": "serving", "architecture": architecture, "precision": ["fp8"], "demand": {"requests_per_s": rate, "profile": DAY},
        "lengths": {"input": 1000, "output": 300}, "origins": [{"region": "us-texas", "share": 1}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": tpot}}, "disaggregation": "never",
    }  # fmt: skip


SPEC: dict[str, Any] = {
    "name": "packing",
    "workloads": [chat("small", "Llama-3.1-8B", 60, "25 ms"), chat("large", "Llama-3.1-70B", 8, "40 ms")],
    "sites": [{"region": "us-texas", "electricity_price": "60 USD/MWh"}],
    "offers": [{"system": "DGX H100", "how": "buy", "supply": 40}],
    "solver": {"replicas": "whole", "time_limit": "60 s", "gap": 0.05},
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    plan = planner.solve(SPEC)
    assert plan.has_answer
    return plan.document


def test_the_plan_states_how_full_its_systems_are(document):
    assert said(document) == []
    (row,) = document["packing"]
    taken = sum(shape["chips"] * shape["workers"] for shape in row["shapes"])
    assert row["nodes"] == math.ceil(taken / 8) <= row["held"]
    assert row["free_chips"] == 8 * row["nodes"] - taken
    assert row["nodes"] <= row["nodes_without_moves"] and row["mean_nodes"] <= row["mean_nodes_without_moves"] + 1e-9
    assert row["lost_spread"] <= row["lost_packed"] and row["mean_nodes"] <= row["nodes"]


KINDS = st.lists(
    st.tuples(st.sampled_from([1, 2, 4]), st.lists(st.integers(0, 9), min_size=4, max_size=4)), min_size=1, max_size=4
)


@settings(max_examples=few_of(100))
@given(KINDS, st.randoms(use_true_random=False))
def test_the_check_follows_workers_as_the_model_does_in_whatever_order_it_meets_them(kinds, random):
    """Workers of one size that leave and come in another order would stand on other nodes."""
    after = [1, 2, 3, 0]
    mine = nodes_without_moves(
        np.array([counts for _, counts in kinds]), [chips for chips, _ in kinds], 8, np.array(after)
    )
    named = [((f"chat/{k}", 0, chips), counts) for k, (chips, counts) in enumerate(kinds)]
    random.shuffle(named)
    assert _followed(dict(named), 8, after) == mine.tolist()


def test_systems_that_are_not_shared_have_rows_of_their_own():
    plan = planner.solve({**SPEC, "sharing": "none"})  # verified as it is solved
    assert [row["tenant"] for row in plan["packing"]] == ["small", "large"]
    assert sum(row["held"] for row in plan["packing"]) == sum(row["count"] for row in plan["fleet"])


@pytest.mark.parametrize(
    "key",
    [
        "held",
        "nodes",
        "partly",
        "free_chips",
        "stranded_chips",
        "workers",
        "lost_packed",
        "lost_spread",
        "nodes_without_moves",
    ],
)
def test_a_bent_row_is_found(document, key):
    bent = copy.deepcopy(document)
    bent["packing"][0][key] += 1
    assert any(f"packing[0].{key}" in str(finding) for finding in said(bent))


def test_a_row_that_is_missing_or_bent_in_its_means_is_found(document):
    for change in ("mean_nodes", "mean_nodes_without_moves"):
        bent = copy.deepcopy(document)
        bent["packing"][0][change] *= 1.1
        assert said(bent)
    assert said({**document, "packing": []})


def test_free_systems_and_n_plus_1_are_not_both_asked_for():
    with pytest.raises(SpecError, match=r"packing\.free: small has spare systems of its own"):
        resolve(parse_spec(edited(SPEC, (("packing", {"free": 0.1}), ("workloads[0].redundancy", "N+1")))))


def drawn(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    one = chat("one", "Llama-3.1-8B", round(float(rng.uniform(5, 200)), 3), f"{rng.uniform(12, 50):.3g} ms")
    del one["demand"]["profile"]
    one["lengths"] = {"input": int(rng.integers(100, 5000)), "output": int(rng.integers(20, 600))}
    free = round(float(rng.uniform(0, 0.5)), 3)
    return edited(
        SPEC,
        (("workloads", [one]), ("packing", {"free": free}), ("solver", {"replicas": "divisible"}), ("simplicity", {"within": 0}),
         ("sites[0].electricity_price", "0 USD/MWh"), ("offers[0].supply", 1000)),
    )  # fmt: skip


CASES = 150 if ALL_CASES else 12


@pytest.mark.parametrize("seed", range(CASES))
def test_the_share_that_stays_free_is_held_beside(seed):
    spec = drawn(seed)
    plan, fewest = planner.solve(spec), fewest_systems(spec) / (1.0 - spec["packing"]["free"])
    if not math.isfinite(fewest):
        assert plan.status == "infeasible"
        return
    assert sum(row["count"] for row in plan["fleet"]) == math.ceil(fewest - 1e-6)
