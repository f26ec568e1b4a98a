"""Properties of the training models: monotone in work and bandwidth, nothing for a group of one, arrays equal scalars, sums hold."""

from __future__ import annotations

import importlib
import inspect
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.units import GIGA, TERA
from models import formats, roofline
from models.network import collectives
from models.serving.examples import CHIP, DENSE, MOE
from models.training import adapters, flops, layouts, memory, pipeline, stack, stages
from models.training import exchange as training_exchange
from models.training import layer as training_layer
from models.training import run as training_run
from models.training import step as training
from models.training.constants import FRAMEWORKS, Recipe
from models.training.examples import HYBRID, TRAINING
from models.training.layouts import Layouts
from models.transformer import architecture, attention, moe
from tests.conftest import few_of

MODULES = (
    "network.collectives",
    "roofline",
    "training.adapters",
    "training.exchange",
    "training.flops",
    "training.layer",
    "training.layouts",
    "training.memory",
    "training.pipeline",
    "training.stack",
    "training.stages",
    "training.step",
    "transformer.architecture",
    "transformer.moe",
)
MLA = replace(
    MOE,
    mla=True,
    q_lora_rank=768,
    kv_lora_rank=256,
    qk_nope_dim=64,
    qk_rope_dim=32,
    v_head_dim=64,
    dense_layers=3,
    shared_experts=1,
)
ARCHITECTURES = (DENSE, MOE, MLA)
TUNED = Recipe(adapter_rank=16, adapts_ffn=True)
few = settings(max_examples=few_of(40), deadline=None)

positive = st.floats(1.0, 1e9)
rate = st.floats(1e6, 1e15)
ranks = st.sampled_from([1, 2, 4, 8, 16, 72, 1024])
share = st.floats(0.0, 1.0)

