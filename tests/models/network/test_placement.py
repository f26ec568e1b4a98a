"""Rank placement against brute force: ranks put on explicit graphs, every byte routed, every link's load added up."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest

from models.network.designs import Design
from models.network.group_links import Plant, group_links, levels_of
from models.network.placement import Flow, Level, best_placement, place_in_order
from models.network.placement_torus import (
    best_torus_placement,
    factorisations,
    place_on_torus,
    ring_volumes,
    row_by_row,
)
from tests.models.network import fabric_graphs

DEGREES = {"tp": 2, "cp": 3, "dp": 2, "pp": 2}
FLOWS = [
    Flow(("tp",), 8.0), Flow(("cp",), 3.0), Flow(("cp", "dp"), 2.0), Flow(("dp",), 5.0, "all-to-all"), Flow(("pp",), 1.0, "line"),
]  # fmt: skip
LEVELS = [Level(4, 5.0), Level(12, 2.0)]


def groups_of(positions: dict[tuple, object], axes: list[str], own: tuple[str, ...]):
    """Groups of coordinates that differ in `own` axes only."""
    groups: dict[tuple, list[tuple]] = {}
    for coordinates in positions:
        groups.setdefault(tuple(c for c, axis in zip(coordinates, axes, strict=True) if axis not in own), []).append(
            coordinates
        )
    return groups.values()


def demands(flow: Flow, members: list[int]) -> dict[tuple[int, int], float]:
    """Bytes between the positions of one group, nearest first."""
    at = sorted(members)
    n, result = len(at), {}
    if n == 1:
        return result
    if flow.pattern == "all-to-all":
        return dict.fromkeys(itertools.permutations(at, 2), flow.bytes_per_rank / (n - 1))
    for i in range(n if flow.pattern == "ring" else n - 1):
        a, b = at[i], at[(i + 1) % n]
        if flow.pattern == "ring":
            result[a, b] = result.get((a, b), 0.0) + flow.bytes_per_rank
        else:
            result[a, b] = result[b, a] = flow.bytes_per_rank / 2
    return result


def routed(order, degrees, flows, levels) -> list[float]:
    """Time of the busiest way out of a domain per level, every demand routed on the tree of domains."""
    count = math.prod(degrees.values())
    graph = fabric_graphs.hierarchy([level.chips for level in levels], count)
    where = {c[::-1]: i for i, c in enumerate(itertools.product(*(range(degrees[a]) for a in reversed(order))))}
    carried: dict = {}
    for flow in flows:
        for group in groups_of(where, list(order), flow.axes):
            wanted = demands(flow, [where[c] for c in group])
            for (a, b), amount in fabric_graphs.loads(
                graph, {(("end", a, 0), ("end", b, 0)): v for (a, b), v in wanted.items()}
            ).items():
                carried[a, b] = carried.get((a, b), 0.0) + amount
    return [
        max((v for (a, b), v in carried.items() if a[:2] == ("domain", i) and b[:2] in (("root",), ("domain", i + 1))), default=0.0)
        / (level.chips * level.bytes_per_s)
        for i, level in enumerate(levels)
    ]  # fmt: skip


@pytest.mark.parametrize("levels", [LEVELS, [Level(6, 3.0)], [Level(2, 9.0), Level(8, 1.0)]])
def test_every_order_of_a_hierarchy_as_routed_link_by_link(levels):
    """Exact even where a domain cuts through groups."""
    times = {}
    for order in itertools.permutations(DEGREES):
        placed = place_in_order(order, DEGREES, FLOWS, levels)
        for f, flow in enumerate(FLOWS):
            assert [level[f] for level in placed.flows_s] == pytest.approx(routed(order, DEGREES, [flow], levels))
        assert placed.loads_s == pytest.approx(routed(order, DEGREES, FLOWS, levels))
        times[order] = placed.bottleneck_s
    found = best_placement(DEGREES, FLOWS, levels)
    assert found.best.bottleneck_s == min(times.values()) and found.worst.bottleneck_s == max(times.values())
    assert found.given.bottleneck_s == times[tuple(DEGREES)] and found.tried == 24


@pytest.mark.parametrize("seed", range(4))
def test_aligned_orders_are_exact_with_all_flows_at_once(seed):
    rng = np.random.default_rng(seed)
    degrees = {axis: int(2 ** rng.integers(0, 3)) for axis in ("tp", "cp", "dp", "pp")}
    flows = [Flow((axis,), float(rng.uniform(1, 9)), str(rng.choice(["ring", "all-to-all"]))) for axis in degrees]
    levels = [Level(4, 7.0), Level(8, 2.0)]
    for order in itertools.permutations(degrees):
        assert place_in_order(order, degrees, flows, levels).loads_s == pytest.approx(
            routed(order, degrees, flows, levels)
        )


def test_no_numbering_of_the_ranks_beats_the_best_order_here():
    """All 8! numberings of 8 ranks on two systems of 4, not orders of dimensions only."""
    degrees, level = {"tp": 2, "dp": 4}, Level(4, 1.0)
    flows = [Flow(("tp",), 3.0), Flow(("dp",), 2.0, "all-to-all")]
    best = best_placement(degrees, flows, [level]).best.bottleneck_s
    least = math.inf
    ranks = np.arange(8).reshape(4, 2)  # [dp, tp]
    for chosen in itertools.combinations(range(8), 4):  # only who shares a system matters
        system = np.array([rank in chosen for rank in range(8)])
        out = sum(3.0 * (system[a] != system[b]) for a, b in ranks)
        for column in ranks.T:
            out += sum(2.0 / 3 for a, b in itertools.permutations(column, 2) if system[a] and not system[b])
        least = min(least, out / 4)
    assert best == pytest.approx(least)


def test_names_and_patterns_are_checked():
    with pytest.raises(ValueError, match="ep"):
        best_placement({"tp": 2}, [Flow(("ep",), 1.0)], [])
    with pytest.raises(ValueError, match="bus"):
        Flow(("tp",), 1.0, "bus")
    with pytest.raises(ValueError, match="64 chips"):
        best_torus_placement({"tp": 2}, [], (4, 4, 4), 1.0)
    assert best_placement({"tp": 1}, [Flow(("tp",), 1.0)], LEVELS).best.bottleneck_s == 0
    assert best_placement({"tp": 2}, [Flow(("tp",), 1.0)], [Level(1, 0.0)]).best.bottleneck_s == math.inf


# ---- tori ----


def routed_on_torus(factors, orders, flows, dims, node_chips=1) -> list[float]:
    """Bytes on the busiest link of each dimension: every step of every ring walked, every exchange sent dimension by dimension."""
    graph = fabric_graphs.torus(dims)
    carried = dict.fromkeys(
        ((a[1], b[1]) for a, b in itertools.chain(graph.edges, ((b, a) for a, b in graph.edges))), 0.0
    )
    axes = list(factors)
    parts = [range(f) for axis in axes for f in factors[axis]]  # per axis: node, x, y, ...
    width = 1 + len(dims)

    def node(coordinates):
        place = []
        for d in range(len(dims)):
            stride, x = 1, 0
            for axis in orders[d]:
                i = axes.index(axis) * width + d + 1
                x, stride = x + coordinates[i] * stride, stride * factors[axis][d + 1]
            place.append(x)
        return tuple(place)

    def send(a, b, amount, forward=None):
        """Along the dimensions in turn, the shorter way; both ways alike when equal, unless one is asked."""
        here = list(a)
        for d, length in enumerate(dims):
            ahead = (b[d] - here[d]) % length
            way = (
                forward
                if forward and 2 * ahead == length
                else 0
                if 2 * ahead == length and length > 2
                else 1
                if 2 * ahead <= length
                else -1
            )
            for sign, share in ((1, 0.5), (-1, 0.5)) if way == 0 else ((way, 1.0),):
                x = here[d]
                while x != b[d]:
                    y = (x + sign) % length
                    carried[(*here[:d], x, *here[d + 1 :]), (*here[:d], y, *here[d + 1 :])] += amount * share
                    x = y
            here[d] = b[d]

    ranks = list(itertools.product(*parts))
    for flow in flows:
        own = {axes.index(axis) * width + e for axis in flow.axes for e in range(width)}
        groups: dict = {}
        for rank in ranks:
            groups.setdefault(tuple(c for i, c in enumerate(rank) if i not in own), []).append(rank)
        for group in groups.values():
            nodes = sorted({node(rank) for rank in group})
            size, members = len(group), len(group) // len(nodes)
            if flow.pattern == "all-to-all":
                for a, b in itertools.permutations(nodes, 2):
                    send(a, b, flow.bytes_per_rank / (size - 1) * members * members)
                continue
            extents = [sorted({n[d] for n in nodes}) for d in range(len(dims))]
            long = [d for d in range(len(dims)) if len(extents[d]) > 1]
            volumes = dict(zip(long, ring_volumes([len(extents[d]) for d in long]), strict=True))
            gathered = flow.bytes_per_rank * size / max(size - 1, 1)
            for d in long:
                for n in nodes:
                    i = extents[d].index(n[d])
                    if flow.pattern == "line":
                        if i + 1 < len(extents[d]):
                            beside = (*n[:d], extents[d][i + 1], *n[d + 1 :])
                            send(n, beside, flow.bytes_per_rank / 2), send(beside, n, flow.bytes_per_rank / 2)
                    else:
                        after = (*n[:d], extents[d][(i + 1) % len(extents[d])], *n[d + 1 :])
                        send(n, after, gathered * volumes[d] / 2, 1), send(after, n, gathered * volumes[d] / 2, -1)
    return [
        max((v for (a, b), v in carried.items() if a[d] != b[d]), default=0.0) for d in range(len(dims))
    ]  # fmt: skip


TORUS_FLOWS = [
    Flow(("tp",), 8.0),
    Flow(("ep",), 5.0, "all-to-all"),
    Flow(("ep", "dp"), 2.0),
    Flow(("dp",), 1.0, "line"),
]


@pytest.mark.parametrize(
    ("degrees", "dims"),
    [
        ({"tp": 4, "ep": 4, "dp": 2}, (4, 4, 2)),
        ({"tp": 2, "ep": 8, "dp": 2}, (8, 4)),
        ({"tp": 3, "ep": 2, "dp": 6}, (6, 6)),
    ],
)
def test_every_torus_placement_as_routed_link_by_link(degrees, dims):
    best, count = math.inf, 0
    for factors in factorisations(degrees, (1, *dims)):
        along = [[a for a in degrees if factors[a][d + 1] > 1] for d in range(len(dims))]
        for orders in itertools.product(*(itertools.permutations(axes) for axes in along)):
            placed = place_on_torus(factors, TORUS_FLOWS, dims, 1.0, orders=orders)
            assert placed.loads_s == pytest.approx(routed_on_torus(factors, orders, TORUS_FLOWS, dims)), (
                factors,
                orders,
            )
            best, count = min(best, placed.bottleneck_s), count + 1
    found = best_torus_placement(degrees, TORUS_FLOWS, dims, 1.0)
    assert count > 3 and found.best.bottleneck_s == pytest.approx(best)
    assert found.worst.bottleneck_s >= found.best.bottleneck_s
    assert found.given is None or found.given.bottleneck_s >= found.best.bottleneck_s * (1 - 1e-12)


def test_nodes_of_several_chips_gather_within_first():
    degrees, flows = {"tp": 4, "dp": 8}, [Flow(("tp",), 8.0), Flow(("dp",), 2.0)]
    found = best_torus_placement(degrees, flows, (4, 2), 1.0, node_chips=4)
    assert found.best.factors["tp"] == (4, 1, 1)  # the heavy dimension stays in the node
    # dp: 8 x 2/7 bytes gathered by each of 4 chips, two pieces: 0.5 (3/4) + 0.5 (1/2)(3/4) along 4, half each way around
    assert found.best.loads_s[0] == pytest.approx(4 * 2.0 * 8 / 7 * (0.375 + 0.1875) / 2)
    split = place_on_torus({"tp": (2, 2, 1), "dp": (2, 2, 2)}, flows, (4, 2), 1.0, node_chips=4)
    assert split.bottleneck_s > found.best.bottleneck_s


def test_row_by_row_is_the_naive_numbering():
    assert row_by_row({"tp": 4, "dp": 8}, (1, 8, 4)) == {"tp": (1, 4, 1), "dp": (1, 2, 4)}
    found = best_torus_placement({"dp": 4, "tp": 4}, [Flow(("tp",), 8.0), Flow(("dp",), 1.0)], (8, 2), 1.0)
    assert found.given.bottleneck_s > found.best.bottleneck_s


# ---- group_links and placement say the same ----


def test_group_links_agree_with_the_placement_on_a_torus():
    plant = Plant(Design("torus"), 64, 1, 6, 50e9, 64, 0.0, 5e-6, 3e-7)
    for group, stride, factors in (
        (4, 1, {"a": (1, 4, 1, 1), "b": (1, 1, 4, 4)}),
        (16, 4, {"b": (1, 4, 1, 1), "a": (1, 1, 4, 4)}),
        (16, 1, {"a": (1, 4, 4, 1), "b": (1, 1, 1, 4)}),
    ):
        for pattern in ("ring", "all-to-all"):
            placed = place_on_torus(factors, [Flow(("a",), 1e9, pattern)], (4, 4, 4), 50e9)
            assert group_links(plant, group, stride, pattern).bytes_per_s == pytest.approx(
                min(300e9, 1e9 / placed.bottleneck_s)
            )


def test_group_links_agree_with_the_levels_of_a_tapered_tree():
    plant = Plant(Design("rail-optimised", 3.0), 192, 8, 8, 50e9, 64, 450e9, 5e-6, 3e-7)
    levels = levels_of(plant)
    assert [level.chips for level in levels] == [8, 384]
    for tp, pattern in ((8, "ring"), (8, "all-to-all"), (1, "ring"), (1, "all-to-all")):
        placed = place_in_order(("tp", "dp"), {"tp": tp, "dp": 1536 // tp}, [Flow(("dp",), 1e9, pattern)], levels)
        links = group_links(plant, 1536 // tp, tp, pattern)
        in_system = placed.flows_s[0][0] * 50e9  # bytes that a chip sends out of its system
        assert in_system / links.bytes_per_s == pytest.approx(placed.bottleneck_s)


def test_paths_of_a_hierarchy_are_unique():
    graph = fabric_graphs.hierarchy([2, 4], 8)
    assert nx.is_tree(graph)
