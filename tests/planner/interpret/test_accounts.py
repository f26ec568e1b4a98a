"""Books of a plan by hand: two workloads on the systems of one site, a line, a site's fixed cost and a meter."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from planner.interpret.accounts import Accounts
from planner.money.components import GRID, LINE, REQUEST, SITE, SYSTEM
from planner.money.terms import CARBON, COST, ENERGY, Dated, Dates, Flowing

SECONDS = np.array([10.0, 20.0])
DATES = Dates(np.array([0, 0]), SECONDS, np.ones(2), np.ones(1), np.zeros((0, 2), dtype=int))
ALWAYS = np.array([[0, 0]])
BOX, REGION = ("here", "box", "buy"), ("here", "", "")


def flowing(component, decision, place, per_unit, **changes):
    fields = {
        "at": np.array([0]), "places": (place,), "dates": DATES, "per_unit": np.array([per_unit]),
        "profile": SECONDS[None, :], "follows": np.array([0]),
    }  # fmt: skip
    return Flowing(component=component, decision=decision, **fields | changes)


TERMS = (
    Dated(
        component="systems", decision=SYSTEM, at=np.array([0, 1]), places=(BOX, BOX), dates=DATES,
        worth=np.array([100.0, 1000.0]), paid=np.zeros((2, 0)), capital=np.array([100.0, 1000.0]),
    ),
    flowing("site", SITE, REGION, 2.0, windows=ALWAYS),
    flowing("energy", GRID, REGION, 1.0),
    flowing("operation", GRID, REGION, 0.5, functional=CARBON),
    flowing("energy", GRID, REGION, 1.0, functional=ENERGY),
    flowing("egress", REQUEST, ("here", "fibre", ""), 3.0, workload=("chat",)),
    flowing("lines", LINE, ("here - there", "fibre", ""), 1.0, windows=ALWAYS),
)  # fmt: skip
UNITS = {
    SYSTEM: np.array([4.0, 0.0]),
    SITE: np.array([1.0]),
    GRID: np.array([[5.0, 1.0]]),
    REQUEST: np.array([[1.0, 2.0]]),
    LINE: np.array([2.0]),
}


@pytest.fixture
def accounts():
    """Chat keeps two systems at work in the first slot, search four in the second: 20 of 100 system-seconds, and 80."""
    option = SimpleNamespace(
        site=SimpleNamespace(region="here"), system=SimpleNamespace(name="box"), offer=SimpleNamespace(how="buy")
    )
    named = {name: SimpleNamespace(name=name) for name in ("chat", "search")}
    points = [SimpleNamespace(workload=w, uses=[SimpleNamespace(option=option, systems=2.0)]) for w in named.values()]
    decided = SimpleNamespace(
        problem=SimpleNamespace(serving=list(named.values()), training=[], calendar=SimpleNamespace(seconds=SECONDS)),
        form=SimpleNamespace(terms=TERMS, points=points), used=(0, 1), active=np.array([[1.0, 0.0], [0.0, 2.0]]),
        units=lambda: UNITS, bearers=lambda decision, position: {"chat": 0.25, "search": 0.75},
    )  # fmt: skip
    return Accounts(decided)


def test_each_line_is_the_sum_of_its_terms_times_the_decisions(accounts):
    assert dict(accounts.cost_lines) == {
        ("systems", *BOX): 400.0,  # four of the first holding; the other has no line
        ("site", *REGION): 2 * 30.0,
        ("energy", *REGION): 5 * 10 + 1 * 20.0,
        ("egress", "here", "fibre", ""): 3 * (1 * 10 + 2 * 20.0),
        ("lines", "here - there", "fibre", ""): 2 * 30.0,
    }
    assert dict(accounts.carbon_lines) == {("operation", *REGION): 35.0}
    assert accounts.energy_j == 70.0
    assert accounts.by_component()["systems"] == 400.0


def test_amounts_stand_at_the_position_of_their_decision(accounts):
    assert accounts.amounts(COST, SYSTEM).tolist() == [400.0, 0.0]
    assert accounts.amounts(CARBON, GRID).tolist() == [35.0]
    assert accounts.amounts(CARBON, SYSTEM).tolist() == [0.0, 0.0]


def test_costs_are_shared_by_use_and_traffic_goes_to_its_cause(accounts):
    own = {"chat": 150 + 60 * 0.25, "search": 60 * 0.75}
    # systems, and after them the site and its meter, by 20 and 80 of 100 system-seconds
    shares = {"chat": 0.2, "search": 0.8}
    by_hand = {name: own[name] + (400 + 60 + 70) * shares[name] for name in own}
    assert accounts.by_workload() == pytest.approx(by_hand)
    assert sum(accounts.by_workload().values()) == pytest.approx(sum(accounts.cost_lines.values()))


def test_a_meter_that_draws_nothing_keeps_its_line(accounts):
    accounts.decided.units = lambda: UNITS | {GRID: np.zeros((1, 2))}
    again = Accounts(accounts.decided)
    assert dict(again.cost_lines)["energy", *REGION] == 0.0