# How to draw each argument of the functions that broadcast over plain numbers.
BROADCASTING = {
    collectives.members_per_domain: (ranks, ranks, ranks),
    collectives.group_bytes_per_s: (ranks, ranks, rate, rate, share),
    collectives.all_gather_s: (positive, ranks, rate, share),
    collectives.reduce_scatter_s: (positive, ranks, rate, share),
    collectives.all_reduce_s: (positive, ranks, rate, share),
    collectives.all_to_all_s: (positive, positive, rate, rate, share),
    collectives.exposed_s: (positive, positive, share),
    memory.fits: (positive, positive),
    memory.tightness: (positive, positive),
    moe.distinct_destinations: (st.integers(1, 16), ranks),
    pipeline.bubble_s: (ranks, ranks, positive, positive, positive, st.integers(0, 3)),
    pipeline.in_flight_stages: (ranks, positive, ranks, st.integers(0, 3), st.integers(0, 7)),
    stages.leading_on: (st.integers(0, 64), ranks, st.integers(1, 16)),
    stages.first_without_leading: (st.integers(0, 64), st.integers(1, 16), ranks),
    pipeline.rank_chunks: (st.integers(0, 3),),
    pipeline.weight_copies: (st.integers(0, 3),),
    pipeline.slowest_stage: (st.integers(1024, 4096), ranks, positive, positive),
    pipeline.stage_layers: (st.integers(1, 128), ranks),
    formats.element_bytes: (st.integers(0, len(formats.PRECISIONS) - 1),),
    formats.operand_bits: (st.integers(0, len(formats.PRECISIONS) - 1),),
    roofline.roofline_s: (positive, positive, rate, rate),
    roofline.ridge_flop_per_byte: (rate, rate),
    roofline.saturation_factor: (positive, positive, positive, positive),
    roofline.misalignment_factor: (st.integers(1, 10**6), st.integers(1, 10**6), share),
    roofline.gemm_s: (positive, positive, positive, rate, rate, st.floats(0.5, 4.0), positive, share),
    training.straggler_factor: (ranks, share),
}
# The same with an architecture in front.
OF_ARCHITECTURE = {
    attention.kv_bytes_per_token: (positive,),
    attention.kv_bytes: (positive, positive),
    attention.attended_tokens: (positive,),
    attention.causal_pairs: (positive,),
    attention.attention_flops: (positive, positive),
    attention.forward_flops_per_token: (positive,),
    attention.kv_bytes_per_rank: (positive, positive, ranks),
    attention.read_bytes_per_rank: (positive, positive, ranks),
    attention.query_flops: (positive,),
    architecture.attention_on_ranks: (ranks,),
}
# Functions of a run, with what else they take.
OF_RUN = {
    training_layer.attention_gemms_s: (),
    training_layer.attention_core_s: (),
    training_layer.elementwise_s: (False,),
    training_exchange.tensor_parallel_s: (2.0,),
    training_layer.dense_ffn_s: (4096.0,),
    training_layer.layer_times: (False,),
    training_layer.head_s: (),
    training_layer.projection_s: (),
    stack.stack_times: (),
    training.pipeline_transfer_s: (),
    training.optimizer_s: (),
    flops.recomputed_flops_per_token: (),
    training_layer.adapters_s: (False,),
}
OF_MOE_RUN = {
    training_layer.routed_experts_s: (),
    training_exchange.expert_exchange_s: (),
    training_exchange.moe_host_s: (),
    training_layer.elementwise_s: (True,),
    training_layer.layer_times: (True,),
    training_layer.adapters_s: (True,),
}
OF_HYBRID_RUN = {
    training_layer.state_gemms_s: (),
    training_layer.elementwise_s: (False, "state", False),
    training_layer.layer_times: (False, "state", False),
    stack.stack_times: (),
}
OF_RUN_AND_ARRAYS = {  # further arguments are seconds along the axis of layouts
    training_exchange.context_parallel_s: lambda run, s: (run, s, 2.0),
    training_exchange.launch_excess_s: lambda run, s: (run, s, True),
    stack.fullest_stage_s: lambda run, s: (run, {"others": dict.fromkeys(training_layer.PARTS, s)}, 2 * s),
    training.data_parallel_s: lambda run, s: (run, np.ceil(s * 1e3), s, 2 * s),
    training.offload_s: lambda run, s: (run, np.ceil(s * 1e3), s, 2 * s),
}
OF_LAYOUTS = {
    memory.parameters_per_rank: lambda arch, lay: memory.parameters_per_rank(arch, lay),
    memory.trained_per_rank: lambda arch, lay: memory.trained_per_rank(arch, lay, TUNED),
    adapters.adapters_per_rank: lambda arch, lay: adapters.adapters_per_rank(arch, lay, TUNED),
    memory.state_bytes: lambda arch, lay: memory.state_bytes(arch, lay, TUNED),
    memory.kept_bytes_per_token: lambda arch, lay: memory.kept_bytes_per_token(arch, lay, 4096),
    memory.gathered_bytes: lambda arch, lay: memory.gathered_bytes(arch, lay, TUNED),
    memory.host_bytes: lambda arch, lay: memory.host_bytes(arch, lay, global_batch_sequences=512, sequence_tokens=4096),
    memory.activation_bytes_per_token: lambda arch, lay: memory.activation_bytes_per_token(arch, lay, 4096),
    memory.training_memory: lambda arch, lay: (
        memory.training_memory(arch, lay, global_batch_sequences=512, sequence_tokens=4096, constants=TRAINING).total
    ),
    stages.chunk_layers: lambda arch, lay: stages.chunk_layers(arch.layers, lay),
    stages.rank_contents: lambda arch, lay: tuple(
        0.0 * lay.pp + np.sum(np.broadcast_arrays(*rank.by_kind, rank.embedding, rank.head), axis=0)
        for rank in stages.rank_contents(arch, lay, 1)
    ),
    stages.parameters_of: lambda arch, lay: tuple(
        part for rank in stages.rank_contents(arch, lay, 1) for part in stages.parameters_of(arch, lay, rank)
    ),
    layouts.is_legal: lambda arch, lay: layouts.is_legal(
        arch, lay, global_batch_sequences=512, sequence_tokens=4096, scaleup_chips=8
    ),
    training.training_step: lambda arch, lay: vars_of(step(arch, lay)),
    layouts.legal_rules: lambda arch, lay: tuple(
        kept
        for _, kept in layouts.legal_rules(arch, lay, global_batch_sequences=512, sequence_tokens=4096, scaleup_chips=8)
    ),
    moe.dispatch_copies: lambda arch, lay: moe.dispatch_copies(8, 128, lay.ep, 8, deduplicated=True),
}
SCALAR_ONLY = {  # take no arrays
    layouts.divisors, layouts.enumerate_layouts, layouts.parallel_layouts, layouts.with_levels, adapters.mixer_matrices,
    adapters.feed_forward_matrices, adapters.adapter_parameters, flops.forward_flops, flops.training_flops_per_token, architecture.attention_parameters_per_layer, architecture.parameter_counts,
    architecture.indexer_parameters, architecture.window_parameters_per_layer, architecture.window_shape, architecture.state_parameters_per_layer,
    architecture.compressed_parameters_per_layer, attention.attention_kinds, attention.is_latent, attention.state_elements, attention.state_bytes,
    stages.leading_layers, stages.layer_parameters, stages.prediction_parameters, stack.work_of, layouts.joined, pipeline.schedule_code, training.release_factor,
}  # fmt: skip


