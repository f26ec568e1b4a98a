"""Loads of weights on the page: where replicas are divisible they are not counted, and the page says so where that hides something."""

from __future__ import annotations

import copy

import pytest

from planner.messages import Said
from planner.plan import Plan
from planner.report.load.relays import load_lines
from tests.examples.test_loads_of_stored_plans import stored

SHARED = ("compute_network_year", "mixed_fleet_year", "reinforcement")
ALONE = ("national_stack", "pathway_sovereign", "pathway_staged", "priorities")


def codes(plan: Plan) -> list[str]:
    return [line.message.code for line in load_lines(plan) if isinstance(line, Said)]


@pytest.mark.parametrize("name", SHARED)
def test_the_page_says_that_loads_are_not_counted_where_points_share_systems(name: str) -> None:
    assert codes(stored(name)) == ["relays.not_counted"]


@pytest.mark.parametrize("name", ALONE)
def test_nothing_is_said_where_no_two_points_share_systems(name: str) -> None:
    plan = stored(name)
    assert plan.document["replicas"] == "divisible" and load_lines(plan) == []


def test_a_second_point_on_the_same_systems_is_enough() -> None:
    document = copy.deepcopy(stored("pathway_sovereign").document)
    points = document["workloads"][0]["points"]
    points.append({**points[0], "id": "another"})
    assert codes(Plan(document)) == ["relays.not_counted"]
