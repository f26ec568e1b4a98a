"""The examples of plans to adapt: with phases, a forecast and a conditional value at risk; with a fleet that is owned; with an API; late."""

from __future__ import annotations

import json

import numpy as np
import pytest

import planner
from catalog.units import YEAR_S
from planner.adapt.model import _supplies, build_model
from planner.adapt.plan import at_dates
from planner.formulate.formulation import formulate
from planner.problem.scenarios import with_robust
from planner.solving.variants import points_found, resolved
from planner.spec.model import parse_spec
from planner.verify.plan import verify_plan
from tests.conftest import long_run


@long_run
@pytest.mark.parametrize("name", ["phases", "owned", "api", "late"])
def test_an_example_is_planned_and_holds(root, name):
    plan = planner.solve(root / f"examples/adapt/{name}.json")
    found = plan["adaptation"]
    assert verify_plan(plan) == []
    assert found["risk"] == ("cvar" if name == "phases" else "expected")
    assert found["fresh"]["kept"] >= 0.77
    assert all(row["offer"].startswith("offers") for row in found["sign"])
    if name == "api":
        assert any(row["how"] == "api" and row["decided_s"] is None for row in found["open"])


def test_systems_on_demand_are_used_only_once_they_are_on_offer(tiny):
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[
            {"system": "DGX H100", "how": "buy", "price": "310000 USD"},
            {"system": "DGX H100", "how": "on_demand", "price": "40 USD/h", "available_from": "1 year"},
        ],
        adapt={"promise": 0.8},
    )  # fmt: skip
    asked = parse_spec(spec).adapt
    assert asked is not None
    cut, dates = at_dates({key: value for key, value in spec.items() if key != "adapt"}, asked)
    problem = resolved(cut)
    model = build_model(problem, with_robust(problem), dates, {"chat": 1.0}, {}, [], {})
    begins = problem.calendar.edges_s[model.data.window]
    (hired,) = np.flatnonzero(model.data.by_use)
    assert (model.data.on_offer[hired] == (begins >= YEAR_S - 1)).all() and 0 < model.data.on_offer[hired].sum() < len(
        begins
    )
    assert ((model.data.use_price[hired] > 0) == model.data.on_offer[hired]).all()


def test_systems_that_are_owned_may_stay_from_the_start_on(root):
    """Two systems are owned: their number bounds the option, and that later phases have none to obtain bounds only what these obtain."""
    spec = json.loads((root / "examples/adapt/owned.json").read_text(encoding="utf-8"))
    asked = parse_spec(spec).adapt
    assert asked is not None
    cut, _ = at_dates({key: value for key, value in spec.items() if key != "adapt"}, asked)
    problem = resolved(cut)
    form = formulate(problem, points_found(problem, {}))
    options = form.fleet_options
    limits, pairs, most = _supplies(problem, form, {k: k for k in range(len(options))})
    owned = {k for k, option in enumerate(options) if option.offer.owned is not None}
    later = [u for u, (k, term) in enumerate(form.holdings) if k in owned and term.first > 0]
    bounds = {(float(limits[s]), k) for s, k in pairs.tolist() if k in owned}
    assert owned and (most[later] == 0.0).all()
    assert {(2.0, k) for k in owned} <= bounds and min(limit for limit, _ in bounds) == 2.0
