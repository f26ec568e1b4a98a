"""Answers to quotes equal plans solved alone with and without the offer, at the price and on both sides of each threshold."""

from __future__ import annotations

import argparse
import copy
import dataclasses
import json
import math
import random

import pytest

import planner
from planner.cli.main import main
from planner.cli.studies import print_study
from planner.errors import SpecError
from planner.messages import translated
from planner.studies.quotes.answer import LEAVE, NEEDED, NO_PLAN, OPEN, TAKE, UNPROVEN, QuoteAnswers
from planner.studies.quotes.study import changes_between, held_at_once, quote, saved, verdict_on
from planner.studies.quotes.threshold import Trial
from tests.conftest import ALL_CASES

CASES = 50 if ALL_CASES else 1
WORDS = "DGX H100 reserved 1y at {price} USD/chip/h in us-virginia, {count}"


@pytest.fixture(scope="module")
def small(tiny):
    """`small(rate)`: a service of so many requests per second with divisible replicas, which takes the least time."""

    def spec(rate=300, **changes):
        stated = tiny(**changes)
        stated["workloads"][0]["demand"] = {"requests_per_s": rate}
        stated["solver"] = {"gap": 1e-6, "replicas": "divisible", **changes.get("solver", {})}
        return stated

    return spec


@pytest.fixture(scope="module")
def by_hand(small):
    """Rent at 1.10 USD per chip and hour beside one that is too dear, without discount."""
    spec = small(horizon={"years": 1, "discount_rate": 0})
    dear = "DGX H100 on demand at 9 USD/chip/h"
    return planner.solve(spec), quote(spec, [dear, WORDS.format(price="1.10", count="400 chips")])


def alone(spec, *offers, **edits):
    """Solve a spec with further offers, by the library's `solve`."""
    stated = copy.deepcopy(spec)
    stated["offers"] = [*stated["offers"], *offers]
    plan = planner.solve({**stated, **edits})
    place = f"offers[{len(stated['offers']) - 1}]"
    return plan, sum(row["count"] for row in plan.fleet if row["offer"] == place)


@pytest.mark.parametrize("case", range(CASES))
def test_verdict_and_threshold_are_those_of_plans_solved_alone(tiny, case):
    """Fifty specs by their number: rate, replicas, prices, ways and counts differ."""
    draw = random.Random(case)
    spec = tiny()
    spec["workloads"][0]["demand"] = {"requests_per_s": draw.randint(200, 400 + 100 * case)}
    spec["offers"] = [{"system": "DGX H100", "how": "buy", "price": f"{draw.randint(150, 400)}000 USD"}]
    if draw.random() < 0.4:
        spec["offers"].append({"system": "DGX H100", "how": "on_demand", "price": f"{draw.randint(20, 60)} USD/h"})
    spec["solver"] = {"gap": draw.choice((1e-6, 1e-3)), "replicas": draw.choice(("divisible", "divisible", "auto"))}
    if draw.random() < 0.3:
        spec["horizon"] = {"years": 2}
    how = draw.choice(("reserved", "reserved", "on_demand", "buy"))
    amount = float(draw.randint(120, 420) * 1000) if how == "buy" else draw.randint(6, 60) / 1.0
    most, exact = draw.randint(1, 6), draw.random() < 0.3 and how != "on_demand"
    unit = "USD" if how == "buy" else "USD/h"
    way = {"buy": "to buy", "reserved": "reserved 1y", "on_demand": "on demand"}[how]
    found = quote(
        spec, f"DGX H100 {way} at {amount} {unit} anywhere, {'exactly' if exact else 'at most'} {most} systems"
    )
    (answer,) = found.found

    def offer(price):
        terms = {"term": "1 year"} if how == "reserved" else {}
        least = {"least": most} if exact else {}
        return {"system": "DGX H100", "how": how, "price": f"{price!r} {unit}", "supply": most, **terms, **least}

    without, _ = alone(spec)
    plan, taken = alone(spec, offer(amount))
    low, high = without["bound"] - plan.value, without.value - plan["bound"]
    assert answer.saving.low <= high + 1e-6 * without.value and low <= answer.saving.high + 1e-6 * without.value
    if answer.verdict == TAKE:
        assert answer.taken and high > 0
    elif answer.verdict == LEAVE:
        assert low <= 1e-6 * without.value
    if spec["solver"]["gap"] == 1e-6 and without.gap < 1e-5 and plan.gap < 1e-5:
        better = without.value - plan.value > 1e-5 * without.value
        assert (answer.verdict == TAKE) == (better and taken > 0)
    first = answer.first
    assert first is not None
    if first.low > 0:  # certainly taken below: solved alone, the plan beats the bound without the quote
        below, taken = alone(spec, offer(first.low * 0.99))
        assert below.value <= without.value * (1 + 1e-9) and below["bound"] <= without["bound"] * (1 + 1e-6)
        assert below.value < without.value - 1e-7 * without.value or below.gap > 1e-6
        if below.gap < 1e-6:
            assert taken
    if math.isfinite(first.high):  # not taken from here on: nothing is better than the plan without
        above, _ = alone(spec, offer(first.high * 1.01 + 1e-3))
        assert above.value >= without["bound"] - 1e-6 * without.value
        assert above["bound"] <= without.value * (1 + 1e-9)
    if first.at is not None:
        assert first.low <= first.at <= first.high


