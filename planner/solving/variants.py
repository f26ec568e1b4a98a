"""Variants of one spec: each resolved once, the points of a workload found once for all variants that are alike to it.

Not here: what is asked about the variants (`planner.solving.trials`, `planner.studies.alternatives`, `planner.studies.sensitivity`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from planner.candidates.cache import Grids
from planner.candidates.fleet_options import FleetOption, build_fleet_options
from planner.candidates.points import Candidates, OperatingPoint
from planner.candidates.search import find_candidates
from planner.formulate.formulation import Formulation, formulate
from planner.interpret.document import interpret
from planner.interpret.marginal_values import MarginalValues
from planner.plan import Plan
from planner.problem.facts import Problem
from planner.resolve.resolver import resolve_document
from planner.solving.quality import settle
from planner.spec.document import Edits, edited
from solvers.interface import Options
from solvers.joint import solve
from solvers.model.data import PlanData
from solvers.solution import Solution

AMPLE = 1 << 12  # times as many ports as any network has, for networks of any size
AMOUNTS = ("limits.budget", "limits.capital", "limits.carbon", "horizon.", "phases[", "solver.")
OF_SITES = (
    ".power",
    ".connection",
    ".price",
    ".electricity_price",
    ".fixed_cost",
    ".least",
    ".available_from",
    ".available_until",
    ".life",
)  # how an edit's path ends


class Variants:
    """The problems and candidates of a document under edits."""

    def __init__(
        self,
        document: Mapping[str, Any],
        overlays: Sequence[Path],
        problem: Problem,
        candidates: Candidates | None = None,
    ):
        """`problem`, `candidates`: those of the document as it is, where they are known."""
        self.document, self.overlays = document, overlays
        self._grids: Grids = {}
        self._problems: dict[str, Problem] = {"[]": problem}
        self._points: dict[tuple, Candidates] = {}
        if candidates is not None:
            fleet_options = frozenset(_key(option) for option in build_fleet_options(problem)[0])
            for workload in (*problem.serving, *problem.training):
                self._points[workload.name, "[]", frozenset(), fleet_options] = _of(candidates, workload.name)

    @property
    def base(self) -> Problem:
        return self._problems["[]"]

    def problem(self, edits: Edits) -> Problem:
        key = json.dumps(edits)
        if key not in self._problems:
            self._problems[key] = resolve_document(edited(self.document, edits), self.overlays)
        return self._problems[key]

    def candidates(self, problem: Problem, edits: Edits, networks: frozenset[int] = frozenset()) -> Candidates:
        """Those of `problem`, which differs from the document's by `edits`, by its money, and by sites whose `networks` may be of any size."""
        fleet_options = {_key(option): option for option in build_fleet_options(problem)[0]}
        pools, training, dropped = [], {}, {}
        for workload in (*problem.serving, *problem.training):
            key = (
                workload.name,
                json.dumps([edit for edit in edits if _concerns(edit[0], workload)]),
                networks,
                frozenset(fleet_options),
            )
            if key not in self._points:
                self._points[key] = find_candidates(some(problem, {workload.name}, ()), self._grids)
            found = self._points[key]
            pools += [
                replace(pool, workload=workload, points=tuple(_moved(p, workload, fleet_options) for p in pool.points))
                for pool in found.pools
            ]
            if workload.name in found.training:
                training[workload.name] = tuple(
                    _moved(p, workload, fleet_options) for p in found.training[workload.name]
                )
            dropped |= found.dropped
        points = [p for pool in pools for p in pool.points] + [p for of_job in training.values() for p in of_job]
        used = {id(use.option) for point in points for use in point.uses}
        return Candidates(
            tuple(option for option in fleet_options.values() if id(option) in used), tuple(pools), training, dropped, 0
        )


def some(problem: Problem, names: Collection[str], networks: Collection[int]) -> Problem:
    """Some workloads of the problem only, by their names there or those in the spec, some sites' networks large enough for anything at the same price per port."""
    sites = list(problem.sites)
    for i in networks:
        n = sites[i].network
        if n is None:
            continue
        large = replace(
            n, radix=n.radix * AMPLE, switch_price=n.switch_price * AMPLE, switch_power_w=n.switch_power_w * AMPLE
        )
        sites[i] = replace(sites[i], network=large)
    return replace(
        problem,
        sites=tuple(sites),
        serving=tuple(w for w in problem.serving if w.name in names or w.asked in names),
        training=tuple(job for job in problem.training if job.name in names),
    )


