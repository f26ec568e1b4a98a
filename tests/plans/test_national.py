"""A plan of national kind, a fiftieth of 140T tokens a day: proven, and no better than the published rates of its chips allow."""

from __future__ import annotations

import pytest

import planner
from benchmarks.national import least_chips, national

ANSWERS = 0.7  # T tokens a day
REGIONS = ("cn-zhongwei",)


@pytest.fixture(scope="module")
def plan():
    spec = national(ANSWERS, REGIONS)
    for site in spec["sites"]:
        site["topologies"] = ["rail-only"]
    spec["workloads"][0]["precision"] = ["int8"]
    return planner.solve({**spec, "solver": {"time_limit": "600 s"}})


def test_the_gap_is_proven(plan):
    assert plan["bound"] <= plan.totals["cost"] <= 1.03 * plan["bound"]
    assert plan["gap"] <= 0.03


def test_the_chips_are_no_fewer_than_by_published_rates(plan):
    """Answers over 1,943 and prompts over 6,688 tokens/s a chip, in the busiest hour; the fleet is whole systems of 384."""
    assert plan.totals["chips"] >= least_chips(ANSWERS)
    assert plan.totals["chips"] == 384 * sum(row["count"] for row in plan["fleet"])


def test_the_fleet_carries_the_busiest_hour(plan):
    """In closed form: the busiest hour, in answers of 1,000 tokens, over what the point at work that does most with a system serves with one."""
    points = [point for workload in plan["workloads"] for point in workload["points"]]
    best = max(point["capacity"] / sum(pool["systems_per_replica"] for pool in point["pools"]) for point in points)
    busiest = max(sum(row["tokens_per_s"] for row in plan["routes"] if row["slot"] == slot) for slot in range(24))
    assert busiest / 1000 / best <= sum(row["count"] for row in plan["fleet"])