def vars_of(result):
    return (result.step_s, result.tokens_per_s, result.mfu, result.hfu, result.memory_bytes, *result.breakdown.values())


def step(arch, lay, chip=CHIP, sequence=4096, batch=512, precision="bf16", constants=TRAINING, **recipe):
    return training.training_step(
        arch, chip, lay, global_batch_sequences=batch, sequence_tokens=sequence, precision=precision, constants=constants,
        family="hopper", recipe=Recipe(**recipe),
    )  # fmt: skip


def every_layout(arch, chips=64, sequence=4096, batch=512):
    return layouts.enumerate_layouts(
        arch, chips, batch, sequence_tokens=sequence, scaleup_chips=8,
        space=layouts.LayoutSpace(micro_batches=(1, 4), interleaves=(1, 2), zeros=(0, 1, 2, 3), largest_cp=4),
    )  # fmt: skip


SPACES = {arch: every_layout(arch) for arch in (*ARCHITECTURES, HYBRID)}


@st.composite
def some_layouts(draw, arch, count=5):
    space = SPACES[arch]
    return space.take(np.array(draw(st.lists(st.integers(0, len(space) - 1), min_size=count, max_size=count))))


def flat(result) -> list[np.ndarray]:
    if isinstance(result, dict):
        return [a for v in result.values() for a in flat(v)]
    if isinstance(result, tuple):
        return [a for v in result for a in flat(v)]
    return [np.asarray(result)]


def assert_entries_equal(whole, single, index):
    for many, one in zip(flat(whole), flat(single), strict=True):
        picked = many[index] if many.ndim else many
        np.testing.assert_allclose(picked, np.squeeze(one), rtol=1e-12, atol=0)


# -- arrays equal scalars ------------------------------------------------------------------------------------------------


def test_every_public_function_is_in_one_of_the_tables():
    public = {
        function
        for name in MODULES
        for attribute, function in vars(importlib.import_module(f"models.{name}")).items()
        if inspect.isfunction(function) and function.__module__ == f"models.{name}" and not attribute.startswith("_")
    }
    tables = (
        BROADCASTING,
        OF_ARCHITECTURE,
        OF_RUN,
        OF_MOE_RUN,
        OF_HYBRID_RUN,
        OF_RUN_AND_ARRAYS,
        OF_LAYOUTS,
        SCALAR_ONLY,
    )
    missing = public - set().union(*tables)
    assert not missing, f"no test that array[i] equals scalar(i) for {sorted(f.__name__ for f in missing)}"


@pytest.mark.parametrize("function", BROADCASTING, ids=lambda f: f.__name__)
@few
@given(data=st.data())
def test_broadcasting_functions_agree_with_scalars(function, data):
    rows = data.draw(st.lists(st.tuples(*BROADCASTING[function]), min_size=2, max_size=4))
    whole = function(*(np.array(column) for column in zip(*rows, strict=True)))
    for i, row in enumerate(rows):
        single = function(*row)
        assert all(part.ndim == 0 for part in flat(single))
        assert_entries_equal(whole, single, i)


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=("dense", "moe", "mla"))
@pytest.mark.parametrize("function", OF_ARCHITECTURE, ids=lambda f: f.__name__)
@few
@given(data=st.data())
def test_functions_of_an_architecture_agree_with_scalars(function, arch, data):
    rows = data.draw(st.lists(st.tuples(*OF_ARCHITECTURE[function]), min_size=2, max_size=4))
    whole = function(arch, *(np.array(column) for column in zip(*rows, strict=True)))
    for i, row in enumerate(rows):
        assert_entries_equal(whole, function(arch, *row), i)


