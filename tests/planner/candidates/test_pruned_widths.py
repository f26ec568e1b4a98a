"""Widths and networks that are left out of the search of training layouts would not have been kept."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner.candidates.layouts as layouts_module
from planner.candidates.fleet_options import build_fleet_options
from planner.candidates.layouts import SHORTER_TOL, layout_space
from planner.candidates.training import (
    MAX_SYSTEMS,
    LayoutSearches,
    _best,
    _doublings,
    _fewest_systems,
    candidate_widths,
    select_widths,
)
from planner.evaluate.layouts import evaluate_layouts
from planner.problem.facts import ScaleOut
from planner.resolve.resolver import resolve_document

NETWORKS = [(50e9, 0.0), (50e9, 1.6e-6), (32e9, 9.8e-7), (12.5e9, 4e-6), (400e9, 1e-7)]  # byte/s, s


def question(architecture="Llama-3.1-8B", **job):
    workload = {
        "name": "run", "kind": "training", "architecture": architecture, "tokens": "300B", "deadline": "60 d", "sequence_tokens": 4096,
        "batch_tokens": 4194304, "precision": ["bf16"], **job,
    }  # fmt: skip
    return {
        "name": "pruned", "workloads": [workload], "sites": [{"region": "us-texas"}],
        "offers": [{"system": "DGX H100", "how": how} for how in ("buy", "reserved")],
    }  # fmt: skip


@pytest.fixture(scope="module")
def resolved():
    problem = resolve_document(question())
    return problem, build_fleet_options(problem)[0]


@st.composite
def setups(draw):
    """Draw a job on DGX H100 and an order of its networks."""
    sequence = draw(st.sampled_from([2048, 8192, 32768]))
    architecture = draw(st.sampled_from(["Llama-3.1-8B", "Llama-3.1-70B", "Qwen3-30B-A3B"]))
    document = question(
        architecture, sequence_tokens=sequence, batch_tokens=sequence * draw(st.sampled_from([64, 512]))
    )
    return (
        document,
        draw(st.permutations(NETWORKS)),
        sorted(draw(st.sets(st.sampled_from([1, 2, 3, 4, 6, 8, 16]), min_size=1))),
    )


@settings(max_examples=6, deadline=None, derandomize=True)
@given(setups(), st.sampled_from([1, 3, 256]))
def test_a_slower_network_finds_what_a_search_of_its_own_finds(drawn, most):
    """Few leaders leave much unsettled, many settle all: the layouts are the same, to the bit."""
    (document, networks, counts), kept = drawn, layouts_module.MOST_LEADERS
    problem = resolve_document(document)
    option = build_fleet_options(problem)[0][0]
    searches = LayoutSearches(problem)
    layouts_module.MOST_LEADERS = most
    try:
        for rate, latency in networks:
            setup = replace(
                searches.setup(problem.training[0], option, "bf16"), scaleout=ScaleOut(rate, latency), plant=None
            )
            for count, found in zip(counts, searches.fastest(setup, counts), strict=True):
                (alone,) = LayoutSearches(problem).fastest(setup, [count])
                assert (found is None) == (alone is None)
                if alone is not None:
                    assert len(found) == len(alone) and (found.legal, found.carried) == (alone.legal, alone.carried)
                if alone is not None and len(alone):
                    assert found.layouts.row(0) == alone.layouts.row(0)
                    assert found.step.step_s[0] == alone.step.step_s[0]
                    assert found.memory_bytes[0] == alone.memory_bytes[0]
    finally:
        layouts_module.MOST_LEADERS = kept


@settings(max_examples=5, deadline=None, derandomize=True)
@given(setups())
def test_hardly_a_step_is_shorter_on_a_slower_network(drawn):
    document, networks, counts = drawn
    problem = resolve_document(document)
    option, job = build_fleet_options(problem)[0][0], problem.training[0]
    setup = replace(LayoutSearches(problem).setup(job, option, "bf16"), plant=None)
    layouts = layout_space(job, counts[-1] * option.system.chips, option.system)
    if not len(layouts):
        return
    steps = {
        network: evaluate_layouts(replace(setup, scaleout=ScaleOut(*network)), layouts).step_s for network in networks
    }
    for (rate, latency), slow in steps.items():
        for (other_rate, other_latency), fast in steps.items():
            if rate <= other_rate and latency >= other_latency:
                assert np.all(slow >= (1 - SHORTER_TOL / 2) * fast)


def test_no_step_is_shorter_on_a_network_of_uneven_rates(resolved):
    problem, options = resolved
    job, searches = problem.training[0], LayoutSearches(problem)
    uneven = [option for option in options if searches.setup(job, option, "bf16").plant is not None]
    assert uneven
    for option in uneven:
        setup = searches.setup(job, option, "bf16")
        layouts = layout_space(job, 16 * option.system.chips, option.system)
        even = replace(setup, plant=None, scaleout=ScaleOut(option.system.nic_bytes_per_s, setup.scaleout.latency_s))
        assert np.all(
            evaluate_layouts(setup, layouts).step_s >= (1 - SHORTER_TOL / 2) * evaluate_layouts(even, layouts).step_s
        )


@pytest.mark.parametrize("most", [1, 2, 3, 6])
@pytest.mark.parametrize("tokens", ["20B", "300B", "3T", "40T"])
def test_the_widths_kept_are_those_of_all_widths(tokens, most):
    problem = resolve_document(question(tokens=tokens) | {"solver": {"points_per_system": most}})
    job, searches = problem.training[0], LayoutSearches(problem)
    for option in build_fleet_options(problem)[0]:
        ceiling = min(option.largest, 512)
        kept, _, _ = candidate_widths(job, option, ceiling, problem, Counter(), searches)
        needed = job.spec.tokens / (job.spec.deadline - job.spec.start)
        counts = [count for some in _doublings(_fewest_systems(job, option.system, needed), ceiling) for count in some]
        every = _best(job, option, counts, problem, Counter(), searches)
        found = [(count, width) for count, (width, _) in zip(counts, every, strict=True) if width is not None]
        assert kept == select_widths(found, needed, most)


def test_the_doublings_are_all_numbers_in_turn():
    assert list(_doublings(5, 100)) == [[4, 5, 6, 7], [8, 10, 12, 14], [16, 20, 24, 28], [32, 40, 48, 56], [64, 80, 96]]
    assert list(_doublings(5, 3)) == []
    assert math.inf not in next(_doublings(1, math.inf)) and max(map(max, _doublings(1, MAX_SYSTEMS))) == MAX_SYSTEMS
