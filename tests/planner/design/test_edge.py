"""`flopwatt edge`: the program equals enumeration, the rows of the answer add up, and what is refused."""

from __future__ import annotations

import copy
import itertools
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from catalog.lookup import shipped_catalog
from planner.cli.main import main
from planner.design.edge.answer import edge
from planner.design.edge.options import find_options
from planner.design.edge.program import DeviceLimits, EdgeData, TierLimits, solve_edge, solve_most
from planner.design.edge.table import edge_data
from planner.errors import LimitReached, SpecError
from planner.estimate.answer import estimate
from planner.exit_codes import INFEASIBLE, INVALID, LIMIT
from planner.resolve.ledger import Ledger
from planner.spec.document import edited
from planner.spec.schema import edge_schema
from planner.spec.stack.edge import EdgeSpec
from tests.conftest import few_of
from tests.planner.limited import after

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


@settings(max_examples=few_of(10), deadline=None)
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
    tired = changed(fleets__1__battery="1 Wh", tasks__2__tiers=["near edge", "centre"], tasks__2__deadline="9 s")
    assert "avoid" not in edge(tired).document["left_out"], "what runs elsewhere draws nothing on the device"
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


# -- tasks without a place ---------------------------------------------------------------------------------------------


def most_planned(data: EdgeData) -> tuple[int, float]:
    """Most tasks that can run together, and the least cost of so many, over all sets of tasks that are left out."""
    tasks = data.able.shape[0]
    for count in range(tasks + 1):
        costs = []
        for out in itertools.combinations(range(tasks), count):
            kept = [t for t in range(tasks) if t not in out]
            found = solve_edge(data, out=out)
            if found is not None:
                assert [t for t, tier in enumerate(found.tier) if tier >= 0] == kept
                costs.append(found.cost)
        if costs:
            return tasks - count, min(costs)
    raise AssertionError


@pytest.mark.parametrize("first", range(0, 60, 20))
def test_as_many_tasks_as_can_be_are_planned_at_least_cost(first):
    partly = 0
    for seed in range(first, first + 20):
        data = drawn_data(seed)
        data = replace(data, busy=data.busy * 2, able=data.able & (np.arange(data.able.shape[1]) != 1))
        count, cost = most_planned(data)
        found = solve_most(data)
        assert len(found.tier) - len(found.out) == count, seed
        assert found.cost == pytest.approx(cost), seed
        partly += 0 < count < len(found.tier)
    assert partly > 2


def question(**task) -> dict:
    """A fleet of one-chip modules with one task, which a tier near it may carry too."""
    lengths = {"input": 300, "output": 8}
    workload = {"kind": "serving", "architecture": "Llama-3.2-1B", "lengths": lengths, "precision": ["int8"]}
    first = {
        "name": "see", "fleet": "robots", "requests_per_s": 0.5, "deadline": "2 s", "upload": "150 kB", "availability": 0.9999, "workload": workload,
    }  # fmt: skip
    return {
        "electricity": "0.1 USD/kWh",
        "fleets": [{"name": "robots", "count": 100, "system": "Atlas 200 module", "power": "60 W", "uplink": "6 MB/s"}],
        "tiers": [
            {"name": "near", "system": "Atlas 300I Pro card", "price": "3000 USD", "places": 4, "most": 2, "rtt": "10 ms", "availability": 0.9995}
        ],
        "tasks": [first | task],
    }  # fmt: skip


def two_tasks(**second) -> dict:
    document = question()
    document["tasks"].append({**copy.deepcopy(document["tasks"][0]), "name": "hear", **second})
    return document


def only(document: dict, name: str) -> dict:
    return next(task for task in edge(document).document["tasks"] if task["name"] == name)


def test_a_rate_beyond_the_device_is_the_reason_where_it_is_the_only_task():
    served = only(question(), "see")
    busy_s = busy_of(question())
    rate = round(0.9 / busy_s, 3)  # 90 % of the time, 70 % may be used
    task = only(question(requests_per_s=rate), "see")
    assert served["tier"] == "device" and task["tier"] is None
    why = {row["tier"]: row["why_not"] for row in task["tiers"]}
    assert why["device"].startswith(f"{rate:.4g} requests/s x ") and "of which 70.0%" in why["device"]
    assert "99.950%" in why["near"]


def busy_of(document: dict) -> float:
    options = find_options(EdgeSpec.model_validate(document), document, ())
    return options.of(0, 0).busy_s


