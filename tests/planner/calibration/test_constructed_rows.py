"""Rows that nobody measured: what marks them, what does not, and that they count nowhere."""

from __future__ import annotations

import csv

import pytest

from catalog.lookup import Catalog
from planner.calibration.fit import enters_fit, read_measurements
from planner.calibration.scores import validate

BASE = {
    "id": "lab-0", "source": "lab", "model": "Llama-3.1-8B", "weight_dtype": "bf16", "kv_dtype": "bf16", "chip": "H100", "n_chips": 1,
    "tp": 1, "pp": 1, "ep": 1, "dp": 1, "engine": "vllm", "engine_version": "0.10.0", "mode": "aggregated", "isl": 1024, "osl": 256,
    "concurrency": 1, "ttft_ms": 100.0, "tpot_ms": 9.0, "notes": "",
}  # fmt: skip
TIMES = (83.827, 155.845, 299.82, 606.022, 1191.98)  # a table of batches 1, 2, 4, ...


def table(factor=1.3, pairs=5, **changed) -> list[dict]:
    """Runs of batches, and a copy of each with TTFT times a factor, rounded as published."""
    rows = []
    for i, ttft in enumerate(TIMES[:pairs]):
        run = {**BASE, "id": f"lab-{i}", "concurrency": 2**i, "ttft_ms": ttft, "tpot_ms": 9.123 + i}
        rows += [
            run,
            {**run, "id": f"lab-{i}b", "ttft_ms": float(f"{factor * ttft:.6g}"), "notes": "power-capped", **changed},
        ]
    return rows


@pytest.fixture
def read(tmp_path):
    def of(rows: list[dict]):
        path = tmp_path / "m.csv"
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(BASE))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return of


def copies(path) -> dict[str, str]:
    return {case.row.id: case.row.copy_of for case in read_measurements(path, Catalog.load()).cases if case.row.copy_of}


def test_a_table_that_is_another_one_times_a_factor_is_found(read):
    assert copies(read(table())) == {f"lab-{i}b": f"lab-{i}" for i in range(5)}
    assert copies(read(list(reversed(table())))) == {f"lab-{i}b": f"lab-{i}" for i in range(5)}  # 1 / 1.3 is not round


@pytest.mark.parametrize(
    "rows",
    [
        table(pairs=4),  # runs may agree by chance
        table(tpot_ms=9.0),  # another TPOT
        table(engine_version="0.11.0"),  # another setting
        table(factor=1.0),  # a run that was written twice
        table(factor=1.3007),  # measured: no round factor
        [{**row, "ttft_ms": row["ttft_ms"] * (1 + 0.01 * i)} for i, row in enumerate(table())],  # each its own factor
    ],
)
def test_measured_tables_stay(read, rows):
    assert not copies(read(rows))


def test_copies_are_predicted_and_count_nowhere(read):
    catalog, path = Catalog.load(), read(table())
    cases = read_measurements(path, catalog).cases
    assert sum(enters_fit(cases)) == 10  # TTFT and TPOT of the five runs
    found = validate(path, catalog)
    assert {score.id for score in found.scores if not score.in_score} == {f"lab-{i}b" for i in range(5)}
    assert "copy of lab-0, one figure scaled" in next(score.note for score in found.scores if score.id == "lab-0b")
    assert found.as_json()["metrics"]["ttft"]["n"] == 5
