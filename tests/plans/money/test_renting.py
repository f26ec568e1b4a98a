"""What is rented, by the year and by the hour, over phases; what phases pay; and tokens of an API."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from tests.plans.money.sheets import (
    CHIPS,
    HOURS,
    NAMEPLATE_KW,
    Document,
    Sheet,
    annuity,
    between,
    carbon,
    check,
    cost,
    later,
    left,
    owned_question,
    rented_question,
    worth,
)

W3 = worth(3)
LICENCE = 4500.0


def committed() -> dict[str, Any]:
    """Four years that are promised, and three that are asked for: half of the last one's rent is due at the end."""
    asked = rented_question(3, {"how": "reserved", "price": "20 USD/h", "term": "4 years", "exit_fee": 0.5})
    asked["economics"]["software_per_chip"] = f"{LICENCE} USD/year"
    return asked


def per_chip() -> dict[str, Any]:
    return rented_question(3, {"how": "reserved", "price": "2.5 USD/gpu/h"})


def day_and_night(**terms: Any) -> dict[str, Any]:
    asked = rented_question(3, {"how": "on_demand", "price": "20 USD/h", **terms})
    asked["workloads"][0]["demand"] = {"requests_per_s": 40, "profile": [0.4] * 12 + [1.6] * 12}
    asked["economics"]["software_per_chip"] = f"{LICENCE} USD/year"
    return asked


def by_the_hour() -> dict[str, Any]:
    return day_and_night()


def started() -> dict[str, Any]:
    return day_and_night(start_time="30 min")


def spot() -> dict[str, Any]:
    return rented_question(3, {"how": "spot", "price": "8 USD/h", "interruption_interval": "90 d", "headroom": 0.5})


def running(plan: Document) -> list[int]:
    (row,) = plan["fleet"]
    return list(row["running"])


def hours_run(plan: Document) -> float:
    """Add up the hours of a year that systems run."""
    hours = running(plan)
    assert len(hours) == 24
    return 365.0 * sum(hours)


def starts(plan: Document) -> float:
    """Count the systems that start in a year: those that run in an hour and did not in the hour before, of a day that comes again."""
    hours = running(plan)
    return 365.0 * sum(max(0, hours[t] - hours[t - 1]) for t in range(24))


LATER = (date(2028, 3, 1) - date(2027, 1, 1)).days / 365  # where the second phase begins [years]


def rent_in_phases() -> dict[str, Any]:
    asked = rented_question(3, {"how": "on_demand", "price": "20 USD/h", "price_by_phase": {"b": "1.25 USD/gpu/h"}})
    asked["phases"] = [{"name": "a", "start": "0 d", "budget": "9M USD"}, {"name": "b", "start": "2028-03-01", "budget": "9M USD"}]  # fmt: skip
    return asked


BUILT = (date(2028, 7, 1) - date(2027, 1, 1)).days / 365
PRICE, FALLS = 300_000.0, 0.2


def growing() -> dict[str, Any]:
    """One server, and more of them at a lower price when the demand has grown."""
    asked = owned_question(3, {"maintenance": 0.05, "spare_parts": 0.02, "staff_per_system": "1200 USD/year"})
    asked["phases"] = [{"name": "a", "start": "0 d", "budget": "9M USD"}, {"name": "b", "start": "2028-07-01", "budget": "9M USD"}]  # fmt: skip
    asked["offers"][0]["price_change_per_year"] = -FALLS
    asked["workloads"][0]["demand"] = {"requests_per_s": 5, "factor_by_phase": {"b": 400}}
    return asked


def bought(plan: Document) -> list[tuple[int, float, float]]:
    """List what is bought, as (how many, when [years], price of one)."""
    counts = {"a": 0, "b": 0}
    for row in plan["fleet"]:
        counts[row["obtained"]] += row["count"]
    assert counts["a"] and counts["b"]
    return [(counts["a"], 0.0, PRICE), (counts["b"], BUILT, PRICE * (1 - FALLS) ** BUILT)]


def systems_in_time(plan: Document) -> float:
    """Each is paid for on delivery, and sold at the end at its age."""
    return sum(n * price * (later(t) - left(3 - t) * later(3)) for n, t, price in bought(plan))


def yearly_in_time(plan: Document, per_unit: float, per_system: float) -> float:
    return sum(n * (per_unit * price + per_system) * between(t, 3, 3) for n, t, price in bought(plan))


def paid_in(plan: Document, phase: int) -> float:
    """Add up what falls due in a phase, not discounted: purchases with spare parts on delivery, upkeep and staff as time goes by."""
    edges = (0.0, BUILT, 3.0)
    begin, end = edges[phase], edges[phase + 1]
    total = 0.0
    for n, t, price in bought(plan):
        total += n * 1.02 * price * (t == begin)
        building = 1e-6 * 1000 * NAMEPLATE_KW * annuity(20)  # nearly free, by `FREE_BUILDING`
        total += n * (0.05 * price + 1200 + building) * max(0.0, end - max(begin, t))
    return total


INPUT, OUTPUT, CHANGE, GROWTH = 1e-6, 3e-6, -0.2, 0.5


