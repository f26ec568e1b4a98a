"""Own measurements reach the decision: times, rates and what a plan counts on move, intervals narrow, and benchmarks' files are read."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest

import planner
from catalog.lookup import Catalog
from planner.calibration.benchmark_files import benchmark_cells
from planner.calibration.fit import read_measurements
from planner.calibration.measurements import SERVING_NUMBERS, SERVING_TEXT
from planner.cli.main import main
from planner.errors import SpecError
from planner.evaluate.serving import corrected, evaluate
from planner.plan import Plan
from planner.problem.engine import Correction, EngineChoice, EngineSettings
from planner.problem.facts import ScaleOut
from planner.problem.scenarios import draw, with_robust
from planner.resolve.resolver import resolve_document
from planner.verify.plan import verify_plan

COLUMNS = (*SERVING_TEXT, *SERVING_NUMBERS)
FACTORS = {"tpot": 1.3, "ttft": 1.5, "throughput": 0.7}
VLLM = {  # keys of `vllm bench serve --save-result`, and what `--metadata` adds
    "date": "20260810-101500", "endpoint_type": "vllm", "backend": "vllm", "model_id": "meta-llama/Llama-3.2-1B", "num_prompts": 512, "chip": "H100 SXM5 80GB",
    "n_chips": "1", "tp": "1", "weight_dtype": "bf16", "request_rate": "inf", "max_concurrency": 64, "duration": 60.0, "completed": 512,
    "total_input_tokens": 256000, "total_output_tokens": 102400, "request_throughput": 8.5, "output_throughput": 1706.0, "total_token_throughput": 5973.0,
    "mean_ttft_ms": 90.0, "median_ttft_ms": 80.0, "p99_ttft_ms": 300.0, "mean_tpot_ms": 5.1, "median_tpot_ms": 5.0, "p99_tpot_ms": 8.0,
}  # fmt: skip
SGLANG = {  # keys of `sglang.bench_serving --output-file`
    "tag": "chip=H100 SXM5 80GB,n_chips=1,weight_dtype=bf16", "backend": "sglang", "dataset_name": "random", "request_rate": 4.0, "max_concurrency": None,
    "random_input_len": 500, "random_output_len": 200, "server_info": {"model_path": "meta-llama/Llama-3.2-1B", "tp_size": 1, "dp_size": 1, "version": "0.5.2"},
    "duration": 60.0, "completed": 240, "total_input_tokens": 120000, "total_output_tokens": 48000, "output_throughput": 800.0, "mean_ttft_ms": 40.0,
    "mean_tpot_ms": 4.0,
}  # fmt: skip


def overlay(folder: Path, spreads: Mapping[str, float] = MappingProxyType({}), **factors: float) -> Path:
    """An own calibration of vLLM on the H100 in bf16; `spreads`: of further runs."""
    cited = {"unit": "1", "source": ["OWN"], "confidence": "B", "kind": "calibrated"}
    records = [
        {"name": name, "figures": {f"vllm|H100 SXM5 80GB|bf16|{label}": {"value": value, **cited} for label, value in figures.items()}}
        for name, figures in (("serving_anchor", factors), ("serving_own_spread", spreads))
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "sources": {"OWN": {"title": "own", "date": None, "confidence": "B"}},
        "constants": records,
    }
    (folder / "serving.json").write_text(json.dumps(document), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def own(tmp_path_factory) -> Path:
    return overlay(tmp_path_factory.mktemp("own"), **FACTORS)


@pytest.fixture(scope="module")
def spec(tiny) -> dict:
    found = tiny()
    found["workloads"][0] |= {"engine": "vllm", "demand": {"requests_per_s": 20000}}
    return found


@pytest.fixture(scope="module")
def plans(spec, own) -> tuple[Plan, Plan]:
    return planner.solve(spec, threads=1), planner.solve(spec, overlays=[own], threads=1)


# -- what a plan counts on ---------------------------------------------------------------------------------------------


def test_times_and_rates_of_a_point_are_multiplied(spec):
    problem = resolve_document(spec)
    workload, system = problem.serving[0], next(iter(problem.systems.values()))
    from models.serving.decode import ServingLayouts
    from models.serving.percentiles import latency_s

    batches = np.array([1.0, 16.0, 64.0])
    point = evaluate(
        workload,
        system,
        ScaleOut(0.0),
        ServingLayouts(1, 1, 1, 1),
        batches,
        EngineChoice("bf16", "bf16"),
        problem.constants.serving,
    )
    by = Correction(**FACTORS)
    found = corrected(point, by)
    for metric in ("tpot", "ttft"):
        for quantile in ("mean", 0.5, 0.95, 0.99):
            before, after = latency_s(point, metric, quantile), latency_s(found, metric, quantile)
            assert np.asarray(after) == pytest.approx(FACTORS[metric] * np.asarray(before), rel=1e-9)
    assert np.asarray(found.requests_per_s) == pytest.approx(0.7 * np.asarray(point.requests_per_s))
    assert np.array_equal(found.fits, point.fits)
    back = corrected(found, by.inverse())
    assert np.asarray(back.tpot_s) == pytest.approx(np.asarray(point.tpot_s))


def test_a_plan_counts_on_the_measured_capacity_and_its_interval_is_narrower(plans):
    assert verify_plan(plans[0]) == []
    count = [sum(row["count"] for row in plan["fleet"]) for plan in plans]
    assert count[1] >= 1.3 * count[0]  # a rate of 0.7 needs 1/0.7 of the systems
    points = [plan["workloads"][0]["points"][0] for plan in plans]
    assert [point["tier"] for point in points] == ["new_source", "known"]
    width = [point["interval_80"]["capacity"][1] / point["interval_80"]["capacity"][0] for point in points]
    assert width[1] < width[0]


def test_the_interval_of_a_figure_is_the_spread_of_further_runs(spec, tmp_path):
    """Of TPOT alone, where only TPOT was measured; the scenarios' errors have the same spread."""
    own = overlay(tmp_path / "own", {"tpot": 0.1}, tpot=1.2)
    plan = planner.solve(spec, overlays=[own], threads=1)
    assert verify_plan(plan, overlays=[own]) == []
    point = plan["workloads"][0]["points"][0]
    bounds = point["interval_80"]
    ratio = {name: high / low for name, (low, high) in bounds.items() if high is not None}
    known = resolve_document(spec, [own]).constants.measured_serving
    assert ratio["tpot.p95"] == pytest.approx(np.exp(2 * 1.2816 * 0.1), rel=1e-6)
    low, high = known.bands["new_source", "throughput"]
    assert ratio["capacity"] == pytest.approx(high / low)
    low, high = known.bands["new_source", "ttft"]  # which the load widens: without a bound near capacity
    assert "ttft.p95" not in ratio or ratio["ttft.p95"] > high / low
    assert point["tier"] == "new_source"
    drawn = draw(with_robust(resolve_document(spec, [own])), 500, 1).serving["H100 SXM5 80GB"]["tpot"]
    assert np.std(np.log(drawn)) == pytest.approx(0.1, rel=0.1)


