"""Search for minimal conflicts of limits, and for the smallest repair of some workloads of a spec."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.candidates.cache import OutOfTime
from planner.limits.limit import Limit
from planner.limits.limits import every_limit
from planner.limits.offers import further_offers, nothing_fits, nothing_runs
from planner.limits.workloads import precision_limits
from planner.problem.facts import ResolvedSpec
from planner.solving.least_change import CHOICE_CHANGE, least_change
from planner.solving.limit_tests import LimitTests
from planner.solving.trials import Trials, merged
from planner.spec.document import Edits, edited
from solvers.analysis.conflicts import minimal_conflict, minimum_hitting_sets

COLUMNS_PER_SECOND = (
    300  # columns for each second of the time limit: the conflict of a larger program is sought among its amounts alone
)
CONFLICTS = 8  # so many conflicts at most are found before the smallest repair is chosen

FindConflict = Callable[[Sequence[Limit]], list[Limit]]


@dataclass(frozen=True, slots=True)
class Repair:
    """Edits that give a plan."""

    limits: float = math.inf  # how many limits they change
    change: float = math.inf  # sum of their relative changes
    edits: Edits = ()


class RepairSearch:
    """Conflicts and the smallest repair of the workloads `names`, with `edits` already made to the spec."""

    def __init__(self, trials: Trials, names: frozenset[str], edits: Edits, known: Sequence[Sequence[Limit]]):
        """`known`: conflicts found before."""
        self.trials, self.names, self.edits = trials, names, edits
        document, problem = edited(trials.document, edits), trials.problem(edits)
        self.limits = every_limit(document, problem, trials.catalog, names)
        self.tests = LimitTests(trials, names, edits, [limit for limit in self.limits if limit.is_row])
        self.amounts_only = False  # the conflict is one of amounts beside all else as stated
        if not self.tests.rows_suffice and self.tests.relaxation_fails(self.limits):
            self.limits = [limit.beyond_horizon() for limit in self.limits]
            if self.tests.relaxation_fails(self.limits):
                self.limits += self._last_resort(document, problem)
        self.hopeless = not self.tests.rows_suffice and self.tests.relaxation_fails(self.limits)
        mine = {limit.path: limit for limit in self.limits}
        self.conflicts = [
            [mine[limit.path] for limit in some] for some in known if all(limit.path in mine for limit in some)
        ]
        if self.hopeless:
            self.conflicts = [[nothing_runs(problem, names, self._able(()))]]

    def smallest_repair(self) -> Edits:
        """Find the smallest repair, and `conflicts` on the way. Amounts come first: they leave the points as they are."""
        if self.hopeless:
            return ()
        while True:
            best = Repair()
            row_conflicts: list[list[Limit]] = []
            if self.tests.rows_suffice:
                best = self._smallest(self._sets_to_loosen(self._row_conflict, row_conflicts), best)
            if best.limits == 1 and self._takes_too_long():
                self.conflicts, self.amounts_only = [*self.conflicts, *row_conflicts], True
                others = [
                    limit
                    for limit in self.limits
                    if not limit.is_row
                    and (limit.is_number or best.change > CHOICE_CHANGE)
                    and limit.network_of is None  # other networks ask for most points anew
                ]
                return self._smallest([(limit,) for limit in self._near_enough(others, best.change)], best).edits
            sets = self._sets_to_loosen(self._conflict, self.conflicts)
            best = self._smallest([some for some in sets if not all(limit.is_row for limit in some)], best)
            if best.edits or not self.tests.by_relaxation or self.trials.seconds_left <= 0:
                return best.edits
            self.tests.by_relaxation = False  # what is enough for fractions of systems is not enough for integers

    def _near_enough(self, limits: Sequence[Limit], most: float) -> list[Limit]:
        """Drop latencies and deadlines if all of them together, each grown by the share `most`, are proven to give no plan: none alone does.

        One search of operating points in place of one for each of them.
        """
        grown = {
            limit: edits
            for limit in limits
            if limit.is_number and len(edits := limit.grown(min(limit.amount * (1 + most), limit.most))) == 1
        }
        together = tuple(edit for edits in grown.values() for edit in edits)
        if len(grown) < 2 or not math.isfinite(most) or not self.tests.relaxation_fails((), together):
            return list(limits)
        return [limit for limit in limits if limit not in grown]

    def _takes_too_long(self) -> bool:
        """Tell whether a search for conflicts with other limits would run out of time: without those limits there are many more points."""
        relaxed, _ = self.tests.on_all_points(())
        return relaxed is not None and relaxed.columns > COLUMNS_PER_SECOND * self.trials.asked_s

    def _sets_to_loosen(self, find: FindConflict, conflicts: list[list[Limit]]) -> list[tuple[Limit, ...]]:
        """Find the smallest sets of limits that give a plan when they are taken away; new conflicts are appended."""
        if not conflicts:
            conflicts.append(find(self.limits))
        for _ in range(CONFLICTS):
            sets = minimum_hitting_sets(conflicts)
            enough = [some for some in sets if not self.tests.is_infeasible(some)]
            if enough or self.trials.seconds_left <= 0:
                return enough
            conflicts.append(find([limit for limit in self.limits if limit not in sets[0]]))
        return []

    def _smallest(self, sets: Sequence[tuple[Limit, ...]], best: Repair) -> Repair:
        """Return the repair of fewest limits, and then of least change, among these sets and the best so far.

        Best first by a lower bound: one from earlier solutions, made exact when it is the set's turn.
        """
        waiting = [(self.tests.relief_bound(some, exact=False), False, i) for i, some in enumerate(sets)]
        heapq.heapify(waiting)
        while waiting:
            bound, exact, i = heapq.heappop(waiting)
            some = sets[i]
            most = best.change if len(some) == best.limits else math.inf
            if len(some) > best.limits or bound >= most:
                continue
            if not exact:
                heapq.heappush(waiting, (self.tests.relief_bound(some, exact=True), True, i))
                continue
            try:
                change, edits = least_change(self.tests, some, most)
            except OutOfTime:
                if best.edits:  # it gives a plan, though another change might be smaller
                    return best
                raise
            if math.isfinite(change):
                best = Repair(len(some), change, edits)
        return best

    def _conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """Find a minimal set among `limits` that cannot be met, all others taken away; amounts alone when time is up.

        Amounts that are needed beside all other `limits` stay irreducible beside fewer; what else is needed comes after.
        """
        others = [limit for limit in limits if not limit.is_row]
        rows = [] if not self.tests.rows_suffice and self._fails_with_only(others) else self._row_conflict(limits)
        if rows and self.trials.seconds_left > 0 and (not others or self._fails_with_only(rows)):
            return rows
        found = minimal_conflict(others, lambda some: self._fails_with_only([*rows, *some]))
        if self.trials.seconds_left <= 0:  # what was found is not known to be minimal
            if not rows:
                raise OutOfTime
            self.amounts_only = bool(others)
            return rows
        return [*rows, *found]

    def _row_conflict(self, limits: Sequence[Limit]) -> list[Limit]:
        """Find a minimal set of amounts among `limits` that cannot be met beside all its limits that are no amounts."""
        others = [limit for limit in limits if not limit.is_row]
        rows = self.tests.needed_rows([limit for limit in limits if limit.is_row])
        found = minimal_conflict(rows, lambda some: self._fails_with_only([*some, *others]))
        if self.trials.seconds_left <= 0:
            raise OutOfTime
        return found

    def _fails_with_only(self, kept: Sequence[Limit]) -> bool:
        """Tell whether there is no plan even without all other limits."""
        return self.tests.is_infeasible([limit for limit in self.limits if limit not in kept])

    # -- when taking away every limit does not help ----------------------------------------------------------------

    def _last_resort(self, document: Mapping[str, Any], problem: ResolvedSpec) -> list[Limit]:
        """Find the first further change that helps without any limits: a precision, or one more offer."""
        resorts = precision_limits(problem, self.names)
        for resort in resorts:
            if not self.tests.relaxation_fails([*self.limits, resort]):
                return [resort]
        loose = tuple(edit for limit in self.limits for edit in limit.loose)
        widest = merged(loose, tuple(edit for resort in resorts for edit in resort.loose))
        attempts: tuple[tuple[Edits, list[Limit]], ...] = (((), []), (loose, []), (widest, resorts))
        for given, further in attempts:
            offer = self._offer_that_fits(document, problem, given)
            if offer is not None:
                return [nothing_fits(document, problem, self.names, offer, self._able(given)), *further]
        return []

    def _able(self, given: Edits) -> set[str]:
        """Find the systems that every workload can run on, in whatever number."""
        return {system for system, _ in self.trials.ways_with_points(self.names, merged(self.edits, given))}

    def _offer_that_fits(self, document: Mapping[str, Any], problem: ResolvedSpec, given: Edits) -> Edits | None:
        """Find the cheapest system of the catalog, as one more offer, that every workload can run on."""
        edits, made = merged(self.edits, given), document.get("offers")
        ways = further_offers(problem, self.trials.catalog) if made is not None else []
        if made is None or not ways:
            return None
        able = self.trials.ways_with_points(self.names, merged(edits, (("offers", [*made, *ways]),)))
        offers: list[Edits] = [(("offers", [*made, way]),) for way in ways if (way["system"], way["how"]) in able]
        return next((offer for offer in offers if self.trials.ways_with_points(self.names, merged(edits, offer))), None)
