"""Blocks of a spec about latencies by percentile: limits that must hold, and what an API promises."""

from __future__ import annotations

from planner.spec.base import Block
from planner.spec.quantities import Seconds


class Percentiles(Block):
    """Limits on a latency by percentile; all that are given must hold."""

    mean: Seconds | None = None
    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None

    def limits(self) -> list[tuple[str, float]]:
        return [(name, value) for name in type(self).model_fields if (value := getattr(self, name)) is not None]


class Slo(Block):
    """Time to first token, time per output token and end to end, as the user at the origin sees them."""

    ttft: Percentiles | None = None
    """Time to first token."""
    tpot: Percentiles | None = None
    """Time per output token after the first."""
    e2e: Percentiles | None = None
    """From the request to the last token."""

    def limits(self) -> list[tuple[str, str, float]]:
        """(metric, percentile, limit in seconds) for every limit given."""
        return [
            (metric, percentile, limit)
            for metric in type(self).model_fields
            if (block := getattr(self, metric)) is not None
            for percentile, limit in block.limits()
        ]