def test_two_engines_that_differ_spread_further_than_each(spec, tmp_path):
    own = overlay(tmp_path / "own", {"tpot": 0.1}, tpot=1.0)
    document = json.loads((own / "serving.json").read_text(encoding="utf-8"))
    for record, value in zip(document["constants"], (1.5, 0.1), strict=True):
        figure = record["figures"]["vllm|H100 SXM5 80GB|bf16|tpot"]
        record["figures"]["sglang|H100 SXM5 80GB|bf16|tpot"] = {**figure, "value": value}
    (own / "serving.json").write_text(json.dumps(document), encoding="utf-8")
    known = resolve_document(spec, [own]).constants.measured_serving
    key = ("H100 SXM5 80GB", "bf16", "tpot")
    assert known.spreads[key] == pytest.approx(np.sqrt(0.1**2 + (np.log(1.5) / 2) ** 2))


def test_the_plan_of_own_measurements_is_verified_with_them(plans, own):
    assert verify_plan(plans[1], overlays=[own]) == []


def test_scenarios_of_a_measured_chip_spread_less(spec, own):
    scenarios = [draw(with_robust(resolve_document(spec, overlays)), 500, 1) for overlays in ([], [own])]
    for label in FACTORS:
        spread = [np.std(np.log(world.serving["H100 SXM5 80GB"][label])) for world in scenarios]
        assert spread[1] < spread[0], label


