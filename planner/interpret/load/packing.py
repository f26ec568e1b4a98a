"""Plan rows of packing: how full the systems that serve are, what stays free between workers, and what moving them together gains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from models.arrays import Ints, sum_of
from models.packing import nodes_without_moves, packed
from planner.candidates.fleet_options import FleetOption
from planner.candidates.points import Use
from planner.evaluate.serving_layouts import occupied_chips
from planner.interpret.decisions import Decisions

MOST_SLOTS = 1000  # beyond which workers are not followed through time


def packing_rows(decided: Decisions) -> list[dict[str, Any]]:
    """Build one row for each fleet option on which whole replicas stand, in the slot in which they fill most nodes."""
    by_option: dict[int, list[tuple[int, Use, Ints]]] = defaultdict(list)
    for p in decided.used:
        if p in decided.resident:
            for use, workers in zip(decided.form.points[p].uses, decided.resident[p], strict=True):
                by_option[id(use.option)].append((p, use, workers))
    return list(_rows(decided, by_option))


def chips_of_worker(use: Use) -> int:
    """Return the chips that one worker of a pool occupies, without the systems held beside it."""
    layout = use.layout
    return layout["tp"] * layout["dp"] * layout["pp"]


def _rows(decided: Decisions, by_option: dict[int, list[tuple[int, Use, Ints]]]) -> Iterator[dict[str, Any]]:
    held_by_slot = _held(decided)
    for key, entries in by_option.items():
        option: FleetOption = entries[0][1].option
        node = option.system.chips
        sizes = [block_of(chips_of_worker(use), node) for _, use, _ in entries]
        workers = np.array([count for _, _, count in entries])
        nodes = [packed(_blocks(sizes, workers[:, t]), node).nodes for t in range(workers.shape[1])]
        slot = int(np.argmax(nodes))
        found, count = packed(_blocks(sizes, workers[:, slot]), node), int(workers[:, slot].sum())
        small = [k for k, size in enumerate(sizes) if size <= node]
        kept = None
        if len(small) == len(sizes) and workers.shape[1] <= MOST_SLOTS:
            named = sorted(
                range(len(entries)), key=lambda k: decided.point_ids[entries[k][0]]
            )  # pools keep their order
            following = np.asarray(decided.problem.calendar.next)
            kept = nodes_without_moves(workers[named], [sizes[k] for k in named], node, following)
        held = int(held_by_slot[key][slot])
        spread = min(max(held, found.nodes), count)
        yield {
            "site": option.site.region,
            "system": option.system.name,
            "how": option.offer.how,
            "topology": option.fabric,
            "network_size": option.size,
            "offer": option.offer.path,
            **({"tenant": option.tenant} if option.tenant else {}),
            "slot": slot,
            "held": held,
            "nodes": found.nodes,
            "partly": found.partly,
            "free_chips": sum_of(found.free),
            "stranded_chips": found.stranded(min(max(sizes), node)),
            "workers": count,
            "lost_packed": found.most_blocks,
            "lost_spread": -(-count // spread),
            "nodes_without_moves": None if kept is None else int(kept.max()),
            "mean_nodes": _mean(decided, np.array(nodes)),
            "mean_nodes_without_moves": None if kept is None else _mean(decided, kept),
            "shapes": [
                {"point": decided.point_ids[p], "role": use.role, "chips": size, "workers": int(mine[slot])}
                for (p, use, mine), size in zip(entries, sizes, strict=True)
            ],
        }  # fmt: skip


def block_of(chips: int, node: int) -> int:
    """Round the chips of a worker up to the block of a system that it takes; whole systems beyond one."""
    if chips > node:
        return -(-chips // node) * node
    return int(occupied_chips(node, np.array([chips]))[0])


def _blocks(sizes: list[int], workers: Ints) -> dict[int, int]:
    blocks: dict[int, int] = defaultdict(int)
    for size, count in zip(sizes, workers.tolist(), strict=True):
        blocks[size] += count
    return blocks


def _held(decided: Decisions) -> dict[int, Ints]:
    """Count the systems of each fleet option that are held in each slot, by its identity."""
    slots = decided.problem.calendar.slots
    held: dict[int, Ints] = defaultdict(lambda: np.zeros(slots, dtype=np.int64))
    for option, count in decided.at_once():
        held[id(option)] = held[id(option)] + count
    return held


def _mean(decided: Decisions, nodes: Ints) -> float:
    seconds = decided.problem.calendar.seconds
    return float(nodes @ seconds / seconds.sum())
