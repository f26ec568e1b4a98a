"""Property tax and insurance of what is bought: a share of the price per year, or said to be absent."""

from __future__ import annotations

import pytest

from planner.resolve.resolver import resolve_document
from tests.plans.one_server import NOTHING_ELSE, SYSTEM, cost_of, question, solved, worth

LEVIES = {**NOTHING_ELSE, "levies": 0.015}


def test_levies_are_a_share_of_the_price_in_each_year():
    plan, without = solved(question(economics=LEVIES)), solved(question())
    by_hand = 0.015 * 300_000 * worth(3)
    assert plan["costs"]["levies"] == pytest.approx(by_hand)
    assert cost_of(plan) - cost_of(without) == pytest.approx(by_hand)
    assert "levies" not in without["costs"]


def test_phases_pay_levies_as_they_fall_due():
    phases = [{"name": "a", "start": "0 d", "budget": "9M USD"}, {"name": "b", "start": "2 years"}]
    paid = {}
    for name, economics in (("with", LEVIES), ("without", NOTHING_ELSE)):
        paid[name] = [row["paid"] for row in solved(question(economics=economics, phases=phases))["phases"]]
    more = [a - b for a, b in zip(paid["with"], paid["without"], strict=True)]
    assert more == pytest.approx([0.015 * 300_000 * 2, 0.015 * 300_000])


@pytest.mark.parametrize(
    ("how", "economics", "said"), [("buy", {}, True), ("buy", LEVIES, False), ("on_demand", {}, False)]
)
def test_a_plan_that_may_buy_says_that_none_are_counted(how, economics, said):
    price = "300000 USD" if how == "buy" else "15 USD/h"
    offers = [{"system": SYSTEM, "how": how, "price": price}]
    problem = resolve_document(question(offers=offers, economics=economics))
    assert any(note.message.code == "owning.no_levies" for note in problem.notes) == said
