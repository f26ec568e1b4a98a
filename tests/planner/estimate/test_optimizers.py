"""Bytes of optimizer and gradients as a choice, and levels that a stated layout leaves open."""

from __future__ import annotations

import re

import pytest

from catalog.lookup import shipped_catalog
from models.training.constants import OPTIMIZERS, Recipe
from models.training.layouts import Layouts
from models.training.memory import state_bytes
from models.transformer.architecture import parameter_counts
from planner.calibration.architectures import shape_of_record
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.resolve.ledger import Ledger
from planner.resolve.systems import system_facts

SHAPE = {
    "tokens": "1T",
    "deadline": "20 years",
    "sequence_tokens": 2048,
    "batch_tokens": "8192 tokens",
    "precision": ["bf16"],
}


def case(architecture="Llama-2-7b-hf", system="TPU v4 pod", chips=4, layout=None, **workload):
    found = {
        "workload": {"kind": "training", "name": "t", "architecture": architecture, **SHAPE, **workload},
        "system": system,
        "chips": chips,
    }
    return found | ({} if layout is None else {"layout": layout})


@pytest.mark.parametrize(
    ("optimizer", "bytes_each"),
    [("adam", 14.0), ("adam_fp32", 12.0), ("adam_8bit", 8.0), ("muon", 10.0), ("adafactor", 6.0)],
)
def test_a_weight_takes_what_its_optimizer_keeps(optimizer, bytes_each):
    from models.serving.examples import DENSE

    for gradient in (2.0, 4.0):
        held = sum(
            float(part[0])
            for part in state_bytes(DENSE, Layouts.of(zero=0), Recipe(optimizer=optimizer, gradient_bytes=gradient))
        )
        assert held / parameter_counts(DENSE).total == pytest.approx(bytes_each + gradient)


def test_an_unknown_optimizer_is_refused_with_those_that_are_known():
    with pytest.raises(ValueError, match="unknown optimizer 'lion'; known: adam, adam_fp32"):
        Recipe(optimizer="lion")
    with pytest.raises(SpecError, match=r"workload\.optimizer"):
        estimate(case(optimizer="lion"))


def test_seven_billion_parameters_were_trained_on_four_chips_of_32_gb():
    # MaxText issue 606: Llama-2-7B on a TPU v4-8 (4 chips) with 32-bit weights alone, 12 bytes per parameter
    assert estimate(case(optimizer="adam_fp32", gradients="bf16")).answer is not None
    fixed = {"tp": 8, "pp": 1, "dp": 1, "zero": 1, "recompute": 2, "offload": 0}
    memory = lambda name: estimate(case(optimizer=name, chips=8, layout=fixed)).answer["memory_bytes"]
    needed = {name: memory(name) for name in OPTIMIZERS}
    assert needed["adafactor"] < needed["adam_8bit"] < needed["muon"] < needed["adam"]


@pytest.mark.parametrize(
    ("system", "able"),
    [
        ("DGX H100", {"bf16", "fp16", "fp8", "int8"}),  # NVIDIA, H100 data sheet: no block scales
        (
            "DGX B200",
            {"bf16", "fp16", "fp8", "int8", "fp4", "mxfp8", "mxfp4", "nvfp4"},
        ),  # PTX ISA, tcgen05.mma .block_scale
        ("MI300X 8x OAM node", {"bf16", "fp16", "fp8", "int8"}),  # AMD, CDNA3 instruction set
        ("MI355X 8x node", {"bf16", "fp16", "fp8", "int8", "fp4", "mxfp8", "mxfp4"}),  # AMD, CDNA4: V_MFMA_SCALE
        ("TPU7x (Ironwood) pod", {"bf16", "fp16", "fp8"}),
    ],
)
def test_recipes_with_block_scales_need_units_that_apply_them(system, able):
    catalog = shipped_catalog()
    assert set(system_facts(catalog.get("systems", system), Ledger(catalog)).recipes) == able


def test_a_recipe_that_the_chip_has_not_is_refused_with_those_that_it_has():
    with pytest.raises(SpecError, match="H100 SXM5 80GB has none of mxfp8; it has bf16, fp16, fp8, int8"):
        estimate(case(system="DGX H100", chips=8, precision=["mxfp8"]))


def test_what_lacks_is_told_in_bytes_beside_the_bytes_of_a_weight():
    """Llama-2-7B with Adam of 18 bytes a weight: 4 chips of 34.4e9 bytes lack some; what is said is what the leanest layout lacks."""
    found = estimate(case())
    assert found.answer is None
    needs, memory, lacks, each = (float(n) for n in re.search(
        r"takes ([\d.]+) GB of the ([\d.]+) GB of a chip: ([\d.]+) GB are missing; .* take (\d+) bytes", found.reason
    ).groups())  # fmt: skip
    assert each == 18 and needs - memory == pytest.approx(lacks, abs=0.02)
    counts = parameter_counts(shape_of_record(shipped_catalog().get("architectures", "Llama-2-7b-hf")))
    assert needs > each * counts.total / 4 / 1e9


def test_levels_that_a_stated_layout_leaves_open_are_searched():
    sizes = {"tp": 8, "pp": 1, "dp": 1}
    job = {
        "architecture": "Meta-Llama-3.1-8B",
        "system": "DGX H100",
        "chips": 8,
        "sequence_tokens": 32768,
        "batch_tokens": "65536 tokens",
    }
    open_ = estimate(case(layout=sizes, **job)).answer
    assert open_ is not None
    none = estimate(case(layout={**sizes, "recompute": 0, "zero": 1, "offload": 0}, **job)).answer
    stated = estimate(case(layout={**sizes, "recompute": 2}, **job)).answer
    assert stated is not None and stated["layout"]["recompute"] == 2
    assert open_["step_s"] <= stated["step_s"] and (none is None or open_["step_s"] <= none["step_s"])