def tokens_of_an_api() -> dict[str, Any]:
    asked = owned_question(3, {})
    asked["apis"] = [{
        "name": "api", "region": "us-virginia", "input": "1 USD/1M tokens", "output": "3 USD/1M tokens", "price_change_per_year": CHANGE,
        "latency": {"ttft": {"p95": "0.5 s"}, "tpot": {"p95": "20 ms"}},
    }]  # fmt: skip
    asked["workloads"][0]["demand"] = {"requests_per_s": 5, "growth_per_year": GROWTH}
    asked["offers"][0]["price"] = "90000000 USD"
    return asked


def requests_in(year: int) -> float:
    return 5 * (1 + GROWTH) ** year * 3600 * HOURS


def api(plan: Document) -> float:
    """Tokens of each year at that year's price."""
    per_request = 500 * INPUT + 100 * OUTPUT
    return sum(requests_in(y) * per_request * (1 + CHANGE) ** y * later(y + 1) for y in range(3))


def bought_per_chip() -> dict[str, Any]:
    asked = owned_question(3, {})
    asked["offers"][0]["price"] = "37500 USD/chip"
    asked["prices"] = {"buy": "low", "ranges": {"offers[0].price": {"low": "35000 USD/chip"}}}
    return asked


SHEETS = [
    Sheet("price by the chip, at its low figure", bought_per_chip, lambda d: cost(d, "systems"), lambda d: 35_000 * CHIPS * (1 - left(3) * later(3))),
    Sheet("rent under a commitment", committed, lambda d: cost(d, "rent"), lambda d: 20 * HOURS * W3),
    Sheet("early exit", committed, lambda d: cost(d, "early exit"), lambda d: 0.5 * 20 * HOURS * (4 - 3) * later(3)),
    Sheet("licences of rented chips", committed, lambda d: cost(d, "software"), lambda d: LICENCE * CHIPS * W3),
    Sheet("embodied carbon of what is rented", committed, lambda d: carbon(d, "embodied"), lambda d: 318 * CHIPS * 3 / 5),
    Sheet("rent by the chip", per_chip, lambda d: cost(d, "rent"), lambda d: 2.5 * CHIPS * HOURS * W3),
    Sheet("rent on demand by the hour", by_the_hour, lambda d: cost(d, "rent"), lambda d: 20 * hours_run(d) * W3),
    Sheet("licences by the hour", by_the_hour, lambda d: cost(d, "software"), lambda d: LICENCE / HOURS * CHIPS * hours_run(d) * W3),
    Sheet("rent with half an hour at each start", started, lambda d: cost(d, "rent"), lambda d: 20 * (hours_run(d) + 0.5 * starts(d)) * W3),
    Sheet("rent on the spot market", spot, lambda d: cost(d, "rent"), lambda d: 8 * hours_run(d) * W3),
    Sheet("rent at the prices of phases", rent_in_phases, lambda d: cost(d, "rent"), lambda d: HOURS * (20 * between(0, LATER, 3) + 10 * between(LATER, 3, 3))),
    Sheet("rent paid in the first phase", rent_in_phases, lambda d: d["phases"][0]["paid"], lambda d: 20 * HOURS * LATER),
    Sheet("rent paid in the second phase", rent_in_phases, lambda d: d["phases"][1]["paid"], lambda d: 10 * HOURS * (3 - LATER)),
    Sheet("cost of the second phase", rent_in_phases, lambda d: d["phases"][1]["cost"], lambda d: 10 * HOURS * between(LATER, 3, 3)),
    Sheet("systems bought in two phases", growing, lambda d: cost(d, "systems"), systems_in_time),
    Sheet("spare parts in two phases", growing, lambda d: cost(d, "spare parts"), lambda d: 0.02 * systems_in_time(d)),
    Sheet("maintenance in two phases", growing, lambda d: cost(d, "maintenance"), lambda d: yearly_in_time(d, 0.05, 0)),
    Sheet("staff in two phases", growing, lambda d: cost(d, "staff"), lambda d: yearly_in_time(d, 0, 1200)),
    Sheet("capital of the first phase", growing, lambda d: d["phases"][0]["capital"], lambda d: 1.02 * bought(d)[0][0] * PRICE),
    Sheet("capital of the second phase", growing, lambda d: d["phases"][1]["capital"], lambda d: 1.02 * bought(d)[1][0] * bought(d)[1][2]),
    Sheet("left of the first phase", growing, lambda d: d["phases"][0]["residual"], lambda d: 1.02 * bought(d)[0][0] * PRICE * left(3)),
    Sheet("left of the second phase", growing, lambda d: d["phases"][1]["residual"], lambda d: 1.02 * bought(d)[1][0] * bought(d)[1][2] * left(3 - BUILT)),
    Sheet("payments of the first phase", growing, lambda d: d["phases"][0]["paid"], lambda d: paid_in(d, 0)),
    Sheet("payments of the second phase", growing, lambda d: d["phases"][1]["paid"], lambda d: paid_in(d, 1)),
    Sheet("tokens of an API", tokens_of_an_api, lambda d: cost(d, "api"), api),
    Sheet("tokens that are answered", tokens_of_an_api, lambda d: d["totals"]["tokens"], lambda d: sum(requests_in(y) * 100 for y in range(3))),
]  # fmt: skip


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_an_amount_of_what_is_rented_or_paid_in_phases_is_that_of_its_sheet(sheet):
    check(sheet)