def test_every_repair_gives_the_task_a_place_and_is_the_least_of_its_kind():
    document = question(requests_per_s=round(0.9 / busy_of(question()), 3))
    found = only(document, "see")["repairs"]
    paths = {change["path"] for repair in found for change in repair["changes"]}
    assert {"tasks[0].requests_per_s", "tasks[0].availability", "fleets[0].count"} <= paths
    for repair in found:
        edits = tuple((change["path"], change["to"]) for change in repair["changes"])
        answer = edge(edited(document, edits)).document
        assert answer["status"] == "optimal", repair
        assert answer["cost_per_year"] == pytest.approx(repair["cost_per_year"])
    lower = next(change["to"] for repair in found for change in repair["changes"] if change["path"] == "tasks[0].requests_per_s" and len(repair["changes"]) == 1)  # fmt: skip
    assert lower * busy_of(question()) == pytest.approx(0.7, rel=0.01)


def test_a_deadline_that_nothing_keeps_is_repaired_by_a_later_one():
    late = only(question(deadline="100 ms"), "see")
    taken = next(row["why_not"] for row in late["tiers"] if row["tier"] == "device")
    assert "0.1 s is the deadline" in taken
    later = [r for r in late["repairs"] if [c["path"] for c in r["changes"]] == ["tasks[0].deadline"]]
    assert later and float(later[0]["changes"][0]["to"].split()[0]) / 1000 == pytest.approx(float(taken.split()[1]), rel=0.01)  # fmt: skip


def test_changes_of_several_kinds_where_none_alone_is_enough():
    document = question(requests_per_s=round(0.9 / busy_of(question()), 3), deadline="100 ms", tiers=["device"])
    del document["tiers"]
    [repair] = only(document, "see")["repairs"]
    assert {change["path"] for change in repair["changes"]} == {"tasks[0].requests_per_s", "tasks[0].deadline"}
    edits = tuple((change["path"], change["to"]) for change in repair["changes"])
    assert edge(edited(document, edits)).document["status"] == "optimal"
    for path, _ in edits:
        fewer = tuple((other, to) for other, to in edits if other != path)
        assert edge(edited(document, fewer)).document["status"] == "infeasible"


def test_one_impossible_task_leaves_the_others_planned():
    alone = edge(question()).document
    answer = edge(two_tasks(deadline="10 ms")).document
    see, hear = answer["tasks"]
    assert answer["status"] == "infeasible" and answer["left_out"] == ["hear"]
    assert see["tier"] == "device" and hear["tier"] is None
    assert answer["cost_per_year"] == pytest.approx(alone["cost_per_year"])
    assert answer["fleets"][0]["on_device"] == ["see"] and "1 of 2 tasks have no place" in answer["words"]
    assert "10 ms" not in see["tiers"][0]["why_not"] and "0.01 s is the deadline" in hear["tiers"][0]["why_not"]


def test_tasks_that_only_together_find_no_place_say_so_of_each_other():
    rate = round(0.45 / busy_of(question()), 3)  # twice 45 % of the time, 70 % may be used
    document = two_tasks(requests_per_s=rate)
    document["tasks"][0]["requests_per_s"] = rate
    answer = edge(document).document
    [left] = answer["left_out"]
    other = "see" if left == "hear" else "hear"
    row = next(task for task in answer["tasks"] if task["name"] == left)["tiers"][0]
    assert row["why_not"].startswith(f'leaves no room for "{other}": together they keep the device busy')
    assert next(task for task in answer["tasks"] if task["name"] == other)["tier"] == "device"


def test_a_tier_with_too_few_places_says_how_many_systems_are_taken():
    document = question(availability=0.9, requests_per_s=40.0, upload="1 kB", tiers=["near"])
    row = next(row for row in only(document, "see")["tiers"] if row["tier"] == "near")
    found = re.fullmatch(r"takes (\d+) systems in each place, 2 are allowed", row["why_not"])
    assert found
    repairs = only(document, "see")["repairs"]
    [more] = [r["changes"][0]["to"] for r in repairs if r["changes"][0]["path"] == "tiers[0].most"]
    assert more == int(found[1])


def test_at_a_limit_the_answer_says_what_was_not_looked_at(tmp_path, capsys):
    document = two_tasks(deadline="10 ms")
    found = edge(document, limits=after(8)).document
    assert found["ended_by"] == "time" and found["not_tried"] > 0 and "--time-limit" in found["not_tried_words"]
    with pytest.raises(LimitReached, match="time limit of 7 s"):
        edge(document, limits=after(3))
    path = tmp_path / "edge.json"
    path.write_text(json.dumps(document))
    assert main(["edge", str(path), "--time-limit", "1 ns"]) == LIMIT
    assert "nothing was found: the time limit" in capsys.readouterr().err
    assert main(["edge", str(path), "--memory", "1 MB"]) == LIMIT
