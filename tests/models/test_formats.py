"""Formats of weights: stored bytes, the arithmetic that takes them, and mixed checkpoints against published sizes."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog.lookup import Catalog
from models import formats
from models.formats import FORMATS, OWN_KINDS, PARTS, PRECISIONS, Checkpoint, arithmetic_of, cache_format, stored, takes
from models.serving import examples
from models.serving.decode import ServingLayouts
from models.serving.kv_cache import weight_bytes_per_chip
from models.serving.step import StepLoad, step_time
from models.serving.workload import Precisions
from models.training.examples import TRAINING
from models.transformer.architecture import parameter_counts
from models.transformer.checkpoint import checkpoint_bytes
from planner.resolve.architectures import shape_of
from planner.resolve.ledger import Ledger

CATALOG = Catalog.load()
ONE = ServingLayouts(1, 1, 1, 1)
names = st.sampled_from(formats.WEIGHT_FORMATS)
shares = st.floats(0.0, 1.0)


def shape(name):
    return shape_of(CATALOG.get("architectures", name), Ledger(CATALOG))


@pytest.mark.parametrize(
    ("name", "bits"),
    [
        ("int4", 4.125),  # AWQ and GPTQ: a 16-bit scale for 128 elements
        ("mxfp4", 4.25),  # OCP Microscaling 1.0: an 8-bit scale for 32
        ("nvfp4", 4.5),  # NVFP4: an 8-bit scale for 16
        ("mxfp8", 8.25),
        ("fp8", 8.0),
    ],
)
def test_scales_count_in_the_bytes(name, bits):
    assert 8.0 * formats.element_bytes(name) == bits


@pytest.mark.parametrize(
    ("name", "precision", "published_gb"),
    [
        ("gpt-oss-120b", "fp4", 65.2),  # vLLM, gpt-oss recipe: the MXFP4 checkpoint
        ("gpt-oss-20b", "mxfp4", 13.8),  # size of the published files
        ("Kimi-K2.5", "int4", 595.0),  # vLLM, Kimi-K2.5 recipe
        ("DeepSeek-R1", "fp8", 688.6),  # published files, which hold a layer for predicting further tokens too
    ],
)
def test_mixed_checkpoints_are_as_large_as_published(name, precision, published_gb):
    assert float(checkpoint_bytes(shape(name), precision)) / 1e9 == pytest.approx(published_gb, rel=0.03)


def test_meta_keeps_the_attention_of_its_largest_network_in_16_bit():
    # vLLM's log of Llama-3.1-405B-Instruct-FP8 on eight chips: 62.0 GB each; The Llama 3 Herd of Models, section 6.2
    layout = ServingLayouts(8, 1, 1, 1)
    metas = float(weight_bytes_per_chip(shape("Llama-3.1-405B-Instruct-FP8"), layout, "fp8")) / 1e9
    uniform = float(weight_bytes_per_chip(shape("Meta-Llama-3.1-405B"), layout, "fp8")) / 1e9
    assert metas == pytest.approx(62.0, rel=0.03) and uniform < 52.0


def test_a_name_means_the_kind_of_the_checkpoint():
    assert checkpoint_bytes(shape("gpt-oss-120b"), "fp4") == checkpoint_bytes(shape("gpt-oss-120b"), "mxfp4")
    assert checkpoint_bytes(shape("Llama-3.1-8B"), "fp4") == checkpoint_bytes(shape("Llama-3.1-8B"), "nvfp4")


def test_the_cache_is_in_16_bit_unless_the_checkpoint_asks_for_less():
    eight = {name for name in formats.WEIGHT_FORMATS if cache_format((), name) != "bf16"}
    assert eight == {"nvfp4", "fp4"}  # Model Optimizer writes an FP8 cache into them
    assert cache_format(shape("gpt-oss-120b").checkpoints, "fp4") == "bf16"
    assert cache_format((("fp8", Checkpoint("fp8", cache="fp8")),), "fp8") == "fp8"


@given(names, st.sets(st.sampled_from(formats.ARITHMETICS)))
def test_a_chip_multiplies_in_what_it_has_and_the_format_takes(name, able):
    used = arithmetic_of(name, able)
    assert used is None or (used in able and takes(name, used))
    assert (used is None) == (not able & set(FORMATS[name].arithmetic))
    for stated in formats.ARITHMETICS:
        found = arithmetic_of(name, able, stated)
        assert found in (None, stated) and (found is None) == (stated not in able or not takes(name, stated))


@given(names, shares, shares, shares, st.sampled_from([0, 16, 32, 128]))
def test_a_part_costs_between_its_format_and_16_bit(name, attention, ffn, experts, group):
    kind = OWN_KINDS.get(name, (name,))[0]
    mixed = Checkpoint(kind, attention=attention, ffn=ffn, experts=experts, group=group)
    found = stored(((name, mixed),), name)
    for part in PARTS:
        assert mixed.narrow_bytes - 1e-12 <= getattr(found, part) <= 2.0 + 1e-12
    codes = np.array([PRECISIONS.index(name), PRECISIONS.index("bf16")])
    several = stored(((name, mixed),), codes)
    assert [getattr(several, part)[0] for part in PARTS] == [getattr(found, part) for part in PARTS]
    assert all(getattr(several, part)[1] == 2.0 for part in PARTS)


@given(shares, shares)
def test_the_size_of_a_checkpoint_is_the_sum_of_its_parts(attention, tables):
    count = parameter_counts(examples.MOE)
    mixed = dataclasses.replace(
        examples.MOE, checkpoints=(("int4", Checkpoint("int4", attention=attention, tables=tables)),)
    )
    plain = float(checkpoint_bytes(examples.MOE, "int4"))
    more = count.attention * attention * (2.0 - 0.515625) + (count.embedding + count.head) * tables * (2.0 - 1.0)
    assert float(checkpoint_bytes(mixed, "int4")) == pytest.approx(plain + more, rel=1e-12)


def step(weights, chip=examples.CHIP, arch=examples.DENSE, sequences=1.0, **constants):
    known = dataclasses.replace(examples.SERVING, dense_saturation_tokens=1e-12, **constants)
    load = StepLoad(sequences, context_tokens=100.0)
    return step_time(arch, chip, ONE, load, precisions=Precisions(weights, "bf16"), constants=known)


def test_widened_weights_are_read_as_stored_and_computed_wide():
    narrow_unit = dataclasses.replace(examples.CHIP, flop_per_s=2e15, gemm_bits=8.0)
    wide_unit = dataclasses.replace(examples.CHIP, gemm_bits=16.0)
    efficiencies = {"compute_efficiency_8bit": 0.4, "compute_efficiency_16bit": 0.5}
    free = {"widened_efficiency": 1.0, **efficiencies}
    narrow, widened = step("fp8", narrow_unit, **free).breakdown, step("fp8", wide_unit, **free).breakdown
    assert (
        widened["dense_memory"]
        == narrow["dense_memory"]
        == pytest.approx(step("bf16", **free).breakdown["dense_memory"] / 2, rel=0.2)
    )
    assert widened["dense_compute"] / narrow["dense_compute"] == pytest.approx(2.0 * 0.4 / 0.5)
    dear = step("fp8", wide_unit, widened_efficiency=0.5, **efficiencies).breakdown
    assert dear["dense_memory"] == pytest.approx(2.0 * widened["dense_memory"])
    assert dear["dense_compute"] == pytest.approx(2.0 * widened["dense_compute"])
    assert step("fp8", narrow_unit, widened_efficiency=0.5, **efficiencies).breakdown == narrow


def test_what_stays_in_16_bit_is_computed_and_read_so():
    wide = Checkpoint("int4", attention=1.0, ffn=1.0, experts=1.0, router=1.0, tables=1.0)
    arch = dataclasses.replace(examples.DENSE, checkpoints=(("int4", wide),))
    chip = dataclasses.replace(examples.CHIP, gemm_bits=8.0, flop_per_s=4e15)
    same, whole = step("int4", chip, arch, widened_efficiency=0.5), step("bf16")
    for part in ("dense_memory", "dense_compute"):
        assert same.breakdown[part] == pytest.approx(whole.breakdown[part], rel=1e-12)


def test_every_recipe_of_training_has_an_efficiency_and_a_size():
    for name in formats.RECIPE_FORMATS:
        assert 0.0 < TRAINING.gemm_efficiency(name) < 1.0
    assert TRAINING.gemm_efficiency("nvfp4") == TRAINING.gemm_efficiency("mxfp4") == TRAINING.gemm_efficiency("fp4")
    with pytest.raises(ValueError, match="unknown training precision"):
        TRAINING.gemm_efficiency("int4")
