"""Latency and price between regions, the best permitted path for traffic, and the tree that carries weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from planner.problem.facts import PathFacts
from planner.resolve.ledger import Ledger

if TYPE_CHECKING:
    import networkx as nx

EARTH_RADIUS_M = 6_371_008.8
LIGHT_IN_FIBRE_M_PER_S = 299_792_458.0 / 1.468  # group index of standard single-mode fibre, ITU-T G.652

Money = Callable[[float, str], float]


def great_circle_m(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Haversine distance [m] between two points [degrees].

    >>> round(great_circle_m(0, 0, 0, 90) / 1000)
    10008
    """
    phi1, phi2 = math.radians(lat1), math.radians(lat2)
    half = (
        math.sin((phi2 - phi1) / 2) ** 2
        + math.cos(phi1) * math.cos(phi2) * math.sin(math.radians(lon2 - lon1) / 2) ** 2
    )
    return 2 * EARTH_RADIUS_M * math.asin(math.sqrt(half))


def edges_between(regions: Sequence[str], ledger: Ledger, convert: Money) -> list[tuple[str, str, float, float]]:
    """(a, b, round trip [s], price [currency/byte]) for every pair of regions.

    The published round trip where there is one; else great circle x path factor at the speed of light in fibre,
    booked as an assumption.
    """
    catalog = ledger.catalog
    known = frozenset(catalog.names("wan"))
    result = []
    for i, a in enumerate(regions):
        for b in regions[i + 1 :]:
            name = next((name for name in (f"{a}|{b}", f"{b}|{a}") if name in known), None)
            rtt = ledger.optional("wan", name, "rtt_s") if name else None
            if rtt is None:
                rtt = _fibre_rtt(ledger, a, b)
            price = (
                ledger.figure("wan", name, "price_per_byte")
                if name and catalog.get("wan", name).get("price_per_byte")
                else None
            )
            if price is None:
                price = ledger.figure("defaults", "internet_egress_price", "value")
                reason = "no transport price is published for this pair of regions: internet egress"
                ledger.assume(
                    f"wan/{a}|{b}/price_per_byte",
                    price.printed,
                    price.unit,
                    reason,
                    ("egress", "*", "*"),
                    ("weights", "*", "*"),
                )
            result.append((a, b, rtt, convert(price.value, price.unit[:3])))
    return result


def _fibre_rtt(ledger: Ledger, a: str, b: str) -> float:
    points = [ledger.value("regions", region, field) for region in (a, b) for field in ("latitude", "longitude")]
    factor = ledger.figure("defaults", "fibre_path_factor", "value")
    rtt = 2 * factor.value * great_circle_m(*points) / LIGHT_IN_FIBRE_M_PER_S
    ledger.assume(
        f"wan/{a}|{b}/rtt_s",
        rtt,
        "s",
        f"no measured round trip: great circle x {factor.value:g} at the speed of light in fibre",
    )
    return rtt


def best_paths(
    graph: nx.Graph, origins: Iterable[str], sites: Sequence[str], permitted: Callable[[str], bool]
) -> dict[tuple[str, str], PathFacts]:
    """Shortest path by latency for each (origin, site), through permitted regions only; the sites are permitted."""
    from solvers import wan_graph

    return {
        (origin, site): PathFacts(found.totals["rtt_s"], found.totals["price_per_byte"], found.nodes)
        for origin in origins
        for site, found in wan_graph.best_paths(graph, origin, sites, weight="rtt_s", permitted=permitted).items()
    }
