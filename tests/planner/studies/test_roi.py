"""What a gain of utilisation is worth: the round figures that people quote, their arithmetic, and what a plan says of its own fleet."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import planner
from catalog.exchange import per_usd
from catalog.lookup import Catalog
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK
from planner.facts.prices import market
from planner.resolve.resolver import resolve_document
from planner.spec.document import edited
from planner.studies.roi import FIXED_COSTS, Fleet, market_rents, planned_fleet, returns, stated_fleet
from tests.conftest import few_of

TEN_THOUSAND = ("1B CNY/month", 10_000.0, None)


def test_ten_per_cent_of_a_billion_a_month_is_a_hundred_million():
    """10,000 chips at 1 billion CNY a month: 10 % more work is worth 100 million; with the same work, a fleet smaller by 1/11 saves less."""
    row = returns(stated_fleet(*TEN_THOUSAND), ["10%"]).rows[0]
    assert row["added_work"] == pytest.approx(100e6)
    assert row["smaller_fleet"] == pytest.approx(1e9 / 11) and row["chips_freed"] == pytest.approx(10_000 / 11)


def test_points_are_of_the_peak():
    fleet = stated_fleet("1B CNY/month", 10_000.0, 0.4)
    points, share = returns(fleet, ["4 points", "10%"]).rows
    assert {**points, "gain": ""} == {**share, "gain": ""} and points["mfu"] == pytest.approx(0.44)


def test_a_team_pays_from_its_break_even_on():
    fleet = stated_fleet(*TEN_THOUSAND)
    found = returns(fleet, team="50M CNY/month", baseline="1.2B CNY/month")
    added, smaller = found.break_even
    assert added == pytest.approx(0.05) and smaller == pytest.approx(1 / 19)
    at = returns(fleet, [f"{100 * smaller:.9f}%"], team="50M CNY/month", baseline="1.2B CNY/month").rows[0]
    assert at["net"] == pytest.approx(0, abs=1) and at["against_baseline"] == pytest.approx(0.2e9, rel=1e-6)
    assert returns(fleet, team="1B CNY/month").break_even is None  # no gain pays for it with the same work


@settings(max_examples=few_of(50), deadline=None, derandomize=True)
@given(cost=st.floats(1, 1e12), gain=st.floats(0.01, 90))
def test_both_readings_agree(cost, gain):
    """The smaller fleet does today's work at the cost per work that the added work has."""
    row = returns(Fleet(cost, "USD", 100.0, None, ""), [f"{gain:.6f}%"]).rows[0]
    assert (cost - row["smaller_fleet"]) * (1 + row["relative"]) == pytest.approx(cost)
    assert row["smaller_fleet"] < row["added_work"]


def test_a_plan_says_what_its_fleet_costs(small_plan):
    fleet = planned_fleet(small_plan)
    years = small_plan["spec"].get("horizon", {}).get("years", 1)
    rate = resolve_document(small_plan["spec"]).economics.discount_rate
    months = 12 * sum((1 + rate) ** -(year + 1) for year in range(years))
    paid = sum(
        amount
        for component, amount in small_plan["costs"].items()
        if component in ("systems", "fabric", "maintenance", "spare parts", "staff", "facility", "rent", "site")
    )
    assert fleet.cost == pytest.approx(paid / months) and fleet.chips == small_plan["totals"]["chips"]
    known = [row["mfu"] for row in small_plan["workloads"] if row["mfu"]]
    assert min(known) <= fleet.mfu <= max(known)


def test_a_constant_rent_is_what_a_month_costs(tiny):
    """A present value over three years divided by 36 months would be a seventh less."""
    rented = tiny(horizon={"years": 3}, offers=[{"system": "DGX H100", "how": "reserved", "price": "20 USD/h"}])
    plan = planner.solve(rented)
    (row,) = plan["fleet"]
    others = sum(plan["costs"].get(name, 0.0) for name in FIXED_COSTS if name != "rent")
    share = plan["costs"]["rent"] / (plan["costs"]["rent"] + others)
    assert planned_fleet(plan).cost * share == pytest.approx(row["count"] * 20 * 8760 / 12, rel=1e-3)


def test_a_fleet_for_less_work_costs_what_is_told(tiny):
    """Work that is done on 1/1.1 of the time needs the fleet of 1/1.1 of the demand: solved again, to whole systems."""
    document = edited(tiny(), (("workloads[0].demand.requests_per_s", 110_000),))
    now, less = (
        planned_fleet(planner.solve(edited(document, (("workloads[0].demand.requests_per_s", rate),))))
        for rate in (110_000, 100_000)
    )
    assert now.cost - less.cost == pytest.approx(returns(now, ["10%"]).rows[0]["smaller_fleet"], rel=0.05)


