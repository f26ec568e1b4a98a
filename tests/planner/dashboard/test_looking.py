"""The address of a page holds what is looked at there: a copied one opens the same study, hour, part, search and site."""

from pathlib import Path

import pytest

pytest.importorskip("streamlit")

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

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
    page = opened("", base="mixed_fleet", site="us-texas")
    assert not page.exception and page.session_state.site == "us-texas" and address(page) == {"site": "us-texas"}
    assert address(opened("hours", base="mixed_fleet", site="us-texas")) == {"site": "us-texas"}
    assert address(opened("", base="mixed_fleet", site="nowhere")) == {}


def test_a_case_is_in_the_address_and_one_that_is_not_there_opens_the_first():
    page = opened("running", base="quality")
    (choice,) = [box for box in page.selectbox if str(box.key).startswith("case-of-")]
    choice.set_value(choice.options[-1]).run()
    assert not page.exception
    case = address(page)["case"]
    again = opened("running", base="quality", case=case)
    assert next(box for box in again.selectbox if str(box.key).startswith("case-of-")).value == case
    assert address(opened("running", base="quality", case="nothing")) == {}
