"""Check the spread over zones: the share of each zone by the plan's routes, the largest share, and the number of zones that count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from planner.messages import Message
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.spec.requirements.spread import Spread
from planner.verify.findings import RELATIVE_TOL, Report


class SpreadCheck:
    """Check the section `spread`."""

    def __init__(self, problem: ResolvedSpec, document: Mapping[str, Any], report: Report):
        self.problem, self.document, self.report = problem, document, report
        self.zone_of = {site.region: site.fails_with for site in problem.sites}
        self.largest: dict[str, float] = {}

    def run(self) -> None:
        """Compare the shares by the routes with the rows."""
        served: dict[tuple[str, str], dict[int, float]] = defaultdict(lambda: defaultdict(float))
        total: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        asked = {w.name: w for w in self.problem.serving}
        for row in self.document["routes"]:  # whatever architecture answers
            workload = asked[row["workload"]]
            served[workload.asked, self.zone_of[row["site"]]][row["slot"]] += row["tokens_per_s"]
            total[workload.asked][row["slot"]] += row["tokens_per_s"]
        spreading = {w.asked: w for w in self.problem.serving if w.spec.spread is not None}
        stated = {(row["workload"], row["zone"]): row for row in self.document["spread"]}
        wanted = {(name, zone) for name in spreading for zone in self.zone_of.values()}
        if set(stated) != wanted or len(stated) != len(self.document["spread"]):
            self.report.say("spread", "verify.row_for_each_zone")
            return
        for name, workload in spreading.items():
            if workload.spec.spread is not None:
                self._check_workload(workload, workload.spec.spread, served, total[name], stated)

    def _check_workload(
        self,
        workload: ServingFacts,
        asked: Spread,
        served: Mapping[tuple[str, str], Mapping[int, float]],
        total: Mapping[int, float],
        stated: Mapping[tuple[str, str], Mapping[str, Any]],
    ) -> None:
        shares = {}
        for zone in dict.fromkeys(self.zone_of.values()):
            of_slots = [served[workload.asked, zone].get(t, 0.0) / requests for t, requests in total.items()]
            shares[zone] = min(of_slots, default=0.0), max(of_slots, default=0.0)
            computed = {
                "workload": workload.asked, "zone": zone, "sites": [site for site, name in self.zone_of.items() if name == zone],
                "least_share": shares[zone][0], "largest_share": shares[zone][1],
            }  # fmt: skip
            self.report.equal(f"spread {workload.asked}/{zone}", stated[workload.asked, zone], computed)
        self.largest[workload.asked] = max(high for _, high in shares.values())
        if asked.largest_share is not None:
            self.report.at_most(
                f"spread {workload.asked}",
                self.largest[workload.asked],
                asked.largest_share,
                Message.of("verify.share_in_one_zone").text(),
            )
        counting = sum(low >= asked.least_share * (1 - RELATIVE_TOL) for low, _ in shares.values())
        if total and asked.zones > 1 and counting < asked.zones:
            self.report.say(
                f"spread {workload.asked}",
                "verify.zones_serving",
                count=str(counting),
                share=f"{asked.least_share:g}",
                asked=str(asked.zones),
            )

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield (path, name, value, limit) of every limit on the share of one zone."""
        for name, w in {w.asked: w for w in self.problem.serving}.items():
            if w.spec.spread is not None and w.spec.spread.largest_share is not None:
                yield (
                    f"{w.path}.spread.largest_share",
                    Message.of("limit.largest_share", workload=name).text(),
                    self.largest[name],
                    w.spec.spread.largest_share,
                )
