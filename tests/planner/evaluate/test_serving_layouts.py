"""One set of rules for layouts that are stated, searched and verified, and the memory that an engine fills."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.lookup import Catalog
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import kv_bytes_per_chip, weight_bytes_per_chip
from models.transformer.architecture import Architecture
from planner.candidates.search import find_candidates
from planner.candidates.serving import serving_layouts
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.evaluate.serving import batch_grid
from planner.evaluate.serving_layouts import blocks, broken_rules, runnable
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger
from planner.resolve.resolver import resolve_document
from planner.spec.model import parse_spec
from planner.verify.points.serving import layout_on

MOE = Architecture(
    layers=58,
    hidden=1024,
    heads=128,
    kv_heads=8,
    head_dim=64,
    ffn=2048,
    vocab=1000,
    experts=256,
    topk=8,
    expert_ffn=512,
)
DENSE = Architecture(layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256)
CASE = {
    "workload": {
        "kind": "serving", "architecture": "DeepSeek-V3", "lengths": {"input": 2000, "output": 500}, "precision": ["fp8"],
    },
    "system": "DGX H200", "chips": 128, "load": "max",
}  # fmt: skip
DECODE = {"pools": {"decode": {"layout": {"dp": 16, "ep": 16}}}}


def of_chips(chips: int, domain: int | None = None) -> SimpleNamespace:
    return SimpleNamespace(name="any", chips=chips, scaleup_chips=domain or chips, host_chips=1)


def stages(layouts: ServingLayouts) -> set[int]:
    return set(np.asarray(layouts.stage_chips).tolist())


@pytest.mark.parametrize("arch", [MOE, DENSE])
@pytest.mark.parametrize("networked", [True, False])
@pytest.mark.parametrize("chips", [1, 4, 6, 8, 16, 72, 256])
def test_all_that_is_searched_can_be_run(arch, networked, chips):
    found = serving_layouts(arch, of_chips(chips), networked)
    assert len(found) and runnable(arch, of_chips(chips), found, networked).all()
    rows = list(zip(found.tp.tolist(), found.pp.tolist(), found.dp.tolist(), found.ep.tolist(), strict=True))
    assert len(set(rows)) == len(rows)


def test_experts_are_spread_as_large_deployments_do():
    nodes, rack = (serving_layouts(MOE, of_chips(chips), True) for chips in (8, 72))
    single = nodes.take(np.flatnonzero(nodes.pp == 1))
    assert {8, 16, 32, 64, 72, 96, 128, 144} <= stages(single)
    across = np.flatnonzero(single.tp > 8)
    assert set(single.tp[across].tolist()) == {16} and (single.dp[across] == 1).all()  # two nodes, and no more
    wide = np.flatnonzero((single.stage_chips > 8) & (single.tp <= 8))
    assert (single.tp[wide] == 1).all() and (single.ep[wide] == single.dp[wide]).all()
    one = rack.take(np.flatnonzero((rack.pp == 1) & (rack.tp == 1) & (rack.dp > 1)))
    assert {8, 16, 18, 32, 36, 64, 72, 144} <= stages(one)
    assert max(stages(serving_layouts(MOE, of_chips(72), False))) == 72  # no network, no second rack
    assert max(stages(serving_layouts(MOE, of_chips(8), False))) == 8
    assert max(stages(serving_layouts(DENSE, of_chips(72), True))) == 32  # heads


@given(
    chips=st.sampled_from([4, 8, 72]), tp=st.integers(1, 16), pp=st.integers(1, 4), dp=st.integers(1, 96),
    experts_over_all=st.booleans(), networked=st.booleans(),
)  # fmt: skip
def test_a_stated_layout_and_a_verified_one_obey_the_same_rules(chips, tp, pp, dp, experts_over_all, networked):
    layout = {"tp": tp, "pp": pp, "dp": dp, "ep": tp * dp if experts_over_all else 1}
    system = of_chips(chips)
    able = bool(runnable(MOE, system, ServingLayouts(**layout), networked)[0])
    words = [
        rule for rule, breaks in broken_rules(MOE, system, ServingLayouts(**layout), networked).items() if breaks[0]
    ]
    assert able == (not words)
    option = SimpleNamespace(system=system, fabric="any", scaleout_bytes_per_s=float(networked))
    workload = SimpleNamespace(architecture=MOE)
    if able:
        assert layout_on(option, {"layout": layout}, workload) == ServingLayouts(**layout)
    else:
        with pytest.raises(ValueError, match="does not run"):
            layout_on(option, {"layout": layout}, workload)


def test_a_layout_over_two_nodes_may_be_stated():
    found = estimate({**CASE, **DECODE})
    assert found.answer is not None, found.reason
    decode = found.answer["pools"][1]
    assert decode["layout"] == {"tp": 1, "pp": 1, "dp": 16, "ep": 16}


def test_a_refusal_names_every_rule_that_is_broken():
    case = copy.deepcopy(CASE) | {"layout": {"tp": 3, "dp": 200, "ep": 7}, "chips": 1024}
    with pytest.raises(SpecError) as error:
        estimate(case)
    (problem,) = error.value.problems
    assert problem.path == "layout"
    for words in ("tp must divide the 128 attention heads", "ep must be tp x dp", "divide it where tp x dp is larger"):
        assert words in problem.message
    with pytest.raises(SpecError, match="need a network"):
        estimate({**CASE, **DECODE, "chips": 8, "topology": "scale-up"} | {"pools": None, "layout": {"dp": 16}})


def test_batches_reach_what_many_ranks_hold():
    for ranks in (1, 4, 8, 72, 144):
        grid = batch_grid(ranks)
        assert (np.diff(grid) > 0).all() and (grid == np.rint(grid)).all() and grid[0] >= 1
        assert grid[-1] / ranks >= 2048 and grid[0] <= max(ranks / 4, 1)
    assert batch_grid(np.array([1, 72])).shape == (2, batch_grid(1).size)


def test_decode_over_a_rack_runs_far_more_than_ninety_requests_per_rank():
    case = copy.deepcopy(CASE) | {"system": "GB200 NVL72", "chips": 144, "topology": "fat-tree", "pools": "best"}
    case["workload"]["lengths"]["output"] = 2000
    found = estimate(case)
    assert found.answer is not None, found.reason
    decode = found.answer["pools"][1]
    assert decode["layout"]["ep"] >= 32
    assert found.answer["batch"] / decode["layout"]["dp"] > 250


@pytest.mark.parametrize("chips", [8, 72, 6])
def test_blocks_are_halves_of_the_whole_and_powers_of_two(chips):
    assert blocks(72) == [1, 2, 4, 8, 9, 16, 18, 32, 36, 64, 72] and blocks(8) == [1, 2, 4, 8]
    assert blocks(chips)[-1] == chips


# -- memory ------------------------------------------------------------------------------------------------------------

TIGHT = {
    "workload": {
        "kind": "serving", "architecture": "Meta-Llama-3.1-70B", "lengths": {"input": 1000, "output": 200}, "precision": ["fp8"],
    },
    "system": "DGX H100", "chips": 8, "layout": {"tp": 1}, "load": "max",
}  # fmt: skip


def test_weights_of_70_gb_fill_85_gb_only_where_enough_may_be_filled():
    """70.6e9 bytes of weights and 2.8e9 of reserve: more than 0.85 of 85.02e9, less than 0.9 of it."""
    stated = copy.deepcopy(TIGHT)
    stated["workload"]["memory_utilisation"] = 0.85
    found = estimate(stated)
    assert found.answer is None and "none has room" in found.reason and "GB are missing" in found.reason
    assert found.lack["lacks_bytes"] == pytest.approx(
        found.lack["weights_bytes"] + found.lack["reserve_bytes"] + found.lack["cache_bytes"] - 0.85 * 85.02e9
    )
    pools = copy.deepcopy(stated) | {"chips": 16, "layout": None, "pools": {"prefill": {"layout": {"tp": 1}}}}
    assert estimate(pools).answer is None
    more = estimate(TIGHT)
    assert more.answer is not None and more.answer["memory_bytes"] <= 0.9 * 85.02e9


def test_the_share_is_an_assumption_unless_it_is_stated():
    spare = copy.deepcopy(TIGHT) | {"layout": {"tp": 2}}
    paths = {row["path"]: row["value"] for row in estimate(spare).answer["assumptions"]}
    assert paths["workload.memory_utilisation"] == "0.9 1"
    spare["workload"]["memory_utilisation"] = 0.9
    assert "workload.memory_utilisation" not in {row["path"] for row in estimate(spare).answer["assumptions"]}


@pytest.mark.parametrize("share", [0.6, 0.9])
def test_no_point_of_a_plan_fills_more_than_its_share(share):
    spec = {
        "name": "share", "horizon": {"years": 1},
        "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "Qwen3-30B-A3B", "demand": {"requests_per_s": 300},
            "lengths": {"input": 2000, "output": 300}, "origins": [{"region": "us-virginia", "share": 1}],
            "memory_utilisation": share,
        }],
        "sites": [{"region": "us-virginia", "systems": ["DGX H100"], "topologies": ["rail-optimised"]}],
        "offers": [{"system": "DGX H100", "how": "buy", "price": "300000 USD"}],
    }  # fmt: skip
    parse_spec(spec)
    points = [point for pool in find_candidates(resolve_document(spec)).pools for point in pool.points]
    assert points
    arch = shape_of(Catalog.load().get("architectures", "Qwen3-30B-A3B"), Ledger(Catalog.load()))
    reported = Catalog.load().get("chips", "H100 SXM5 80GB").value("driver_bytes")
    for point in points:
        use = point.uses[-1]
        layout, kv = ServingLayouts(**use.layout), "fp8" if use.precision == "fp8" else "bf16"
        weights = float(weight_bytes_per_chip(arch, layout, use.precision))
        cache = use.batch * float(kv_bytes_per_chip(arch, layout, 2000 + 150, kv))
        assert weights + cache <= point.memory_bytes <= share * reported
