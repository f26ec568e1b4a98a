"""What a serving measurement means: the inference of each cell that a row leaves empty."""

from __future__ import annotations

import pytest

from catalog.lookup import Catalog
from planner.calibration.measurements import FILES, Row, Unpredictable
from planner.calibration.serving_cases import in_score, measured_serving
from planner.calibration.serving_target import SERVING

COLUMNS = FILES["serving"]
BASE = {
    "id": "lab-1", "model": "llama-3.1-70b", "weight_dtype": "fp8", "chip": "H100-SXM", "engine": "vllm", "engine_version": "0.11.0", "grade": "A",
    "mode": "aggregated",
}  # fmt: skip
NUMBERS = {
    "n_chips": 4.0,
    "chips_per_node": 8.0,
    "tp": 4.0,
    "pp": 1.0,
    "isl": 1000.0,
    "osl": 200.0,
    "concurrency": 16.0,
    "tpot_ms": 20.0,
}


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load()


def row(without=(), **cells) -> Row:
    """The base row with other cells; those of `without` are empty."""
    given = {**BASE, **NUMBERS, **cells}
    given = {name: value for name, value in given.items() if name not in without}
    text = {name: str(given.get(name, "")) for name in COLUMNS.text}
    return Row(2, text, {name: float(given[name]) for name in COLUMNS.numbers if name in given})


def ask(catalog, without=(), **cells):
    return measured_serving(row(without, **cells), catalog, {})


def layout(question):
    return tuple(question.case.decode.layout[name] for name in ("tp", "pp", "dp", "ep"))


def test_a_complete_row_is_taken_as_printed(catalog):
    found = ask(catalog, kv_dtype="fp8", output_tokens_per_s_total=800.0, ttft_ms=150.0)
    assert layout(found) == (4, 1, 1, 1) and found.case.decode.workers == 1.0
    assert found.case.regime == "closed" and found.case.load == 16.0
    assert found.measured == pytest.approx({"tpot": 0.020, "ttft": 0.150, "throughput": 800.0})
    assert found.inferred == ()


def test_chips_beyond_the_layout_are_further_replicas(catalog):
    assert ask(catalog, n_chips=8.0).case.decode.workers == 2.0


def test_weights_and_cache_that_a_row_leaves_open(catalog):
    assert ask(catalog, weight_dtype="").case.weight_precision == "bf16"
    assert ask(catalog, weight_dtype="", model="deepseek-r1", tp=16.0, n_chips=16.0).case.weight_precision == "fp8"
    # Ampere has no FP8: the weights stay narrow in memory and are widened for the product
    narrow = ask(catalog, chip="A100-SXM-80GB")
    assert narrow.case.weight_precision == "fp8" and narrow.case.chip.flop_per_s == narrow.case.chip.flop16_per_s
    assert narrow.case.kv_precision == "bf16" and any("KV cache" in text for text in narrow.inferred)


def test_chips_of_experts_alone_are_attention_ranks(catalog):
    wide = {"model": "deepseek-v3", "weight_dtype": "fp8", "chip": "H200-SXM", "n_chips": 32.0}
    assert layout(ask(catalog, without=("tp", "pp", "dp"), ep=32.0, **wide)) == (1, 1, 32, 32)
    assert layout(ask(catalog, without=("tp", "pp"), ep=32.0, dp=32.0, **wide)) == (1, 1, 32, 32)
    # both count all chips: tensor parallel in nothing but what has no attention
    assert layout(ask(catalog, without=("pp",), tp=32.0, ep=32.0, dp=32.0, **wide)) == (1, 1, 32, 32)
    # grouped queries are split by tensor parallelism as a rule
    assert layout(ask(catalog, without=("tp", "pp", "dp"), **wide | {"model": "qwen3-235b-a22b", "ep": 32.0}))[2] == 1


def test_decode_alone_from_a_full_queue_fills_the_memory(catalog):
    cells = {"mode": "decode_only", "is_max_throughput": 1.0, "isl": 2000.0}
    found = ask(catalog, without=("osl", "concurrency"), **cells)
    assert found.case.regime == "decode_maximum" and found.case.capped == 0.0
    assert "short lengths" in found.inferred
    assert ask(catalog, without=("osl",), **cells).case.regime == "decode"


