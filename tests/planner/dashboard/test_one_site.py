"""A plan at its single sites: their parts add up to the whole."""

import pytest

from planner.dashboard import sources
from planner.dashboard.one_site import ROWS, at_site, site_words, sites_of
from planner.messages import languages
from planner.report.charts.fleet import fleet_rows
from planner.report.locale import Words

PLAN = sources.stored_plan()


def test_sites_add_up_to_the_plan():
    parts = {site: at_site(PLAN, site) for site in sites_of(PLAN)}
    assert set(parts) == {row["site"] for row in PLAN["fleet"]}
    for name in ROWS:
        assert sum(len(part[name]) for part in parts.values()) == len(PLAN[name]), name
    for component, amount in PLAN["costs"].items():
        assert sum(part["costs"].get(component, 0.0) for part in parts.values()) == pytest.approx(amount)
    points = [point["id"] for part in parts.values() for w in part["workloads"] for point in w["points"]]
    assert sorted(points) == sorted(point["id"] for w in PLAN["workloads"] for point in w["points"])
    assert sum(row["chips"] for part in parts.values() for row in fleet_rows(part)) == PLAN["totals"]["chips"]
    assert all(site in row["name"] for site, part in parts.items() for row in part["limits"])


@pytest.mark.parametrize("language", languages())
def test_a_site_is_summed_up_in_words(language):
    said = [site_words(PLAN, site, Words(language)) for site in sites_of(PLAN)]
    assert all(site in words for site, words in zip(sites_of(PLAN), said, strict=True))
