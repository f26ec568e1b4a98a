"""Systems that one replica occupies: a share that packs whole replicas, or whole systems."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.evaluate.serving import systems_per_replica
from planner.verify.points.serving import systems_of


def share(system_chips: int, chips: int, stages: int = 1) -> float:
    found = systems_per_replica(SimpleNamespace(chips=system_chips), np.array([chips]), np.array([stages]))
    return float(found[0])


@pytest.mark.parametrize(
    ("system_chips", "chips", "systems"),
    [
        (8, 1, 1 / 8), (8, 2, 1 / 4), (8, 3, 1 / 2), (8, 4, 1 / 2), (8, 5, 1), (8, 8, 1), (8, 16, 2), (8, 20, 3),
        (72, 1, 1 / 72), (72, 8, 1 / 9), (72, 16, 1 / 4), (72, 32, 1 / 2), (72, 64, 1), (72, 65, 1), (72, 72, 1), (72, 128, 2), (72, 144, 2),
        (72, 36, 1 / 2), (72, 18, 1 / 4), (72, 9, 1 / 8), (6, 4, 1), (6, 3, 1 / 2), (12, 8, 1), (12, 4, 1 / 3),
    ],
)  # fmt: skip
def test_a_replica_takes_a_share_of_a_system_or_whole_systems(system_chips, chips, systems):
    assert share(system_chips, chips) == systems


@pytest.mark.parametrize(
    ("system_chips", "chips", "stages", "systems"),
    [
        (8, 8, 2, 1),
        (8, 16, 2, 2),
        (8, 32, 4, 4),
        (72, 128, 2, 2),
        (72, 9 * 64, 9, 9),
        (72, 9 * 32, 9, 5),
        (8, 48, 3, 6),
    ],
)
def test_no_pipeline_stage_lies_in_two_systems(system_chips, chips, stages, systems):
    assert share(system_chips, chips, stages) == systems


def holds(system_chips: int, replicas: list[int]) -> bool:
    """Tell whether replicas of these sizes fit into one system, each on chips of its own."""
    return sum(replicas) <= system_chips


@given(
    system_chips=st.sampled_from([1, 2, 4, 6, 8, 12, 16, 64, 72, 256, 384]),
    replicas=st.lists(st.integers(1, 72), min_size=1, max_size=12),
)
def test_replicas_whose_shares_add_up_to_one_fit_into_a_system(system_chips, replicas):
    replicas = [min(chips, system_chips) for chips in replicas]
    shares = [share(system_chips, chips) for chips in replicas]
    assert all(chips / system_chips <= part * (1 + 1e-12) for chips, part in zip(replicas, shares, strict=True))
    if sum(shares) <= 1:
        assert holds(system_chips, replicas)


@given(
    system_chips=st.sampled_from([1, 2, 4, 6, 8, 12, 16, 64, 72, 256, 384]),
    stage=st.integers(1, 512),
    stages=st.sampled_from([1, 2, 3, 4, 8]),
    workers=st.integers(1, 5),
)
def test_verification_counts_the_same_systems(system_chips, stage, stages, workers):
    option = SimpleNamespace(
        system=SimpleNamespace(name="any", chips=system_chips, scaleup_chips=system_chips, host_chips=1), fabric="any", scaleout_bytes_per_s=1.0
    )  # fmt: skip
    pool = {"layout": {"tp": 1, "pp": stages, "dp": stage, "ep": stage}, "workers": workers}
    chips = stage * stages
    try:
        counted = systems_of(option, pool)
    except ValueError:
        return  # no layout that an engine runs
    assert counted == pytest.approx(workers * share(system_chips, chips, stages), rel=1e-12)
