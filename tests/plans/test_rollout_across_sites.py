"""Update at one site and rollout at another, joined by a line: plans against enumeration, the transfer of weights by hand, `verify`, and what is refused."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import planner
from models.arrays import sum_of
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import Formulation, formulate
from planner.messages import Message
from planner.plan import Plan
from planner.report.load.paths import path_lines
from planner.report.report import render
from planner.resolve.resolver import resolve
from planner.spec.document import edited
from planner.spec.model import parse_spec
from solvers.interface import Options
from solvers.search import joint
from tests.conftest import few_of

UNIT = 1.25e9  # byte/s of a unit of the line
WEIGHTS = 2 * (8_030_261_248 - 65 * 4096)  # bytes of Llama-3.1-8B in 16 bit, without its norms
PROMPTS, SAMPLES, PROMPT, RESPONSE = 128, 8, 500, 8000
ROLLOUTS = PROMPTS * SAMPLES * (PROMPT + RESPONSE) * 8  # bytes: 4 of a token, 4 of its log-probability
TENSORS = (
    1 + 32 * 9 + 2
)  # of the embedding; of a layer: two norms, four of attention, three of the network; norm and head
JOB: dict[str, Any] = {
    "name": "policy",
    "kind": "reinforcement",
    "architecture": "Llama-3.1-8B",
    "iterations_per_hour": 16,
    "prompts": PROMPTS,
    "samples": SAMPLES,
    "lengths": {"prompt": PROMPT, "response": RESPONSE, "limit": 32_000, "cv": 1.0, "endless": 0.0},
    "ways": ["synchronous", "asynchronous"],
    "preemption": None,
    "across_sites": True,
}
SPEC: dict[str, Any] = {
    "schema_version": 1,
    "name": "update and rollout at two sites",
    "horizon": {"start": "2027-01-01", "years": 1},
    "objective": {"minimise": "cost"},
    "workloads": [JOB],
    "sites": [
        {"region": "us-virginia", "systems": ["HGX H20 8-GPU server"], "electricity_price": "80 USD/MWh"},
        {"region": "us-texas", "systems": ["DGX H100"], "electricity_price": "60 USD/MWh"},
    ],
    "offers": [
        {"system": "DGX H100", "how": "buy", "price": "250000 USD", "supply": 8},
        {"system": "HGX H20 8-GPU server", "how": "buy", "price": "60000 USD", "supply": 8},
    ],
    "lines": [{"kind": "dedicated line", "setup": "0 s", "capacity": "10 Gbit/s", "price": "3000 USD/month"}],
    "simplicity": {"within": 0},
    "solver": {"gap": 1e-6, "replicas": "divisible", "time_limit": "60 s"},
}
RATE = "workloads[0].iterations_per_hour"
H100, H20 = "offers[0].price", "offers[1].price"
LINE, UNITS = "lines[0].price", "lines[0].units"


def spec(*edits: tuple[str, Any]) -> dict[str, Any]:
    return edited(copy.deepcopy(SPEC), edits)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(spec())


def used(plan: Plan) -> Any:
    """Return the only point of the job."""
    (point,) = next(row for row in plan.document["workloads"] if row["name"] == "policy")["points"]
    return point


# -- against enumeration ------------------------------------------------------------------------------------------------


def enumerated(form: Formulation) -> float:
    """Enumerate all numbers of systems of both sites and of units of the line, and the points of each job; its hours are a linear program."""
    data, lines = form.data, form.data.lines
    assert lines is not None
    jobs, seconds = len(data.job_work), data.slot_hours_s
    uses = np.zeros((len(form.points), len(form.holdings)))
    for p, point in enumerate(form.points):
        for use in point.uses:
            for u, (k, _) in enumerate(form.holdings):
                uses[p, u] += use.systems if form.fleet_options[k] is use.option else 0.0
    reserved = np.array([0.0 if point.exchange is None else point.exchange.kept(0.0)[0] for point in form.points])
    prices = [*data.holding_cost["cost"], float(np.sum(lines.line_cost["cost"]))]
    upper = [int(count) for count in data.holding_upper] + [int(min([*lines.line_upper, 8 * jobs]))]
    mine = [np.flatnonzero(data.point_job == j) for j in range(jobs)]

    def run(points: tuple[int, ...], held: Any) -> float:
        """Share out the hours among jobs that each have their width, but not together."""
        parts, slots = len(points), len(seconds)
        done = np.zeros((parts, parts * slots))
        for i, p in enumerate(points):
            done[i, i * slots : (i + 1) * slots] = seconds * data.point_capacity[p] / data.job_work[i]
        together = np.hstack(
            [np.kron(np.eye(slots), row[:, None]) for row in np.column_stack([uses, reserved])[list(points)]]
        )
        room = np.tile([*held[:-1], held[-1] * UNIT], slots)
        cost = np.concatenate([data.point_cost["cost"][p] for p in points])
        found = linprog(cost, together, room, done, np.ones(parts), bounds=(0, 1), method="highs")
        return float(found.fun) if found.status == 0 else np.inf

    best, alone = np.inf, dict[tuple[int, ...], float]()
    counts = itertools.product(*(range(count + 1) for count in upper))
    for fixed, held in sorted((float(np.dot(each, prices)), each) for each in counts):
        if fixed >= best:
            break
        fit = [
            [p for p in some if (uses[p] <= held[:-1]).all() and reserved[p] <= held[-1] * UNIT * (1 + 1e-12)]
            for some in mine
        ]
        for points in itertools.product(*fit):
            if jobs > 1 or points not in alone:  # a job by itself takes the same hours whatever else is held
                alone[points] = run(points, held)
            best = min(best, fixed + alone[points])
    return best


KEPT: dict[Any, Any] = {}


@settings(max_examples=few_of(12))
@given(
    rate=st.floats(6, 20),
    prices=st.tuples(st.integers(100, 400), st.integers(20, 120)),
    line=st.integers(0, 6000),
    units=st.sampled_from([0, 1, 2, 8]),
)
def test_plans_equal_the_enumeration_of_counts_at_both_sites(
    rate: float, prices: tuple[int, int], line: int, units: int
) -> None:
    asked = spec(
        (RATE, rate),
        (H100, f"{prices[0] * 1000} USD"),
        (H20, f"{prices[1] * 1000} USD"),
        (LINE, f"{line} USD/month"),
        (UNITS, units),
    )
    equals_the_enumeration(asked, bool(units))


@settings(max_examples=few_of(6))
@given(rates=st.tuples(st.floats(2, 8), st.floats(2, 8)), line=st.integers(500, 6000), h100=st.integers(100, 400))
def test_two_jobs_share_systems_and_the_line_as_the_enumeration_says(
    rates: tuple[float, float], line: int, h100: int
) -> None:
    jobs = [JOB | {"name": name, "iterations_per_hour": rate} for name, rate in zip("ab", rates, strict=True)]
    small = [("offers[0].supply", 3), ("offers[1].supply", 3), ("solver.points_per_system", 2)]
    asked = spec(("workloads", jobs), (H100, f"{h100 * 1000} USD"), (LINE, f"{line} USD/month"), (UNITS, 2), *small)
    equals_the_enumeration(asked, True)


def equals_the_enumeration(asked: dict[str, Any], joined: bool) -> None:
    problem = resolve(parse_spec(asked))
    form = formulate(problem, find_candidates(problem, KEPT))
    assert not joined or not form.points or any(point.exchange is not None for point in form.points)
    found, best = joint.solve(form.data, Options(gap=1e-9, time_limit_s=30)), enumerated(form)
    if np.isinf(best):
        assert found.status == "infeasible"
    else:
        assert found.value == pytest.approx(best, rel=1e-6)


# -- figures by hand -----------------------------------------------------------------------------------------------------


def test_the_line_pays_where_one_site_trains_and_the_other_rolls_out(plan: Plan) -> None:
    """With the switch off, both pools stand at one site, at a higher cost."""
    pools = [(pool["role"], pool["site"]) for pool in used(plan)["pools"]]
    assert pools == [("update", "us-texas"), ("rollout", "us-virginia")] and used(plan)["site"] == "us-texas"
    alone = planner.solve(spec(("workloads[0].across_sites", False)))
    assert all("site" not in pool for pool in used(alone)["pools"])
    assert alone["objective"]["value"] > plan["objective"]["value"] * 1.05


def synchronisation_s(*edits: tuple[str, Any]) -> tuple[float, dict[Any, float]]:
    """Return (round trip of the line, the synchronisation by units reserved) of points at two sites."""
    problem = resolve(parse_spec(spec(*edits)))
    assert problem.lines is not None
    found = {}
    for point in find_candidates(problem).training["policy"]:
        if point.exchange is not None and point.iteration is not None:
            rate = point.exchange.kept(0.0)[0]
            found[round(rate / problem.lines.lines[0].unit_bytes_per_s)] = point.iteration["parts_s"]["synchronisation"]
    return problem.lines.lines[0].rtt_s, found


def test_weights_pass_the_line_once_and_rollouts_come_back() -> None:
    """16.06 GB take 12.85 s of 10 Gbit/s, the rollouts 0.06 s; the start and 291 tensors come on top."""
    factors = resolve(parse_spec(spec())).constants.reinforcement
    rtt_s, found = synchronisation_s()
    start_s = factors.sync_start_s + TENSORS * factors.sync_tensor_s
    for units in (1, 2):
        assert found[units] == pytest.approx(start_s + (WEIGHTS + ROLLOUTS) / (units * UNIT) + rtt_s, rel=1e-9)
    later_s, after = synchronisation_s(("lines[0].added_latency", "500 ms"))
    assert later_s > rtt_s + 0.4 and after[1] - found[1] == pytest.approx(later_s - rtt_s, rel=1e-9)


def test_the_plan_names_the_line_what_is_reserved_of_it_and_its_use(plan: Plan) -> None:
    point, (line,) = used(plan), plan["lines"]
    path, iteration = point["path"], point["iteration"]
    assert (path["kind"], path["design"], path["line"]) == ("line", "dedicated line", "us-texas - us-virginia")
    assert path["bytes_per_s"] == line["units"] * UNIT == line["capacity_bytes_per_s"]
    assert path["used_bytes_per_s"] == pytest.approx(WEIGHTS / iteration["iteration_s"])
    assert path["share"] == pytest.approx(path["used_bytes_per_s"] / path["bytes_per_s"])
    seconds = sum_of(row["active"].get(point["id"], 0.0) * row["seconds"] for row in plan["schedule"])
    (traffic,) = line["traffic"]
    assert traffic["traffic"] == "rollouts"
    assert traffic["bytes"] == pytest.approx(seconds / iteration["iteration_s"] * (WEIGHTS + ROLLOUTS))
    assert any("weights over the dedicated line us-texas - us-virginia" in text for text in path_lines(plan))
    assert Message.of("traffic.rollouts").text() in render(plan, "table")


def test_an_iteration_in_turns_waits_for_the_line() -> None:
    """Rollout, synchronisation, scoring, update and controller add up."""
    problem = resolve(parse_spec(spec(("workloads[0].ways", ["synchronous"]), (RATE, 10))))
    across = [point for point in find_candidates(problem).training["policy"] if point.exchange is not None]
    assert across
    for point in across:
        assert point.iteration is not None
        assert sum_of(point.iteration["parts_s"].values()) == pytest.approx(point.iteration["iteration_s"], rel=1e-12)


# -- checks --------------------------------------------------------------------------------------------------------------


def test_the_plan_is_verified(plan: Plan) -> None:
    assert planner.verify_plan(plan) == []


def test_a_plan_with_power_limits_prices_per_byte_and_a_service_beside_it_holds() -> None:
    """Both sites draw their own part, and a price per byte is paid for weights and rollouts."""
    chat = {
        "name": "chat",
        "kind": "serving",
        "architecture": "Llama-3.1-8B",
        "demand": {"requests_per_s": 40},
        "lengths": {"input": 1000, "output": 300},
        "origins": [{"region": "us-virginia", "share": 1}],
        "weight_updates_per_year": 12,
    }
    found = planner.solve(
        spec(
            ("workloads", [JOB, chat]),
            ("lines[0].price_per_byte", "0.001 USD/GB"),
            ("sites[0].power", "90 kW"),
            ("sites[1].power", "40 kW"),
        )
    )
    assert "path" in used(found) and planner.verify_plan(found) == []
    (line,) = found["lines"]
    assert {row["traffic"] for row in line["traffic"]} >= {"rollouts", "weights"}
    carried = {row["traffic"]: row["bytes"] for row in line["traffic"]}
    worth = 1 / 1.08  # paid at the end of the year
    assert line["cost"]["rollouts"] == pytest.approx(carried["rollouts"] * 1e-12 * worth, rel=1e-9)


@pytest.mark.parametrize("key", ["bytes_per_s", "used_bytes_per_s", "share", "latency_s", "line", "design"])
def test_verify_computes_the_path_again(plan: Plan, key: str) -> None:
    changed = copy.deepcopy(plan.document)
    path = changed["workloads"][0]["points"][0]["path"]
    path[key] = "TLS" if isinstance(path[key], str) else path[key] * 1.001  # type: ignore[literal-required]
    assert planner.verify_plan(Plan(changed))


def test_verify_misses_neither_a_unit_nor_a_site_nor_a_faster_line(plan: Plan) -> None:
    less, elsewhere, faster = (copy.deepcopy(plan.document) for _ in range(3))
    less["lines"][0]["units"] -= 1
    assert any("lines" in str(found) for found in planner.verify_plan(Plan(less)))
    elsewhere["workloads"][0]["points"][0]["pools"][1]["site"] = "us-texas"
    assert planner.verify_plan(Plan(elsewhere))
    faster["workloads"][0]["points"][0]["path"]["bytes_per_s"] *= 2
    assert planner.verify_plan(Plan(faster))


def test_lines_without_a_capacity_carry_no_weights() -> None:
    found = find_candidates(resolve(parse_spec(spec(("lines", [{"kind": "TLS"}])))))
    assert all(point.exchange is None for point in found.training["policy"])
    assert found.dropped["policy"][Message.of("path.no_line_for_weights").text()] == 2


SURVIVOR = {
    "name": "chat",
    "kind": "serving",
    "architecture": "Llama-3.1-8B",
    "demand": {"requests_per_s": 4},
    "lengths": {"input": 1000, "output": 300},
    "origins": [{"region": "us-virginia", "share": 1}],
    "spread": {"zones": 2, "survive": 1},
}


@pytest.mark.parametrize("edits", [[("lines", None)], [("workloads", [JOB, SURVIVOR])]])
def test_what_pools_at_two_sites_do_not_go_with_is_refused(edits: list[tuple[str, Any]]) -> None:
    with pytest.raises(SpecError, match=r"workloads\[0\]\.across_sites"):
        resolve(parse_spec(spec(*edits)))
