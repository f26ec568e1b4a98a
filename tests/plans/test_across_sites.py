"""Prefill at one site and decode at another, joined by a line: plans against enumeration, the latency of the line, `verify`, and what is refused."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import planner
from models.arrays import sum_of
from planner.candidates.points import OperatingPoint
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import Formulation, formulate
from planner.plan import Plan
from planner.report.load.paths import path_lines
from planner.report.report import render
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from solvers.interface import Options
from solvers.search import joint
from tests.conftest import few_of

MOST_UNITS = 8
UNIT = 50e9  # byte/s of a unit of the line
CACHE = 3000 * 32 * 2 * 8 * 128  # bytes of 3,000 tokens of 32 layers, keys and values of 8 heads of 128, in 8 bit
PROMPT, ANSWER = 3000, 300  # tokens
QUIET = {"control": {"rate": "0 bit/s"}, "telemetry": {"rate": "0 bit/s"}}
SPEC: dict[str, Any] = {
    "schema_version": 1,
    "name": "prefill and decode at two sites",
    "horizon": {"start": "2027-01-01", "years": 1},
    "objective": {"minimise": "cost"},
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-8B",
            "demand": {"requests_per_s": 400, "profile": [1] * 12 + [2] * 12},
            "lengths": {"input": PROMPT, "output": ANSWER},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "3 s"}, "tpot": {"p95": "40 ms"}},
            "precision": ["fp8"],
            "kv_precision": ["fp8"],
            "disaggregation": "always",
            "across_sites": True,
            "weight_updates_per_year": 0,
            "traffic": QUIET,
        }
    ],
    "sites": [
        {"region": "us-virginia", "systems": ["HGX H20 8-GPU server"], "electricity_price": "80 USD/MWh"},
        {"region": "us-texas", "systems": ["DGX H100"], "electricity_price": "60 USD/MWh"},
    ],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "150000 USD", "supply": 6},
        {"system": "HGX H20 8-GPU server", "how": "buy", "price": "50000 USD", "supply": 6},
    ],
    "lines": [{"kind": "dedicated line", "setup": "0 s", "capacity": "400 Gbit/s", "price": "300 USD/month"}],
    "simplicity": {"within": 0},
    "solver": {"gap": 1e-6, "replicas": "divisible", "time_limit": "60 s"},
}
DEMAND = "workloads[0].demand.requests_per_s"
H100, H20 = "offers[0].price", "offers[1].price"
LINE, UNITS = "lines[0].price", "lines[0].units"


def spec(*edits: tuple[str, Any]) -> dict[str, Any]:
    return edited(copy.deepcopy(SPEC), edits)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(spec())


def apart(plan: Plan) -> list[Any]:
    """List the points with pools at two sites."""
    return [point for point in plan.document["workloads"][0]["points"] if "site" in point["pools"][0]]


# -- against enumeration ------------------------------------------------------------------------------------------------


def sent(point: OperatingPoint) -> np.ndarray:
    """Bytes of one request on the line, from Texas to Virginia and back: its cache counts for 1/0.7 of itself, its text goes to and from Virginia."""
    prefill, decode = (use.option.site.region for use in point.uses)
    there = np.array([0.0, 0.0])
    text = np.array([ANSWER * 4.0, PROMPT * 4.0])
    if decode == "us-texas":
        there += text
    if prefill != decode:
        caches = np.array([CACHE / 0.7, PROMPT * 4.0])
        there += caches if prefill == "us-texas" else caches[::-1]
    return there


def enumerated(form: Formulation) -> float:
    """Enumerate all numbers of systems of both sites and of units of the line; each hour is a linear program over the points."""
    data, lines = form.data, form.data.lines
    assert lines is not None
    system, unit = data.holding_cost["cost"], float(sum(lines.line_cost["cost"]))
    most = int(min(*lines.line_upper, MOST_UNITS, MOST_UNITS))
    points = form.points
    uses = np.zeros((len(form.holdings), len(points)))
    for p, point in enumerate(points):
        for use in point.uses:
            for u, (k, _) in enumerate(form.holdings):
                uses[u, p] += use.systems if form.fleet_options[k] is use.option else 0.0
    channels = np.array([sent(point) * point.capacity for point in points]).T
    hours, first, weights = np.unique(-data.demand[0, 0], return_index=True, return_counts=True)  # the busiest first
    cost = data.point_cost["cost"][:, first].T
    capacity = np.array([[point.capacity for point in points]])

    def best_of(fixed: float, held: tuple[int, ...], units: int) -> float:
        room = np.array([*held, units * UNIT, units * UNIT])
        for hour, weight, prices in zip(hours, weights, cost, strict=True):
            found = linprog(prices, np.vstack([uses, channels]), room, capacity, [-hour], method="highs")
            if found.status != 0:
                return np.inf
            fixed += weight * found.fun
        return fixed

    upper = tuple(int(count) for count in data.holding_upper)
    if np.isinf(best_of(0.0, upper, most)):
        return np.inf
    counts = itertools.product(*(range(count + 1) for count in upper), range(most + 1))
    best = np.inf
    for fixed, (*held, units) in sorted((float(np.array(each) @ [*system, unit]), each) for each in counts):
        if fixed >= best:
            break
        best = min(best, best_of(fixed, tuple(held), units))
    return best


KEPT: dict[Any, Any] = {}


@settings(max_examples=few_of(12))
@given(
    demand=st.floats(20, 300),
    prices=st.tuples(st.integers(40, 250), st.integers(20, 120)),
    line=st.integers(0, 3000),
    units=st.sampled_from([0, 1, 2, 4, MOST_UNITS]),
)
def test_plans_equal_the_enumeration_of_counts_at_both_sites(
    demand: float, prices: tuple[int, int], line: int, units: int
) -> None:
    asked = spec(
        (DEMAND, demand),
        (H100, f"{prices[0] * 1000} USD"),
        (H20, f"{prices[1] * 1000} USD"),
        (LINE, f"{line} USD/month"),
        (UNITS, units),
    )
    problem = resolve(parse_spec(asked))
    form = formulate(problem, find_candidates(problem, KEPT))
    assert not units or any(point.exchange is not None for point in form.points)
    found, best = joint.solve(form.data, Options(gap=1e-9, time_limit_s=30)), enumerated(form)
    if np.isinf(best):
        assert found.status == "infeasible"
    else:
        assert found.value == pytest.approx(best, rel=1e-6)


def test_the_line_pays_where_one_site_has_prefill_and_the_other_decode(plan: Plan) -> None:
    """With the switch off, both sites have pools for themselves, at a higher cost."""
    (point,) = apart(plan)
    assert [(pool["role"], pool["site"]) for pool in point["pools"]] == [
        ("prefill", "us-texas"),
        ("decode", "us-virginia"),
    ]
    alone = planner.solve(spec(("workloads[0].across_sites", False)))
    assert not apart(alone) and alone["objective"]["value"] > plan["objective"]["value"] * 1.1


# -- whole replicas against enumeration ----------------------------------------------------------------------------------


def whole_enumerated(form: Formulation) -> float:
    """Enumerate all numbers of systems of both sites and of units of the line; within them, whole workers of each role of each point.

    A point has the rate of the role of which it has fewest workers, and at least the workers of one replica. All hours are alike.
    """
    data, lines, points = form.data, form.data.lines, form.points
    assert lines is not None
    roles = [(p, use) for p, point in enumerate(points) for use in point.uses]
    count, each = len(points), len(roles)
    prices = np.array([*data.holding_cost["cost"], float(sum(lines.line_cost["cost"]))])
    upper = [int(most) for most in data.holding_upper]
    most = int(min(*lines.line_upper, MOST_UNITS, MOST_UNITS))
    asked = float(data.demand[0, 0, 0])
    cost = data.point_cost["cost"].sum(axis=1)
    # columns: rate of each point in replicas, workers of each role, whether the point is deployed
    needs = np.zeros((each, 2 * count + each))
    one, takes = needs.copy(), np.zeros((len(form.holdings), 2 * count + each))
    for i, (p, use) in enumerate(roles):
        needs[i, [p, count + i]] = use.workers, -1.0
        one[i, [count + i, count + each + p]] = -1.0, use.workers
        for u, (k, _) in enumerate(form.holdings):
            if form.fleet_options[k] is use.option:
                takes[u, count + i] = use.systems_per_worker
    works = np.zeros((count, 2 * count + each))
    works[:, :count] = np.diag([point.capacity for point in points])
    works[:, count + each :] = -asked * np.eye(count)
    channels = np.zeros((2, 2 * count + each))
    channels[:, :count] = np.array([sent(point) * point.capacity for point in points]).T
    served = np.zeros((1, 2 * count + each))
    served[0, :count] = [point.capacity for point in points]
    matrix = np.vstack([needs, one, works, takes, channels, served])
    whole = np.repeat([0, 1, 1], [count, each, count])
    bounds = Bounds(0, np.repeat([np.inf, np.inf, 1.0], [count, each, count]))

    def run(held: tuple[int, ...], units: int) -> float:
        top = [*np.zeros(2 * each + count), *held, units * UNIT, units * UNIT, np.inf]
        least = [*np.full(len(top) - 1, -np.inf), asked]
        found = milp(
            [*cost, *np.zeros(each + count)], constraints=LinearConstraint(matrix, least, top), integrality=whole,
            bounds=bounds, options={"mip_rel_gap": 1e-9},
        )  # fmt: skip
        return float(found.fun) if found.status == 0 else np.inf

    if np.isinf(run(tuple(upper), most)):
        return np.inf
    best = np.inf
    counts = itertools.product(*(range(top + 1) for top in upper), range(most + 1))
    for fixed, (*held, units) in sorted((float(np.dot(some, prices)), some) for some in counts):
        if fixed >= best:
            break
        best = min(best, fixed + run(tuple(held), units))
    return best


@settings(max_examples=few_of(6))
@given(
    demand=st.floats(20, 150),
    prices=st.tuples(st.integers(40, 250), st.integers(20, 120)),
    line=st.integers(0, 3000),
    units=st.sampled_from([1, 2, 4, MOST_UNITS]),
)
def test_whole_replicas_equal_the_enumeration_of_counts_at_both_sites(
    demand: float, prices: tuple[int, int], line: int, units: int
) -> None:
    asked = spec(
        (DEMAND, demand),
        ("workloads[0].demand.profile", [1] * 24),
        (H100, f"{prices[0] * 1000} USD"),
        (H20, f"{prices[1] * 1000} USD"),
        (LINE, f"{line} USD/month"),
        (UNITS, units),
        ("solver.replicas", "whole"),
        ("solver.points_per_system", 1),
        ("offers[0].supply", 3),
        ("offers[1].supply", 3),
    )
    problem = resolve(parse_spec(asked))
    form = formulate(problem, find_candidates(problem, WHOLE))
    assert any(point.exchange is not None for point in form.points)
    found, best = joint.solve(form.data, Options(gap=1e-9, time_limit_s=30)), whole_enumerated(form)
    if np.isinf(best):
        assert found.status == "infeasible"
    else:
        assert found.value == pytest.approx(best, rel=1e-6)


WHOLE: dict[Any, Any] = {}


# -- figures by hand -----------------------------------------------------------------------------------------------------


def test_the_plan_names_the_line_its_bandwidth_and_its_use(plan: Plan) -> None:
    (point,), (line,) = apart(plan), plan["lines"]
    path = point["path"]
    assert (path["kind"], path["design"], path["line"]) == ("line", "dedicated line", "us-texas - us-virginia")
    assert path["bytes_per_s"] == line["units"] * UNIT == line["capacity_bytes_per_s"]
    assert path["used_bytes_per_s"] == pytest.approx(point["peak_replicas"] * point["capacity"] * CACHE)
    assert path["share"] <= 0.7 * (1 + 1e-9)
    assert line["units"] == int(np.ceil(path["used_bytes_per_s"] / 0.7 / UNIT))
    carried = {row["traffic"]: row["bytes"] for row in line["traffic"]}
    work = sum_of(row["active"].get(point["id"], 0.0) * row["seconds"] for row in plan["schedule"])
    assert carried["caches"] == pytest.approx(work * point["capacity"] * (CACHE + PROMPT * 4))
    assert any("KV caches over the dedicated line us-texas - us-virginia" in text for text in path_lines(plan))
    assert "us-texas - us-virginia" in render(plan, "table")


def groups_across(*edits: tuple[str, Any]) -> tuple[float, dict[Any, OperatingPoint]]:
    """Return (round trip of the line, the points with decode in Virginia and prefill in Texas by layouts and workers)."""
    problem = resolve(parse_spec(spec(*edits)))
    assert problem.lines is not None
    found = {}
    for point in find_candidates(problem).pools[0].points:
        if point.exchange is not None:
            found[tuple((use.workers, use.batch, *use.layout.values()) for use in point.uses)] = point
    return problem.lines.lines[0].rtt_s, found


@pytest.mark.parametrize("slower", ["lines[0].added_latency", "lines[0].capacity"])
def test_the_first_token_waits_for_the_line(slower: str) -> None:
    """A line of more latency adds its round trip, one of a quarter of the capacity the time that a cache takes at 0.3 of it."""
    rtt_s, before = groups_across()
    later_s, after = groups_across((slower, "60 ms" if "latency" in slower else "100 Gbit/s"))
    seconds = later_s - rtt_s if "latency" in slower else CACHE / 0.3 / (UNIT / 4) - CACHE / 0.3 / UNIT
    assert seconds > 0.03 and before.keys() & after.keys()
    factor = resolve(parse_spec(spec())).constants.serving.disaggregated_first_token_factor
    for key in before.keys() & after.keys():
        one, other = before[key].steady, after[key].steady
        assert one is not None and other is not None
        assert other.prompt_s - one.prompt_s == pytest.approx(factor * seconds, rel=1e-6)


def test_a_line_that_is_too_slow_leaves_no_point_within_the_latency_limit() -> None:
    """At 10 Mbit/s a cache of 197 MB takes minutes."""
    problem = resolve(parse_spec(spec(("lines[0].capacity", "10 Mbit/s"))))
    points = [point for pool in find_candidates(problem).pools for point in pool.points]
    assert points and all(point.exchange is None for point in points)


def test_lines_without_a_capacity_carry_no_caches() -> None:
    problem = resolve(parse_spec(spec(("lines", [{"kind": "TLS"}]))))
    found = find_candidates(problem)
    assert all(point.exchange is None for pool in found.pools for point in pool.points)
    assert any("another site" in reason for reason in found.dropped["chat"])


# -- checks --------------------------------------------------------------------------------------------------------------


def test_a_plan_with_power_limits_meters_copies_and_whole_workers_holds() -> None:
    """Both sites draw their own part, weights and streams go to both, and a price per byte is paid for caches."""
    plan = planner.solve(
        spec(
            ("workloads[0].weight_updates_per_year", 12),
            ("workloads[0].traffic", {}),
            (DEMAND, 150),
            ("sites[0].power", "30 kW"),
            ("sites[1].power", "60 kW"),
            ("lines[0].price_per_byte", "1e-9 USD/GB"),
            ("solver.replicas", "whole"),
            ("solver.gap", 0.02),
        )
    )
    assert apart(plan) and planner.verify_plan(plan) == []
    assert {row["to"] for row in plan["placements"]} == {"us-texas"}


def test_the_plan_is_verified(plan: Plan) -> None:
    assert planner.verify_plan(plan) == []


@pytest.mark.parametrize("key", ["bytes_per_s", "used_bytes_per_s", "share", "latency_s", "line", "design"])
def test_verify_computes_the_path_again(plan: Plan, key: str) -> None:
    changed = copy.deepcopy(plan.document)
    path = changed["workloads"][0]["points"][0]["path"]
    path[key] = "TLS" if isinstance(path[key], str) else path[key] * 1.001  # type: ignore[literal-required]
    assert planner.verify_plan(Plan(changed))


def test_verify_misses_neither_a_unit_nor_a_site(plan: Plan) -> None:
    less, elsewhere = copy.deepcopy(plan.document), copy.deepcopy(plan.document)
    less["lines"][0]["units"] -= 1
    assert any("lines" in str(found) for found in planner.verify_plan(Plan(less)))
    elsewhere["workloads"][0]["points"][0]["pools"][0]["site"] = "us-virginia"
    assert planner.verify_plan(Plan(elsewhere))


@pytest.mark.parametrize(
    "edits",
    [
        [("lines", None)],
        [("workloads[0].spread", {"zones": 2, "survive": 1})],
    ],
)
def test_what_pools_at_two_sites_do_not_go_with_is_refused(edits: list[tuple[str, Any]]) -> None:
    with pytest.raises(SpecError, match=r"workloads\[0\]\.across_sites"):
        resolve(parse_spec(spec(*edits)))
