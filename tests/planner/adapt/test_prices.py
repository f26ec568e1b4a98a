"""Uncertain prices: costs are linear in each, systems signed at the start keep theirs, and dates know them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.adapt.draws import as_predicted, drawn
from planner.adapt.model import _costs_at, _places, build_model, key_of
from planner.adapt.plan import at_dates
from planner.adapt.tree import reduced
from planner.problem.price_levels import at_times
from planner.resolve.price_steps import raised
from planner.resolve.resolver import resolve
from planner.solving.variants import resolved
from planner.spec.requirements.adapt import Adapt
from planner.spec.robust import Robust

RENT, POWER = "offers[1].price", "sites[0].electricity_price"


@pytest.fixture(scope="module")
def model(tiny):
    spec = tiny(
        horizon={"start": "2027-01-01", "years": 2},
        offers=[{"system": "DGX H100", "how": "buy", "price": "310000 USD"}, {"system": "DGX H100", "how": "on_demand", "price": "60 USD/h"}],
        prices={"ranges": {RENT: {"low": "40 USD/h", "high": "90 USD/h"}, POWER: {"high": "0.3 USD/kWh"}, "offers[0].price": {"high": "400000 USD"}}},
    )  # fmt: skip
    spec["sites"][0]["electricity_price"] = "0.1 USD/kWh"
    spec["workloads"][0]["demand"]["requests_per_s"] = 900
    cut, dates = at_dates(spec, Adapt(prices=True))
    problem = resolved(cut)
    sampled = replace(problem, spec=problem.spec.model_copy(update={"robust": Robust(demand=0.0, times=False)}))
    steps = raised(sampled, (), without_robust=True)
    return build_model(problem, sampled, dates, {"chat": 1.0}, {}, [], steps)


def test_costs_at_another_price_are_those_of_a_spec_with_it(model):
    """Of two ways: the linear function of the prices, and the whole program of a spec with rent and electricity at 1.37 and 1.9 times their prices."""
    other = resolve(at_times(at_times(model.problem.spec, RENT, 1.37), POWER, 1.9), ())
    chosen = [next(k for k, o in enumerate(model.form.fleet_options) if key_of(o) == key_of(each)) for each in model.options]  # fmt: skip
    points = {(q, int(k)): each for q, k, each in zip(model.data.way_pool, model.data.way_option, model.layouts, strict=True)}  # fmt: skip
    places = _places(
        model.problem, model.form, chosen, {key: dict(enumerate(each)) for key, each in points.items()}, {}
    )
    expected = _costs_at(other, model.candidates, places)
    factors = np.array([[{RENT: 1.37, POWER: 1.9}.get(path, 1.0) for path in model.moving.paths]])
    holding, costs = model.moving.of_scenarios(factors)
    assert holding[0] == pytest.approx(expected.holding, rel=1e-9)
    for found, wanted in ((costs.arc, expected.arc), (costs.way, expected.way), (costs.use, expected.use)):
        assert found[0] == pytest.approx(wanted, rel=1e-9, abs=1e-12)
    assert costs.use[0].max() > 1.3 * model.data.use_price.max() > 0.0


def test_systems_signed_at_the_start_keep_their_price(model):
    """At a price 1.2 times as high only systems ordered later cost more; electricity moves both."""
    own = model.data.parent < 0
    factors = np.array([[1.2 if path == "offers[0].price" else 1.0 for path in model.moving.paths]])
    holding, _ = model.moving.of_scenarios(factors)
    signed = own & (model.data.stage == 0)
    assert signed.any() and holding[0][signed] == pytest.approx(model.unit_cost()[signed])
    later = own & (model.data.stage > 0)
    assert later.any() and (holding[0][later] > model.unit_cost()[later]).all()
    power, _ = model.moving.of_scenarios(np.array([[2.0 if path == POWER else 1.0 for path in model.moving.paths]]))
    assert (power[0][signed] > model.unit_cost()[signed]).all()


def test_the_tree_has_groups_of_prices_that_later_dates_know(model):
    tree = reduced(model, drawn(model.sampled, 200, 0), 60, 3)
    groups = int(tree.prices.max()) + 1
    assert 1 < groups <= 3 and tree.leaves.weight.sum() == pytest.approx(1.0)
    assert tree.leaves.node[0].max() == 0 and len(np.unique(tree.leaves.node[1])) == groups
    typical = model.leaves(as_predicted(model.sampled), np.zeros((len(model.dates.at_s), 1), dtype=np.int64))
    assert typical.cost[0] == pytest.approx(model.unit_cost())
    assert typical.costs is not None and typical.costs.use[0] == pytest.approx(model.data.use_price)


def test_dates_that_do_not_know_prices_decide_alike(tiny):
    dates = [{"at": "6 weeks", "knows": ["performance", "demand"]}, {"at": "1 year"}]
    spec = tiny(horizon={"start": "2027-01-01", "years": 2})
    _, found = at_dates(spec, Adapt.model_validate({"prices": True, "dates": dates}))
    assert [found.knows_prices(d) for d in range(3)] == [False, False, True] and found.all_known == 2
    _, found = at_dates(spec, Adapt.model_validate({"dates": dates}))
    assert found.all_known == 1
