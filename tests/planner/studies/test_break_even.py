"""Where buying beats renting: the figures are those of plans, and the break-even moves the right way."""

from __future__ import annotations

import json

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID
from planner.studies.break_even import break_even

SYSTEM = "DGX H100"


def spec(**changes):
    return {
        "name": "flat",
        "workloads": [{
            "name": "chat", "kind": "serving", "architecture": "llama-3.1-8b", "demand": {"requests_per_s": 3000},
            "lengths": {"input": 1000, "output": 250}, "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}}, "precision": ["fp8"], "disaggregation": "never",
        }],
        "sites": [{"region": "us-virginia", "systems": [SYSTEM], "topologies": ["rail-optimised"]}],
        "offers": [{"system": SYSTEM, "how": how} for how in ("buy", "reserved", "on_demand")], **changes,
    }  # fmt: skip


def years_of(how="reserved", level="typical", **changes):
    found = break_even(spec(**changes), span=(1, 10)).point(SYSTEM, how, level)
    return 99.0 if found is None else found


@pytest.fixture(scope="module")
def found():
    return break_even(spec())


def test_a_dgx_h100_at_a_flat_load_is_rented_for_one_year_and_bought_for_five(found):
    ratio = {b.years: b.ratio for b in found.of(SYSTEM, "reserved")}
    assert list(ratio) == [1, 2, 3, 4, 5, 6] and ratio[1] > 1 > ratio[5]
    assert 1.5 < found.point(SYSTEM, "reserved") < 4


@pytest.mark.parametrize("years", [1, 3, 6])
def test_the_balance_is_that_of_plans(found, years):
    """All but the energy above idle is the same per system; that is of the operating point in the plan, and typical here."""
    costs = {}
    for how in ("buy", "reserved"):
        plan = planner.solve(spec(horizon={"years": years}, offers=[{"system": SYSTEM, "how": how}]))
        (row,) = plan["fleet"]
        lines = {name: amount for name, amount in plan["costs"].items() if name not in ("energy", "weights", "egress")}
        costs[how] = sum(lines.values()) / row["count"]
    (balance,) = (b for b in found.of(SYSTEM, "reserved") if b.years == years)
    assert balance.rented == pytest.approx(costs["reserved"], rel=1e-9)
    energy = balance.bought - costs["buy"]
    assert 0 < energy < 0.06 * balance.bought
    half = break_even(spec(), span=(years, years + 1), utilisation=0.5).of(SYSTEM, "reserved")[0]
    assert half.bought < balance.bought and half.rented == balance.rented


def test_buying_pays_earlier_the_more_systems_are_worth_later():
    more = [{"age": "1 year", "fraction": 0.8}, {"age": "5 years", "fraction": 0.4}]
    less = [{"age": "1 year", "fraction": 0.3}, {"age": "5 years", "fraction": 0}]
    early, usual, late = (
        years_of(economics={"residual": more}), years_of(), years_of(economics={"residual": less}),
    )  # fmt: skip
    assert early < usual < late


def test_buying_pays_later_the_dearer_money_is():
    cheap, usual, dear = (years_of(horizon={"discount_rate": rate}) for rate in (0.0, 0.08, 0.25))
    assert cheap < usual < dear


def test_buying_pays_earlier_the_more_of_the_time_systems_are_in_use():
    """What is rented on demand is paid while it is needed: one in use half the time has to be bought for longer."""
    full, most, half = (
        break_even(spec(), span=(1, 10), utilisation=share).point(SYSTEM, "on_demand") or 99.0
        for share in (1.0, 0.75, 0.5)
    )
    assert full < most < half


@pytest.mark.parametrize("key", ["maintenance", "spare_parts"])
def test_buying_pays_later_the_more_it_costs_to_own(key):
    assert years_of(economics={key: 0}) < years_of(economics={key: 0.1})


@pytest.mark.parametrize(
    ("key", "amount"),
    [
        ("staff_per_power", "3000 USD/kW-year"),
        ("staff_per_system", "9000 USD/year"),
    ],
)
def test_buying_pays_later_the_more_people_cost(key, amount):
    assert years_of() < years_of(economics={key: amount})


@pytest.mark.parametrize("key", ["software_per_chip", "software_per_system"])
def test_licences_are_due_either_way_and_move_nothing(key):
    assert years_of() == pytest.approx(years_of(economics={key: "9000 USD/year"}))


def test_the_interval_holds_the_typical_point(found):
    for row in found.points:
        low, middle, high = ((99.0 if row[key] is None else row[key]) for key in ("earliest", "years", "latest"))
        assert low <= middle <= high and low < high
    for balance in found.of(SYSTEM, "reserved"):
        best, worst = (
            next(b for b in found.of(SYSTEM, "reserved", level) if b.years == balance.years)
            for level in ("for buying", "for renting")
        )
        assert best.ratio < balance.ratio < worst.ratio


