"""Plans of a demand with a forecast: a certain one is the growth of old, an uncertain one moves only the share of scenarios that is kept."""

from __future__ import annotations

import planner
from planner.verify.plan import verify_plan


def solved(tiny, **demand):
    document = tiny(horizon={"years": 2})
    document["workloads"][0]["demand"] = {"requests_per_s": 4000, **demand}
    plan = planner.solve(document, threads=1)
    assert verify_plan(plan) == []
    return plan


def test_a_certain_forecast_is_the_growth_of_old_and_an_uncertain_level_moves_confidence_alone(tiny):
    old = solved(tiny, growth_per_year=0.4)
    certain = solved(tiny, forecast={"growth": {"typical": 0.4}})
    wide = solved(tiny, forecast={"growth": {"typical": 0.4}, "level": {"low": 0.9, "typical": 1.0, "high": 3.0}})
    assert certain.totals == old.totals == wide.totals
    assert certain.document["fleet"] == old.document["fleet"] == wide.document["fleet"]
    assert wide.document["confidence"]["kept"] < certain.document["confidence"]["kept"]
