"""Tokens bought by the million: each API stands beside the sites as a place of its own, without power and without systems of ours.

A unit of it is an output token per second, which costs nothing to hold: what is paid is the tokens. The block: `planner.spec.apis.Api`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from catalog.records import Record
from planner.problem.facts import (
    ApiFacts,
    OfferFacts,
    PathFacts,
    ServingFacts,
    SiteFacts,
    SystemFacts,
    permitted,
)
from planner.problem.phases import API, seconds_from
from planner.spec.model import PlanSpec
from planner.spec.slo import METRICS, Slo, latency_key

PERCENTILES = ("p50", "p90", "p95", "p99")

Find = Callable[[str, str, str], Record | None]
Money = Callable[..., float]
Wrong = Callable[[str, str], None]


def api_places(
    spec: PlanSpec, hours: int, taken: Sequence[str], find: Find, convert: Money, wrong: Wrong
) -> list[tuple[SiteFacts, OfferFacts, SystemFacts]]:
    """The APIs of a spec as places; `taken`: names that they must not have, `hours` of the calendar's period."""
    found = []
    for i, api in enumerate(spec.apis or ()):
        path, region = f"apis[{i}]", find("regions", api.region, f"apis[{i}].region")
        if api.name in taken or api.name in [other.name for other in spec.apis[:i]]:
            wrong(f"{path}.name", f'"{api.name}" is the name of another API, a region or a system; choose another')
        serving = [w.name for w in spec.workloads if w.kind == "serving"]
        for j, name in enumerate(api.workloads or ()):
            if name not in serving:
                wrong(
                    f"{path}.workloads[{j}]",
                    f'"{name}" is no serving workload of the spec; known here: {", ".join(serving)}',
                )
        if api.supply is None and spec.objective.maximise is not None:
            wrong(
                f"{path}.supply",
                "is missing; where throughput is sought, state how many output tokens per second it gives",
            )
        runs = None if api.architecture is None else find("architectures", api.architecture, f"{path}.architecture")
        architecture = "" if runs is None else runs.name
        if region is None:
            continue
        facts = ApiFacts(
            region=region.name, input_price=convert(*api.input, path=f"{path}.input"), output_price=convert(*api.output, path=f"{path}.output"),
            price_change=api.price_change_per_year, latency=promised(api.latency), architecture=architecture, workloads=tuple(serving if api.workloads is None else api.workloads),
        )  # fmt: skip
        site = SiteFacts(
            path=path, region=api.name, power_limit_w=np.inf, price_per_j=np.zeros(hours), carbon_kg_per_j=np.zeros(hours), pue=1.0, facility_cost_per_w=0.0,
            fixed_cost_per_s=0.0, systems=(api.name,), fabrics=(), network=None, export_zone="none",
            zones=tuple(filter(None, (region.name, region.text.get("residency"), region.text.get("country")))), fails_with=api.name,
            from_s=seconds_from(spec.horizon.start, api.available_from), api=facts,
        )  # fmt: skip
        system = SystemFacts(
            name=api.name, chip="", family="", chips=0, flop_per_s={}, hbm_bytes=0.0, hbm_bytes_per_s=0.0, scaleup_bytes_per_s=0.0, scaleup_chips=0,
            nic_bytes_per_s=0.0, nic_ports=0, power_w=0.0, idle_w=0.0, embodied_kg=0.0, export_cn="allowed",
        )  # fmt: skip
        found.append(
            (
                site,
                OfferFacts(path, api.name, API, {api.name: 0.0}, np.inf if api.supply is None else float(api.supply)),
                system,
            )
        )
    if found and spec.lines is not None:
        wrong("apis", 'cannot stand beside "lines" yet; remove one of them')
    if found and spec.robust is not None:
        wrong("apis", 'cannot stand beside "robust" yet; remove one of them')
    return found


def promised(latency: Slo) -> Mapping[str, float]:
    """ "ttft.p95" -> seconds: what is stated, and for lower percentiles what holds for a higher one."""
    stated = {limit.key: limit.seconds for limit in latency.limits()}
    result = dict(stated)
    for metric in METRICS:
        least = None
        for percentile in reversed(PERCENTILES):
            least = stated.get(latency_key(metric, percentile), least)
            if least is not None:
                result[latency_key(metric, percentile)] = least
    return result


def api_paths(
    workload: ServingFacts, found: Mapping[tuple[str, str], PathFacts], sites: Sequence[SiteFacts]
) -> dict[tuple[str, str, str], PathFacts]:
    """Ways to the APIs that a workload may use, out of those to their regions; traffic is in the price of the tokens."""
    return {
        (workload.name, origin, site.region): replace(path, price_per_byte=0.0)
        for (origin, region), path in found.items()
        for site in sites
        if site.api is not None and site.api.region == region and permitted(workload, site)
    }