def test_only_the_metrics_that_were_measured_are_known(spec, tmp_path):
    problem = resolve_document(spec, [overlay(tmp_path / "own", tpot=1.2)])
    drawn = draw(with_robust(problem), 300, 1).serving["H100 SXM5 80GB"]
    plain = draw(with_robust(resolve_document(spec)), 300, 1).serving["H100 SXM5 80GB"]
    assert not np.array_equal(drawn["tpot"], plain["tpot"]) and np.array_equal(drawn["ttft"], plain["ttft"])
    assert problem.serving[0].engine.correction("H100 SXM5 80GB", "bf16") == Correction(tpot=1.2, engine="vllm")
    assert problem.serving[0].engine.correction("H100 SXM5 80GB", "fp8") == EngineSettings(0.9).correction("", "")


@pytest.mark.parametrize("engine, factor", [("vllm", 1.3), (None, 1.3), ("sglang", 1.3)])
def test_a_workload_takes_the_factors_of_its_engine_or_of_what_was_measured(spec, own, engine, factor):
    document = copy.deepcopy(spec)
    document["workloads"][0]["engine"] = engine
    found = resolve_document(document, [own]).serving[0].engine
    assert found.correction("H100 SXM5 80GB", "bf16").tpot == factor
    assert found.measured_engine("H100 SXM5 80GB") == (engine or "vllm")
    assert found.measured_engine("MI300X") is None


# -- files of benchmarks -----------------------------------------------------------------------------------------------


def written(path: Path, *results: dict, lines: bool = False) -> Path:
    text = (
        "\n".join(map(json.dumps, results)) if lines else json.dumps(results[0] if len(results) == 1 else list(results))
    )
    path.write_text(text, encoding="utf-8")
    return path


def test_a_result_of_vllm_is_a_row(tmp_path):
    (cells,) = benchmark_cells(written(tmp_path / "run.json", VLLM), COLUMNS)
    wanted = {
        "model": "meta-llama/Llama-3.2-1B", "engine": "vllm", "chip": "H100 SXM5 80GB", "n_chips": "1", "tp": "1", "isl": "500.0", "osl": "200.0",
        "concurrency": "64.0", "ttft_ms": "90.0", "tpot_ms": "5.1", "output_tokens_per_s_total": "1706.0", "year": "2026",
    }  # fmt: skip
    assert wanted.items() <= cells.items() and "request_rate_per_s" not in cells


def test_a_result_of_sglang_is_a_row(tmp_path):
    (cells,) = benchmark_cells(written(tmp_path / "run.jsonl", SGLANG, lines=True), COLUMNS)
    wanted = {
        "model": "meta-llama/Llama-3.2-1B", "engine": "sglang", "engine_version": "0.5.2", "chip": "H100 SXM5 80GB", "tp": "1", "isl": "500.0",
        "osl": "200.0", "request_rate_per_s": "4.0",
    }  # fmt: skip
    assert wanted.items() <= cells.items() and "concurrency" not in cells


