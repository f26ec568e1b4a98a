"""The block `adapt` of a spec, and what it refuses."""

from __future__ import annotations

import pytest

from catalog.units import DAY_S, YEAR_S
from planner.adapt.plan import at_dates
from planner.errors import SpecError
from planner.pipeline import resolved
from planner.spec.model import parse_spec
from planner.spec.requirements.adapt import Adapt

SPEC = {
    "schema_version": 1,
    "name": "one workload",
    "horizon": {"start": "2027-01-01", "years": 3},
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.1-8B",
            "demand": {"output_tokens": "1B tokens/day"},
            "lengths": {"input": 500, "output": 200},
            "origins": [{"region": "us-virginia", "share": 1.0}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}},
        }
    ],
    "sites": [{"region": "us-virginia", "power": "1 MW"}],
    "offers": [{"system": "DGX H100", "how": "buy"}, {"system": "AWS p5.48xlarge", "how": "on_demand"}],
}


def issues(document):
    with pytest.raises(SpecError) as error:
        resolved(document)
    return {problem.path: problem.message for problem in error.value.problems}


def test_dates_of_the_default():
    """Six weeks after the start, then every year within the horizon."""
    decided = Adapt().decided(3)
    assert [date.at for date in decided] == [42 * DAY_S, YEAR_S, 2 * YEAR_S]
    cut, dates = at_dates(SPEC, Adapt())
    assert dates.at_s == (0.0, 42 * DAY_S, YEAR_S, 2 * YEAR_S)
    assert [phase.start for phase in parse_spec(cut).phases] == [0.0, 42 * DAY_S, YEAR_S, 2 * YEAR_S]
    assert resolved(cut).calendar.edges_s.tolist() == [0.0, 42 * DAY_S, YEAR_S, 2 * YEAR_S, 3 * YEAR_S]


def test_refusals():
    """Everything that the block does not hold is named, all at once."""
    found = issues(
        {**SPEC, "adapt": {}, "robust": {}, "limits": {"budget": "1M USD"}, "objective": {"minimise": "carbon"}}
    )
    assert {"adapt", "limits.budget"} <= found.keys()
    assert "robust" in issues({**SPEC, "adapt": {}, "robust": {}})["adapt"]
    assert "cost" in issues({**SPEC, "adapt": {}, "objective": {"minimise": "carbon"}})["adapt"]


@pytest.mark.parametrize(
    ("dates", "phases"),
    [
        ([{"at": "0 d"}], None),
        ([{"at": "2 years"}, {"at": "1 year"}], None),
        ([{"at": "4 years"}], None),
        ([{"at": "1 year"}], [{"name": "one", "start": "0 d"}, {"name": "two", "start": "2 years"}]),
    ],
)
def test_dates_out_of_place(dates, phases):
    document = {**SPEC, **({"phases": phases} if phases else {})}
    asked = parse_spec({**document, "adapt": {"dates": dates}}).adapt
    with pytest.raises(SpecError, match=r"expected a date after|expected dates at which phases"):
        at_dates(document, asked)


def test_dates_do_not_forget():
    dates = [{"at": "6 weeks", "knows": ["performance"]}, {"at": "1 year", "knows": ["demand"]}]
    with pytest.raises(SpecError, match="earlier dates list"):
        parse_spec({**SPEC, "adapt": {"dates": dates}})


def test_phases_are_the_dates():
    """With phases, decisions are made when they begin."""
    phases = [{"name": "one", "start": "0 d"}, {"name": "two", "start": "1 year"}]
    cut, dates = at_dates({**SPEC, "phases": phases}, Adapt())
    assert cut["phases"] == phases and dates.at_s == (0.0, YEAR_S)
