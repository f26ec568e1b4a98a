"""Rates of chips from catalog records: one rule for every reader of them."""

from __future__ import annotations

import pytest

from catalog.lookup import Catalog
from planner.resolve.chip_rates import UnknownRate, chip_rates, peak_flop_per_s, peak_rates, stated

LINKS = {"scaleup_bytes_per_s": 4e11, "scaleup_chips": 8, "scaleout_bytes_per_s": 5e10}


def test_the_two_16_bit_formats_run_at_one_rate():
    assert peak_rates({"bf16_flop_per_s": 1e15, "fp8_flop_per_s": 2e15}.get) == {"bf16": 1e15, "fp8": 2e15}
    assert peak_flop_per_s({"fp16_flop_per_s": 3e14}.get, "bf16") == 3e14


def test_weights_that_a_chip_does_not_multiply_are_widened_to_16_bit():
    ampere, hopper = (Catalog.load().get("chips", name) for name in ("A100 SXM 80GB", "H100 SXM5 80GB"))
    for name, bits in (("fp8", 8), ("mxfp8", 8), ("int8", 8), ("int4", 16), ("nvfp4", 16), ("fp16", 16)):
        assert chip_rates(hopper, name, **LINKS).gemm_bits == bits
    widened = chip_rates(ampere, "fp8", **LINKS)
    assert (widened.gemm_bits, widened.flop_per_s) == (16, ampere.value("bf16_flop_per_s"))


def test_the_arithmetic_may_be_stated_where_it_takes_the_format():
    hopper = Catalog.load().get("chips", "H100 SXM5 80GB")
    eight = chip_rates(hopper, "int4", arithmetic="fp8", **LINKS)
    assert (eight.gemm_bits, eight.flop_per_s) == (8, hopper.value("fp8_flop_per_s"))
    with pytest.raises(UnknownRate, match="no published fp8 rate for weights in bf16"):
        chip_rates(hopper, "bf16", arithmetic="fp8", **LINKS)


def test_a_rank_that_is_half_a_chip_has_half_of_its_rates():
    chip = Catalog.load().get("chips", "H100 SXM5 80GB")
    whole, half = (chip_rates(chip, "fp8", **LINKS, ranks_per_chip=ranks) for ranks in (1, 2))
    assert whole.flop_per_s == chip.value("fp8_flop_per_s") and whole.flop16_per_s == chip.value("bf16_flop_per_s")
    assert (half.flop_per_s, half.hbm_bytes, half.scaleout_bytes_per_s) == (
        whole.flop_per_s / 2,
        whole.hbm_bytes / 2,
        LINKS["scaleout_bytes_per_s"] / 2,
    )
    assert half.scaleup_chips == 2 * whole.scaleup_chips


def test_what_a_record_does_not_state_is_named():
    chip = Catalog.load().get("chips", "A100 SXM 80GB")
    assert peak_flop_per_s(stated(chip), "fp8") is None
    with pytest.raises(UnknownRate, match="no published fp4 rate for weights in fp4"):
        chip_rates(chip, "fp4", arithmetic="fp4", **LINKS)
