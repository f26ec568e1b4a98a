"""Networks as explicit graphs: vertices for end ports and switches, an edge per pair with its number of parallel links.

Built switch by switch and measured by search and flow, so that closed forms can be held against them. Ends are ("end", i, j):
port j of system i, or node i of a torus. Prices, rates and what the ports belong to are the caller's.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

Vertex = tuple
LINKS = "links"  # parallel links of an edge


@dataclass(frozen=True, slots=True)
class Census:
    """Vertices and links of a graph."""

    ends: int
    switches: int
    host_links: int  # between an end and a switch
    inner_links: int  # between switches, or between ends
    widest: int  # most links at one switch


def is_end(vertex: Vertex) -> bool:
    return vertex[0] == "end"


def census(graph: nx.Graph) -> Census:
    ends = sum(map(is_end, graph))
    host = sum(n for a, b, n in graph.edges(data=LINKS) if is_end(a) != is_end(b))
    total = sum(n for _, _, n in graph.edges(data=LINKS))
    widest = max((degree for vertex, degree in graph.degree(weight=LINKS) if not is_end(vertex)), default=0)
    return Census(ends, len(graph) - ends, host, total - host, widest)


def _join(graph: nx.Graph, a: Vertex, b: Vertex, links: int = 1) -> None:
    graph.add_edge(a, b, links=links + (graph.edges[a, b][LINKS] if graph.has_edge(a, b) else 0))


def clos(per_column: int, columns: int, radix: int, down: int, up: int, *, joined: bool = True) -> nx.Graph:
    """A folded Clos of the fewest tiers over columns of ends; leaves take `down` ends of one column and have `up` ports up.

    `joined`: one spine over all columns, else a tree of its own for each. Leaf i of the lower half of the rows and its
    mate in the upper half go to the same spine switches, so that a half's links all find a partner.
    """
    if not joined:
        graph = nx.Graph()
        for column in range(columns):
            one = clos(per_column, 1, radix, down, up)
            own = (
                column if per_column > radix else column // max(1, radix // per_column)
            )  # a switch takes several columns where they fit
            rename = {v: ("end", v[1], column) if is_end(v) else (*v, "column", own) for v in one}
            graph.update(nx.relabel_nodes(one, rename))
        return graph
    graph = nx.Graph()
    ends = list(itertools.product(range(per_column), range(columns)))
    if len(ends) <= radix:
        graph.add_edges_from(((("end", *end), ("leaf", 0, 0)) for end in ends), links=1)
        return graph
    for i, j in ends:
        _join(graph, ("end", i, j), ("leaf", i // down, j))
    rows = math.ceil(per_column / down)
    if rows * columns <= radix:
        below = [[(("leaf", row, column), up) for column in range(columns)] for row in range(rows)]
    else:
        below = list(_blocks(graph, rows, columns, radix, up))
    _spine(graph, below, radix)
    return graph


def _blocks(graph: nx.Graph, rows: int, columns: int, radix: int, up: int) -> Iterator[list[tuple[Vertex, int]]]:
    """Aggregation switches, block by block, with their ports up: as many as down."""
    half = radix // 2
    tall = half // columns
    for block, start in enumerate(range(0, rows, tall)):
        leaves = list(itertools.product(range(start, min(start + tall, rows)), range(columns)))
        count = math.ceil(len(leaves) * up / half)
        for link, (row, column) in enumerate(leaf for leaf in leaves for _ in range(up)):
            _join(graph, ("leaf", row, column), ("aggregation", block, link % count))
        yield [(v, int(graph.degree(v, weight=LINKS))) for v in (("aggregation", block, i) for i in range(count))]


def _spine(graph: nx.Graph, below: Sequence[Sequence[tuple[Vertex, int]]], radix: int) -> None:
    """Joins the switches below to as few spine switches as their ports up need; `below` is row by row (block by block)."""
    total = sum(ports for row in below for _, ports in row)
    used = dict.fromkeys((("spine", i) for i in range(math.ceil(total / radix))), 0)
    spines, half = list(used), len(below) // 2
    for rows, in_turn in (
        (below[:half], True),
        (below[len(below) - half :], True),
        (below[half : len(below) - half], False),
    ):
        for link, vertex in enumerate(vertex for row in rows for vertex, ports in row for _ in range(ports)):
            spine = spines[link % len(spines)]
            if not in_turn or used[spine] == radix:
                spine = min(spines, key=used.__getitem__)
            _join(graph, vertex, spine)
            used[spine] += 1


def torus(dims: Sequence[int], trunk: int = 1) -> nx.Graph:
    """Nodes ("end", (x, y, ...), 0) joined to their neighbours by `trunk` links; two nodes of a short ring share one trunk."""
    graph = nx.Graph()
    for place in itertools.product(*(range(m) for m in dims)):
        graph.add_node(("end", place, 0))
        for axis, length in enumerate(dims):
            if length > 1 and (length > 2 or place[axis] == 0):
                beside = (*place[:axis], (place[axis] + 1) % length, *place[axis + 1 :])
                _join(graph, ("end", place, 0), ("end", beside, 0), trunk)
    return graph


def dragonfly(groups: int, per_group: int, at_router: int, out: int) -> nx.Graph:
    """Full groups of routers in a mesh, each with `at_router` ends and `out` global ports; as many equal links per pair of groups as fit.

    The links to one other group leave from routers in turn, so that they leave from as many as there are links.
    """
    graph = nx.Graph()
    pair = (per_group * out) // (groups - 1) if groups > 1 else 0
    for group in range(groups):
        for router in range(per_group):
            for port in range(at_router):
                _join(graph, ("end", (group * per_group + router) * at_router + port, 0), ("router", group, router))
        for a, b in itertools.combinations(range(per_group), 2):
            _join(graph, ("router", group, a), ("router", group, b))
    for a, b in itertools.combinations(range(groups), 2):
        for link in range(pair):
            here, there = (((other - own - 1) % groups * pair + link) % per_group for own, other in ((a, b), (b, a)))
            _join(graph, ("router", a, here), ("router", b, there))
    return graph


def hierarchy(sizes: Sequence[int], count: int) -> nx.Graph:
    """A tree of domains within domains over ends 0 .. count-1: level l holds `sizes[l]` ends; above the last level a root."""
    graph = nx.Graph()
    for i in range(count):
        chain = [("end", i, 0), *(("domain", level, i // size) for level, size in enumerate(sizes)), ("root",)]
        graph.add_edges_from(itertools.pairwise(chain), links=1)
    return graph


def cut_links(graph: nx.Graph, left: Iterable[Vertex], right: Iterable[Vertex]) -> int:
    """Most links' worth of flow from the left ends to the right ends: maximum flow, equal to the least cut (Ford and Fulkerson, 1956)."""
    joined = graph.copy()
    for terminal, ends in (("source", left), ("sink", right)):
        joined.add_edges_from(((terminal,), end) for end in ends)  # no capacity given: unbounded
    return nx.maximum_flow_value(joined, ("source",), ("sink",), capacity=LINKS)


