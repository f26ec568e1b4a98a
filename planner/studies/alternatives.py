"""Find near-optimal plans of another kind: without one system, site, network or architecture of the best plan, only rented or bought, at one
site, or of fewer parts.

Each is the best plan of its kind, found by solving the same program without the fleet options that the kind excludes; plans of fewer parts
form a ladder from the best plan to the simplest (`solvers.search.simplest`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.arrays import Bools
from planner.candidates.apis import ROLE as API
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Candidates
from planner.errors import Issue, SpecError
from planner.formulate.formulation import Formulation
from planner.interpret.framing import sense_and_unit
from planner.messages import Message, Said, after_each_other, named
from planner.plan import Plan
from planner.problem.facts import QualityFacts, ResolvedSpec
from planner.report.words import amount, share_words, unsigned_zero, whole
from planner.solving.deadline import THREADS
from planner.solving.quality import settle
from planner.solving.standing import Progress
from planner.solving.variants import Answer, Variants, fleet_change
from planner.spec.document import Edits, edited
from planner.spec.fabrics import PROVIDER
from planner.spec.workloads import Serving
from planner.studies.base.planned import SAME, Base, planned, solved, study_options
from planner.studies.compare import compare
from solvers.backends.warm_started_lp import WarmStartedLp
from solvers.interface import Options
from solvers.mip import relative_gap
from solvers.model.build import build, objective_vector
from solvers.search.joint import with_fewer_parts
from solvers.search.parts import Parts, parts_of
from solvers.solution import Solution

TOTAL_S = 300.0  # time for all alternatives
RUNGS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # shares of the objective that plans of fewer parts may lose
WITHIN = 0.05  # share of the objective by which an alternative may be worse
MOST_WITHIN = 1000.0
DRIVERS = ("compare.drivers", "compare.by_system")
"""Codes of the sentences of a comparison that say why a plan is worse."""
FOUND, BEYOND, IMPOSSIBLE, NOT_TRIED = "found", "beyond", "impossible", "not tried"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The best plan of a `kind`. `value`: its objective if it was found; `worse`: difference to the best plan; `least`: lower bound of it."""

    kind: str
    name: str
    status: str
    value: float | None = None
    worse: float | None = None
    least: float | None = None
    fleet: str = ""
    drivers: Sequence[str] = ()
    plan: Plan | None = None

    def row(self, base: float) -> dict[str, Any]:
        """Return its figures as a row; `base`: objective of the best plan."""
        share = None if self.worse is None else self.worse / abs(base)
        return {
            "kind": self.kind, "name": self.name, "status": self.status, "value": self.value, "worse": self.worse, "share": share,
            "least_worse": self.least, "fleet": self.fleet, "drivers": list(self.drivers),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Alternatives to the `best` plan (None without one), least worse first."""

    best: Plan | None
    status: str
    unit: str
    within: float
    base: Base
    found: tuple[Alternative, ...] = ()
    seconds: float = 0.0

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Return all rows as one flat table."""
        return [] if self.best is None else [alternative.row(self.best.value) for alternative in self.found]

    @property
    def document(self) -> Mapping[str, Any]:
        """Return everything but the plans as JSON."""
        best = (
            None
            if self.best is None
            else dict(self.best.objective) | {"bound": self.best.document["bound"], "gap": self.best.gap}
        )
        return {
            "status": self.status,
            "base": self.base.row(),
            "best": best,
            "within": self.within,
            "alternatives": self.rows,
        }

    @property
    def words(self) -> list[str]:
        """Summarise the alternatives within the limit, with the drivers of each."""
        if self.best is None:
            return [self.base.message.text()]
        value = self.best.value
        near = [(a, a.worse) for a in self.found if a.worse is not None and a.worse <= self.within * abs(value)]
        words = [self.base.message.text()]
        of_start = Message.of(
            "alternatives.of_start", share=f"{self.within:.0%}", amount=amount(value), unit=self.unit
        ).text()
        if near:
            several = {} if len(near) == 1 else {"count": len(near)}
            words.append(
                Message.of(
                    "alternatives.near" if several else "alternatives.near_one", of_start=of_start, **several
                ).text()
            )
        else:
            words.append(Message.of("alternatives.none", of_start=of_start).text())
        for a, worse in near:
            row = {"name": a.name, "worse": _worse(worse, value, self.unit)}
            words.append(
                Message.of("alternatives.row_of", **row, drivers=after_each_other(a.drivers)).text()
                if a.drivers
                else Message.of("alternatives.row", **row).text()
            )
        return words

    @property
    def sections(self) -> list[tuple[str, list[dict[str, Any]]]]:
        """Return (heading, rows), formatted for people."""
        if self.best is None:
            return []
        base = self.best.value
        rows = [
            {
                "kind": a.name,
                "worse by": self._worse_by(a, base),
                "what changes in the fleet": a.fleet,
            }
            for a in self.found
        ]
        return [(Message.of("studies.head_kinds").text(), rows)]

    def _worse_by(self, alternative: Alternative, base: float) -> str:
        """Format the difference to the best plan: exact, at least, or the reason why there is none."""
        if alternative.worse is not None:
            return _worse(alternative.worse, base, self.unit)
        if alternative.least is not None:
            return Message.of("studies.at_least", amount=_worse(alternative.least, base, self.unit)).text()
        return named("outcome", alternative.status)


def _worse(worse: float, base: float, unit: str) -> str:
    worse = 0.0 if abs(worse) <= SAME * abs(base) else worse
    size = whole(worse) if abs(base) >= 1000 else f"{worse:.3g}"
    return f"{unsigned_zero(size)} {unit} ({unsigned_zero(share_words(worse / abs(base), '.2%'))})"


# -- search ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of plan. `allows`: fleet options that it may hold; `edits`: changes of the spec, where excluding fleet options is not enough."""

    kind: str
    name: str
    allows: Callable[[FleetOption], bool]
    edits: Edits = ()


def alternatives(
    document: dict[str, Any],
    *,
    overlays: Sequence[Path] = (),
    within: float = WITHIN,
    total_s: float = TOTAL_S,
    progress: Progress | None = None,
    threads: int = THREADS,
    so_far: Callable[[Alternatives], None] | None = None,
) -> Alternatives:
    """Find the best plan of each kind that is worse by at most the share `within`.

    Each solve may take the spec's time limit, all together `total_s`. Kinds whose LP relaxation already exceeds the limit are not solved; their rows state the lower bound.
    `so_far` is told the study after each kind.
    Raises SpecError for an invalid spec or share.
    """
    if not 0 <= within <= MOST_WITHIN:
        raise SpecError(
            [
                Issue(
                    "--within",
                    Message.of("studies.share_out_of_range", most=f"{MOST_WITHIN:g}", given=f"{within:g}").text(),
                )
            ]
        )
    began, say = time.perf_counter(), progress or (lambda line: None)
    start = planned(document, overlays, progress=progress, threads=threads)
    options, unit = study_options(start.problem, threads), sense_and_unit(document)[1]
    base = solved(start.variants, (), options) if start.plan.has_answer else None
    if base is None or base.value is None:
        status = start.plan.status if base is None else base.solution.status
        return Alternatives(None, status, unit, within, start.base(None))
    say(Message.of("progress.best_plan", status=base.solution.status, seconds=f"{base.solution.seconds:.1f}").text())
    search = _Search(start.variants, base, options, within * abs(base.value), began + total_s, say)
    best, found = base.plan(start.document), list[Alternative]()
    stated = start.base(base.value)

    def study() -> Alternatives:
        ranked = sorted(found, key=_rank)
        seconds = time.perf_counter() - began
        return Alternatives(best, base.solution.status, unit, within, stated, tuple(ranked), seconds)

    for alternative in _each(search, base, within):
        found.append(alternative)
        if so_far is not None:
            so_far(study())
    return study()


def _parts_words(parts: Parts) -> str:
    """Name a plan by the parts of its fleet."""
    counts = {"deployments": parts.deployments, "kinds": parts.kinds, "sites": parts.sites}
    words = {
        name: Message.of(f"count.{name.removesuffix('s') if count == 1 else name}", count=count).text()
        for name, count in counts.items()
    }
    return Message.of("studies.fewer_parts", **words).text()


def _rank(found: Alternative) -> tuple[bool, float]:
    """Order alternatives by how much worse they are, those without a plan last."""
    if found.worse is not None:
        return False, found.worse
    return True, math.inf if found.least is None else found.least


def _each(search: _Search, base: Answer, within: float) -> Iterator[Alternative]:
    """Find the alternatives one after the other."""
    for kind in kinds_of(base):
        yield search.find(kind)
    if len(dict.fromkeys(site for site, *_ in base.fleet())) > 1:
        yield search.best_of(
            Message.of("studies.one_site_only").text(),
            [
                Kind(
                    Message.of("studies.one_site_only").text(),
                    Message.of("studies.all_in", site=site.region).text(),
                    _in_site(site.region),
                )
                for site in base.problem.sites
            ],
        )
    yield from search.simpler(within)


def kinds_of(base: Answer) -> Iterator[Kind]:
    """Yield the kinds: without each system, site, network and architecture that the plan uses, rented only, bought only."""
    used = base.fleet()
    for system in dict.fromkeys(system for _, system, _, _ in used):
        yield Kind(
            Message.of("studies.kind_without_system").text(),
            Message.of("studies.without", name=system).text(),
            _without_system(system),
        )
    sites = list(dict.fromkeys(site for site, _, how, _ in used if how != API))  # an API stands for its own site
    for site in sites if len(base.problem.sites) > 1 else ():
        yield Kind(
            Message.of("studies.kind_without_site").text(),
            Message.of("studies.without", name=site).text(),
            _without_site(site),
        )
    for fabric in dict.fromkeys(fabric for *_, fabric in used if fabric != PROVIDER):
        # networks that this one dominates were left out of the program, so it must be formulated again
        fewer = ((site.path, [design for design in site.topologies if design != fabric]) for site in base.problem.sites)
        edits = tuple((f"{path}.topologies", rest) for path, rest in fewer if rest)
        yield Kind(
            Message.of("studies.kind_without_network").text(),
            Message.of("studies.without_networks", fabric=fabric).text(),
            _without_fabric(fabric),
            edits,
        )
    for facts in base.problem.quality:
        yield from _without_architecture(base.problem, facts)
    hows = {how for _, _, how, _ in used}
    if "buy" in hows:
        yield Kind(
            Message.of("studies.rented_only").text(),
            Message.of("studies.rented_only").text(),
            lambda option: not option.owned,
        )
    if hows - {"buy"}:
        yield Kind(
            Message.of("studies.bought_only").text(),
            Message.of("studies.bought_only").text(),
            lambda option: option.owned,
        )


def _without_architecture(problem: ResolvedSpec, facts: QualityFacts) -> Iterator[Kind]:
    """Yield the kinds without each architecture that answers a workload. The spec must name one: any other of its alternatives."""
    i, alternatives = next(
        (i, workload.alternatives or [])
        for i, workload in enumerate(problem.spec.workloads)
        if isinstance(workload, Serving) and workload.name == facts.workload
    )
    for used in facts.members if len(facts.scores) > 1 else ():
        rest = [each.model_dump() for each, name in zip(alternatives, facts.scores, strict=True) if name != used]
        edits = ((f"workloads[{i}].alternatives", rest), (f"workloads[{i}].architecture", rest[0]["architecture"]))
        yield Kind(
            Message.of("studies.kind_without_architecture").text(),
            Message.of("studies.workload_without", workload=facts.workload, architecture=used).text(),
            lambda option: True,
            edits,
        )


def _without_system(system: str) -> Callable[[FleetOption], bool]:
    return lambda option: option.system.name != system


def _without_site(region: str) -> Callable[[FleetOption], bool]:
    return lambda option: option.site.region != region


def _without_fabric(fabric: str) -> Callable[[FleetOption], bool]:
    return lambda option: option.fabric != fabric


def _in_site(region: str) -> Callable[[FleetOption], bool]:
    return lambda option: option.site.region == region


class _Search:
    """Solve kinds of plans around the best one, except those whose LP relaxation already exceeds the limit."""

    def __init__(
        self, variants: Variants, base: Answer, options: Options, most: float, ends: float, say: Progress
    ) -> None:
        self._variants, self._base, self._options = variants, base, options
        self._most, self._ends, self._say = most, ends, say
        assert base.value is not None
        self._base_value = base.value
        self._sign = -1.0 if base.form.data.objective.maximises else 1.0
        program = build(base.form.data)
        self._arrays, self._columns = program.arrays(), program.columns["n"]
        self._linear = WarmStartedLp(self._arrays, self._sign * objective_vector(program, base.form.data), options)
        self._plan = base.plan(variants.document)

    def find(self, kind: Kind) -> Alternative:
        """Find the best plan of a kind."""
        least = 0.0 if kind.edits else self._least(kind)
        return self._solved(kind) if least <= self._most else self._not_solved(kind, least)

    def best_of(self, name: str, kinds: Sequence[Kind]) -> Alternative:
        """Find the best plan over several kinds: solve them by rising lower bound, until none of the rest can be better."""
        least = {kind.name: self._least(kind) for kind in kinds}
        best: Alternative | None = None
        for kind in sorted(kinds, key=lambda kind: least[kind.name]):
            if least[kind.name] > (self._most if best is None or best.worse is None else min(self._most, best.worse)):
                break
            found = self._solved(kind)
            if best is None or best.worse is None or (found.worse is not None and found.worse < best.worse):
                best = found
        first = min(kinds, key=lambda kind: least[kind.name])
        return best or self._not_solved(replace(first, name=name), least[first.name])

    def simpler(self, within: float) -> Iterator[Alternative]:
        """Yield plans of fewer and fewer parts, each as simple as was found within its share of the objective."""
        base = self._base
        before = parts_of(base.form.data, base.solution.values)
        for share in [*(rung for rung in RUNGS if rung < within), *([within] if within else [])]:
            left = self._ends - time.perf_counter()
            if left <= 0:
                return
            limits = replace(self._options, time_limit_s=min(left, self._options.time_limit_s))
            solution = with_fewer_parts(base.form.data, base.solution, share, limits)
            parts = parts_of(base.form.data, solution.values)
            if parts >= before or solution.value is None:
                continue
            before = parts
            self._say(Message.of("progress.within", share=f"{share:.1%}", count=parts.deployments).text())
            name = _parts_words(parts)
            kind = Kind(Message.of("studies.kind_fewer_parts").text(), name, lambda option: True)
            yield self._found(kind, base.problem, base.candidates, base.form, replace(solution, before=None))

    def _not_solved(self, kind: Kind, least: float) -> Alternative:
        return (
            Alternative(kind.kind, kind.name, IMPOSSIBLE)
            if math.isinf(least)
            else Alternative(kind.kind, kind.name, BEYOND, least=least)
        )

    def _least(self, kind: Kind) -> float:
        """Bound from below the loss of every plan of the kind, by its LP relaxation; infinite if it has no solution."""
        columns, upper = self._columns[~self._allowed(kind, self._base.form)], self._arrays.upper.copy()
        upper[columns[columns >= 0]] = 0.0
        answer = self._linear.solve(np.minimum(self._arrays.lower, upper), upper)
        if answer.status != "optimal" or answer.value is None:
            return math.inf if answer.status == "infeasible" else 0.0
        return max(answer.value - self._sign * self._base_value, 0.0)

    def _allowed(self, kind: Kind, form: Formulation) -> Bools:
        """Mark the holdings that a plan of the kind may have [U]."""
        return np.array([kind.allows(form.fleet_options[k]) for k, _ in form.holdings], dtype=bool)

    def _solved(self, kind: Kind) -> Alternative:
        """Solve the program of a kind in the time left."""
        left = self._ends - time.perf_counter()
        if left <= 0:
            return Alternative(kind.kind, kind.name, NOT_TRIED)

        def excluding(form: Formulation) -> Formulation:
            upper = np.where(self._allowed(kind, form), form.data.holding_upper, 0.0)
            return replace(form, data=replace(form.data, holding_upper=upper))

        limits = replace(self._options, time_limit_s=min(left, self._options.time_limit_s))
        answer = solved(self._variants, kind.edits, limits, prepare=excluding)
        if answer is None:
            return Alternative(kind.kind, kind.name, NOT_TRIED)
        self._say(
            Message.of(
                "progress.kind", name=kind.name, status=answer.solution.status, seconds=f"{answer.solution.seconds:.1f}"
            ).text()
        )
        if answer.value is None:
            missing = IMPOSSIBLE if answer.solution.status == "infeasible" else NOT_TRIED
            return Alternative(kind.kind, kind.name, missing)
        return self._found(kind, answer.problem, answer.candidates, answer.form, answer.solution)

    def _found(
        self, kind: Kind, problem: ResolvedSpec, candidates: Candidates, form: Formulation, solution: Solution
    ) -> Alternative:
        """Describe a plan of a kind."""
        value = solution.value
        assert value is not None
        # the document answers the whole spec, so it states the bound of the whole spec
        bound = self._base.solution.bound
        gap = None if bound is None else relative_gap(value, bound)
        status = "within_gap" if gap is not None and gap <= self._options.enough else "limit"
        stated = replace(solution, bound=bound, gap=gap, status=status)
        answer = Answer(*settle(problem, candidates, form, stated, self._options))
        plan = answer.plan(edited(self._variants.document, kind.edits))
        worse = self._sign * (value - self._base_value)
        least = None if solution.bound is None else max(self._sign * (solution.bound - self._base_value), 0.0)
        words = compare(self._plan, plan).words
        drivers = tuple(line for line in words if isinstance(line, Said) and line.message.code in DRIVERS)
        return Alternative(
            kind.kind,
            kind.name,
            FOUND,
            value,
            worse,
            least,
            fleet_change(self._base.fleet(), answer.fleet()),
            drivers,
            plan,
        )
