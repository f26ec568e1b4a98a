"""Packing of blocks on nodes against brute force, and against workers that never move."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from models.packing import nodes_without_moves, packed
from tests.conftest import ALL_CASES

CASES = 150 if ALL_CASES else 30


def fewest(blocks: list[int], node: int) -> int:
    """Try every assignment of blocks to nodes."""
    for nodes in range(1, len(blocks) + 1):
        for places in itertools.product(range(nodes), repeat=len(blocks)):
            if places[0] == 0 and all(
                sum(block for block, at in zip(blocks, places, strict=True) if at == i) <= node for i in range(nodes)
            ):
                return nodes
    return 0


@pytest.mark.parametrize("seed", range(CASES))
def test_blocks_of_powers_of_two_take_the_fewest_nodes(seed):
    rng = np.random.default_rng(seed)
    node = int(rng.choice([4, 8, 16]))
    blocks = [int(2 ** rng.integers(0, int(math.log2(node)))) for _ in range(rng.integers(1, 7))]
    found = packed({size: blocks.count(size) for size in set(blocks)}, node)
    assert found.nodes == fewest(blocks, node) == math.ceil(sum(blocks) / node)
    assert sum(found.free) == found.nodes * node - sum(blocks)
    assert found.partly == sum(free > 0 for free in found.free)


@pytest.mark.parametrize("seed", range(CASES))
def test_workers_that_never_move_take_no_fewer_nodes(seed):
    rng = np.random.default_rng(seed)
    slots, kinds = int(rng.integers(2, 12)), int(rng.integers(1, 4))
    chips = [int(2 ** rng.integers(0, 4)) for _ in range(kinds)]
    workers = rng.integers(0, 9, (kinds, slots))
    following = (np.arange(slots) + 1) % slots
    kept = nodes_without_moves(workers, chips, 8, following)
    for t in range(slots):
        blocks: dict[int, int] = {}
        for size, count in zip(chips, workers[:, t], strict=True):
            blocks[size] = blocks.get(size, 0) + int(count)
        assert packed(blocks, 8).nodes <= kept[t] <= workers[:, t].sum()
    steady = np.repeat(workers[:, :1], slots, axis=1)
    first = dict.fromkeys(chips, 0)
    for size, count in zip(chips, steady[:, 0], strict=True):
        first[size] += int(count)
    assert (nodes_without_moves(steady, chips, 8, following) == packed(first, 8).nodes).all()


def test_a_fall_leaves_holes_that_a_larger_worker_cannot_use():
    """16 workers of one chip fill two nodes. When the oldest eight stop, one is empty and takes a large worker; when seven stop, it is not."""
    small, large = [16, 8, 8, 8], [0, 0, 1, 1]
    kept = nodes_without_moves(np.array([small, large]), [1, 8], 8, np.array([1, 2, 3, 0]))
    assert kept.tolist() == [2, 1, 2, 2]
    holes = nodes_without_moves(np.array([[16, 9, 8, 8], large]), [1, 8], 8, np.array([1, 2, 3, 0]))
    assert holes.tolist()[2:] == [2, 2]  # the oldest of nine is the last one on the first node
    mixed = nodes_without_moves(np.array([[12, 4], [0, 1]]), [1, 8], 8, np.array([1, 0]))
    assert mixed.tolist() == [2, 2]
    assert packed({1: 4, 4: 1}, 8).stranded(4) == 0 and packed({1: 5}, 8).stranded(4) == 3
    assert packed({1: 5}, 8).most_blocks == 5


def test_workers_beyond_a_node_take_whole_nodes():
    assert packed({16: 2, 1: 1}, 8).free == (0, 0, 0, 0, 7)
