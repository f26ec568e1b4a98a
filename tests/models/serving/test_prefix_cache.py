"""Laws of prefix caches and of speculation, and hit rates against a cache that is simulated request by request."""

from __future__ import annotations

import heapq
from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.queueing.caches import session_hit_rate, zipf_groups, zipf_hit_rate
from models.serving import examples
from models.serving.closed_loop import closed_loop
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.kv_cache import held_context_tokens
from models.serving.prefix_cache import (
    Given,
    PrefixCache,
    Sessions,
    Tier,
    Zipf,
    loaded_share,
    tier_hits,
)
from models.serving.speculation import Speculation, speculative_speedup, speculative_step, tokens_per_step
from models.serving.workload import Lengths
from tests.conftest import few_of

FEW = settings(max_examples=few_of(30), deadline=None)
ONE = ServingLayouts(1, 1, 1, 1)
HBM = Tier(8e9, np.inf, 0.0, in_hbm=True)
LENGTHS = Lengths(6000.0, 300.0, 0.5, 1.0)
KINDS = {"precisions": examples.BF16, "constants": examples.SERVING}
LOAD = {"lengths": LENGTHS, **KINDS}

growth = st.floats(1.0, 20.0)
capacities = st.floats(1e8, 1e13)
bandwidths = st.floats(1e7, 1e12)
batches = st.floats(1.0, 400.0)
reuses = st.one_of(
    st.builds(Given, st.floats(0.0, 1.0)),
    st.builds(Zipf, st.floats(1.0, 1e7), st.floats(0.0, 2.0)),
    st.builds(Sessions, st.floats(1.0, 40.0), st.floats(0.5, 3600.0)),
)
prefixes = st.integers(1, 5999)


def point(cache: PrefixCache | None = None, batch: float = 32.0, **more):
    return aggregated(examples.DENSE, examples.CHIP, ONE, batch, **LOAD | more, cache=cache)


def assert_not_above(low, high):
    assert low <= high * (1 + 1e-7) + 1e-12


def lru_hit_rate(stream, places: int, after: int) -> float:
    held: OrderedDict[int, None] = OrderedDict()
    hits = total = 0
    for i, item in enumerate(stream):
        if i >= after:
            total += 1
            hits += item in held
        held[item] = None
        held.move_to_end(item)
        if len(held) > places:
            held.popitem(last=False)
    return hits / total


@pytest.mark.parametrize("exponent", [0.6, 1.0, 1.3])
@pytest.mark.parametrize("places", [20, 100, 400])
def test_zipf_hit_rate_is_that_of_a_simulated_cache(exponent, places):
    chance = np.arange(1.0, 1001.0) ** -exponent
    stream = np.random.default_rng(7).choice(1000, size=60_000, p=chance / chance.sum())
    assert zipf_hit_rate(places, 1000, exponent) == pytest.approx(lru_hit_rate(stream, places, 10_000), abs=0.02)


@pytest.mark.parametrize("places", [30, 120, 400])
@pytest.mark.parametrize("requests", [2.0, 8.0])
def test_session_hit_rate_is_that_of_a_simulated_cache(places, requests):
    rng, gap, rate = np.random.default_rng(11), 20.0, 10.0
    # Sessions arrive so that requests come at `rate`; each goes on with chance 1 - 1/n after an exponential gap.
    starts = np.cumsum(rng.exponential(requests / rate, size=int(40_000 / requests)))
    events = [(time, session) for session, time in enumerate(starts)]
    heapq.heapify(events)
    stream = []
    while events:
        time, session = heapq.heappop(events)
        stream.append(session)
        if rng.random() < 1.0 - 1.0 / requests:
            heapq.heappush(events, (time + rng.exponential(gap), session))
    simulated = lru_hit_rate(stream[: int(0.9 * len(stream))], places, 5_000)
    assert session_hit_rate(places, rate, requests, gap) == pytest.approx(simulated, abs=0.03)


@pytest.mark.parametrize("exponent", [0.0, 0.7, 1.0, 1.5])
def test_groups_of_ranks_stand_for_every_rank(exponent):
    each = np.arange(1.0, 50_001.0) ** -exponent
    each /= each.sum()
    number, chance = zipf_groups(50_000, exponent)
    assert number.sum() == 50_000
    for time in (10.0, 1e3, 1e5):
        exact = (each * -np.expm1(-each * time)).sum()
        assert (number * chance * -np.expm1(-chance * time)).sum() == pytest.approx(exact, rel=2e-3)


