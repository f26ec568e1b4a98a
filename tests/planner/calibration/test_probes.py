"""Test what a probe changes: rates of its chip, by the part that it measured, as far as the levels allow."""

from __future__ import annotations

import json
import math

import pytest

from catalog.lookup import Catalog, shipped_catalog
from models.serving.constants import FAMILIES
from planner.calibration import probes
from planner.calibration.fit import MIN_PRIOR_SPREAD
from planner.cli.main import main
from planner.errors import SpecError
from planner.problem.intervals import Z80
from planner.resolve.architectures import shape_of
from planner.resolve.chip_rates import chip_rates
from planner.resolve.constants import calibration
from planner.resolve.ledger import Ledger

H100, H200 = "H100 SXM5 80GB", "H200 SXM 141GB"
NONE = {"scaleup_bytes_per_s": 450e9, "scaleup_chips": 8, "scaleout_bytes_per_s": 50e9}


@pytest.fixture(scope="module")
def reference(root):
    return json.loads((root / "benchmarks" / "probes" / "h100_sxm.json").read_text("utf-8"))


def slowed(document, factor, matches):
    """Return a probe in which the measurements that match took `factor` times as long."""
    rows = []
    for row in document["measurements"]:
        by = factor if matches(row) else 1.0
        rates = {name: row[name] / by for name in ("flop_per_s", "bytes_per_s") if name in row}
        rows.append({**row, "seconds": row["seconds"] * by, **rates})
    return {**document, "measurements": rows}


def written(tmp_path, document, name="probe.json"):
    path = tmp_path / name
    path.write_text(json.dumps(document), "utf-8")
    return path


def overlaid(tmp_path, document, **further):
    probes.calibrate_probes([written(tmp_path, document)], tmp_path / "own", shipped_catalog(), further)
    return Catalog.load([tmp_path / "own"])


def few_rows(row):
    return row["kind"] in ("gather", "read", "copy", "decode attention") or (
        row["kind"] == "gemm" and row["shape"]["m"] <= 64
    )


@pytest.mark.parametrize("name", ["h100_sxm", "h200_sxm"])
def test_the_reference_figures_are_those_of_the_files(root, name):
    files = sorted((root / "benchmarks" / "probes").glob(f"**/{name}*.json"))
    documents = [json.loads(path.read_text("utf-8")) for path in files]
    catalog = shipped_catalog()
    chip = probes.chip_of(documents[0], catalog, None, name)
    record = catalog.get("constants", probes.REFERENCE)
    for figure, value in probes.reference_figures(documents, chip).items():
        assert record.value(figure) == pytest.approx(value, rel=1e-3)
    if len(documents) > 1:
        repeat = catalog.get("constants", probes.REPEAT)
        for figure, value in probes.repeat_figures(documents, chip).items():
            assert repeat.value(figure) == pytest.approx(value, rel=1e-2)
    told = json.dumps(documents).lower()
    assert not any(word in told for word in ("hostname", "/home", "/work", "/root", "uuid"))


def test_another_probe_of_the_same_chip_lies_in_the_interval(root):
    """Four probes of one chip on two days: each factor of the others counts as 1 within three standard deviations."""
    catalog = shipped_catalog()
    for path in (root / "benchmarks" / "probes").glob("**/h200_sxm*.json"):
        document = json.loads(path.read_text("utf-8"))
        chip = probes.chip_of(document, catalog, None, path.name)
        for finding in probes.findings(probes.shares(document, chip), chip, catalog):
            assert abs(math.log(finding.factor)) < 3.0 * finding.spread, (path.name, finding)


def test_the_reference_itself_changes_no_rate(tmp_path, reference):
    catalog = overlaid(tmp_path, reference)
    for precision in ("bf16", "fp8"):
        before, after = (chip_rates(c.get("chips", H100), precision, **NONE) for c in (shipped_catalog(), catalog))
        assert after.flop_per_s == pytest.approx(before.flop_per_s, rel=1e-3)
        assert after.hbm_bytes_per_s == pytest.approx(before.hbm_bytes_per_s, rel=1e-3)


