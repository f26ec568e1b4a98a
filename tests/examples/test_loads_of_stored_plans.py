"""Check that systems load weights at most twice in each day of each stored plan of an example."""

from __future__ import annotations

import copy
import gzip

import pytest

from planner.dashboard import sources
from planner.plan import Plan, parse_plan
from tests.plans.test_relays import assert_few_loads, loads_of_days

STORED = sorted(path.name.removesuffix(".json.gz") for path in sources.PLANS.glob("*.json.gz"))


def stored(name: str) -> Plan:
    if name == sources.MAIN:
        return sources.stored_plan()
    return parse_plan(gzip.decompress((sources.PLANS / f"{name}.json.gz").read_bytes()))


@pytest.mark.parametrize("name", [sources.MAIN, *STORED])
def test_systems_load_weights_at_most_twice_in_each_day_of_a_stored_plan(name):
    """Loads are counted of whole replicas: the schedule of a plan with divisible ones names no workers."""
    plan = stored(name)
    assert_few_loads(plan)
    whole = bool(plan.document.get("deployments"))
    assert whole == any("resident" in row for row in plan["schedule"])


def test_many_loads_in_one_of_several_days_are_found():
    """Workers that come and go each hour of one day of three fail, though the mean of the days would pass."""
    document = copy.deepcopy(stored("pathway_hybrid").document)
    assert_few_loads(Plan(document))
    (own,), (deployment,) = document["fleet"], document["deployments"]
    systems = [pool["systems_per_worker"] for pool in deployment["pools"]]
    for row in document["schedule"]:
        at_work = row["slot"] >= 24 or row["slot"] % 2
        row["resident"] = {deployment["point"]: [int(at_work)] * len(systems)}
    own["count"] = 2.25 * sum(
        systems
    )  # at most 4.5 loads of each worker in a day: the first has 12, and the mean of three days is 4
    loads = [count / sum(systems) for count, _ in loads_of_days(Plan(document)).values()]
    assert loads == pytest.approx([12, 0, 0])
    with pytest.raises(AssertionError):
        assert_few_loads(Plan(document))
