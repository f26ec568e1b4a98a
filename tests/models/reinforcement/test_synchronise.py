"""Times of synchronisation: each stage by hand, and what more links, fewer bytes and more engines may do."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.formats import Checkpoint
from models.reinforcement.synchronise import (
    Sharding,
    Side,
    Software,
    Weights,
    broadcast_s,
    copy_s,
    gather_s,
    synchronise_s,
)
from models.serving.examples import DENSE, MOE
from models.transformer.checkpoint import checkpoint_bytes, expert_bytes, tensor_count

NODE = Side(64, 8, 450e9, 50e9, 3.35e12)
FREE = Software(float("inf"), 0.0, 0.0)
SOFTWARE = Software(12e9, 4e-4, 2.0)
SIDES = st.builds(
    Side,
    st.sampled_from([1, 2, 8, 64, 4096, 100_000]),
    st.sampled_from([1, 8, 72]),
    st.floats(1e10, 1e12),
    st.floats(1e8, 2e11),
    st.floats(5e11, 8e12),
)
WEIGHTS = st.builds(
    lambda size, narrow, routed, count: Weights(size, size * narrow, size * narrow * routed, count),
    st.floats(1e9, 4e12),
    st.sampled_from([0.25, 0.5, 1.0]),
    st.floats(0.0, 0.99),
    st.integers(10, 100_000),
)
SHARDINGS = st.builds(Sharding, st.sampled_from([1, 2, 8, 16, 512, 4096]), st.sampled_from([1, 8, 64]))


def test_a_copy_within_a_domain_is_gathered_over_its_links():
    # 140 GB on 8 chips: each has an eighth, and takes in 122.5 GB at 450 GB/s.
    assert gather_s(140e9, 8, NODE) == pytest.approx(122.5e9 / 450e9)
    assert gather_s(140e9, 1, NODE) == 0.0


def test_a_copy_over_domains_comes_over_the_network_of_each():
    # On 32 chips of 4 nodes: three quarters come into each node, over 8 links of 5 GB/s.
    assert gather_s(140e9, 32, replace(NODE, scaleout_bytes_per_s=5e9)) == pytest.approx(105e9 / 40e9)


def test_engines_pass_on_what_they_take_in():
    # A node of one pool sends a copy over 8 links of 50 GB/s, whether to one node or to 512.
    for chips in (8, 64, 4096):
        assert broadcast_s(140e9, NODE, replace(NODE, chips=chips)) == pytest.approx(140e9 / 400e9)
    assert broadcast_s(140e9, NODE, replace(NODE, scaleout_bytes_per_s=1.25e9)) == pytest.approx(140e9 / 10e9)


def test_expert_ranks_export_their_own_experts():
    weights = Weights(100e9, 100e9, 80e9)
    # 20 GB that all ranks have, and 80, 20 or 10 GB of experts.
    assert [copy_s(weights, ranks, 10e9, 3e12) for ranks in (1, 4, 8)] == pytest.approx([10.0, 4.0, 3.0])


def test_another_format_is_written_once():
    half = Weights(100e9, 50e9, 0.0)
    assert copy_s(half, 1, 10e9, 3e12) == pytest.approx(5.0 + 150e9 / 3e12)


def test_tensors_are_counted_as_published():
    # Llama 3.1 8B: 32 layers of 4 + 3 matrices and 2 norms, two tables and a norm. With 8 experts, 8 times 3 matrices and a router.
    assert tensor_count(DENSE) == 32 * 9 + 3
    assert tensor_count(MOE) == MOE.layers * (4 + 2 + 1 + 3 * (MOE.experts + (MOE.shared_width > 0))) + 3


def test_experts_are_a_part_of_the_checkpoint():
    mixed = replace(MOE, checkpoints=(("int4", Checkpoint("int4", attention=1.0)),))
    for arch, form in ((MOE, "bf16"), (MOE, "fp8"), (mixed, "int4")):
        assert 0.5 * checkpoint_bytes(arch, form) < expert_bytes(arch, form) < checkpoint_bytes(arch, form)


@given(WEIGHTS, SHARDINGS, SIDES, SIDES | st.none())
def test_more_links_fewer_bytes_and_faster_memory_are_never_slower(weights, sharding, trainer, receiver):
    before = synchronise_s(weights, sharding, trainer, receiver, SOFTWARE)
    for rate in ("scaleup_bytes_per_s", "scaleout_bytes_per_s", "hbm_bytes_per_s"):
        faster = replace(trainer, **{rate: 2 * getattr(trainer, rate)})
        assert synchronise_s(weights, sharding, faster, receiver, SOFTWARE) <= before
        if receiver is not None:
            faster = replace(receiver, **{rate: 2 * getattr(receiver, rate)})
            assert synchronise_s(weights, sharding, trainer, faster, SOFTWARE) <= before
    half = Weights(weights.trained_bytes / 2, weights.rollout_bytes / 2, weights.expert_bytes / 2, weights.tensors)
    assert synchronise_s(half, sharding, trainer, receiver, SOFTWARE) <= before


def test_a_domain_takes_the_faster_of_its_networks():
    slow = Side(2, 8, 1e10, 4e10, 3e12)
    assert broadcast_s(40e9, slow, slow) == pytest.approx(1.0)  # 40 GB to every chip at 40 GB/s, not 4 s at 10


@given(WEIGHTS, SHARDINGS, SIDES, SIDES)
def test_twice_the_chips_on_either_side_are_never_slower(weights, sharding, trainer, receiver):
    before = synchronise_s(weights, sharding, trainer, receiver, SOFTWARE)
    assert synchronise_s(weights, sharding, replace(trainer, chips=2 * trainer.chips), receiver, SOFTWARE) <= before
    assert synchronise_s(weights, sharding, trainer, replace(receiver, chips=2 * receiver.chips), SOFTWARE) <= before


@given(WEIGHTS, SHARDINGS, SIDES, SIDES)
def test_bytes_fit_through_the_links_in_the_time(weights, sharding, trainer, receiver):
    seconds = synchronise_s(weights, sharding, trainer, receiver, FREE)
    for side in (trainer, receiver):
        assert weights.rollout_bytes <= seconds * side.together * side.scaleout_bytes_per_s * (1 + 1e-9)
    beyond = weights.trained_bytes * max(1.0 - trainer.domain_chips / sharding.copy_chips, 0.0)
    assert beyond <= seconds * trainer.domain_chips * trainer.scaleout_bytes_per_s * (1 + 1e-9)
