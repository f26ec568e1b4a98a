"""Chips without a published 16-bit rate load and serve at the precisions that they have."""

from __future__ import annotations

import pytest

from catalog.lookup import Catalog
from planner.errors import SpecError
from planner.estimate.answer import estimate
from planner.resolve.chip_rates import peak_rates, stated

CATALOG = Catalog.load()
WITHOUT = [chip for chip in CATALOG.records("chips") if "bf16" not in peak_rates(stated(chip))]
COMPLETE = [
    chip for chip in WITHOUT if peak_rates(stated(chip)) and chip.get("hbm_bytes") and chip.get("hbm_bytes_per_s")
]


def case(chip: str, precision: str) -> dict:
    system = {
        "name": "trial", "text": {"chip": chip},
        "figures": {
            name: {"value": value, "unit": unit, "note": "trial"}
            for name, value, unit in (("chips", 1, "chip"), ("power_w", 500, "W"))
        },
    }  # fmt: skip
    return {
        "workload": {
            "kind": "serving", "architecture": "Llama-3.2-1B", "lengths": {"input": 200, "output": 100}, "precision": [precision],
        },
        "system": "trial", "chips": 1, "catalog": {"systems": [system]},
    }  # fmt: skip


def test_there_are_such_chips():
    assert len(WITHOUT) >= 10 and len(COMPLETE) >= 5


@pytest.mark.parametrize("chip", COMPLETE, ids=lambda chip: chip.name)
def test_it_serves_at_each_precision_that_it_has(chip):
    for precision in peak_rates(stated(chip)):
        found = estimate(case(chip.name, precision))
        assert found.answer is not None, found.reason
        rows = {row["path"]: row["reason"] for row in found.answer["assumptions"]}
        assert "no 16-bit rate is published" in rows[f"chips/{chip.name}/bf16_flop_per_s"]
    with pytest.raises(SpecError, match=r"workload\.precision"):
        estimate(case(chip.name, "bf16"))


@pytest.mark.parametrize("chip", [chip for chip in WITHOUT if chip not in COMPLETE], ids=lambda chip: chip.name)
def test_one_without_the_figures_that_matter_names_what_to_state(chip):
    with pytest.raises(SpecError) as error:
        estimate(case(chip.name, "fp8"))
    assert all(problem.path == "system" and "overrides" in problem.message for problem in error.value.problems)


def test_attention_takes_the_rate_of_wider_operands():
    chip = next(chip for chip in COMPLETE if chip.get("fp8_flop_per_s"))
    rows = {row["path"]: row["value"] for row in estimate(case(chip.name, "fp8")).answer["assumptions"]}
    assert rows[f"chips/{chip.name}/bf16_flop_per_s"] == pytest.approx(chip.get("fp8_flop_per_s").number / 2)
