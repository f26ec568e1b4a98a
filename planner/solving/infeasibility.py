"""Why a spec has no plan: the limits that are in conflict, and the smallest change that gives it one.

Every answer comes from solving: a set of limits is in conflict when the spec without all others is proven to have no plan
and each of them is needed for that; a repair is stated with whether the repaired spec was found to have a plan. What
limits there are: `planner.limits.limits`. How variants are solved: `planner.solving.trials`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from planner.candidates.points import Candidates
from planner.limits.limit import Limit
from planner.limits.limits import every_limit
from planner.limits.offers import further_offers, nothing_fits, nothing_runs
from planner.limits.workloads import precision_limits
from planner.problem.facts import Problem
from planner.solving.trials import Trials, Variant, merged
from planner.spec.changes import change_words
from planner.spec.document import Edits, at, edited
from solvers.analysis.conflicts import minimal_conflict, minimum_hitting_sets
from solvers.analysis.elastic import ElasticProgram
from solvers.analysis.relief import LimitKey, least_relief, with_limits
from solvers.mip import Options

BEYOND_DOUBT = 1e-6  # amounts are found to about the tolerance of a solver
FOUND_WITHIN = 0.01  # latencies and deadlines are found to this share
STEPS = (1.05, 1.25, 2.0, 5.0, 25.0, 1e3, 1e5)  # tried in turn until one is far enough
LIMITS, AMOUNTS = (
    "limits",
    "amounts",
)  # what a conflict was looked for among: where amounts alone, all else is kept as stated
OTHER = 1.0  # a change of what is no number counts as much as doubling one
COLUMNS_PER_SECOND = 300  # of the time limit: a larger program's conflict is looked for among its amounts
CONFLICTS = 8  # at most so many are looked for before the smallest repair is chosen


def diagnose(
    problem: Problem, candidates: Candidates, document: Mapping[str, Any], overlays: Sequence[Path], options: Options
) -> dict[str, Any]:
    """The `diagnosis` of a plan document: conflict, repair, and whether the repair was found to give a plan.

    A workload that no amount would help is looked at alone; then all together. As long again as the solver's time limit
    may be spent, and half a minute in any case.
    """
    trials = Trials(problem, candidates, document, overlays, options)
    names = list(dict.fromkeys(w.asked for w in (*problem.serving, *problem.training) if not _scales(problem, w.asked)))
    known: dict[str, Limit] = {}
    conflicts: list[list[Limit]] = []
    edits: Edits = ()
    hopeless = amounts_only = False
    for group in [*(frozenset([name]) for name in names if len(names) > 1), frozenset(names)]:
        alone = len(group) < len(names)
        amounts = (
            [limit for limit in every_limit(document, problem, trials.catalog, group) if limit.is_row] if alone else []
        )
        if alone and not trials.fails(group, edits, amounts):  # as mended so far
            continue
        # as a whole the spec is known to have no plan, as long as nothing is changed
        if not alone and (hopeless or (edits and trials.feasible(group, edits) is not False)):
            continue
        mending = _Mending(trials, group, edits, [] if alone or edits else conflicts)
        edits = merged(edits, mending.mend())
        known |= {limit.path: limit for limit in mending.limits}
        conflicts += mending.conflicts
        hopeless, amounts_only = hopeless or mending.hopeless, amounts_only or mending.amounts_only
    conflict = {limit.path: limit for some in conflicts for limit in some}
    defaults = problem.spec.model_dump()
    changes = []
    for path, new in edits:
        old = at(document, path)
        old = at(defaults, path) if old is None else old
        if new != old:
            unit = known[path].unit if path in known else None
            changes.append({"path": path, "from": old, "to": new, "unit": unit, "words": change_words(path, old, new)})
    return {
        "conflict_of": AMOUNTS if amounts_only else LIMITS,
        "conflict": [{"path": limit.path, "name": limit.name, "words": limit.words} for limit in conflict.values()],
        "repair": changes,
        "repair_checked": bool(changes) and trials.feasible(frozenset(names), edits) is True,
    }


def _scales(problem: Problem, name: str) -> bool:
    """Whether throughput is maximised over this workload: it can always be served less."""
    asked = problem.spec.objective
    return asked.maximise is not None and name in {w.asked for w in problem.serving} and asked.workload in (None, name)


Find = Callable[[Sequence[Limit]], list[Limit]]


@dataclass(frozen=True, slots=True)
class Repair:
    """`change`: sum of the relative changes of so many limits."""

    limits: float = math.inf
    change: float = math.inf
    edits: Edits = ()


class _Mending:
    """Conflict and repair of some workloads of the spec, `edits` already made."""

    def __init__(self, trials: Trials, names: frozenset[str], edits: Edits, told: Sequence[Sequence[Limit]]):
        """`told`: conflicts that are known already."""
        self.trials, self.names, self.edits = trials, names, edits
        self._relaxed: dict[int, ElasticProgram] = {}
        document, problem = edited(trials.document, edits), trials.problem(edits)
        self.limits = every_limit(document, problem, trials.catalog, names)
        self.rows = [limit for limit in self.limits if limit.is_row]
        # where fractions of systems are proof enough, whole ones need not be asked about
        self.by_all_points = any(limit.loose for limit in self.rows) and self._fails_on_all_points(())
        self.by_fractions = self.by_all_points or self._fails(())
        self.rows_suffice = not (self._fails_on_all_points(self.rows) if self.by_all_points else self._fails(self.rows))
        self.amounts_only = False  # the conflict is one of amounts beside all else as stated
        if not self.rows_suffice and self._fails(self.limits):
            self.limits = [limit.beyond_horizon() for limit in self.limits]
            if self._fails(self.limits):
                self.limits += self._last_resort(document, problem)
        self.hopeless = not self.rows_suffice and self._fails(self.limits)
        mine = {limit.path: limit for limit in self.limits}
        self.conflicts = [
            [mine[limit.path] for limit in some] for some in told if all(limit.path in mine for limit in some)
        ]
        if self.hopeless:
            self.conflicts = [[nothing_runs(problem, names)]]

    def mend(self) -> Edits:
        """The smallest repair; `conflicts` on the way. Amounts alone come first, since they leave the points as they are."""
        if self.hopeless:
            return ()
        while True:
            best, of_rows = Repair(), []
            if self.rows_suffice:
                best = self._smallest(self._sets_to_loosen(self._row_conflict, of_rows), best)
            if best.limits == 1 and self._takes_too_long():
                self.conflicts, self.amounts_only = [*self.conflicts, *of_rows], True
                others = [
                    limit for limit in self.limits if not limit.is_row and (limit.is_number or best.change > OTHER)
                ]
                return self._smallest([(limit,) for limit in others], best).edits
            sets = self._sets_to_loosen(self._conflict, self.conflicts)
            best = self._smallest([some for some in sets if not all(limit.is_row for limit in some)], best)
            if best.edits or not self.by_fractions or self.trials.seconds_left <= 0:
                return best.edits
            self.by_fractions = False  # what is enough for fractions of systems is not for whole ones

    def _takes_too_long(self) -> bool:
        """Whether the time would be up before what else than amounts is in conflict is known: without it there are many times the points."""
        relaxed, _ = self._on_all_points(())
        return relaxed is not None and relaxed.columns > COLUMNS_PER_SECOND * self.trials.options.time_limit_s

    def _sets_to_loosen(self, find: Find, conflicts: list[list[Limit]]) -> list[tuple[Limit, ...]]:
        """The smallest sets of limits that give a plan when they are taken away; `conflicts` grows with what is found."""
        if not conflicts:
            conflicts.append(find(self.limits))
        for _ in range(CONFLICTS):
            sets = minimum_hitting_sets(conflicts)
            enough = [some for some in sets if not self._infeasible(some)]
            if enough or self.trials.seconds_left <= 0:
                return enough
            conflicts.append(find([limit for limit in self.limits if limit not in sets[0]]))
        return []

    def _smallest(self, sets: Sequence[tuple[Limit, ...]], best: Repair) -> Repair:
        """Of these sets and the best so far, the one of fewest limits and then of least change; the most promising first."""
        # a bound from what is known already comes first, the exact one only for a set whose turn it is
        waiting = [(self._promise(some, exact=False), False, i) for i, some in enumerate(sets)]
        heapq.heapify(waiting)
        while waiting:
            promise, exact, i = heapq.heappop(waiting)
            some = sets[i]
            most = best.change if len(some) == best.limits else math.inf
            if len(some) > best.limits or promise >= most:
                continue
            if not exact:
                heapq.heappush(waiting, (self._promise(some, exact=True), True, i))
                continue
            change, edits = self._least(some, most)
            if math.isfinite(change):
                best = Repair(len(some), change, edits)
        return best

    def _promise(self, some: Sequence[Limit], *, exact: bool) -> float:
        """A change below which a set is surely not enough: the largest such one that fractions of systems prove, or one known already."""
        if not all(limit.is_row for limit in some):
            return 0.0
        relaxed, rows = self._on_all_points(())
        if relaxed is None:
            return math.inf
        named = [rows[limit.path] for limit in some]
        return relaxed.least_relief(named) if exact else relaxed.relief_bound(named)

    def _conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """A smallest set among `limits` that cannot be met, all others taken away; when the time is up, its amounts alone.

        Amounts that are needed beside all else of `limits` stay irreducible beside less; what else is needed comes after.
        """
        others = [limit for limit in limits if not limit.is_row]
        rows = [] if not self.rows_suffice and self._without_all_but(others) else self._row_conflict(limits)
        if rows and self.trials.seconds_left > 0 and (not others or self._without_all_but(rows)):
            return rows
        found = minimal_conflict(others, lambda some: self._without_all_but([*rows, *some]))
        if rows and others and self.trials.seconds_left <= 0:
            self.amounts_only = True
            return rows
        return [*rows, *found]

    def _row_conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """A smallest set of amounts among `limits` that cannot be met beside all that is no amount."""
        others = [limit for limit in limits if not limit.is_row]
        rows = [limit for limit in limits if limit.is_row]
        if self.by_all_points:  # those that a proof does not need are in no conflict that it shows
            relaxed, row_of = self._on_all_points(())
            needed = (
                set(relaxed.infeasible_subset([row_of[limit.path] for limit in rows])) if relaxed is not None else set()
            )
            rows = [limit for limit in rows if relaxed is None or row_of[limit.path] in needed]
        return minimal_conflict(rows, lambda some: self._without_all_but([*some, *others]))

    def _without_all_but(self, kept: Sequence[Limit]) -> bool:
        """Whether there is no plan even with all other limits taken away."""
        return self._infeasible([limit for limit in self.limits if limit not in kept])

    # -- questions -------------------------------------------------------------------------------------------------

    def _fails(self, loose: Collection[Limit], edits: Edits = ()) -> bool:
        return self.trials.fails(self.names, merged(self.edits, edits), loose)

    def _feasible(self, loose: Collection[Limit], edits: Edits = ()) -> bool | None:
        return self.trials.feasible(self.names, merged(self.edits, edits), loose)

    def _infeasible(self, loose: Collection[Limit]) -> bool:
        if not self.by_fractions:
            return self._feasible(loose) is False
        return self._fails_on_all_points(loose) if self.by_all_points else self._fails(loose)

    def _fails_on_all_points(self, loose: Collection[Limit]) -> bool:
        """As `_fails`, with one linear program for all sets of amounts."""
        if self.trials.seconds_left <= 0:
            return False
        relaxed, rows = self._on_all_points([limit for limit in loose if not limit.is_row])
        return relaxed is None or relaxed.is_infeasible_without([rows[limit.path] for limit in loose if limit.is_row])

    def _on_all_points(self, loose: Sequence[Limit]) -> tuple[ElasticProgram | None, Mapping[str, LimitKey]]:
        """The relaxation on the points that there are with every amount taken away, which are never fewer, under the amounts as asked."""
        edits = tuple(edit for limit in (*loose, *self.rows) for edit in limit.loose)
        networks = frozenset(limit.network_of for limit in loose if limit.network_of is not None)
        variant = self.trials.variant(self.names, merged(self.edits, edits), networks)
        if variant.data is not None and id(variant) not in self._relaxed:  # trials keep their variants
            amounts = {variant.rows[limit.path]: limit.amount / limit.scale for limit in self.rows}
            self._relaxed[id(variant)] = ElasticProgram(
                with_limits(variant.data, amounts), list(amounts), self.trials.limited_options()
            )
        return self._relaxed.get(id(variant)), variant.rows

    # -- when taking away every limit does not help ----------------------------------------------------------------

    def _last_resort(self, document: Mapping[str, Any], problem: Problem) -> list[Limit]:
        """The first further change that helps once all limits are taken away."""
        resorts = precision_limits(problem, self.names)
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
        if not ways:
            return None
        able = self.trials.ways_with_points(self.names, merged(edits, (("offers", [*made, *ways]),)))
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
            if limit.is_number:
                step, found = self._least_number(limit, edits, [*rows, *others], most - change)
            else:
                step, found = self._first_choice(limit, edits, [*rows, *others])
            change, edits = change + step, merged(edits, found)
        if rows and change < most:
            step, found = self._least_rows(rows, edits, most - change)
            change, edits = change + step, merged(edits, found)
        return (change, edits) if change < most else (math.inf, ())

    def _least_rows(self, rows: Sequence[Limit], edits: Edits, most: float) -> tuple[float, Edits]:
        variant, asked = self._asked(rows, edits)
        if variant.data is None:
            return math.inf, ()
        options = self.trials.limited_options()
        options = replace(options, time_limit_s=options.time_limit_s / 2)  # the rest is for what else may give way
        relief = least_relief(variant.data, list(asked), options, most, self._promise(rows, exact=False))
        if relief is None:
            return math.inf, ()
        change, found = 0.0, ()
        for row, by in relief.items():
            limit = asked[row]
            if by > 1e-9 * max(limit.amount / limit.scale, 1.0):
                change += by * limit.scale / (limit.amount or 1.0)
                enough = limit.amount + by * limit.scale
                found += limit.grown(enough if limit.unit == "system" else enough * (1 + BEYOND_DOUBT))
        if not any(
            limit.loose for limit in rows
        ):  # else the points are those of limits taken away, not of the new ones
            self.trials.has_plan(self.names, merged(merged(self.edits, edits), found))
        return change, found

    def _asked(self, rows: Sequence[Limit], edits: Edits) -> tuple[Variant, dict[LimitKey, Limit]]:
        """The variant whose points are those of the loosened limits, the limits themselves as asked; and their rows."""
        wide = tuple(edit for limit in rows for edit in limit.loose)
        variant = self.trials.variant(self.names, merged(merged(self.edits, edits), wide))
        if variant.data is None:
            return variant, {}
        asked = {variant.rows[limit.path]: limit for limit in rows}
        if not wide:
            return variant, asked
        amounts = {row: limit.amount / limit.scale for row, limit in asked.items()}
        return replace(variant, data=with_limits(variant.data, amounts)), asked

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
        if math.isfinite(most) and fails(farthest):
            return math.inf, ()
        steps = [farthest] if math.isfinite(farthest) else []
        if math.isinf(most):
            steps = [limit.amount * step for step in STEPS if limit.amount * step < farthest] + steps
        quick = _least_where(alone, limit.amount, steps)
        low = limit.amount
        if quick is not None and fails(quick / (1 + FOUND_WITHIN)):
            low, steps = quick / (1 + FOUND_WITHIN), [quick, *(step for step in steps if step > quick)]
        elif quick is not None:
            steps = [quick / (1 + FOUND_WITHIN)]
        least = _least_where(fails, low, steps)
        if least is None:
            return math.inf, ()
        further = [least, *(least * step for step in (1.02, 1.1, 1.5)), *(step for step in steps if step > least)]
        found = _least_where(
            lacks, max(low, least / (1 + FOUND_WITHIN)), [step for step in further if step <= farthest]
        )
        return (math.inf, ()) if found is None else (found / limit.amount - 1, limit.grown(found))

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