def test_the_command(tmp_path, capsys, small_plan):
    path = tmp_path / "plan.json"
    small_plan.save(path)
    assert main(["roi", str(path), "--gain", "2 points", "--team", "1000 USD/month"]) == 0
    assert "less the team, USD a month" in capsys.readouterr().out
    assert main(["roi", "--cost", "1B CNY/month", "--chips", "10000", "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["gain"] for row in document["gains"]] == ["1%", "2%", "5%", "10%"] and document["fleet"][
        "cost"
    ] == pytest.approx(1e9)
    for form in ("csv", "md", "table"):
        assert main(["roi", "--cost", "1B CNY/month", "--format", form]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        ([], "--cost"),
        (["--cost", "1B CNY"], "--cost"),
        (["--cost", "0 CNY/month"], "--cost"),
        (["--cost", "1B CNY/month", "--gain", "4 points"], "--gain"),
        (["--cost", "1B CNY/month", "--gain", "much"], "--gain"),
        (["--cost", "1B CNY/month", "--mfu", "0.4", "--gain", "70 points"], "--gain"),
        (["--cost", "1B CNY/month", "--mfu", "40"], "--mfu"),
        (["--cost", "1B CNY/month", "--chips", "0"], "--chips"),
        (["--cost", "1B CNY/month", "--team", "5M USD/month"], "--team"),
        (["--cost", "1B CNY/month", "--baseline", "5M CNY"], "--baseline"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_place(arguments, place, capsys):
    assert main(["roi", *arguments]) == 3
    assert capsys.readouterr().err.startswith(place)


def test_a_plan_without_systems_is_no_fleet(small_plan):
    with pytest.raises(SpecError, match="holds no systems"):
        planned_fleet(type(small_plan)({**small_plan.document, "cost_lines": []}))


def test_the_rent_is_held_against_the_market_first():
    """1 billion CNY a month for 10,000 chips are 100,000 a chip and month: 137 CNY an hour, beyond every rent of an H100."""
    catalog = Catalog.load()
    fleet = stated_fleet(*TEN_THOUSAND)
    rents = market_rents(fleet, "DGX H100", catalog)
    found = returns(fleet, ["10%"], rents=rents)
    assert "times the most that DGX H100 is known to rent for" in found.words[0]
    known = market(catalog, catalog.get("systems", "DGX H100"), "on_demand")
    hourly_cny = known.most * 3600 * per_usd(catalog, "CNY")
    assert rents[0].most == pytest.approx(hourly_cny * 24 * 365 / 12, rel=1e-3)
    assert rents[0].of_fleet == pytest.approx((rents[0].least * 1e4, rents[0].most * 1e4))
    assert found.document["market"][0]["fleet_most"] == rents[0].of_fleet[1]


@pytest.mark.parametrize(
    ("per_chip", "words"), [(1.0, "below what"), (20_000.0, "lies within"), (1e6, "times the most")]
)
def test_a_rent_lies_below_within_or_above_the_market(per_chip, words):
    fleet = stated_fleet(f"{per_chip * 100} CNY/month", 100.0, None)
    assert words in returns(fleet, ["1%"], rents=market_rents(fleet, "DGX H100", Catalog.load())).words[0]


def test_a_market_needs_chips_and_a_rent(capsys):
    for more in (
        ["--market", "DGX H100"],
        ["--chips", "8", "--market", "DGX H1000"],
        ["--chips", "8", "--market", "Atlas 800T A2"],
    ):
        assert main(["roi", "--cost", "1M CNY/month", *more]) == INVALID
        assert "--market" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["2.4 USD/GPU-hour", "2.4 USD/chip h", "2.4 USD / card / h", "2.4 USD/GPUs-hour"])
def test_a_rent_by_the_chip_is_that_of_all_chips(text):
    """2,048 chips at 2.4 USD an hour each are 4,915.2 USD an hour."""
    assert stated_fleet(text, 2048.0, 0.4).cost == pytest.approx(stated_fleet("4915.2 USD/h", 2048.0, 0.4).cost)
    with pytest.raises(SpecError, match="--chips"):
        stated_fleet(text, None, 0.4)


def test_a_share_may_be_stated_in_per_cent(capsys):
    for share in ("40%", "0.4"):
        assert main(["roi", "--cost", "1B CNY/month", "--chips", "10000", "--mfu", share, "--gain", "4 points"]) == OK
        assert "used to 40.0% of its peak" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main(["roi", "--cost", "1B CNY/month", "--chips", "10000", "--mfu", "a lot"])
    assert "a lot" in capsys.readouterr().err


def test_both_commands_state_the_rents_of_the_same_landlords():
    """The claim of a billion a month for 10,000 GPUs is judged by just the rents that `roi --market` states for the chip."""
    from planner.audit import audit

    judged = audit(only=["S6"]).one("Z02").finding
    fleet = stated_fleet("1B CNY/month", 10_000, None)
    *_, rent = market_rents(fleet, "DGX H100", Catalog.load())
    assert (rent.system, rent.landlords) == ("H100 SXM5 80GB", 5)
    assert (rent.middle, rent.least, rent.most) == pytest.approx((judged.ours, judged.low, judged.high), rel=1e-9)
    said = returns(fleet, ["1%"], rents=(rent,)).words[0]
    assert all(f"{value:,.0f}" in said for value in (rent.least, rent.most, rent.middle))
