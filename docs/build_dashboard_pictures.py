"""Take the pictures of the dashboard under docs/pictures in a browser. Run by `make dashboard-pictures`.

    python docs/build_dashboard_pictures.py [first|more|whatif|explore ...]

Needs the extra `test` and a Chromium on the path. How fast pages are: benchmarks/dashboard.py.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page

HOME = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(HOME))

from benchmarks.browser import WIDE, chromium, go_to, opened, served

PICTURES = HOME / "docs" / "pictures"
PHONE, TALL = ({"width": width, "height": height} for width, height in ((390, 844), (1200, 2180)))
LONGEST_STUDY_MS = 600_000
COLOURS = 128


def take(page: Page, name: str) -> None:
    """Take a picture, with few colours, for it is kept in the repository."""
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
    picture.save(PICTURES / f"{name}.png", optimize=True)
    print(f"docs/pictures/{name}.png")


def explore(browser: Browser, address: str) -> None:
    """Draw a frontier, and show the plan of its second point."""
    page = opened(browser, address)
    go_to(page, "Reasons")
    page.get_by_text("Frontier", exact=True).first.click()
    page.get_by_role("button", name="Start").click()
    page.get_by_text("The study has come to its end").wait_for(timeout=LONGEST_STUDY_MS)
    page.get_by_role("combobox", name="Plan of a point").click()
    page.get_by_role("option").nth(1).click()
    page.get_by_role("button", name="Open this plan").wait_for()
    take(page, "dashboard_explore")


def tables(page: Page) -> None:
    """Take a picture of the tables of a spec, with a power that is none."""
    go_to(page, "Change")
    go_to(page, "Spec")
    page.get_by_role("tab", name="Sites").click()
    table = page.locator("[data-testid=stDataFrame]:visible").first
    table.locator("canvas").first.wait_for()
    page.wait_for_timeout(1500)
    table.click(position={"x": 160, "y": 90})
    page.keyboard.press("Enter")
    cell = page.locator("#portal textarea").first
    cell.fill("3 MB")
    cell.press("Enter")
    page.get_by_text("Not taken over yet").wait_for()
    take(page, "dashboard_tables")


def first(browser: Browser, address: str) -> None:
    """Take the pages that need no answer of a server: the plan, on a phone, in Chinese and dark, and its hours."""
    page = opened(browser, address)
    take(page, "dashboard_plan")
    take(opened(browser, address, PHONE), "dashboard_phone")
    take(opened(browser, f"{address}?lang=zh", WIDE, "dark"), "dashboard_zh_dark")
    go_to(page, "Reasons")
    page.get_by_text("Why this plan").wait_for()
    take(page, "dashboard_reasons")
    go_to(page, "Operations")
    page.get_by_text("Hours & places", exact=True).first.click()
    page.get_by_text("Sites by longitude").wait_for()
    take(page, "dashboard_hours")


def more(browser: Browser, address: str) -> None:
    """Take the tables, how a point runs, and the catalog."""
    page = opened(browser, address)
    tables(page)
    page = opened(browser, address)
    go_to(page, "Physics")
    page.get_by_text("Operators on the roofline").wait_for()
    page.set_viewport_size(TALL)
    take(page, "dashboard_running")
    page.set_viewport_size(WIDE)
    go_to(page, "Evidence")
    page.get_by_text("Figures", exact=True).first.click()
    page.get_by_text(re.compile("of [0-9,]+ figures")).wait_for()
    take(page, "dashboard_catalog")


def whatif(browser: Browser, address: str) -> None:
    """Move a slider, and take what it changes."""
    page = opened(browser, address)
    go_to(page, "Change")
    page.get_by_text("Answered in").wait_for(timeout=LONGEST_STUDY_MS)
    page.locator("[data-testid=stSlider] input[type=range]").first.press("ArrowRight")
    page.get_by_text("Fleet before and after").wait_for()
    take(page, "dashboard_whatif")


PARTS = {"first": first, "more": more, "whatif": whatif, "explore": explore}


def main() -> None:
    """Take the pictures of the parts that are named, or all."""
    PICTURES.mkdir(exist_ok=True)
    with chromium() as browser, served() as (address, _):
        for name in sys.argv[1:] or PARTS:
            PARTS[name](browser, address)


if __name__ == "__main__":
    main()
