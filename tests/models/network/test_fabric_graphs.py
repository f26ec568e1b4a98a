"""Every design's closed forms against its explicit graph: parts counted, bisection by maximum flow, hops by search, loads by routing."""

import itertools

import networkx as nx
import pytest

from models.network.designs import Design, network
from models.network.direct import balanced_dragonfly, dragonfly, torus
from models.network.trees import leaf_ports, tree
from tests.models.network import fabric_graphs


def ends_of(graph, first=lambda end: True):
    return [v for v in graph if fabric_graphs.is_end(v) and first(v)]


def graph_of_tree(per_column, columns, radix, taper, joined=True):
    down, up = map(int, leaf_ports(radix, taper))
    return fabric_graphs.clos(per_column, columns, radix, down, up, joined=joined)


TREES = [  # ports per column, columns, radix, taper, joined
    *((n, 1, 8, 1, True) for n in (5, 8, 16, 20, 23, 32, 37, 64, 96)),
    *((n, 1, 8, 3, True) for n in (12, 22, 47, 48, 96)),
    *((n, 1, 12, 2, True) for n in (24, 33, 40, 192)),
    *((n, 1, 10, 1.5, True) for n in (30, 41)),
    *((n, 2, 8, 1, True) for n in (3, 4, 8, 12, 16, 32, 48)),
    *((n, 8, 16, 1, True) for n in (8, 16, 24)),
    *((n, 4, 8, 3, False) for n in (6, 12, 20)),
    *((n, 4, 8, 1, False) for n in (8, 12, 16)),
]


