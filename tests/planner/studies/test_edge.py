"""`flopwatt edge`: the program equals enumeration, the rows of the answer add up, and what is refused."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from catalog.lookup import shipped_catalog
from planner.cli.main import main
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INFEASIBLE, INVALID
from planner.resolve.ledger import Ledger
from planner.spec.schema import edge_schema
from planner.spec.stack.edge import EdgeSpec
from planner.studies.edge.answer import edge, edge_data
from planner.studies.edge.options import find_options
from planner.studies.edge.program import DeviceLimits, EdgeData, TierLimits, solve_edge

EXAMPLE = json.loads(
    (Path(__file__).parents[3] / "examples" / "edge" / "factory_and_field.json").read_text(encoding="utf-8")
)


def enumerated(data: EdgeData) -> tuple[float, int]:
    """Least cost over all assignments, each limit written from its definition; and the number of feasible ones."""
    best, feasible = math.inf, 0
    tasks, tiers = data.able.shape
    for choice in itertools.product(range(tiers), repeat=tasks):
        if not all(data.able[t, k] for t, k in enumerate(choice)):
            continue
        cost, fine = data.fixed + sum(data.cost[t, k] for t, k in enumerate(choice)), True
        for device in data.devices:
            here = [t for t in device.tasks if choice[t] == 0]
            fine &= sum(data.busy[t] for t in here) <= device.busy + 1e-9
            fine &= sum(data.memory_bytes[t] for t in here) <= device.memory_bytes * (1 + 1e-9)
            fine &= sum(data.power_w[t] for t in here) <= device.power_w + 1e-9 or not here
            fine &= sum(data.uplink[t, choice[t]] for t in device.tasks) <= device.uplink_bytes_per_s * (1 + 1e-9)
            fine &= not any(data.clash[i, j] for i in here for j in here)
        for k, tier in enumerate(data.tiers):
            wanted = sum(data.systems[t, k + 1] for t, place in enumerate(choice) if place == k + 1)
            each = math.ceil(wanted / tier.places - 1e-9)
            fine &= each <= tier.most
            cost += each * tier.places * tier.cost
        if fine:
            best, feasible = min(best, cost), feasible + 1
    return best, feasible


def drawn_data(seed: int) -> EdgeData:
    rng = np.random.default_rng(seed)
    tasks, tiers = int(rng.integers(1, 6)), int(rng.integers(0, 3))
    split = int(rng.integers(0, tasks + 1))
    groups = [tuple(range(split)), tuple(range(split, tasks))]
    clash = rng.random((tasks, tasks)) < 0.2
    np.fill_diagonal(clash, False)
    same = np.zeros_like(clash)
    for group in groups:
        same[np.ix_(group, group)] = True
    return EdgeData(
        able=rng.random((tasks, tiers + 1)) < 0.8,
        cost=rng.uniform(0, 100, (tasks, tiers + 1)),
        busy=rng.uniform(0, 0.6, tasks),
        memory_bytes=rng.uniform(0, 4e9, tasks),
        power_w=rng.uniform(0, 10, tasks),
        uplink=np.concatenate([np.zeros((tasks, 1)), rng.uniform(0, 1e6, (tasks, tiers))], axis=1),
        systems=np.concatenate([np.zeros((tasks, 1)), rng.uniform(0, 6, (tasks, tiers))], axis=1),
        clash=clash & same,
        devices=tuple(
            DeviceLimits(group, 0.7, 8e9, float(rng.choice([12.0, np.inf])), float(rng.choice([1.2e6, np.inf])))
            for group in groups
            if group
        ),
        tiers=tuple(
            TierLimits(int(rng.integers(1, 4)), float(rng.uniform(1, 80)), float(rng.choice([2.0, np.inf])))
            for _ in range(tiers)
        ),
        fixed=10.0,
    )


@pytest.mark.parametrize("first", range(0, 120, 40))
def test_the_program_equals_enumeration(first):
    feasible = 0
    for seed in range(first, first + 40):
        data = drawn_data(seed)
        best, count = enumerated(data)
        found = solve_edge(data)
        feasible += count > 1
        if found is None:
            assert not count, seed
        else:
            assert found.cost == pytest.approx(best, rel=1e-6), seed
    assert feasible > 15


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(1000, 10**6), task=st.integers(0, 4))
def test_forcing_a_tier_never_costs_less(seed, task):
    data = drawn_data(seed)
    free = solve_edge(data)
    if free is None or task >= data.able.shape[0]:
        return
    for tier in range(data.able.shape[1]):
        forced = solve_edge(data, {task: tier})
        assert forced is None or (forced.cost >= free.cost - 1e-6 and forced.tier[task] == tier)


@pytest.fixture(scope="module")
def answer() -> dict:
    return edge(EXAMPLE).document


def test_the_example_equals_enumeration(answer):
    options = find_options(EdgeSpec.model_validate(EXAMPLE), EXAMPLE, ())
    data = edge_data(options, Ledger(options.catalog))
    best, feasible = enumerated(data)
    assert feasible >= 2 and answer["cost_per_year"] == pytest.approx(best)


def test_each_decision_is_explained(answer):
    for task in answer["tasks"]:
        chosen = next(row for row in task["tiers"] if row["tier"] == task["tier"])
        assert chosen["more_per_year"] == 0.0 and task["slack_s"] >= 0
        for row in task["tiers"]:
            assert row["why_not"] or row["more_per_year"] >= -1e-6, row


def test_limits_of_devices_hold(answer):
    for row in answer["fleets"]:
        assert row["busy"] <= 0.7 and (row["room_bytes"] is None or row["memory_bytes"] <= row["room_bytes"])
        if row["on_device"] and row["power_limit_w"]:
            assert row["power_w"] <= row["power_limit_w"] + 1e-9
        assert row["battery_s"] is None or row["battery_s"] > 0
    for row in answer["tiers"]:
        assert row["utilisation"] <= 1.0 + 1e-9


def test_a_task_on_the_device_takes_what_estimate_says(answer):
    task = EXAMPLE["tasks"][2]
    case = {"workload": task["workload"], "system": "T50-class module", "chips": 1, "load": {"concurrency": 1}}
    alone = estimate({**case, "workload": {**case["workload"], "disaggregation": "never"}}).answer
    found = next(t for t in answer["tasks"] if t["name"] == task["name"])
    assert found["latency_s"] == pytest.approx(0.03 + alone["latency_s"]["e2e"]["p95"])


def changed(**changes) -> dict:
    document = copy.deepcopy(EXAMPLE)
    for path, value in changes.items():
        part = document
        *way, last = path.split("__")
        for key in way:
            part = part[int(key)] if key.isdigit() else part[key]
        part[last] = value
    return document


def decision(document: dict, task: str, tier: str) -> dict:
    found = next(t for t in edge(document).document["tasks"] if t["name"] == task)
    return next(row for row in found["tiers"] if row["tier"] == tier)


def test_battery_cooling_and_access_rule_tiers_out():
    flat = decision(changed(fleets__1__battery="1 Wh"), "avoid", "device")
    assert "when idle" in flat["why_not"]
    far = decision(changed(tiers__1__rtt="3 s"), "inspect", "centre")
    assert "the way there and back" in far["why_not"]
    deaf = decision(changed(fleets__2__uplink="1 kB/s"), "inspect", "centre")
    assert deaf["why_not"]


EDGE_SYSTEMS = [
    "Jetson AGX Orin", "Jetson Orin Nano", "Jetson Thor", "Ascend 310P card", "Atlas 200 module", "Rockchip board", "Core Ultra computer",
    "Snapdragon X computer", "DGX Spark", "T50-class module",
]  # fmt: skip


@pytest.mark.parametrize("system", EDGE_SYSTEMS)
def test_devices_load_without_overrides(system):
    assert shipped_catalog().has("systems", system)
    workload = {
        "kind": "serving", "architecture": "Llama-3.2-1B", "lengths": {"input": 100, "output": 20}, "precision": ["int8", "fp8", "bf16"],
        "disaggregation": "never",
    }  # fmt: skip
    found = estimate({"workload": workload, "system": system, "chips": 1, "load": {"concurrency": 1}}).answer
    assert found is not None and found["it_power_w"] > 0


@pytest.mark.parametrize("form", ["json", "csv", "md", "table"])
def test_every_format(form, tmp_path, capsys):
    path = tmp_path / "edge.json"
    path.write_text(json.dumps(EXAMPLE))
    assert main(["edge", str(path), "--format", form]) == 0
    assert "near edge" in capsys.readouterr().out


def test_exit_codes_and_places(tmp_path, capsys):
    path = tmp_path / "edge.json"
    path.write_text(json.dumps(changed(tasks__2__deadline="40 ms")))
    assert main(["edge", str(path)]) == INFEASIBLE
    assert "no assignment" in capsys.readouterr().out
    path.write_text(json.dumps(changed(fleets__0__system="Jetson")))
    assert main(["edge", str(path)]) == INVALID
    assert "fleets[0].system" in capsys.readouterr().err
    with pytest.raises(SpecError, match=r"tasks\[1\].workload.architecture"):
        edge(changed(tasks__1__workload__architecture="Qwem"))
    with pytest.raises(SpecError, match="known here"):
        edge(changed(tasks__0__fleet="robots"))
    with pytest.raises(SpecError, match=r"fleets\[0\].system"):
        edge(changed(fleets__0__system="DGX H100"))


def test_the_schema_accepts_the_example():
    Draft202012Validator(edge_schema()).validate(EXAMPLE)
