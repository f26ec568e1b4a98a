"""Limits on the storage bandwidth of sites."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from catalog.units import show
from planner.limits.limit import Limit
from planner.messages import Message
from planner.problem.facts import ResolvedSpec
from planner.problem.limit_labels import storage_bandwidth
from planner.problem.storage import limited
from planner.spec.document import at

AMPLE = "1000000 GB/s"  # as good as no limit


def storage_limits(document: Mapping[str, Any], problem: ResolvedSpec) -> Iterator[Limit]:
    """Yield the limit on reads and writes of jobs at each site that states a bandwidth."""
    for site in limited(problem):
        (path, name), most = storage_bandwidth(site), site.storage_bytes_per_s
        words = Message.of("limit.storage_bandwidth_words", site=site.region, rate=show(most, "byte/s")).text()
        # Checkpoints are written at this rate and as often as pays at it, so the points depend on it: no row of one program.
        yield Limit(
            path,
            name,
            words,
            at(document, path),
            loose=((path, AMPLE),),
            unit="byte/s",
            amount=most,
        )
