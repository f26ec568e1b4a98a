"""Batches of training jobs: whole sequences that divide among replicas."""

from __future__ import annotations

from planner.spec.reinforcement import Reinforcement
from planner.spec.workloads import Training

BATCH_UNIT = 64  # sequences


def rounded_batch(asked: float) -> int:
    """Round the sequences of a step: down to whole ones, and from 128 on to a multiple of 64.

    >>> rounded_batch(100.9), rounded_batch(1953.1)
    (100, 1984)
    """
    return max(int(asked), 1) if asked < 2 * BATCH_UNIT else round(asked / BATCH_UNIT) * BATCH_UNIT


def nearest_batch(spec: Training | Reinforcement, unit: int, least: int = 1) -> tuple[int, int]:
    """Return the batch nearest to the requested one of whole units, at least that number, as (sequences, tokens)."""
    sequences = max(round(spec.batch_tokens / spec.sequence_tokens / unit), least) * unit
    return sequences, sequences * spec.sequence_tokens
