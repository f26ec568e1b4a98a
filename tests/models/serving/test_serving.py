"""Serving models against numbers derived by hand, an event simulation, and the catalog's constants."""

from __future__ import annotations

import heapq
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import i0, i1

from catalog.lookup import Catalog
from models.energy.power import PowerConstants, chip_power_share
from models.roofline import ChipRates
from models.serving import examples
from models.serving.constants import EngineFactors, ServingConstants
from models.serving.continuous_batching import aggregated
from models.serving.decode import ServingLayouts
from models.serving.disaggregation import TransferLink, WorkerPool, disaggregated
from models.serving.kv_cache import kv_bytes_per_chip, slots, weight_bytes_per_chip
from models.serving.percentiles import MEAN, SloScreen, latency_s, within_slo
from models.serving.prefill import Prompts, prefill_time
from models.serving.step import StepLoad, step_time
from models.serving.workload import Lengths
from models.transformer.architecture import Architecture

ONE = ServingLayouts(1, 1, 1, 1)
# Attention 2 x 2^20 x 8 (q, k, v, o of equal width: 4 h^2 = 4 MiB weights), FFN 3 x 1024 x 4096, two layers, vocabulary 1024.
TINY = Architecture(layers=2, hidden=1024, heads=8, kv_heads=8, head_dim=128, ffn=4096, vocab=1024)
BODY = 2 * (4 * 1024**2 + 3 * 1024 * 4096)
HEAD = 1024 * 1024
CHIP = ChipRates(flop_per_s=1e14, flop16_per_s=1e14, hbm_bytes_per_s=1e12, hbm_bytes=16e9, scaleup_bytes_per_s=1e11,
                 scaleup_chips=4, scaleout_bytes_per_s=1e10, tdp_w=300.0)  # fmt: skip
C = examples.SERVING
KINDS = {"precisions": examples.BF16, "constants": C}


@pytest.fixture(scope="module")
def fitted() -> ServingConstants:
    return ServingConstants.from_values(Catalog.load().constants("serving"))


def step(layout=ONE, decode=8.0, prefill=0.0, arch=TINY, chip=CHIP):
    return step_time(arch, chip, layout, StepLoad(decode, 500, prefill, prompt_tokens=1000), **KINDS)


def test_decode_step_by_hand():
    parts = step().breakdown
    # 8 tokens, saturation 50 tokens at 300 FLOP/byte; this chip has 100 FLOP/byte.
    s = 50 * 100 / 300
    flops = 2 * (BODY * (8 + s * 8 / (8 + s)) + HEAD * 9)
    assert parts["dense_compute"] == pytest.approx(flops / (1e14 * 0.5))
    assert parts["dense_memory"] == pytest.approx((BODY + HEAD) * 2 / (1e12 * 0.8))
    # 8 sequences x 500 tokens x 2 layers x (key + value) x 1024 elements x 2 bytes
    assert parts["kv_memory"] == pytest.approx(8 * 500 * 2 * 2 * 1024 * 2 / (1e12 * 0.8))
    assert parts["launch"] == pytest.approx(2 * 20e-6)
    assert parts["host"] == pytest.approx(2e-3 + 8 * 10e-6)
    assert (
        parts["expert_compute"] == parts["expert_memory"] == parts["communication"] == parts["prefill_attention"] == 0
    )


def test_prefill_attention_and_all_reduce_by_hand():
    parts = step(ServingLayouts(4, 1, 1, 1), decode=0.0, prefill=1000.0).breakdown
    # 1000 x 1000 / 2 pairs, 8 heads x (128 + 128) x 2 FLOP, two layers, four chips at half of the peak
    assert parts["prefill_attention"] == pytest.approx(2 * (1000**2 / 2) * 8 * 256 * 2 / (4 * 1e14 * 0.5))
    # two all-reduces per layer; ring bytes 2 x 3/4 of 1000 x 1024 x 2 bytes; start 15 us x (1 + log2 4)/2
    ring = 2 * 3 / 4 * 1000 * 1024 * 2 / (1e11 * 0.75)
    assert parts["communication"] == pytest.approx(2 * 2 * (15e-6 * 1.5 + ring))
    assert parts["launch"] == pytest.approx(2 * (20e-6 + 20e-6))


