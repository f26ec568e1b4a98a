"""Limits on electricity at a site and on the waiting of requests. Their rows: `solvers.model.electricity`."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from catalog.units import HOUR_S, parse, show
from planner.limits.limit import Limit, of_the_spec
from planner.messages import Message
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
            words = Message.of("limit.connection_words", power=show(most, "W"), site=site.region).text()
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
    words = Message.of(
        "limit.contract_capacity_words", power=show(contract.upper_w, "W"), name=contract.name, site=region
    ).text()
    yield Limit(
        path,
        Message.of("limit.contract_capacity", name=contract.name, site=region).text(),
        words,
        at(document, path),
        loose=((path, MOST),),
        unit="W",
        amount=contract.upper_w,
        most=parse(MOST, "W"),
    )
    if contract.least_w:
        path = f"{contract.path}.least"
        words = Message.of(
            "limit.contract_least_words", power=show(contract.least_w, "W"), name=contract.name, site=region
        ).text()
        fewer = tuple(((path, show(contract.least_w * share, "W")),) for share in LESS)
        yield Limit(
            path,
            Message.of("limit.contract_least", name=contract.name, site=region).text(),
            words,
            at(document, path),
            loose=((path, None),),
            choices=(*fewer, ((path, None),)),
        )


def _battery(document: Mapping[str, Any], storage: StorageFacts, region: str) -> Limit:
    """Describe the stated size of a battery as a limit, relaxed by a free choice of its size."""
    path = f"{storage.path}.sizing"
    words = Message.of("limit.battery_words", energy=show(storage.least_j, "J"), site=region).text()
    choose = ((path, "choose"),)
    return Limit(
        path,
        Message.of("limit.battery", site=region).text(),
        words,
        at(document, path),
        loose=choose,
        choices=(choose,),
    )


def _waiting(document: Mapping[str, Any], workload: ServingFacts) -> Limit:
    """Describe the limit on the delay of requests."""
    path, hours = f"{workload.path}.demand.deferral", int(workload.spec.demand.deferral // HOUR_S)
    words = Message.of(
        "limit.deferral_words", workload=workload.name, time=show(workload.spec.demand.deferral, "s")
    ).text()
    longer = tuple(((path, f"{h} h"),) for h in range(hours + 1, LONGEST_WAIT_H))
    return Limit(
        path,
        Message.of("limit.deferral", workload=workload.name).text(),
        words,
        at(document, path),
        loose=((path, f"{LONGEST_WAIT_H - 1} h"),),
        choices=longer,
    )
