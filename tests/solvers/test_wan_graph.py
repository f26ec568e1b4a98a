"""The wide-area graph: permitted best paths and the distribution tree."""

import itertools

import networkx as nx
import numpy as np
import pytest

from solvers.wan_graph import best_paths, distribution_tree, wan_graph

EDGES = [("a", "b", 1.0, 5.0), ("b", "c", 1.0, 5.0), ("a", "c", 3.0, 1.0), ("c", "d", 1.0, 1.0)]


def test_the_best_path_depends_on_the_weight():
    graph = wan_graph(EDGES)
    quick, cheap = (best_paths(graph, "a", ["d"], weight)["d"] for weight in ("rtt_s", "price_per_byte"))
    assert quick.nodes == ("a", "b", "c", "d") and quick.totals == {"rtt_s": 3.0, "price_per_byte": 11.0}
    assert cheap.nodes == ("a", "c", "d") and cheap.totals == {"rtt_s": 4.0, "price_per_byte": 2.0}


def test_a_path_uses_permitted_nodes_only():
    graph = wan_graph(EDGES)
    assert best_paths(graph, "a", ["d"], "rtt_s", lambda node: node != "b")["d"].nodes == ("a", "c", "d")
    assert best_paths(graph, "a", ["d", "nowhere"], "rtt_s", lambda node: node != "c") == {}
    assert best_paths(graph, "a", ["a"], "rtt_s")["a"].totals == {"rtt_s": 0.0, "price_per_byte": 0.0}


def test_each_edge_of_the_tree_is_there_once():
    tree = distribution_tree(wan_graph(EDGES), "a", ["c", "d", "a", "nowhere"], "price_per_byte")
    assert tree.edges == (("a", "c"), ("c", "d"))
    assert tree.edges_above == {"a": (), "c": (0,), "d": (0, 1)}


@pytest.mark.parametrize("seed", range(5))
def test_paths_are_shortest_and_the_tree_is_a_tree(seed):
    """Against the least of all simple paths, and one parent per node."""
    rng = np.random.default_rng(seed)
    names = "abcdef"
    graph = wan_graph(
        (a, b, rng.uniform(1, 9), rng.uniform(1, 9)) for a, b in itertools.combinations(names, 2) if rng.random() < 0.6
    )
    graph.add_nodes_from(names)
    tree = distribution_tree(graph, "a", names, "rtt_s")
    for end in names[1:]:
        lengths = [
            sum(graph.edges[hop]["rtt_s"] for hop in itertools.pairwise(path))
            for path in nx.all_simple_paths(graph, "a", end)
        ]
        found = best_paths(graph, "a", [end], "rtt_s").get(end)
        assert (found is None) == (not lengths) == (end not in tree.edges_above)
        if lengths:
            assert found.totals["rtt_s"] == pytest.approx(min(lengths))
            along = [tree.edges[edge] for edge in tree.edges_above[end]]
            assert sum(graph.edges[hop]["rtt_s"] for hop in along) == pytest.approx(min(lengths))
    children = [child for _, child in tree.edges]
    assert len(children) == len(set(children)) and "a" not in children
