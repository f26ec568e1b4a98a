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
from models.layouts import Layouts, is_legal
from models.operators import Architecture
from planner.architectures import shape_of
from planner.constants import ModelConstants, model_constants
from planner.errors import Problem, SpecError, close_matches
from planner.hardware import system_facts
from planner.layouts import interval_of, rows, search, space
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


def best_layouts(document: Mapping[str, Any], overlays: Sequence[Path], count: int) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The `count` fastest layouts of a training case over its precisions, and how many were legal and fitted.

    Raises SpecError; an empty list when nothing fits.
    """
    facts = resolve_case(document, overlays)
    workload, system = facts.case.workload, facts.system
    if not isinstance(workload, Training):
        raise SpecError([Problem("workload.kind", 'layouts are searched for training; expected "training"')])
    able = [precision for precision in workload.precision if precision in system.flop_per_s]
    if not able:
        raise SpecError([Problem("workload.precision", f"{system.chip} has none of {', '.join(workload.precision)}; it has {', '.join(system.flop_per_s)}")])
    layouts = _asked(facts)
    searches = {p: search(facts.job, system, facts.scaleout_bytes_per_s, p, layouts, facts.constants) for p in able}
    best = max(searches, key=lambda p: searches[p].step.tokens_per_s.max(initial=0.0))
    counts = {"legal": sum(found.legal for found in searches.values()), "fitting": sum(found.fitting for found in searches.values())}
    interval = interval_of(facts.job, system, best, facts.constants)
    return [{"precision": best, **row} for row in rows(searches[best], count, interval)], counts


def _asked(facts: CaseFacts) -> Layouts:
    """The layout that the case fixes, checked; or all legal ones."""
    case, job, scaleup = facts.case, facts.job, facts.system.scaleup_chips
    if case.layout is None:
        return space(job, case.chips, scaleup, every=True)
    known = list(Layouts.__dataclass_fields__)
    unknown = [name for name in case.layout if name not in known]
    if unknown:
        raise SpecError(Problem(f"layout.{name}", f"unknown size{close_matches(name, known)}; known here: {', '.join(known)}") for name in unknown)
    too_small = [name for name in case.layout if case.layout[name] < 1 and name not in ("zero", "recompute", "sequence_parallel")]
    if too_small:
        raise SpecError(Problem(f"layout.{name}", "expected a whole number of at least 1") for name in too_small)
    layouts = Layouts.of(**case.layout)
    legal = is_legal(
        job.architecture, layouts, global_batch_sequences=job.batch_sequences, sequence_tokens=case.workload.sequence_tokens, scaleup_chips=scaleup
    )
    if int(layouts.chips[0]) != case.chips:
        raise SpecError([Problem("layout", f"tp x pp x dp x cp makes {int(layouts.chips[0])} chips, but the case has {case.chips}")])
    if not legal[0]:
        raise SpecError([Problem("layout", "no framework would accept it: see the rules in models/layouts.py is_legal")])
    return layouts
