"""Training models against figures derived by hand, or by a second way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from catalog.lookup import Catalog
from catalog.units import BILLION, GIB, GIGA, TERA
from models import roofline
from models.network import collectives
from models.serving.examples import CHIP, DENSE
from models.training import adapters, layouts, memory, pipeline
from models.training import layer as training_layer
from models.training import step as training
from models.training.constants import Recipe, TrainingConstants
from models.training.examples import TRAINING
from models.training.layouts import Layouts
from models.training.many_runs import Case, stack
from models.transformer import architecture, attention, moe
from models.transformer.architecture import Architecture

GPT3 = Architecture(
    layers=96, hidden=12288, heads=96, kv_heads=96, head_dim=128, ffn=49152, vocab=51200, gated=False, tied=True
)
MIXTRAL = Architecture(
    layers=32,
    hidden=4096,
    heads=32,
    kv_heads=8,
    head_dim=128,
    ffn=14336,
    vocab=32000,
    experts=8,
    topk=2,
    expert_ffn=14336,
)
DEEPSEEK_V3 = Architecture(
    layers=61, hidden=7168, heads=128, kv_heads=128, head_dim=56, ffn=18432, vocab=129280, experts=256, topk=8, shared_experts=1,
    expert_ffn=2048, dense_layers=3, mla=True, q_lora_rank=1536, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128,
)  # fmt: skip


def step(
    arch=DENSE, layout=None, *, batch=256, sequence=4096, precision="bf16", chip=CHIP, constants=TRAINING, **recipe
):
    layout = Layouts.of(dp=64) if layout is None else layout
    return training.training_step(
        arch, chip, layout, global_batch_sequences=batch, sequence_tokens=sequence, precision=precision, constants=constants,
        family="hopper", recipe=Recipe(**recipe),
    )  # fmt: skip


# -- operators -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arch", "total_billion", "active_billion"),
    # Parameter counts that the authors print; the active ones here leave the embedding table out.
    [(GPT3, 174.6, None), (MIXTRAL, 46.7, 12.9 - 0.13), (DEEPSEEK_V3, 671.0, 37.5 - 0.93), (DENSE, 8.03, 8.03 - 0.53)],
)
def test_parameter_counts_match_the_printed_sizes(arch, total_billion, active_billion):
    counts = architecture.parameter_counts(arch)
    assert counts.total / BILLION == pytest.approx(total_billion, rel=2e-3)
    if active_billion:
        assert counts.active / BILLION == pytest.approx(active_billion, rel=5e-3)


def test_parts_add_up_to_the_whole():
    counts = architecture.parameter_counts(DEEPSEEK_V3)
    assert counts.dense_non_expert + 58 * 256 * counts.per_expert == pytest.approx(counts.total, rel=1e-12)
    assert counts.moe_layers == 58


def test_step_flops_match_narayanan_equation():
    # Equation 3 of arXiv:2104.04473 counts 96 B s L h^2 (1 + s/(6h) + V/(16 L h)) with full recompute and the whole square.
    # Without recompute the layers cost 3/4 of it; the causal half of the square is s/(12h).
    h, layers, s, vocab = 12288, 96, 2048, 51200
    per_token = 72 * layers * h**2 * (1 + s / (12 * h)) + 6 * h * vocab
    assert 3 * attention.forward_flops_per_token(GPT3, s) == pytest.approx(per_token, rel=1e-12)


def test_causal_pairs_with_window_match_a_count():
    arch = replace(DENSE, window_tokens=16, window_layers=12)
    counted = sum(20 * i + 12 * min(i, 16) for i in range(1, 301))
    assert float(attention.causal_pairs(arch, 300)) == pytest.approx(counted, rel=0.02)
    assert float(attention.attended_tokens(arch, 300)) == 20 * 300 + 12 * 16


def test_kv_cache_of_latent_attention():
    # DeepSeek-V2 and V3 cache 512 + 64 elements per layer and token: 61 x 576 x 2 byte = 70,272 byte.
    assert float(attention.kv_bytes_per_token(DEEPSEEK_V3, 2)) == 70272.0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": 0}, "layers"),
        ({"experts": 4}, "topk"),
        ({"window_layers": 3}, "window_tokens"),
        ({"mla": True}, "kv_lora_rank"),
    ],
)
def test_impossible_shapes_are_refused(change, words):
    with pytest.raises(ValueError, match=words):
        replace(DENSE, **change)


# -- roofline, collectives, pipeline, experts -----------------------------------------------------------------------------


def test_small_gemm_is_memory_bound_and_large_one_is_not():
    flop_per_s, bytes_per_s = 1000 * TERA, 3 * TERA
    assert roofline.gemm_s(1, 4096, 4096, flop_per_s, bytes_per_s, 2) == pytest.approx(
        2 * (4096**2 + 2 * 4096) / bytes_per_s
    )
    assert roofline.gemm_s(8192, 8192, 8192, flop_per_s, bytes_per_s, 2) == pytest.approx(2 * 8192**3 / flop_per_s)


def test_an_empty_product_takes_no_time():
    """Stacked architectures with and without shared experts multiply by a width of 0."""
    times = roofline.gemm_s(4096, np.array([0.0, 2048.0]), 4096, 1000 * TERA, 3 * TERA, 2, 70.0, 0.5)
    assert times[0] == 0.0 and times[1] == roofline.gemm_s(4096, 2048, 4096, 1000 * TERA, 3 * TERA, 2, 70.0, 0.5)
    assert roofline.gemm_s(0, 2048, 4096, 1000 * TERA, 3 * TERA, 2, 70.0) == 0.0


def test_runs_stacked_with_and_without_shared_experts_have_finite_times():
    shared = replace(MIXTRAL, shared_experts=1)
    cases = [
        Case(arch, CHIP, {"tp": 1, "dp": 8, "ep": 8}, 64.0, 4096, "bf16", "hopper", Recipe())
        for arch in (MIXTRAL, shared)
    ]
    (batch,) = stack([replace(case, arch=replace(case.arch, shared_ffn=0)) for case in cases])
    together = batch.step(TRAINING).step_s
    alone = [step(arch, Layouts.of(dp=8, ep=8), batch=64).step_s[0] for arch in (MIXTRAL, shared)]
    assert np.isfinite(together).all() and together == pytest.approx(alone, rel=1e-12)


def test_bad_rates_are_refused():
    with pytest.raises(ValueError, match="hbm_bytes_per_s"):
        replace(CHIP, hbm_bytes_per_s=0.0)


def test_all_reduce_moves_twice_an_all_gather():
    # 2 (g - 1)/g S / beta: 8 ranks, 1 GB, 100 GB/s.
    assert collectives.all_reduce_s(GIGA, 8, 100 * GIGA) == pytest.approx(2 * 7 / 8 * GIGA / (100 * GIGA))


def test_a_link_without_bandwidth_takes_for_ever_only_if_used():
    assert collectives.all_gather_s(1.0, 2, 0.0) == math.inf
    assert collectives.all_gather_s(1.0, 1, 0.0) == 0.0
    assert collectives.all_to_all_s(1.0, 0.0, 1.0, 0.0) == 1.0


def test_bubble_of_a_simulated_pipeline():
    # 1F1B flushed: forward 1, backward 2, p stages, m micro-batches end after (m + p - 1) x 3.
    p, m = 4, 12
    forward = np.zeros((p, m))
    backward = np.zeros((p, m))
    order = {i: ["F"] * min(m, p - i) + ["B", "F"] * max(0, m - (p - i)) + ["B"] * min(m, p - i) for i in range(p)}
    done = {i: [0, 0] for i in range(p)}
    free = [0.0] * p
    place = [0] * p
    while any(place[i] < 2 * m for i in range(p)):
        for i in range(p):
            while place[i] < 2 * m:
                kind = order[i][place[i]]
                k = done[i][kind == "B"]
                if kind == "F":
                    ready = 0.0 if i == 0 else forward[i - 1, k]
                    if i and not ready:
                        break
                    forward[i, k] = free[i] = max(free[i], ready) + 1
                else:
                    ready = forward[i, k] if i == p - 1 else backward[i + 1, k]
                    if not ready:
                        break
                    backward[i, k] = free[i] = max(free[i], ready) + 2
                done[i][kind == "B"] += 1
                place[i] += 1
    idle = max(free) / 3 - m
    assert 3 * idle == pytest.approx(float(pipeline.bubble_s(p, 1, 1.0, 2.0, 1.0)))
    # What the first stage holds at its peak: forwards done less backwards done.
    held, peak = 0, 0
    for kind in order[0]:
        held += 1 if kind == "F" else -1
        peak = max(peak, held)
    assert peak == int(pipeline.in_flight_stages(p, m))


def test_unknown_schedule_lists_the_known():
    with pytest.raises(ValueError, match="1f1b, zero-bubble"):
        pipeline.schedule_code("2f2b")
    with pytest.raises(ValueError, match="schedule is at most 3"):
        Layouts.of(schedule=4)


@pytest.mark.parametrize(
    ("name", "bubble", "held"),
    [
        # Qi et al., arXiv:2401.10241, table 1: (p - 1)(F + B + W), and (p - 1)(F + B - W) for ZB-H1 with B without W; p micro-batches.
        ("1f1b", lambda p, f, b, w: (p - 1) * (f + b + w), lambda p: p),
        ("zero-bubble", lambda p, f, b, w: (p - 1) * (f + b - w), lambda p: p),
        # DeepSeek-V3, arXiv:2412.19437, table 2, with B the whole backward and an overlapped pair F&B of F + B; p + 1.
        ("dualpipe", lambda p, f, b, w: (p / 2 - 1) * (f + (b + w) + (b + w) - 3 * w), lambda p: p + 1),
    ],
)
def test_bubbles_and_memory_of_the_published_tables(name, bubble, held):
    p, f, b, w = 16, 1.0, 1.3, 0.8
    code = pipeline.schedule_code(name)
    assert float(pipeline.bubble_s(p, 1, f, b + w, w, code)) == pytest.approx(bubble(p, f, b, w))
    assert float(pipeline.in_flight_stages(p, 1000, 1, code)) == held(p)


def test_v_half_halves_bubble_and_memory_where_all_passes_are_alike():
    # Qi et al., arXiv:2405.15362, table 1: p/(2 m) of bubble, (p + 2) // 2 micro-batches.
    code = pipeline.schedule_code("v-half")
    assert float(pipeline.bubble_s(9, 1, 1.0, 2.0, 1.0, code)) == pytest.approx(8 * 3 / 2)
    assert [int(pipeline.in_flight_stages(p, 1000, 1, code)) for p in (4, 7, 8)] == [3, 4, 5]


def test_frozen_weights_leave_nothing_to_fill_a_bubble_with():
    codes = [0, 1, 2]
    assert np.ptp(pipeline.bubble_s(8, 1, 1.0, 1.0, 0.0, np.array(codes))) == 0.0


@given(
    total=st.integers(2, 130), p=st.integers(2, 40), head=st.sampled_from([0.0, 0.5, 1.0, 1.2, 3.0, 4.7, 12.0, 90.0])
)
@example(total=101, p=2, head=5.0)
@example(total=61, p=16, head=7.0)
def test_the_slowest_stage_against_every_split(total, p, head):
    """No stage of the others' splits is shorter, among those with the head on the last stage; even splits are left as they are."""
    p = min(p, total)
    layers, heads = (float(part) for part in pipeline.slowest_stage(total, p, 1.0, head))
    best = min(max(math.ceil((total - last) / (p - 1)), last + head) for last in range(total + 1))
    if total % p == 0:
        assert (layers, heads) == (total / p, 1.0)
    else:
        assert layers + heads * head == pytest.approx(best)


