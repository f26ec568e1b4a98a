"""Contents of pipeline ranks and the fullest stage, against a placement written out layer by layer; layers that predict further tokens, by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from models.serving.examples import CHIP, DENSE, MOE
from models.training.constants import Recipe
from models.training.examples import TRAINING
from models.training.flops import training_flops_per_token
from models.training.layer import PARTS
from models.training.layouts import Layouts
from models.training.memory import parameters_per_rank, training_memory
from models.training.pipeline import in_flight_stages
from models.training.run import Run
from models.training.stack import fullest_stage_s
from models.training.step import training_step
from models.transformer.architecture import Architecture, parameter_counts
from tests.conftest import few_of

V3 = Architecture(
    61, 7168, 128, 128, 128, 18432, 129280, experts=256, topk=8, shared_experts=1, expert_ffn=2048, dense_layers=3, mla=True, q_lora_rank=1536,
    kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128,
)  # fmt: skip
V3_ATTENTION = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
V3_EXPERT = 3 * 7168 * 2048
drawn = settings(max_examples=few_of(80), deadline=None)


def stages(layers, p, leading, predicting):
    """Write the layers of each stage as letters: dense ones in front, others, predicting ones, and the head."""
    most = -(-layers // p)
    kinds = ["d"] * leading + ["o"] * (layers - leading)
    found = [kinds[i * most : (i + 1) * most] for i in range(p)]
    found[-1] = found[-1] + ["n"] * predicting + ["h"]
    return found


@drawn
@example(layers=9, p=2, leading=5, predicting=1, dense=3.0, head=0.0)
@example(layers=3, p=2, leading=1, predicting=0, dense=0.2, head=2.6)
@example(layers=5, p=4, leading=3, predicting=0, dense=0.5, head=0.0)
@given(
    layers=st.integers(1, 40), p=st.integers(1, 12), leading=st.integers(0, 12), predicting=st.integers(0, 2),
    dense=st.floats(0.2, 3.0), head=st.floats(0.0, 5.0),
)  # fmt: skip
def test_the_fullest_stage_against_every_stage_written_out(layers, p, leading, predicting, dense, head):
    """Where layers divide by the stages, the slowest of all stages; where not, no more than that: a layer may move off the last stage."""
    p, leading = min(p, layers), min(leading, layers - 1)
    arch = replace(MOE, layers=layers, dense_layers=leading)
    recipe = Recipe(mtp_layers=predicting)
    run = Run.of(arch, CHIP, Layouts.of(pp=p), 4096, "bf16", TRAINING, "hopper", recipe)
    each = {"d": dense, "o": 1.0, "n": 1.1, "h": head}
    kinds = {"others": layers - leading, "leading": dense * leading, "predicting": 1.1 * predicting}
    times = {
        kind: {part: np.array([float(seconds) * (part == "compute")]) for part in PARTS}
        for kind, seconds in kinds.items() if kind == "others" or seconds
    }  # fmt: skip
    found = float(fullest_stage_s(run, times, head)["compute"][0])
    every = [sum(each[kind] for kind in stage) for stage in stages(layers, p, leading, predicting)]
    if layers % p == 0 and dense <= 1.0:
        assert found == pytest.approx(max(every), rel=1e-9)
    assert found <= max(every) + max(dense - 1.0, 0.0) * min(leading, -(-layers // p)) + 1e-9
    assert found >= sum(every) / p - max(each.values()) - 1.1 * predicting - head
    assert found >= every[0] - 1e-9 or p == 1
    assert found >= head + 1.1 * predicting - 1e-9


@drawn
@given(p=st.sampled_from([1, 2, 4, 8, 16]), leading=st.integers(0, 8), predicting=st.integers(0, 2))
def test_the_fullest_rank_has_the_most_parameters_of_all(p, leading, predicting):
    arch = replace(V3, layers=64, dense_layers=leading)
    vocabulary = 7168 * 129280
    other = V3_ATTENTION + V3_EXPERT + 7168 * 256 + 256 * V3_EXPERT
    each = {"d": V3_ATTENTION + 3 * 7168 * 18432, "o": other, "n": other + 2 * 7168**2, "h": vocabulary}
    every = [sum(each[kind] for kind in stage) for stage in stages(64, p, leading, predicting)]
    every[0] += vocabulary  # the embedding
    if p > 1 and predicting:
        every[-1] += vocabulary
    dense, expert = parameters_per_rank(arch, Layouts.of(pp=p), predicting)
    assert float(dense[0] + expert[0]) == pytest.approx(max(every), rel=1e-9)


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_projections_down_to_a_latent_are_whole_on_each_tensor_rank(tp):
    """DeepSeek-V3: h (1536 + 512 + 64) of a layer's attention have no heads to divide; the rest of it, of shared experts and the tables is divided."""
    whole = 61 * 7168 * (1536 + 512 + 64)
    dense, expert = parameters_per_rank(V3, Layouts.of(tp=tp))
    alone = parameters_per_rank(V3, Layouts.of())
    assert float(dense[0]) == pytest.approx(whole + (float(alone[0][0]) - whole) / tp)
    assert float(expert[0]) == pytest.approx(float(alone[1][0]) / tp)