def test_an_unrecorded_layout_of_a_fixed_load_takes_all_chips(catalog):
    # 16 chips in domains of 8: eight-way tensor parallel, two stages
    found = ask(catalog, without=("tp", "pp"), n_chips=16.0)
    assert layout(found) == (8, 2, 1, 1) and found.case.decode.workers == 1.0


def test_a_benchmark_of_throughput_takes_the_narrowest_layout_with_room(catalog):
    # 70.6 GB in FP8 are more than 0.62 x 80 GB, half of them are not: TP2, four replicas on eight chips; twice as wide under a tight limit
    cells = {
        "without": ("tp", "pp", "isl", "osl", "concurrency"),
        "model": "llama-2-70b",
        "n_chips": 8.0,
        "is_max_throughput": 1.0,
    }
    offline = ask(catalog, other_metric="mlperf scenario=Offline", **cells)
    assert layout(offline)[0] == 2 and offline.case.decode.workers == 4.0 and offline.case.tpot_limit_s == 0.0
    interactive = ask(catalog, other_metric="mlperf scenario=Interactive", **cells)
    assert (
        layout(interactive)[0] == 4
        and interactive.case.tpot_limit_s == pytest.approx(0.040)
        and interactive.case.ttft_limit_s == pytest.approx(0.45)
    )
    assert interactive.case.kv_precision == "fp8" and interactive.case.input_tokens == pytest.approx(294.0)


def test_chips_of_experts_beyond_tensor_parallel_are_attention_ranks(catalog):
    experts = {"model": "qwen3-235b-a22b", "n_chips": 4.0}
    assert layout(ask(catalog, tp=1.0, other_metric="moe_tp=4", **experts)) == (1, 1, 4, 4)
    assert layout(ask(catalog, tp=2.0, other_metric="moe_tp=4", **experts))[:3] == (2, 1, 2)
    release = dict(engine="tensorrt-llm", is_max_throughput=1.0, tp=4.0, **experts)
    assert layout(ask(catalog, engine_version="1.0", without=("concurrency",), **release)) == (1, 1, 4, 4)
    assert layout(ask(catalog, engine_version="0.17", without=("concurrency",), **release))[:3] == (4, 1, 1)


def test_latent_attention_is_not_split_where_only_throughput_counts(catalog):
    # tensor parallelism would copy the latent cache to each of the eight ranks
    cells = {
        "without": ("tp", "pp", "isl", "osl", "concurrency"),
        "model": "deepseek-r1",
        "chip": "H200-SXM",
        "n_chips": 8.0,
        "is_max_throughput": 1.0,
    }
    assert layout(ask(catalog, other_metric="mlperf scenario=Offline", **cells)) == (1, 1, 8, 8)


def test_releases_of_tensorrt_before_the_first_run_compiled_plans(catalog):
    engine = lambda **cells: ask(catalog, engine="tensorrt-llm", **cells).case.engine
    assert (engine(engine_version="0.20"), engine(engine_version="1.0"), engine(engine_version="1.2.0rc2")) == (
        "tensorrt_plan",
        "tensorrt_llm",
        "tensorrt_llm",
    )
    assert engine(engine_version="0.20", notes="PyTorch backend") == "tensorrt_llm"


def test_a_cache_of_four_bit_checkpoints_is_in_eight(catalog):
    assert ask(catalog, chip="B200-SXM", weight_dtype="nvfp4").case.kv_precision == "fp8"
    assert ask(catalog, chip="B200-SXM", weight_dtype="nvfp4", kv_dtype="bf16").case.kv_precision == "bf16"
    assert ask(catalog, weight_dtype="fp8").case.kv_precision == "bf16"


def test_a_dense_network_has_neither_attention_ranks_nor_expert_parallelism(catalog):
    assert layout(ask(catalog, ep=8.0, tp=8.0, n_chips=8.0)) == (8, 1, 1, 1)