def test_slow_memory_moves_memory_alone_and_by_its_share(tmp_path, reference):
    shipped, catalog = shipped_catalog(), overlaid(tmp_path, slowed(reference, 1.25, few_rows))
    before, after = (chip_rates(c.get("chips", H100), "fp8", **NONE) for c in (shipped, catalog))
    assert after.flop_per_s == pytest.approx(before.flop_per_s, rel=1e-3)
    assert after.scaleup_bytes_per_s == before.scaleup_bytes_per_s
    ratio = after.hbm_bytes_per_s / before.hbm_bytes_per_s
    shares = probes.shares(reference, shipped.get("chips", H100))["memory"]
    mean = sum(map(math.log, shares)) / len(shares)
    scatter = math.sqrt(sum((math.log(s) - mean) ** 2 for s in shares) / (len(shares) - 1) / len(shares))
    engines = shipped.get("constants", "serving_levels").value("tpot_engine")
    repeat = shipped.get("constants", probes.REPEAT).value("memory")
    counted = MIN_PRIOR_SPREAD**2 / (MIN_PRIOR_SPREAD**2 + engines**2 + scatter**2 + repeat**2)
    assert ratio == pytest.approx(1.25**-counted, rel=2e-3)
    other = (chip_rates(c.get("chips", H200), "fp8", **NONE) for c in (shipped, catalog))
    assert next(other) == next(other)  # no other chip moves
    for name in FAMILIES:
        figure = f"serving.launch_{name}"
        assert catalog.get("constants", figure).value("value") == pytest.approx(
            shipped.get("constants", figure).value("value"), rel=1e-3
        )
    moved = {name for name in shipped.names("constants") if name.startswith(("serving.", "training."))
             and catalog.get("constants", name).value("value") != shipped.get("constants", name).value("value")}  # fmt: skip
    assert moved <= {"serving.launch_hopper"}


@pytest.mark.parametrize("numbers, other", [("bf16", "fp8"), ("fp8", "bf16")])
def test_slow_products_of_a_format_move_that_format_alone(tmp_path, reference, numbers, other):
    slow = slowed(reference, 1.2, lambda row: (row["kind"], row["format"]) == ("gemm", numbers) and not few_rows(row))
    shipped, catalog = shipped_catalog(), overlaid(tmp_path, slow)
    ratio = {
        each: chip_rates(catalog.get("chips", H100), each, **NONE).flop_per_s
        / chip_rates(shipped.get("chips", H100), each, **NONE).flop_per_s
        for each in (numbers, other)
    }
    assert 1 / 1.2 < ratio[numbers] < 0.95
    assert ratio[other] == pytest.approx(1.0, rel=1e-3)


def test_slow_launches_move_the_launch_of_the_generation(tmp_path, reference):
    catalog = overlaid(tmp_path, slowed(reference, 2.0, lambda row: row["kind"] == "launch"))
    factor = catalog.get("constants", "serving.launch_hopper").value("value") / shipped_catalog().get(
        "constants", "serving.launch_hopper"
    ).value("value")
    assert 1.2 < factor < 2.0
    assert catalog.get("chips", H100).value("reached_memory") == pytest.approx(1.0, rel=1e-3)


def all_reduce(bus_bytes_per_s):
    size = 1 << 29
    shape = {"bytes": size, "devices": 8}
    return {"kind": "all-reduce", "format": "bf16", "name": "8 devices", "shape": shape, "seconds": 1e-3,
            "spread": 0.0, "samples": 9, "bytes_per_s": bus_bytes_per_s}  # fmt: skip


def test_slow_collectives_move_the_links_alone(tmp_path, reference):
    document = {**reference, "measurements": [*reference["measurements"], all_reduce(450e9 * 0.4)]}
    catalog = overlaid(tmp_path, document)
    before, after = (chip_rates(c.get("chips", H100), "bf16", **NONE) for c in (shipped_catalog(), catalog))
    expected = shipped_catalog().get("constants", "training.intra_efficiency").value("value")
    assert 0.4 / expected < after.scaleup_bytes_per_s / before.scaleup_bytes_per_s < 0.95
    assert after.scaleout_bytes_per_s == before.scaleout_bytes_per_s


def test_without_a_reference_of_the_chip_less_counts(reference, monkeypatch):
    catalog, chip = shipped_catalog(), shipped_catalog().get("chips", H100)
    known = {f.part: f for f in probes.findings(probes.shares(reference, chip), chip, catalog)}
    references = probes._references
    monkeypatch.setattr(probes, "_references", lambda *of: [pair for pair in references(*of) if pair[0] != H100])
    other = {f.part: f for f in probes.findings(probes.shares(reference, chip), chip, catalog)}
    for part, finding in other.items():
        assert finding.share < known[part].share and finding.spread > known[part].spread


def test_a_chip_that_was_never_measured_learns_more(reference, monkeypatch):
    catalog, chip = shipped_catalog(), shipped_catalog().get("chips", H100)
    seen = probes.seen_chips
    measured = probes.shares(reference, chip)
    before = {f.part: f.share for f in probes.findings(measured, chip, catalog)}
    kept = probes.narrowed(probes.findings(measured, chip, catalog), chip, catalog, "serving")
    monkeypatch.setattr(probes, "seen_chips", lambda *of: seen(*of) - {H100})
    after = {f.part: f.share for f in probes.findings(measured, chip, catalog)}
    assert all(after[part] >= share for part, share in before.items()) and after["memory"] > before["memory"]
    assert probes.narrowed(probes.findings(measured, chip, catalog), chip, catalog, "serving")["tpot"] < kept["tpot"]