def test_a_dense_layer_in_front_makes_other_stages_wait():
    """58 MoE layers in 16 stages of at most 4: stages of four of them, however fast the three dense ones are."""
    kinds = {
        kind: {part: np.array([seconds * (part == "compute")]) for part in PARTS}
        for kind, seconds in (("leading", 0.3), ("others", 58.0))
    }
    run = Run.of(V3, CHIP, Layouts.of(pp=16), 4096, "bf16", TRAINING, "hopper", Recipe())
    assert fullest_stage_s(run, kinds, 0.0)["compute"].tolist() == [4.0]
    spread = Run.of(replace(V3, spread_dense=1), *(CHIP, Layouts.of(pp=16), 4096, "bf16", TRAINING, "hopper", Recipe()))
    alike = {"others": {part: np.array([58.3 * (part == "compute")]) for part in PARTS}}
    assert fullest_stage_s(spread, alike, 0.0)["compute"][0] == pytest.approx(4 * 58.3 / 61)


def test_micro_batches_in_flight_fall_by_one_from_rank_to_rank():
    """Before its first backward a rank of an interleaved pipeline runs 2 (p - 1 - i) + (v - 1) p + 1 chunks, each 1/v of its layers."""
    for p, v in ((4, 1), (4, 3), (16, 2)):
        for i in range(p):
            chunks = p - i if v == 1 else 2 * (p - 1 - i) + (v - 1) * p + 1
            assert float(in_flight_stages(p, 10**6, v, 0, i)) == pytest.approx(chunks / v)


def test_a_predicting_layer_counts_in_full():
    """DeepSeek-V3: one layer (attention, eight routed experts and a shared one, router), the projection of 2 h to h, and the head again."""
    with_one, without = (training_flops_per_token(V3, 4096, Recipe(mtp_layers=n)) for n in (1, 0))
    matrices = V3_ATTENTION + 9 * V3_EXPERT + 7168 * 256 + 2 * 7168**2 + 7168 * 129280
    core = 2.0 * 128 * (192 + 128) * (4096 + 1) / 2
    assert with_one - without == pytest.approx(3 * (2 * matrices + core), rel=1e-3)
    dense, expert = (
        np.subtract(*parts)
        for parts in zip(parameters_per_rank(V3, Layouts.of(), 1), parameters_per_rank(V3, Layouts.of()), strict=True)
    )
    assert expert[0] == 256 * V3_EXPERT
    assert dense[0] == V3_ATTENTION + V3_EXPERT + 7168 * 256 + 2 * 7168**2


def test_a_predicting_layer_takes_time_and_memory_and_is_never_free():
    layouts = Layouts.of(pp=[1, 4], dp=[8, 8], ep=[8, 8], recompute=1)
    found = [
        training_step(
            V3, CHIP, layouts, global_batch_sequences=512, sequence_tokens=4096, precision="bf16", constants=TRAINING, family="hopper",
            recipe=Recipe(mtp_layers=n),
        )
        for n in (0, 1, 2)
    ]  # fmt: skip
    for less, more in pairwise(found):
        assert np.all(more.step_s >= less.step_s) and np.all(more.memory_bytes >= less.memory_bytes)
    assert found[1].step_s[0] > found[0].step_s[0] * 62 / 61 and found[1].memory_bytes[0] > found[0].memory_bytes[0]


def test_the_last_rank_of_a_pipeline_with_a_large_vocabulary_is_the_fullest():
    """Four layers of 32: the last rank holds one micro-batch, but logits of 6 bytes for each of 128,256 entries and token."""
    layouts = Layouts.of(pp=8, dp=8, recompute=2, micro_batch=4)
    found = training_memory(DENSE, layouts, global_batch_sequences=512, sequence_tokens=8192, constants=TRAINING)
    assert found.logits[0] == pytest.approx(6 * 128256 * 4 * 8192)
    counts = parameter_counts(DENSE)
    assert found.weights[0] == pytest.approx(2 * (4 / 32 * (counts.total - 2 * counts.head) + counts.head))


def test_the_memory_of_deepseek_v3_in_its_own_layout_fits_in_80_gb():
    """PP 16 in DualPipe, EP 64, ZeRO-1 over 2,048 H800 of 80 GB (arXiv:2412.19437, sections 3.2 and 3.3): 16-bit moments beside a 32-bit copy (10 bytes with
    the weight, as with one moment in 32 bit), inputs of products and of SwiGLU kept in 8 bit, norms and MLA up-projections computed again."""
    layout = Layouts.of(pp=16, dp=128, ep=64, schedule=3, zero=1, recompute=1)
    own = Recipe(optimizer="muon", operand_bytes=1.0, narrow_activations=True, mtp_layers=1)

    def total(recipe):
        found = training_memory(
            V3, layout, global_batch_sequences=15360, sequence_tokens=4096, constants=TRAINING, recipe=recipe
        )
        return float(found.total[0])

    assert 60e9 < total(own) < 80e9
    assert (
        total(replace(own, narrow_activations=False)) > total(own) + 9e9
    )  # 2 x 18,432 bytes for 68 layers of 4,096 tokens
