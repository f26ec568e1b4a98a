"""Hold published rates of whole systems against their predictions: inside the interval, or named with the cause on benchmarks/accuracy.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from catalog.errors import CatalogError
from catalog.lookup import Catalog, shipped_catalog
from planner.estimate.answer import estimate
from planner.facts.anchors import Predicted, contradicted
from planner.resolve.stack.anchors import anchor_prediction

CATALOG = shipped_catalog()
ANCHORS = CATALOG.records("anchors")
PAGE = (Path(__file__).resolve().parents[2] / "benchmarks" / "accuracy.md").read_text(encoding="utf-8")
DECODE = ANCHORS[0]


@pytest.mark.parametrize("anchor", ANCHORS, ids=lambda anchor: anchor.name)
def test_a_published_rate_is_predicted_or_named_with_its_cause(anchor):
    found = anchor_prediction(CATALOG, anchor)
    fits = found is not None and found.holds(anchor.value("rate"))
    assert fits == (not anchor.words("cause")), "predicted now: take the cause out" if fits else "give the cause"
    line = next(line for line in PAGE.splitlines() if line.startswith(f"| {anchor.name} |"))
    assert anchor.words("cause") in line
    assert found is None or f"{found.rate:,.0f} ({found.low:,.0f} to" in line, "write the page anew: --chapter anchors"


def test_a_rate_outside_the_interval_is_a_note_with_its_source():
    assert contradicted("w", DECODE, Predicted(1900.0, 1000.0, 2500.0)) is None
    note = contradicted("w", DECODE, Predicted(186.0, 120.0, 250.0))
    assert "published: 1,943 output tokens/s per chip below 50 ms per token; predicted 186" in note.message.text()
    assert note.source == "cloudmatrix384-paper-2025" and not note.refuses


def test_an_estimate_prints_the_contradiction_of_its_own_chip_and_network_alone():
    def codes(architecture, system):
        case = {
            "workload": {"kind": "serving", "architecture": architecture, "lengths": {"input": 1000, "output": 200}, "precision": ["int8"]},
            "system": system, "chips": 16, "load": "max",
        }  # fmt: skip
        return {row["code"].partition(".")[0] for row in estimate(case).answer["notes"]}

    chips = "HGX H20 8-GPU server"
    assert "anchor" in codes("DeepSeek-R1", chips)
    assert "anchor" not in codes("Qwen3-32B", chips) | codes("DeepSeek-R1", "DGX H200")


def test_an_anchor_names_records_and_has_a_rate(tmp_path):
    entry = '{"anchors": [{"name": "x", "text": {"chip": "H1000", "architecture": "Qwen3-32B", "phase": "decode", "grade": "A"}}]}'
    (tmp_path / "own.json").write_text(entry, encoding="utf-8")
    with pytest.raises(CatalogError, match="H1000") as found:
        Catalog.load([tmp_path])
    assert "rate" in str(found.value)
