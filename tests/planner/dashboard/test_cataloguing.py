"""The figures of the catalog on the page, the accuracy that is stored, and figures of one's own in a scenario."""

import hashlib
import json
from pathlib import Path

import pytest

from catalog.lookup import Catalog, shipped_catalog
from catalog.schemas import SCHEMAS
from planner.calibration.fit import calibrate
from planner.dashboard import cataloguing, own_figures, sources
from planner.dashboard.state.scenario import Scenario
from planner.errors import SpecError
from planner.report.charts import accuracy
from planner.report.locale import Words
from planner.resolve.resolver import resolve_document

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
RUNS = Path(__file__).resolve().parents[2] / "published" / "training_runs.csv"
HARDWARE = {
    "sources": {"Q1": {"title": "quotation", "date": "2026-10", "confidence": "B"}},
    "chips": [
        {
            "name": "Example A1",
            "text": {"vendor": "Example", "family": "ascend", "export_cn": "domestic"},
            "figures": {"bf16_flop_per_s": {"value": "400 TFLOP/s", "source": ["Q1"]}, "hbm_bytes": "96 GB", "hbm_bytes_per_s": "2.4 TB/s", "tdp_w": "500 W"},
        }
    ],
    "defaults": [{"name": "memory_utilisation", "figures": {"value": 0.8}}],
}  # fmt: skip


def packed(document: dict) -> bytes:
    return json.dumps(document).encode()


def test_every_figure_is_listed_with_its_source_and_found_by_words():
    catalog, rows = shipped_catalog(), cataloguing.every_figure()
    figures = [f for kind in SCHEMAS for r in catalog.records(kind) for f in (*r.figures.values(), *r.claimed.values())]
    assert len(rows) == len(figures) == sum(cataloguing.kinds().values())
    assert all(row["confidence"] and row["value"] and row["nature"] for row in rows)
    found = cataloguing.found_figures(["chips"], "h100 hbm_bytes_per_s")
    assert {row["kind"] for row in found} == {"chips"} and all("H100" in row["record"] for row in found)
    plan = sources.stored_plan()
    used = cataloguing.found_figures([], "", cataloguing.cited(plan))
    assert {cataloguing.path_of(row) for row in used} == cataloguing.cited(plan) & set(map(cataloguing.path_of, rows))
    assert len(used) > 0.9 * len(cataloguing.cited(plan))
    assert len({len(column) for column in cataloguing.figure_table(found, Words("zh")).values()}) == 1


def test_the_stored_accuracy_is_of_these_metrics_and_drawn():
    document, chips = cataloguing.accuracy(), set(shipped_catalog().names("chips"))
    assert set(cataloguing.metrics()) == {"step_time", "tpot", "ttft", "throughput"}
    assert {row["chip"] for row in document["summary"]} <= chips
    for metric in cataloguing.metrics():
        points = cataloguing.points_of(metric)
        assert points and all(point["measured"] > 0 and point["predicted"] > 0 for point in points)
        rows = cataloguing.accuracy_table(metric, Words())
        assert {point["chip"] for point in points} <= {row["Chip"] for row in rows}
        assert sum(row["Observations"] for row in rows) >= len(points)
    constants = {
        f"{name}.{key}": v for name in ("training", "serving") for key, v in shipped_catalog().constants(name).items()
    }
    digest = hashlib.sha256(json.dumps(constants, sort_keys=True).encode()).hexdigest()[:12]
    assert document["constants"] == digest, f"other constants ship now: run {document['command']}"
    chart = accuracy.accuracy_chart(points, "x", Words()).to_dict()
    assert "description" in chart and len(chart["layer"]) == 3


def test_an_overlay_becomes_part_of_a_scenario_and_comes_out_again():
    edits = own_figures.overlay_edits(TINY, [("mine.json", packed(HARDWARE))])
    chip = edits["catalog"]["chips"][0]["figures"]
    assert chip["bf16_flop_per_s"]["note"] == "quotation" and "mine.json" in chip["hbm_bytes"]["note"]
    scenario, idle = own_figures.taken(Scenario.of_upload(TINY), edits)
    document = scenario.document()
    assert not idle and document["overrides"]["defaults/memory_utilisation/value"]["value"] == 0.8
    assert len(own_figures.own_rows(document)) == 5
    again = own_figures.own_overlay(document)
    assert own_figures.overlay_edits(TINY, [("mine.json", packed(again))]) == edits
    assert "Example A1" in Catalog.load((), [{"chips": again["chips"]}]).names("chips")


