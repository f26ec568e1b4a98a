"""Sums over a plan's rows, recomputed in plain Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.problem.facts import NO_TREE, Problem
from planner.verify.electricity import ElectricityCheck
from planner.verify.fleet import FleetOptions, worth_of
from planner.verify.recompute import Evaluated
from planner.verify.terms import InTime


@dataclass(slots=True)
class Sums:
    """Amounts by (component, site, system, how), and by workload."""

    lines: dict[tuple[str, str, str, str], float]
    carbon: dict[tuple[str, str, str, str], float]
    by_workload: dict[str, float]
    energy_j: float


def add_up(
    problem: Problem,
    fleet_options: FleetOptions,
    fleet: Sequence[Mapping[str, Any]],
    active: Mapping[str, Sequence[float]],
    points: Mapping[str, tuple[Mapping[str, Any], Evaluated]],
    traffic: Mapping[str, Mapping[tuple[str, str], float]],
    electricity: ElectricityCheck | None = None,
    times: Sequence[InTime] = (),
) -> Sums:
    """Every cost, every kilogram and every joule of the plan, hour by hour; `traffic`: egress cost by workload, site and line.

    `electricity`: what the meters come to; None where electricity is no decision. `times`: when each row of the fleet is held.
    """
    calendar, money = problem.calendar, problem.economics
    hours = [
        (t, int(calendar.window[t]), int(calendar.hour[t]), float(calendar.seconds[t]), float(calendar.discount[t]))
        for t in range(calendar.slots)
    ]
    lines: dict[tuple[str, str, str, str], float] = defaultdict(float)
    carbon: dict[tuple[str, str, str, str], float] = defaultdict(float)
    use: dict[tuple[str, tuple[str, str, str]], float] = defaultdict(float)
    energy = 0.0

    for row, when in zip(fleet, times, strict=True):
        option, n = (
            fleet_options[row["site"], row["system"], row["how"], row["fabric"], row["fabric_size"], row["offer"]],
            row["count"],
        )
        place = row["site"], row["system"], row["how"]
        if row["how"] == "api":
            continue  # its tokens are paid, which is in `traffic`
        if option.owned:
            lines["systems", *place] += n * when.price * when.share
            lines["fabric", *place] += n * option.fabric_capital * when.share
            lines["facility", *place] += n * option.facility_capital * when.facility_share
        for _, window, hour, seconds, discount in hours:
            if window not in when.windows:
                continue
            joules = n * option.idle_it_w * option.site.pue * seconds
            if option.owned and option.site.electricity is not None:
                joules = 0.0  # settled at the meter, as part of the whole site
            energy += joules
            carbon["operation", *place] += joules * float(option.site.carbon_kg_per_j[hour])
            carbon["embodied", *place] += n * option.system.embodied_kg * seconds / option.offer.life_s(money)
            if option.owned:
                lines["energy", *place] += joules * float(option.site.price_per_j[hour]) * discount
                if option.site.hall_per_w_s:
                    lines["colocation", *place] += (
                        n * option.nameplate_w * option.site.hall_per_w_s * seconds * discount
                    )
            else:
                lines["rent", *place] += n * when.price * seconds * discount

    for name, replicas in active.items():
        row, computed = points[name]
        for pool, systems, (option, extra) in zip(row["pools"], computed.systems, computed.extra):
            place = row["site"], pool["system"], pool["how"]
            for t, _, hour, seconds, discount in hours:
                joules = replicas[t] * extra * option.site.pue * seconds
                if option.owned and option.site.electricity is not None:
                    joules = 0.0
                energy += joules
                carbon["operation", *place] += joules * float(option.site.carbon_kg_per_j[hour])
                if option.owned:
                    lines["energy", *place] += joules * float(option.site.price_per_j[hour]) * discount
                use[computed.workload, place] += replicas[t] * systems * seconds

    names = [w.name for w in (*problem.serving, *problem.training)]
    by_workload = _shares(lines, use, names)
    used_sites = {row["site"] for row in fleet}
    at_site = {site: _shares({k: v for k, v in lines.items() if k[1] == site}, use, names) for site in used_sites}
    for site in problem.sites:
        if site.fixed_cost_per_s and site.region in used_sites:
            amount = site.fixed_cost_per_s * worth_of(problem, site)
            lines["site", site.region, "", ""] += amount
            total = sum(at_site[site.region].values())
            for name in names:
                by_workload[name] += amount * (at_site[site.region][name] / total if total else 1 / len(names))
    for (component, region), amount in (electricity.costs if electricity else {}).items():
        lines[component, region, "", ""] += amount
        shares = at_site.get(region, {})
        total = sum(shares.values())
        for name in names:
            by_workload[name] += amount * (shares[name] / total if total else 1 / len(names))
    for (component, region), amount in (electricity.carbon if electricity else {}).items():
        carbon[component, region, "", ""] += amount
    energy += electricity.drawn_j if electricity else 0.0
    bought = {site.region for site in problem.sites if site.api is not None}
    for name, sites in traffic.items():
        for (site, kind), amount in sites.items():
            if amount:
                lines["api" if site in bought else "egress", site, kind, ""] += amount
                by_workload[name] += amount
    for workload in problem.serving:
        tree = problem.trees.get(workload.name, NO_TREE)
        hosts = {row["site"] for row, computed in points.values() if computed.workload == workload.name}
        for edge in {edge for site in hosts for edge in tree.edges_above.get(site, ())}:
            lines["weights", tree.edges[edge][1], "", ""] += tree.edge_cost[edge]
            by_workload[workload.name] += tree.edge_cost[edge]
    for facts in problem.porting:
        users = {
            computed.workload
            for row, computed in points.values()
            if any(problem.systems[pool["system"]].family == facts.family for pool in row["pools"])
        }
        users &= set(facts.workloads)
        for name in users:
            lines["porting", "", facts.label, ""] = facts.cost
            by_workload[name] += facts.cost / len(users)
    return Sums(dict(lines), dict(carbon), by_workload, energy)


def _shares(
    lines: Mapping[tuple[str, str, str, str], float],
    use: Mapping[tuple[str, tuple[str, str, str]], float],
    names: Sequence[str],
) -> dict[str, float]:
    """Each line split over the workloads by the system-seconds that they keep at work in its place."""
    result = dict.fromkeys(names, 0.0)
    for (_, *place), amount in lines.items():
        busy = {name: use.get((name, tuple(place)), 0.0) for name in names}
        total = sum(busy.values())
        for name in names:
            result[name] += amount * (busy[name] / total if total else 1 / len(names))
    return result