@pytest.mark.parametrize(
    ("table", "arch"), [(OF_RUN, DENSE), (OF_RUN, MLA), (OF_MOE_RUN, MOE), (OF_MOE_RUN, MLA), (OF_HYBRID_RUN, HYBRID)]
)
@settings(max_examples=few_of(10), deadline=None)
@given(data=st.data())
def test_functions_of_a_run_agree_with_single_layouts(table, arch, data):
    lay = data.draw(some_layouts(arch))
    run_of = lambda chosen: training_run.Run.of(arch, CHIP, chosen, 4096, "fp8", TRAINING, "hopper", Recipe())
    for function, extra in table.items():
        whole = function(run_of(lay), *extra)
        for i in range(len(lay)):
            assert_entries_equal(whole, function(run_of(lay.take([i])), *extra), i)
    seconds = np.array(data.draw(st.lists(st.floats(1e-6, 10.0), min_size=5, max_size=5)))
    for function, call in OF_RUN_AND_ARRAYS.items():
        whole = function(*call(run_of(lay), seconds))
        for i in range(len(lay)):
            assert_entries_equal(whole, function(*call(run_of(lay.take([i])), seconds[[i]])), i)


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=("dense", "moe", "mla"))
@pytest.mark.parametrize("function", OF_LAYOUTS, ids=lambda f: f.__name__)
@settings(max_examples=few_of(15), deadline=None)
@given(data=st.data())
def test_functions_of_layouts_agree_with_single_layouts(function, arch, data):
    lay = data.draw(some_layouts(arch))
    whole = OF_LAYOUTS[function](arch, lay)
    for i in range(len(lay)):
        assert_entries_equal(whole, OF_LAYOUTS[function](arch, lay.take([i])), i)


# -- communication ---------------------------------------------------------------------------------------------------------


@few
@given(positive, rate, share)
def test_a_group_of_one_costs_nothing(size, bandwidth, start):
    for collective in (collectives.all_gather_s, collectives.reduce_scatter_s, collectives.all_reduce_s):
        assert collective(size, 1, bandwidth, start) == 0.0
    assert collectives.all_to_all_s(*moe.dispatch_copies(8, 64, 1, 8), bandwidth, bandwidth, start) == 0.0


@few
@given(positive, positive, ranks, ranks, ranks, rate, rate, st.floats(1.0, 10.0))
def test_collectives_grow_with_bytes_and_fall_with_bandwidth(size, extra, group, stride, domain, intra, inter, faster):
    inside = collectives.members_per_domain(group, stride, domain)
    slow, fast = (collectives.group_bytes_per_s(group, inside, f * intra, f * inter) for f in (1.0, faster))
    assert fast >= slow
    assert collectives.all_reduce_s(size + extra, group, slow) >= collectives.all_reduce_s(size, group, slow)
    assert collectives.all_reduce_s(size, group, fast) <= collectives.all_reduce_s(size, group, slow)


@few
@given(st.integers(1, 8), ranks, ranks)
def test_deduplicated_dispatch_never_sends_more(topk, ep, domain):
    plain = moe.dispatch_copies(topk, 1024, ep, domain)
    fewer = moe.dispatch_copies(topk, 1024, ep, domain, deduplicated=True)
    limited = moe.dispatch_copies(topk, 1024, ep, domain, deduplicated=True, domain_limit=4)
    assert all(f <= p + 1e-9 for f, p in zip(fewer, plain, strict=True)) and limited[1] <= fewer[1] + 1e-9


# -- operators and roofline --------------------------------------------------------------------------------------------------


@few
@given(st.integers(64, 8192), st.integers(64, 8192), st.integers(64, 8192), st.integers(0, 64), rate, rate)
def test_gemm_time_is_monotone(m, n, k, more, flop_per_s, bytes_per_s):
    base = roofline.gemm_s(m, n, k, flop_per_s, bytes_per_s, 2, 70.0)
    assert roofline.gemm_s(m + more, n, k, flop_per_s, bytes_per_s, 2, 70.0) >= base
    assert roofline.gemm_s(m, n, k, 2 * flop_per_s, bytes_per_s, 2, 70.0) <= base
    assert roofline.gemm_s(m, n, k, flop_per_s, 2 * bytes_per_s, 2, 70.0) <= base
    assert base >= 2.0 * m * n * k / flop_per_s