def test_quantiles_of_a_result_are_read_and_a_median_alone_is_one(tmp_path):
    catalog = Catalog.load()
    (case,) = read_measurements(written(tmp_path / "run.json", VLLM), catalog).cases
    assert {"ttft": 0.09, "ttft_p50": 0.08, "ttft_p99": 0.3}.items() <= case.measured.items()
    assert not case.case.median_ttft
    bare = {name: value for name, value in VLLM.items() if name != "mean_ttft_ms"} | {"max_concurrency": None}
    (case,) = read_measurements(written(tmp_path / "bare.json", bare), catalog).cases
    assert case.case.median_ttft and case.case.regime == "burst"
    assert {"ttft": 0.08, "ttft_p99": 0.3}.items() <= case.measured.items() and "ttft_p50" not in case.measured


def test_all_requests_at_once_are_a_burst(tmp_path):
    catalog = Catalog.load()
    (case,) = read_measurements(written(tmp_path / "run.json", {**VLLM, "max_concurrency": None}), catalog).cases
    assert case.case.regime == "burst" and case.case.load == 512
    (case,) = read_measurements(written(tmp_path / "rate.json", SGLANG), catalog).cases
    assert case.case.regime == "open" and case.case.load == 4.0


def test_results_and_rows_of_a_table_calibrate_together(tmp_path, capsys):
    """Two files and a table of runs; what the benchmark does not say comes from the command line."""
    bare = {name: value for name, value in VLLM.items() if name not in ("chip", "n_chips", "tp")}
    files = [written(tmp_path / f"run{n}.json", {**bare, "max_concurrency": n}) for n in (16, 64)]
    row = {
        "id": "t1", "model": "Llama-3.2-1B", "chip": "H100", "n_chips": 1, "tp": 1, "weight_dtype": "bf16", "engine": "vllm", "isl": 500, "osl": 200, "concurrency": 32,
        "tpot_ms": 6,
    }  # fmt: skip
    with open(tmp_path / "table.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row))
        writer.writeheader()
        writer.writerow(row)
    named = [*map(str, files), str(tmp_path / "table.csv")]
    chip = ["--set", "chip=H100", "--set", "n_chips=1", "--set", "tp=1"]
    assert main(["calibrate", *named, *chip, "--output", str(tmp_path / "own")]) == 0
    found = json.loads((tmp_path / "own/serving.json").read_text(encoding="utf-8"))
    anchors = next(record["figures"] for record in found["constants"] if record["name"] == "serving_anchor")
    assert set(anchors) == {f"vllm|H100 SXM5 80GB|bf16|{label}" for label in FACTORS}
    spreads = next(record["figures"] for record in found["constants"] if record["name"] == "serving_own_spread")
    assert set(spreads) == set(anchors) and all(figure["value"] > 0 for figure in spreads.values())
    assert "3 of 3 rows" in anchors["vllm|H100 SXM5 80GB|bf16|tpot"]["note"]
    capsys.readouterr()
    assert main(["calibrate", *named[:1], "--output", str(tmp_path / "none")]) == 3
    assert "no chip" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": 1}', '[{"mean_ttft_ms": 1}, 2]', "\x00"])
def test_what_is_no_result_is_refused_with_its_place(tmp_path, text):
    (tmp_path / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=r"run\.json"):
        benchmark_cells(tmp_path / "run.json", COLUMNS)


@pytest.mark.parametrize("pair", ["chip", "=H100", "chip="])
def test_a_cell_for_all_rows_has_a_column_and_a_value(tmp_path, pair):
    file = written(tmp_path / "run.json", VLLM)
    assert main(["calibrate", str(file), "--set", pair, "--output", str(tmp_path / "own")]) == 3


def test_an_unknown_column_is_named(tmp_path, capsys):
    file = written(tmp_path / "run.json", VLLM)
    assert main(["calibrate", str(file), "--set", "chp=H100", "--output", str(tmp_path / "own")]) == 3
    assert "chp" in capsys.readouterr().err