def test_a_quote_by_hand(by_hand):
    """Bought systems make room for rented ones at 8 * 1.10 USD * 8760 h each; licences are due on both."""
    before, found = by_hand
    answer, other = found.found
    held = sum(row["count"] for row in before.fleet)
    assert answer.verdict == TAKE and (answer.taken, answer.most) == (held, 50) and other.verdict == LEAVE
    assert answer.saving.found == pytest.approx(before.value - held * 8 * 1.1 * 8760, rel=1e-6)
    assert answer.first is not None and answer.first.at == pytest.approx(before.value / held / 8 / 8760, rel=1e-4)
    assert [change.row() for change in answer.changes] == [
        {"site": "us-virginia", "system": "DGX H100", "how": "buy", "before": held, "after": 0, "change": -held}
    ]
    assert answer.full is not None and answer.full.at is None and found.status == "optimal"
    assert any("Take" in line for line in found.words) and any("below the least" in line for line in found.words)
    assert found.together is not None and found.together.taken == (held, 0)


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_every_format_names_the_quotes(by_hand, capsys, form):
    print_study(argparse.Namespace(format=form, output=None), by_hand[1])
    printed = capsys.readouterr().out
    assert "DGX H100 reserved for 1 year at 1.1 USD/chip/h" in printed and "on demand" in printed


def test_the_answer_is_said_in_chinese(by_hand):
    answer = by_hand[1]
    assert "接受" in translated(answer.words[2], "zh") and "低于" in translated(answer.words[3], "zh")
    heads = [translated(head, "zh") for head in answer.sections[0][1][0]]
    assert heads[:2] == ["报价", "结论"]


def test_all_or_nothing_is_taken_whole_or_left(small):
    """Six systems where three are enough: at half the price of three they cost as much."""
    spec = small(3000)
    held = sum(row["count"] for row in planner.solve(spec).fleet)
    one = quote(spec, WORDS.format(price="2", count=f"exactly {8 * held} chips")).found[0]
    assert one.first.at is not None and one.full == one.first
    many = quote(spec, WORDS.format(price=str(0.9 * one.first.at), count=f"exactly {2 * held} systems")).found[0]
    assert many.verdict == LEAVE and many.taken == 0 and many.first.at < one.first.at
    cheap = quote(spec, WORDS.format(price=str(0.9 * many.first.at), count=f"exactly {2 * held} systems")).found[0]
    assert cheap.verdict == TAKE and cheap.taken == 2 * held


def test_a_plan_counts_with_its_stored_objective_and_bound(small):
    spec = small()
    plan = planner.solve(spec)
    words = WORDS.format(price="1.10", count="400 chips")
    one, other = quote(plan, words), quote(spec, words)
    assert one.found[0].saving.found == pytest.approx(other.found[0].saving.found)
    moved = copy.deepcopy(dict(plan.document))
    moved["objective"] = {**moved["objective"], "value": plan.value - 1000.0}
    moved["bound"] = plan["bound"] - 1000.0
    shifted = quote(moved, words)
    assert shifted.base.plan == plan.value - 1000.0
    assert shifted.found[0].saving.found == pytest.approx(one.found[0].saving.found - 1000.0)


def test_a_plan_of_another_catalog_is_solved_anew_and_says_so(small):
    plan = planner.solve(small())
    other = {**plan.document, "catalog_digest": "0" * 64, "objective": {**plan.objective, "value": 1.0}, "bound": 1.0}
    found = quote(other, WORDS.format(price="9", count="8 chips"))
    assert found.renewed and "solved anew" in found.words[0] and found.base.plan == pytest.approx(plan.value)


def test_sessions_are_refused_with_the_remedy(small):
    spec = small()
    spec["workloads"][0]["demand"] = {"sessions": 30}
    with pytest.raises(SpecError, match="tasks_per_s"):
        quote(spec, WORDS.format(price="2", count="8 chips"))


def test_a_search_that_ended_without_a_plan_leaves_the_quote_open(by_hand):
    """Without a plan and a bound with the quote, nothing is known of it, and no amount is printed as infinite."""
    without, nothing = Trial(math.nan, 100.0, 98.0), Trial(1.0, math.inf, -math.inf)
    saving = saved(without, nothing)
    assert verdict_on(without, nothing, saving) == OPEN and (saving.found, saving.low, saving.high) == (
        0.0,
        0.0,
        math.inf,
    )
    found = by_hand[1]
    ended = dataclasses.replace(found.found[0], verdict=OPEN, saving=saving, taken=0, first=None, full=None, changes=())
    said = " ".join(QuoteAnswers(found.base, found.unit, (ended,)).words)
    assert "--time-limit" in said and "inf " not in said and "Leave" not in said


