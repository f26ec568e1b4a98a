"""What quotes are answered from: the plan without them, as `flopwatt plan` finds or has stored it, and the spec as it is varied."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from catalog.lookup import Catalog, shipped_catalog
from planner.errors import Issue, SpecError
from planner.messages import Message
from planner.pipeline import solve_unverified
from planner.plan import Plan, parse_plan
from planner.problem.facts import ResolvedSpec
from planner.problem.phases import API
from planner.solving.closed_loop import is_closed
from planner.solving.deadline import THREADS
from planner.solving.standing import Progress
from planner.solving.variants import Variants, resolved
from planner.spec.document import Edits, edited, read_document, read_spec
from planner.studies.base.planned import (
    DIVISIBLE,
    SCENARIOS,
    STEPS,
    WHOLE,
    Base,
    later_deadlines,
    solved,
    study_options,
)
from planner.studies.quotes.quote import Quote
from planner.studies.quotes.threshold import Trial
from solvers.interface import Options

Source = str | Path | Mapping[str, Any] | Plan
OFFERS = "offers"


@dataclass(frozen=True, slots=True)
class Start:
    """The `plan` without quotes; `variants`: of its spec with all offers written out; `without`: its objective and bound, the less the better.

    `renewed`: whether a stored plan was solved anew, for the catalog has changed since, or it has no answer.
    """

    plan: Plan
    variants: Variants
    without: Trial
    base: Base
    options: Options
    overlays: Sequence[Path]
    renewed: bool = False

    @property
    def problem(self) -> ResolvedSpec:
        """Return the problem without quotes."""
        return self.variants.base

    @property
    def offers(self) -> list[dict[str, Any]]:
        """Return the offers of the spec."""
        return copy.deepcopy(self.variants.document[OFFERS])

    @property
    def sign(self) -> float:
        """Return the factor that makes less of the objective better."""
        return -1.0 if self.plan.objective["sense"] == "max" else 1.0

    @property
    def is_of_cost(self) -> bool:
        """Tell whether the objective is money, so that prices have thresholds."""
        return self.plan.objective["sense"] == "min" and self.plan.objective["unit"] == self.problem.spec.currency

    @property
    def is_limited(self) -> bool:
        """Tell whether a ceiling on money may rule out a plan at a higher price."""
        problem = self.problem
        ceilings = [problem.budget, problem.capital, *(each for p in problem.phases for each in (p.budget, p.capital))]
        return any(map(math.isfinite, ceilings))


def read_source(source: Source, hourly: Sequence[Path], overlays: Sequence[Path]) -> Plan | dict[str, Any]:
    """Read a plan, or the document of a spec. Raises SpecError, OSError."""
    if isinstance(source, Plan):
        return source
    document = dict(source) if isinstance(source, Mapping) else read_document(Path(source).read_bytes())
    if is_plan(document):
        return parse_plan(json.dumps(document))
    return read_spec(source, hourly, overlays)


def is_plan(document: Mapping[str, Any]) -> bool:
    """Tell whether a document is that of a plan, which holds its spec."""
    return "schema_version" in document and isinstance(document.get("spec"), Mapping)


def catalog_of(document: Mapping[str, Any], overlays: Sequence[Path]) -> Catalog:
    """Load the catalog of a spec, with its own records."""
    own = document.get("catalog")
    return Catalog.load(overlays, [own] if own else []) if overlays or own else shipped_catalog()


def started(
    source: Plan | dict[str, Any], solver: Mapping[str, Any], overlays: Sequence[Path], progress: Progress | None, threads: int = THREADS
) -> Start:  # fmt: skip
    """Find the plan without quotes: the stored one, or that of the spec. `solver`: options that replace the ones in the spec of a stored plan.

    A stored plan of another catalog is solved anew. Raises SpecError for an invalid spec.
    """
    stored = source if isinstance(source, Plan) else None
    document: dict[str, Any] = dict(source.document["spec"]) if isinstance(source, Plan) else source
    if solver:
        document = {**document, "solver": {**(document.get("solver") or {}), **solver}}
    if is_closed(document):
        raise SpecError([Issue("workloads", Message.of("quote.closed_loop").text())])
    problem = resolved(document, overlays)
    if stored is not None and (stored.document["catalog_digest"] != problem.catalog_digest or not stored.has_answer):
        stored = None
    plan = stored or solve_unverified(dict(document), overlays=overlays, progress=progress, threads=threads)
    kind = DIVISIBLE if plan.document.get("replicas") == DIVISIBLE else WHOLE
    edits: Edits = (
        *later_deadlines(problem, plan),
        ("solver.replicas", kind if problem.spec.solver.replicas == "auto" else problem.spec.solver.replicas),
        ("robust", None),
        (OFFERS, _written_out(document, problem)),
    )
    varied = edited(document, edits)
    variants = Variants(varied, overlays, resolved(varied, overlays))
    options = study_options(variants.base, threads)
    start = _compared(plan, variants, options, overlays, problem.spec.robust is not None)
    return replace(start, renewed=isinstance(source, Plan) and stored is None)


def _compared(plan: Plan, variants: Variants, options: Options, overlays: Sequence[Path], scenarios: bool) -> Start:
    """Take objective and bound of the plan; a robust plan, and one of a spec without a plan, is compared with the plan of typical figures."""
    objective = plan.objective
    sign = -1.0 if objective["sense"] == "max" else 1.0
    relaxed: tuple[str, ...] = ()
    value, bound = objective["value"], plan.document["bound"]
    simplicity = plan.document.get("simplicity")
    if simplicity is not None and value is not None:
        value = simplicity["best"]["value"]
        relaxed = (STEPS,) if value != objective["value"] else ()
    if scenarios:
        answer = solved(variants, (), options)
        relaxed = (SCENARIOS,)
        value = None if answer is None else answer.value
        bound = None if answer is None else answer.solution.bound
        if answer is not None and answer.value is not None:
            plan = answer.plan(variants.document)
    infeasible = plan.status == "infeasible"
    without = Trial(
        math.nan,
        math.inf if value is None else sign * value,
        (math.inf if infeasible else -math.inf) if bound is None else sign * bound,
    )
    base = Base(plan.status, objective["value"], value, objective["unit"], relaxed)
    return Start(plan, variants, without, base, options, overlays)


def _written_out(document: Mapping[str, Any], problem: ResolvedSpec) -> list[dict[str, Any]]:
    """Return the offers of a spec; where it states none, the catalog's, each as an offer without a price."""
    if document.get(OFFERS) is not None:
        return list(document[OFFERS])
    own = [offer for offer in problem.offers if offer.how != API and offer.owned is None and offer.rented is None]
    return [{"system": offer.system, "how": offer.how} for offer in own]


