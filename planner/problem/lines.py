"""Lines between sites and the routes of traffic over them, in SI and in the spec's currency, as `planner.resolve.routes.lines` resolves them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

CONTROL, TELEMETRY, WEIGHTS = "control", "telemetry", "weights"
STREAMS = (CONTROL, TELEMETRY)
ROLLOUTS = "rollouts"  # weights from update at one site to rollout at another, and responses back
CACHES = "caches"  # KV caches from prefill at one site to decode at another
CACHE_LOAD = 0.7  # most of what other traffic leaves of a line that KV caches take, which go before it


@dataclass(frozen=True, slots=True)
class LineFacts:
    """A line of one type between two regions; capacity in each direction, infinite where it is not bought by capacity."""

    path: str  # place of the entry in the spec
    kind: str
    ends: tuple[str, str]
    security: int  # position in line_blocks.SECURITY
    availability: float
    rtt_s: float
    price_per_byte: float
    unit_bytes_per_s: float
    unit_price_per_s: float
    ready_s: float  # from the start of the horizon
    most: float  # units

    @property
    def name(self) -> str:
        return " - ".join(self.ends)


@dataclass(frozen=True, slots=True)
class Carrier:
    """A route of traffic from the site (or from a workload's source) over lines of one type; `uses`: (line, direction), direction 0
    along the line's `ends`. Without a type it stays within the region."""

    kind: str = ""
    rtt_s: float = 0.0
    price_per_byte: float = 0.0
    ready_s: float = 0.0
    hops: tuple[str, ...] = ()
    uses: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class WeightHop:
    """A line over which weights may be sent from one region to another."""

    source: str
    target: str
    line: int
    side: int


@dataclass(frozen=True, slots=True)
class LineNetwork:
    """`requests`: by (workload, origin, site), in the direction of the answers; `streams`: by (workload, traffic, site), in that of
    the source's messages; `hops`: by workload; `rates`: bytes/s by (workload, traffic), that of weights while an update travels."""

    lines: tuple[LineFacts, ...]
    requests: Mapping[tuple[str, str, str], tuple[Carrier, ...]]
    streams: Mapping[tuple[str, str, str], tuple[Carrier, ...]]
    hops: Mapping[str, tuple[WeightHop, ...]]
    rates: Mapping[tuple[str, str], float]
    exchanges: Mapping[tuple[str, str, str], tuple[Carrier, ...]] = field(default_factory=dict)
    """By (workload, site of prefill, site of decode), in the direction of the KV caches, or (job, site of update, site of rollout), in that of
    the weights; only of workloads that may stand at two sites."""

    def carrier(self, workload: str, origin: str, site: str, kind: str) -> Carrier | None:
        """Return the route of requests over lines of a type; None where there is none."""
        return next((c for c in self.requests.get((workload, origin, site), ()) if c.kind == kind), None)

    def exchange(self, workload: str, prefill: str, decode: str, kind: str) -> Carrier | None:
        """Return the route of KV caches over lines of a type; None where there is none."""
        return next((c for c in self.exchanges.get((workload, prefill, decode), ()) if c.kind == kind), None)

    def unit_rate(self, way: Carrier) -> float:
        """Return the capacity of one unit of the narrowest line of a route [byte/s]."""
        return min(self.lines[line].unit_bytes_per_s for line, _ in way.uses)

    def most_units(self, way: Carrier) -> float:
        """Return the most units that can be rented of every line of a route."""
        return min(self.lines[line].most for line, _ in way.uses)

    def cache_rate(self, way: Carrier) -> float:
        """Compute the least rate at which one cache travels beside others: that of one unit of the narrowest line, by what `CACHE_LOAD` leaves of it [byte/s]."""
        return (1.0 - CACHE_LOAD) * self.unit_rate(way)

    def stream(self, workload: str, traffic: str, site: str, kind: str) -> Carrier | None:
        """Return the route of control or telemetry over lines of a type; None where there is none."""
        return next((c for c in self.streams.get((workload, traffic, site), ()) if c.kind == kind), None)


@dataclass(frozen=True, slots=True)
class PathFacts:
    """Best permitted path between two regions."""

    rtt_s: float
    price_per_byte: float
    hops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TreeFacts:
    """Distribution tree of a workload's weights: edges (parent, child), and the edges above each site."""

    edges: tuple[tuple[str, str], ...]
    edge_cost: tuple[float, ...]  # over the horizon, present value
    edges_above: Mapping[str, tuple[int, ...]]


NO_TREE = TreeFacts((), (), {})  # where the program chooses how weights travel
