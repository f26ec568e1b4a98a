"""Candidates of training: the plan searches the layouts that `layouts` ranks, and finds the same best one."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from catalog.units import DAY_S
from models.training.layouts import joined
from planner.candidates.layouts import fastest_layout, fastest_layouts, layout_space, legal_sizes, search_layouts
from planner.estimate.case import resolve_case
from tests.conftest import few_of

LLAMA_405B = {
    "name": "reproduction",
    "workloads": [
        {
            "name": "pretrain", "kind": "training", "architecture": "Llama-3.1-405B", "tokens": "15.6T", "deadline": "100 d",
            "sequence_tokens": 8192, "batch_tokens": 16777216,
        }
    ],
    "sites": [{"region": "us-texas", "power": "60 MW"}],
    "offers": [{"system": "DGX H100", "how": "buy"}],
    "solver": {"time_limit": "60 s"},
}  # fmt: skip


@st.composite
def cases(draw):
    """A training case: dense, expert and latent-attention networks of all sizes, on few or many chips, at short or long sequences."""
    system = draw(st.sampled_from(["DGX H100", "DGX A100 80GB", "DGX B200", "Atlas 800T A2", "GB200 NVL72"]))
    per_system = 72 if system == "GB200 NVL72" else 8
    sequence = draw(st.sampled_from([2048, 4096, 8192, 32768, 131072]))
    return {
        "workload": {
            "name": "job", "kind": "training", "tokens": "1T", "deadline": "90 d", "sequence_tokens": sequence,
            "architecture": draw(st.sampled_from(["Llama-3.1-8B", "Llama-3.1-70B", "Llama-3.1-405B", "Qwen3-30B-A3B", "GLM-4.5-Air", "DeepSeek-V3"])),
            "batch_tokens": sequence * draw(st.sampled_from([64, 128, 384, 512, 1024])),
            "precision": ["bf16"],
        },
        "system": system, "topology": "provider", "chips": per_system * draw(st.sampled_from([1, 2, 4, 6, 8, 16, 32, 48, 64])),
    }  # fmt: skip


@settings(max_examples=few_of(40), deadline=None, derandomize=True)
@given(cases())
def test_the_plan_finds_the_best_of_all_layouts(case):
    facts = resolve_case(case)
    setup = facts.training_setup("bf16")
    every = search_layouts(setup, layout_space(facts.job, case["chips"], facts.system))
    found = fastest_layout(setup, legal_sizes(facts.job, case["chips"], facts.system))
    assert len(found) == min(len(every), 1) and found.legal == every.legal and found.carried == every.carried
    if len(every):
        assert found.step.step_s[0] <= every.step.step_s[0] * (1 + 1e-9)
        assert found.memory_bytes[0] <= facts.system.hbm_bytes
        assert found.tried <= every.tried and found.fitting <= every.fitting


@settings(max_examples=few_of(20), deadline=None, derandomize=True)
@given(cases(), st.sets(st.sampled_from([1, 2, 3, 5, 6, 7, 8, 16, 40, 64]), min_size=2, max_size=4))
def test_widths_searched_together_are_those_searched_alone(case, counts):
    facts = resolve_case(case)
    setup = facts.training_setup("bf16")
    spaces = [legal_sizes(facts.job, count * facts.system.chips, facts.system) for count in sorted(counts)]
    spaces = [space for space in spaces if len(space)]
    if not spaces:
        return
    together = fastest_layouts(setup, joined(spaces))
    for space, found in zip(spaces, together, strict=True):
        alone = fastest_layout(setup, space)
        counted = [(each.legal, each.carried, each.fitting, each.tried, len(each)) for each in (found, alone)]
        assert counted[0] == counted[1]
        if len(alone):
            assert found.layouts.row(0) == alone.layouts.row(0)
            assert found.step.step_s[0] == pytest.approx(alone.step.step_s[0], rel=1e-12)
            assert found.memory_bytes[0] == pytest.approx(alone.memory_bytes[0], rel=1e-12)


def test_deep_pipelines_uneven_stages_and_all_schedules_are_in_the_space():
    case = {
        "workload": {k: v for k, v in LLAMA_405B["workloads"][0].items() if k != "name"} | {"name": "job"},
        "system": "DGX H100", "chips": 16384,
    }  # fmt: skip
    facts = resolve_case(case)
    space = layout_space(facts.job, 16384, facts.system)
    assert {16, 32, 64} <= set(space.pp.tolist()) and {1, 2, 4, 8, 16} <= set(space.cp.tolist())
    assert set(space.schedule.tolist()) == {0, 1, 2, 3} and set(space.recompute.tolist()) == {0, 1, 2}
    # 126 layers on 16 stages, as published (arXiv:2407.21783, table 4): dp 128, a first and a last chunk without layers
    published = (space.tp == 8) & (space.pp == 16) & (space.dp == 128) & (space.vpp == 8) & (space.cp == 1)
    assert published.any()


def test_the_reproduction_of_llama_405b_is_feasible():
    plan = planner.solve(copy.deepcopy(LLAMA_405B))
    assert plan.has_answer, plan["diagnosis"]
    [point] = plan["workloads"][0]["points"]
    assert point["time_s"]["run"] <= 100 * DAY_S * (1 + 1e-9)
    assert planner.verify_plan(plan) == []


def test_infeasible_says_of_which_layouts_it_is_true():
    spec = copy.deepcopy(LLAMA_405B)
    spec["workloads"][0]["deadline"] = "20 d"
    plan = planner.solve(spec)
    assert not plan.has_answer
    [words] = [row["words"] for row in plan["diagnosis"]["conflict"] if row["path"].endswith("deadline")]
    assert "pp to 128" in words and "cp to 128" in words and "dualpipe" in words and "65,536 systems" in words


@pytest.mark.parametrize("chips", [1024, 16384])
def test_context_parallelism_is_tried_at_any_length(chips):
    case = {"workload": LLAMA_405B["workloads"][0], "system": "DGX H100", "chips": chips}
    facts = resolve_case(case)
    setup = facts.training_setup("bf16")
    found = search_layouts(setup, layout_space(facts.job, chips, facts.system))
    without = np.flatnonzero(found.layouts.cp == 1)
    assert found.layouts.cp[0] > 1 and found.step.step_s[0] < found.step.step_s[without[0]]
