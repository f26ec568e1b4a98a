"""A report opens from disk in a browser without a request, and nothing in it runs. Needs a Chromium on the path."""

import shutil

import pytest

from planner.dashboard import sources
from planner.report.outputs import html
from planner.report.outputs.sections import sections_of

pytest.importorskip("vl_convert")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")
if CHROMIUM is not None:
    from playwright.sync_api import sync_playwright


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_report_opens_from_disk_without_a_request(tmp_path, scheme):
    plan = sources.stored_plan()
    file = tmp_path / "plan.html"
    file.write_text(html.html_page(plan), encoding="utf-8")
    asked, said = [], []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(color_scheme=scheme, viewport={"width": 390, "height": 800})
        page.on("request", lambda request: asked.append(request.url))
        page.on("console", lambda message: said.append(message.text))
        page.goto(file.as_uri())
        assert page.inner_text("h1") == plan["name"]
        assert page.locator("svg").count() == page.locator("figure").count() > 3
        assert page.locator("table").count() == len(sections_of(plan))
        overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, "tables scroll within the page"
        assert len(page.pdf()) > 10_000
        browser.close()
    assert asked == [file.as_uri()] and not said
