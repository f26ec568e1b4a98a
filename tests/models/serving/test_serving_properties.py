"""Laws that the serving models obey whatever the numbers: monotony, neutral elements, one path for arrays and scalars."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.energy import power
from models.queueing import queues
from models.queueing.arrivals import Arrivals
from models.serving import examples, kv_cache
from models.serving.closed_loop import closed_loop
from models.serving.continuous_batching import ServingPoint, aggregated
from models.serving.decode import ServingLayouts, communication_s, experts_touched
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.percentiles import MEAN, latency_s, within_slo
from models.serving.prefill import Prompts, prefill_time
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths, Precisions
from models.transformer.architecture import Architecture
from tests.conftest import few_of

MLA = Architecture(
    layers=27, hidden=2048, heads=16, kv_heads=16, head_dim=128, ffn=10944, vocab=102400, experts=64, topk=6, shared_experts=2,
    expert_ffn=1408, dense_layers=1, mla=True, kv_lora_rank=512, qk_nope_dim=128, qk_rope_dim=64, v_head_dim=128,
)  # fmt: skip
WINDOWED = replace(examples.DENSE, window_tokens=1024, window_layers=16)
FEW = settings(max_examples=few_of(60), deadline=None)

architectures = st.sampled_from([examples.DENSE, examples.MOE, MLA, WINDOWED])
powers = st.sampled_from([1, 2, 4, 8])
batches = st.floats(1.0, 600.0)
prompts = st.integers(1, 40_000)
outputs = st.integers(2, 4_000)
scvs = st.floats(0.0, 3.0)
precisions = st.sampled_from([("bf16", "bf16"), ("fp8", "fp8"), ("fp4", "fp8"), ("int4", "bf16")])
growth = st.floats(1.0, 4.0)


@st.composite
def layouts(draw: st.DrawFn) -> ServingLayouts:
    tp, dp = draw(powers), draw(powers)
    return ServingLayouts(tp, draw(st.sampled_from([1, 2, 4])), dp, draw(st.sampled_from([1, tp * dp])))


@st.composite
def loads(draw: st.DrawFn) -> dict:
    return {
        "lengths": Lengths(draw(prompts), draw(outputs)),
        "precisions": Precisions(*draw(precisions)),
        "constants": examples.SERVING,
    }


@st.composite
def open_loads(draw: st.DrawFn) -> dict:
    load = draw(loads())
    return load | {"lengths": replace(load["lengths"], input_scv=draw(scvs), output_scv=draw(scvs))}


def mixed_step(arch, chip, layout, decode, prefill, context=2000.0, prompt=4000.0):
    return step_time(
        arch, chip, layout, StepLoad(decode, context, prefill, prompt),
        precisions=Precisions("fp8", "fp8"), constants=examples.SERVING,
    )  # fmt: skip


def assert_not_above(low, high):
    assert low <= high * (1 + 1e-9) + 1e-15


@FEW
@given(architectures, layouts(), batches, st.floats(0, 8192), growth, st.sampled_from(
    ["flop_per_s", "flop16_per_s", "hbm_bytes_per_s", "scaleup_bytes_per_s", "scaleout_bytes_per_s"]))  # fmt: skip
def test_a_faster_chip_never_takes_longer(arch, layout, decode, prefill, factor, rate):
    # Beyond the domain the slower of both links counts, so each link alone can only help.
    faster = replace(examples.CHIP, **{rate: getattr(examples.CHIP, rate) * factor})
    assert_not_above(
        mixed_step(arch, faster, layout, decode, prefill).total_s,
        mixed_step(arch, examples.CHIP, layout, decode, prefill).total_s,
    )


@FEW
@given(architectures, layouts(), batches, st.floats(0, 8192), growth)
def test_more_work_never_takes_less_time(arch, layout, decode, prefill, factor):
    less = mixed_step(arch, examples.CHIP, layout, decode, prefill).total_s
    assert_not_above(less, mixed_step(arch, examples.CHIP, layout, decode * factor, prefill).total_s)
    assert_not_above(less, mixed_step(arch, examples.CHIP, layout, decode, prefill * factor).total_s)
    assert_not_above(less, mixed_step(arch, examples.CHIP, layout, decode, prefill, context=2000.0 * factor).total_s)
    assert_not_above(less, mixed_step(arch, examples.CHIP, layout, decode, prefill, prompt=4000.0 * factor).total_s)


@FEW
@given(architectures, layouts(), batches, st.floats(0, 8192))
def test_the_parts_of_a_step_add_up(arch, layout, decode, prefill):
    step = mixed_step(arch, examples.CHIP, layout, decode, prefill)
    assert sum(step.breakdown.values()) == pytest.approx(step.total_s, rel=1e-12)
    assert all(np.all(part >= 0) for part in step.breakdown.values())


@FEW
@given(architectures, st.floats(0, 10_000))
def test_a_single_chip_communicates_nothing(arch, tokens):
    assert communication_s(arch, examples.CHIP, ServingLayouts(1, 1, 1, 1), tokens, examples.SERVING) == 0.0


@FEW
@given(st.integers(1, 512), st.integers(1, 32), st.floats(0, 1e5), st.floats(1, 4), st.floats(0.5, 100))
def test_experts_touched_lie_between_topk_and_all_and_grow(experts, topk, tokens, factor, skew):
    topk = min(topk, experts)
    touched = experts_touched(experts, topk, tokens, skew)
    assert topk <= touched <= experts * (1 + 1e-12)
    assert_not_above(touched, experts_touched(experts, topk, tokens * factor, skew))
    uniform = experts * -np.expm1(
        -tokens * topk / experts
    )  # balls in bins is the limit of no skew, and its upper bound
    assert_not_above(touched, max(uniform, topk))


@FEW
@given(architectures, layouts(), open_loads(), batches, growth)
def test_throughput_and_tpot_rise_with_the_batch(arch, layout, load, batch, factor):
    small, large = (
        aggregated(arch, examples.CHIP, layout, batch, **load),
        aggregated(arch, examples.CHIP, layout, batch * factor, **load),
    )
    assert_not_above(small.requests_per_s, large.requests_per_s)
    # The fullest lane of the ranks of a pipeline is a closed form of chance: with prompts and answers of a few tokens its share of a
    # step falls faster than the step grows, by at most 8 % in 6,000 draws.
    dip = 0.1 if layout.dp > 1 and layout.pp > 1 else 0.0
    assert_not_above(small.tpot_s * (1.0 - dip), large.tpot_s)
    assert_not_above(small.memory_bytes, large.memory_bytes)


@FEW
@given(architectures, layouts(), open_loads(), batches)
def test_littles_law_and_time_shares_of_a_point(arch, layout, load, batch):
    point = aggregated(arch, examples.CHIP, layout, batch, **load)
    assert point.requests_per_s * load["lengths"].later_tokens * point.tpot_s == pytest.approx(batch, rel=1e-9)
    assert sum(point.shares.values()) == pytest.approx(1.0, rel=1e-9)
    assert sum(point.bound_shares().values()) == pytest.approx(1.0, rel=1e-9)
    # The memory of the point and the slots of the engine are two ways to the same limit: who fits in slots fits in memory.
    if point.fits:
        assert point.memory_bytes <= examples.SERVING.usable_memory * examples.CHIP.hbm_bytes * (1 + 1e-9)


@FEW
@given(
    architectures,
    layouts(),
    open_loads(),
    batches,
    st.sampled_from(["ttft", "tpot", "e2e"]),
    st.floats(0.5, 0.998),
    st.floats(0.5, 0.998),
)
def test_quantiles_rise(arch, layout, load, batch, metric, one, other):
    point = aggregated(arch, examples.CHIP, layout, batch, **load)
    low, high = sorted((one, other))
    assert latency_s(point, metric, low) <= latency_s(point, metric, high)


@FEW
@given(
    architectures,
    layouts(),
    open_loads(),
    st.floats(0.001, 20),
    growth,
    st.sampled_from(["ttft", "tpot", "e2e"]),
    st.sampled_from([MEAN, 0.5, 0.95, 0.99]),
)
def test_relaxing_a_limit_never_lowers_capacity(arch, layout, load, limit, factor, metric, quantile):
    grid = np.geomspace(1, 1000, 12)
    point = aggregated(arch, examples.CHIP, layout, grid, **load)
    tight, loose = (within_slo(point, {metric: [(quantile, limit * by)]}) for by in (1.0, factor))
    assert np.all(loose | ~tight)
    best = lambda found: np.max(np.where(found, point.requests_per_s, 0.0))
    assert best(loose) >= best(tight)


@FEW
@given(architectures, loads(), layouts(), st.integers(1, 2000), growth)
def test_more_clients_never_serve_less(arch, load, layout, clients, factor):
    few, many = (closed_loop(arch, examples.CHIP, layout, c, **load) for c in (clients, clients * factor))
    # Clients in step add at most kappa/2 n S to a round of R + Z >= n S, so that is all the rate can lose.
    assert_not_above(few.tokens_per_s, many.tokens_per_s * (1 + examples.SERVING.burst_share / 2))
    assert few.ttft_s > 0 and few.batch <= clients + 1e-9


@FEW
@given(architectures, loads(), layouts(), growth)
def test_memory_and_slots(arch, load, layout, factor):
    bigger = replace(examples.CHIP, hbm_bytes=examples.CHIP.hbm_bytes * factor)
    few, many = (kv_cache.slots(arch, chip, layout, **load) for chip in (examples.CHIP, bigger))
    assert_not_above(few, many)
    assert_not_above(many, examples.SERVING.batch_cap * layout.dp)
    wider = replace(layout, tp=layout.tp * 2)
    assert kv_cache.weight_bytes_per_chip(arch, wider, "fp8") <= kv_cache.weight_bytes_per_chip(arch, layout, "fp8")
    assert kv_cache.kv_bytes_per_chip(arch, wider, 1000, "fp8") <= kv_cache.kv_bytes_per_chip(arch, layout, 1000, "fp8")
    deeper = replace(layout, pp=layout.pp * 2)
    assert kv_cache.weight_bytes_per_chip(arch, deeper, "fp8") <= kv_cache.weight_bytes_per_chip(arch, layout, "fp8")


@FEW
@given(architectures, layouts(), layouts(), open_loads(), batches, st.floats(1e9, 1e11), growth)
def test_two_pools(arch, prefill, decode, load, batch, link, factor):
    def group(link_bytes_per_s, n_p, n_d):
        pools = (
            WorkerPool(examples.CHIP, layout, workers, load["constants"])
            for layout, workers in ((prefill, n_p), (decode, n_d))
        )
        lengths, precisions = load["lengths"], load["precisions"]
        link = TransferLink(link_bytes_per_s)
        return disaggregated(arch, *pools, batch, link=link, lengths=lengths, precisions=precisions)

    base = group(link, 2, 3)
    assert base.chips == 2 * prefill.chips + 3 * decode.chips
    assert base.point.requests_per_s * load["lengths"].later_tokens * base.point.tpot_s == pytest.approx(
        3 * batch, rel=1e-9
    )
    assert group(link * factor, 2, 3).point.unloaded_ttft_s <= base.point.unloaded_ttft_s
    more = group(link, 3, 3).point
    assert_not_above(more.prefill_wait_s, base.point.prefill_wait_s)
    # The wait for a slot may grow: a pool that waits less sends requests on less evenly.
    assert_not_above(more.unloaded_ttft_s, base.point.unloaded_ttft_s)
    # A multiple of a group serves a multiple of its rate, and a little more, since a request adds less to a worker of many; it waits no longer for prefill.
    double = group(link, 4, 6)
    assert_not_above(2 * base.point.requests_per_s, double.point.requests_per_s)
    assert double.point.requests_per_s <= 2 * base.point.requests_per_s * (1 + 1 / (3 * batch) + 1e-9)
    assert_not_above(group(1e30, 4, 6).point.prefill_wait_s, group(1e30, 2, 3).point.prefill_wait_s)
    # Decode without prefill in between is never slower than the same step with it.
    assert_not_above(base.point.tpot_s, aggregated(arch, examples.CHIP, decode, batch, **load).tpot_s)


@FEW
@given(
    architectures, st.lists(layouts(), min_size=2, max_size=4), st.lists(batches, min_size=2, max_size=4), open_loads()
)
def test_one_layout_and_many_take_the_same_path(arch, many, grid, load):
    column = ServingLayouts(
        *(np.array([getattr(one, f.name) for one in many])[:, None] for f in fields(ServingLayouts))
    )
    kinds = {name: load[name] for name in ("precisions", "constants")}
    demand = {name: load[name] for name in ("lengths", "precisions")}

    def results(layout, batch):
        point = aggregated(arch, examples.CHIP, layout, batch, **load)
        pools = (WorkerPool(examples.CHIP, layout, workers, load["constants"]) for workers in (1, 2))
        group = disaggregated(arch, *pools, batch, link=TransferLink(25e9, 1e-3), **demand)
        loop = closed_loop(arch, examples.CHIP, layout, batch, **load)
        pairs = [(metric, q) for metric in ("ttft", "tpot", "e2e") for q in (MEAN, 0.9)]
        prompt = prefill_time(arch, examples.CHIP, layout, Prompts(load["lengths"].prompt), None, **kinds)
        return [
            *(getattr(point, f.name) for f in fields(ServingPoint) if f.name not in ("shares", "arrivals", "loads")), *point.shares.values(), *point.loads,
            *(getattr(point.arrivals, f.name) for f in fields(Arrivals)),
            *(latency_s(point, *pair) for pair in pairs), *(latency_s(group.point, *pair) for pair in pairs),
            group.chips, group.prefill_memory_bytes, group.transfer_s, *group.prefill_shares.values(),
            *(getattr(loop, f.name) for f in fields(loop)), prompt.latency_s,
            within_slo(point, {"ttft": [(0.9, 1.0)]}),
        ]  # fmt: skip

    whole = results(column, np.array(grid))
    for i, layout in enumerate(many):
        for j, batch in enumerate(grid):
            for array, number in zip(whole, results(layout, batch), strict=True):
                assert np.ndim(number) == 0
                place = np.broadcast_to(array, (len(many), len(grid)))[i, j]
                assert place == number or place == pytest.approx(number, rel=1e-8)  # rates are solved to 1e-9


@FEW
@given(st.integers(1, 200), st.floats(0.01, 0.999), st.floats(0, 4))
def test_queues(servers, load, scv):
    offered = load * servers
    waiting = queues.erlang_c(servers, offered)
    terms = np.cumprod(np.concatenate([[1.0], offered / np.arange(1, servers + 1)]))  # a^k / k!
    blocking = terms[-1] / terms.sum()
    assert waiting == pytest.approx(blocking / (1 - load * (1 - blocking)), rel=1e-9)
    if servers == 1:
        khinchine = offered * 1.0 * (1 + scv) / (2 * (1 - offered))  # rate E[S^2] / (2 (1 - rho)) with S = 1 s
        assert queues.wait_mean_s(offered, 1.0, scv) == pytest.approx(khinchine, rel=1e-9)
    mean = queues.wait_mean_s(offered, 1.0, scv, servers)
    assert mean >= queues.wait_mean_s(offered * 0.9, 1.0, scv, servers)
    assert mean >= queues.wait_mean_s(offered, 1.0, scv, servers + 1)
    assert queues.wait_mean_s(float(servers), 1.0, scv, servers) == np.inf


@FEW
@given(st.integers(1, 300), st.floats(1e-3, 10), st.floats(0, 1e4))
def test_closed_loop_response_is_that_of_the_recursion(customers, service, think):
    """Exact mean value analysis: an arrival at a loop of n meets what n - 1 keep at the server."""
    met = expected = 0.0
    for n in range(1, customers + 1):
        expected = service * (1.0 + met)
        met = n * expected / (expected + think)
    response = queues.closed_loop_response_s(customers, service, think)
    assert response == pytest.approx(expected, rel=1e-6)
    assert_not_above(max(service, customers * service - think), response)
    assert_not_above(response, customers * service)


@FEW
@given(st.floats(1, 100_000), st.floats(1e-3, 10), st.floats(0, 1e6), growth)
def test_more_customers_wait_longer_and_are_served_faster(customers, service, think, factor):
    few, many = (queues.closed_loop_response_s(c, service, think) for c in (customers, customers * factor))
    assert_not_above(few, many)
    assert_not_above(customers / (few + think), customers * factor / (many + think))


@FEW
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 3000), growth)
def test_power_grows_with_work_and_stays_within_the_rating(compute, rest, idle, factor):
    constants = power.PowerConstants(1.0, 0.9, 0.6, 0.5, 0.1, 0.82, 0.76)
    shares = dict(compute=compute, memory=(1 - compute) * rest, communication=0.0, host=0.0)
    less = dict(shares, compute=compute * 0.5)
    assert power.chip_power_share(less, constants) <= power.chip_power_share(shares, constants) <= 1.0 + 1e-12
    drawn = power.serving_power_w(shares, idle, 10_000.0 * factor, constants)
    assert idle <= drawn <= 10_000.0 * factor
