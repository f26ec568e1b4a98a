"""Faults that visitors met in a browser, each once: what is typed, the history, plans of examples, and a forged plan."""

import json
import re

import pytest

from planner.dashboard import sources
from tests.planner.dashboard.browsing import CHROMIUM, chosen, settled, upload

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")


def test_what_is_typed_just_after_a_row_was_added_stays(visit):
    page = settled(visit("?base=mixed_fleet"))
    page.get_by_role("link", name="Change").click()
    page.get_by_role("link", name="Spec").click()
    settled(page).get_by_role("tab", name="Sites").click()
    table = page.locator("[data-testid=stDataFrame]:visible").first
    height = settled(page) and table.bounding_box()["height"]
    table.click(position={"x": 160, "y": height - 12})  # the last line adds a row
    cells = page.locator("[data-testid=glide-cell-2-4]")
    cells.first.wait_for(state="attached")
    for letter in "3 MW":  # more slowly than the page answers
        page.keyboard.type(letter)
        page.wait_for_timeout(350)
    page.keyboard.press("Enter")
    cells.filter(has_text="3 MW").first.wait_for(state="attached")
    page.get_by_text("Row 5 · Region").wait_for()


def test_what_is_typed_just_after_a_wrong_cell_stays(visit):
    page = settled(visit("?base=mixed_fleet"))
    page.get_by_role("link", name="Change").click()
    page.get_by_role("link", name="Spec").click()
    settled(page).get_by_role("tab", name="Sites").click()
    settled(page).locator("[data-testid=stDataFrame]:visible").first.click(position={"x": 160, "y": 52})
    page.keyboard.type("3 MB", delay=100)  # a power in bytes, in the first row
    page.keyboard.press("Enter")
    for letter in "7 MW":  # in the row below, more slowly than the page answers
        page.keyboard.type(letter)
        page.wait_for_timeout(350)
    page.get_by_text("Row 1 (us-california) · Power at most").wait_for()
    page.keyboard.press("Enter")
    for row, text in ((0, "3 MB"), (1, "7 MW")):
        page.locator(f"[data-testid=glide-cell-2-{row}]").filter(has_text=text).first.wait_for(state="attached")


def test_each_step_of_a_visit_is_one_press_of_back(visit):
    page = settled(visit("?base=mixed_fleet"))
    begun = page.evaluate("history.length")
    page.get_by_role("link", name="Change").click()
    page.wait_for_url(re.compile(r"/change\?.*base=mixed_fleet"))
    settled(page).get_by_role("link", name="Spec").click()
    page.wait_for_url(re.compile(r"/tables\?.*base=mixed_fleet"))
    chosen(settled(page), "quality")
    page.wait_for_url(re.compile(r"/tables\?.*base=quality"))
    assert settled(page).evaluate("history.length") == begun + 3
    for address in (r"/tables\?.*base=mixed_fleet", r"/change\?.*base=mixed_fleet", r"/\?.*base=mixed_fleet"):
        page.go_back()
        page.wait_for_url(re.compile(address))
        assert re.search(address, settled(page).url)


def test_every_example_but_the_longest_opens_with_its_plan(visit):
    page = visit()
    for name in ("owning", "inference_cluster_phases", "media"):
        title = sources.plan_of_example(name)["name"]
        chosen(settled(page), name.replace("_", " "))
        page.get_by_role("heading", name=title).wait_for()
        page.locator("[data-testid=stMetricValue]").first.wait_for()
        assert not page.get_by_text("No plan for this spec yet").count()


def test_a_forged_plan_is_red_alone(visit):
    document = json.loads(sources.plan_of_example("owning").to_json())
    document["totals"]["cost"] *= 0.5
    page = settled(visit("?base=owning"))
    upload(page, ("forged.json", json.dumps(document).encode()))
    page.get_by_text("fails its own verification").wait_for()
    alerts = settled(page).locator("[data-testid=stAlert]")
    assert alerts.count() == 1 and alerts.locator("[data-testid=stAlertContentError]").count() == 1
    page.get_by_text("What it claims:").wait_for()
