"""Why a plan changed: amounts by hand, the same by new plans, and a sum that is the difference."""

from __future__ import annotations

import json
import math

import pytest

import planner
from planner.cli.main import main
from planner.errors import SpecError
from planner.exit_codes import INVALID, OK
from planner.plan import load_plan, parse_plan
from planner.spec.document import edited
from planner.studies.against.causes import HARDWARE, MODELS, PRICES, PRODUCT, SPEC, why

OFFER = [{"system": "DGX H100", "how": "buy"}]  # at the catalog's price, 310,000 USD
OVERRIDES = {
    "offers/DGX H100, buy/price": {"value": "340000 USD", "note": "of the test"},
    "systems/DGX H100/power_w": {"value": "11000 W", "note": "of the test"},
}


@pytest.fixture(scope="module")
def first(tiny):
    return planner.solve(tiny(offers=OFFER))


@pytest.fixture(scope="module")
def second(tiny):
    return planner.solve(edited(tiny(offers=OFFER, overrides=OVERRIDES), (("workloads[0].demand.requests_per_s", 45),)))


@pytest.fixture(scope="module")
def found(first, second):
    return why(first, second)


def with_value(plan, **more: float):
    """The same plan at other values."""
    document = json.loads(plan.to_json())
    document["objective"]["value"] += more["value"]
    return parse_plan(json.dumps(document))


def test_the_amounts_add_up_to_the_difference(found, first, second):
    assert math.fsum(cause.amount for cause in found.causes) == pytest.approx(second.value - first.value, abs=1e-9)
    assert [cause.kind for cause in found.causes] == [PRICES, HARDWARE, SPEC, PRODUCT]
    assert [cause.changes for cause in found.causes] == [1, 1, 1, 0]
    assert found.start == pytest.approx(first.value, rel=1e-9)
    assert abs(found.causes[-1].amount) < 1e-6 * first.value  # one release made both


def test_the_amount_of_a_price_is_what_the_same_fleet_costs_more(found, first):
    """340,000 in place of 310,000 USD for the one system: its capital, maintenance and spare parts by 340/310."""
    moving = sum(line["amount"] for line in first["cost_lines"] if line["component"] in ("systems", "maintenance", "spare parts"))  # fmt: skip
    assert found.causes[0].amount == pytest.approx(moving * 30.0 / 310.0, rel=1e-6)


def test_the_next_amount_is_the_difference_of_two_plans(found, tiny):
    prices = {path: OVERRIDES[path] for path in list(OVERRIDES)[:1]}
    before, after = (planner.solve(tiny(offers=OFFER, overrides=each)).value for each in (prices, OVERRIDES))
    assert found.causes[1].amount == pytest.approx(after - before, rel=1e-6)


def test_what_no_figure_states_is_of_the_product(first):
    dearer = with_value(first, value=1234.5)
    found = why(first, dearer)
    assert [(cause.kind, cause.amount) for cause in found.causes] == [(PRODUCT, pytest.approx(1234.5))]
    assert found.start is None and found.changes == () and "+1,234 USD" in found.words[1]


def test_figures_of_an_old_release_reproduce_its_plan(root):
    """The plan that a former release stored comes out again from the figures that it recorded, before any is changed."""
    old = load_plan(root / "tests/golden/plan_of_schema_3.json")
    document = json.loads(old.to_json())
    row = next(row for row in document["provenance"] if row["path"] == "constants/serving.memory/value" or row["path"].startswith("constants/serving."))  # fmt: skip
    row["value"] *= 1.5
    found = why(old, parse_plan(json.dumps(document)))
    assert found.start == pytest.approx(old.value, rel=1e-6)
    assert [cause.kind for cause in found.causes] == [MODELS, PRODUCT]
    assert math.fsum(cause.amount for cause in found.causes) == pytest.approx(0.0, abs=1e-9 * old.value)


def test_plans_that_do_not_compare_are_refused(first, tiny):
    none = planner.solve(tiny(limits={"budget": "1 USD"}))
    with pytest.raises(SpecError, match="no answer"):
        why(first, none)
    document = json.loads(first.to_json())
    document["objective"]["unit"] = "kg"
    with pytest.raises(SpecError, match="two objectives"):
        why(first, parse_plan(json.dumps(document)))


def test_without_time_all_is_of_the_product(first, second):
    found = why(first, second, total_s=0.0)
    assert [cause.kind for cause in found.causes] == [PRODUCT]
    assert found.causes[0].amount == pytest.approx(second.value - first.value)


def test_the_command_prints_the_causes(first, second, found, tmp_path, capsys):
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    first.save(paths[0]), second.save(paths[1])
    assert main(["compare", *paths, "--why", "-q"]) == OK
    printed = capsys.readouterr().out
    assert "By cause: prices of the catalog +14,003 USD" in printed and "offers/DGX H100, buy/price" in printed
    assert main(["compare", *paths, paths[0], "--why"]) == INVALID
    same = planner.compare(first, first, why=True)
    assert [(cause.kind, cause.amount) for cause in same.causes] == [(PRODUCT, 0.0)] and same.changes == ()
    assert [row["cause"] for row in found.rows] == [PRICES, HARDWARE, SPEC, PRODUCT]
    assert json.loads(json.dumps(found.document))["difference"] == found.difference
