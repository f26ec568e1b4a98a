"""Laws of serving where no published run looks: what is held is at least what is read, what is sent passes its links, a lone request is one."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.queueing.queues import both_waits
from models.serving.closed_loop import closed_loop
from models.serving.closed_points import closed_pools
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts, communication_s, decode_attention_s, dense_times_s, expert_exchange_s
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.examples import BF16, CHIP, DENSE, MOE, ONE, SERVING
from models.serving.kv_cache import cache_bytes_per_chip, held_context_tokens, slots, weight_bytes_per_chip
from models.serving.prefix_cache import PrefixCache, Tier, Zipf, shared_prefixes
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths


def test_memory_holds_what_steps_read():
    """Answers of cv 2 that run hold (O - 1)(1 + 2^2)/2 on average, long ones being met most: 500 + 2,497.5 tokens, not 500 + 900."""
    even, spread = Lengths(500, 1000), Lengths(500, 1000, output_scv=4.0)
    assert held_context_tokens(even, SERVING) == 500 + 0.9 * 1000
    assert held_context_tokens(spread, SERVING) == 500 + 999 * 2.5
    unlimited = {"precisions": BF16, "constants": replace(SERVING, batch_cap=1e9)}
    few, many = (slots(DENSE, CHIP, ONE, lengths=lengths, **unlimited) for lengths in (spread, even))
    assert many / few == pytest.approx(2997.5 / 1400)


def test_requests_that_run_hold_as_drawn_answers_do():
    """Drawn by hand: the tokens that a stationary stream of gamma answers holds, one place each, over the places that are taken."""
    rng, mean, scv = np.random.default_rng(7), 400.0, 4.0
    answers = np.maximum(np.rint(rng.gamma(1 / scv, mean * scv, 400_000)), 1.0)
    held = (answers * (500.0 + (answers - 1.0) / 2.0)).sum() / answers.sum()
    predicted = held_context_tokens(
        Lengths(500, answers.mean(), output_scv=answers.var() / answers.mean() ** 2), SERVING
    )
    assert predicted == pytest.approx(held, rel=0.01)
    # Each answer of n tokens is met with 0, 1, ..., n - 1 of them.
    square = (answers * 500.0**2 + 500.0 * answers * (answers - 1.0) + (answers - 1.0) * answers * (2 * answers - 1.0) / 6.0).sum()  # fmt: skip
    spread = square / answers.sum() / held**2 - 1.0
    lengths = Lengths(500, answers.mean(), output_scv=answers.var() / answers.mean() ** 2)
    assert lengths.scv_of_held == pytest.approx(spread, rel=0.05)


@given(st.floats(1.0, 1e6), st.floats(2.0, 1e6), st.floats(0.0, 9.0), st.floats(0.0, 9.0))
def test_no_step_reads_more_than_is_held(prompt, output, input_scv, output_scv):
    lengths = Lengths(prompt, output, input_scv, output_scv)
    assert held_context_tokens(lengths, SERVING) >= lengths.running_context_tokens


def exchange_s(arch, layout, tokens, chip=CHIP, prefill=0.0, precision="fp8"):
    """Seconds of all exchanges of a pass, without their starts."""
    found, started = (
        expert_exchange_s(arch, chip, layout, precision, SERVING, m, p) for m, p in ((tokens, prefill), (0.0, 0.0))
    )
    return float(found - started)


@given(st.sampled_from([16, 32, 64, 128]), st.floats(1.0, 1e5))
def test_what_experts_exchange_does_not_depend_on_how_attention_is_split(ranks, tokens):
    """R chips send k (R - 1)/R^2 of the m tokens each, k copies of a token in all, whatever part of R is tensor parallel."""
    chip, width = replace(CHIP, scaleup_chips=ranks), 1.5 * MOE.hidden
    copies = MOE.topk * (ranks - 1) / ranks**2 * tokens
    expected = 2 * MOE.moe_layers * copies * width / (CHIP.scaleup_bytes_per_s * SERVING.all_to_all_efficiency)
    for tp in (1, 2, 4, 8):
        found = exchange_s(MOE, ServingLayouts(tp, 1, ranks // tp, ranks), tokens, chip)
        assert found == pytest.approx(expected, rel=1e-6)


def test_dispatch_and_combine_take_the_place_of_an_all_reduce():
    """With dp 2 each of 48 layers of experts has one all-reduce, that of attention; with dp 1 two."""
    alone, beside = (
        float(communication_s(MOE, CHIP, ServingLayouts(4, 1, dp, 4 * dp), 100.0 * dp, SERVING)) for dp in (1, 2)
    )
    assert beside == pytest.approx(alone / 2)


def test_a_prompt_crosses_to_as_many_domains_as_its_groups_allow():
    """8 domains of 8: k = 8 copies cross 7 times in decode, a prompt's token to 5.25 x 7/8 domains, and to 2 x 7/8 where the gate takes 2 groups."""
    layout, tokens = ServingLayouts(1, 1, 64, 64), 64 * 1000.0
    sent = tokens / 64 * 1.5 * MOE.hidden * 2 * MOE.moe_layers / (50e9 * SERVING.all_to_all_network_efficiency)
    distinct = 8 * (1 - (7 / 8) ** 8)
    grouped = replace(MOE, routed_groups=2)
    assert exchange_s(MOE, layout, tokens) == pytest.approx(sent * 7, rel=1e-6)
    assert exchange_s(MOE, layout, tokens, prefill=tokens) == pytest.approx(sent * distinct * 7 / 8, rel=1e-6)
    assert exchange_s(grouped, layout, tokens, prefill=tokens) == pytest.approx(sent * 2 * 7 / 8, rel=1e-6)
    assert exchange_s(grouped, layout, tokens) == exchange_s(MOE, layout, tokens)  # decode sends a copy to each expert


