"""What limits are worth and which system comes next, against solving again with a little more, or a little cheaper."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest

import planner
from planner.candidates.search import find_candidates
from planner.formulate.formulation import formulate
from planner.plan import BY_THE_BOUND, Plan
from planner.problem.phases import terms_of
from planner.report.report import render
from planner.report.words import whole
from planner.resolve.resolver import resolve_document
from planner.solving.marginal_values import TIME_NOTE, compute_marginal_values
from planner.spec.document import edited
from planner.verify.plan import verify_plan
from solvers import mip
from solvers.analysis.marginal_values import marginal_values
from solvers.mip import Options
from solvers.model.build import build, objective_vector
from solvers.search.joint import solve

FINE = {"gap": 1e-6, "time_limit": "30 s"}
CHAT = {
    "name": "chat", "kind": "serving", "architecture": "Meta-Llama-3.1-8B", "demand": {"requests_per_s": 40_000},
    "lengths": {"input": 1000, "output": 300, "input_cv": 1, "output_cv": 1}, "origins": [{"region": "us-texas", "share": 1.0}],
    "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "kv_precision": ["fp8"], "disaggregation": "never",
}  # fmt: skip
OFFERS = [
    {"system": "DGX B200", "how": "buy", "price": "900000 USD"},
    {"system": "DGX H100", "how": "buy", "price": "300000 USD"},
]
BASE = {
    "name": "worth",
    "workloads": [CHAT],
    "sites": [{"region": "us-texas", "pue": 1.3}],
    "offers": OFFERS,
    "solver": FINE,
    "simplicity": {"within": 0},
}


def spec(*edits) -> dict:
    return edited(copy.deepcopy(BASE), edits)


def row_of(plan, path: str) -> dict:
    (row,) = (row for row in plan["limits"] if row["path"] == path)
    return row


def one_system(plan) -> float:
    """What one system more or less may come to: the error of whole systems."""
    return max(line["amount"] for line in plan["cost_lines"]) / min(row["count"] for row in plan["fleet"])


# limit -> (its place, tight value, as much again, step in units of the limit's row, further edits)
SLIDES = {
    "power": ("sites[0].power", "1.4 MW", "1.46 MW", 60e3, ()),
    "supply": ("offers[1].supply", 150, 156, 6, ()),
    "capital": (
        "limits.capital",
        "40M USD",
        "41M USD",
        1e6,
        (
            ("offers", [*OFFERS, {"system": "DGX H200", "how": "reserved", "price": "24 USD/h"}]),
            ("horizon", {"years": 5}),  # over which buying beats renting
        ),
    ),
    "carbon": ("limits.carbon", "4.5 kt", "4.6 kt", 1e5, ()),
}


@pytest.mark.parametrize("limit", SLIDES)
def test_a_marginal_value_is_what_a_little_more_changes(limit):
    """The least cost is convex in a limit, so the change over a step lies between the marginal values at both ends."""
    path, tight, wide, step, edits = SLIDES[limit]
    first, second = (planner.solve(spec(*edits, (path, value))) for value in (tight, wide))
    before, after = (row_of(plan, path)["marginal_value_divisible"] or 0.0 for plan in (first, second))
    mean = (second.objective["value"] - first.objective["value"]) / step
    error = 2 * one_system(first) / step
    assert before < 0 and before - error <= mean <= after + error, (before, mean, after)
    assert abs(mean - before) <= 0.5 * abs(before) + error or before < mean
    row = row_of(first, path)
    assert row["marginal_unit"] == f"USD/{row['unit']}" and verify_plan(first) == []


def test_more_of_a_budget_is_worth_throughput():
    path, objective = "limits.budget", ("objective", {"maximise": "throughput"})
    first, second = (planner.solve(spec(objective, (path, value))) for value in ("16M USD", "16.8M USD"))
    worth = row_of(first, path)
    mean = (second.objective["value"] - first.objective["value"]) / 8e5
    assert worth["marginal_unit"] == "x demand/USD" and worth["marginal_value_divisible"] == pytest.approx(
        mean, rel=0.1
    )


def test_with_every_integer_fixed_a_limit_is_worth_what_the_same_fleet_makes_of_it():
    """The dual against the linear program with divisible replicas and a slightly larger limit, the plan's integers fixed."""
    hours, halves = (
        [0.4] * 8 + [1.6] * 8 + [1.0] * 8,
        [{"region": r, "share": 0.5} for r in ("us-texas", "us-california")],
    )
    sites = ("sites", [{"region": "us-texas"}, {"region": "us-california"}])
    document = spec(
        sites,
        ("workloads[0].demand.profile", hours),
        ("workloads[0].origins", halves),
        ("limits.carbon", "4.8 kt"),
        ("offers[1].supply", 288),
    )
    problem, options = resolve_document(document), Options(gap=1e-6)
    form = formulate(problem, find_candidates(problem))
    solution = solve(form.data, options)
    fixed = compute_marginal_values(problem, form, solution, "USD", options).fixed
    program = build(form.data.divisible())
    arrays, cost = program.arrays(), objective_vector(program, form.data)
    x = np.zeros(program.column_count)
    for block, columns in program.columns.items():
        if block in solution.values:
            x[columns[columns >= 0]] = solution.values[block][columns >= 0]
    bounds = np.where(arrays.integer, np.round(x), arrays.lower), np.where(arrays.integer, np.round(x), arrays.upper)
    step, least = 10.0, []
    for more in (0.0, step):
        upper = arrays.row_upper.copy()
        upper[program.row_blocks["limit"][0].start] += more
        least.append(cost @ mip.polish(dataclasses.replace(arrays, row_upper=upper), bounds, cost, options)[0])
    assert fixed["limits.carbon", None] < -0.01
    assert fixed["limits.carbon", None] == pytest.approx((least[1] - least[0]) / step, rel=1e-3)
    assert fixed["offers[1].supply", None] == 0.0  # one more on offer changes nothing while the counts stay


