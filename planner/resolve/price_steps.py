"""Resolve the spec with each uncertain price raised in turn; costs are linear in each, so differences give their shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from planner.problem.facts import ResolvedSpec
from planner.problem.price_levels import at_times, stated_ranges
from planner.problem.scenarios import uncertain_prices
from planner.resolve.resolver import resolve

STEP = 0.01  # by which a price is raised

Raised = Mapping[str, ResolvedSpec]  # by path of the price


def raised(problem: ResolvedSpec, overlays: Sequence[Path], *, without_robust: bool = False) -> Raised:
    """Resolve one problem for each uncertain price, raised by `STEP`; `without_robust`: of the same spec without that block."""
    note = "raised to see what goes with it"
    stated = {path for path, _ in stated_ranges(problem.spec)}
    spec = problem.spec.model_copy(update={"robust": None}) if without_robust else problem.spec
    return {
        path: resolve(at_times(spec, path, 1.0 + STEP), overlays) if path in stated
        else resolve(spec, overlays, {path: {"value": figure.number * (1.0 + STEP), "unit": figure.unit, "note": note}})
        for path, figure in uncertain_prices(problem)
    }  # fmt: skip
