"""Routing of experts in a training step: the closed forms of serving, what they change, and in which direction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.roofline import ChipRates
from models.serving.examples import CHIP, MOE
from models.training.constants import Recipe
from models.training.examples import TRAINING
from models.training.exchange import expert_exchange_s
from models.training.layer import elementwise_s, routed_experts_s
from models.training.layouts import Layouts
from models.training.run import Run
from models.training.step import training_step
from models.transformer.routing import Routing, dropped_share, fullest_rank
from tests.conftest import few_of

WIDTHS = Layouts.of(dp=64, ep=[1, 4, 8, 16, 32])


def run(routing: Routing | None, layouts: Layouts = WIDTHS, chip: ChipRates = CHIP, recipe: Recipe = Recipe()) -> Run:
    return Run.of(replace(MOE, routing=routing), chip, layouts, 4096, "bf16", TRAINING, "hopper", recipe)


def steps(routing: Routing | None) -> np.ndarray:
    return training_step(
        replace(MOE, routing=routing), CHIP, WIDTHS, global_batch_sequences=512, sequence_tokens=4096, precision="bf16", constants=TRAINING,
        family="hopper",
    ).step_s  # fmt: skip


def test_what_is_not_stated_is_as_fitted():
    assert (steps(None) == steps(Routing())).all()
    stated = routed_experts_s(run(Routing(imbalance=TRAINING.expert_imbalance)))
    assert stated[1:] == pytest.approx(routed_experts_s(run(None))[1:])  # a rank alone is not imbalanced


@given(st.floats(0, 2))
def test_the_fullest_rank_is_that_of_serving_and_its_products_take_as_much_longer(exponent):
    even, skewed = (routed_experts_s(run(Routing(popularity=a))) for a in (0.0, exponent))
    factor = [fullest_rank(MOE.experts, exponent, MOE.experts, int(ep)) for ep in WIDTHS.ep]
    assert skewed / even == pytest.approx(factor)


@settings(max_examples=few_of(25))
@given(st.floats(0, 2), st.floats(0.3, 8), st.floats(0.3, 8), st.integers(1, 8), st.booleans())
def test_steps_grow_with_skew_and_capacity_and_shrink_with_limits(few, first, second, most, two):
    tight, loose = sorted((first, second))
    usual = steps(Routing(popularity=few, capacity_factor=tight, two_batches=two))
    assert (usual <= steps(Routing(popularity=few, capacity_factor=loose, two_batches=two)) * (1 + 1e-9)).all()
    assert (steps(Routing(popularity=0.0)) <= steps(Routing(popularity=few)) * (1 + 1e-9)).all()
    limited = steps(Routing(popularity=few, capacity_factor=tight, two_batches=two, most_domains=most))
    assert (limited <= usual * (1 + 1e-9)).all()


@settings(max_examples=few_of(25))
@given(st.floats(0, 1.5), st.floats(0.3, 4))
def test_dropped_tokens_are_neither_sent_nor_computed(exponent, factor):
    routing = Routing(popularity=exponent, capacity_factor=factor)
    found, free = run(routing), run(Routing(popularity=exponent))
    tokens = 4096.0 * WIDTHS.ep
    kept = 1.0 - dropped_share(MOE.experts, MOE.topk, tokens, factor, exponent)
    assert found.expert_tokens == pytest.approx(kept * 4096.0)
    start = expert_exchange_s(replace_tokens(free, 1e-9))
    assert expert_exchange_s(found) - start == pytest.approx(kept * (expert_exchange_s(free) - start), abs=1e-12)
    assert (elementwise_s(found, True) <= elementwise_s(free, True)).all()


def replace_tokens(of: Run, tokens: float) -> Run:
    return replace(of, expert_tokens=np.full(len(WIDTHS), tokens))


def test_a_limit_on_domains_bears_on_exchange_across_them_only():
    plain, limited = (expert_exchange_s(run(Routing(most_domains=m))) for m in (0, 1))
    inside = WIDTHS.ep <= CHIP.scaleup_chips
    assert (limited[inside] == plain[inside]).all() and (limited[~inside] < plain[~inside]).all()


def test_without_a_second_batch_every_exchange_is_waited_for():
    hidden = Recipe(overlapped_exchange=True)
    overlapped, waited = (expert_exchange_s(run(Routing(two_batches=two), recipe=hidden)) for two in (True, False))
    assert waited == pytest.approx(expert_exchange_s(run(None)))
    assert (overlapped[1:] < waited[1:]).all()
