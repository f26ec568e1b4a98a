"""Why a spec has no plan: the limits that are in conflict, and the smallest change that gives it one.

Every answer comes from solving: a set of limits is in conflict when the spec without all others is proven to have no plan
and each of them is needed for that; a repair is stated with whether the repaired spec was found to have a plan. What
limits there are: `planner.limits`. How variants are solved: `planner.trials`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.document import Edits, at, edited
from planner.limits import Limit, beyond_horizon, change_words, further_offers, last_resorts, limits_of, nothing_fits, nothing_runs
from planner.points import Candidates
from planner.problem import Problem
from planner.trials import Trials, merged
from solvers.backends import Options
from solvers.diagnose import hitting_sets, least_relief, smallest_conflict, with_limits

FOUND_WITHIN = 0.01  # latencies and deadlines are found to this share
STEPS = (1.05, 1.25, 2.0, 5.0, 25.0, 1e3, 1e5)  # tried in turn until one is far enough
OTHER = 1.0  # a change of what is no number counts as much as doubling one
CONFLICTS = 8  # at most so many are looked for before the smallest repair is chosen


def diagnose(problem: Problem, candidates: Candidates, document: Mapping[str, Any], overlays: Sequence[Path], options: Options) -> dict[str, Any]:
    """The `diagnosis` of a plan document: conflict, repair, and whether the repair was found to give a plan.

    Each workload is looked at alone first, then all together. As long again as the solver's time limit may be spent.
    """
    trials = Trials(problem, candidates, document, overlays, options)
    names = [w.name for w in (*problem.serving, *problem.training) if not _scales(problem, w.name)]
    conflict: dict[str, Limit] = {}
    known: dict[str, Limit] = {}
    edits: Edits = ()
    for group in [*([name] for name in names if len(names) > 1), names]:
        if len(group) < len(names):
            fails = trials.fails(frozenset(group), ())
        else:  # as a whole the spec is known to have no plan, before anything is changed
            fails = not edits or trials.feasible(frozenset(group), edits) is False
        if not fails:
            continue
        mending = _Mending(trials, frozenset(group), edits)
        found, repair = mending.mend()
        known |= {limit.path: limit for limit in mending.limits}
        conflict |= {limit.path: limit for limit in found}
        edits = merged(edits, repair)
    defaults = problem.spec.model_dump()
    changes = []
    for path, new in edits:
        old = at(document, path)
        old = at(defaults, path) if old is None else old
        if new != old:
            unit = known[path].unit if path in known else None
            changes.append({"path": path, "from": old, "to": new, "unit": unit, "words": change_words(path, old, new)})
    return {
        "conflict": [{"path": limit.path, "name": limit.name, "words": limit.words} for limit in conflict.values()],
        "repair": changes,
        "repair_checked": bool(changes) and trials.feasible(frozenset(names), edits) is True,
    }


def _scales(problem: Problem, name: str) -> bool:
    """Whether throughput is maximised over this workload: it can always be served less."""
    asked = problem.spec.objective
    return asked.maximise is not None and name in {w.name for w in problem.serving} and asked.workload in (None, name)


class _Mending:
    """Conflict and repair of some workloads of the spec, `edits` already made."""

    def __init__(self, trials: Trials, names: frozenset[str], edits: Edits):
        self.trials, self.names, self.edits = trials, names, edits
        document, problem = edited(trials.document, edits), trials.problem(edits)
        # where fractions of systems are proof enough, whole ones need not be asked about
        self.by_fractions = self._fails(())
        self.nothing_runs = nothing_runs(problem, names)
        self.limits = limits_of(document, problem, trials.catalog, names)
        if self._fails(self.limits):
            self.limits = [beyond_horizon(limit) for limit in self.limits]
        if self._fails(self.limits):
            self.limits += self._last_resort(document, problem)

    def mend(self) -> tuple[list[Limit], Edits]:
        if self._fails(self.limits):
            return [self.nothing_runs], ()
        conflicts, change, edits = self._conflicts()
        if math.isinf(change) and self.by_fractions and self.trials.seconds_left > 0:
            self.by_fractions = False  # a change that is enough for fractions of systems is not for whole ones
            conflicts, change, edits = self._conflicts()
        return list({limit.path: limit for conflict in conflicts for limit in conflict}.values()), edits

    def _conflicts(self) -> tuple[list[list[Limit]], float, Edits]:
        """Conflicts until a smallest set of limits to loosen is known; how far those must change, and the edits."""
        conflicts = [self._conflict(self.limits)]
        best: tuple[float, Edits] = (math.inf, ())
        for _ in range(CONFLICTS):
            sets = hitting_sets(conflicts)
            enough = [some for some in sets if not self._infeasible(some)]
            for some in sorted(enough, key=lambda some: sum(not limit.is_row for limit in some)):
                best = min(best, self._least(some, best[0]), key=lambda found: found[0])
            if enough or self.trials.seconds_left <= 0:
                break
            conflicts.append(self._conflict([limit for limit in self.limits if limit not in sets[0]]))
        return conflicts, *best

    def _conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """A smallest set among `limits` that cannot be met, all others taken away."""
        return smallest_conflict(limits, lambda kept: self._infeasible([limit for limit in self.limits if limit not in kept]))

    # -- questions -------------------------------------------------------------------------------------------------

    def _fails(self, loose: Collection[Limit], edits: Edits = ()) -> bool:
        return self.trials.fails(self.names, merged(self.edits, edits), loose)

    def _feasible(self, loose: Collection[Limit], edits: Edits = ()) -> bool | None:
        return self.trials.feasible(self.names, merged(self.edits, edits), loose)

    def _infeasible(self, loose: Collection[Limit]) -> bool:
        return self._fails(loose) if self.by_fractions else self._feasible(loose) is False

    # -- when taking away every limit does not help ----------------------------------------------------------------

    def _last_resort(self, document: Mapping[str, Any], problem: Problem) -> list[Limit]:
        """The first further change that helps once all limits are taken away."""
        resorts = last_resorts(problem, self.names)
        for resort in resorts:
            if not self._fails([*self.limits, resort]):
                return [resort]
        loose = tuple(edit for limit in self.limits for edit in limit.loose)
        widest = merged(loose, tuple(edit for resort in resorts for edit in resort.loose))
        for given, further in (((), []), (loose, []), (widest, resorts)):
            offer = self._offer_that_fits(document, problem, given)
            if offer is not None:
                return [nothing_fits(document, problem, self.names, offer), *further]
        return []

    def _offer_that_fits(self, document: Mapping[str, Any], problem: Problem, given: Edits) -> Edits | None:
        """The cheapest system of the catalog, as one more offer, that every workload could run on."""
        edits, made = merged(self.edits, given), document.get("offers")
        ways = further_offers(problem, self.trials.catalog) if made is not None else []
        able = self.trials.ways_with_points(self.names, merged(edits, (("offers", [*(made or ()), *ways]),))) if ways else set()
        offers = ((("offers", [*made, way]),) for way in ways if (way["system"], way["how"]) in able)
        return next((offer for offer in offers if self.trials.ways_with_points(self.names, merged(edits, offer))), None)

    # -- how far limits must give way ------------------------------------------------------------------------------

    def _least(self, some: Sequence[Limit], most: float) -> tuple[float, Edits]:
        """The least sum of relative changes of these limits that gives a plan, and the edits; infinite from `most` on."""
        change, edits = 0.0, ()
        rows = [limit for limit in some if limit.is_row]
        others = [limit for limit in some if not limit.is_row]
        while others and change < most:
            limit = others.pop()
            left = [*rows, *others]
            step, found = self._least_number(limit, edits, left, most - change) if limit.is_number else self._first_choice(limit, edits, left)
            change, edits = change + step, merged(edits, found)
        if rows and change < most:
            step, found = self._least_rows(rows, edits, most - change)
            change, edits = change + step, merged(edits, found)
        return (change, edits) if change < most else (math.inf, ())

    def _least_rows(self, rows: Sequence[Limit], edits: Edits, most: float) -> tuple[float, Edits]:
        wide = tuple(edit for limit in rows for edit in limit.loose)
        variant = self.trials.variant(self.names, merged(merged(self.edits, edits), wide))
        if variant.data is None or self.trials.seconds_left <= 0:
            return math.inf, ()
        at_row = {variant.rows[limit.path]: limit for limit in rows}
        asked = with_limits(variant.data, {row: limit.amount / limit.scale for row, limit in at_row.items()})
        relief = least_relief(asked, list(at_row), self.trials.limited_options(), most)
        if relief is None:
            return math.inf, ()
        change, found = 0.0, ()
        for row, by in relief.items():
            limit = at_row[row]
            if by > 1e-9 * max(limit.amount / limit.scale, 1.0):
                change += by * limit.scale / (limit.amount or 1.0)
                found += limit.grown(limit.amount + by * limit.scale)
        return change, found

    def _least_number(self, limit: Limit, edits: Edits, loose: Sequence[Limit], most: float) -> tuple[float, Edits]:
        """By halving: a longer latency or a later deadline never takes a plan away.

        With one pool first, then with fractions of systems, since those are quick; each leaves less for the next.
        """

        def fails(amount: float) -> bool:
            return self._fails(loose, merged(edits, limit.grown(amount)))

        def alone(amount: float) -> bool:
            return self._fails(loose, merged(merged(edits, limit.grown(amount)), self.trials.one_pool(self.names)))

        def lacks(amount: float) -> bool:
            return self._feasible(loose, merged(edits, limit.grown(amount))) is not True

        farthest = min(limit.amount * (1 + most), limit.most)
        steps = () if math.isfinite(most) else tuple(limit.amount * step for step in STEPS if limit.amount * step < farthest)
        if math.isfinite(farthest):
            steps = (*steps, farthest)
        quick = _least_where(alone, limit.amount, steps)
        low = limit.amount
        if quick is not None and fails(quick / (1 + FOUND_WITHIN)):
            low, steps = quick / (1 + FOUND_WITHIN), (quick, *(step for step in steps if step > quick))
        elif quick is not None:
            steps = (quick / (1 + FOUND_WITHIN),)
        least = _least_where(fails, low, steps)
        if least is None:
            return math.inf, ()
        found = _least_where(lacks, max(low, least / (1 + FOUND_WITHIN)), (least, *(least * step for step in (1.02, 1.1, 1.5)), *(s for s in steps if s > least)))
        return (found / limit.amount - 1, limit.grown(found)) if found is not None and found <= farthest else (math.inf, ())

    def _first_choice(self, limit: Limit, edits: Edits, loose: Sequence[Limit]) -> tuple[float, Edits]:
        """The first way of giving way that is far enough."""
        found = next((choice for choice in limit.choices if self._feasible(loose, merged(edits, choice))), None)
        return (OTHER, found) if found is not None else (math.inf, ())


def _least_where(short: Callable[[float], bool], low: float, steps: Sequence[float]) -> float | None:
    """The least amount, to one percent, that is not `short`; `low` is. None where no step is enough.

    >>> round(_least_where(lambda amount: amount < 7, 1.0, (5.0, 10.0)), 1)
    7.0
    """
    for high in steps:
        if high > low and not short(high):
            while high > low * (1 + FOUND_WITHIN):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if short(middle) else (low, middle)
            return high
        low = max(low, high)
    return None
