"""Points found with the evaluations of an earlier question are those found from nothing."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from planner.candidates.search import find_candidates
from planner.resolve.resolver import resolve_document
from planner.spec.document import edited
from tests.conftest import few_of

SPEC = {
    "name": "kept",
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "Llama-3.1-70B", "demand": {"requests_per_s": 300.0},
            "lengths": {"input": 2000, "output": 300}, "origins": [{"region": "us-california", "share": 1.0}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "40 ms"}}, "precision": ["fp8"],
        },
    ],
    "sites": [{"region": "us-virginia", "power": "20 MW"}, {"region": "us-texas", "power": "20 MW"}],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
        {"system": "DGX B200", "how": "buy", "price": "500000 USD"},
        {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "55 USD/h"},
    ],
}  # fmt: skip
PATHS = {
    "offers[0].price": ("200000 USD", "310000 USD", "900000 USD"),
    "offers[1].price": ("100000 USD", "500000 USD"),
    "offers[2].price": ("10 USD/h", "55 USD/h"),
    "sites[0].power": ("1 MW", "20 MW"),
    "workloads[0].demand.requests_per_s": (30.0, 300.0, 3000.0),
    "workloads[0].slo.tpot.p95": ("25 ms", "40 ms"),
    "solver.replicas": ("whole", "divisible"),
    "limits.budget": (None, "50M USD"),
}
CHANGES = st.fixed_dictionaries({}, optional={path: st.sampled_from(values) for path, values in PATHS.items()})
KEPT: dict = {}


def points(changes, grids):
    """What was found, in plain values."""
    found = find_candidates(resolve_document(edited(SPEC, tuple(changes.items())), ()), grids)
    pools = [
        (point.capacity, [(use.option.name, use.role, use.systems, use.layout, use.batch, use.workers) for use in point.uses])
        for pool in found.pools
        for point in pool.points
    ]  # fmt: skip
    return pools, {name: dict(counts) for name, counts in found.dropped.items()}


@settings(max_examples=few_of(8), deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(CHANGES)
def test_points_are_those_found_from_nothing(changes):
    assert points(changes, KEPT) == points(changes, {})


def test_whole_and_divisible_replicas_have_choices_of_their_own():
    """Also where the first question asked for the other kind."""
    grids: dict = {}
    asked = [points({"solver.replicas": kind}, grids) for kind in ("whole", "divisible")]
    assert asked[1] == points({"solver.replicas": "divisible"}, {}) != asked[0]
