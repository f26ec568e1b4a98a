"""Software dates, chip generations and runs that end, in the serving models; many sets of constants at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.lookup import shipped_catalog
from models.serving import examples
from models.serving.constants import FAMILIES, PORTED, REFERENCE_YEAR, FamilyFactors, ServingConstants
from models.serving.decode import ServingLayouts
from models.serving.many_runs import Case, Pool, Predictor
from models.serving.offered_load import Replica, request_rate
from models.serving.workload import Lengths, Precisions
from models.training.examples import TRAINING
from models.training.many_runs import Case as TrainingCase
from models.training.many_runs import Predictor as TrainingPredictor
from models.training.step import Recipe

YEARS = st.floats(2023.0, 2027.0)
ONE_GPU = Pool({"tp": 1, "pp": 1, "dp": 1, "ep": 1})
TIMES = ("layer_launch_s", "moe_layer_launch_s", "host_step_s", "all_reduce_start_s")
SHARES = ("compute_efficiency_16bit", "attention_efficiency", "memory_efficiency", "kv_efficiency")


def run(**changes) -> Replica:
    constants = examples.SERVING.profile(**changes)
    return Replica(
        examples.DENSE,
        examples.CHIP,
        ServingLayouts(1, 1, 1, 1),
        Lengths(1000, 200),
        Precisions("bf16", "bf16"),
        constants,
    )


@given(YEARS, YEARS, st.sampled_from(FAMILIES))
def test_newer_software_is_never_slower(one, other, family):
    old, new = (examples.SERVING.profile("vllm", family, year) for year in sorted((one, other)))
    assert all(getattr(new, name) <= getattr(old, name) * (1 + 1e-12) for name in TIMES)
    assert all(getattr(new, name) >= getattr(old, name) * (1 - 1e-12) for name in SHARES)


def test_kernels_do_not_change_after_the_reference_year_and_age_faster_where_ported():
    at = lambda family, year: examples.SERVING.profile("other", family, year).attention_efficiency
    assert at("hopper", REFERENCE_YEAR) == at("hopper", REFERENCE_YEAR + 1.0)
    assert at("cdna3", REFERENCE_YEAR - 1.0) < at("hopper", REFERENCE_YEAR - 1.0) < at("hopper", REFERENCE_YEAR)


def test_the_host_starts_all_reduces_too_where_engines_were_ported():
    slow = replace(examples.SERVING, families={name: FamilyFactors(launch=5.0) for name in ("ascend", "hopper")})
    at = lambda family: slow.profile("other", family, REFERENCE_YEAR)
    assert "ascend" in PORTED and "hopper" not in PORTED
    assert at("ascend").all_reduce_start_s == pytest.approx(5.0 * at("hopper").all_reduce_start_s)
    assert at("ascend").layer_launch_s == pytest.approx(at("hopper").layer_launch_s)


@given(st.integers(1, 400), st.floats(0.2, 20.0))
def test_a_run_that_ends_serves_no_more_than_one_without_end(count, rate):
    ends, endless = request_rate(run(), rate, count), request_rate(run(), rate)
    assert ends.tokens_per_s <= endless.tokens_per_s * (1 + 1e-9) and ends.batch <= count + 1e-9
    assert ends.tpot_s <= endless.tpot_s * (1 + 1e-9)
    more = request_rate(run(), rate, 2 * count)
    assert more.tokens_per_s >= ends.tokens_per_s * (1 - 1e-9)


def test_a_single_request_takes_its_own_time_and_a_long_run_the_steady_state():
    one = request_rate(run(), 5.0, 1)
    assert one.tokens_per_s == pytest.approx(200 / (one.ttft_s + 199 * one.tpot_s))
    assert request_rate(run(), 5.0, 1e6).tokens_per_s == pytest.approx(request_rate(run(), 5.0).tokens_per_s, rel=1e-3)


def test_clients_hold_requests_back():
    few = request_rate(run(), 1000.0, running=4)
    assert few.batch <= 4.0 and few.tokens_per_s < request_rate(run(), 1000.0).tokens_per_s


def serving_cases():
    one = Case(
        examples.DENSE,
        examples.CHIP,
        ONE_GPU,
        None,
        "bf16",
        "bf16",
        "vllm",
        2025.0,
        "hopper",
        "closed",
        1000.0,
        200.0,
        8.0,
    )
    return [one, replace(one, engine="local", family="ascend", load=2.0), replace(one, regime="open", load=3.0, requests=20.0),
            replace(one, arch=examples.MOE, regime="maximum", load=0.0, weight_precision="fp8")]  # fmt: skip


def test_constants_tried_together_give_what_they_give_one_by_one():
    values = shipped_catalog().constants("serving")
    predict = Predictor(
        serving_cases(), [(case, metric) for case in range(4) for metric in ("tpot", "ttft", "throughput")]
    )
    points = [
        {**values, name: 1.3 * values[name]}
        for name in ("launch_ascend", "layer_launch_s", "host_vllm", "expert_width")
    ]
    assert predict.many(points) == pytest.approx(np.stack([predict(point) for point in points]), abs=1e-12)


def test_runs_of_engines_with_and_without_a_pool_of_states_do_not_touch_each_other():
    arch = replace(examples.DENSE, linear_layers=24, state_width=4096, state_inputs=2048)
    one = replace(serving_cases()[0], arch=arch, load=4096.0)
    pooled = replace(one, division={"usable_memory": 0.8, "state_share": 0.4, "state_slots": 7.0})
    values, asked = shipped_catalog().constants("serving"), ("tpot", "throughput")
    alone = [Predictor([case], [(0, metric) for metric in asked])(values) for case in (one, pooled)]
    together = Predictor([one, pooled], [(case, metric) for case in (0, 1) for metric in asked])(values)
    assert together == pytest.approx(np.concatenate(alone), abs=1e-12)
    assert alone[1][0] < alone[0][0] - 0.1  # fewer run at once


def test_constants_of_training_tried_together_give_what_they_give_one_by_one():
    case = TrainingCase(
        examples.DENSE, examples.CHIP, {"tp": 2, "dp": 8}, 64.0, 4096, "bf16", "hopper", Recipe(release_year=2025.0)
    )
    runs = [
        case,
        replace(case, layout={"tp": 8, "dp": 2}),
        replace(case, arch=examples.MOE, layout={"ep": 8, "dp": 16}),
    ]
    values = {name: getattr(TRAINING, name) for name in TRAINING.__slots__}
    predict = TrainingPredictor(runs)
    points = [
        {**values, name: 1.1 * values[name]} for name in ("efficiency_16bit", "intra_efficiency", "launch_floor_s")
    ]
    assert predict.many(points) == pytest.approx(np.stack([predict(point) for point in points]), abs=1e-12)


def test_every_generation_with_factors_of_its_own_has_chips():
    families = {chip.words("family") for chip in shipped_catalog().records("chips")}
    assert set(FAMILIES) <= families
    assert isinstance(ServingConstants.from_values(shipped_catalog().constants("serving")), ServingConstants)


MODES = tuple({"engine": engine, "family": "ascend", "release_year": REFERENCE_YEAR} for engine in ("vllm", "other"))


def test_the_host_starts_kernels_one_by_one_only_where_engines_do():
    begun, recorded = (examples.SERVING.profile(**mode) for mode in MODES)
    engine = examples.SERVING.engines["vllm"].launch
    assert begun.layer_launch_s == pytest.approx(examples.SERVING.eager_launch * engine * recorded.layer_launch_s)
    assert begun.all_reduce_start_s == pytest.approx(examples.SERVING.eager_launch * recorded.all_reduce_start_s)
    elsewhere = examples.SERVING.profile("vllm", "hopper", REFERENCE_YEAR)
    assert elsewhere.layer_launch_s == pytest.approx(engine * examples.SERVING.layer_launch_s)


@given(st.sampled_from(FAMILIES), st.booleans())
def test_how_kernels_are_started_changes_no_time_of_kernels(family, eager):
    slow = replace(examples.SERVING, families={family: FamilyFactors(launch=7.0)})
    kernels = ("moe_layer_launch_s", "prefill_moe_layer_launch_s", "memory_efficiency", "compute_efficiency_8bit")
    found = slow.profile("vllm", family, REFERENCE_YEAR, eager)
    usual = examples.SERVING.profile("vllm", family, REFERENCE_YEAR)
    assert all(getattr(found, name) == pytest.approx(getattr(usual, name)) for name in kernels)


def test_runs_of_both_modes_are_predicted_side_by_side():
    one = replace(serving_cases()[0], family="ascend", engine="other")
    cases = [one, replace(one, eager=True), replace(one, engine="vllm")]
    constants = shipped_catalog().constants("serving")
    recorded, begun, by_engine = np.exp(Predictor(cases, [(i, "tpot") for i in range(3)])(constants))
    assert begun > 1.3 * recorded and by_engine > 1.3 * recorded