def test_an_exchange_carries_what_experts_take():
    """Experts of half the width take half the bytes; tokens of 16-bit products are dispatched in 16 bit: (2 + 2)/(1 + 2) of the bytes of 8."""
    layout = ServingLayouts(1, 1, 16, 16)
    assert exchange_s(replace(MOE, expert_hidden=MOE.hidden // 2), layout, 1e4) == pytest.approx(
        exchange_s(MOE, layout, 1e4) / 2, rel=1e-6
    )
    assert exchange_s(MOE, layout, 1e4, precision="bf16") == pytest.approx(
        exchange_s(MOE, layout, 1e4) * 4 / 3, rel=1e-6
    )


def lone_step_s(arch, layout, context):
    load = StepLoad(layout.in_stage(1.0), context)
    return float(step_time(arch, CHIP, layout, load, precisions=BF16, constants=SERVING).breakdown["kv_memory"])


@given(st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4, 16]), st.floats(1.0, 1e6))
def test_a_lone_request_reads_its_own_cache_whole(pp, dp, context):
    """All stages hold their layers of its context, one attention rank holds it: 131,072 bytes a token at 16 bit, whatever the replica."""
    expected = context * 131_072 / (CHIP.hbm_bytes_per_s * SERVING.kv_efficiency)
    assert lone_step_s(DENSE, ServingLayouts(1, pp, dp, dp), context) == pytest.approx(expected, rel=1e-9)


@given(st.sampled_from([(1, 1), (4, 1), (1, 8), (2, 4)]), st.floats(10.0, 100_000.0), st.floats(2.0, 2000.0))
def test_one_client_meets_nobody_but_itself(shape, prompt, output):
    """TPOT of one client is the step of its own request, whatever share of its time it decodes; so it is with separate pools."""
    pp, dp = shape
    layout, lengths = ServingLayouts(1, pp, dp, dp), Lengths(prompt, output)
    load = StepLoad(1.0, lengths.running_context_tokens)
    step = step_time(DENSE, CHIP, layout, load, precisions=BF16, constants=SERVING).total_s
    loop = closed_loop(DENSE, CHIP, layout, 1, lengths=lengths, precisions=BF16, constants=SERVING)
    assert loop.tpot_s == pytest.approx(step, rel=1e-9) and loop.swing == loop.others == 0.0
    pools = (WorkerPool(CHIP, layout, workers, SERVING) for workers in (2, 3))
    at = partial(disaggregated, DENSE, *pools, link=TransferLink(25e9), lengths=lengths, precisions=BF16)
    alone = closed_pools(at, 1.0, SERVING)[0].point
    assert alone.tpot_s == pytest.approx(step, rel=1e-9)


