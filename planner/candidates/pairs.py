"""Pairs of fleet options on which the two pools of one deployment may stand: systems with a network between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Exchange, Use, WeightExchange
from planner.evaluate.disaggregated import CacheLine, moved_bytes
from planner.messages import Message
from planner.problem.fabrics import may_exchange, may_share_a_network
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.reinforcement import ReinforcementFacts
from planner.spec.workloads import Serving

Joined = tuple[FleetOption, FleetOption, Exchange | None]
"""Fleet options of prefill and decode, and the way between two sites where they stand at two."""
SplitOptions = tuple[FleetOption, FleetOption, WeightExchange | None]
"""Fleet options of update and rollout, likewise."""
UNITS_TRIED = (1, 2, 4, 8)  # units that a job may reserve on a line


def connected_pairs(fleet_options: Sequence[FleetOption]) -> Iterator[tuple[FleetOption, FleetOption]]:
    """List the pairs of fleet options (prefill and decode, or update and rollout) that share a network, which no two sites do.

    Owned ones on the same fabric design are paired with each other, a rented one only with itself.
    """
    for first in fleet_options:
        for second in fleet_options:
            if may_share_a_network(first, second) and min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) > 0:
                yield first, second


def exchanging_pairs(
    workload: Serving, fleet_options: Sequence[FleetOption]
) -> tuple[list[tuple[FleetOption, FleetOption]], int]:
    """List the connected pairs whose engines exchange KV caches, and count the pairs of two vendors that the workload does not allow."""
    pairs = list(connected_pairs(fleet_options))
    able = [pair for pair in pairs if may_exchange(workload, *(option.system for option in pair))]
    return able, len(pairs) - len(able)


def joined_pairs(
    problem: ResolvedSpec,
    workload: ServingFacts,
    site: str,
    options_at: Mapping[str, Sequence[FleetOption]],
    dropped: Counter[str],
) -> list[Joined]:
    """List the pairs of fleet options for prefill and decode of which decode stands at a site; count those whose pools nothing joins."""
    if site not in options_at or workload.spec.disaggregation == "never":
        return []
    pairs, barred = exchanging_pairs(workload.spec, options_at[site])
    across, apart = pairs_across(problem, workload, site, options_at)
    for code, count in (("path.vendors_apart", barred), ("path.no_line_for_caches", apart)):
        if count:
            dropped[Message.of(code).text()] += count
    return [*((first, second, None) for first, second in pairs), *across]


def carried(exchange: Exchange, workload: ServingFacts, prefill: Use, problem: ResolvedSpec) -> Exchange:
    """State what a way carries for each request: its KV cache, and its prompt the other way [byte]."""
    cache = moved_bytes(workload, prefill.option.system, prefill.choice)
    return replace(exchange, cache_bytes=cache, prompt_bytes=problem.prompt_bytes(workload))


def pairs_across(
    problem: ResolvedSpec, workload: ServingFacts, site: str, options_at: Mapping[str, Sequence[FleetOption]]
) -> tuple[list[Joined], int]:
    """List the pairs with decode at a site and prefill at another from which a line carries caches, and count the sites without such a line."""
    if problem.lines is None or not workload.spec.across_sites:
        return [], 0
    found: list[Joined] = []
    apart = 0
    for other, firsts in options_at.items():
        ways = problem.lines.exchanges.get((workload.name, other, site), ())
        apart += other != site and not ways
        for way in ways:
            exchange = Exchange(way, CacheLine(problem.lines.cache_rate(way), way.rtt_s))
            found += [
                (first, second, exchange)
                for first in firsts
                for second in options_at[site]
                if min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) > 0
                and may_exchange(workload.spec, first.system, second.system)
            ]
    return found, apart


def splits_across(
    problem: ResolvedSpec, job: ReinforcementFacts, fleet_options: Sequence[FleetOption], dropped: Counter[str]
) -> list[SplitOptions]:
    """List the pairs with update at one site and rollout at another, for each line that joins both and each number of units reserved of it.

    Numbers of units: `UNITS_TRIED`, as far as the line offers them. Pairs of sites that no line joins are counted.
    """
    if problem.lines is None or not job.spec.across_sites:
        return []
    found: list[SplitOptions] = []
    apart = set()
    for first in fleet_options:
        for second in fleet_options:
            sites = first.site.region, second.site.region
            if sites[0] == sites[1] or min(first.scaleout_bytes_per_s, second.scaleout_bytes_per_s) <= 0:
                continue
            ways = problem.lines.exchanges.get((job.name, *sites), ())
            if not ways:
                apart.add(sites)
            found += [
                (first, second, WeightExchange(way, units * problem.lines.unit_rate(way)))
                for way in ways
                for units in UNITS_TRIED
                if units <= problem.lines.most_units(way)
            ]
    if apart:
        dropped[Message.of("path.no_line_for_weights").text()] += len(apart)
    return found