@FEW
@given(
    st.floats(0, 1e6),
    growth,
    st.floats(1, 1e6),
    st.floats(0, 2),
    st.floats(1, 30),
    st.floats(1, 600),
    st.floats(0.01, 100),
)
def test_more_room_never_finds_less(places, factor, population, exponent, requests, gap, rate):
    assert_not_above(zipf_hit_rate(places, population, exponent), zipf_hit_rate(places * factor, population, exponent))
    assert_not_above(
        session_hit_rate(places, rate, requests, gap), session_hit_rate(places * factor, rate, requests, gap)
    )
    assert 0.0 <= session_hit_rate(places, rate, requests, gap) <= 1.0 - 1.0 / requests + 1e-12
    assert_not_above(
        session_hit_rate(places, rate * factor, requests, gap), session_hit_rate(places, rate, requests, gap)
    )


@FEW
@given(reuses, st.lists(st.floats(0, 1e5), min_size=1, max_size=4), st.floats(0.01, 100))
def test_hits_of_all_tiers_are_those_of_one_of_their_joint_size(reuse, rooms, rate):
    tiers = tuple(Tier(1e9, 1e10, 0.0) for _ in rooms)
    together = tier_hits(PrefixCache(1000, reuse, tiers[:1], 8), (sum(rooms),), rate)[0]
    assert sum(tier_hits(PrefixCache(1000, reuse, tiers, 8), tuple(rooms), rate)) == pytest.approx(together, abs=1e-9)


@FEW
@given(prefixes, bandwidths, batches)
def test_a_given_hit_rate_of_zero_changes_nothing(prefix, rate, batch):
    with_cache = point(PrefixCache(prefix, Given(0.0), (Tier(1e12, rate, 1e-4),), 8), batch)
    without = point(None, batch)
    for name in (
        "requests_per_s",
        "ttft_s",
        "tpot_s",
        "memory_bytes",
        "slots",
        "prefill_wait_s",
        "input_scv",
        "tpot_deviation_s",
    ):
        assert getattr(with_cache, name) == pytest.approx(getattr(without, name), rel=1e-9), name


@FEW
@given(reuses, prefixes, capacities, bandwidths, growth, batches)
def test_more_bandwidth_never_makes_prefill_slower(reuse, prefix, capacity, rate, factor, batch):
    slow, fast = (
        point(PrefixCache(prefix, reuse, (Tier(capacity, r, 1e-4),), 8), batch) for r in (rate, rate * factor)
    )
    assert_not_above(fast.prefill_s, slow.prefill_s)
    assert_not_above(fast.prompt_s, slow.prompt_s)
    assert_not_above(slow.requests_per_s, fast.requests_per_s)


@FEW
@given(reuses, prefixes, capacities, bandwidths, growth, batches)
def test_more_capacity_outside_the_chips_never_makes_prefill_slower(reuse, prefix, capacity, rate, factor, batch):
    small, large = (
        point(PrefixCache(prefix, reuse, (Tier(c, rate, 1e-4),), 8), batch) for c in (capacity, capacity * factor)
    )
    assert_not_above(large.prefill_s, small.prefill_s)
    assert_not_above(large.prompt_s, small.prompt_s)
    assert_not_above(small.requests_per_s, large.requests_per_s)
    assert_not_above(point(None, batch).requests_per_s, small.requests_per_s)
    assert_not_above(small.prompt_s, point(None, batch).prompt_s)


@FEW
@given(reuses.filter(lambda reuse: not isinstance(reuse, Zipf)), prefixes, st.floats(1e8, 3e10), growth)
def test_a_cache_takes_no_place_from_requests(reuse, prefix, capacity, factor):
    """An engine drops what no request uses before one waits; what requests find in memory they do not hold again."""
    small, large = (
        point(PrefixCache(prefix, reuse, (replace(HBM, bytes_per_chip=c),), 8)) for c in (capacity, capacity * factor)
    )
    alone, usable = point(), examples.SERVING.usable_memory * examples.CHIP.hbm_bytes
    for found in (small, large):
        assert_not_above(alone.slots, found.slots)
        assert found.memory_bytes <= max(usable, float(alone.memory_bytes)) * (1 + 1e-9)
    assert_not_above(small.memory_bytes, large.memory_bytes)


