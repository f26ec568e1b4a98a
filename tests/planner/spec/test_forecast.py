"""The block `demand.forecast` of a spec: what it refuses, and how additions are read."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from planner.spec.load.forecast import Launch, added_share
from planner.spec.workloads import Demand

LAUNCH = {"name": "voice", "probability": 0.5, "factor": {"typical": 1.5}, "date": "6 months"}


@pytest.mark.parametrize(
    ("forecast", "words"),
    [
        ({"growth": {"low": 0.5, "typical": 0.2}}, "low <= typical <= high"),
        ({"level": {"typical": 1.2, "high": 1.1}}, "low <= typical <= high"),
        ({"launches": [{**LAUNCH, "addition": {"typical": 3}}]}, "not both"),
        ({"launches": [{key: LAUNCH[key] for key in ("name", "probability", "date")}]}, "not both"),
        ({"launches": [{**LAUNCH, "latest": "2028-01-01"}]}, "all days"),
        ({"launches": [{**LAUNCH, "earliest": "7 months"}]}, "earliest <= date <= latest"),
        ({"launches": [LAUNCH, LAUNCH]}, "voice"),
        ({"launches": [{**LAUNCH, "factor": None, "addition": {"typical": "3 GB"}}]}, "requests_per_s"),
        ({"launches": [{**LAUNCH, "factor": None, "addition": {"low": 4, "typical": 3}}]}, "low <= typical <= high"),
    ],
)
def test_what_makes_no_sense_is_refused(forecast, words):
    with pytest.raises(ValidationError, match=words):
        Demand.model_validate({"requests_per_s": 10, "forecast": forecast})


def test_growth_is_stated_once():
    with pytest.raises(ValidationError, match="state the growth once"):
        Demand.model_validate({"requests_per_s": 10, "growth_per_year": 0.1, "forecast": {"growth": {"typical": 0.2}}})


@pytest.mark.parametrize(
    ("key", "stated", "addition", "share"),
    [
        ("requests_per_s", 10, {"low": 1, "typical": 2, "high": "4"}, (0.1, 0.2, 0.4)),
        ("tasks_per_s", 10, {"typical": 5}, (0.5, 0.5, 0.5)),
        ("output_tokens", 1e9 / 86400, {"typical": "500M tokens/day"}, (0.5, 0.5, 0.5)),
        ("users", 2000, {"low": 0, "typical": 100}, (0.0, 0.05, 0.05)),
    ],
)
def test_additions_are_shares_of_the_stated_demand(key, stated, addition, share):
    launch = Launch.model_validate({**LAUNCH, "factor": None, "addition": addition})
    assert added_share(launch, key, stated) == pytest.approx(share)


def test_additions_need_a_demand_that_is_a_rate():
    launch = Launch.model_validate({**LAUNCH, "factor": None, "addition": {"typical": 3}})
    with pytest.raises(ValueError, match="no rate to add to"):
        added_share(launch, "sessions", 40)
    with pytest.raises(ValueError, match="stated demand is 0"):
        added_share(launch, "requests_per_s", 0)
