"""Hardware FLOP utilisation of jobs: beside MFU wherever a plan, `layouts` or `estimate` state it."""

from __future__ import annotations

import json
import math

import pytest

import planner
from catalog.lookup import shipped_catalog
from models.transformer.attention import forward_flops_per_token
from planner.estimate.answer import estimate
from planner.plan import Plan
from planner.report.report import render
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger
from planner.verify.plan import verify_plan

SEQUENCE = 131072
CHIP = "H100 SXM5 80GB"
NO_OFFLOAD = {"systems/DGX H100/host_bytes": {"value": "1 MB", "note": "no room in the host"}}


def spec(**changes) -> dict:
    """Sequences so long that their activations do not fit without recompute."""
    job = {
        "name": "tune",
        "kind": "training",
        "architecture": "Llama-3.1-8B",
        "tokens": "20B",
        "deadline": "60 d",
        "sequence_tokens": SEQUENCE,
    }
    return {
        "name": "long", "workloads": [job], "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
        "offers": [{"system": "DGX H100", "how": "buy"}], "solver": {"gap": 1e-4}, "overrides": NO_OFFLOAD, **changes,
    }  # fmt: skip


@pytest.fixture(scope="module")
def plan() -> Plan:
    return planner.solve(spec(), threads=1)


def test_hfu_counts_the_layers_forward_again_under_full_recompute(plan):
    """Both from the plan's own rate: tokens/s of the steps x FLOPs per token over the peak of the chips."""
    point = plan["workloads"][0]["points"][0]
    layout = point["pools"][0]["layout"]
    assert layout["recompute"] == 2
    catalog = shipped_catalog()
    shape = shape_of(catalog.get("architectures", "Llama-3.1-8B"), Ledger(catalog))
    forward = float(forward_flops_per_token(shape, SEQUENCE))
    layers = forward - 2 * shape.hidden * shape.vocab
    chips = math.prod(layout[name] for name in ("tp", "pp", "dp", "cp"))
    per_flop = point["capacity"] / point["goodput"] / (chips * catalog.get("chips", CHIP).value("bf16_flop_per_s"))
    assert point["mfu"] == pytest.approx(3 * forward * per_flop)
    assert point["hfu"] == pytest.approx((3 * forward + layers) * per_flop)


def test_the_job_has_the_mean_of_its_points(plan):
    job = plan["workloads"][0]
    assert job["hfu"] == pytest.approx(job["points"][0]["hfu"]) and job["hfu"] > job["mfu"]
    assert f"{job['mfu']:.1%}, HFU {job['hfu']:.1%}" in render(plan, "table")


def test_without_recompute_both_are_the_same_and_serving_has_none(small_plan):
    jobs, served = ([w for w in small_plan["workloads"] if w["kind"] == kind] for kind in ("training", "serving"))
    assert jobs and served
    assert all(p["hfu"] == p["mfu"] for job in jobs for p in job["points"] if p["pools"][0]["layout"]["recompute"] == 0)
    assert not any("hfu" in row for w in served for row in (w, *w["points"]))


@pytest.mark.parametrize("where", ["point", "workload"])
def test_verify_computes_it_again(plan, where):
    document = json.loads(plan.to_json())
    row = document["workloads"][0]
    (row if where == "workload" else row["points"][0])["hfu"] *= 1.01
    assert any(f.path.endswith("hfu") for f in verify_plan(Plan(document)))


def test_a_power_cap_lowers_both_alike(plan):
    capped = planner.solve(
        spec(
            sites=[{"region": "us-virginia", "systems": ["DGX H100"], "power_caps": [0.6]}],
            objective={"minimise": "carbon"},
        ),
        threads=1,
    )
    points = [p for p in capped["workloads"][0]["points"] if p.get("power_cap")]
    assert points and verify_plan(capped) == []
    free = plan["workloads"][0]["points"][0]
    assert all(
        p["hfu"] / p["mfu"] == pytest.approx(free["hfu"] / free["mfu"]) and p["hfu"] < free["hfu"] for p in points
    )


def test_a_plan_of_an_earlier_version_says_neither(plan):
    document = json.loads(plan.to_json())
    row = document["workloads"][0]
    for place in (row, *row["points"]):
        del place["hfu"]
    assert verify_plan(Plan(document)) == []
    row["hfu"] = 0.25
    assert verify_plan(Plan(document)) != []


def test_estimate_states_both():
    found = estimate(
        {"workload": spec()["workloads"][0], "system": "DGX H100", "chips": 8, "overrides": NO_OFFLOAD}
    ).answer
    assert found["layout"]["recompute"] and found["hfu"] > found["mfu"] > 0
