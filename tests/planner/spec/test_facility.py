"""What a spec may say of halls, sole tenancy and audit classes, and what is refused with its place."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from planner.spec.document import edited
from planner.spec.model import parse_spec


def test_a_hall_is_read_in_si(tiny):
    document = tiny()
    document["sites"][0] |= {"rack_positions": 12, "rack_power": "25 kW", "cooling": ["air"], "audit": ["SOC 2"]}
    site = parse_spec(document).sites[0]
    assert (site.rack_positions, site.rack_power, site.cooling, site.audit) == (12, 25e3, ["air"], ["SOC 2"])
    assert parse_spec(tiny()).sites[0].rack_positions is None


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("sites[0].rack_positions", -1, "at least 0"),
        ("sites[0].rack_positions", 2.5, "whole number"),
        ("sites[0].rack_power", 25, "25"),
        ("sites[0].cooling", [], "at least 1 entries"),
        ("sites[0].cooling", ["water"], "'air' or 'liquid'"),
        ("sites[0].sole_tenant", "yes", "true or false"),
        ("workloads[0].audit", [""], "not empty"),
    ],
)
def test_a_wrong_value_is_refused_at_its_place(tiny, path, value, says):
    with pytest.raises(SpecError) as refused:
        parse_spec(edited(tiny(), ((path, value),)))
    (problem,) = refused.value.problems
    assert problem.path.startswith(path) and says in problem.message


@pytest.mark.parametrize(("key", "value"), [("sole_tenant", True), ("audit", ["SOC 2"])])
def test_what_is_bought_is_assured_by_its_site_and_not_by_its_offer(tiny, key, value):
    document = tiny()
    document["offers"][0][key] = value
    with pytest.raises(SpecError, match=f'offers\\[0\\]: "{key}" belongs to what is rented'):
        parse_spec(document)
    document["offers"][0] |= {"how": "on_demand", "price": "30 USD/h"}
    assert getattr(parse_spec(document).offers[0], key) == value
