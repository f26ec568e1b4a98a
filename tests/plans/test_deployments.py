"""Deployments of plans: whole replicas whose weights fit the chips that they hold, in every slot, by the tests' own arithmetic."""

from __future__ import annotations

import copy
import json
import math
from pathlib import Path
from typing import Any

import pytest

import planner
from planner.errors import SpecError
from planner.plan import Plan
from planner.verify.plan import verify_plan

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "catalog" / "data"
BYTES = {"fp4": 0.5, "fp8": 1.0, "int8": 1.0, "bf16": 2.0, "fp16": 2.0}
UTILISATION = 0.9  # share of a chip's memory that an engine may fill
ARCHITECTURES = (
    "Kimi-K2-Instruct", "DeepSeek-V3", "Qwen3-235B-A22B", "gpt-oss-120b", "Meta-Llama-3.1-405B", "Meta-Llama-3.1-70B",
    "Mixtral-8x22B-v0.1", "Qwen3-32B", "GLM-4.5-Air", "Meta-Llama-3.1-8B",
)  # fmt: skip


def records(kind: str) -> dict[str, dict[str, Any]]:
    rows = json.loads((DATA / f"{kind}.json").read_text(encoding="utf-8"))[kind]
    return {name: row for row in rows for name in (row["name"], *row.get("aliases", ()))}


def question(architecture: str, requests_per_s: float, **more: Any) -> dict[str, Any]:
    """State one architecture on DGX H100 in Virginia, 1,000 tokens in and 300 out."""
    workload = {
        "name": "chat",
        "kind": "serving",
        "architecture": architecture,
        "demand": {"requests_per_s": requests_per_s},
        "lengths": {"input": 1000, "output": 300},
        "origins": [{"region": "us-virginia", "share": 1}],
        "slo": {"ttft": {"p95": "5 s"}, "tpot": {"mean": "100 ms"}},
        "precision": ["fp8"],
        **more,
    }
    return {
        "name": architecture,
        "workloads": [workload],
        "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
        "solver": {"gap": 0.01, "time_limit": "20 s", "replicas": "whole"},
    }


def number(figure: dict[str, Any]) -> float:
    """Read a figure of the catalog, or one of a spec such as "48 GB"."""
    value = figure["value"]
    return float(value.split()[0]) if isinstance(value, str) else float(value)


def assert_deployable(plan: Plan) -> None:
    """Compare, in every slot, weights with the memory of the chips that hold them, and residents with the systems held."""
    systems, chips, architectures = records("systems"), records("chips"), records("architectures")
    points = {point["id"]: (w, point) for w in plan["workloads"] for point in w["points"]}
    for kind, own in (("systems", systems), ("chips", chips), ("architectures", architectures)):
        for record in plan["spec"].get("catalog", {}).get(kind, ()):
            known = own.get(record["name"], {})
            own[record["name"]] = {**known, **record, "figures": {**known.get("figures", {}), **record["figures"]}}
    asked = {w["name"]: w for w in plan["spec"]["workloads"]}
    held: dict[tuple[str, str], float] = {}  # in all windows together
    for row in plan["fleet"]:
        held[row["site"], row["system"]] = held.get((row["site"], row["system"]), 0.0) + row["count"]
    for row in plan["schedule"]:
        taken: dict[tuple[str, str], float] = {}
        for name, workers in row.get("resident", {}).items():
            workload, point = points[name]
            runs = workload.get("architecture") or asked[workload["name"]]["architecture"]
            parameters = architectures[runs]["figures"]["total_parameters"]
            for pool, count in zip(point["pools"], workers, strict=True):
                assert count == int(count) >= 0
                if row["active"].get(name):
                    assert count >= pool["workers"]
                system = systems[pool["system"]]
                each = pool["systems_per_replica"] / pool["workers"]
                chip = chips[system["text"]["chip"]]["figures"]["hbm_bytes"]
                room = each * number(system["figures"]["chips"]) * number(chip) * 1e9 * UTILISATION
                assert number(parameters) * BYTES[pool["precision"]] <= room * (1 + 1e-9), (name, pool["role"])
                where = row["site"], pool["system"]
                taken[where] = taken.get(where, 0.0) + count * each
        for name, replicas in row["active"].items():
            if points[name][0]["kind"] == "training" or points[name][1]["pools"][0]["role"] == "api":
                continue
            for pool, count in zip(points[name][1]["pools"], row["resident"][name], strict=True):
                assert replicas * pool["workers"] <= count * (1 + 1e-9)
        assert all(systems_taken <= held[where] * (1 + 1e-9) for where, systems_taken in taken.items())


@pytest.mark.parametrize("requests_per_s", [0.02, 2.0, 200.0])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_thirty_workloads_hold_their_weights(architecture, requests_per_s):
    plan = planner.solve(question(architecture, requests_per_s))
    assert plan.has_answer
    assert_deployable(plan)
    assert sum(row["replicas"] for row in plan["deployments"]) >= 1


def test_a_trillion_parameters_need_two_nodes():
    """A terabyte of weights does not fit the 640 GB of one node, however little is asked of it."""
    plan = planner.solve(question("Kimi-K2-Instruct", 0.02))
    assert [(row["system"], row["count"]) for row in plan["fleet"]] == [("DGX H100", 2)]
    (row,) = plan["deployments"]
    assert row["replicas"] == 1 and math.isclose(sum(pool["systems"] for pool in row["pools"]), 2.0)


def test_verify_finds_residents_that_do_not_hold():
    plan = planner.solve(question("Meta-Llama-3.1-8B", 200.0))
    wrong = copy.deepcopy(dict(plan.document))
    row = next(row for row in wrong["schedule"] if row["resident"])
    name = next(iter(row["resident"]))
    for workers in ([0], [10**6], [1.5], [True], [], "x"):
        row["resident"][name] = workers
        assert verify_plan(Plan(wrong)), workers
    for table in ([], [{**plan["deployments"][0], "replicas": 10**3}]):
        assert verify_plan(Plan({**plan.document, "deployments": table}))


def test_whole_replicas_and_a_robust_plan_are_refused_together():
    document = {**question("Meta-Llama-3.1-8B", 2.0), "robust": {"confidence": 0.8}}
    with pytest.raises(SpecError, match=r"solver\.replicas"):
        planner.solve(document)
