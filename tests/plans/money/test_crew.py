"""Crews of sites, which cost the same at any size: the amounts by sheets written here, the choice of sites by trying each set, and the checks."""

from __future__ import annotations

import copy
import random
from itertools import combinations

import pytest

import planner
from planner.verify.plan import verify_plan
from tests.plans.one_server import NOTHING_ELSE, SYSTEM, cost_of, question, solved, worth

CREW, KW = 100_000.0, 10.2  # USD a year; nameplate of a DGX H100
HERE, THERE = "us-virginia", "us-ohio"


def site(region=HERE, **keys):
    """Write a site without a bill for electricity."""
    return {
        "region": region,
        "systems": [SYSTEM],
        "topologies": ["scale-up"],
        "pue": 1.25,
        "electricity_price": "0 USD/kWh",
    } | keys


def lines_of(plan):
    """Return the present value of staff: of the crew, and of the systems."""
    rows = [row for row in plan.document["cost_lines"] if row["component"] == "staff"]
    return tuple(sum(row["amount"] for row in rows if bool(row["how"]) is bought) for bought in (False, True))


def economics(**keys):
    return {key: value for key, value in NOTHING_ELSE.items() if key not in ("staff_per_power",)} | keys


def test_a_crew_is_paid_at_any_size_and_staff_by_power_counts_what_each_further_megawatt_takes():
    plan = solved(question(sites=[site(crew="100000 USD/year")], economics=economics()))
    crew, systems = lines_of(plan)
    assert crew == pytest.approx(CREW * worth(3), rel=1e-9)
    assert systems == pytest.approx(175 * KW * worth(3), rel=1e-9)
    booked = {row["path"] for row in plan.document["assumptions"]}
    assert {"sites[0].crew", "economics.staff_beside_crew"} <= booked


def test_without_a_crew_staff_by_power_is_that_of_a_site_as_a_whole():
    assert lines_of(solved(question(economics=economics()))) == (0.0, pytest.approx(400 * KW * worth(3), rel=1e-9))


def test_stated_staff_by_power_holds_beside_a_crew_and_its_pay_rises_as_that_of_staff():
    stated = economics(staff_per_power="300 USD/kW-year", escalation={"staff": 0.05})
    crew, systems = lines_of(solved(question(sites=[site(crew="100000 USD/year")], economics=stated)))
    rising = sum(1.05**k / 1.08 ** (k + 1) for k in range(3))
    assert crew == pytest.approx(CREW * rising, rel=1e-9)
    assert systems == pytest.approx(300 * KW * rising, rel=1e-9)


def test_a_crew_of_a_site_that_opens_later_is_paid_from_then_on():
    document = question(sites=[site(crew="100000 USD/year", available_from="1 year")])
    document["phases"] = [{"name": "first", "start": "0 years"}, {"name": "second", "start": "1 year"}]
    document["workloads"][0]["demand"] = {"requests_per_s": 5, "factor_by_phase": {"first": 0, "second": 1}}
    plan = planner.solve(document)
    assert verify_plan(plan) == []
    assert lines_of(plan)[0] == pytest.approx(CREW * (1.08**-2 + 1.08**-3), rel=1e-9)


def test_the_checks_find_a_crew_of_another_amount():
    plan = solved(question(sites=[site(crew="100000 USD/year")]))
    broken = copy.deepcopy(plan.document)
    for row in broken["cost_lines"]:
        if row["component"] == "staff" and not row["how"]:
            row["amount"] *= 1.001
    assert any("staff" in str(finding) for finding in verify_plan(planner.Plan(broken)))


@pytest.mark.parametrize("seed", range(3))
def test_the_set_of_sites_is_the_cheapest_of_all_sets(seed):
    """Two places of demand that egress keeps apart, servers of different prices, and crews: the plan against each set of sites solved alone, with crews added by hand."""
    draw = random.Random(seed)
    crews = {region: draw.choice([0, 20_000, 200_000]) for region in (HERE, THERE)}
    prices = {region: draw.randrange(250_000, 400_000, 10_000) for region in (HERE, THERE)}
    supply = {region: draw.choice([1, 2, 3]) for region in (HERE, THERE)}
    rate = draw.choice([300, 700])

    def spec(regions, with_crews):
        document = question(
            sites=[site(region, **({"crew": f"{crews[region]} USD/year"} if with_crews and crews[region] else {})) for region in regions],
            offers=[{"system": SYSTEM, "how": "buy", "price": f"{prices[r]} USD", "regions": [r], "supply": supply[r]} for r in regions],
            overrides={f"regions/{region}/construction_cost": {"value": "0.000001 USD/W", "note": "none"} for region in regions},
        )  # fmt: skip
        document["workloads"][0]["demand"] = {"requests_per_s": rate}
        document["solver"] = {"gap": 1e-7, "replicas": "whole"}
        return document

    plan = solved(spec((HERE, THERE), with_crews=True))
    tried = []
    for count in (1, 2):
        for regions in combinations((HERE, THERE), count):
            found = planner.solve(spec(regions, with_crews=False))
            if found.has_answer:
                tried.append(cost_of(found) + sum(crews[region] for region in regions) * worth(3))
    assert tried and cost_of(plan) == pytest.approx(min(tried), rel=1e-6)
