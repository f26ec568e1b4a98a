"""The wide-area network as a graph: shortest permitted paths, and the tree that distributes weights to many sites.

Nodes are names, edges are undirected with a round trip and a price. What a name stands for is up to the caller.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

ATTRIBUTES = ("rtt_s", "price_per_byte")


@dataclass(frozen=True, slots=True)
class Path:
    """A path by its nodes, and the sum of each attribute over its edges."""

    nodes: tuple[str, ...]
    totals: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree by its edges (parent, child), and for each target the positions of the edges on its path from the source."""

    edges: tuple[tuple[str, str], ...]
    edges_above: Mapping[str, tuple[int, ...]]


def wan_graph(edges: Iterable[tuple[str, str, float, float]]) -> nx.Graph:
    """Build the graph from edges (a, b, round trip [s], price [money/byte])."""
    graph = nx.Graph()
    for a, b, rtt_s, price in edges:
        graph.add_edge(a, b, rtt_s=rtt_s, price_per_byte=price)
    return graph


def best_paths(
    graph: nx.Graph, start: str, ends: Sequence[str], weight: str, permitted: Callable[[str], bool] = lambda node: True
) -> dict[str, Path]:
    """Find the path of least total `weight` to each reachable end, through permitted nodes only.

    Dijkstra, Numerische Mathematik 1 (1959). A node reaches itself at no cost.
    """
    nodes = [node for node in graph if permitted(node) or node == start]
    allowed = graph if len(nodes) == len(graph) else graph.subgraph(nodes).copy()
    found = nx.single_source_dijkstra_path(allowed, start, weight=weight) if start in graph else {}
    paths = {start: Path((start,), dict.fromkeys(ATTRIBUTES, 0.0))}
    for end in ends:
        if end in found and end != start:
            hops = [graph.edges[hop] for hop in zip(found[end][:-1], found[end][1:])]
            paths[end] = Path(tuple(found[end]), {name: math.fsum(hop[name] for hop in hops) for name in ATTRIBUTES})
    return {end: paths[end] for end in ends if end in paths}


def distribution_tree(graph: nx.Graph, source: str, targets: Iterable[str], weight: str) -> Tree:
    """Unite the least-`weight` paths from the source to every target, so that each byte crosses an edge once.

    Unreachable targets are left out of `edges_above`.
    """
    wanted = [target for target in targets if target != source]
    paths = nx.single_source_dijkstra_path(graph, source, weight=weight) if source in graph else {source: [source]}
    position: dict[tuple[str, str], int] = {}
    above: dict[str, tuple[int, ...]] = {source: ()}
    for target in wanted:
        if target in paths:
            hops = zip(paths[target][:-1], paths[target][1:])
            above[target] = tuple(position.setdefault(hop, len(position)) for hop in hops)
    return Tree(tuple(position), above)
