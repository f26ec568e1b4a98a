"""Books of a plan: the terms of its program times its decisions, by component, place and workload.

`planner.verify` adds up the same amounts again from the plan document, without this code.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from models.arrays import Floats, sum_of
from planner.interpret.decisions import Decisions
from planner.money.components import AT_METER, COMPONENTS
from planner.money.terms import CARBON, COST, ENERGY, AnyTerms, Place

Line = tuple[str, str, str, str]  # component, site, system, how


class Accounts:
    """Accounts of a plan: costs as present values in the spec's currency, carbon [kg], and energy at the meter [J]."""

    def __init__(self, decided: Decisions):
        self.decided = decided
        self.units = decided.units()
        self.cost_lines: dict[Line, float] = defaultdict(float)
        self.carbon_lines: dict[Line, float] = defaultdict(float)
        self.by_name: dict[str, float] = defaultdict(float)  # costs that one workload causes alone
        self.system_seconds: dict[tuple[str, Place], float] = defaultdict(float)
        self.energy_j = 0.0
        self._amounts: dict[tuple[str, str], Floats] = {}
        for term in decided.form.terms:
            if term.decision in self.units and len(term.at):
                self._book(term, term.amounts(self.units[term.decision]))
        self._book_use()

    def amounts(self, functional: str, decision: str) -> Floats:
        """Return the amount of a functional that each unit of a decision causes, by position."""
        return self._amounts.get((functional, decision), np.zeros(len(self.units[decision])))

    def by_component(self) -> dict[str, float]:
        """Add up the costs of each component."""
        result: dict[str, float] = defaultdict(float)
        for (component, *_), amount in self.cost_lines.items():
            result[component] += amount
        return dict(sorted(result.items()))

    def by_workload(self) -> dict[str, float]:
        """Share all costs out: traffic to the workload that causes it, systems by the system-seconds that each keeps at work.

        A site's fixed cost, and its electricity where that is a decision, follow the shares of the systems there.
        """
        problem = self.decided.problem
        names = [w.name for w in (*problem.serving, *problem.training)]
        result = {name: self.by_name[name] for name in names}
        at_site: dict[tuple[str, str], float] = defaultdict(float)
        shared = [(line, amount) for line, amount in self.cost_lines.items() if not COMPONENTS[line[0]].of_workload]
        for (_, *place), amount in shared:
            if not place[1]:
                continue
            used = {name: self.system_seconds[name, (place[0], place[1], place[2])] for name in names}
            total = sum_of(used.values())
            for name in names:
                part = amount * (used[name] / total if total else 1 / len(names))
                result[name] += part
                at_site[place[0], name] += part
        for (_, site, system, _), amount in shared:
            if not system:  # a cost that belongs to the site as a whole
                total = sum_of(at_site[site, name] for name in names)
                for name in names:
                    result[name] += amount * (at_site[site, name] / total if total else 1 / len(names))
        return result

    def _book(self, term: AnyTerms, amounts: Floats) -> None:
        """Add the amounts of terms; a decision that is not made has no line, but those at a meter have one always."""
        decided, key = self.units[term.decision], (term.functional, term.decision)
        self._amounts[key] = self.amounts(*key) + np.bincount(term.at, weights=amounts, minlength=len(decided))
        if term.functional == ENERGY:
            self.energy_j += float(amounts.sum())
            return
        made = (np.abs(decided).reshape(len(decided), -1).sum(axis=1) > 0) | (term.decision in AT_METER)
        book = self.carbon_lines if term.functional == CARBON else self.cost_lines
        borne = term.functional == COST and COMPONENTS[term.component].of_workload
        for i in np.flatnonzero(made[term.at]).tolist():
            book[term.component, *term.places[i]] += float(amounts[i])
            for name, share in self._bearers(term, i) if borne else ():
                self.by_name[name] += float(amounts[i]) * share

    def _bearers(self, term: AnyTerms, i: int) -> list[tuple[str, float]]:
        """List (workload, share) of those that cause the amount of a row."""
        if term.workload:
            return [(term.workload[i], 1.0)]
        return list(self.decided.bearers(term.decision, int(term.at[i])).items())

    def _book_use(self) -> None:
        """Add up the system-seconds that each workload keeps at work in each place."""
        seconds = self.decided.problem.calendar.seconds
        for p in self.decided.used:
            point, active = self.decided.form.points[p], self.decided.active[p]
            for use in point.uses if active.any() else ():  # what stands by for a failure draws nothing
                place = (use.option.site.region, use.option.system.name, use.option.offer.how)
                self.system_seconds[point.workload.name, place] += use.systems * float(active @ seconds)