def test_what_does_not_bind_is_worth_nothing():
    plan = planner.solve(spec(("sites[0].power", "20 MW"), ("offers[1].supply", 5000)))
    for path in ("sites[0].power", "offers[1].supply"):
        row = row_of(plan, path)
        assert row["slack"] > 0 and row["marginal_value"] is row["marginal_value_divisible"] is None
    latency = row_of(plan, "workloads[0].slo.ttft.p95")
    assert latency["marginal_value"] is None and latency["marginal_unit"] is None and latency["note"]


@pytest.mark.parametrize("objective", ["cost", "carbon"])
def test_the_runner_up_comes_in_when_it_is_that_much_better(objective):
    """With its price lowered by less than the margin the plan stays; by more, the runner-up is bought."""
    # demand that whole systems of one kind fill
    demand = ("workloads[0].demand", {"requests_per_s": 40_270 if objective == "carbon" else 40_110})
    plan = planner.solve(spec(("objective", {"minimise": objective}), demand))
    (row,) = plan["runner_up"]
    (used,) = plan["fleet"]
    assert (
        row["site"] == used["site"]
        and row["system"] in {"DGX B200", "DGX H100"} - {used["system"]}
        and row["how"] == "buy"
    )
    assert row["margin"] > 0 and row["margin_unit"] == ("USD/system" if objective == "cost" else "kg/system")
    assert row["words"] in render(plan, "table") and row["words"] in render(plan, "md")
    if objective == "carbon":
        return
    problem = resolve_document(BASE)
    share = terms_of(problem, problem.sites[0], problem.offers[0])[0].charges.share
    place = next(i for i, offer in enumerate(OFFERS) if offer["system"] == row["system"])
    price = float(OFFERS[place]["price"].split()[0])
    for part, comes in ((0.9, False), (1.1, True)):
        lower = (f"offers[{place}].price", f"{price - part * row['margin'] / share:.2f} USD")
        cheaper = planner.solve(spec(lower, demand))
        count = {r["system"]: r["count"] for r in cheaper["fleet"]}
        # one of either may still fill up the last fraction of a system
        assert (
            (count.get(row["system"], 0) > 1) == (count.get(row["system"], 0) > count.get(used["system"], 0)) == comes
        ), part


