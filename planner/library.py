"""Answer as the commands do, with Python objects: each function has the name of its command.

Each takes what the command reads from a file as a path or a mapping; a plan also as a `planner.Plan`. `overlays` are folders of overlays on
the catalog (`--catalog`). What a function needs is imported when it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.plan import Plan, load_plan, parse_plan

if TYPE_CHECKING:
    from catalog.lookup import Catalog
    from planner.calibration.fit import Calibrated
    from planner.calibration.scores import Validation
    from planner.estimate.answer import Estimate
    from planner.robust.promises import Promises
    from planner.studies.compare import Comparison
    from planner.studies.measure import Measure

Source = str | Path | Mapping[str, Any]
PlanSource = str | Path | Mapping[str, Any] | Plan


def estimate(case: Source, *, overlays: Sequence[Path] = ()) -> Estimate:
    """Evaluate one case: times, rates, memory; `answer` is None where nothing fits, with the `reason`. Raises SpecError, OSError."""
    from planner.estimate.answer import estimate

    return estimate(_document(case), overlays)


def layouts(case: Source, *, overlays: Sequence[Path] = (), best: int = 10) -> dict[str, Any]:
    """Rank the layouts of a training case, or the splits of one of reinforcement learning, fastest first.

    Returns the counts with the rows under `layouts` or `splits`, none where nothing fits. Raises SpecError, OSError.
    """
    from planner.estimate.case import best_layouts, resolve_case
    from planner.estimate.reinforcement import best_splits

    document = _document(case)
    if isinstance(document.get("workload"), dict) and document["workload"].get("kind") == "reinforcement":
        return best_splits(resolve_case(document, overlays), best)
    rows, counts = best_layouts(document, overlays, best)
    return {**counts, "layouts": rows}


def characterise(document: Source, *, overlays: Sequence[Path] = (), hourly: Sequence[Path] = ()) -> dict[str, Any]:
    """State what the workloads of a case or spec ask of chips, and of a spec also the `value` of systems. Raises SpecError, OSError."""
    from planner.design.characterise.answer import characterise
    from planner.design.characterise.value import value_of_systems
    from planner.estimate.limits import SearchLimits
    from planner.spec.document import read_spec

    stated = _document(document)
    if "workloads" not in stated:
        return characterise(stated, overlays)
    stated = read_spec(document, hourly)
    return {**characterise(stated, overlays), "value": value_of_systems(stated, overlays, SearchLimits())}


def validate(
    file: str | Path, *, overlays: Sequence[Path] = (), leave_out: str | None = None, cells: Mapping[str, str] = {}
) -> Validation:
    """Score the models on a file of measurements; `cells`: what rows lack, by column (`--set`). Raises SpecError, OSError."""
    from planner.calibration.scores import validate

    return validate(Path(file), _catalog(overlays), leave_out, cells)


def calibrate(
    files: str | Path | Sequence[str | Path], folder: str | Path, *, overlays: Sequence[Path] = (), cells: Mapping[str, str] = {}
) -> Calibrated:  # fmt: skip
    """Fit the constants to measured runs and write the overlay into `folder`; `cells`: what rows lack, by column. Raises SpecError, OSError."""
    from planner.calibration.fit import calibrate

    paths = [files] if isinstance(files, str | Path) else files
    return calibrate([Path(path) for path in paths], Path(folder), _catalog(overlays), cells)


def robust(plan: PlanSource, *, overlays: Sequence[Path] = (), scenarios: int = 1000, seed: int = 1) -> Promises:
    """Count the sampled scenarios in which a plan keeps its promises. Raises SpecError, also for a plan without an answer; OSError."""
    from planner.robust.promises import robust

    return robust(_plan(plan), overlays=overlays, scenarios=scenarios, seed=seed)


def compare(first: PlanSource, second: PlanSource) -> Comparison:
    """List all differences between two plans. Raises SpecError if their amounts are in different currencies; OSError."""
    from planner.studies.compare import compare

    return compare(_plan(first), _plan(second))


def measure(
    plan: PlanSource, *, overlays: Sequence[Path] = (), budget: float | None = None, scenarios: int = 240, seed: int = 2
) -> Measure:
    """Rank measurements by what their results are worth for the choice of a fleet. Raises SpecError, OSError."""
    from planner.studies.measure import measure

    return measure(_plan(plan), overlays=overlays, budget=budget, scenarios=scenarios, seed=seed)


def _document(source: Source) -> dict[str, Any]:
    from planner.spec.document import read_document

    return dict(source) if isinstance(source, Mapping) else read_document(Path(source).read_bytes())


def _plan(source: PlanSource) -> Plan:
    if isinstance(source, Plan):
        return source
    return parse_plan(json.dumps(source)) if isinstance(source, Mapping) else load_plan(source)


def _catalog(overlays: Sequence[Path]) -> Catalog:
    from catalog.errors import CatalogError
    from catalog.lookup import Catalog
    from planner.errors import SpecError, issues_of

    try:
        return Catalog.load(overlays)
    except CatalogError as error:
        raise SpecError(issues_of(error)) from None
