"""Systems whose offer states a time of delivery are ordered that time before they come: a plan made again in between keeps their order."""

from datetime import date

import planner
from planner.solving.variants import resolved
from planner.studies.replan.held import as_delivered, orders, planned_holdings
from tests.planner.dashboard.test_adapting import TINY

PLACE = ("us-virginia", "DGX H100", "buy")


def ordered():
    offers = [
        {"system": "DGX H100", "how": "buy", "price": "310000 USD", "delivery": {"typical": "12 weeks"}},
        {"system": "DGX H100", "how": "on_demand", "price": "98 USD/h"},
    ]
    spec = {**TINY, "horizon": {"start": "2027-01-01", "years": 3}, "offers": offers}
    plan = planner.solve(spec)
    return plan, resolved(plan.document["spec"])


def test_an_order_that_has_not_come_stays_open_and_one_that_has_is_held():
    plan, problem = ordered()
    (before,) = planned_holdings(plan, problem, date(2027, 2, 1))
    (after,) = planned_holdings(plan, problem, date(2027, 5, 1))
    assert before.late == after.count > 0 and before.count == after.late == 0
    (offer,) = orders([before], {}, date(2027, 2, 1), "USD")
    assert (offer["supply"], offer["available_from"]) == (before.late, "2027-03-26")
    (offer,) = orders([before], {PLACE: date(2027, 6, 1)}, date(2027, 2, 1), "USD")
    assert offer["available_from"] == "2027-06-01"


def test_what_came_early_counts():
    plan, problem = ordered()
    planned = planned_holdings(plan, problem, date(2027, 2, 1))
    (found,) = as_delivered(planned, {PLACE: planned[0].late}, problem, date(2027, 2, 1))
    assert found.count == planned[0].late and not found.late and found.came <= date(2027, 2, 1)
