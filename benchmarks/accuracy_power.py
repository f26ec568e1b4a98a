"""Write the chapter on power: server power measured in training runs against what the power model predicts for systems of the same chips."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from catalog.lookup import Catalog
from models.energy.power import PowerConstants, training_power_w
from planner.tables import as_markdown

CHIPS = {
    "NVIDIA H100-SXM5-80GB": "H100 SXM5 80GB",
    "NVIDIA Blackwell GPU (B200-SXM-180GB)": "B200 SXM",
}  # name in the logs -> name in the catalog


def chapter(path: Path, catalog: Catalog) -> tuple[str, dict[str, str]]:
    """Return the text of the chapter and no plots. Raises KeyError naming an accelerator that `CHIPS` lacks."""
    constants = PowerConstants.from_values(catalog.constants("power"))
    idle = catalog.get("defaults", "idle_power_fraction").value("value")
    rows, sustained, low_load = [], [], []
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            rated = rated_w(catalog, CHIPS[row["accelerator"]], int(row["accelerators_per_node"]))
            measured, low = float(row["training_mean_W_per_node"]), row["low_load_W_per_node"]
            predicted = float(training_power_w(rated, constants))
            sustained.append(predicted / measured - 1.0)
            if low:
                low_load.append(idle * rated / float(low) - 1.0)
            rows.append({
                "run": row["id"], "system": row["system"], "benchmark": row["benchmark"], "nodes": row["nodes"],
                "measured W a node": f"{measured:,.0f}", "predicted": f"{predicted:,.0f}", "error": f"{sustained[-1]:+.1%}",
                "at low load": f"{float(low):,.0f}" if low else "", "predicted idle": f"{idle * rated:,.0f}" if low else "",
            })  # fmt: skip
    intro = (
        "Mean draw of a node over training blocks (MLPerf power logs) against the sustained share of the rating of the catalog's system of as many of the same chips; "
        "readings before the run started against idle power. The one sustained share fits nodes that compute all the time; fine-tuning on many nodes "
        "takes minutes, in which most nodes wait for data and for each other."
    )
    medians = f"Median error: training {np.median(np.abs(sustained)):.1%} of {len(sustained)}, low load {np.median(np.abs(low_load)):.1%} of {len(low_load)}."
    return f"## Power\n\n{intro}\n\n{as_markdown(rows)}\n\n{medians}\n", {}


def rated_w(catalog: Catalog, chip: str, chips: int) -> float:
    """Return the median rating of the catalog's systems of `chips` chips of one kind [W]. Raises LookupError where there is none."""
    found = [
        system.value("power_w")
        for system in catalog.records("systems")
        if system.words("chip") == chip and system.get("power_w") is not None
        if system.get("chips") is not None and system.value("chips") == chips
    ]
    if not found:
        raise LookupError(f"the catalog has no system of {chips} {chip} with a rating")
    return float(np.median(found))
