"""The latency of a network's switches enters the step of serving and of training, and a plan knows it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import planner
from models.serving import examples
from models.serving.decode import ServingLayouts, communication_s, expert_exchange_s
from models.training.constants import Recipe
from models.training.examples import TRAINING
from models.training.exchange import expert_exchange_s as training_exchange_s
from models.training.layouts import Layouts
from models.training.run import Run
from models.training.step import training_step
from planner.estimate.answer import estimate
from planner.problem.fabrics import plant_of, scaleout_of, whole_network
from planner.resolve.resolver import resolve_document
from planner.spec.document import edited
from planner.verify.plan import verify_plan

MOE, CHIP, SERVING = examples.MOE, examples.CHIP, examples.SERVING
SLOW = replace(CHIP, scaleout_latency_s=1e-4)
HOP = "fabrics/InfiniBand NDR/hop_latency_s"
SPEC = {
    "name": "two jobs over a network",
    "horizon": {"start": "2027-01-01", "years": 1},
    "workloads": [
        {
            "name": "chat", "kind": "serving", "architecture": "DeepSeek-V3", "demand": {"requests_per_s": 60}, "precision": ["fp8"],
            "lengths": {"input": 1000, "output": 500}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"tpot": {"mean": "60 ms"}},
        },
        {"name": "train", "kind": "training", "architecture": "Qwen3-30B-A3B", "tokens": "300B", "deadline": "60 d"},
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["rail-optimised"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "300000 USD"}],
}  # fmt: skip


def with_hop(text: str) -> dict:
    return copy.deepcopy(SPEC) | {"overrides": {HOP: {"value": text, "note": "trial"}}}


def test_a_message_pays_once_for_its_way_out_of_the_domain():
    wide, near = ServingLayouts(1, 1, 16, 16), ServingLayouts(1, 1, 8, 8)
    extra = [
        float(
            expert_exchange_s(MOE, SLOW, layout, "bf16", SERVING, 1600)
            - expert_exchange_s(MOE, CHIP, layout, "bf16", SERVING, 1600)
        )
        for layout in (wide, near)
    ]
    assert extra == pytest.approx([2 * MOE.moe_layers * 1e-4, 0.0], rel=1e-6)
    staged = ServingLayouts(8, 4, 1, 1)
    slower = communication_s(examples.DENSE, SLOW, staged, 100, SERVING) - communication_s(
        examples.DENSE, CHIP, staged, 100, SERVING
    )
    assert float(slower) == pytest.approx(3 * 1e-4, rel=1e-6)


def test_collectives_of_training_pay_for_the_depth_of_a_tree_over_domains():
    def run(chip, **sizes):
        return Run.of(MOE, chip, Layouts.of(**sizes), 4096, "bf16", TRAINING, "hopper", Recipe())

    data = run(SLOW, dp=64)
    assert data.start_s(np.array([64.0]), 1.0) - TRAINING.collective_start_s == pytest.approx(3 * 1e-4)  # 8 domains
    assert data.start_s(np.array([8.0]), 1.0) == pytest.approx(TRAINING.collective_start_s)
    for ep, ways in ((8, 0), (16, 2)):
        slow, fast = (training_exchange_s(run(chip, dp=16, ep=ep)) for chip in (SLOW, CHIP))
        assert slow - fast == pytest.approx(ways * 1e-4, abs=1e-12)
    steps = [
        training_step(
            MOE, chip, Layouts.of(dp=8, pp=4, micro_batch=1), global_batch_sequences=64, sequence_tokens=4096, precision="bf16",
            constants=TRAINING, family="hopper",
        ).step_s[0]
        for chip in (CHIP, SLOW)
    ]  # fmt: skip
    assert steps[1] > steps[0]


def test_the_way_is_that_of_the_network_as_built():
    problem = resolve_document(with_hop("10 us"))
    (site,), system = problem.sites, problem.systems["DGX H100"]
    for design in ("rail-optimised", "fat-tree", "torus"):
        plant = plant_of(design, 64, system, site.own_network)
        hops = float(whole_network(plant, 64, site.own_network).mean_hops)
        assert scaleout_of(plant).latency_s == pytest.approx((hops - 1) * 10e-6)
    assert scaleout_of(None).latency_s == 0.0


def test_a_slow_hop_costs_and_the_plan_holds():
    divisible = (("solver.replicas", "divisible"),)
    plans = [planner.solve(edited(with_hop(text), divisible)) for text in ("10 ns", "100 us")]
    assert [verify_plan(plan) for plan in plans] == [[], []]
    fast, slow = (plan.objective["value"] for plan in plans)
    assert slow > fast * 1.001


def test_an_estimate_knows_the_hop_too():
    case = {
        "workload": {"kind": "serving", "architecture": "DeepSeek-V3", "lengths": {"input": 1000, "output": 500}, "precision": ["fp8"]},
        "system": "DGX H200", "chips": 32, "layout": {"dp": 16}, "load": {"concurrency": 64},
    }  # fmt: skip
    times = [
        estimate(case | {"overrides": {HOP: {"value": text, "note": "trial"}}}).answer["latency_s"]["tpot"]["mean"]
        for text in ("10 ns", "100 us")
    ]
    assert times[1] > times[0] + 2 * 58 * 50e-6
