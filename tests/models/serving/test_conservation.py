"""Laws of conservation of serving over drawn networks, layouts and loads, extremes included: bounds by hand, and what may never get slower.

FLOPWATT_ALL_CASES=1 draws 10,000 cases of all tests together.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from models.serving import examples
from models.serving.closed_loop import closed_loop
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts, expert_exchange_s
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.kv_cache import held_context_tokens, kv_bytes_per_chip, memory_bytes_per_chip, slots
from models.serving.percentiles import latency_s
from models.serving.prompt_terms import first_token_parts
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture, parameter_counts
from tests.conftest import ALL_CASES

TESTS = 10
CASES = 10_000 // TESTS if ALL_CASES else 25
drawn = settings(max_examples=CASES, deadline=None, suppress_health_check=list(HealthCheck))
SERVING = examples.SERVING
TOLERANCE = 1 + 1e-9
SOLVED = 1 + 1e-8  # rates are solved to 1e-9 (`queues.shared_rate`)


@st.composite
def networks(draw: st.DrawFn) -> Architecture:
    """Draw a network: dense or with experts, heads grouped or a latent, all of the context or a window in some layers."""
    heads = draw(st.sampled_from([1, 8, 32, 128]))
    kv_heads = draw(st.sampled_from([n for n in (1, 8, 32, 128) if n <= heads]))
    layers = draw(st.integers(1, 128))
    sizes = {
        "layers": layers, "hidden": draw(st.sampled_from([256, 2048, 8192, 18432])), "heads": heads, "kv_heads": kv_heads,
        "head_dim": draw(st.sampled_from([64, 128, 256])), "ffn": draw(st.sampled_from([1024, 14336, 65536])),
        "vocab": draw(st.sampled_from([1000, 128_000, 256_000])),
    }  # fmt: skip
    if draw(st.booleans()):
        experts = draw(st.sampled_from([2, 8, 128, 512]))
        sizes |= {
            "experts": experts, "topk": draw(st.integers(1, min(experts, 16))), "expert_ffn": draw(st.sampled_from([256, 2048, 8192])),
            "shared_experts": draw(st.integers(0, 2)), "dense_layers": draw(st.integers(0, layers - 1)),
        }  # fmt: skip
    if draw(st.booleans()):
        sizes |= {"mla": True, "kv_lora_rank": 512, "qk_nope_dim": 128, "qk_rope_dim": 64, "v_head_dim": 128}
    elif draw(st.booleans()):
        sizes |= {"window_tokens": draw(st.integers(1, 8192)), "window_layers": draw(st.integers(1, layers))}
    return Architecture(**sizes)


@st.composite
def layouts(draw: st.DrawFn, experts: bool) -> ServingLayouts:
    """Draw a layout, from one chip to more than 100,000."""
    tp, pp = draw(st.sampled_from([1, 2, 8, 64])), draw(st.sampled_from([1, 2, 4, 16]))
    dp = draw(st.sampled_from([1, 2, 8, 128])) if experts else 1
    return ServingLayouts(tp, pp, dp, tp * dp if dp > 1 else 1)


tokens = st.one_of(st.sampled_from([1, 2, 1_000_000]), st.integers(1, 1_000_000))
outputs = st.one_of(st.sampled_from([2, 1_000_000]), st.integers(2, 1_000_000))
cvs = st.one_of(st.sampled_from([0.0, 3.0]), st.floats(0.0, 3.0))
formats = st.sampled_from(
    [Precisions("bf16", "bf16"), Precisions("fp8", "fp8"), Precisions("fp4", "fp8"), Precisions("int4", "bf16")]
)
batches = st.one_of(st.sampled_from([1.0, 100_000.0]), st.floats(0.01, 100_000.0))


@st.composite
def loads(draw: st.DrawFn) -> tuple[Architecture, ServingLayouts, dict]:
    arch = draw(networks())
    lengths = Lengths(draw(tokens), draw(outputs), draw(cvs) ** 2, draw(cvs) ** 2)
    return (
        arch,
        draw(layouts(bool(arch.experts))),
        {"lengths": lengths, "precisions": draw(formats), "constants": SERVING},
    )


def point_of(load, batch, **chip):
    arch, layout, kinds = load
    return aggregated(arch, replace(examples.CHIP, **chip), layout, batch, **kinds)


def not_above(low, high, words="") -> None:
    assert float(low) <= float(high) * TOLERANCE + 1e-12, f"{words}: {low} > {high}"


@drawn
@given(loads(), batches)
def test_what_is_read_is_held(load, batch):
    """The caches that a step reads, each at the mean context of what runs, are in the memory of the chips that read them."""
    arch, layout, kinds = load
    lengths, cache = kinds["lengths"], kinds["precisions"].kv_cache
    not_above(lengths.running_context_tokens, held_context_tokens(lengths, SERVING))
    read = batch * kv_bytes_per_chip(arch, layout, lengths.running_context_tokens, cache)
    used = memory_bytes_per_chip(arch, layout, batch, **kinds) - memory_bytes_per_chip(arch, layout, 0.0, **kinds)
    not_above(read, used * (1 + 1e-6), "caches")
    places = slots(arch, examples.CHIP, layout, **kinds)
    if places > 0:
        whole = memory_bytes_per_chip(arch, layout, places, **kinds)
        not_above(whole, SERVING.usable_memory * examples.CHIP.hbm_bytes * (1 + 1e-6), "memory in use")


@drawn
@given(loads(), batches)
def test_no_point_beats_its_roofline(load, batch):
    """Tokens/s are at most what reading the weights once a step allows; FLOPs of prompts and answers at most the peak of all chips."""
    arch, layout, kinds = load
    point = point_of(load, batch)
    assume(np.isfinite(float(point.requests_per_s)) and point.requests_per_s > 0)
    counts, lengths = parameter_counts(arch), kinds["lengths"]
    least_bytes = (
        0.5 * (counts.attention + counts.dense_ffn) / layout.tp
    )  # half a byte at least, all stages one after the other
    step_s = least_bytes / examples.CHIP.hbm_bytes_per_s
    not_above(point.requests_per_s * lengths.later_tokens * step_s, batch, "weights")
    not_above(step_s, point.tpot_s, "a step")
    passed = counts.active - counts.embedding - counts.router
    peak = 1e15 * layout.chips  # rate at 16 bit; formats of fewer bits are computed at the rate that the chip states
    not_above(point.requests_per_s * 2 * passed * (lengths.prompt + lengths.later_tokens), peak, "operations")


@drawn
@given(loads(), batches)
def test_parts_add_up(load, batch):
    point = point_of(load, batch)
    assume(np.isfinite(float(point.ttft_s)))
    not_above(abs(sum(point.shares.values()) - 1.0), 1e-9)
    not_above(abs(sum(first_token_parts(point).values()) - point.ttft_s), 1e-9 * point.ttft_s)
    assert all(float(part) >= -1e-12 for part in (*point.shares.values(), *first_token_parts(point).values()))
    order = [latency_s(point, metric, q) for metric in ("ttft", "tpot") for q in (0.5, 0.9, 0.99)]
    assert all(
        low <= high * TOLERANCE for low, high in zip(order[:2] + order[3:5], order[1:3] + order[4:], strict=True)
    )


@drawn
@given(
    loads(), batches, st.sampled_from(["flop_per_s", "flop16_per_s", "hbm_bytes_per_s", "scaleup_bytes_per_s", "scaleout_bytes_per_s"])
)  # fmt: skip
def test_twice_the_rate_is_never_slower(load, batch, rate):
    """At one batch, a chip with twice a rate serves no fewer requests, and a step takes no longer."""
    plain, faster = point_of(load, batch), point_of(load, batch, **{rate: 2 * getattr(examples.CHIP, rate)})
    assume(np.isfinite(float(plain.tpot_s)))
    not_above(plain.requests_per_s, faster.requests_per_s * SOLVED, rate)
    not_above(faster.step_s, plain.step_s, rate)
    not_above(faster.tpot_s, plain.tpot_s * SOLVED, rate)


@drawn
@given(loads(), batches)
def test_half_the_bytes_are_never_slower(load, batch):
    """Caches of 8 bit in place of 16 hold no fewer requests and make no step longer."""
    arch, layout, kinds = load
    wide, narrow = (
        (arch, layout, kinds | {"precisions": Precisions(kinds["precisions"].weights, cache)})
        for cache in ("bf16", "fp8")
    )
    places = [slots(arch, examples.CHIP, layout, **each[2]) for each in (wide, narrow)]
    not_above(places[0], places[1])
    not_above(point_of(narrow, batch).step_s, point_of(wide, batch).step_s)


@drawn
@given(loads(), st.floats(0.01, 100_000.0), st.integers(1, 64), st.integers(1, 64), st.floats(1e6, 1e12))
def test_caches_pass_their_links(load, batch, senders, receivers, link):
    """Where caches move faster than the links of either side carry, no request gets its first token; twice the links are no slower."""
    arch, layout, kinds = load
    engines = [WorkerPool(examples.CHIP, layout, count, SERVING) for count in (senders, receivers)]

    def group(bytes_per_s):
        return disaggregated(
            arch,
            *engines,
            batch,
            link=TransferLink(bytes_per_s),
            lengths=kinds["lengths"],
            precisions=kinds["precisions"],
        ).point

    point = group(link)
    one = ServingLayouts(1, 1, 1, 1)
    moved = point.requests_per_s * kv_bytes_per_chip(arch, one, kinds["lengths"].prompt, kinds["precisions"].kv_cache)
    if moved > min(senders, receivers) * layout.chips * link:
        assert not np.isfinite(point.ttft_s)
    else:
        twice = group(2 * link)
        assume(np.isfinite(float(point.ttft_s)))
        not_above(twice.ttft_s, point.ttft_s)


@drawn
@given(networks().filter(lambda arch: arch.experts), st.sampled_from([16, 64, 128]), st.floats(1.0, 1e6), formats)
def test_what_experts_exchange_does_not_depend_on_tp(arch, ranks, count, precisions):
    chip = replace(examples.CHIP, scaleup_chips=ranks)
    found = [
        float(
            expert_exchange_s(arch, chip, ServingLayouts(tp, 1, ranks // tp, ranks), precisions.weights, SERVING, count)
        )
        for tp in (1, 2, 4, 8)
    ]
    not_above(max(found), min(found) * (1 + 1e-6))


@drawn
@given(loads(), st.integers(1, 100_000))
def test_a_lone_request_is_one_and_clients_are_no_more_than_they_are(load, clients):
    """One client has one request under way at all times: rate x (TTFT + TPOT of all tokens after the first) = 1."""
    arch, layout, kinds = load
    loop = closed_loop(arch, examples.CHIP, layout, float(clients), **kinds)
    assume(np.isfinite(float(loop.ttft_s)))
    under_way = loop.requests_per_s * (loop.ttft_s + kinds["lengths"].later_tokens * loop.tpot_s)
    not_above(loop.batch, clients)
    not_above(abs(under_way / clients - 1.0), 1e-6)


def sustained(load) -> tuple[np.ndarray, np.ndarray]:
    """Return batches and rates of one pool up to the highest whose prompts have an end to their wait."""
    most = float(slots(load[0], examples.CHIP, load[1], **load[2]))
    assume(most >= 1.0)
    grid = most * np.geomspace(1e-5, 1.0, 120)
    found = point_of(load, grid)
    rates = np.asarray(found.requests_per_s)
    good = np.isfinite(found.ttft_s) & (np.maximum.accumulate(rates) <= rates)
    assume(good[0])
    end = len(grid) if good.all() else int(np.argmin(good))
    return grid[:end], rates[:end]


@drawn
@given(loads())
def test_latencies_keep_their_order_from_an_idle_engine_to_a_full_one(load):
    """At 0.01 and 0.99 of the highest rate quantiles stand in order, and the full engine is no faster on average in anything."""
    batches, rates = sustained(load)
    assume(len(batches) > 1 and rates[0] <= 0.01 * rates[-1])
    idle, full = (point_of(load, float(np.interp(u * rates[-1], rates, batches))) for u in (0.01, 0.99))
    for point in (idle, full):
        for metric in ("ttft", "tpot", "e2e"):
            found = [float(latency_s(point, metric, quantile)) for quantile in (0.5, 0.9, 0.95, 0.99)]
            assert all(low <= high * TOLERANCE for low, high in pairwise(found)), (metric, found)
    for metric in ("ttft", "tpot", "e2e"):
        not_above(latency_s(idle, metric, "mean"), latency_s(full, metric, "mean"), metric)


@drawn
@given(
    loads(), st.floats(0.01, 0.99), st.sampled_from(["encoder", "encoder queue", "slot"]),
    st.floats(1e-6, 10.0), st.floats(0.01, 1.0), st.floats(0.0, 9.0), st.sampled_from([0.5, 0.9, 0.95, 0.99]),
)  # fmt: skip
def test_an_added_stage_never_lowers_a_quantile(load, utilisation, stage, times, chance, scv, quantile):
    """An encoder before the engine, the queue for that encoder, or the wait for a place: each up to ten times the mean TTFT without it."""
    batches, rates = sustained(load)
    bare = point_of(load, float(np.interp(utilisation * rates[-1], rates, batches)))
    bare = replace(bare, slot_wait_s=0.0, slot_wait_probability=0.0)
    more = float(times * bare.ttft_s)
    added = {
        "encoder": {"encoding_s": more, "encoding_scv": scv},
        "encoder queue": {"encoding_s": 1e-9, "encoder_wait_s": chance * more, "encoder_wait_probability": chance, "encoder_wait_scv": scv},
        "slot": {"slot_wait_s": chance * more, "slot_wait_probability": chance, "slot_wait_scv": scv},
    }[stage]  # fmt: skip
    for metric in ("ttft", "e2e"):
        not_above(latency_s(bare, metric, quantile), latency_s(replace(bare, **added), metric, quantile) * SOLVED, f"{stage} {metric}")  # fmt: skip
