"""Networks with a state per sequence, saturated: as many requests run as were measured. Needs `--measurements`."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from catalog.lookup import shipped_catalog
from planner.calibration.measurements import Row, Unpredictable, read_rows
from planner.calibration.serving_cases import MeasuredServing, measured_serving
from planner.estimate.answer import estimate

SYSTEMS = {"H200 SXM 141GB": "DGX H200", "B200 SXM": "DGX B200"}
SATURATED = 1000.0  # clients, of which a single chip runs a few hundred at most


def saturated(rows: list[Row]) -> list[MeasuredServing]:
    """The runs of far more clients than run at once, of networks with layers that keep a state."""
    found = []
    for row in rows:
        try:
            run = measured_serving(row, shipped_catalog(), {})
        except Unpredictable:
            continue
        known = {"tpot", "throughput"} <= set(run.measured) and run.chip in SYSTEMS and run.chips == 1
        if known and run.case.arch.state_blocks and (row.number("concurrency") or 0.0) >= SATURATED:
            found.append(run)
    return found


def places(run: MeasuredServing) -> float:
    """The requests that `estimate` says run at once."""
    row, case = run.row, run.case
    answer = estimate({
        "workload": {
            "kind": "serving", "architecture": run.architecture, "precision": [case.weight_precision], "kv_precision": [case.kv_precision],
            "lengths": {"input": int(row.required("isl")), "output": int(row.required("osl")), "input_cv": 0, "output_cv": 0},
            "disaggregation": "never", "engine": case.engine,
        },
        "system": SYSTEMS[run.chip], "chips": 1, "load": {"concurrency": int(row.required("concurrency"))},
    }).answer  # fmt: skip
    assert answer is not None
    return float(answer["batch"])


def test_as_many_requests_run_as_in_saturated_runs(measurements: Path):
    """Places: output rate x TPOT. Nine of ten runs within a quarter; what a checkpoint in NVFP4 leaves wide is not published with the runs."""
    runs = saturated(read_rows(measurements / "serving.csv", "serving"))
    assert runs
    ratios = np.array([places(run) / (run.measured["throughput"] * run.measured["tpot"]) for run in runs])
    errors = np.abs(ratios - 1.0)
    assert np.mean(errors <= 0.25) >= 0.9 and np.median(errors) <= 0.2 and errors.max() <= 0.35
