"""The check of one plan document: reads it through and collects findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from planner.problem.facts import REDUCED, Problem
from planner.spec.document import at
from planner.verify.electricity import ElectricityCheck
from planner.verify.failover import FailoverCheck
from planner.verify.limits import Limits
from planner.verify.lines import LineCheck
from planner.verify.phases import PhaseCheck
from planner.verify.preemption import InterruptionCheck
from planner.verify.prices import PriceCheck
from planner.verify.quality import QualityCheck
from planner.verify.robust import RobustCheck
from planner.verify.spread import SpreadCheck

UNANSWERED = ("infeasible", "unbounded", "limit")


def same_catalog(problem: Problem, document: Mapping[str, Any]) -> bool:
    return problem.catalog_digest == document["catalog_digest"]


def read_through(problem: Problem, document: Mapping[str, Any]) -> Limits:
    """What a plan with an answer holds and comes to, whatever is wrong with it."""
    check = Check(problem, document, same_catalog(problem, document))
    check.run()
    return check


class Check(Limits):
    """The whole check, in the order in which one part needs another."""

    def run(self) -> None:
        if self.document["objective"]["value"] is None:
            self._empty()
            return
        self._points()
        self._fleet()
        self._schedule()
        self._routes()
        self._jobs()
        self._electricity()
        self._lines()
        self._spread()
        self._failures()
        self._quality()
        self.interruptions = InterruptionCheck(self)
        self.interruptions.run()
        self._amounts()
        self._phases()
        self._limits()
        self._objective()
        self._dispatch()

    def prices(self, overlays: Sequence[Path]) -> None:
        """Where the catalog is the plan's own; the figures of another are those that the plan recorded."""
        if self.same_figures:
            PriceCheck(self, overlays).run()

    def robustness(self, overlays: Sequence[Path]) -> None:
        """Where the spec asks how sure the plan is."""
        there = isinstance(self.document.get("robustness"), Mapping)
        answered = self.document["objective"]["value"] is not None
        if (there and self.problem.spec.robust is None) or (
            answered and there != (self.problem.spec.robust is not None)
        ):
            self.say("robustness", "belongs to a plan whose spec has a block robust, and to no other")
        elif there and answered:
            RobustCheck(self, overlays, read_through).run()

    def _electricity(self) -> None:
        """Where the spec makes a site's electricity a decision."""
        self.electricity = None
        if any(site.electricity is not None for site in self.problem.sites):
            self.electricity = ElectricityCheck(self.problem, self.document, self)
            self.electricity.run({key: hour["own_power_w"] for key, hour in self.hours.items()})
        elif "electricity" in self.document:
            self.say("electricity", "the spec leaves no choice of electricity")

    def _dispatch(self) -> None:
        """The run through all hours is a claim of the plan's; that it is there and fits the plan's own cost is checked."""
        found = self.document.get("dispatch")
        if (found is not None) != (self.problem.bound_of == REDUCED and self.problem.spec.horizon.dispatch):
            self.say("dispatch", "belongs to a plan on fewer hours than its series have, unless the spec leaves it out")
        elif found is not None:
            cost = self.document["totals"]["cost"]
            self.equal("dispatch.difference", found["difference"], found["cost"] / cost - 1.0 if cost else 0.0)
            if not (0 <= found["unmet"] <= 1 and 0 <= found["unfinished"] <= 1):
                self.say("dispatch", "shares of what is left undone lie between 0 and 1")

    def _lines(self) -> None:
        """Where the spec leaves a choice of lines."""
        self.lines = None
        if self.problem.lines is not None:
            hosts = {
                name: {point["site"] for point, c in self.points.values() if c.workload == name}
                for name in self.serving
            }
            self.lines = LineCheck(self.problem, self.document, self)
            self.lines.run(hosts)
        elif "lines" in self.document or "placements" in self.document:
            self.say("lines", "the spec leaves no choice of lines")

    def _spread(self) -> None:
        """Where a workload of the spec asks for one."""
        self.spread = None
        if any(w.spec.spread is not None for w in self.serving.values()):
            self.spread = SpreadCheck(self.problem, self.document, self)
            self.spread.run()
        elif "spread" in self.document:
            self.say("spread", "no workload of the spec asks for one")

    def _phases(self) -> None:
        """Where the spec has phases."""
        if self.problem.phases:
            PhaseCheck(self).run()
        elif "phases" in self.document:
            self.say("phases", "the spec has none")

    def _failures(self) -> None:
        """Where a workload must outlast the failure of a zone."""
        if any(w.spec.spread is not None and w.spec.spread.survive for w in self.serving.values()):
            FailoverCheck(self).run()
        elif "failures" in self.document:
            self.say("failures", "no workload of the spec must outlast one")

    def _quality(self) -> None:
        """Where a workload has a quality floor."""
        if self.problem.quality:
            QualityCheck(self.problem, self.document, self).run()
        elif "quality" in self.document:
            self.say("quality", "no workload of the spec has a floor")

    def _empty(self) -> None:
        document = self.document
        if document["status"] not in UNANSWERED:
            self.say("status", f"{document['status']!r}, but there is no plan")
        for key in ("fleet", "fabrics", "workloads", "routes", "schedule", "costs", "gap"):
            if document[key]:
                self.say(key, "must be empty where there is no plan")
        found = document["diagnosis"]
        if (document["status"] == "infeasible") != isinstance(found, Mapping):
            self.say("diagnosis", "belongs to an infeasible plan, and to no other")
        if isinstance(found, Mapping) and found.get("conflict_of") not in ("limits", "amounts"):
            self.say("diagnosis.conflict_of", f'must be "limits" or "amounts", is {found.get("conflict_of")!r}')
        for i, row in enumerate(found["repair"] if isinstance(found, Mapping) else ()):
            stated = at(document["spec"], row["path"])
            if stated is not None and stated != row["from"]:
                self.say(f"diagnosis.repair[{i}].from", f"says {row['from']!r}, the spec says {stated!r}")
