"""Forms of a spec in a browser: what is typed in one field while the page answers another one."""

import pytest

from tests.planner.dashboard.browsing import CHROMIUM, settled

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")


def test_what_is_typed_in_a_form_stays_and_the_pane_keeps_step(visit):
    page = settled(visit("?base=mixed_fleet"))
    page.get_by_role("link", name="Spec").click()
    settled(page).get_by_text("Every block", exact=True).click()
    settled(page)
    page.get_by_role("textbox", name="arrival_cv").fill("0.5")
    page.keyboard.press("Tab")
    note = page.get_by_role("textbox", name="note", exact=True)
    note.click()
    for letter in "ours":  # more slowly than the page answers the field before
        page.keyboard.type(letter)
        page.wait_for_timeout(350)
    page.keyboard.press("Enter")
    pane = page.get_by_role("textbox", name="workloads[0] as JSON")
    page.wait_for_function("text => document.querySelector('textarea').value.includes(text)", arg='"note": "ours"')
    assert '"arrival_cv": 0.5' in pane.input_value() and note.input_value() == "ours"
    settled(page).get_by_role("textbox", name="arrival_cv").fill("much")
    page.keyboard.press("Enter")
    page.get_by_text("1 to correct").wait_for()
    settled(page)
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("1 to correct").wait_for(state="detached")
    assert settled(page).get_by_role("textbox", name="arrival_cv").input_value() == "0.5"
