"""Plans to export: the stored mixed fleet, and the small plan of the golden test."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from planner.plan import Plan, load_plan
from planner.ways_out.deployed import Deployed, Served, deployed

STORED = Path(__file__).resolve().parents[3] / "planner/dashboard/data/mixed_fleet_plan.json"


@pytest.fixture(scope="session")
def mixed_plan() -> Plan:
    return load_plan(STORED)


@pytest.fixture(scope="session")
def mixed(mixed_plan) -> Deployed:
    return deployed(mixed_plan)


@pytest.fixture(params=["mixed", "small"])
def plan(request) -> Plan:
    return request.getfixturevalue(f"{request.param}_plan")


@pytest.fixture
def small_served(small_plan):
    """Change what the small plan serves: keys of its workload in the spec, and of the pool of its first point."""

    def changed(spec: dict, pool: dict) -> Served:
        document = copy.deepcopy(dict(small_plan.document))
        document["spec"]["workloads"][0] |= spec
        document["workloads"][0]["points"][0]["pools"][0] |= pool
        return deployed(Plan.of(document)).served[0]

    return changed