def checked_quotes(start: Start, quotes: Sequence[Quote]) -> None:
    """Refuse quotes for places or systems that the spec has no site for, and offers that specs refuse. Raises SpecError with all problems."""
    problems: list[Issue] = []
    sites = start.problem.sites
    own = [site for site in sites if site.api is None]
    for i, quote in enumerate(quotes):
        here = [site for site in own if not quote.regions or site.region in quote.regions]
        if not here:
            told = {"names": ", ".join(quote.regions), "sites": ", ".join(site.region for site in own)}
            problems.append(Issue(f"quotes[{i}].regions", Message.of("quote.site_missing", **told).text()))
        elif all(site.systems and quote.system not in site.systems for site in here):
            refused = Message.of("quote.system_refused", system=quote.system).text()
            problems.append(Issue(f"quotes[{i}].system", refused))
    first = len(start.offers)
    try:
        with_quotes(start, quotes)
    except SpecError as error:
        problems += [Issue(_of_quote(problem.path, first), problem.message) for problem in error.problems]
    if problems:
        raise SpecError(problems)


def with_quotes(start: Start, quotes: Sequence[Quote]) -> tuple[Edits, ResolvedSpec]:
    """Return the edits that add quotes to the offers, and the problem with them. Raises SpecError."""
    chips = {quote.system: _chips(start, quote.system) for quote in quotes}
    edits: Edits = ((OFFERS, [*start.offers, *(quote.offer(chips[quote.system]) for quote in quotes)]),)
    return edits, start.variants.problem(edits)


def _chips(start: Start, system: str) -> float:
    """Return the chips of a system, by the catalog of the spec."""
    return catalog_of(start.variants.document, start.overlays).get("systems", system).value("chips")


def _of_quote(path: str, first: int) -> str:
    """Name the place in a quote for one in the offers, of which the quotes are those from the `first` on."""
    head, _, rest = path.removeprefix(f"{OFFERS}[").partition("]")
    if not path.startswith(f"{OFFERS}[") or not head.isdecimal() or int(head) < first:
        return path
    return f"quotes[{int(head) - first}]{rest}"
