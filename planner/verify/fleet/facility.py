"""Check the halls of a plan: racks and their power by the fleet's own rows, cooling, and what workloads demand of where they run."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from planner.messages import Message
from planner.problem.facts import SiteFacts, SystemFacts
from planner.verify.checked_plan import CheckedPlan

FULL_TOL = 1e-9  # relative, of the power of a rack
COOLING = ("air", "liquid")


class FacilityCheck:
    """The halls of a plan against the spec."""

    def __init__(self, plan: CheckedPlan):
        self.plan = plan
        self.halls = {
            site.region: site
            for site in plan.problem.sites
            if min(site.hall.positions, site.hall.rack_w) < math.inf or set(site.hall.cooling) < set(COOLING)
        }
        self._systems: dict[tuple[str, str], list[float]] = defaultdict(
            lambda: [0.0] * plan.problem.calendar.windows
        )  # by site and system, in each window
        self._count()

    def run(self) -> None:
        """Check cooling, racks and demands, and compare the table `facility`."""
        for region, system in self._systems:
            self._check_system(self.halls[region], self.plan.problem.systems[system])
        self._check_table()
        self._check_demands()

    def limit_values(self) -> Iterator[tuple[str, str, float, float]]:
        """Yield (path, name, value, limit) of rack positions and rack power."""
        for region, site in self.halls.items():
            mine = {name: counts for (of, name), counts in self._systems.items() if of == region}
            systems = self.plan.problem.systems
            if math.isfinite(site.hall.positions):
                racks = [
                    sum(counts[w] * self._share(site, systems[name]) for name, counts in mine.items())
                    for w in range(self.plan.problem.calendar.windows)
                ]
                yield (
                    f"{site.path}.rack_positions",
                    Message.of("limit.rack_positions", site=region).text(),
                    max(racks),
                    site.hall.positions,
                )
            if math.isfinite(site.hall.rack_w):
                fullest = max((self._rack_w(site, systems[name]) for name in mine), default=0.0)
                yield (
                    f"{site.path}.rack_power",
                    Message.of("limit.rack_power", site=region).text(),
                    fullest,
                    site.hall.rack_w,
                )

    def _count(self) -> None:
        """Count the bought systems of each row of the fleet at limited halls."""
        for row, holding in zip(self.plan.document["fleet"], self.plan.holdings, strict=True):
            if row["how"] == "buy" and row["site"] in self.halls:
                for window in holding.windows:
                    self._systems[row["site"], row["system"]][window] += row["count"]

    def _check_system(self, site: SiteFacts, system: SystemFacts) -> None:
        rack = system.rack
        if rack is None:
            self.plan.say("fleet", "verify.racks_unknown", system=system.name)
            return
        if not any(kind in site.hall.cooling for kind in rack.cooling):
            self.plan.say(
                "fleet", "verify.cooling_lacks", system=system.name, cooling=" or ".join(rack.cooling), site=site.region
            )
        self.plan.at_most(
            "fleet", rack.least_rack_w, site.hall.rack_w, Message.of("verify.power_of_rack", system=system.name).text()
        )

    def _check_table(self) -> None:
        """Compare the table `facility` with the fleet; it belongs to a plan whose spec limits a hall."""
        stated = self.plan.document.get("facility")
        if (stated is not None) != bool(self.halls):
            self.plan.say("facility", "verify.needs_limited_hall")
            return
        computed = {key: self._row(*key, counts) for key, counts in self._systems.items()}
        rows = {(row["site"], row["system"]): row for row in stated or ()}
        if rows.keys() != computed.keys() or len(rows) < len(stated or ()):
            self.plan.say("facility", "verify.systems_of_halls")
            return
        for key, row in computed.items():
            self.plan.equal(f"facility {'/'.join(key)}", rows[key], row)

    def _row(self, region: str, name: str, counts: list[float]) -> dict[str, Any]:
        site, system = self.halls[region], self.plan.problem.systems[name]
        needed = system.rack.cooling if system.rack is not None else ()
        return {
            "site": region,
            "system": name,
            "systems": max(counts),
            "racks_per_system": self._share(site, system),
            "racks": max(counts) * self._share(site, system),
            "rack_power_w": self._rack_w(site, system),
            "cooling": [kind for kind in site.hall.cooling if kind in needed],
        }

    def _in_rack(self, site: SiteFacts, system: SystemFacts) -> int:
        """Count the systems that share a rack: as many as there is room for, and then as many as its power feeds."""
        if system.rack is None:
            return 1
        count = system.rack.in_rack
        while count > 1 and count * system.rack.least_rack_w > site.hall.rack_w * (1 + FULL_TOL):
            count -= 1
        return count

    def _share(self, site: SiteFacts, system: SystemFacts) -> float:
        """Racks that one system takes."""
        return 0.0 if system.rack is None else system.rack.racks / self._in_rack(site, system)

    def _rack_w(self, site: SiteFacts, system: SystemFacts) -> float:
        return 0.0 if system.rack is None else self._in_rack(site, system) * system.rack.least_rack_w

    def _check_demands(self) -> None:
        """Test that each pool runs on systems, or buys from an API, of which all that its workload demands is assured."""
        spec, offers = self.plan.problem.spec, {offer.path: offer for offer in self.plan.problem.offers}
        asked = {workload.name: workload for workload in spec.workloads}
        facts = {**self.plan.serving, **self.plan.training}
        for w, row in enumerate(self.plan.document["workloads"]):
            workload = asked[facts[row["name"]].asked]
            for i, point in enumerate(row["points"]):
                for pool in point["pools"]:
                    offer = offers[pool["offer"]]
                    place = (
                        self.plan.sites[pool.get("site", point["site"])].assured
                        if offer.how == "buy"
                        else offer.assured
                    )
                    path = f"workloads[{w}].points[{i}]"
                    if workload.sole_tenant and not place.sole_tenant:
                        self.plan.say(path, "verify.sole_tenant", workload=workload.name)
                    if lacking := [name for name in workload.audit if name not in place.audit]:
                        self.plan.say(path, "verify.demands_classes", workload=workload.name, names=", ".join(lacking))
