"""One case: a workload on so many chips of one system and one fabric, without sites, prices or a program.

Read by `tokenwatt layouts` and `tokenwatt estimate`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from catalog.errors import CatalogError, MissingFigure, UnknownName, did_you_mean
from catalog.lookup import Catalog
from models import fabrics
from models.operators import Architecture
from planner.architectures import shape_of
from planner.constants import ModelConstants, model_constants
from planner.errors import Problem, SpecError
from planner.hardware import system_facts
from planner.ledger import Ledger
from planner.lots import PROVIDER, TIERS
from planner.malformed import problems_of
from planner.problem import SystemFacts, TrainingFacts
from planner.quantities import Name
from planner.spec import FABRIC_DESIGNS, Block, Override, Serving, Training


class Case(Block):
    """`layout` fixes the parallel sizes; without it all legal ones are tried."""

    workload: Annotated[Serving | Training, Field(discriminator="kind")]
    system: Name
    chips: Annotated[int, Field(ge=1, le=4_194_304)]
    fabric: Literal[(*FABRIC_DESIGNS, PROVIDER)] = "rail-optimised"
    layout: dict[str, Annotated[int, Field(ge=0, le=65536)]] | None = None
    overrides: dict[str, Override] = {}
    catalog: dict[str, list[dict[str, Any]]] = {}
    note: str = ""


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """A case with its names resolved and its quantities in SI; `scaleout_bytes_per_s` is what the fabric leaves per chip."""

    case: Case
    architecture: Architecture
    system: SystemFacts
    scaleout_bytes_per_s: float
    constants: ModelConstants
    ledger: Ledger

    @property
    def job(self) -> TrainingFacts:
        """The workload of a training case."""
        return TrainingFacts("workload", self.case.workload, self.architecture)


def resolve_case(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> CaseFacts:
    """A checked case. Raises SpecError with every problem of types, then of names and figures."""
    try:
        case = Case.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems_of(error, Case)) from None
    try:
        catalog = Catalog.load(overlays, [case.catalog] if case.catalog else [])
        if case.overrides:
            catalog = catalog.with_overrides({path: override.model_dump() for path, override in case.overrides.items()})
    except CatalogError as error:
        raise SpecError(Problem(path, message) for path, message in error.problems) from None
    ledger, problems = Ledger(catalog), []
    found: dict[str, Any] = {}
    for path, kind, name, read in (
        ("system", "systems", case.system, system_facts),
        ("workload.architecture", "architectures", case.workload.architecture, shape_of),
    ):
        try:
            found[path] = read(catalog.get(kind, name), ledger)
        except UnknownName as error:
            problems.append(Problem(path, f'unknown {kind.removesuffix("s")} "{name}"{did_you_mean(error.close)}; `tokenwatt catalog list {kind}` lists them all'))
        except MissingFigure as error:
            problems.append(Problem(path, str(error)))
    if problems:
        raise SpecError(problems)
    system = found["system"]
    whole = case.chips <= system.scaleup_chips or case.chips % system.chips == 0
    if not whole:
        raise SpecError([Problem("chips", f"{case.chips} is no whole number of systems of {system.chips} chips; round it to a multiple")])
    return CaseFacts(case, found["workload.architecture"], system, _scaleout(case, system), model_constants(ledger), ledger)


def _scaleout(case: Case, system: SystemFacts) -> float:
    if case.fabric == PROVIDER:
        return system.nic_bytes_per_s
    tiers = TIERS[case.fabric]
    bandwidth = system.nic_bytes_per_s * fabrics.bisection_fraction(case.fabric, tiers)
    if case.chips > system.chips and bandwidth <= 0:
        what = "has no network ports on record" if tiers else f'needs a fabric between its {case.chips // system.chips} systems; choose "rail-optimised"'
        raise SpecError([Problem("fabric", f"{system.name} {what}")])
    return bandwidth