def test_the_share_of_the_time_from_which_buying_pays():
    """Linear in the share on both sides, so that two shares give the point exactly."""
    found = break_even(spec(horizon={"years": 3}), "utilisation", points=10)
    assert break_even(spec(horizon={"years": 3}), "utilisation", points=2).points == found.points
    assert found.pairs == [(SYSTEM, "on_demand")]  # the rent of what is reserved is due at all hours
    first, *_, last = found.of(SYSTEM, "on_demand")
    slope = (last.bought - last.rented - first.bought + first.rented) / (last.utilisation - first.utilisation)
    exact = first.utilisation - (first.bought - first.rented) / slope
    assert found.point(SYSTEM, "on_demand") == pytest.approx(exact, rel=1e-12)
    longer = break_even(spec(horizon={"years": 5}), "utilisation", points=10)
    assert longer.point(SYSTEM, "on_demand") < found.point(SYSTEM, "on_demand")


def test_what_is_not_offered_both_ways_is_left_out():
    document = spec(sites=[{"region": "us-virginia"}])
    document["offers"] += [{"system": "DGX B200", "how": "buy"}, {"system": "MI300X 8x OAM node", "how": "on_demand"}]
    found = break_even(document, span=(1, 2))
    assert {name for name, _ in found.left_out} == {"DGX B200", "MI300X 8x OAM node"}
    assert {system for system, _ in found.pairs} == {SYSTEM}


def test_what_only_plans_need_plays_no_part(found):
    """Phases, training with a deadline, limits, and overrides of figures that only the workload reads."""
    document = spec(
        phases=[{"name": "first", "start": "0 d"}, {"name": "second", "start": "4 years"}],
        horizon={"years": 5},
        limits={"budget": "1 USD"},
        overrides={"architectures/Qwen3-8B/layers": {"value": 30, "note": "of the job"}},
    )
    document["workloads"].append(
        {"name": "run", "kind": "training", "architecture": "Qwen3-8B", "tokens": "1T", "deadline": "4 years"}
    )
    document["offers"][0]["supply_by_phase"] = {"second": 3}
    assert break_even(document).rows == found.rows


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"span": (0, 3)}, "--span"),
        ({"span": (1.5, 3)}, "--span"),
        ({"span": (1, 40)}, "--span"),
        ({"utilisation": 0.0}, "--utilisation"),
        ({"systems": 0}, "--systems"),
        ({"against": "utilisation", "span": (0.5, 1.5)}, "--span"),
        ({"against": "utilisation", "points": 1}, "--points"),
    ],
)
def test_a_wrong_range_is_refused(options, path):
    with pytest.raises(SpecError) as error:
        break_even(spec(), **options)
    assert [problem.path for problem in error.value.problems] == [path]


def test_the_command(tmp_path, capsys):
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(spec()))
    assert main(["frontier", str(path), "--against", "horizon", "--span", "1:3"]) == 0
    out = capsys.readouterr().out
    assert "Buying DGX H100 costs less than renting it (reserved) from" in out and "Break-even" in out
    assert main(["frontier", str(path), "--against", "utilisation", "--format", "json", "-q"]) == 0
    assert json.loads(capsys.readouterr().out)["against"] == "utilisation"
    assert main(["frontier", str(path), "--against", "horizon", "--format", "csv"]) == 0
    assert "ratio_low" in capsys.readouterr().out
    assert main(["frontier", str(path), "--against", "horizon", "--plans", str(tmp_path)]) == INVALID
    assert "solves no plans" in capsys.readouterr().err


# -- the table of docs/owning.md ------------------------------------------------------------------------------------


def test_the_page_shows_what_the_commands_print(root):
    spec = root / "examples/owning.json"
    horizon, shares = break_even(spec, span=(1, 8)), break_even(spec, "utilisation")

    def years(value):
        return "never" if value is None else f"{value:.2f}"

    told = []
    for row in horizon.points:
        pair = row["system"], row["how"]
        ratio = {b.years: f"{b.ratio:.2f}" for b in horizon.of(*pair)}
        share = shares.point(*pair)
        told.append(
            [
                pair[0],
                pair[1].replace("_", " "),
                years(row["years"]),
                f"{years(row['earliest'])}, {years(row['latest'])}",
                f"{ratio[1]}, {ratio[3]}, {ratio[5]}",
                "" if share is None else f"{100 * share:.0f} %",
            ]
        )
    page = (root / "docs/owning.md").read_text(encoding="utf-8")
    table = page.partition("test_break_even.py -->")[2].partition("<!-- end -->")[0].strip().splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table] == told
