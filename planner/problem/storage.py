"""Storage bandwidth of a site in the problem."""

from __future__ import annotations

import math

from planner.problem.facts import ResolvedSpec, SiteFacts


def limited(problem: ResolvedSpec) -> list[SiteFacts]:
    return [site for site in problem.sites if math.isfinite(site.storage_bytes_per_s)]
