"""Estimate from its data how much memory a program takes, before it is built."""

from __future__ import annotations

from solvers.model.data import PlanData
from solvers.model.dominance import undominated

INDEX_BYTES = 9  # bytes of each point in each slot: the number of its column, and whether it has one
COLUMN_BYTES = 100  # bounds, kind and unit 32, cost 16, entries in two rows 48 while they are collected; more in rows of power and in a solver


def least_program_bytes(data: PlanData, free_bytes: float = 0.0) -> float:
    """Estimate from below the memory that building the program takes [byte].

    `free_bytes`: if all points fit into it, dominated ones are counted too, since finding them takes time.
    """
    index = float(INDEX_BYTES * len(data.point_pool) * data.slots)
    serving = (data.point_pool >= 0) & (data.point_capacity > 0)
    every = index + COLUMN_BYTES * float(serving.sum()) * data.slots
    if every <= free_bytes:
        return every
    if index > free_bytes > 0:
        return index
    return index + COLUMN_BYTES * float(undominated(data)[serving].sum())