def test_a_site_where_nothing_else_is_offered_says_so():
    plan = planner.solve(spec(("offers", OFFERS[:1])))
    (row,) = plan["runner_up"]
    assert row["system"] is row["margin"] is None and "all" in row["words"]


def test_the_report_says_that_integers_are_fixed():
    plan = planner.solve(
        spec(
            ("sites[0].power", "1.4 MW"),
            ("offers", [*OFFERS, {"system": "DGX H200", "how": "buy", "price": "2000000 USD"}]),
        )
    )
    for form in ("table", "md"):
        text = " ".join(render(plan, form).split())
        assert "every integer is fixed" in text and "USD per kW" in text


def test_a_binding_limit_is_worth_something_in_words():
    """The sentence states the marginal value of the row, over the horizon and a year."""
    plan = planner.solve(spec(("sites[0].power", "1.4 MW"), ("horizon", {"years": 2})))
    row = row_of(plan, "sites[0].power")
    worth = -row["marginal_value_divisible"] * 1e6
    for form in ("table", "md"):
        text = " ".join(render(plan, form).split())
        assert (
            f"The next MW of power in us-texas is worth {whole(worth)} USD over the horizon ({whole(worth / 2)} a year) where systems may be added"
            in text
        )
    free = planner.solve(spec(("sites[0].power", "20 MW")))
    assert "next MW" not in render(free, "table")


def test_one_more_system_is_worth_throughput_in_words():
    plan = planner.solve(spec(("objective", {"maximise": "throughput"}), ("offers", [OFFERS[1] | {"supply": 150}])))
    worth = row_of(plan, "offers[0].supply")["marginal_value_divisible"]
    text = " ".join(render(plan, "md").split())
    assert (
        worth > 0
        and f"One more DGX H100 (buy) is worth {worth:.3g} of the factor on demand where systems may be added" in text
    )


# -- plans found slot by slot, too large for the program around them ----------------------------------------------------

HOURS = [0.4] * 8 + [1.6] * 8 + [1.0] * 8
BY_SLOT = (
    ("solver", {"gap": 1e-2, "time_limit": "30 s", "method": "decomposed"}),
    ("workloads[0].demand.profile", HOURS),
    ("workloads[0].origins", [{"region": r, "share": 0.5} for r in ("us-texas", "us-california")]),
    ("sites", [{"region": "us-texas"}, {"region": "us-california"}]),
)
# limit -> (its place, further edits)
LIMITED = {
    "power": ("sites[0].power", (("sites[0].power", "1 MW"), ("sites[1].power", "1 MW"))),
    "supply": ("offers[1].supply", (("offers[1].supply", 150),)),
    "capital": ("limits.capital", (("limits.capital", "60M USD"), *SLIDES["capital"][4])),
}


def by_the_bound(monkeypatch, *edits):
    monkeypatch.setattr("planner.solving.marginal_values.pays_off", lambda data: True)
    return planner.solve(spec(*BY_SLOT, *edits))


@pytest.mark.parametrize("limit", LIMITED)
def test_a_plan_found_slot_by_slot_has_the_worth_of_its_limits_from_the_bound(limit, monkeypatch):
    """The bound takes choices in fractions, so its prices are near those of the program around the plan, and no more."""
    path, edits = LIMITED[limit]
    around = row_of(planner.solve(spec(*BY_SLOT, *edits)), path)
    plan = by_the_bound(monkeypatch, *edits)
    row = row_of(plan, path)
    assert around["note"] == "" and row["note"] == BY_THE_BOUND and row["marginal_unit"] == around["marginal_unit"]
    assert (
        2 * around["marginal_value_divisible"]
        < row["marginal_value_divisible"]
        < 0.5 * around["marginal_value_divisible"]
        < 0
    )
    assert verify_plan(plan) == [] and "as the bound has it" in " ".join(render(plan, "md").split())