def test_pools_are_read_from_the_other_metric(catalog):
    text = "prefill 2x(tp4 pp1 dp1 moetp4 ep1); decode 1x(tp1 pp1 dp8 moetp1 ep8)"
    found = ask(catalog, mode="disaggregated", model="deepseek-r1", n_chips=16.0, other_metric=text)
    assert found.case.prefill.workers == 2.0 and found.case.prefill.layout["tp"] == 4
    assert layout(found) == (1, 1, 8, 8) and found.case.load == 16.0
    with pytest.raises(Unpredictable, match="no layout of prefill and decode workers"):
        ask(catalog, mode="disaggregated", other_metric="")


def test_a_layout_that_counts_cores_makes_ranks_of_parts_of_a_chip(catalog):
    whole, halves = (
        ask(catalog, chip="Trainium1", weight_dtype="bf16", tp=4.0),
        ask(catalog, chip="Trainium1", weight_dtype="bf16", tp=8.0),
    )
    assert halves.case.chip.hbm_bytes == pytest.approx(whole.case.chip.hbm_bytes / 2)
    assert halves.case.decode.workers == 1.0 and "2 ranks per chip" in halves.inferred


def test_lengths_drawn_from_a_range_have_its_mean(catalog):
    found = ask(catalog, notes="InferenceX client, random range ratio 0.8")
    assert (found.case.input_tokens, found.case.output_tokens) == pytest.approx((900.0, 180.0))


@pytest.mark.parametrize(("cells", "regime"), [
    ({"notes": "median of 5 runs, static batch"}, "static"),
    ({"mode": "prefill_only"}, "prefill"),
    ({"mode": "decode_only"}, "decode"),
    ({"request_rate_per_s": 2.0}, "open"),
    ({"is_max_throughput": 1.0}, "maximum"),
    ({"notes": "all requests queued at t0", "other_metric": "requests=500"}, "burst"),
])  # fmt: skip
def test_the_regime_follows_from_what_a_row_says(catalog, cells, regime):
    assert ask(catalog, **cells).case.regime == regime


def test_the_date_of_the_software(catalog):
    assert ask(catalog, engine_version="nightly-dev-20260402-abc").case.release_year == pytest.approx(2026 + 3.5 / 12)
    assert ask(catalog, engine_version="", notes="measured 2025-11-05").case.release_year == pytest.approx(
        2025 + 10.5 / 12
    )
    assert ask(catalog, engine_version="", year=2024.0).case.release_year == 2024.5
    assert ask(catalog, engine_version="0.6.4").case.release_year < ask(catalog).case.release_year


@pytest.mark.parametrize(("cells", "without", "reason"), [
    ({"chip": "Abacus 9"}, (), "chip not in the catalog"),
    ({"model": "nobody-7b"}, (), "the architecture is not in the catalog"),
    ({}, ("isl",), "no lengths"),
    ({}, ("n_chips",), "no n_chips"),
    ({}, ("concurrency",), "no concurrency, request rate or maximum throughput"),
    ({"weight_dtype": "fp5"}, (), "unknown weight_dtype"),
])  # fmt: skip
def test_refusals_name_their_reason(catalog, cells, without, reason):
    with pytest.raises(Unpredictable, match=reason):
        ask(catalog, without=without, **cells)


def test_rows_outside_the_score(catalog):
    assert in_score(row())
    assert not in_score(row(grade="C")) and not in_score(row(grade="D"))
    assert not in_score(row(id="gpustack-0001")) and not in_score(row(id="sglblog-0001"))
    assert not in_score(row(model="gpt-oss-120b", other_metric="mlperf scenario=Server")) and in_score(
        row(model="gpt-oss-120b")
    )


def test_an_open_run_ends_with_its_requests_and_holds_no_more_than_its_clients(catalog):
    found = ask(catalog, request_rate_per_s=1.0, notes="10 prompts at 1 request/s, means").case
    assert (found.regime, found.load, found.requests, found.running) == ("open", 1.0, 10.0, 16.0)
    endless = ask(catalog, ("concurrency",), request_rate_per_s=1.0).case
    assert (endless.requests, endless.running) == (0.0, 0.0)


@pytest.mark.parametrize("engine", ["llama.cpp", "rkllm-runtime"])
def test_engines_of_single_devices_are_one_kind(catalog, engine):
    assert ask(catalog, engine=engine).case.engine == "local"