def test_requests_with_sessions_of_their_own_share_nothing_and_lose_nothing():
    """Each request has a prefix of its own, which lies in the memory for prefixes: the same bytes as without a cache, so the same places."""
    unlimited = replace(examples.SERVING, batch_cap=1e9)
    found, alone = (
        float(point(cache, constants=unlimited).slots)
        for cache in (PrefixCache(3000, Sessions(10.0, 30.0), (HBM,), 8), None)
    )
    assert found == pytest.approx(alone, rel=1e-6)


def test_requests_that_find_their_prefix_hold_it_once():
    """Of n requests half find one of the 10 prefixes that have room, half hold their own: n (I - p) + (n/2 + 10) p tokens fill the memory."""
    unlimited, kept, prefix = replace(examples.SERVING, batch_cap=1e9), 10 * 4000 * 131_072.0, 4000
    lengths = Lengths(6000.0, 300.0)
    cache = PrefixCache(prefix, Given(0.5), (replace(HBM, bytes_per_chip=kept),), 8)
    found, alone = (float(point(of, constants=unlimited, lengths=lengths).slots) for of in (cache, None))
    held = float(held_context_tokens(lengths, unlimited))
    room = alone * held
    assert found * (held - prefix) + (0.5 * found + 10.0) * prefix == pytest.approx(room, rel=1e-6)


@FEW
@given(st.floats(1e-4, 1.0), st.floats(0, 0.1), st.floats(1e-3, 3.0), st.floats(0.0, 100.0))
def test_no_other_share_of_loads_saves_more_time(alone, latency, recompute, hits):
    def saved(share):
        busy = share * hits * alone
        return share * hits * (recompute - latency - alone / (1 - busy)) if busy < 1 else -np.inf

    best = loaded_share(alone, latency, recompute, hits)
    assert 0.0 <= best <= 1.0
    assert all(saved(share) <= saved(best) + 1e-9 for share in np.linspace(0, 1, 101))


def test_hits_and_misses_spread_the_prefill_and_lengthen_the_wait_for_it():
    # One outcome at the mean of both would be the lower bound: Pollaczek-Khinchine grows with the second moment.
    mixed = point(PrefixCache(5900, Given(0.5), (HBM,), 8))
    assert mixed.input_scv > LENGTHS.input_scv + 0.3


def test_each_entry_of_arrays_is_the_scalar_result():
    cache = PrefixCache(4000, Sessions(5.0, 30.0), (HBM, Tier(2e11, 5e10, 1e-4), Tier(4e12, 1e9, 1e-3)), 8)
    speculation = Speculation(2, 0.7)
    columns = np.array([[1, 1, 1, 1], [2, 1, 1, 1], [4, 2, 1, 4]]).T
    layouts, batch = ServingLayouts(*columns), np.array([1.0, 20.0, 200.0])
    run = LOAD | dict(cache=cache, speculation=speculation)
    for arch in (examples.DENSE, examples.MOE):
        whole = aggregated(arch, examples.CHIP, layouts.take((slice(None), None)), batch, **run)
        loop = closed_loop(
            arch,
            examples.CHIP,
            layouts.take((slice(None), None)),
            batch,
            **LOAD,
            cache=cache,
            speculation=speculation,
        )
        for i in range(3):
            for j in range(3):
                single = aggregated(arch, examples.CHIP, ServingLayouts(*(int(c[i]) for c in columns)), batch[j], **run)
                for name in ("requests_per_s", "ttft_s", "tpot_s", "slots", "memory_bytes"):
                    assert np.broadcast_to(getattr(whole, name), (3, 3))[i, j] == pytest.approx(
                        getattr(single, name)
                    ), name
                alone = closed_loop(
                    arch,
                    examples.CHIP,
                    ServingLayouts(*(int(c[i]) for c in columns)),
                    batch[j],
                    **LOAD,
                    cache=cache,
                    speculation=speculation,
                )
                assert np.broadcast_to(loop.ttft_s, (3, 3))[i, j] == pytest.approx(alone.ttft_s)


