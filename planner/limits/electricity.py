"""Limits on electricity at a site and on the waiting of requests. Their rows: `solvers.model.electricity`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from catalog.units import HOUR_S, parse, show
from planner.limits.limit import Limit, of_the_spec
from planner.problem.electricity import ContractFacts, StorageFacts
from planner.problem.facts import ResolvedSpec, ServingFacts
from planner.problem.limit_labels import connection
from planner.spec.document import at

LESS = (0.95, 0.9, 0.8, 0.65, 0.5, 0.25, 0.1)  # shares of what must be contracted, tried in turn
LONGEST_WAIT_H = 24
MOST = "100 GW"  # power of one contract


def electricity_limits(document: Mapping[str, Any], problem: ResolvedSpec, names: Collection[str]) -> Iterator[Limit]:
    """Yield the limits on connections, contracts and batteries of all sites, and on the delay of requests of these workloads."""
    for site in problem.sites:
        if site.electricity is None:
            continue
        if math.isfinite(site.electricity.connection_w):
            (path, name), most = connection(site), site.electricity.connection_w
            words = f"the grid delivers at most {show(most, 'W')} to our own systems in {site.region}"
            yield Limit(path, name, words, at(document, path), is_row=True, unit="W", amount=most)
        for contract in site.electricity.contracts:
            yield from _contract(document, contract, site.region)
        if site.electricity.storage is not None and site.electricity.storage.least_j:
            yield _battery(document, site.electricity.storage, site.region)
    for workload in of_the_spec(problem.serving):
        if workload.name in names and workload.spec.demand.deferral:
            yield _waiting(document, workload)


def _contract(document: Mapping[str, Any], contract: ContractFacts, region: str) -> Iterator[Limit]:
    """Yield the largest and the smallest share of a plant that may be contracted."""
    path = f"{contract.path}.capacity"
    words = f"at most {show(contract.upper_w, 'W')} of {contract.name} can be contracted for {region}"
    yield Limit(
        path,
        f"capacity of {contract.name} in {region}",
        words,
        at(document, path),
        loose=((path, MOST),),
        unit="W",
        amount=contract.upper_w,
        most=parse(MOST, "W"),
    )
    if contract.least_w:
        path = f"{contract.path}.least"
        words = f"at least {show(contract.least_w, 'W')} of {contract.name} must be contracted for {region}"
        fewer = tuple(((path, show(contract.least_w * share, "W")),) for share in LESS)
        yield Limit(
            path,
            f"least of {contract.name} in {region}",
            words,
            at(document, path),
            loose=((path, None),),
            choices=(*fewer, ((path, None),)),
        )


def _battery(document: Mapping[str, Any], storage: StorageFacts, region: str) -> Limit:
    """Describe the stated size of a battery as a limit, relaxed by a free choice of its size."""
    path = f"{storage.path}.sizing"
    words = f"a battery of {show(storage.least_j, 'J')} must stand in {region}"
    choose = ((path, "choose"),)
    return Limit(path, f"battery in {region}", words, at(document, path), loose=choose, choices=(choose,))


def _waiting(document: Mapping[str, Any], workload: ServingFacts) -> Limit:
    """Describe the limit on the delay of requests."""
    path, hours = f"{workload.path}.demand.deferral", int(workload.spec.demand.deferral // HOUR_S)
    words = f"requests of {workload.name} may wait at most {show(workload.spec.demand.deferral, 's')}"
    longer = tuple(((path, f"{h} h"),) for h in range(hours + 1, LONGEST_WAIT_H))
    return Limit(
        path,
        f"waiting of {workload.name}",
        words,
        at(document, path),
        loose=((path, f"{LONGEST_WAIT_H - 1} h"),),
        choices=longer,
    )