def test_openvino_multiplies_narrow_weights_in_eight_bits(catalog):
    chip = {"chip": "Intel-Core-Ultra-X7-358H-iGPU", "n_chips": 1.0, "tp": 1.0, "model": "mistral-7b"}
    wide, narrow, other = (
        ask(catalog, engine=engine, weight_dtype=form, **chip).case
        for engine, form in (("openvino", "bf16"), ("openvino", "int4"), ("llama.cpp", "int4"))
    )
    assert wide.engine == narrow.engine == "openvino" and other.engine == "local"
    assert narrow.chip.flop_per_s == 2.0 * wide.chip.flop_per_s == 2.0 * other.chip.flop_per_s


def test_an_engine_divides_the_memory_as_it_is_shipped(catalog):
    shipped = {
        engine: ask(catalog, engine=engine).case.division for engine in ("vllm", "sglang", "TensorRT-LLM", "lmdeploy")
    }
    assert shipped["vllm"]["usable_memory"] == 0.92 and shipped["vllm"]["step_tokens"] == 8192.0
    assert shipped["sglang"]["usable_memory"] < 0.85 and shipped["sglang"]["state_slots"] > 1.0
    assert shipped["TensorRT-LLM"]["cache_share"] == 0.9 and shipped["TensorRT-LLM"]["usable_memory"] == 1.0
    assert shipped["lmdeploy"] == {}


@pytest.mark.parametrize(
    "notes", ["InferenceMAX dump", "random range ratio 0.8", "means; lengths drawn 0.8-1.0 of nominal"]
)
def test_clients_of_drawn_prompts_divide_the_memory_themselves_and_keep_no_prefixes(catalog, notes):
    assert ask(catalog, notes=notes).case.input_tokens == 900.0
    assert ask(catalog, notes=notes).case.division == {}
    states = ask(catalog, notes=notes, engine="sglang").case.division
    assert set(states) == {"state_share", "state_slots"} and states["state_slots"] == 1.0


def test_submitters_of_a_benchmark_divide_the_memory_themselves(catalog):
    assert ask(catalog, ("isl", "osl"), model="llama-2-70b", other_metric="mlperf scenario=Server").case.division == {}


def test_a_mark_of_quantisation_does_not_hide_the_architecture(catalog):
    assert ask(catalog, model="Qwen3-14B-w8a8sc-310-vllm-tp1").architecture == "Qwen3-14B"


def test_a_row_is_compared_with_the_statistic_that_it_reports(catalog):
    """The median where the notes say that TTFT is one, of requests and not of repeated runs; p99 from the further figures."""
    told = {"ttft_ms": 200.0, "other_metric": "p99_ttft_ms=812.5; p99_tpot_ms=30; requests=160"}
    mean, median = ask(catalog, **told), ask(catalog, **told, notes="EXPERIMENTAL; ttft/tpot are medians; short osl")
    assert (mean.case.median_ttft, median.case.median_ttft) == (False, True)
    assert mean.measured == {"tpot": 0.02, "ttft": 0.2, "ttft_p99": pytest.approx(0.8125)}
    assert not ask(catalog, **told, notes="median of 15 runs").case.median_ttft
    cases = [mean, median]
    seen = SERVING.observations(cases)
    assert [o.label for o in seen if o.metric == "ttft_p99"] == ["ttft", "ttft"]
    assert {o.metric for o in seen if o.fits} == {"tpot", "ttft"}
    predicted = dict(
        zip([(o.case, o.metric) for o in seen], SERVING.predict(cases, seen)(catalog.constants("serving")), strict=True)
    )
    assert predicted[1, "ttft"] < predicted[0, "ttft"] < predicted[0, "ttft_p99"] == predicted[1, "ttft_p99"]


@pytest.mark.parametrize(
    ("architecture", "stated", "kind"),
    [("gpt-oss-120b", "fp4", "mxfp4"), ("DeepSeek-R1", "fp4", "nvfp4"), ("DeepSeek-R1", "mxfp4", "mxfp4")],
)
def test_own_runs_are_kept_by_the_kind_of_their_weights(catalog, architecture, stated, kind):
    """What a calibration writes names the checkpoint's own kind, which `fp4` of a row means."""
    found = ask(catalog, model=architecture, chip="B200-SXM", weight_dtype=stated)
    assert SERVING.offset_key(found, "tpot").split("|")[2] == kind
