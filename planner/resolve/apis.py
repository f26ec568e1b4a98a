"""Resolve the APIs: each becomes a site of its own, without power and without systems of ours.

A unit of it is an output token per second, which costs nothing to hold: only tokens are paid. The block: `planner.spec.apis.Api`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.messages import Message
from planner.problem.facility import Effectiveness
from planner.problem.facts import (
    ApiFacts,
    OfferFacts,
    ServingFacts,
    SiteFacts,
    SystemFacts,
    permitted,
)
from planner.problem.lines import PathFacts
from planner.problem.phases import API, seconds_from
from planner.resolve.context import ResolveContext
from planner.resolve.facility import assured
from planner.spec.apis import Api
from planner.spec.slo import METRICS, Slo, latency_key
from planner.spec.workloads import Serving

PERCENTILES = ("p50", "p90", "p95", "p99")


@dataclass(frozen=True, slots=True)
class ApiPlace:
    """An API as the program sees it: a site that holds one kind of system from one offer."""

    site: SiteFacts
    offer: OfferFacts
    system: SystemFacts


def resolve_apis(context: ResolveContext) -> list[ApiPlace]:
    """Resolve the APIs of the spec; one in an unknown region is left out, with a problem added."""
    spec, found = context.spec, []
    stated = spec.apis or []
    taken = {*context.catalog.names("regions"), *context.catalog.names("systems")}
    for i, api in enumerate(stated):
        path = f"apis[{i}]"
        _book_prices(context, api, path)
        region = context.find("regions", api.region, f"{path}.region")
        if api.name in taken:
            context.add_problem(f"{path}.name", Message.of("resolve.api_name_taken", name=api.name).text())
        taken.add(api.name)
        workloads = _users(context, api, path)
        if api.supply is None and spec.objective.maximise is not None:
            context.add_problem(
                f"{path}.supply",
                Message.of("resolve.api_supply_missing").text(),
            )
        architecture = (
            None
            if api.architecture is None
            else context.find("architectures", api.architecture, f"{path}.architecture")
        )
        if region is None:
            continue
        facts = ApiFacts(
            region=region.name,
            input_price=context.convert(api.input, path=f"{path}.input"),
            output_price=context.convert(api.output, path=f"{path}.output"),
            price_change=api.price_change_per_year,
            latency=promised(api.latency),
            architecture="" if architecture is None else architecture.name,
            workloads=workloads,
        )
        zones = tuple(filter(None, (region.name, region.words("residency"), region.words("country"))))
        found.append(_place(context, api, path, facts, zones))
    return found


def _book_prices(context: ResolveContext, api: Api, path: str) -> None:
    """Book the prices that the spec states as assumptions, and that the emissions of the tokens are not counted."""
    scope = ("api", api.name, "*")
    for kind, (amount, currency) in (("input", api.input), ("output", api.output)):
        if kind in api.model_fields_set:
            context.assume_price(f"{path}.{kind}", "api", amount, f"{currency}/token", scope, note=api.note)
    reason = Message.of("resolve.api_carbon_unstated").text()
    context.ledger.assume(f"{path}.carbon", 0.0, "kg/token", reason)


def _users(context: ResolveContext, api: Api, path: str) -> tuple[str, ...]:
    """Return the serving workloads that may use an API: those that it names, or all of them."""
    serving = [workload.name for workload in context.spec.workloads if isinstance(workload, Serving)]
    for i, name in enumerate(api.workloads or ()):
        if name not in serving:
            known = ", ".join(serving)
            context.add_problem(
                f"{path}.workloads[{i}]", Message.of("resolve.not_serving_workload", name=name, known=known).text()
            )
    return tuple(serving if api.workloads is None else api.workloads)


def _place(context: ResolveContext, api: Api, path: str, facts: ApiFacts, zones: tuple[str, ...]) -> ApiPlace:
    """Build the site, offer and system that stand for an API; they draw no power and cost nothing to hold."""
    hours = context.clock.hours
    site = SiteFacts(
        path=path, region=api.name, power_limit_w=np.inf, price_per_j=np.zeros(hours), carbon_kg_per_j=np.zeros(hours), pue=Effectiveness(1.0, 1.0),
        facility_cost_per_w=0.0, fixed_cost_per_s=0.0, crew_per_s=0.0, systems=(api.name,), topologies=(), fabric=None, export_zone="none",
        zones=zones, fails_with=api.name, from_s=seconds_from(context.spec.horizon.start, api.available_from), api=facts,
    )  # fmt: skip
    system = SystemFacts(
        name=api.name, chip="", family="", chips=0, flop_per_s={}, flop16_per_s=0.0, hbm_bytes=0.0, hbm_bytes_per_s=0.0, scaleup_bytes_per_s=0.0,
        scaleup_chips=0, nic_bytes_per_s=0.0, power_w=0.0, idle_w=0.0, embodied_kg=0.0, export_cn="allowed",
    )  # fmt: skip
    supply = np.inf if api.supply is None else float(api.supply)
    return ApiPlace(site, OfferFacts(path, api.name, API, {api.name: 0.0}, supply, assured=assured(api)), system)


def promised(latency: Slo) -> Mapping[str, float]:
    """Map each latency key ("ttft.p95") to the seconds that an API keeps: as stated, or as stated for a higher percentile."""
    result = {limit.key: limit.seconds for limit in latency.limits()}
    for metric in METRICS:
        least = None
        for percentile in reversed(PERCENTILES):
            key = latency_key(metric, percentile)
            least = result.get(key, least)
            if least is not None:
                result[key] = least
    return result


def api_paths(
    workload: ServingFacts, found: Mapping[tuple[str, str], PathFacts], sites: Sequence[SiteFacts]
) -> dict[tuple[str, str, str], PathFacts]:
    """Derive the paths to the APIs that a workload may use from the paths to their regions; the token price covers traffic."""
    return {
        (workload.name, origin, site.region): replace(path, price_per_byte=0.0)
        for (origin, region), path in found.items()
        for site in sites
        if site.api is not None and site.api.region == region and permitted(workload, site)
    }