def test_expert_step_by_hand():
    arch = replace(TINY, experts=4, topk=2, expert_ffn=512)
    parts = step(ServingLayouts(1, 1, 2, 2), decode=4.0, arch=arch).breakdown
    per_expert, mean = 3 * 1024 * 512, 4 * 2 / 4
    touched = 4 * (1 - (1 + mean / 4.0) ** -4.0)
    # half of what lasts, 0.2 ln 2, and chance: of two Poisson numbers of mean l the larger has l exp(-2l) (I0(2l) + I1(2l)) more (Skellam),
    # less as both together are the experts touched, and fewer are left to touch
    lasting, each = 0.5 * 0.2 * np.log(2), touched / 2
    chance = np.exp(-2 * each) * (i0(2 * each) + i1(2 * each)) * np.sqrt((1 - 1 / 2) * (1 - touched / 4))
    fullest = 1 + np.hypot(lasting, min(chance, 4 / touched - 1))
    assert parts["expert_memory"] == pytest.approx(touched * per_expert * 2 * 2 * fullest / (2 * 1e12 * 0.8), rel=5e-3)
    # dispatch and combine in two layers: 2 tokens per rank x 1024 x R - 1 = 1 copy x 2 bytes at half the link rate
    assert parts["communication"] == pytest.approx(2 * 2 * (20e-6 + 2.0 * 2 * 1024 / (1e11 * 0.5)))


def test_pipeline_stages_share_the_work_and_pay_for_hops():
    stages = ServingLayouts(1, 2, 1, 1)
    assert step(stages).total_s - step().total_s == pytest.approx(5e-6 + 8 * 1024 * 2 / 1e11)
    prompt = prefill_time(TINY, CHIP, stages, Prompts(1000), None, **KINDS)
    assert prompt.latency_s == pytest.approx(2 * prompt.occupancy_s)  # one chunk: both stages in turn


def test_memory_and_slots_by_hand():
    arch, layout = replace(TINY, kv_heads=2), ServingLayouts(4, 1, 1, 1)
    # two KV heads cannot be split over four chips: each holds one of them, with its projections, and its cache
    body = 2 * (1024 * 128 * 2 * (8 + 2 * 2) + 3 * 1024 * 4096)
    assert weight_bytes_per_chip(arch, layout, "bf16") == pytest.approx((body + 2 * HEAD) * 2 / 4)
    assert kv_bytes_per_chip(arch, layout, 100, "bf16") == pytest.approx(100 * 2 * 2 * 128 * 2)
    lengths = Lengths(100_000, 10_000)
    per_request = (100_000 + 0.9 * 10_000) * 2 * 2 * 128 * 2
    by_memory = (0.95 * 16e9 - 1.5e9 - (body + 2 * HEAD) * 2 / 4) / per_request
    assert slots(arch, CHIP, layout, lengths=lengths, **KINDS) == pytest.approx((by_memory**-3 + 800.0**-3) ** (-1 / 3))
    assert slots(arch, replace(CHIP, hbm_bytes=1.6e9), layout, lengths=lengths, **KINDS) == 0.0


def test_a_decode_step_is_never_faster_than_reading_the_weights(fitted):
    # 70.6 G parameters in 16 bit over four chips of 3.35 TB/s: 140 GB / 13.4 TB/s = 10.5 ms.
    arch = Architecture(layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128, ffn=28672, vocab=128256)
    chip = replace(examples.CHIP, hbm_bytes_per_s=3.35e12, flop_per_s=989e12, flop16_per_s=989e12)
    total = step_time(
        arch, chip, ServingLayouts(4, 1, 1, 1), StepLoad(1), precisions=examples.BF16, constants=fitted
    ).total_s
    assert 10.5e-3 < total < 2.5 * 10.5e-3


def test_every_fitted_constant_is_within_its_physical_range(fitted):
    shares = [name for name in ServingConstants.names() if "efficiency" in name] + [
        "burst_share",
        "usable_memory",
        "output_held",
    ]
    for name in shares:
        assert 0 < getattr(fitted, name) <= 1, name
    for name in ServingConstants.names():
        if name.endswith("_s"):
            assert 0 < getattr(fitted, name) < 0.1, name
    assert (
        fitted.expert_skew > 0
        and 1 <= fitted.moe_first_token_factor <= 5
        and 1 <= fitted.disaggregated_first_token_factor < 2
    )


