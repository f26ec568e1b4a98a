"""Resolve the wide-area network: latency and price between regions, and the best permitted path for traffic."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from planner.messages import Message
from planner.problem.lines import PathFacts
from planner.resolve.context import ResolveContext
from planner.resolve.ledger import Ledger

if TYPE_CHECKING:
    import networkx as nx

EARTH_RADIUS_M = 6_371_008.8
LIGHT_IN_FIBRE_M_PER_S = 299_792_458.0 / 1.468  # group index of standard single-mode fibre, ITU-T G.652


def great_circle_m(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Compute the haversine distance [m] between two points [degrees].

    >>> round(great_circle_m(0, 0, 0, 90) / 1000)
    10008
    """
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    half = (
        math.sin((phi2 - phi1) / 2) ** 2
        + math.cos(phi1) * math.cos(phi2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(half))


def edges_between(context: ResolveContext, regions: Sequence[str]) -> list[tuple[str, str, float, float]]:
    """List (a, b, round trip [s], price [currency/byte]) for every pair of regions.

    A pair without a published round trip takes great circle x path factor at the speed of light in fibre, booked as an assumption.
    """
    catalog, ledger = context.catalog, context.ledger
    known = frozenset(catalog.names("wan"))
    result = []
    for i, a in enumerate(regions):
        for b in regions[i + 1 :]:
            name = next((name for name in (f"{a}|{b}", f"{b}|{a}") if name in known), None)
            rtt_s = ledger.optional("wan", name, "rtt_s") if name else None
            if rtt_s is None:
                rtt_s = _fibre_rtt_s(ledger, a, b)
            if name and catalog.get("wan", name).get("price_per_byte"):
                price = ledger.figure("wan", name, "price_per_byte")
            else:
                price = ledger.figure("defaults", "internet_egress_price", "value")
                reason = Message.of("resolve.transport_price_unpublished").text()
                scope = ("egress", "*", "*"), ("weights", "*", "*")
                ledger.assume(f"wan/{a}|{b}/price_per_byte", price.printed, price.unit, reason, *scope)
            result.append((a, b, rtt_s, context.price(price)))
    return result


def _fibre_rtt_s(ledger: Ledger, a: str, b: str) -> float:
    """Estimate a round trip from the great circle between two regions, booked as an assumption [s]."""
    points = [ledger.value("regions", region, field) for region in (a, b) for field in ("latitude", "longitude")]
    factor = ledger.value("defaults", "fibre_path_factor", "value")
    rtt_s = 2 * factor * great_circle_m(*points) / LIGHT_IN_FIBRE_M_PER_S
    reason = Message.of("resolve.round_trip_unmeasured", factor=f"{factor:g}").text()
    ledger.assume(f"wan/{a}|{b}/rtt_s", rtt_s, "s", reason)
    return rtt_s


def best_paths(
    graph: nx.Graph, origins: Iterable[str], sites: Sequence[str], permitted: Callable[[str], bool]
) -> dict[tuple[str, str], PathFacts]:
    """Find the path of least latency for each (origin, site), through permitted regions only; the sites are permitted."""
    from solvers import wan_graph  # networkx is slow to import

    return {
        (origin, site): PathFacts(found.totals["rtt_s"], found.totals["price_per_byte"], found.nodes)
        for origin in origins
        for site, found in wan_graph.best_paths(graph, origin, sites, weight="rtt_s", permitted=permitted).items()
    }