def _of(candidates: Candidates, name: str) -> Candidates:
    pools = tuple(pool for pool in candidates.pools if pool.workload.name == name)
    return replace(
        candidates, pools=pools, training={job: points for job, points in candidates.training.items() if job == name}
    )


def _concerns(path: str, workload) -> bool:
    """Whether an edit may change the points of a workload: not so for what limits or prices the whole plan, and for another workload."""
    if path.startswith("workloads["):
        return path.startswith(f"{workload.path}.")
    return not (
        path.startswith(AMOUNTS)
        or path.endswith(OF_SITES)
        or ".power_by_phase." in path
        or (path.endswith((".supply", ".storage_bandwidth")) and workload.spec.kind == "serving")
    )


def _key(option: FleetOption) -> tuple[str, str]:
    return option.name, option.offer.path


def _moved(point: OperatingPoint, workload, fleet_options: Mapping[tuple[str, str], FleetOption]) -> OperatingPoint:
    return replace(
        point, workload=workload, uses=tuple(replace(use, option=fleet_options[_key(use.option)]) for use in point.uses)
    )


# -- answers -----------------------------------------------------------------------------------------------------------

Fleet = dict[tuple[str, str, str, str], int]  # site, system, how, fabric


@dataclass(frozen=True, slots=True)
class Answer:
    """A variant solved: what stands between the question and its plan."""

    problem: Problem
    candidates: Candidates
    form: Formulation
    solution: Solution

    @property
    def value(self) -> float | None:
        return self.solution.value if self.solution.values else None

    def fleet(self) -> Fleet:
        """Most systems of a kind that are held at once."""
        held: dict[tuple[str, str, str, str], np.ndarray] = {}
        for u, (k, term) in enumerate(self.form.holdings):
            if self.solution.values and (count := round(float(self.solution.values["n"][u]))):
                option = self.form.fleet_options[k]
                of_kind = held.setdefault(
                    (option.site.region, option.system.name, option.offer.how, option.fabric),
                    np.zeros(self.problem.calendar.windows, dtype=int),
                )
                of_kind[term.first : term.last + 1] += count
        return {kind: int(windows.max()) for kind, windows in held.items()}

    def plan(self, document: Mapping[str, Any]) -> Plan:
        """The plan document, without what its limits are worth."""
        return interpret(
            self.problem, self.candidates, self.form, self.solution, dict(document), MarginalValues("", {}, {}, [])
        )


def answered(
    problem: Problem,
    candidates: Candidates,
    options: Options,
    solve_program: Callable[[PlanData, Options], Solution] = solve,
) -> Answer:
    """Raises Unbounded where nothing limits the throughput. `solve_program`: in place of `solvers.joint.solve`."""
    form = formulate(problem, candidates)
    return Answer(*settle(problem, candidates, form, solve_program(form.data, options), options))


def fleet_change(before: Fleet, after: Fleet) -> str:
    """What there is more and less of, all sites together, the largest first; empty where the fleets are the same.

    >>> fleet_change({("a", "DGX H100", "buy", "torus"): 5}, {("a", "DGX H100", "buy", "torus"): 3, ("b", "DGX B200", "buy", "torus"): 4})
    '+4 DGX B200 (buy), -2 DGX H100 (buy)'
    """
    change: dict[tuple[str, str], int] = {}
    for sign, fleet in ((-1, before), (1, after)):
        for (_, system, how, _), count in fleet.items():
            change[system, how] = change.get((system, how), 0) + sign * count
    told = sorted(((n, key) for key, n in change.items() if n), key=lambda item: (-abs(item[0]), item[1]))
    if not told and before != after:
        return "the same systems, at other sites or on other networks"
    return ", ".join(f"{n:+d} {system} ({how.replace('_', ' ')})" for n, (system, how) in told)
