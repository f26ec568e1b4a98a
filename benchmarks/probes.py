"""Score what a probe changes on the rows of its chip: python benchmarks/probes.py --measurements DIR.

Each chip of benchmarks/probes/ is left out of the fit and of the reference probes. Its rows are then predicted by the refit (`without`), by
the refit with the overlay of its probe (`levels`), and with the shares of the peak that the probe measured put in place of those of the fit
(`replaced`), which the overlay does not do. Medians of |predicted / measured - 1|.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np

from catalog.lookup import Catalog, shipped_catalog
from catalog.records import Record
from models.statistics.fitting import Linearised, refit
from planner.calibration import probes
from planner.calibration.fit import Measurements, enters_fit, fit_problem, read_measurements, with_slopes
from planner.calibration.probes import Finding

HOME = Path(__file__).parent / "probes"
ABSOLUTE = {"16bit": "compute_efficiency_16bit", "8bit": "compute_efficiency_8bit", "attention": "attention_efficiency",
            "memory": "memory_efficiency"}  # fmt: skip


def told(document: Mapping[str, Any], chip: Record, catalog: Catalog) -> list[Finding]:
    """Return what a probe says of a chip that neither the fit nor the reference probes have seen."""
    seen, known = probes.seen_chips, probes._references
    with (
        patch.object(probes, "seen_chips", lambda *of: seen(*of) - {chip.name}),
        patch.object(
            probes, "_references", lambda part, of: [pair for pair in known(part, of) if pair[0] != chip.name]
        ),
    ):
        return probes.findings(probes.shares(document, chip), chip, catalog)


def replaced(document: Mapping[str, Any], chip: Record, catalog: Catalog) -> dict[str, float]:
    """Return the factors that put the measured shares of the peak in place of those of the serving model."""
    found = {}
    for part, values in probes.shares(document, chip).items():
        if part in ABSOLUTE:
            constant = catalog.get("constants", f"serving.{ABSOLUTE[part]}").value("value")
            family = probes._generation(part, chip.words("family") or "", catalog)
            found[part] = float(np.median(values)) / (constant * family)
    return found


def with_factors(catalog: Catalog, chip: str, factors: Mapping[str, float]) -> Catalog:
    """Return the catalog with factors on the rates of a chip."""
    figures = {f"reached_{part}": {"value": value, "unit": "1"} for part, value in factors.items() if part != "launch"}
    with TemporaryDirectory() as folder:
        Path(folder, "own.json").write_text(json.dumps({"chips": [{"name": chip, "figures": figures}]}), "utf-8")
        return Catalog.load([Path(folder)])


def errors(measured: Measurements, chip: str, values: Mapping[str, float]) -> dict[str, list[float]]:
    """Return |predicted / measured - 1| of the rows of a chip by metric."""
    target, cases = measured.target, [case for case in measured.cases if case.chip == chip]
    observations = [o for o in target.observations(cases) if o.metric in target.fitted_metrics]
    found: dict[str, list[float]] = {}
    for o, log in zip(observations, target.predict(cases, observations)(values), strict=True):
        if o.fits:
            found.setdefault(o.metric, []).append(abs(math.exp(log - math.log(o.value)) - 1.0))
    return found


def scored(path: Path, documents: Sequence[Mapping[str, Any]], catalog: Catalog) -> Iterator[dict[str, Any]]:
    """Yield a row for each chip and metric of a file of measurements."""
    measured = read_measurements(path, catalog)
    target, cases = measured.target, measured.cases
    full: Linearised = with_slopes(fit_problem(cases, catalog.constants(target.name)))
    inside = enters_fit(cases)
    chips = np.array([cases[o.case].chip for o in target.observations(cases)])
    for document in documents:
        chip = probes.chip_of(document, catalog, None, "probe")
        values = refit(full, chips[inside] != chip.name)
        factors = {finding.part: finding.factor for finding in told(document, chip, catalog)}
        launch = f"launch_{chip.words('family')}"
        moved = {**values, launch: values[launch] * factors["launch"]} if launch in values else values
        by_way = {"without": errors(measured, chip.name, values)}
        for way, these, constants in (
            ("levels", factors, moved),
            ("replaced", replaced(document, chip, catalog), values),
        ):
            again = read_measurements(path, with_factors(catalog, chip.name, these))
            by_way[way] = errors(again, chip.name, constants)
        for metric, plain in by_way["without"].items():
            medians = {way: f"{np.median(of[metric]):.1%}" for way, of in by_way.items()}
            yield {"chip": chip.name, "metric": metric, "n": len(plain), **medians}
        print(chip.name, {part: round(value, 4) for part, value in factors.items()}, flush=True)


def main() -> None:
    """Score all probes on the training and serving rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--measurements", type=Path, required=True)
    given, catalog = parser.parse_args(), shipped_catalog()
    documents = [json.loads(path.read_text("utf-8")) for path in sorted(HOME.glob("*.json"))]
    for name in ("training", "serving"):
        for row in scored(given.measurements / f"{name}.csv", documents, catalog):
            print(row, flush=True)


if __name__ == "__main__":
    main()