def test_intervals_of_the_chip_are_narrower_and_only_its_own(tmp_path, reference):
    overlaid(tmp_path, reference)
    for model, label in (("serving", "tpot"), ("training", "dense")):
        plain, own = (
            calibration(Ledger(catalog), model) for catalog in (shipped_catalog(), Catalog.load([tmp_path / "own"]))
        )
        before, after = (known.interval(H100, "fp8", label) for known in (plain, own))
        assert before.low < after.low < 1.0 < after.high < before.high
        share = own.narrowed[H100, label]
        assert math.log(after.high) == pytest.approx(share * math.log(before.high))
        assert plain.interval(H200, "fp8", label) == own.interval(H200, "fp8", label)
        variance = (math.log(before.high / before.low) / 2 / Z80) ** 2 * (1 - share**2)
        assert 0 < variance < MIN_PRIOR_SPREAD**2  # no more than the part of the machine


def estimate(capsys, *options):
    case = ["--system", "DGX H100", "--architecture", "Llama-3.1-70B", "--kind", "serving"]
    assert main(["estimate", *case, *options, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_probe_that_says_nothing_or_cannot_be_is_refused(tmp_path, reference):
    catalog = shipped_catalog()

    def refused(document, words, **further):
        with pytest.raises(SpecError, match=words):
            probes.calibrate_probes([written(tmp_path, document)], tmp_path / "own", catalog, further)
        assert not (tmp_path / "own").exists()

    refused({**reference, "measurements": []}, "no measurement that informs")
    refused({**reference, "device": {"name": "NVIDIA X9"}}, "--set chip=NAME")
    refused(reference, "more than it can do", chip="L4")
    refused({**reference, "schema": "flopwatt.probe/99"}, "flopwatt.probe/99")
    whole = reference["measurements"][-1]
    for wrong in ({"seconds": -1}, {"kind": 3}, {"flop_per_s": "fast"}, {"shape": {}}, {"shape": None}):
        refused({**reference, "measurements": [{**whole, **wrong}]}, r"measurements\[0\]: expected a measurement")
    refused({**reference, "measurements": {}}, "expected a measurement")


def test_two_probes_of_a_chip_are_refused_and_of_two_chips_joined(tmp_path, root, reference):
    one, two = written(tmp_path, reference), written(tmp_path, reference, "again.json")
    with pytest.raises(SpecError, match="probed twice"):
        probes.calibrate_probes([one, two], tmp_path / "own", shipped_catalog())
    other = root / "benchmarks" / "probes" / "h200_sxm.json"
    probes.calibrate_probes([one, other], tmp_path / "own", shipped_catalog())
    figures = Catalog.load([tmp_path / "own"]).get("constants", "serving_probe").figures
    assert {name.partition("|")[0] for name in figures} == {H100, H200}


def test_the_command_prints_what_counts(tmp_path, root, capsys):
    probe = str(root / "benchmarks" / "probes" / "h200_sxm.json")
    assert main(["calibrate", probe, "--output", str(tmp_path / "own")]) == 0
    told = capsys.readouterr()
    assert "memory" in told.out and "0 runs" not in told.out and "--catalog" in told.err
    assert main(["calibrate", probe, "--output", str(tmp_path / "own"), "--format", "json"]) == 0
    parts = json.loads(capsys.readouterr().out)["probes"][0]["parts"]
    assert {part["part"] for part in parts} >= {"memory", "16-bit matrix products"}


def test_the_command_probe_measures_and_writes_shapes(tmp_path, capsys):
    out = tmp_path / "probe.json"
    assert main(["probe", "--backend", "numpy", "--output", str(out), "--quiet"]) == 0
    assert json.loads(out.read_text("utf-8"))["measurements"]
    shapes = tmp_path / "shapes.json"
    asked = ["probe", "--architecture", "Llama-3.1-8B", "--tp", "2", "--write-shapes", "--output", str(shapes)]
    assert main(asked) == 0
    found = json.loads(shapes.read_text("utf-8"))
    sizes = {of["name"]: (of["n"], of["k"]) for of in found["products"]}
    # hidden 4096, 32 query and 8 key/value heads of 128, feed-forward 14336, gated; halved by tensor parallelism
    assert sizes == {
        "dense in": (14336, 4096),
        "dense out": (4096, 7168),
        "query key value": (3072, 4096),
        "out": (4096, 2048),
    }
    assert found["attention"] == {"heads": 16, "kv_heads": 4, "head_dim": 128}


def test_shapes_of_latent_attention_and_experts():
    catalog = shipped_catalog()
    record = catalog.get("architectures", "DeepSeek-V3")
    found = probes.shapes_of("R", shape_of(record, Ledger(catalog)))
    sizes = {of["name"]: (of["n"], of["k"]) for of in found["products"]}
    assert sizes["latent"] == (1536 + 512 + 64, 7168) and sizes["query"] == (128 * 192, 1536)
    assert sizes["expert in"] == (2 * 2048, 7168) and sizes["out"] == (7168, 128 * 128)
    assert "attention" not in found
    with pytest.raises(SpecError, match="divides the heads"):
        probes.shapes_of("R", shape_of(record, Ledger(catalog)), 7)
