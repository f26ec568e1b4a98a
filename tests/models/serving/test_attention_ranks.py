"""Attention ranks end a step together: a prompt on one of them holds up all, prompts on all of them pass side by side."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from models.serving import examples
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.prefill import DecodeBatch, Prompts, fullest_rank_prompts, prefill_time
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths

CONSTANTS = replace(examples.SERVING, chunk_tokens=2048.0, attention_imbalance=0.0)
KINDS = {"precisions": examples.BF16, "constants": CONSTANTS}
ONE, FOUR = ServingLayouts(1, 1, 1, 1), ServingLayouts(1, 1, 4, 4)


def prompt_beside(arch, layouts, of_rank, **prompts):
    """Predict a prompt of 1,000 tokens beside so many requests of each rank."""
    sequences = of_rank * layouts.dp
    step = step_time(arch, examples.CHIP, layouts, StepLoad(sequences, 1000.0), **KINDS)
    batch = DecodeBatch(step, sequences, 1000.0)
    return prefill_time(arch, examples.CHIP, layouts, Prompts(1000.0, **prompts), batch, **KINDS)


def test_a_lone_prompt_on_one_of_four_ranks_delays_all_as_long_as_a_lone_rank():
    alone = prompt_beside(examples.DENSE, ONE, 8.0, arriving=1e-6)
    of_four = prompt_beside(examples.DENSE, FOUR, 8.0, arriving=1e-6)
    assert float(of_four.occupancy_s) == pytest.approx(float(alone.occupancy_s), rel=1e-5)
    assert float(of_four.latency_s) == pytest.approx(float(alone.latency_s), rel=1e-5)


def test_prompts_on_all_ranks_take_the_time_of_one():
    """Eight at a time, two of 1,000 tokens to each chunk of 2,048: a quarter of an engine of one rank each."""
    alone = prompt_beside(examples.DENSE, ONE, 8.0, together=2.048)
    full = prompt_beside(examples.DENSE, FOUR, 8.0, arriving=100.0)
    queued = prompt_beside(examples.DENSE, FOUR, 8.0, arriving=1e-3, together=2.048, queued=True)
    for found in (full, queued):
        assert float(found.occupancy_s) == pytest.approx(float(alone.occupancy_s) / 4.0, rel=1e-5)


def test_experts_compute_the_tokens_of_all_ranks():
    """A lone prompt brings experts its own tokens, not four times as many."""
    found = prompt_beside(examples.MOE, FOUR, 8.0, arriving=1e-6)
    low, high = (
        step_time(examples.MOE, examples.CHIP, FOUR, StepLoad(32.0, 1000.0, tokens), **KINDS).breakdown
        for tokens in (0.0, 1000.0)
    )
    experts = high["expert_compute"] - low["expert_compute"]
    assert float(found.breakdown["expert_compute"]) == pytest.approx(float(experts), rel=1e-6)


@pytest.mark.parametrize(("mean", "ranks"), [(0.3, 2), (3.0, 4), (9.0, 4), (20.0, 4), (40.0, 64)])
def test_fullest_rank_of_prompts_that_are_shared_evenly(mean, ranks):
    drawn = np.ceil(np.random.default_rng(1).poisson(mean, 400_000) / ranks).mean()
    assert float(fullest_rank_prompts(mean, ranks)) == pytest.approx(drawn, rel=0.01)


def test_more_ranks_never_serve_less():
    """The same 16 requests on each rank: two, four and eight times the chips."""
    rates = [
        float(aggregated(examples.MOE, examples.CHIP, ServingLayouts(1, 1, n, n), 16.0 * n, lengths=Lengths(1000, 200), **KINDS).requests_per_s)
        for n in (1, 2, 4, 8)
    ]  # fmt: skip
    assert rates == sorted(rates)
