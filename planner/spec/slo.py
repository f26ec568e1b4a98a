"""Blocks of a spec about latencies by percentile: limits that must hold, and what an API promises.

The user states them as seen at the origin. The round trip between origin and site counts in all of them but the time per output
token: a stream of tokens arrives later by the round trip, with the gaps between tokens unchanged. A task has one for each of its calls. This rule stands here only.
"""

from __future__ import annotations

from typing import NamedTuple

from planner.spec.base import Block
from planner.spec.quantities import Seconds

TTFT, TPOT, E2E = METRICS = ("ttft", "tpot", "e2e")
TASK = "task"  # metric of several calls


def latency_key(metric: str, percentile: str) -> str:
    """Name a latency as plans and tables do.

    >>> latency_key("ttft", "p95")
    'ttft.p95'
    """
    return f"{metric}.{percentile}"


class LatencyLimit(NamedTuple):
    """One limit of an SLO: what `percentile` of the `metric` may reach, in `seconds`.

    >>> limit = LatencyLimit("ttft", "p95", 0.5)
    >>> limit.key, limit.at_site(0.1).seconds, LatencyLimit("tpot", "p95", 0.05).at_site(0.1).seconds
    ('ttft.p95', 0.4, 0.05)
    """

    metric: str
    percentile: str
    seconds: float
    calls: float = 1.0  # whose round trips count, of a task

    @property
    def key(self) -> str:
        """Such as "ttft.p95"."""
        return latency_key(self.metric, self.percentile)

    @property
    def round_trips(self) -> float:
        """Count the round trips between the user and the site that are part of the latency."""
        return {TPOT: 0.0, TASK: self.calls}.get(self.metric, 1.0)

    def at_site(self, rtt_s: float, stretch: float = 1.0) -> LatencyLimit:
        """Return the limit that the prediction at the site must keep, after the round trip and a prediction error of `stretch`."""
        left = self.seconds - self.round_trips * rtt_s
        return self._replace(seconds=left / stretch)

    def at_origin(self, seconds: float, rtt_s: float) -> float:
        """Convert a latency at the site into the one that the user at the origin sees [s]."""
        return seconds + self.round_trips * rtt_s


class Percentiles(Block):
    """Limits on a latency by percentile; all stated ones must hold."""

    mean: Seconds | None = None
    p50: Seconds | None = None
    p90: Seconds | None = None
    p95: Seconds | None = None
    p99: Seconds | None = None

    def limits(self) -> list[tuple[str, float]]:
        """List (percentile, seconds) of every limit given."""
        return [(name, value) for name in type(self).model_fields if (value := getattr(self, name)) is not None]


class Slo(Block):
    """Time to first token, time per output token and end to end, as the user at the origin sees them."""

    ttft: Percentiles | None = None
    """Time to first token."""
    tpot: Percentiles | None = None
    """Time per output token after the first."""
    e2e: Percentiles | None = None
    """From the request to the last token."""
    task: Percentiles | None = None
    """From the first call of a task to the last token of its last call, tools included; needs `session`."""

    def limits(self, calls: float = 1.0) -> list[LatencyLimit]:
        """List every limit given, as the user at the origin sees it; `calls`: of a task."""
        return [
            LatencyLimit(metric, percentile, seconds, calls if metric == TASK else 1.0)
            for metric in (*METRICS, TASK)
            if (block := getattr(self, metric)) is not None
            for percentile, seconds in block.limits()
        ]
