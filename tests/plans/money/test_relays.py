"""What loads of weights cost: two services that take turns on the same servers, rented and bought."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.plans.money.sheets import HOURS, Document, Sheet, check, cost, owned_question, rented_question, worth

W3 = worth(3)
NUISANCE_H = 0.01
LIFE_YEARS = 5


def taking_turns(asked: dict[str, Any], **operation: Any) -> dict[str, Any]:
    """Ask for a service by day and another one by night, of which each fills several servers at its peak."""
    (first,) = asked["workloads"]
    first |= {
        "architecture": "Llama-3.1-70B",
        "demand": {"requests_per_s": 60, "profile": [1.9] * 12 + [0.1] * 12},
    }
    second = copy.deepcopy(first) | {
        "name": "reports",
        "demand": {"requests_per_s": 60, "profile": [0.1] * 12 + [1.9] * 12},
    }
    return {**asked, "workloads": [first, second], **({"operation": operation} if operation else {})}


def rented() -> dict[str, Any]:
    return taking_turns(rented_question(3, {"how": "reserved", "price": "20 USD/h"}))


def bought() -> dict[str, Any]:
    return taking_turns(owned_question(3, {}, offers=[{"system": "DGX H100", "how": "buy", "price": "300000 USD"}]))


def stated() -> dict[str, Any]:
    return taking_turns(rented_question(3, {"how": "reserved", "price": "20 USD/h"}), relay_cost="7 USD")


def system_loads(plan: Document) -> list[tuple[float, float]]:
    """List (systems that load in a day, hours until one serves) of each deployment."""
    held: dict[str, dict[int, int]] = {}
    for row in plan["schedule"]:
        for name, (workers,) in row["resident"].items():
            held.setdefault(name, {})[row["slot"]] = workers
    found = []
    for row in plan["deployments"]:
        here, (pool,) = held[row["point"]], row["pools"]
        rises = sum(max(0, here.get(t, 0) - here.get((t - 1) % 24, 0)) for t in range(24))
        found.append((rises * pool["systems_per_worker"], row["load_s"] / 3600))
    return found


def paid(plan: Document, per_hour: float) -> float:
    """Add up the system's cost in the time of each load and a hundredth of an hour more, on every day of three years."""
    return sum(loads * (hours + NUISANCE_H) for loads, hours in system_loads(plan)) * per_hour * 365 * W3


SHEETS = [
    Sheet("loads of rented servers", rented, lambda d: cost(d, "relays"), lambda d: paid(d, 20)),
    Sheet("loads of bought servers", bought, lambda d: cost(d, "relays"), lambda d: paid(d, 300_000 / (LIFE_YEARS * HOURS))),
    Sheet("loads at a stated cost", stated, lambda d: cost(d, "relays"), lambda d: 7 * sum(loads for loads, _ in system_loads(d)) * 365 * W3),
]  # fmt: skip


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_an_amount_of_loads_is_that_of_its_sheet(sheet):
    check(sheet)