def test_deduplicated_dispatch_matches_drawing():
    rng = np.random.default_rng(11)
    ep, domain, k = 32, 8, 8
    homes = rng.integers(0, ep, size=(20_000, k))
    remote = [len(set(row // domain) - {0}) for row in homes]  # the sender lives in domain 0
    _, outside = moe.dispatch_copies(k, 256, ep, domain, deduplicated=True)
    assert float(outside) == pytest.approx(np.mean(remote), rel=0.01)


def test_consecutive_routing_sends_at_most_a_quarter():
    random, _ = moe.dispatch_copies(8, 256, 64, 64)
    near, _ = moe.dispatch_copies(8, 256, 64, 64, consecutive=True)
    assert near <= random / 4


# -- layouts ---------------------------------------------------------------------------------------------------------------


def brute_force_layouts(arch, chips, batch, sequence, domain):
    """The rules of `is_legal`, written once more as loops."""
    found = set()
    for tp in range(1, domain + 1):
        for pp in range(1, arch.layers + 1):
            for cp in (1, 2, 4):
                if chips % (tp * pp * cp) or arch.heads % tp:
                    continue
                if cp > 1 and sequence % (2 * cp):
                    continue
                dp = chips // (tp * pp * cp)
                for ep in range(1, max(1, arch.experts) + 1):
                    if arch.experts and (arch.experts % ep or (tp * cp * dp) % ep):
                        continue
                    for mb in (1, 2):
                        if batch % (dp * mb):
                            continue
                        m = batch // (dp * mb)
                        for v in (1, 2):
                            if v > 1 and (pp == 1 or pp * v > arch.layers + 2 or m % pp):
                                continue
                            for zero in (1, 3):
                                if zero == 3 and pp > 1:
                                    continue
                                found.add((tp, pp, dp, cp, ep, v, mb, zero, 0))
                                if v > 1 or pp == 1 or m < pp:
                                    continue
                                found.add((tp, pp, dp, cp, ep, v, mb, zero, 1))
                                if 2 * pp <= arch.layers + 2:
                                    found.add((tp, pp, dp, cp, ep, v, mb, zero, 2))
                                if pp % 2 == 0 and m % 2 == 0 and m >= 2 * pp:
                                    found.add((tp, pp, dp, cp, ep, v, mb, zero, 3))
    return found


@pytest.mark.parametrize("arch", [replace(DENSE, layers=12), replace(MIXTRAL, layers=8)])
def test_enumeration_finds_exactly_the_legal_layouts(arch):
    found = layouts.enumerate_layouts(
        arch, 16, 32, sequence_tokens=4096, scaleup_chips=8,
        space=layouts.LayoutSpace(micro_batches=(1, 2), interleaves=(1, 2), deepest=False, zeros=(1, 3), recomputes=(0,), largest_cp=4),
    )  # fmt: skip
    rows = [
        tuple(found.row(i)[k] for k in ("tp", "pp", "dp", "cp", "ep", "vpp", "micro_batch", "zero", "schedule"))
        for i in range(len(found))
    ]
    assert len(rows) == len(set(rows))
    assert set(rows) == brute_force_layouts(arch, 16, 32, 4096, 8)


def test_no_legal_layout_is_an_empty_answer():
    found = layouts.enumerate_layouts(
        DENSE, 64, 3, sequence_tokens=4096, scaleup_chips=1, space=layouts.LayoutSpace(largest_pp=1, largest_cp=1)
    )
    assert len(found) == 0
    assert len(step(DENSE, found).step_s) == 0


def test_layouts_refuse_zero_ranks():
    with pytest.raises(ValueError, match="tp"):
        Layouts.of(tp=0)


# -- memory ----------------------------------------------------------------------------------------------------------------


def test_activation_bytes_of_gpt3_against_korthikanti():
    # Equation 4 with flash: 34 s b h / t per layer, of which 2 are dropout masks and the dropout that current software
    # does not keep: 32 s b h / t. Full recompute: 2 s b h / t.
    per_token = memory.activation_bytes_per_token(GPT3, Layouts.of(tp=8, recompute=[0, 2]), 2048)
    assert per_token[0] == pytest.approx(32 * 12288 / 8)
    assert per_token[1] == pytest.approx(2 * 12288 / 8)


def test_state_of_zero_stages_against_the_paper():
    # ZeRO figure 1: 7.5e9 parameters, 64 ranks, 2 + 2 + 12 bytes: 31.4, 16.6, 1.9 GB. Gradients here are 32-bit: + 2 bytes where whole.
    arch = replace(DENSE, layers=30)
    n = architecture.parameter_counts(arch).total
    totals = sum(memory.state_bytes(arch, Layouts.of(dp=64, zero=[0, 1, 2, 3])))
    assert totals == pytest.approx(n * np.array([18, 6 + 12 / 64, 2 + 16 / 64, 18 / 64]))


# BigScience, chronicles of the 176B model's prequel (2022), throughput tables: 80 layers, hidden 14400, TP 8, full recompute,
# ZeRO-1, sequence 2048, 80 GB chips; pp, dp, micro-batch, batch, seconds per step, peak memory in GB.
PREQUEL = [
    (4, 12, 1, 2040, 189.06, 47),
    (5, 9, 1, 2043, 208.40, 44),
    (8, 6, 1, 2046, 185.75, 36),
    (10, 4, 1, 2048, 221.21, 35),
    (10, 4, 2, 2048, 207.92, 43),
    (10, 4, 4, 2048, 208.18, 55),
    (10, 4, 8, 2048, 229.69, 76),
]
PREQUEL_SHAPE = Architecture(
    layers=80, hidden=14400, heads=96, kv_heads=96, head_dim=150, ffn=57600, vocab=250880, gated=False, tied=True
)
A100 = roofline.ChipRates(
    flop_per_s=312 * TERA, flop16_per_s=312 * TERA, hbm_bytes_per_s=2.039 * TERA, hbm_bytes=80 * GIGA,
    scaleup_bytes_per_s=300 * GIGA, scaleup_chips=8, scaleout_bytes_per_s=6.25 * GIGA, tdp_w=400.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def prequel():
    """Predictions of the published runs with the catalog's constants."""
    catalog = Catalog.load()
    names = [name for name in catalog.names("constants") if name.startswith("training.")]
    constants = TrainingConstants.from_values(
        {name.removeprefix("training."): catalog.get("constants", name).value("value") for name in names}
    )
    recipe = Recipe(framework="megatron-2021", release_year=2022.5, fused_attention=False)
    predicted = []
    for pp, dp, micro_batch, batch, *_ in PREQUEL:
        layout = Layouts.of(tp=8, pp=pp, dp=dp, micro_batch=micro_batch, zero=1, recompute=2, sequence_parallel=0)
        predicted.append(
            training.training_step(
                PREQUEL_SHAPE, A100, layout, global_batch_sequences=batch, sequence_tokens=2048, precision="bf16", constants=constants,
                family="ampere", recipe=recipe,
            )
        )  # fmt: skip
    return predicted


def test_peak_memory_of_published_runs(prequel):
    ratio = np.array([p.memory_bytes[0] / GIGA / row[-1] for p, row in zip(prequel, PREQUEL, strict=True)])
    assert np.median(np.abs(ratio - 1)) < 0.10
    assert np.abs(ratio - 1).max() < 0.25


def test_step_time_of_published_runs(prequel):
    ratio = np.array([p.step_s[0] / row[-2] for p, row in zip(prequel, PREQUEL, strict=True)])
    assert np.median(np.abs(ratio - 1)) < 0.11
    assert np.abs(ratio - 1).max() < 0.20


def test_fit_and_tightness_agree_at_the_edges():
    capacity = 80 * GIGA
    assert memory.fits(capacity, capacity) and not memory.fits(capacity * 1.0001, capacity)
    assert [int(memory.tightness(share * capacity, capacity)) for share in (0.89, 0.9, 1.1, 1.11)] == [0, 1, 1, 2]


# -- the step --------------------------------------------------------------------------------------------------------------


def test_one_chip_does_what_the_roofline_says():
    """Without size effects, overheads and traffic the step is FLOPs over sustained peak."""
    free = dict.fromkeys(
        (
            "saturation_size",
            "elementwise_factor",
            "launch_floor_s",
            "step_overhead_s",
            "optimizer_factor",
            "release_rate_dense",
        ),
        1e-12,
    )
    constants = replace(
        TRAINING,
        **free,
        efficiency_16bit=0.5,
        generation_hopper=1.0,
        attention_efficiency=0.5,
        attention_hopper=1.0,
        attention_backward=2.0,
    )
    result = step(layout=Layouts.of(), batch=4, constants=constants)
    flop = 3 * attention.forward_flops_per_token(DENSE, 4096) * 4 * 4096
    assert result.step_s[0] == pytest.approx(flop / (0.5 * CHIP.flop_per_s), rel=1e-6)
    assert result.mfu[0] == pytest.approx(0.5, rel=1e-6)


def test_recompute_shows_in_hfu_and_not_in_mfu():
    result = step(layout=Layouts.of(dp=64, recompute=[0, 2]))
    assert result.hfu[0] == pytest.approx(result.mfu[0])
    share = (attention.forward_flops_per_token(DENSE, 4096) - 2 * 4096 * 128256) / attention.forward_flops_per_token(
        DENSE, 4096
    )
    assert result.hfu[1] / result.mfu[1] == pytest.approx(1 + share / 3)
    assert result.mfu[1] < result.mfu[0]


def test_one_chip_neither_communicates_nor_waits():
    breakdown = step(layout=Layouts.of(), batch=4).breakdown
    for name in ("tp", "cp", "ep", "dp", "pp_bubble", "pp_transfer"):
        assert breakdown[name][0] == 0.0, name


def test_whole_iteration_graphs_are_never_slower():
    layout = Layouts.of(dp=64, ep=[1, 2, 4, 8])
    slow, fast = (step(MIXTRAL, layout, cuda_graphs=g).step_s for g in ("partial", "full"))
    assert (fast < slow).all()


def test_interleaving_shortens_the_bubble_only():
    result = step(replace(DENSE, layers=32), Layouts.of(pp=8, dp=8, vpp=[1, 4]), batch=256)
    assert result.breakdown["pp_bubble"][1] == pytest.approx(result.breakdown["pp_bubble"][0] / 4)
    assert result.breakdown["pp_transfer"][1] > result.breakdown["pp_transfer"][0]


def test_long_chunks_of_layouts_change_nothing(monkeypatch):
    many = layouts.enumerate_layouts(DENSE, 64, 256, sequence_tokens=4096, scaleup_chips=8)
    whole = step(layout=many)
    monkeypatch.setattr(training, "CHUNK", 100)
    parts = step(layout=many)
    assert np.array_equal(whole.step_s, parts.step_s) and np.array_equal(whole.memory_bytes, parts.memory_bytes)


def test_experts_without_parallelism_are_split_by_tp():
    run = training_layer.Run.of(MIXTRAL, CHIP, Layouts.of(tp=[1, 8]), 4096, "bf16", TRAINING, "hopper", Recipe())
    times = training_layer.routed_experts_s(run)
    assert 1 / 8 < times[1] / times[0] < 1 / 6


# -- constants and recipe ----------------------------------------------------------------------------------------------------


def test_constants_name_what_is_missing_unknown_or_wrong():
    values = {name: getattr(TRAINING, name) for name in TrainingConstants.__dataclass_fields__}
    assert TrainingConstants.from_values(values) == TRAINING
    del values["fragmentation"]
    values |= {"warp": 9.0, "permute_factor": float("nan")}
    with pytest.raises(ValueError, match="missing fragmentation; unknown warp; not positive and finite permute_factor"):
        TrainingConstants.from_values(values)


@pytest.mark.parametrize(("field", "value"), [("framework", "jaxformer"), ("cuda_graphs", "some")])
def test_recipe_lists_the_known_kinds(field, value):
    with pytest.raises(ValueError, match="known: "):
        Recipe(**{field: value})


def test_unknown_precision_lists_the_known():
    with pytest.raises(ValueError, match="bf16"):
        TRAINING.gemm_efficiency("bf17")


def test_memory_is_in_bytes():
    total = step(layout=Layouts.of(dp=64, zero=3, recompute=2)).memory_bytes[0]
    assert 1 * GIB < total < 80 * GIB


# -- offload and tuning ------------------------------------------------------------------------------------------------------


def test_offload_trades_memory_for_time_on_the_link():
    chip = replace(CHIP, host_bytes_per_s=50 * GIGA)
    layout = Layouts.of(dp=64, zero=1, offload=[0, 1, 2, 3])
    result = step(layout=layout, chip=chip)
    assert np.all(np.diff(result.memory_bytes) < 0) and np.all(result.step_s[1:] >= result.step_s[0])
    # 12 bytes per parameter of 1/64, both ways at once, at 0.8 of the link
    state = 12 * architecture.parameter_counts(DENSE).total / 64 / (0.8 * 50 * GIGA)
    assert result.breakdown["offload"][1] == pytest.approx(state)
    faster = step(layout=layout, chip=replace(chip, host_bytes_per_s=500 * GIGA))
    assert np.all(faster.step_s <= result.step_s)
    held = memory.host_bytes(DENSE, layout, global_batch_sequences=256, sequence_tokens=4096)
    assert held[0] == 0.0 and held[3] == pytest.approx(held[1] + held[2])


def test_offload_without_a_link_has_no_time():
    with pytest.raises(ValueError, match="no finite time for offload"):
        step(layout=Layouts.of(dp=64, offload=1))


def test_dualpipe_holds_two_copies_and_hides_the_exchange():
    layout = Layouts.of(pp=4, dp=64, ep=32, schedule=[0, 3])
    result = step(DEEPSEEK_V3, layout, batch=1024)
    assert result.breakdown["ep"][1] < result.breakdown["ep"][0]
    assert result.breakdown["pp_bubble"][1] < result.breakdown["pp_bubble"][0]
    weights, gradients, optimizer = memory.state_bytes(DEEPSEEK_V3, layout)
    # The fullest stage lies beside a less full one, and embedding and head beside the other: below twice.
    assert 1.8 < weights[1] / weights[0] <= 2.0 and 1.8 < gradients[1] / gradients[0] <= 2.0
    assert optimizer[1] == pytest.approx(optimizer[0], rel=0.05)


def test_a_limit_on_groups_spares_deduplicated_copies_only():
    plain = moe.dispatch_copies(8, 256, 64, 8)
    assert moe.dispatch_copies(8, 256, 64, 8, domain_limit=4) == plain
    _, outside = moe.dispatch_copies(8, 256, 64, 8, deduplicated=True, domain_limit=4)
    assert float(outside) == pytest.approx(4 * 7 / 8)


def test_adapter_parameters_against_a_count():
    # q, k and v as one matrix of 6,144 outputs, and the projection of 4,096; gate and up of 28,672, and down
    heads_of, ffn = 4096 + 6144 + 4096 + 4096, 4096 + 28672 + 14336 + 4096
    for adapts_ffn, per_layer in ((False, heads_of), (True, heads_of + ffn)):
        recipe = Recipe(adapter_rank=8, adapts_ffn=adapts_ffn)
        assert float(adapters.adapter_parameters(DENSE, recipe)) == 32 * 8 * per_layer