def test_constants_name_what_is_missing_unknown_or_wrong():
    values = {name: 1.0 for name in ServingConstants.names() if name != "burst_share"} | {
        "burst_shar": 1.0,
        "batch_cap": float("nan"),
    }
    with pytest.raises(ValueError, match="missing burst_share; unknown burst_shar; not positive and finite batch_cap"):
        ServingConstants.from_values(values)
    with pytest.raises(ValueError, match="unknown precision 'fp5'"):
        C.compute_efficiency("fp5")


def test_names_and_factors_are_those_of_the_catalog(fitted):
    values = Catalog.load().constants("serving")
    assert set(ServingConstants.names()) == set(values)
    assert fitted.engines["vllm"].host == values["host_vllm"]
    assert fitted.families["hopper"].compute == values["compute_hopper"]


def test_an_engine_is_added_without_a_field():
    known = replace(C, engines={**C.engines, "new": EngineFactors(host=0.5)})
    assert known.profile("new").host_step_s == 0.5 * C.host_step_s
    assert C.profile("new").host_step_s == C.host_step_s


def test_slo_picks_the_batches_under_every_limit():
    batch = np.array([1.0, 8.0, 32.0, 128.0, 512.0])
    point = aggregated(examples.DENSE, examples.CHIP, ONE, batch, lengths=Lengths(1000, 300, 1.0, 1.0), **KINDS)
    found = within_slo(point, {"tpot": [(0.95, 0.03)], "ttft": [(MEAN, 1.0), (0.99, 0.3)]})
    by_hand = (point.fits & (latency_s(point, "tpot", 0.95) <= 0.03) & (latency_s(point, "ttft", MEAN) <= 1.0)
               & (latency_s(point, "ttft", 0.99) <= 0.3))  # fmt: skip
    assert found.tolist() == by_hand.tolist()
    assert found.any() and not found.all()
    for metric, quantile in (("itl", 0.95), ("ttft", 0.2), ("ttft", 95)):
        with pytest.raises(ValueError):
            latency_s(point, metric, quantile)


def test_a_full_engine_meets_no_limit_on_the_first_token():
    load = {"lengths": Lengths(1000, 300), **KINDS}
    places = slots(examples.DENSE, examples.CHIP, ONE, **load)
    just_full = aggregated(examples.DENSE, examples.CHIP, ONE, places, **load)
    assert just_full.fits and not within_slo(just_full, {}) and just_full.slot_wait_s == np.inf


def test_a_group_outrun_by_its_decode_side_waits_for_ever():
    prefill, decode = (WorkerPool(examples.CHIP, ONE, workers, C) for workers in (np.array([1, 200]), 8))
    group = disaggregated(
        examples.DENSE, prefill, decode, 30,
        link=TransferLink(250e9), lengths=Lengths(8000, 20), precisions=examples.BF16,
    )  # fmt: skip
    assert group.point.prefill_wait_s[0] == np.inf and np.isfinite(group.point.prefill_wait_s[1])
    # 8000 tokens x 128 KiB over one link of 25 GB/s
    assert group.transfer_s == pytest.approx(8000 * 2 * 32 * 8 * 128 * 2 / 250e9)


def test_power_constants_of_the_catalog_reproduce_a_measured_curve(fitted):
    # ML.ENERGY, Llama-3.1-70B on 4 H100 SXM: 441 W per GPU at 8 sequences, 637 W at 1,024, of 700 W.
    constants = PowerConstants.from_values(Catalog.load().constants("power"))
    arch = Architecture(layers=80, hidden=8192, heads=64, kv_heads=8, head_dim=128, ffn=28672, vocab=128256)
    chip = replace(examples.CHIP, hbm_bytes_per_s=3.35e12, flop_per_s=989e12, flop16_per_s=989e12)
    point = aggregated(
        arch, chip, ServingLayouts(4, 1, 1, 1), np.array([8.0, 1024.0]),
        lengths=Lengths(300, 600), precisions=examples.BF16, constants=fitted,
    )  # fmt: skip
    watts = 700 * chip_power_share(point.bound_shares(), constants)
    assert watts == pytest.approx([441, 637], rel=0.25)
    assert watts[1] > watts[0]


