"""A row that says how many requests were in flight and not how they came has an interval over the ways in which they may have come."""

from __future__ import annotations

import csv
import json
from dataclasses import replace

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.serving.many_runs import Predictor
from models.statistics.intervals import Band, either_way, without_ways
from planner.calibration.fit import catalog_bands, read_measurements
from planner.calibration.scores import validate
from planner.calibration.serving_target import SERVING, at_random
from planner.cli.main import main

RUN = {
    "source": "own cluster, June", "model": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16", "chip": "H100", "n_chips": 1,
    "tp": 1, "pp": 1, "ep": 1, "dp": 1, "engine": "vllm", "engine_version": "0.10.0", "mode": "aggregated", "isl": 1024, "osl": 256,
    "grade": "A", "ttft_ms": 120.0, "tpot_ms": 9.0, "output_tokens_per_s_total": 1500.0,
}  # fmt: skip
BOTH = ("burst", "open")
LOADS = {
    "unstated": ({"concurrency": 32}, BOTH),
    "loop": ({"concurrency": 32, "notes": "warm; closed loop"}, ()),
    "flag": ({"concurrency": 32, "notes": "bench serve --max-concurrency"}, ()),
    "drawn": ({"concurrency": 32, "notes": "lengths drawn 0.8-1.0 of nominal"}, ()),
    "burst": ({"concurrency": 32, "notes": "exact lengths; burst"}, ("burst",)),
    "queued": ({"concurrency": 32, "notes": "all requests queued at t0"}, ()),
    "static": ({"concurrency": 32, "notes": "static batch"}, ()),
    "one": ({"concurrency": 1}, ()),
    "rate": ({"request_rate_per_s": 3.0}, ()),
    "most": ({"is_max_throughput": 1, "concurrency": 32}, ()),
}


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "m.csv"
    empty = dict.fromkeys(("request_rate_per_s", "concurrency", "is_max_throughput", "notes"), "")
    rows = [{"id": name, **empty, **RUN, **load} for name, (load, _) in LOADS.items()]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def cases(path, catalog):
    return {case.row.id: case for case in read_measurements(path, catalog).cases}


def test_which_rows_leave_the_way_open(cases):
    assert {name: case.ways for name, case in cases.items()} == {name: ways for name, (_, ways) in LOADS.items()}


def test_the_interval_covers_each_way_and_the_prediction_stays_that_of_the_loop(path, catalog, cases):
    found = validate(path, catalog)
    at = {(s.id, s.metric): s for s in found.scores}
    values, bands = catalog.constants("serving"), catalog_bands(catalog, SERVING)
    moved = np.exp(
        at_random([cases["unstated"].case], [(0, metric) for metric in ("ttft", "tpot", "throughput")], values)
    )
    for metric, spread in zip(("ttft", "tpot", "throughput"), moved, strict=True):
        band, open_run, loop = bands["new_source", metric], at["unstated", metric], at["loop", metric]
        ways = [loop.predicted, at["queued", metric].predicted, spread]
        assert open_run.predicted == loop.predicted
        assert open_run.low == pytest.approx(min(ways) * np.exp(band.low))
        assert open_run.high == pytest.approx(max(ways) * np.exp(band.high))
        assert at["burst", metric].high == pytest.approx(max(ways[:2]) * np.exp(band.high))
    assert at["unstated", "ttft"].high > 1.2 * at["loop", "ttft"].high
    assert found.open_ways == 2 and found.as_json()["way_not_stated"] == 2


@pytest.mark.parametrize("held", [2.0, 32.0, 100.0, 5000.0])
def test_random_arrivals_hold_the_number_in_flight(cases, catalog, held):
    """Little's law, with the rate that a run completes; beyond what memory holds the others wait."""
    values, run = catalog.constants("serving"), replace(cases["loop"].case, load=held)
    first, each, rate = np.exp(at_random([run], [(0, m) for m in ("ttft", "tpot", "throughput")], values))
    later = run.output_tokens - 1.0
    assert rate / run.output_tokens * (first + later * each) == pytest.approx(held, rel=0.02)
    alone = replace(run, regime="open", load=float(rate / run.output_tokens))
    law = float(np.exp(Predictor([alone], [(0, "ttft")])(values)[0]))
    if held < 1000.0:
        assert first == pytest.approx(law, rel=0.05)
    else:
        assert first > 3.0 * law


def test_a_band_holds_what_is_left_of_an_error_where_the_union_holds_the_error():
    rng = np.random.default_rng(5)
    errors, least, most = rng.normal(0, 1, 500), -np.abs(rng.normal(0, 0.5, 500)), np.abs(rng.normal(0, 0.5, 500))
    band = Band(-0.6, 0.9)
    for error, rest, low, high in zip(errors, without_ways(errors, least, most), least, most, strict=True):
        wide = either_way(band, low, high)
        assert (wide.low <= error <= wide.high) == (band.low <= rest <= band.high)


def test_the_answer_names_the_rows_and_the_remedy(path, capsys):
    assert main(["validate", str(path), "-q"]) == 0
    text = capsys.readouterr().out
    assert "unstated: " in text and "32 clients, how they came is not stated" in text
    assert "2 rows do not state how the requests in flight came" in text and "request_rate_per_s" in text
    loop = next(line for line in text.splitlines() if line.startswith("  loop: "))
    assert "not stated" not in loop


def test_a_benchmark_states_its_clients_beside_notes_of_the_user(tmp_path, catalog):
    result = {
        "date": "20261120-101500", "backend": "vllm", "model_id": "Llama-3.1-8B", "chip": "H100", "n_chips": 1, "weight_dtype": "bf16",
        "request_rate": "inf", "max_concurrency": 64, "completed": 512, "total_input_tokens": 524288, "total_output_tokens": 131072,
        "mean_ttft_ms": 120.0, "mean_tpot_ms": 9.0, "output_throughput": 3000.0,
    }  # fmt: skip
    for notes in ({}, {"notes": "second rack"}):
        file = tmp_path / "run.json"
        file.write_text(json.dumps({**result, **notes}), encoding="utf-8")
        (case,) = read_measurements(file, catalog).cases
        assert (case.case.regime, case.case.load, case.ways) == ("closed", 64.0, ())
        assert notes.get("notes", "") in case.row.text["notes"]
