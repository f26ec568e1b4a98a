"""Variants of one spec under edits, and their answers; the one door back from solving to `resolve` and to the search for points.

A diagnosis and the studies solve many edited specs. Each is resolved once, and the operating points of a workload are
searched once for all variants whose edits leave them as they are: an edit of a budget or of a price changes none.
Not here: the questions about the variants (`planner.solving.trials`, `planner.studies`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.arrays import Ints
from planner.candidates.apis import ROLE as API
from planner.candidates.cache import Grids
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.points import Candidates, OperatingPoint, Pool
from planner.candidates.search import find_candidates
from planner.errors import SpecError
from planner.formulate.formulation import Formulation, formulate
from planner.interpret.document import interpret
from planner.interpret.marginal_values import MarginalValues
from planner.messages import Message
from planner.plan import Plan
from planner.problem.facts import ResolvedSpec, ServingFacts, TrainingFacts, WorkloadFacts
from planner.resolve.resolver import parsed, resolve, resolve_document
from planner.solving.quality import settle
from planner.spec.document import Edits, edited
from planner.spec.load.closed_loop import at_rates, closed_loops, first_rate, loop_problems
from planner.spec.load.length_pools import divided, pool_problems, pooled
from planner.spec.model import PlanSpec
from planner.spec.old_keys import in_written_keys
from solvers.interface import Options
from solvers.memory import resident_bytes
from solvers.model.data import PlanData
from solvers.model.size import least_program_bytes
from solvers.search.joint import solve
from solvers.solution import Solution

LARGE_NETWORK = 1 << 12  # factor on the ports of a network that may be of any size
PLAN_PATHS = ("limits.budget", "limits.capital", "limits.carbon", "horizon.", "phases[", "solver.")
SITE_PATHS = (
    ".power",
    ".connection",
    ".price",
    ".electricity_price",
    ".delivery",
    ".fixed_cost",
    ".crew",
    ".least",
    ".available_from",
    ".available_until",
    ".life",
)  # ends of the paths of edits that change no operating point


PointsKey = tuple[str, str, frozenset[int], frozenset[tuple[str, str]]]  # workload, edits, networks, fleet options


def resolved(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> ResolvedSpec:
    """Resolve a document. Raises SpecError with all its problems at once."""
    return resolve_document(document, overlays)


def parsed_at_once(document: Mapping[str, Any], overlays: Sequence[Path] = ()) -> PlanSpec:
    """Parse a spec that may have pools by length or closed loops. Raises SpecError with all that these do not go with, beside every other problem."""
    spec = parsed(document, overlays)
    problems = [*pool_problems(spec), *loop_problems(spec)]
    if not problems:
        return spec
    plain = divided(document, spec, {}) if pooled(spec) else document
    try:
        resolved(edited(plain, at_rates({i: first_rate(loop) for i, loop in closed_loops(spec).items()})), overlays)
    except SpecError as error:
        known = {problem.path for problem in problems}
        problems += [one for one in in_written_keys(error.problems, spec.renamed) if one.path not in known]
    raise SpecError(problems)


def resolved_anew(
    spec: PlanSpec, overlays: Sequence[Path] = (), recorded: Mapping[str, Mapping[str, Any]] | None = None
) -> ResolvedSpec:
    """Resolve a parsed spec, such as that of a plan on another calendar; `recorded`: figures by path in place of the catalog's.

    Raises SpecError with all its problems at once.
    """
    return resolve(spec, overlays, recorded)


def points_found(
    problem: ResolvedSpec, grids: Grids | None = None, *, below_floor: bool = False, until: float = math.inf
) -> Candidates:
    """Search the operating points of a problem. Raises OutOfTime at `until`, on the performance counter [s]."""
    return find_candidates(problem, grids, below_floor=below_floor, until=until)


class Variants:
    """The problems and candidates of a document under edits."""

    def __init__(
        self,
        document: Mapping[str, Any],
        overlays: Sequence[Path],
        problem: ResolvedSpec,
        candidates: Candidates | None = None,
    ):
        """`problem`, `candidates`: of the document without edits; the candidates where they are known."""
        self.document, self.overlays = document, overlays
        self.until = math.inf  # end of all searches for points, on the performance counter [s]
        self._grids: Grids = {}
        self._problems: dict[str, ResolvedSpec] = {"[]": problem}
        self._points: dict[PointsKey, Candidates] = {}
        if candidates is not None:
            fleet_options = frozenset(_key(option) for option in build_fleet_options(problem)[0])
            for workload in (*problem.serving, *problem.training):
                self._points[workload.name, "[]", frozenset(), fleet_options] = _of(candidates, workload.name)

    @property
    def base(self) -> ResolvedSpec:
        """Return the problem without edits."""
        return self._problems["[]"]

    def problem(self, edits: Edits) -> ResolvedSpec:
        """Resolve the document with some edits, once."""
        key = json.dumps(edits)
        if key not in self._problems:
            self._problems[key] = resolved(edited(self.document, edits), self.overlays)
        return self._problems[key]

    def candidates(self, problem: ResolvedSpec, edits: Edits, networks: frozenset[int] = frozenset()) -> Candidates:
        """Find the candidates of a problem that differs from the document by `edits` and by its prices.

        `networks`: sites whose networks may be of any size.
        """
        fleet_options = {_key(option): option for option in build_fleet_options(problem)[0]}
        pools: list[Pool] = []
        training: dict[str, tuple[OperatingPoint, ...]] = {}
        dropped: dict[str, Counter[str]] = {}
        for workload in problem.serving:
            found = self._points_of(problem, workload, edits, networks, frozenset(fleet_options))
            for pool in found.pools:
                points = tuple(_moved(point, workload, fleet_options) for point in pool.points)
                pools.append(replace(pool, workload=workload, points=points))
            dropped |= found.dropped
        for job in problem.training:
            found = self._points_of(problem, job, edits, networks, frozenset(fleet_options))
            if job.name in found.training:
                training[job.name] = tuple(_moved(point, job, fleet_options) for point in found.training[job.name])
            dropped |= found.dropped
        every = [p for pool in pools for p in pool.points] + [p for of_job in training.values() for p in of_job]
        used = {id(use.option) for point in every for use in point.uses}
        options = tuple(option for option in fleet_options.values() if id(option) in used)
        return Candidates(options, tuple(pools), training, dropped, 0)

    def _points_of(
        self,
        problem: ResolvedSpec,
        workload: WorkloadFacts,
        edits: Edits,
        networks: frozenset[int],
        fleet_options: frozenset[tuple[str, str]],
    ) -> Candidates:
        """Search the candidates of one workload, once for all variants that are alike to it."""
        concerning = json.dumps([edit for edit in edits if _concerns(edit[0], workload)])
        key = (workload.name, concerning, networks, fleet_options)
        if key not in self._points:
            self._points[key] = points_found(some(problem, {workload.name}, ()), self._grids, until=self.until)
        return self._points[key]


def some(problem: ResolvedSpec, names: Collection[str], networks: Collection[int]) -> ResolvedSpec:
    """Select some workloads of a problem, by their names there or in the spec, and let some networks be of any size.

    Such a network has as many ports as needed at the same price per port.
    """
    sites = list(problem.sites)
    for i in networks:
        n = sites[i].fabric
        if n is None:
            continue
        large = replace(
            n,
            radix=n.radix * LARGE_NETWORK,
            switch_price=n.switch_price * LARGE_NETWORK,
            switch_power_w=n.switch_power_w * LARGE_NETWORK,
        )
        sites[i] = replace(sites[i], fabric=large)
    return replace(
        problem,
        sites=tuple(sites),
        serving=tuple(w for w in problem.serving if w.name in names or w.asked in names),
        training=tuple(job for job in problem.training if job.name in names),
    )


def _of(candidates: Candidates, name: str) -> Candidates:
    """Select the candidates of one workload."""
    pools = tuple(pool for pool in candidates.pools if pool.workload.name == name)
    return replace(
        candidates, pools=pools, training={job: points for job, points in candidates.training.items() if job == name}
    )


def _concerns(path: str, workload: WorkloadFacts) -> bool:
    """Tell whether an edit may change the points of a workload: not one of limits or prices, or of another workload."""
    if path.startswith("workloads["):
        return path.startswith(f"{workload.path}.")
    return not (
        path.startswith(PLAN_PATHS)
        or path.endswith(SITE_PATHS)
        or ".power_by_phase." in path
        or (path.endswith((".supply", ".count", ".storage_bandwidth")) and workload.spec.kind == "serving")
    )


def _key(option: FleetOption) -> tuple[str, str]:
    """Identify a fleet option across variants."""
    return option.name, option.offer.path


def _moved(
    point: OperatingPoint,
    workload: ServingFacts | TrainingFacts,
    fleet_options: Mapping[tuple[str, str], FleetOption],
) -> OperatingPoint:
    """Move a point to the workload and the fleet options of another variant."""
    uses = tuple(replace(use, option=fleet_options[_key(use.option)]) for use in point.uses)
    return replace(point, workload=workload, uses=uses)


# -- answers -----------------------------------------------------------------------------------------------------------

Fleet = dict[tuple[str, str, str, str], int]  # site, system, how, fabric


@dataclass(frozen=True, slots=True)
class Answer:
    """A variant solved: problem, candidates, program and solution."""

    problem: ResolvedSpec
    candidates: Candidates
    form: Formulation
    solution: Solution

    @property
    def value(self) -> float | None:
        """Return the value of the objective; None where there is no plan."""
        return self.solution.value if self.solution.values else None

    def fleet(self) -> Fleet:
        """Find the most systems of each kind that are held at once."""
        held: dict[tuple[str, str, str, str], Ints] = {}
        for u, (k, term) in enumerate(self.form.holdings):
            if self.solution.values and (count := round(float(self.solution.values["n"][u]))):
                option = self.form.fleet_options[k]
                of_kind = held.setdefault(
                    (option.site.region, option.system.name, option.offer.how, option.fabric),
                    np.zeros(self.problem.calendar.windows, dtype=np.int64),
                )
                of_kind[term.first : term.last + 1] += count
        return {kind: int(windows.max()) for kind, windows in held.items()}

    def plan(self, document: Mapping[str, Any]) -> Plan:
        """Build the plan document, without marginal values."""
        return interpret(
            self.problem, self.candidates, self.form, self.solution, dict(document), MarginalValues("", {}, {}, [])
        )


def answered(
    problem: ResolvedSpec,
    candidates: Candidates,
    options: Options,
    solve_program: Callable[[PlanData, Options], Solution] = solve,
    prepare: Callable[[Formulation], Formulation] | None = None,
) -> Answer:
    """Formulate and solve a variant, unless its program takes more memory than is left. Raises Unbounded where nothing limits the throughput.

    `solve_program`: used in place of `solvers.search.joint.solve`; `prepare`: changes the program's input before it is solved, whose
    architectures then stay open.
    """
    form = formulate(problem, candidates)
    form = form if prepare is None else prepare(form)
    if not _fits(form.data, options):
        nothing = Solution("limit", form.data.objective, None, None, None, 0.0, 0, 0, 0, options.seed)
        return Answer(problem, candidates, form, nothing)
    if prepare is not None:
        return Answer(problem, candidates, form, solve_program(form.data, options))
    return Answer(*settle(problem, candidates, form, solve_program(form.data, options), options))


def _fits(data: PlanData, options: Options) -> bool:
    """Tell whether the memory that is left holds the program."""
    if options.memory is None:
        return True
    free = options.memory.most_bytes - resident_bytes()
    return least_program_bytes(data, free) <= free


def fleet_change(before: Fleet, after: Fleet) -> str:
    """Describe the change of the fleet over all sites, largest first; "" where the fleets are the same.

    >>> fleet_change({("a", "DGX H100", "buy", "torus"): 5}, {("a", "DGX H100", "buy", "torus"): 3, ("b", "DGX B200", "buy", "torus"): 4})
    '+4 DGX B200 (buy), -2 DGX H100 (buy)'
    """
    change: dict[tuple[str, str], int] = {}
    for sign, fleet in ((-1, before), (1, after)):
        for (_, system, how, _), count in fleet.items():
            change[system, how] = change.get((system, how), 0) + sign * count
    changed = sorted(((n, key) for key, n in change.items() if n), key=lambda item: (-abs(item[0]), item[1]))
    if not changed and before != after:
        return Message.of("solving.same_systems_elsewhere").text()
    return ", ".join(
        f"{n:+,d} tokens/s of {system}" if how == API else f"{n:+d} {system} ({how.replace('_', ' ')})"
        for n, (system, how) in changed
    )