def test_what_the_bound_says_of_limits_is_held_against_the_plan(monkeypatch):
    plan = by_the_bound(monkeypatch, ("sites[0].power", "1.12 MW"), ("sites[1].power", "1.12 MW"))
    # at one site at least, whole systems leave some power unused
    path, unused = max(
        ((row["path"], row["slack"]) for row in plan["limits"] if row["path"].endswith(".power")),
        key=lambda row: row[1],
    )
    assert unused > 0
    between = plan.objective["value"] - plan["bound_divisible"]
    assert plan["bound_divisible"] <= plan["bound"] <= plan.objective["value"]
    for price in (-1.01 * between / unused, 1.0):
        wrong = copy.deepcopy(dict(plan.document))
        row_of(wrong, path)["marginal_value_divisible"] = price
        assert any(finding.path.startswith("limits") for finding in verify_plan(Plan(wrong))), price
    for divisible in (None, 1.01 * plan["bound"]):
        wrong = {**plan.document, "bound_divisible": divisible}
        assert any(finding.path == "bound_divisible" for finding in verify_plan(Plan(wrong))), divisible


def test_with_a_job_power_is_priced_by_the_bound(monkeypatch):
    job = {
        "name": "run",
        "kind": "training",
        "architecture": "Llama-3.2-1B",
        "tokens": "40B",
        "start": "10 d",
        "deadline": "100 d",
    }
    plan = by_the_bound(monkeypatch, *LIMITED["power"][1], ("workloads", [*spec(*BY_SLOT)["workloads"], job]))
    rows = [row for row in plan["limits"] if row["path"].endswith(".power")]
    assert plan.has_answer and verify_plan(plan) == []
    assert all(row["note"] == BY_THE_BOUND for row in rows)
    assert all(row["marginal_value_divisible"] < 0 for row in rows)


def test_prices_that_do_not_come_in_time_are_not_told(monkeypatch):
    """No other word is said of them than that: neither that nothing fits, nor a margin of some of the ways only."""
    monkeypatch.setattr(
        "planner.solving.marginal_values.compute_marginal_values",
        lambda *given: compute_marginal_values(*given[:-1], dataclasses.replace(given[-1], time_limit_s=0.0)),
    )
    plan = planner.solve(
        spec(
            ("sites[0].power", "1.4 MW"),
            ("offers", [*OFFERS, {"system": "DGX H200", "how": "buy", "price": "2000000 USD"}]),
        )
    )
    row = row_of(plan, "sites[0].power")
    assert row["marginal_value_divisible"] is None and row["note"] == TIME_NOTE
    assert {row["words"] for row in plan["runner_up"]} <= {TIME_NOTE, "all systems that are offered there are in use"}
    assert any(row["words"] == TIME_NOTE for row in plan["runner_up"]) and verify_plan(plan) == []


def test_of_rivals_the_least_entry_is_what_all_of_them_would_say():
    """Rivals that are dearer by their reduced costs are passed over; the least margin of each site is that of all asked one by one."""
    document = spec(
        (
            "offers",
            [
                *OFFERS,
                {"system": "DGX H200", "how": "reserved"},
                {"system": "AWS p5.48xlarge", "how": "on_demand", "price": "60 USD/h"},
            ],
        )
    )
    problem, options = (
        resolve_document(document),
        Options(gap=1e-4, time_limit_s=20.0, presolve=False),
    )  # which may put all of it on rows
    form = formulate(problem, find_candidates(problem))
    data = form.data.divisible()
    solution = solve(data, options)
    ways = [
        [u for u, (k, _) in enumerate(form.holdings) if form.fleet_options[k].offer is offer]
        for offer in problem.offers
    ]
    ways = [way for way in ways if way and solution.values["n"][way].max() < 0.5]
    rivals = ["us-texas"] * len(ways)
    asked = (
        data,
        solution.values,
        np.array([form.fleet_options[k].largest for k, _ in form.holdings]),
        ways,
        options,
    )
    every, some = (
        marginal_values(*asked).entries,
        marginal_values(*asked, rivals=rivals, program=solution.program_of(data)).entries,
    )
    assert sum(entry is not None for entry in some) < sum(entry is not None for entry in every)
    least = lambda entries: min(entry for entry in entries if entry is not None)
    assert least(some) == pytest.approx(least(every), rel=1e-6, abs=1e-9 * solution.value)
    again = build(data)
    assert (solution.program_of(data).column_count, solution.program_of(data).row_count) == (
        again.column_count,
        again.row_count,
    )  # nothing was added to it