def test_separate_pools_take_both():
    pools = (WorkerPool(examples.CHIP, layout, 1, examples.SERVING) for layout in (ONE, ServingLayouts(2, 1, 1, 1)))
    args = examples.DENSE, *pools, 32
    run = {"link": TransferLink(25e9), "lengths": LENGTHS, "precisions": examples.BF16}
    plain = disaggregated(*args, **run)
    cached = disaggregated(*args, **run, cache=PrefixCache(4000, Given(0.7), (HBM,), 8))
    drafted = disaggregated(*args, **run, speculation=Speculation(1, 0.85))
    # the prompts that share a chunk have 4,000 tokens of prefix each in the memory for prefixes
    more = 8e9 - examples.SERVING.chunk_tokens / LENGTHS.prompt * 4000 * 131_072.0
    assert cached.point.prefill_s < plain.point.prefill_s
    assert cached.prefill_memory_bytes == pytest.approx(plain.prefill_memory_bytes + more)
    assert cached.point.slots == plain.point.slots and cached.point.tpot_s == plain.point.tpot_s
    assert drafted.point.tpot_s < plain.point.tpot_s and drafted.point.slots < plain.point.slots


# -- speculation -------------------------------------------------------------------------------------------------------


def test_tokens_per_step_are_those_of_a_simulated_acceptance():
    rng = np.random.default_rng(3)
    for acceptance, drafts in ((0.3, 1), (0.8, 3), (0.95, 8)):
        accepted = rng.random((200_000, drafts)) < acceptance
        tokens = 1 + np.cumprod(accepted, axis=1).sum(axis=1)  # up to the first rejection, and the network's own token
        assert tokens_per_step(acceptance, drafts) == pytest.approx(tokens.mean(), rel=0.01)


@FEW
@given(st.sampled_from([examples.DENSE, examples.MOE]), st.integers(1, 8), st.floats(0, 1), st.floats(0, 0.05), batches)
def test_drafts_that_are_all_rejected_only_cost(arch, drafts, acceptance, share, batch):
    run = dict(decode_sequences=batch, context_tokens=2000.0, **KINDS)
    gain = lambda a: float(speculative_speedup(arch, examples.CHIP, ONE, Speculation(drafts, a), **run))
    assert gain(0.0) < 1.0
    assert_not_above(gain(0.0), gain(acceptance))
    assert gain(acceptance) < drafts + 1
    verify, whole = speculative_step(arch, examples.CHIP, ONE, Speculation(drafts, acceptance, share), **run)
    assert verify.total_s <= whole.total_s and whole.total_s == pytest.approx(sum(whole.breakdown.values()))
    assert all(whole.breakdown[name] >= verify.breakdown[name] for name in verify.breakdown)


def test_speculation_pays_least_where_arithmetic_counts():
    run = dict(context_tokens=10.0, **KINDS)
    gain = speculative_speedup(
        examples.DENSE,
        examples.CHIP,
        ONE,
        Speculation(3, 0.8),
        decode_sequences=np.array([1.0, 8.0, 64.0, 512.0, 4096.0]),
        **run,
    )
    assert np.all(np.diff(gain) < 0) and gain[0] > 2.0 and gain[-1] < 1.0


def test_drafts_touch_more_experts():
    step = dict(decode_sequences=1.0, context_tokens=500.0, **KINDS)
    few, many = (
        speculative_step(examples.MOE, examples.CHIP, ONE, Speculation(g, 0.9), **step)[0].breakdown for g in (1, 4)
    )
    assert many["expert_memory"] > 1.5 * few["expert_memory"] and many["dense_memory"] == few["dense_memory"]


@pytest.mark.parametrize(
    "wrong",
    [
        dict(draft_tokens=0, acceptance=0.5),
        dict(draft_tokens=1, acceptance=1.5),
        dict(draft_tokens=1, acceptance=0.5, draft_share=-1),
    ],
)
def test_senseless_speculation_is_refused(wrong):
    with pytest.raises(ValueError, match="speculation"):
        Speculation(**wrong)


def test_senseless_caches_are_refused():
    with pytest.raises(ValueError, match=r"prefix_tokens.*tier.*hit_rate"):
        PrefixCache(0, Given(2.0), (), 8)