@few
@given(
    st.integers(2, 64), st.sampled_from([256, 512, 1024]), st.sampled_from([4, 8, 16]), st.sampled_from([1, 2, 4]), st.booleans(),
    st.integers(0, 32),
)  # fmt: skip
def test_training_flops_are_six_per_parameter_plus_attention(layers, hidden, heads, group, gated, experts):
    experts = experts if experts >= 2 else 0
    arch = architecture.Architecture(
        layers=layers, hidden=hidden, heads=heads, kv_heads=heads // group, head_dim=hidden // heads, ffn=4 * hidden, vocab=32000, gated=gated,
        experts=experts, topk=2 if experts else 0, expert_ffn=hidden if experts else 0,
    )  # fmt: skip
    counts = architecture.parameter_counts(arch)
    flops = 3 * attention.forward_flops_per_token(arch, 1)
    assert flops == pytest.approx(6 * counts.active, rel=0.02)  # a context of one token
    longer = 3 * attention.forward_flops_per_token(arch, 4096)
    assert longer - 6 * counts.active == pytest.approx(3 * 4 * heads * arch.head_dim * layers * 4096 / 2, rel=1e-9)
    # Each part by itself: the matrices of a layer, counted one by one.
    heads_of = hidden * hidden * 2 + 2 * hidden * (heads // group) * arch.head_dim
    width, number = (arch.expert_ffn, 2) if experts else (arch.ffn, 1)
    ffn = number * (3 if gated else 2) * hidden * width + hidden * experts
    assert counts.active == pytest.approx(layers * (heads_of + ffn) + hidden * arch.vocab, rel=1e-12)
    assert counts.active <= counts.total


@few
@given(st.integers(1, 10**6), st.integers(1, 10**6), st.integers(1, 4096), st.integers(0, 32))
def test_windows_never_cost_more(context, more, window, windowed):
    arch = replace(DENSE, window_tokens=window, window_layers=windowed)
    for function in (attention.attended_tokens, attention.causal_pairs):
        assert function(arch, context) <= function(DENSE, context)
        assert function(arch, context + more) >= function(arch, context)
    assert attention.kv_bytes(arch, context, 2) <= attention.kv_bytes(DENSE, context, 2)


# -- memory ----------------------------------------------------------------------------------------------------------------


def memory_of(arch, lay, batch=512):
    return memory.training_memory(
        arch, lay, global_batch_sequences=batch, sequence_tokens=4096, constants=TRAINING
    ).total


@pytest.mark.parametrize("arch", [DENSE, MOE], ids=("dense", "moe"))
@pytest.mark.parametrize("recompute", [0, 1, 2])
def test_memory_falls_with_tp_zero_recompute_and_state_with_pp(arch, recompute):
    assert (np.diff(memory_of(arch, Layouts.of(tp=[1, 2, 4, 8], dp=8, recompute=recompute))) < 0).all()
    assert (np.diff(memory_of(arch, Layouts.of(dp=64, zero=[0, 1, 2, 3], recompute=recompute))) < 0).all()
    assert (np.diff(memory_of(arch, Layouts.of(dp=64, recompute=[0, 1, 2]))) < 0).all()
    assert (np.diff(memory_of(arch, Layouts.of(cp=[1, 2, 4, 8], dp=8, recompute=recompute))) < 0).all()
    assert (np.diff(memory_of(arch, Layouts.of(pp=[1, 2, 4, 8], dp=8, recompute=recompute))) < 0).all()


@few
@given(data=st.data(), zero=st.integers(0, 2))
def test_sharding_never_needs_more_memory(data, zero):
    lay = data.draw(some_layouts(MOE))
    lower, higher = (replace(lay, zero=np.full(len(lay), z)) for z in (zero, zero + 1))
    for_a_moment = memory.gathered_bytes(MOE, higher)  # ZeRO-3 holds whole layers while they compute
    assert (memory_of(MOE, higher) - for_a_moment <= memory_of(MOE, lower) * (1 + 1e-12)).all()


@few
@given(data=st.data())
def test_memory_parts_are_positive_and_grow_with_the_micro_batch(data):
    lay = data.draw(some_layouts(MLA))
    parts = memory.training_memory(MLA, lay, global_batch_sequences=512, sequence_tokens=4096, constants=TRAINING)
    assert all((getattr(parts, name) >= 0).all() for name in parts.__dataclass_fields__)
    # With at least as many micro-batches as stages, what is in flight does not depend on the batch.
    larger = replace(lay, micro_batch=2 * lay.micro_batch)
    assert (memory_of(MLA, larger, batch=10**6) > memory_of(MLA, lay, batch=10**6)).all()


# -- the step --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHITECTURES, ids=("dense", "moe", "mla"))
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_breakdown_adds_up_and_nothing_is_negative(arch, framework):
    lay = SPACES[arch].take(slice(None, None, 7))
    result = step(arch, lay, framework=framework, fused_attention=framework != "megatron-2021")
    assert set(result.breakdown) == set(training.BREAKDOWN)
    assert all((seconds >= 0).all() for seconds in result.breakdown.values())
    np.testing.assert_allclose(sum(result.breakdown.values()), result.step_s, rtol=1e-12)
    assert np.isfinite(result.step_s).all()
    assert (result.mfu > 0).all() and (result.mfu <= result.hfu + 1e-15).all() and (result.hfu < 1).all()
    np.testing.assert_allclose(result.tokens_per_s * result.step_s, 512 * 4096, rtol=1e-12)


@pytest.mark.parametrize(
    "field",
    ["flop_per_s", "flop16_per_s", "hbm_bytes_per_s", "scaleup_bytes_per_s", "scaleout_bytes_per_s", "scaleup_chips"],
)
@settings(max_examples=few_of(15), deadline=None)
@given(data=st.data(), factor=st.integers(2, 8), arch=st.sampled_from(ARCHITECTURES))
def test_a_better_chip_is_never_slower(field, data, factor, arch):
    if field == "flop_per_s" or field == "hbm_bytes_per_s":
        # The size at which a GEMM saturates follows the ratio of both, so one alone may not help small layers: both are raised.
        better = replace(CHIP, flop_per_s=factor * CHIP.flop_per_s, hbm_bytes_per_s=factor * CHIP.hbm_bytes_per_s)
    else:
        better = replace(CHIP, **{field: factor * getattr(CHIP, field)})
    lay = data.draw(some_layouts(arch))
    assert (step(arch, lay, better).step_s <= step(arch, lay).step_s * (1 + 1e-12)).all()


@few
@given(data=st.data(), arch=st.sampled_from(ARCHITECTURES), precision=st.sampled_from(["bf16", "fp8"]))
def test_more_work_takes_longer(data, arch, precision):
    lay = data.draw(some_layouts(arch))
    base = step(arch, lay, precision=precision).step_s
    assert (step(arch, lay, batch=1024, precision=precision).step_s > base).all()
    assert (step(arch, lay, sequence=8192, precision=precision).step_s > base).all()
    assert (
        step(replace(arch, layers=2 * arch.layers, dense_layers=2 * arch.dense_layers), lay, precision=precision).step_s
        > base
    ).all()
    more = replace(lay, recompute=np.full(len(lay), 2))
    less = replace(lay, recompute=np.zeros(len(lay), int))
    assert (step(arch, more, precision=precision).step_s > step(arch, less, precision=precision).step_s).all()


@few
@given(data=st.data(), overlap=share)
def test_hiding_communication_never_slows(data, overlap):
    lay = data.draw(some_layouts(MOE))
    names = ("tp_overlap_stock", "dp_overlap_fsdp", "exchange_overlap")
    less, more = (
        step(MOE, lay, constants=replace(TRAINING, **dict.fromkeys(names, value)), overlapped_exchange=True).step_s for value in (overlap, (1 + overlap) / 2)
    )  # fmt: skip
    assert (more <= less * (1 + 1e-12)).all()


@few
@given(st.floats(1e-3, 1e4) | st.just(0.0), st.floats(1e-3, 1e4), share)
def test_exposed_time_is_between_nothing_and_everything(communication, window, overlap):
    exposed = collectives.exposed_s(communication, window, overlap)
    assert 0.0 <= exposed <= communication
    assert collectives.exposed_s(communication, 2 * window, overlap) <= exposed


def test_a_domain_without_network_holds_only_inner_layouts():
    """Without a scale-out network what leaves the domain has no time, and what stays inside does not notice."""
    alone = replace(CHIP, scaleout_bytes_per_s=0.0)
    inside = Layouts.of(tp=[1, 2, 8, 1], dp=[8, 4, 1, 1], pp=[1, 1, 1, 8])
    np.testing.assert_array_equal(step(DENSE, inside, alone).step_s, step(DENSE, inside).step_s)
    with pytest.raises(ValueError, match="no finite time for dp; it needs a link"):
        step(DENSE, Layouts.of(tp=8, dp=8), alone)


def test_a_chip_ten_times_larger_is_still_a_chip():
    chip = replace(
        CHIP,
        flop_per_s=10_000 * TERA,
        flop16_per_s=10_000 * TERA,
        hbm_bytes_per_s=33 * TERA,
        scaleup_bytes_per_s=4500 * GIGA,
    )
    result = step(DENSE, SPACES[DENSE].take(slice(0, 50)), chip)
    assert (result.hfu < 1).all()