def least_bisection(graph: nx.Graph) -> int:
    """The least flow over all ways to halve the ends. Exponential: for tiny graphs."""
    first, *others = sorted(v for v in graph if is_end(v))
    halves = ({first, *some} for some in itertools.combinations(others, (len(others) + 1) // 2 - 1))
    return min(cut_links(graph, half, (v for v in (first, *others) if v not in half)) for half in halves)


def hop_counts(graph: nx.Graph, sources: Iterable[Vertex] | None = None) -> tuple[float, int]:
    """(mean, most) links on the shortest paths from the sources (all ends by default) to every other end that they reach."""
    lengths = [
        length
        for source in (filter(is_end, graph) if sources is None else sources)
        for vertex, length in nx.single_source_shortest_path_length(graph, source).items()
        if is_end(vertex) and vertex != source
    ]
    return sum(lengths) / len(lengths), max(lengths)


def loads(graph: nx.Graph, flows: Mapping[tuple[Vertex, Vertex], float]) -> dict[tuple[Vertex, Vertex], float]:
    """Amount on each link and direction when every flow spreads evenly over its shortest paths; parallel links count as paths."""
    carried: dict[tuple[Vertex, Vertex], float] = {}
    by_source: dict[Vertex, dict[Vertex, float]] = {}
    for (source, target), amount in flows.items():
        if source != target:
            by_source.setdefault(source, {})[target] = by_source.setdefault(source, {}).get(target, 0.0) + amount
    for source, wanted in by_source.items():
        distance = nx.single_source_shortest_path_length(graph, source)
        paths, before = {source: 1}, {source: []}
        order = sorted(distance, key=distance.__getitem__)
        for vertex in order[1:]:
            before[vertex] = [
                (v, graph.edges[v, vertex][LINKS]) for v in graph[vertex] if distance.get(v, -1) == distance[vertex] - 1
            ]
            paths[vertex] = sum(paths[v] * links for v, links in before[vertex])
        passing = dict(wanted)
        for vertex in reversed(order[1:]):
            for v, links in before[vertex]:
                part = passing.get(vertex, 0.0) * paths[v] * links / paths[vertex]
                if part:
                    carried[v, vertex] = carried.get((v, vertex), 0.0) + part / links
                    passing[v] = passing.get(v, 0.0) + part
    return carried
