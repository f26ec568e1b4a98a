"""The list of components: their names in the languages, and the only place of these names outside `planner.verify`."""

from __future__ import annotations

import pytest

from planner.messages import LANGUAGES, texts
from planner.money.components import AT_METER, COMPONENTS, DATED, component_words
from planner.resolve.resolver import resolve_document

CARBON_LINES = {"operation", "embodied", "ppa"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_component_has_words_and_no_words_are_of_none(language):
    codes = {f"component.{key}" for key in COMPONENTS}
    assert codes <= set(texts(language))
    assert [component.words(language) for component in COMPONENTS.values()]
    assert component_words("no such component", language) == "no such component"


def test_every_component_of_a_plan_stands_in_the_list(small_plan):
    assert {row["component"] for row in small_plan["cost_lines"]} <= set(COMPONENTS)
    assert {row["component"] for row in small_plan["carbon_lines"]} <= {c.carbon for c in COMPONENTS.values()} - {""}


def test_a_component_is_paid_for_decisions_of_one_way_to_share_it():
    """A cost that a workload causes alone is of no meter, and what is fixed is paid for something held."""
    for component in COMPONENTS.values():
        assert component.paid_for
        assert not (component.of_workload and set(component.paid_for) & {*AT_METER, "system", "site"})
        assert not component.fixed or set(component.paid_for) <= {"system", "hour", "start", "site"}
        assert not component.capital or not component.of_workload
        assert component.carbon in CARBON_LINES | {""}
    assert COMPONENTS["energy"].paid_for == (*DATED[:2], "grid")


def test_assumptions_name_components_that_exist(small_spec, tiny):
    """A cost line that no component has would take its share of the cost from no plan."""
    lines = {component.carbon for component in COMPONENTS.values()} | set(COMPONENTS)
    meter = {
        "demand_charge": "15 USD/kW-month",
        "battery": {"energy": "1 MWh", "power": "1 MW", "energy_price": "60 USD/kWh", "power_price": "1 USD/kW"},
    }
    other = tiny(lines=[{"kind": "SD-WAN"}], porting=[{"family": "hopper", "cost": "1 USD"}])
    other["sites"][0] |= {"colocation": "100 USD/kW-month", "delivery": "0.03 USD/kWh", "electricity": meter}
    for document in (small_spec, other):
        named = {scope[0] for row in resolve_document(document).assumptions for scope in row.scope}
        assert named <= lines
        assert len(named) > 3
