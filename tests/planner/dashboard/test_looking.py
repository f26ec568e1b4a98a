"""The address of a page holds what is looked at there: a copied one opens the same study, hour, part, search and site."""

from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from planner.dashboard import cataloguing
from planner.dashboard.state import store
from planner.dashboard.views import plan as plan_page
from planner.dashboard.views.explore import STUDIES

HOME = Path(__file__).resolve().parents[3]


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path / "works"))


def opened(name: str, **query) -> AppTest:
    page = AppTest.from_file(str(HOME / "app.py"), default_timeout=60)
    if name:
        page._page_hash = calc_hash(name)
    for key, value in query.items():
        page.query_params[key] = value
    page.session_state[plan_page.BEGUN] = True
    return page.run()


def address(page: AppTest) -> dict[str, str]:
    """What the address holds beside the scenario and its id."""
    found = {key: value[0] if isinstance(value, list) else value for key, value in page.query_params.items()}
    return {key: value for key, value in found.items() if key not in ("base", "id")}


def test_an_hour_and_a_colour_are_in_the_address_and_open_again():
    page = opened("hours", base="quality")
    assert not page.exception and address(page) == {}
    page.slider(key="hours-hour").set_value(7).run()
    page.button_group(key="hours-by").set_value("carbon").run()
    assert address(page) == {"hour": "7", "by": "carbon"}
    again = opened("hours", base="quality", **address(page))
    assert again.slider(key="hours-hour").value == 7 and address(again) == {"hour": "7", "by": "carbon"}
    again.slider(key="hours-hour").set_value(18).run()  # as it is without being asked
    assert address(again) == {"by": "carbon"}
    assert opened("hours", base="quality", hour="99", by="nothing").slider(key="hours-hour").value == 18


def test_a_study_is_in_the_address_and_another_page_has_no_part_of_it():
    first, second, *_ = STUDIES
    page = opened("explore", base="quality")
    page.button_group(key="explore-what").set_value(second).run()
    assert address(page) == {"study": second}
    again = opened("explore", base="quality", study=second)
    assert again.button_group(key="explore-what").value == second and not again.exception
    assert address(opened("hours", base="quality", study=second)) == {}
    assert address(opened("explore", base="quality", study=first)) == {}


def test_a_part_of_the_catalog_with_its_search_opens_again():
    page = opened("catalog", base="quality")
    page.text_input(key="catalog-search").set_value("H200 hbm").run()
    assert address(page) == {"search": "H200 hbm"}
    assert opened("catalog", base="quality", search="H200 hbm").text_input(key="catalog-search").value == "H200 hbm"
    assert address(opened("catalog", base="quality", part="accuracy")) == {"part": "accuracy"}


def test_a_site_is_in_the_address_of_the_pages_that_show_it():
    page = opened("operations", base="mixed_fleet", site="us-texas")
    assert not page.exception and page.session_state.site == "us-texas" and address(page) == {"site": "us-texas"}
    assert address(opened("hours", base="mixed_fleet", site="us-texas")) == {"site": "us-texas"}
    assert address(opened("operations", base="mixed_fleet", site="nowhere")) == {}
    assert address(opened("", base="mixed_fleet", site="us-texas")) == {}


def test_a_case_is_in_the_address_and_one_that_is_not_there_opens_the_first():
    page = opened("running", base="quality")
    (choice,) = [box for box in page.selectbox if str(box.key).startswith("case-of-")]
    choice.set_value(choice.options[-1]).run()
    assert not page.exception
    case = address(page)["case"]
    again = opened("running", base="quality", case=case)
    assert next(box for box in again.selectbox if str(box.key).startswith("case-of-")).value == case
    assert address(opened("running", base="quality", case="nothing")) == {}


def test_marked_kinds_and_chips_are_in_the_address_and_open_again():
    page = opened("catalog", base="quality")
    page.multiselect(key="catalog-kinds").set_value(["chips", "offers"]).run()
    page.toggle(key="catalog-used").set_value(True).run()
    assert address(page) == {"kinds": "chips|offers", "used": "plan"}
    again = opened("catalog", base="quality", **address(page))
    assert (
        again.multiselect(key="catalog-kinds").value == ["chips", "offers"] and again.toggle(key="catalog-used").value
    )
    page = opened("catalog", base="quality", part="accuracy")
    first, last = page.multiselect(key="accuracy-chips").options[:2]
    page.multiselect(key="accuracy-chips").set_value([first, last]).run()
    assert address(page) == {"part": "accuracy", "chips": f"{first}|{last}"}
    page.button_group(key="accuracy-metric").set_value(cataloguing.metrics()[-1]).run()
    assert address(page)["metric"] == cataloguing.metrics()[-1]
    again = opened("catalog", base="quality", part="accuracy", chips=f"{first}|{last}|no such chip")
    assert again.multiselect(key="accuracy-chips").value == [first, last] and not again.exception
    assert opened("catalog", base="quality", kinds="nothing|<b>").multiselect(key="catalog-kinds").value == []


def test_the_options_of_a_study_are_in_the_address_and_open_again():
    page = opened("explore", base="quality")
    page.selectbox(key="frontier-against").set_value("latency").run()
    page.slider(key="frontier-points").set_value(9).run()
    page.slider(key="span-latency").set_value((0.4, 1.2)).run()
    assert address(page) == {"against": "latency", "points": "9", "span": "0.4|1.2"}
    again = opened("explore", base="quality", **address(page))
    assert again.slider(key="frontier-points").value == 9 and again.slider(key="span-latency").value == (0.4, 1.2)
    for hostile in ("nan|inf", "3|1", "0.4", "-1|1e9", "x|y", "|"):
        again = opened("explore", base="quality", against="latency", span=hostile, points="99")
        assert not again.exception and again.slider(key="span-latency").value == (0.5, 2.0)
        assert again.slider(key="frontier-points").value == 6
    page = opened("explore", base="quality", study="alternatives", within="12")
    assert page.slider(key="within").value == 12
    page = opened("explore", base="quality", study="ladder", levers="limits.budget=1M USD|solver.gap=0.1", target="1 x")
    assert page.text_area(key="ladder-levers").value.splitlines() == ["limits.budget=1M USD", "solver.gap=0.1"]
    assert page.text_input(key="ladder-target").value == "1 x" and address(page)["target"] == "1 x"
    page = opened("explore", base="quality", study="measure", budget="50000")
    assert not page.exception and page.number_input(key="measure-budget").value == 50_000
