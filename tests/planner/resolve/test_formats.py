"""Notes on formats: what a checkpoint leaves in 16 bit, and which chips widen its weights before they multiply them."""

from __future__ import annotations

import pytest

import planner
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan


def noted(document) -> list[dict]:
    return [fact.row() for fact in resolve_document(document).notes if fact.message.code.startswith("formats.")]


@pytest.mark.parametrize(
    ("precision", "arithmetic", "widened"),
    [
        ("fp8", None, None), ("bf16", None, None), ("int8", None, None), ("int4", None, "bf16"), ("nvfp4", None, "bf16"),
        ("fp4", None, "bf16"), ("int4", "fp8", "fp8"), ("int8", "bf16", "bf16"),
    ],
)  # fmt: skip
def test_weights_that_a_chip_widens_are_named(tiny, precision, arithmetic, widened):
    """An H100 multiplies 8 and 16 bit; of 4 bit it has no unit (NVIDIA, H100 data sheet)."""
    spec = tiny()
    spec["workloads"][0] |= {"precision": [precision], **({"arithmetic": arithmetic} if arithmetic else {})}
    found = [row for row in noted(spec) if row["code"] == "formats.widened"]
    assert [(row["path"], row["arguments"]["arithmetic"], row["arguments"]["chips"]) for row in found] == (
        [("workloads[0].precision", widened, "H100 SXM5 80GB")] if widened else []
    )


def test_a_mixed_checkpoint_is_named_with_its_size(tiny):
    """OpenAI, gpt-oss-120b model card: 65.2 GB, MXFP4 of the experts, everything else in BF16: 2.1B of 116.8B parameters."""
    spec = tiny()
    spec["workloads"][0] |= {"architecture": "gpt-oss-120b", "precision": ["fp4"]}
    (row,) = [row for row in noted(spec) if row["code"] == "formats.mixed"]
    arguments = row["arguments"]
    assert (arguments["architecture"], arguments["format"]) == ("gpt-oss-120b", "mxfp4")
    assert arguments["share"] == pytest.approx(100 * 2.1 / 116.8, rel=0.03)
    assert arguments["gigabytes"] == pytest.approx(65.2, rel=0.01)


def test_a_checkpoint_all_in_one_format_is_not(tiny):
    spec = tiny()
    spec["workloads"][0] |= {"architecture": "Llama-3.1-8B", "precision": ["fp8"]}
    assert not noted(spec)


def test_the_plan_holds_the_notes(tiny):
    spec = tiny()
    spec["workloads"][0]["precision"] = ["int4"]
    plan = planner.solve(spec, threads=1)
    assert "formats.widened" in [row["code"] for row in plan["notes"]]
    assert verify_plan(plan) == []