@given(st.integers(1, 400), st.sampled_from([0.0, 1.0]))
def test_clients_of_a_loop_meet_the_others_and_themselves(clients, scv):
    lengths = Lengths(1000, 200, scv, scv)
    loop = closed_loop(DENSE, CHIP, ONE, clients, lengths=lengths, precisions=BF16, constants=SERVING)
    assert loop.seen == pytest.approx(
        1 + (loop.served - 1) / loop.served * loop.batch, rel=0.05
    )  # but for its last round
    assert loop.batch <= loop.served and 1.0 <= loop.seen <= loop.served


def test_a_few_requests_of_an_open_stream_meet_themselves_too():
    """At a ten-thousandth of a request in decode TPOT is that of one, in stages and with pools: 100,000 tokens of 131,072 bytes are 5 ms of it."""
    lengths = Lengths(100_000, 200)
    for layout in (ONE, ServingLayouts(1, 4, 1, 1), ServingLayouts(1, 1, 8, 8)):
        load = StepLoad(1.0, lengths.running_context_tokens)
        step = step_time(DENSE, CHIP, layout, load, precisions=BF16, constants=SERVING).total_s
        run = {"lengths": lengths, "precisions": BF16}
        one = aggregated(DENSE, CHIP, layout, 1e-4, constants=SERVING, **run)
        assert one.tpot_s == pytest.approx(step, rel=0.01)
        pools = (WorkerPool(CHIP, layout, 1, SERVING) for _ in range(2))
        assert disaggregated(DENSE, *pools, 1e-4, link=TransferLink(25e9), **run).point.tpot_s == pytest.approx(
            step, rel=0.05
        )


LINKED = st.tuples(st.integers(1, 6), st.integers(1, 6), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))


def linked(shape, link_bytes_per_s, batch, prompt=4000.0):
    n_p, n_d, first, second = shape
    prefill, decode = (
        WorkerPool(CHIP, ServingLayouts(first, 1, 1, 1), n_p, SERVING),
        WorkerPool(CHIP, ServingLayouts(second, 1, 1, 1), n_d, SERVING),
    )
    lengths = Lengths(prompt, 100)
    return disaggregated(
        DENSE, prefill, decode, batch, link=TransferLink(link_bytes_per_s), lengths=lengths, precisions=BF16
    )


@given(LINKED, st.floats(1e8, 1e11), st.floats(0.5, 60.0))
def test_caches_move_no_faster_than_links_carry(shape, link, batch):
    """131,072 bytes a token over as many links as the side with fewer chips has; the wait grows without end as they fill."""
    n_p, n_d, first, second = shape
    point = linked(shape, link, batch).point
    load = point.requests_per_s * 4000 * 131_072 / (min(n_p * first, n_d * second) * link)
    assert (load < 1.0) or np.isinf(point.ttft_s)
    faster = linked(shape, 2 * link, batch).point
    assert faster.ttft_s <= point.ttft_s or np.isinf(point.ttft_s)
    if load < 1.0 and np.isfinite(point.ttft_s):
        alone = 4000 * 131_072 / (min(first, second) * link)
        free = linked(shape, 1e30, batch).point
        waits = point.prefill_wait_s - free.prefill_wait_s
        assert waits == pytest.approx(alone * load / (1 - load), rel=1e-6, abs=1e-12)


@given(LINKED, st.floats(1e8, 1e10), st.integers(1, 500))
def test_clients_move_no_more_than_links_carry(shape, link, clients):
    n_p, n_d, first, second = shape
    group = closed_pools(partial(linked, shape, link), float(clients), SERVING)[0].point
    carried = min(n_p * first, n_d * second) * link / (4000 * 131_072)
    assert group.requests_per_s <= carried * (1 + 1e-9)


@given(
    st.floats(0.0, 5.0),
    st.floats(0.01, 1.0),
    st.floats(0.3, 3.0),
    st.floats(0.0, 5.0),
    st.floats(0.01, 1.0),
    st.floats(0.3, 3.0),
)
def test_waits_of_two_stages_add_up(m1, p1, c1, m2, p2, c2):
    """Mean and variance of a sum of independent waits are the sums of theirs: v = m^2 ((1 + c)/p - 1)."""

    def variance(mean, chance, scv):
        return mean * mean * ((1.0 + scv) / chance - 1.0)

    mean, chance, scv = both_waits((m1, p1, c1), (m2, p2, c2))
    assert mean == m1 + m2 and max(p1, p2) <= chance <= 1.0
    assert variance(mean, chance, scv) == pytest.approx(variance(m1, p1, c1) + variance(m2, p2, c2), rel=1e-6, abs=1e-9)