@pytest.mark.parametrize(("n", "columns", "radix", "taper", "joined"), TREES)
def test_trees(n, columns, radix, taper, joined):
    form, graph = tree(n, columns, radix, taper, joined=joined), graph_of_tree(n, columns, radix, taper, joined)
    counted = fabric_graphs.census(graph)
    assert (counted.switches, counted.inner_links) == (form.switches, form.switch_links)
    assert counted.host_links == counted.ends == n * columns and counted.widest <= radix
    halves = ends_of(graph, lambda v: v[1] < n // 2), ends_of(graph, lambda v: v[1] >= n // 2)
    assert fabric_graphs.cut_links(graph, *halves) == form.bisection_links
    mean, most = fabric_graphs.hop_counts(graph)
    assert (mean, most) == (pytest.approx(form.mean_hops), form.most_hops)


@pytest.mark.parametrize(("n", "radix", "taper"), [(8, 4, 1), (6, 4, 1), (6, 4, 3), (9, 4, 3), (8, 6, 2)])
def test_no_other_halving_of_a_tree_is_thinner(n, radix, taper):
    assert fabric_graphs.least_bisection(graph_of_tree(n, 1, radix, taper)) == tree(n, 1, radix, taper).bisection_links


@pytest.mark.parametrize(
    ("n", "columns", "radix", "taper", "joined"), [case for case in TREES if case[0] in (12, 16, 32, 48)]
)
def test_uniform_traffic_on_trees(n, columns, radix, taper, joined):
    """Spread evenly over shortest paths, it loads the busiest link as the closed form says; where leaves fill their tier."""
    graph, reach = graph_of_tree(n, columns, radix, taper, joined), n * columns if joined else n
    flows = {(a, b): 1 / (reach - 1) for a, b in itertools.permutations(ends_of(graph), 2) if joined or a[2] == b[2]}
    busiest = max(fabric_graphs.loads(graph, flows).values())
    assert 1 / busiest == pytest.approx(tree(n, columns, radix, taper, joined=joined).uniform_share, rel=0.05)
    assert 1 / busiest <= tree(n, columns, radix, taper, joined=joined).uniform_share * (1 + 1e-9)


@pytest.mark.parametrize(
    "dims", [(4, 4, 4), (4, 2, 2), (5, 4, 3), (3, 3, 3), (5, 5, 1), (6, 1, 1), (4, 3, 1), (2, 2, 2), (8, 4, 2)]
)
def test_tori(dims):
    form, graph = torus(*dims), fabric_graphs.torus(dims)
    counted, ends = fabric_graphs.census(graph), sorted(graph)
    assert (counted.ends, counted.switches, counted.inner_links) == (form.nodes, 0, form.links)
    cuts = []
    for order in itertools.permutations(range(3)):
        ends.sort(key=lambda v, order=order: [v[1][axis] for axis in order])
        cuts.append(fabric_graphs.cut_links(graph, ends[: len(ends) // 2], ends[len(ends) // 2 :]))
    assert min(cuts) == form.bisection_links
    assert fabric_graphs.hop_counts(graph) == (pytest.approx(form.mean_hops), form.most_hops)
    flows = {pair: 1 / (len(ends) - 1) for pair in itertools.permutations(ends, 2)}
    assert 1 / max(fabric_graphs.loads(graph, flows).values()) == pytest.approx(form.uniform_links)


@pytest.mark.parametrize("dims", [(3, 2, 2), (4, 3, 1), (6, 1, 1), (5, 2, 1)])
def test_no_other_halving_of_a_torus_is_thinner(dims):
    assert fabric_graphs.least_bisection(fabric_graphs.torus(dims)) == torus(*dims).bisection_links


def test_a_torus_of_systems_has_its_trunks():
    net, graph = network(Design("torus"), 16, 8, 64), fabric_graphs.torus((4, 4, 1), 2)
    assert fabric_graphs.census(graph).inner_links == net.switch_links
    lower = [v for v in graph if v[1][0] < 2]
    assert fabric_graphs.cut_links(graph, lower, [v for v in graph if v[1][0] >= 2]) == net.bisection_links


@pytest.mark.parametrize(
    ("radix", "groups"), [(3, 1), (3, 2), (3, 3), (7, 1), (7, 2), (7, 3), (7, 4), (7, 6), (7, 9), (11, 6), (11, 19)]
)
def test_dragonflies(radix, groups):
    at_router, per_group, out = (int(part) for part in balanced_dragonfly(radix))
    in_group = at_router * per_group
    form, graph = dragonfly(groups * in_group, radix), fabric_graphs.dragonfly(groups, per_group, at_router, out)
    counted = fabric_graphs.census(graph)
    assert (counted.switches, counted.inner_links) == (form.switches, form.local_links + form.global_links)
    assert counted.widest <= radix and form.holds
    middle = groups // 2 * in_group if groups > 1 else in_group // 2
    assert (
        fabric_graphs.cut_links(
            graph, ends_of(graph, lambda v: v[1] < middle), ends_of(graph, lambda v: v[1] >= middle)
        )
        == form.bisection_links
    )
    lengths = []
    for here, there in itertools.product(range(groups), repeat=2):  # minimal routes stay in two groups
        within = graph.subgraph(
            [v for v in graph if (v[1] // in_group if fabric_graphs.is_end(v) else v[1]) in (here, there)]
        )
        for source in ends_of(within, lambda v, here=here: v[1] // in_group == here):
            found = nx.single_source_shortest_path_length(within, source)
            lengths += [
                found[v] for v in ends_of(within, lambda v, there=there: v[1] // in_group == there) if v != source
            ]
    assert (sum(lengths) / len(lengths), max(lengths)) == (pytest.approx(form.mean_hops), form.most_hops)
    assert fabric_graphs.hop_counts(graph)[0] <= form.mean_hops * (1 + 1e-12)


@pytest.mark.parametrize("groups", [2, 3])
def test_no_halving_of_a_tiny_dragonfly_by_groups_beats_all(groups):
    """The least over all halves of the ends is no more than that over halves of groups, which the closed form gives."""
    at_router, per_group, out = (int(part) for part in balanced_dragonfly(3))
    graph = fabric_graphs.dragonfly(groups, per_group, at_router, out)
    least = fabric_graphs.least_bisection(graph)
    assert least <= dragonfly(groups * at_router * per_group, 3).bisection_links + (groups % 2)
    assert (least == dragonfly(groups * at_router * per_group, 3).bisection_links) or groups % 2


def test_loads_on_a_line_by_hand():
    graph = fabric_graphs.torus((4, 1))
    place = [("end", (i, 0), 0) for i in range(4)]
    carried = fabric_graphs.loads(graph, {(place[0], place[1]): 3.0, (place[0], place[2]): 2.0})
    assert (
        carried[place[0], place[1]] == 4.0 and carried[place[0], place[3]] == 1.0 and carried[place[3], place[2]] == 1.0
    )
