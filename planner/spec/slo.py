"""Blocks of a spec about latencies by percentile: limits that must hold, and what an API promises.

The user states them as seen at the origin. The round trip between origin and site counts in all of them but the time per output
token: a stream of tokens arrives later by the round trip, with the gaps between tokens unchanged. This rule stands here only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from planner.spec.base import Block
from planner.spec.quantities import Seconds

TTFT, TPOT, E2E = METRICS = ("ttft", "tpot", "e2e")


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

    @property
    def key(self) -> str:
        """Such as "ttft.p95"."""
        return latency_key(self.metric, self.percentile)

    @property
    def counts_round_trip(self) -> bool:
        """Whether the round trip between the user and the site is part of the latency."""
        return self.metric != TPOT

    def at_site(self, rtt_s: float, stretch: float = 1.0) -> LatencyLimit:
        """Return the limit that the prediction at the site must keep, after the round trip and a prediction error of `stretch`."""
        left = self.seconds - (rtt_s if self.counts_round_trip else 0.0)
        return self._replace(seconds=left / stretch)

    def at_origin(self, seconds: float, rtt_s: float) -> float:
        """Convert a latency at the site into the one that the user at the origin sees [s]."""
        return seconds + (rtt_s if self.counts_round_trip else 0.0)


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

    def limits(self) -> list[LatencyLimit]:
        """List every limit given, as the user at the origin sees it."""
        return [
            LatencyLimit(metric, percentile, seconds)
            for metric in METRICS
            if (block := getattr(self, metric)) is not None
            for percentile, seconds in block.limits()
        ]

    def at_site(self, rtt_s: float, stretch: Mapping[str, float] = {}) -> list[LatencyLimit]:
        """List the limits that predictions at a site `rtt_s` away must keep; `stretch`: by metric, how far latencies may exceed the prediction."""
        return [limit.at_site(rtt_s, stretch.get(limit.metric, 1.0)) for limit in self.limits()]