def simulate(rate: float, prompt: int, output: int, requests: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """TTFT and TPOT of an engine stepped event by event: chunked prefill rides along, arrivals are Poisson, lengths fixed."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / rate, requests))
    context = prompt + output / 2
    decode_s = step_time(examples.DENSE, examples.CHIP, ONE, StepLoad(np.arange(1000.0), context), **KINDS).total_s
    mixed: dict[tuple[float, int], float] = {}
    first, end, waiting, active = np.zeros(requests), np.zeros(requests), [], []
    now, arrived, steps = 0.0, 0, 0
    while arrived < requests or waiting or active:
        while arrived < requests and arrivals[arrived] <= now:
            waiting.append([arrived, float(prompt)])
            arrived += 1
        if not waiting and not active:
            now = arrivals[arrived]
            continue
        budget, finished = C.chunk_tokens, []
        while waiting and budget > 0:
            taken = min(budget, waiting[0][1])
            waiting[0][1] -= taken
            budget -= taken
            if waiting[0][1] <= 0:
                finished.append(waiting.pop(0)[0])
        key = (C.chunk_tokens - budget, len(active))
        if key not in mixed:
            load = StepLoad(float(key[1]), context, key[0], prompt)
            mixed[key] = (
                float(step_time(examples.DENSE, examples.CHIP, ONE, load, **KINDS).total_s)
                if key[0]
                else decode_s[key[1]]
            )
        now, steps = now + mixed[key], steps + 1
        while active and active[0][0] <= steps:
            end[heapq.heappop(active)[1]] = now
        for request in finished:
            first[request] = now
            heapq.heappush(active, (steps + output - 1, request))
    settled = slice(requests // 5, None)
    return (first - arrivals)[settled], ((end - first) / (output - 1))[settled]


@pytest.mark.parametrize("batch", [16.0, 64.0])
def test_closed_forms_against_an_event_simulation(batch):
    prompt, output = 1000, 150
    point = aggregated(
        examples.DENSE,
        examples.CHIP,
        ONE,
        batch,
        lengths=Lengths(prompt, output),
        **KINDS,
    )
    ttft, tpot = simulate(float(point.requests_per_s), prompt, output, 4000, seed=1)
    ttft = ttft + C.first_token_s  # front-end time that the simulated engine does not have
    assert latency_s(point, "tpot", MEAN) == pytest.approx(tpot.mean(), rel=0.06)
    assert latency_s(point, "tpot", 0.95) == pytest.approx(np.quantile(tpot, 0.95), rel=0.10)
    assert latency_s(point, "ttft", MEAN) == pytest.approx(ttft.mean(), rel=0.10)
    assert latency_s(point, "ttft", 0.95) == pytest.approx(np.quantile(ttft, 0.95), rel=0.15)


def test_limits_of_several_origins_are_held_as_if_each_were_alone():
    layouts = ServingLayouts(np.array([[1], [2]]), 1, 1, 1)
    point = aggregated(
        TINY,
        CHIP,
        layouts,
        np.geomspace(1, 512, 40),
        lengths=Lengths(500, 100, 1.0, 1.0),
        **KINDS,
    )
    common = {"tpot": [(0.99, float(np.median(latency_s(point, "tpot", 0.99))))]}
    screen = SloScreen(point, common)
    limits = np.quantile(np.asarray(latency_s(point, "ttft", 0.9))[np.asarray(point.fits)], [0.1, 0.4, 0.7])
    counts = []
    for limit in limits:
        further = {"ttft": [(0.9, limit)], "e2e": [(MEAN, 100 * limit), (0.95, 200 * limit)]}
        found = screen.satisfied(further)
        assert (found == within_slo(point, common | further)).all()
        counts.append(found.sum())
    assert 0 < counts[0] < counts[1] <= counts[2] < found.size
    assert not SloScreen(point, {"tpot": [(0.99, 0.0)]}).satisfied({"ttft": [(0.9, 1.0)]}).any()
