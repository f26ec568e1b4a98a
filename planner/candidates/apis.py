"""Build operating points of tokens bought from an API."""

from __future__ import annotations

import math

from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import OperatingPoint, Use
from planner.problem.facts import ServingFacts

ROLE = "api"


def api_point(workload: ServingFacts, option: FleetOption, allowance_s: float) -> OperatingPoint | None:
    """Build the point of one request per second from an API.

    None where the API does not serve the workload, or does not state latencies within the limits.
    """
    api = option.site.api
    assert api is not None
    if not api.serves(workload):
        return None
    if any(each.limits() for each in workload.spec.classes or []):
        return None  # what a provider does with priorities is not known
    latency = {}
    for limit in workload.spec.limits():
        promised_s = api.latency.get(limit.key, math.inf)
        if limit.at_origin(promised_s, allowance_s) > limit.seconds:
            return None
        latency[limit.key] = promised_s
    use = Use(
        role=ROLE, option=option, systems=float(workload.spec.lengths.output), extra_it_w=0.0, precision="", layout={}
    )
    return OperatingPoint(workload=workload, uses=(use,), capacity=1.0, latency=latency)
