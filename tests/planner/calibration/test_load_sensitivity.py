"""Intervals of measured runs under open arrivals widen with the load, and the bands take no part of that twice."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from catalog.lookup import Catalog
from models.statistics.intervals import Band, widened, without_load
from planner.calibration.fit import catalog_bands, read_measurements
from planner.calibration.load_sensitivity import by_load, without_load_by_tier
from planner.calibration.scores import validate
from planner.calibration.serving_target import SERVING

RUN = {
    "source": "own cluster, June", "model": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16", "chip": "H100", "n_chips": 1,
    "tp": 1, "pp": 1, "ep": 1, "dp": 1, "engine": "vllm", "engine_version": "0.10.0", "mode": "aggregated", "isl": 1024, "osl": 256,
    "grade": "A", "ttft_ms": 120.0, "tpot_ms": 9.0, "output_tokens_per_s_total": 1500.0,
}  # fmt: skip
LOADS = {
    "idle": {"request_rate_per_s": 0.02}, "busy": {"request_rate_per_s": 10.0}, "full": {"request_rate_per_s": 40.0},
    "ends": {"request_rate_per_s": 40.0, "notes": "500 prompts"}, "clients": {"concurrency": 64, "notes": "closed loop"},
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load()


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "m.csv"
    rows = [
        {"id": name, "request_rate_per_s": "", "concurrency": "", "notes": "", **RUN, **load}
        for name, load in LOADS.items()
    ]
    rows += [{**row, "id": f"{row['id']} too", "chip": "H200"} for row in rows]
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_the_interval_of_a_run_follows_its_load(path, catalog):
    found = validate(path, catalog)
    bands = catalog_bands(catalog, SERVING)
    sides = {(s.id, s.metric): (np.log(s.low / s.predicted), np.log(s.high / s.predicted)) for s in found.scores}
    own = bands["new_source", "ttft"]
    assert sides["clients", "ttft"] == pytest.approx((own.low, own.high))
    assert sides["idle", "ttft"] == pytest.approx((own.low, own.high), rel=1e-3)
    assert sides["busy", "ttft"][0] < own.low and sides["busy", "ttft"][1] > own.high
    assert np.isinf(sides["full", "ttft"][1])  # more than it serves, without an end
    assert own.high + 0.5 < sides["ends", "ttft"][1] < np.inf  # all 500 at once are the most
    for name in LOADS:
        band = bands["new_source", "tpot"]
        assert sides[name, "tpot"] == pytest.approx((band.low, band.high))
    high = {row["id"]: row["high"] for row in found.score_rows() if row["metric"] == "ttft"}
    assert high["full"] == "" and high["ends"] > 0.0


def test_errors_within_the_load_are_none_and_others_less(path, catalog):
    cases = read_measurements(path, catalog).cases
    values, observations = catalog.constants("serving"), SERVING.observations(cases)
    predicted = SERVING.predict(cases, observations)(values)
    left_out = dict.fromkeys(("group", "source", "kind", "chip", "generation"), predicted)
    measured = np.log([o.value for o in observations])
    moved = without_load_by_tier(cases, left_out, values)["source"]
    before, after = measured - predicted, measured - moved
    first = {cases[o.case].row.id: i for i, o in enumerate(observations) if o.label == "ttft"}
    assert after[first["clients"]] == pytest.approx(before[first["clients"]])
    assert abs(after[first["busy"]]) < abs(before[first["busy"]])
    others = [i for i, o in enumerate(observations) if o.label != "ttft"]
    assert after[others] == pytest.approx(before[others])


def test_a_band_holds_what_is_left_of_an_error_where_the_wider_one_holds_the_error():
    rng = np.random.default_rng(3)
    errors, calm, busy = rng.normal(0, 1, 500), -np.abs(rng.normal(0, 0.5, 500)), np.abs(rng.normal(0, 0.5, 500))
    band = Band(-0.6, 0.9)
    left = without_load(errors, calm, busy)
    for e, rest, less, more in zip(errors, left, calm, busy, strict=True):
        wide = widened(band, less, more)
        assert (wide.low <= e <= wide.high) == (band.low <= rest <= band.high)


def test_training_has_no_load_to_be_sensitive_to(tmp_path, catalog):
    path = tmp_path / "t.csv"
    path.write_text(
        "id,source,model,layers,hidden,heads,kv_heads,ffn,vocab,seq_len,chip,n_chips,tp,pp,dp,micro_batch,global_batch_sequences,recompute,sharding,dtype,step_time_s\n"
        "r1,own,Llama-3-8B,32,4096,32,8,14336,128256,8192,H100,64,2,1,32,1,256,none,zero1,bf16,5.0\n",
        encoding="utf-8",
    )
    cases = read_measurements(path, catalog).cases
    assert all(not side.any() for side in by_load(cases, catalog.constants("training"), {}, "known"))