def test_the_config_of_an_architecture_is_an_own_figure():
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336,
        "num_attention_heads": 32, "num_hidden_layers": 36, "num_key_value_heads": 8, "tie_word_embeddings": False, "vocab_size": 64000,
    }  # fmt: skip
    asked = {**TINY, "workloads": [{**TINY["workloads"][0], "architecture": "house-9b"}]}
    edits = own_figures.overlay_edits(asked, [("house-9b.config.json", packed(config))])
    scenario, _ = own_figures.taken(Scenario.of_upload(asked), edits)
    assert [row["path"] for row in own_figures.own_rows(scenario.document())] == ["architectures/house-9b"]
    assert sources.resolved(scenario.document()).serving[0].architecture.layers == 36


def test_what_a_spec_cannot_hold_or_does_not_read_is_told():
    wrong = {"offers": [{"name": "mine", "figures": {"price": "1 USD"}}], "colours": [], "chips": [1]}
    with pytest.raises(SpecError) as refused:
        own_figures.overlay_edits(TINY, [("mine.json", packed(wrong))])
    assert len(refused.value.problems) == 3
    unread = {"defaults": [{"name": "recovery_s", "figures": {"value": "100 s"}}]}
    scenario, idle = own_figures.taken(
        Scenario.of_upload(TINY), own_figures.overlay_edits(TINY, [("a.json", packed(unread))])
    )
    assert idle == ["defaults/recovery_s/value"] and "overrides" not in scenario.document()
    bad = {"constants": [{"name": "serving_anchor", "figures": {"half a name": {"value": 1.1, "note": "n"}}}]}
    with pytest.raises(SpecError, match="such as engine"):
        own_figures.taken(Scenario.of_upload(TINY), own_figures.overlay_edits(TINY, [("a.json", packed(bad))]))


def test_a_calibration_of_own_runs_moves_the_constants_of_a_scenario_as_an_overlay_does(tmp_path):
    lines = RUNS.read_text().splitlines()
    (tmp_path / "runs.csv").write_text("\n".join(lines[:4]) + "\n")
    done = calibrate(tmp_path / "runs.csv", tmp_path / "overlay", shipped_catalog())
    written, changes = done.written, list(done.figures)
    main = Scenario(sources.MAIN)
    edits = own_figures.overlay_edits(main.document(), [(path.name, path.read_bytes()) for path in written])
    scenario, idle = own_figures.taken(main, edits)
    by_scenario = sources.resolved(scenario.document())
    by_overlay = resolve_document(main.document(), [tmp_path / "overlay"])
    assert by_scenario.constants.training == by_overlay.constants.training
    assert by_scenario.constants.training != sources.resolved(main.document()).constants.training
    assert all(path.startswith(("constants/training_seen/kind ", "constants/training_seen/network ")) for path in idle)
    table = cataloguing.change_table({"changes": changes}, Words())
    assert len(table) == len(changes) and table[0]["Change"] == changes[0]["after"] / changes[0]["before"] - 1


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("chips", {"name": "H100 SXM5 80GB", "figures": {"hbm_bytes": {"value": "1 GB", "note": "n", "kind": [1]}}}),
        ("defaults", {"name": "pue", "figures": {"value": {"value": [1, 2], "unit": "W", "note": "n"}}}),
        ("defaults", {"name": "pue", "figures": {"value": {"value": {"a": 1}, "unit": "W", "note": "n"}}}),
        ("defaults", {"name": "pue", "text": "words"}),
        ("defaults", {"name": "pue", "text": ["words"]}),
    ],
)
def test_values_of_the_wrong_type_are_told(kind, record):
    with pytest.raises(SpecError):
        edits = own_figures.overlay_edits(TINY, [("a.json", packed({kind: [record]}))])
        own_figures.taken(Scenario.of_upload(TINY), edits)
