"""A mistake in the code that writes a plan is found by the verification, which writes the same figures a second time."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import Any

import pytest

import planner
from planner.pipeline import solve_unverified
from planner.problem.facts import ResolvedSpec
from planner.problem.lines import NO_TREE
from planner.solving import quality
from planner.verify.max_flow import max_flow
from planner.verify.plan import verify_plan

BY_ONE_PERCENT = 1.01


@pytest.fixture(scope="module")
def joined_spec(small_spec: dict[str, Any]) -> dict[str, Any]:
    """The small spec with so much demand that its systems stand on a network, chosen among three designs."""
    spec = copy.deepcopy(small_spec) | {"limits": {}}
    spec["workloads"][0]["demand"] = {"requests_per_s": 600}
    spec["sites"][0] |= {"power": "200 kW", "topologies": ["rail-optimised", "fat-tree", "torus"]}
    plan = planner.solve(spec)
    (network,) = plan["fabrics"]
    assert network["systems"] > 1 and network["price"] > 0 and network["power_w"] > 0 and len(network["instead"]) == 2
    assert verify_plan(plan) == []
    return spec


def wrong_price(row: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    return lambda *given: (found := row(*given)) | {"price": found["price"] * BY_ONE_PERCENT}


def wrong_designs(rows: Callable[..., list[dict[str, Any]]]) -> Callable[..., list[dict[str, Any]]]:
    return lambda *given: [row | {"price_per_system": row["price_per_system"] * BY_ONE_PERCENT} for row in rows(*given)]


def without_last_design(rows: Callable[..., list[dict[str, Any]]]) -> Callable[..., list[dict[str, Any]]]:
    return lambda *given: rows(*given)[:-1]


def wrong_bounds(bounds: Callable[..., dict[str, list[float]]]) -> Callable[..., dict[str, list[float]]]:
    return lambda *given: {name: [low, high * BY_ONE_PERCENT] for name, (low, high) in bounds(*given).items()}


def known_chip(tier: Callable[..., str]) -> Callable[..., str]:
    return lambda *given: "known"


@pytest.mark.parametrize(
    ("where", "name", "broken", "word"),
    [
        ("planner.interpret.fabrics", "fabric_row", wrong_price, "fabrics"),
        ("planner.interpret.fabrics", "other_designs", wrong_designs, "instead"),
        ("planner.interpret.fabrics", "other_designs", without_last_design, "instead"),
        ("planner.interpret.fabrics", "price_of", lambda price: lambda *g: price(*g) * BY_ONE_PERCENT, "fabrics"),
        ("planner.interpret.fabrics", "power_of", lambda power: lambda *g: power(*g) * BY_ONE_PERCENT, "fabrics"),
        ("planner.interpret.workloads", "serving_bounds", wrong_bounds, "interval_80"),
        ("planner.interpret.workloads", "training_bounds", wrong_bounds, "interval_80"),
        ("planner.interpret.workloads", "serving_tier", known_chip, "tier"),
    ],
)  # fmt: skip
def test_a_mistake_on_the_way_to_a_plan_is_found(
    joined_spec: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    name: str,
    broken: Callable[[Callable[..., Any]], Callable[..., Any]],
    word: str,
) -> None:
    module = import_module(where)
    monkeypatch.setattr(module, name, broken(getattr(module, name)))
    found = [str(finding) for finding in verify_plan(solve_unverified(joined_spec))]
    assert any(word in line for line in found), found


def forgets_the_weights(settled: Callable[..., ResolvedSpec]) -> Callable[..., ResolvedSpec]:
    """Lose the trees by which weights are sent, and with them their cost."""
    return lambda *given: replace(settled(*given), trees=dict.fromkeys(settled(*given).trees, NO_TREE))


def forgets_the_route(settled: Callable[..., ResolvedSpec]) -> Callable[..., ResolvedSpec]:
    """Lose the price of egress."""

    def changed(*given: Any) -> ResolvedSpec:
        found = settled(*given)
        return replace(found, paths={key: replace(path, price_per_byte=0.0) for key, path in found.paths.items()})

    return changed


@pytest.mark.parametrize(("broken", "component"), [(forgets_the_weights, "weights"), (forgets_the_route, "egress")])
def test_a_mistake_in_the_settled_architecture_is_found(
    tiny: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    broken: Callable[[Callable[..., ResolvedSpec]], Callable[..., ResolvedSpec]],
    component: str,
) -> None:
    spec = tiny(sites=[{"region": "us-oregon", "systems": ["DGX H100"]}])
    spec["workloads"][0] |= {
        "weight_updates_per_year": 1000,
        "alternatives": [
            {"architecture": name, "quality": score, "source": "made up"}
            for name, score in (("Llama-3.2-1B", 30.0), ("Llama-3.2-3B", 50.0))
        ],
        "quality_floor": {"least": 40, "source": "made up"},
    }
    plan = planner.solve(spec)
    assert plan.has_answer and plan["costs"][component] > 0 and verify_plan(plan) == []
    monkeypatch.setattr(quality, "settled", broken(quality.settled))
    plan = solve_unverified(spec)
    assert plan.has_answer
    found = [str(finding) for finding in verify_plan(plan)]
    assert any(component in line for line in found), found


def test_the_largest_flow_is_that_of_the_smallest_cut() -> None:
    edges = {("a", "b"): 1.0, ("a", "c"): 0.25, ("b", "c"): 0.5, ("b", "d"): 0.5, ("c", "d"): 2.0}
    assert max_flow("a", "d", edges) == pytest.approx(0.25 + 0.5 + 0.5)  # edges out of {a, b}
    assert max_flow("d", "a", edges) == 0.0
