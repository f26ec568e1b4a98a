"""A plan link in a browser: shared by one visitor, opened by others, taken over, and removed by its owner."""

import re

import pytest

from tests.planner.dashboard.browsing import CHROMIUM, figures, settled

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")


def test_a_plan_is_shared_opened_taken_over_and_removed(visit):
    page = settled(visit("?base=owning"))
    own = figures(page)
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_role("textbox", name="Title").fill("For the board")
    page.get_by_role("textbox", name="Your name").fill("Ann")
    page.get_by_role("button", name="Freeze the plan").click()
    page.get_by_text(re.compile(r"/\?link=")).wait_for()
    link = page.get_by_text(re.compile(r"/\?link=")).inner_text().strip()
    guest = visit(link)
    assert figures(guest) == own and guest.url == link
    assert guest.get_by_role("heading", name="For the board").count() == 1
    guest.get_by_role("button", name="Make it mine").click()
    guest.wait_for_url(re.compile(r"base=owning"))
    assert figures(guest) == own and "link" not in guest.url
    guest.go_back()
    guest.get_by_role("button", name="Make it mine").wait_for()
    page.reload()  # the cookie is what the owner is known by
    settled(page).get_by_role("button", name="Share", exact=True).click()
    page.get_by_text(re.compile(r"Your plan links \(1\)")).click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_text("Your plan links").wait_for(state="detached")
    dead = settled(visit(link))
    assert dead.locator("h2").all_inner_texts() == ["This link shows no plan"]
    assert "Its owner removed it." in dead.locator("main").inner_text()
    assert not dead.locator("[data-testid=stMetric]").count() and dead.url == link
