"""The page for a pull request states both totals and their difference; the budget decides the exit code."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INFEASIBLE, INVALID, OK, OVER_BUDGET
from planner.plan import parse_plan
from planner.studies.against.pull_request import MOST_ROWS, over_budget, pull_request


@pytest.fixture(scope="module")
def first(tiny):
    return planner.solve(tiny())


@pytest.fixture(scope="module")
def second(first):
    """The same plan with 3 systems more, 2 replicas more, 50,000 USD more and another rate."""
    document = json.loads(first.to_json())
    document["fleet"][0]["count"] += 3
    document["deployments"][0]["replicas"] += 2
    document["spec"]["workloads"][0]["demand"] = {"requests_per_s": 1500}
    for place in (document["totals"], document["objective"]):
        place["cost" if "cost" in place else "value"] += 50_000.0
    return parse_plan(json.dumps(document))


def dearer(plan, cost: float):
    document = json.loads(plan.to_json())
    document["totals"]["cost"] = cost
    return parse_plan(json.dumps(document))


def test_the_page_states_both_values_and_what_differs(first, second):
    page = pull_request(first, second, planner.compare(first, second))
    lines = page.splitlines()
    head = next(line for line in lines if line.startswith("| objective"))
    assert (
        head == f"| objective (USD) | {first.value:,.0f} | {second.value:,.0f} | +50,000 ({5e4 / first.value:+.1%}) |"
    )
    fleet, deployments = (page.partition(f"## {name}")[2].partition("##")[0] for name in ("Fleet", "Deployments"))
    assert "| us-virginia, DGX H100, buy, scale-up | 1 | 4 | +3 |" in fleet
    assert "| chat, us-virginia, DGX H100 | 1 | 3 | +2 |" in deployments
    assert f"| workloads[0].demand.requests_per_s | {first['spec']['workloads'][0]['demand']['requests_per_s']} | 1,500 |" in page  # fmt: skip
    assert "keep all promises | 100% | 100% |" in page


def test_equal_plans_have_no_table_of_differences(first):
    page = pull_request(first, first, planner.compare(first, first))
    assert "##" not in page and "The plans are the same" in page


def test_long_tables_are_cut_and_counted(first):
    document = json.loads(first.to_json())
    document["assumptions"] = []
    without = parse_plan(json.dumps(document))
    assert len(first.assumptions) > MOST_ROWS
    page = pull_request(first, without, planner.compare(first, without))
    table = page.partition("## Assumed figures")[2]
    assert table.count("\n| ") == MOST_ROWS + 2 and f"and {len(first.assumptions) - MOST_ROWS} more" in table


@given(cost=st.floats(0.0, 1e12), budget=st.floats(0.0, 1e12))
def test_a_plan_is_over_a_budget_where_it_costs_more(first, cost, budget):
    plan = dearer(first, cost)
    assert over_budget(plan, budget) == over_budget(plan, repr(budget)) == (cost > budget)
    assert not over_budget(plan, None)


@pytest.mark.parametrize("budget", ["-1", "nan", "inf", "ten", "5 EUR", ""])
def test_a_budget_in_no_amount_of_the_currency_is_refused(first, budget):
    with pytest.raises(SpecError, match="--budget"):
        over_budget(first, budget)


def test_the_budget_decides_the_exit_code(first, second, tiny, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    first.save(paths[0]), second.save(paths[1])
    above, below = f"{second.value + 1:.0f}", f"{(second.value - 1) / 1e3:.6f}k USD"
    for form in ("md", "table", "json", "csv"):
        assert main(["compare", *paths, "--format", form, "--budget", above]) == OK
        assert main(["compare", *paths, "--format", form, "--budget", below]) == OVER_BUDGET
    assert main(["compare", *paths[::-1], "--budget", below]) == OK
    assert main(["compare", *paths, "--format", "md", "--budget", below]) == OVER_BUDGET
    assert "Over the budget" in capsys.readouterr().out
    assert main(["compare", *paths, "--budget", "much"]) == INVALID
    planner.solve(tiny(limits={"budget": "1 USD"})).save(paths[1])
    assert main(["compare", *paths, "--format", "md", "--budget", above]) == INFEASIBLE
    assert "infeasible" in capsys.readouterr().out
