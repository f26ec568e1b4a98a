"""The fabric as a decision: names, sizes and prices of networks, and which design a plan puts under which work."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

import planner
from catalog.lookup import shipped_catalog
from models.network.designs import KINDS, Design
from models.network.group_links import Plant, dimension_links, has_full_rate
from models.training.layouts import Layouts
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.layouts import layout_space, search_layouts
from planner.candidates.search import find_candidates
from planner.evaluate.interruptions import RunTerms
from planner.evaluate.layouts import TrainingSetup, carries, evaluate_layouts
from planner.evaluate.training import evaluate_layout
from planner.formulate.formulation import formulate
from planner.plan import parse_plan
from planner.problem.fabrics import (
    bands,
    carries_as_much,
    largest_of,
    plant_of,
    price_of,
    scaleout_bytes_per_s,
    uneven,
    whole_network,
)
from planner.problem.facts import NO_NETWORK, ScaleOut
from planner.resolve.context import ResolveContext
from planner.resolve.resolver import resolve_document
from planner.resolve.systems import network_facts, system_facts
from planner.spec.fabrics import DEFAULT_FABRICS, FABRIC_DESIGNS, fabric_name
from planner.spec.model import parse_spec

DENSE = {"architecture": "Qwen3-32B", "tokens": "600B", "deadline": "20 d"}
EXPERTS = {"architecture": "DeepSeek-V3", "tokens": "1560B", "deadline": "60 d"}  # 300,000 tokens/s


def spec(fabrics: list[str], job: dict = DENSE, **more) -> dict:
    return {
        "name": "fabrics",
        "workloads": [{"name": "run", "kind": "training", **job, "precision": ["bf16"]}],
        "sites": [{"region": "us-texas", "power": "4 MW", "topologies": fabrics}],
        "offers": [{"system": "DGX H100", "how": "buy"}],
        **more,
    }  # fmt: skip


@pytest.fixture(scope="module")
def parts():
    catalog = shipped_catalog()
    context = ResolveContext.of(parse_spec(spec(["fat-tree"])), catalog)
    network = network_facts(context, catalog.get("fabrics", "InfiniBand NDR"))
    systems = {n: system_facts(catalog.get("systems", n), context.ledger) for n in ("DGX H100", "GB200 NVL72")}
    return network, systems


@pytest.fixture(scope="module")
def problem():
    return resolve_document(spec(list(DEFAULT_FABRICS)))


# -- names ---------------------------------------------------------------------------------------------------------------


def test_names_are_those_of_the_closed_forms():
    assert FABRIC_DESIGNS == KINDS
    assert [Design.named(fabric_name(name)) for name in DEFAULT_FABRICS]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("fat-tree-1:1", "fat-tree"), ("fat-tree-2:1", "fat-tree:2"), ("rail-only:3/2", "rail-only:3/2"), ("fat-tree:1.5", "fat-tree:3/2"), ("rail-only:1", "rail-only")],
)  # fmt: skip
def test_one_spelling_of_each_design(written, meant):
    assert fabric_name(written) == meant
    assert Design.named(meant).taper == Design.named(fabric_name(meant)).taper


@pytest.mark.parametrize(
    "written",
    ["token ring", "torus:2", "fat-tree:", "fat-tree:0.5", "fat-tree:1/0", "fat-tree:99", "fat-tree:2\n", "", 3, None],
)
def test_other_names_are_refused(written):
    with pytest.raises(planner.SpecError, match=r"sites\[0\].topologies\[0\]"):
        planner.check_spec(spec([written]))


# -- sizes and prices ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["DGX H100", "GB200 NVL72"])
@pytest.mark.parametrize("design", [*FABRIC_DESIGNS[1:], "fat-tree:3/2", "rail-optimised:3", "rail-only:2"])
def test_no_network_of_a_band_is_charged_more_than_it_costs(parts, design, system):
    network, facts = parts[0], parts[1][system]
    found = list(bands(design, facts, network, 700))
    previous = 1.0
    for band in found:
        assert previous < band.largest == band.plant.systems
        for systems in {int(previous) + 1, int(previous * band.largest) ** 0.5 // 1 + 1, band.largest}:
            if previous < systems <= min(band.largest, 700):
                net = whole_network(band.plant, systems, network)
                assert net.holds and price_of(net, network) >= band.price * systems * (1 - 1e-12)
        previous = band.largest
    if found and design != "torus":
        assert previous == largest_of(design, facts, network) or previous >= 700


@pytest.mark.parametrize("design", ["rail-only", "fat-tree:2", "torus", "dragonfly"])
def test_more_reach_never_costs_more(parts, design):
    network, facts = parts[0], parts[1]["GB200 NVL72"]
    least = math.inf
    for reach in (2, 5, 20, 21, 40, 64, 65, 500, math.inf):
        prices = [band.price for band in bands(design, facts, network, reach)]
        assert min(prices, default=math.inf) <= least
        least = min(prices, default=least)


def test_a_network_that_costs_no_less_and_carries_no_more_is_dropped(problem):
    kept = build_fleet_options(problem)[0]
    names = {(option.fabric, option.size) for option in kept}
    assert ("rail-only", 64) in names and ("fat-tree:2", 336) in names
    assert not any(
        fabric in ("fat-tree", "rail-optimised") and size <= 256 for fabric, size in names if size
    )  # rails cost less and carry as much
    for option in kept:
        beaten = [
            other.name for other in kept
            if other is not option and other.fabric_capital <= option.fabric_capital and other.idle_it_w <= option.idle_it_w
            and other.largest >= option.largest and carries_as_much(other.plant, option.plant)
        ]  # fmt: skip
        assert beaten == []


def test_copper_within_a_rack_is_cheaper_and_draws_nothing():
    figures = {
        "copper_link_price": {"value": "300 USD", "note": "test"},
        "rack_systems": {"value": "4", "note": "test"},
    }
    copper = spec(["fat-tree"], catalog={"fabrics": [{"name": "InfiniBand NDR", "figures": figures}]})
    row, optical = (planner.solve(document)["fabrics"][0] for document in (copper, spec(["fat-tree"])))
    assert row["copper_links"] == row["ports"] and optical["copper_links"] == 0
    assert row["price"] == pytest.approx(optical["price"] - row["ports"] * (1325 - 300))
    assert row["power_w"] < optical["power_w"]


# -- what groups get -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("system", ["DGX H100", "GB200 NVL72"])
@pytest.mark.parametrize("design", ["rail-only", "rail-optimised", "fat-tree"])
def test_without_taper_every_layout_is_as_fast_as_at_the_rate_of_the_nics(problem, parts, design, system):
    job, facts = problem.training[0], parts[1][system]
    if largest_of(design, facts, parts[0]) < 16:
        pytest.skip(f"{design} does not join so many {system}")
    plant = plant_of(design, 16, facts, parts[0])
    assert has_full_rate(plant) and uneven(plant) is None
    layouts = layout_space(job, 16 * facts.chips, facts)
    assert len(layouts) > 100
    links = dimension_links(plant, layouts.tp, layouts.cp, layouts.dp, layouts.pp, layouts.ep)
    for name, found in links.items():
        assert np.allclose(found.bytes_per_s, facts.nic_bytes_per_s, rtol=1e-12), name
    one, other = (
        evaluate_layouts(
            TrainingSetup(job, facts, "bf16", problem.constants, ScaleOut(facts.nic_bytes_per_s), p), layouts
        )
        for p in (None, plant)
    )
    assert np.allclose(one.step_s, other.step_s, rtol=1e-12)


def test_less_bandwidth_between_leaves_is_never_faster(problem, parts):
    job, facts = problem.training[0], parts[1]["DGX H100"]
    layouts = layout_space(job, 64 * facts.chips, facts)
    plants = [plant_of(f"fat-tree:{taper}", 64, facts, parts[0]) for taper in (1, 2, 4, 8)]
    setups = [
        TrainingSetup(job, facts, "bf16", problem.constants, ScaleOut(facts.nic_bytes_per_s), plant) for plant in plants
    ]
    steps = [evaluate_layouts(setup, layouts).step_s for setup in setups]
    for wider, narrower in pairwise(steps):
        assert np.all(narrower >= wider * (1 - 1e-12))
    assert steps[-1].max() > 1.01 * steps[0].max()


def test_a_layout_that_the_network_does_not_carry_is_not_used(problem, parts):
    job, facts = problem.training[0], parts[1]["DGX H100"]
    alone = Plant(Design("scale-up"), 1, 8, 8, 50e9, 64, 450e9, 0.0, 0.0)
    layouts = layout_space(job, 16, facts)
    setup = TrainingSetup(job, facts, "bf16", problem.constants, NO_NETWORK, alone)
    assert not carries(setup, layouts).any()  # something of every layout on two systems leaves them
    found = search_layouts(setup, layouts)
    assert (found.carried, found.fitting, len(found)) == (0, 0, 0) and found.legal == len(layouts)
    within = Layouts.of(tp=8, zero=1)
    assert carries(setup, within).all()
    with pytest.raises(ValueError, match="does not carry"):
        evaluate_layout(setup, Layouts.of(tp=8, dp=2).row(0), RunTerms(), "known")


def test_replicas_over_several_systems_get_what_an_exchange_gets(parts):
    network, facts = parts[0], parts[1]["DGX H100"]
    rates = {
        name: scaleout_bytes_per_s(plant_of(name, 64, facts, network)) for name in ("fat-tree", "fat-tree:8", "torus")
    }
    assert rates["fat-tree"] == pytest.approx(50e9)
    assert 0 < rates["torus"] < rates["fat-tree:8"] < rates["fat-tree"]
    assert scaleout_bytes_per_s(None) == 0.0


# -- plans ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("design", [*FABRIC_DESIGNS[1:], "fat-tree:3/2", "rail-optimised:3", "rail-only:2"])
def test_each_design_alone_gives_a_plan_that_holds(design):
    plan = planner.solve(spec([design]))
    assert plan.has_answer and planner.verify_plan(plan) == []
    (row,) = plan["fabrics"]
    assert (row["design"], row["systems"]) == (design, plan["fleet"][0]["count"])
    assert row["systems"] <= row["size"] and row["price"] >= row["charged"] * (1 - 1e-9) > 0
    (point,) = plan["workloads"][0]["points"]
    placement = point["placement"]
    if placement is not None:  # None where the systems at work fill no torus evenly
        usual = placement["in_number_order_s"]
        assert placement["busiest_link_s"] <= (placement["worst_s"] if usual is None else usual) <= placement["worst_s"]
        assert placement["tried"] >= 1


def test_a_single_system_needs_no_network():
    small = {"architecture": "Qwen3-8B", "tokens": "5B", "deadline": "20 d"}
    plan = planner.solve(spec(list(DEFAULT_FABRICS), small))
    assert [row["topology"] for row in plan["fleet"]] == ["scale-up"] and plan["fabrics"] == []
    assert planner.verify_plan(plan) == []


def test_what_is_bought_in_two_ways_shares_one_network():
    small = {"fabrics/InfiniBand NDR/radix": {"value": 8, "note": "sixteen systems in three tiers"}}
    two = [
        {"system": "DGX H100", "how": "buy", "supply": 12},
        {"system": "DGX H100", "how": "buy", "supply": 12, "price": "290000 USD"},
    ]
    chat = {
        "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 3000},
        "lengths": {"input": 1000, "output": 300, "input_cv": 1, "output_cv": 1}, "origins": [{"region": "us-texas", "share": 1.0}],
        "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "always",
    }  # fmt: skip
    problem = resolve_document(spec(["fat-tree"], overrides=small, offers=two) | {"workloads": [chat]})
    data = formulate(problem, find_candidates(problem)).data
    assert data.supply_limit[:2].tolist() == [12, 12] and data.supply_limit[2:].tolist() == [
        4,
        16,
    ]  # two tiers, and three
    for limit in (2, 3):
        held = data.supply_member[data.supply_member[:, 0] == limit, 1]
        assert len(set(data.holding_option[held])) == 2 and len(set(data.option_fabric[data.holding_option[held]])) == 1


def test_gradients_alone_do_with_half_the_links():
    plan = planner.solve(spec(["fat-tree", "fat-tree-2:1"]))
    assert [row["design"] for row in plan["fabrics"]] == ["fat-tree:2"]
    full = planner.solve(spec(["fat-tree"]))
    assert plan["costs"]["fabric"] < full["costs"]["fabric"] and plan.objective["value"] < full.objective["value"]


def test_experts_over_many_systems_feel_half_the_links(parts):
    """Less of the exchange shows where DualPipe hides it behind other micro-batches."""
    problem, facts = resolve_document(spec(["fat-tree"], EXPERTS)), parts[1]["DGX H100"]
    layouts = Layouts.of(tp=1, pp=2, dp=256, ep=256, micro_batch=1, schedule=[0, 3])
    full, half = (
        evaluate_layouts(
            TrainingSetup(
                problem.training[0], facts, "bf16", problem.constants, ScaleOut(facts.nic_bytes_per_s), plant
            ),
            layouts,
        )
        for plant in (plant_of(name, 64, facts, parts[0]) for name in ("fat-tree", "fat-tree:2"))
    )
    assert (half.step_s > 1.1 * full.step_s).all()
    for step in (full, half):
        plain, dual = step.breakdown["ep"]
        assert dual < 0.7 * plain


def test_the_better_of_two_trees_is_chosen():
    both, full, half = (
        planner.solve(spec(names, EXPERTS)) for names in (["fat-tree", "fat-tree:2"], ["fat-tree"], ["fat-tree:2"])
    )
    best = min(full.objective["value"], half.objective["value"])
    assert both.objective["value"] == pytest.approx(best, rel=1e-3)
    assert abs(full.objective["value"] - half.objective["value"]) > 0.01 * best
    assert planner.verify_plan(both) == []


def test_every_number_of_a_network_is_checked():
    plan = planner.solve(spec(["fat-tree:2"]))
    for name, value in plan["fabrics"][0].items():
        if isinstance(value, (int, float)):
            document = parse_plan(plan.to_json()).document
            document["fabrics"][0][name] = value * (1 + 1e-9) if isinstance(value, float) and value else value + 1
            assert planner.verify_plan(planner.Plan(document)), name


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda plan: plan["fabrics"].clear(), "fabrics"),
        (lambda plan: plan["fabrics"].append(dict(plan["fabrics"][0])), "fabrics"),
        (lambda plan: plan["fabrics"][0].update(switches=plan["fabrics"][0]["switches"] + 1), "switches"),
        (lambda plan: plan["fabrics"][0].update(charged=plan["fabrics"][0]["charged"] * 1.001), "charged"),
        (lambda plan: plan["fleet"][0].update(network_size=512), ""),
        (lambda plan: plan["workloads"][0]["points"][0]["placement"].update(busiest_link_s=0.0), "placement"),
        (lambda plan: plan["workloads"][0]["points"][0].update(placement=None), "placement"),
    ],
)  # fmt: skip
def test_a_wrong_network_is_found(change, word):
    plan = planner.solve(spec(["rail-only", "fat-tree:2"]))
    document = parse_plan(plan.to_json()).document
    change(document)
    found = planner.verify_plan(planner.Plan(document))
    assert found and any(word in str(finding) for finding in found)
