"""A plan link in a browser: shared by one visitor, opened by others, taken over, and removed by its owner."""

import re

import pytest

from tests.planner.dashboard.browsing import CHROMIUM, figures, settled

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")


def test_a_plan_is_shared_opened_taken_over_and_removed(visit):
    page = settled(visit("?base=owning"))
    own = figures(page)
    page.get_by_role("button", name="Present, share, export").click()
    page.get_by_role("textbox", name="Title").fill("For the board")
    page.get_by_role("textbox", name="Your name").fill("Ann")
    page.get_by_role("button", name="Freeze the plan").click()
    page.get_by_text(re.compile(r"/\?link=")).wait_for()
    link = page.get_by_text(re.compile(r"/\?link=")).inner_text().strip()
    guest = visit(link)
    assert guest.url == link and guest.locator("header strong").inner_text() == "For the board"
    assert "Frozen by Ann" in guest.locator("header").inner_text() and guest.locator("figure svg").count() > 2
    guest.get_by_role("link", name="Look closer").click()
    assert figures(guest) == own
    guest.go_back()
    guest.get_by_role("link", name="Make it mine").click()
    guest.wait_for_url(re.compile(r"base=owning"))
    assert figures(guest) == own and "link" not in guest.url
    guest.go_back()
    guest.get_by_role("link", name="Make it mine").wait_for()
    assert guest.url == link
    page.reload()  # the cookie is what the owner is known by
    settled(page).get_by_role("button", name="Present, share, export").click()
    page.get_by_text(re.compile(r"Your plan links \(1\)")).click()
    page.get_by_role("button", name="Remove").click()
    page.get_by_text("Your plan links").wait_for(state="detached")
    dead = page.request.get(link)
    assert dead.status == 410 and "Its owner removed it." in dead.text()