@given(st.integers(1, 200), st.floats(0.0, 1.5), st.integers(100, 7900), st.floats(0.0, 20e9))
def test_shared_prefixes_are_held_once(prefixes, exponent, tokens, tier):
    """With n requests of I + 0.9 O tokens, D(n) prefixes are held once, and no less of them than the tier keeps, unless more would run without it."""
    lengths = Lengths(8000, 200)
    cache = PrefixCache(tokens, Zipf(prefixes, exponent), (Tier(tier, np.inf, 0.0, in_hbm=True),), 8)
    shared, unlimited = shared_prefixes(cache), replace(SERVING, batch_cap=1e9)
    n = float(slots(DENSE, CHIP, ONE, lengths=lengths, precisions=BF16, constants=unlimited, shared=shared))
    each, room = 131_072.0, float(cache_bytes_per_chip(DENSE, CHIP, ONE, "bf16", unlimited))
    chances = np.arange(1, prefixes + 1.0) ** -exponent
    in_use = min(float((1 - (1 - chances / chances.sum()) ** n).sum()), n)
    held = n * each * (8180 - tokens) + max(in_use * each * tokens, tier)
    apart = float(slots(DENSE, CHIP, ONE, lengths=lengths, precisions=BF16, constants=unlimited))
    assert n >= apart * (1 - 1e-9)  # what is kept gives way before a request waits
    assert held == pytest.approx(room, rel=0.02) or n == pytest.approx(apart)


def test_grouped_heads_are_bound_by_arithmetic_where_it_is_scarce():
    """A query over c tokens: 2 x 32 heads x 256 x 32 layers FLOPs each; four drafts beside it read the cache once and compute five times."""
    weak = replace(CHIP, flop16_per_s=20e12)
    flops = 5 * 2 * 32 * 256 * 32 * 4000.0
    run = partial(
        decode_attention_s, DENSE, sequences=1.0, context_tokens=4000.0, kv_precision="bf16", constants=SERVING
    )
    found = run(chip=weak, layouts=ONE, queries=5.0)
    assert found == pytest.approx(flops / (20e12 * SERVING.attention_efficiency))
    assert run(chip=CHIP, layouts=ONE, queries=5.0) == run(chip=CHIP, layouts=ONE, queries=1.0) < found


def test_a_router_is_whole_on_each_tensor_rank():
    """2 W(2) - W(1) is what both ranks hold: 48 layers of 2,048 x 128 in 16 bit; each reads all of it."""
    routers = 48 * 2048 * 128 * 2.0
    two = ServingLayouts(2, 1, 1, 2)
    held = [float(weight_bytes_per_chip(MOE, layout, "bf16")) for layout in (ONE, two)]
    assert 2.0 * held[1] - held[0] == pytest.approx(routers, rel=1e-6)
    read = [float(dense_times_s(MOE, CHIP, layout, "bf16", SERVING, 1.0, 1.0)[1]) for layout in (ONE, two)]
    assert 2.0 * read[1] - read[0] == pytest.approx(routers / (CHIP.hbm_bytes_per_s * SERVING.memory_efficiency), rel=1e-6)  # fmt: skip


def test_shared_prefixes_are_held_once_beside_a_pool_of_states():
    """Half of the memory for states, which set no limit here; requests of one prefix own 180 + 500 tokens each in the other half."""
    arch = replace(DENSE, linear_layers=16, state_width=64, state_inputs=0, state_dim=1, state_conv=0)
    pooled = replace(SERVING, batch_cap=1e9, state_share=0.5)
    kinds = {"lengths": Lengths(8000, 200), "precisions": BF16, "constants": pooled}
    shared = shared_prefixes(PrefixCache(7500, Zipf(1, 0.0), (Tier(0.0, np.inf, 0.0, in_hbm=True),), 8))
    n, apart = (float(slots(arch, CHIP, ONE, shared=prefixes, **kinds)) for prefixes in (shared, None))
    room = 0.5 * float(cache_bytes_per_chip(arch, CHIP, ONE, "bf16", pooled))
    assert n * 680 + 7500 == pytest.approx(room / 65_536, rel=0.01)
    assert n > 10 * apart