def test_several_are_ranked_and_taken_together(small):
    prices = ("1.50", "1.10", "9")
    found = quote(small(3000), [WORDS.format(price=price, count="8 chips") for price in prices])
    assert [each.quote.amount for each in found.found] == [1.1, 1.5, 9.0]
    assert [each.verdict for each in found.found] == [TAKE, TAKE, LEAVE]
    assert found.together.taken == (1, 1, 0)
    assert found.together.saving.found >= max(each.saving.found for each in found.found)
    assert len(found.rows) == 3 and found.document["together"]["taken"][0]["taken"] == 1


def test_catalog_offers_stay_where_a_spec_states_none(small):
    """A spec without offers is planned with those of the catalog, and they stay beside a quote."""
    spec = {key: value for key, value in small().items() if key != "offers"}
    plan = planner.solve(spec)
    dear = quote(plan, WORDS.format(price="90", count="400 chips"))
    assert dear.found[0].verdict == LEAVE and dear.base.start == pytest.approx(plan.value)
    assert dear.found[0].saving.high <= 1e-5 * plan.value


def test_without_a_plan_the_quote_is_needed_or_no_help(small):
    spec = small(3000, offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD", "supply": 1}])
    assert planner.solve(spec).status == "infeasible"
    found = quote(spec, WORDS.format(price="2", count="400 chips"))
    assert found.found[0].verdict == NEEDED and found.found[0].taken and found.found[0].first is None
    assert "no plan without it" in " ".join(found.words)
    none = quote(spec, WORDS.format(price="2", count="8 chips"))
    assert none.found[0].verdict == NO_PLAN and none.status == "infeasible"


def test_where_money_is_not_the_objective_no_price_is_a_threshold(small):
    spec = small(3000, objective={"maximise": "throughput", "workload": "chat"}, limits={"budget": "700000 USD"})
    found = quote(spec, WORDS.format(price="1.10", count="400 chips"))
    (answer,) = found.found
    assert answer.first is None and answer.saving.found > 0 and answer.verdict in (TAKE, UNPROVEN)
    assert "no price is a threshold" in " ".join(found.words)


def test_what_does_not_fit_the_spec_is_refused_all_at_once(small):
    with pytest.raises(SpecError) as refused:
        quote(
            small(),
            [
                "DGX H100 reserved 1y at 2 USD/chip/h in us-texas",
                "DGX H200 to buy at 300000 USD",
                "DGX H100 reserved for 5 days at 2 USD/chip/h",
            ],
        )
    assert {issue.path for issue in refused.value.problems} == {
        "quotes[0].regions",
        "quotes[1].system",
        "quotes[2].term",
    }
    with pytest.raises(SpecError, match=r"quotes\[0\]"):
        quote(small(), "something else")


def row(count, offer="offers[0]", windows=None):
    """A row of a fleet."""
    return {"site": "a", "system": "S", "how": "buy", "count": count, "offer": offer} | (
        {"windows": windows} if windows else {}
    )


def test_systems_are_counted_at_once():
    """Three throughout with two in windows 0 and 1 and four in window 2 are seven at once; those of the quote count apart."""
    before = planner.Plan.of({"fleet": [row(3)]})
    after = planner.Plan.of(
        {"fleet": [row(3, windows=[0, 2]), row(2, windows=[0, 1]), row(4, windows=[2, 2]), row(9, "offers[1]")]}
    )
    assert held_at_once(after, "offers[1]") == {("a", "S", "buy"): 7}
    (change,) = changes_between(before, after, "offers[1]")
    assert (change.before, change.after) == (3, 7)
    assert changes_between(before, before, "") == ()


def test_the_command_takes_a_plan_and_a_file(tmp_path, capsys, small):
    plan, more = tmp_path / "plan.json", tmp_path / "quotes.json"
    planner.solve(small()).save(plan)
    more.write_text(
        json.dumps({"system": "DGX H100", "how": "reserved", "price": "1 USD/chip/h", "at_most": "8 chips"})
    )
    assert main(["quote", str(plan), "--quotes", str(more), "-q", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["quotes"][0]["verdict"] == "take" and found["together"] is None
    assert main(["quote", str(plan), "nonsense", "-q"]) == 3
    assert "quotes[0]" in capsys.readouterr().err


def test_the_command_solves_a_plan_anew_with_other_figures(tmp_path, capsys, small):
    plan = tmp_path / "plan.json"
    planner.solve(small()).save(plan)
    words = WORDS.format(price="1", count="8 chips")
    rate = "workloads[0].demand.requests_per_s=900"
    assert main(["quote", str(plan), words, "-q", "--format", "json", "--set", rate]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["quotes"][0]["verdict"] == "take" and found["base"]["plan"] > planner.load_plan(plan).value
