"""Take the pictures of the dashboard under docs/pictures in a browser, and print how long it takes. Run by `make dashboard-pictures`.

Needs the extra `test` and a Chromium on the path. Works in a folder of its own, so that no work of yours is touched.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

HOME = Path(__file__).resolve().parents[1]
PICTURES = HOME / "docs" / "pictures"
WIDE, PHONE, TALL = ({"width": width, "height": height} for width, height in ((1200, 1250), (390, 844), (1200, 2050)))
LONGEST_MS = 120_000
LONGEST_STUDY_MS = 600_000
COLOURS = 128
MOVES = 20  # of each slider, for the median
LAST_LINE = re.compile("(catalog|目录) [0-9a-f]{12}")


@contextmanager
def served() -> Iterator[str]:
    """Serve the dashboard of this checkout on a free port."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "planner.cli",
        "dashboard",
        "--server.headless",
        "true",
        "--server.port",
        str(port),
    ]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FLOPWATT_DASHBOARD": folder}
        server = subprocess.Popen(command, cwd=HOME, env=environment, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        next(line for line in server.stdout if "http://" in line)
        yield f"http://localhost:{port}/"
        server.terminate()
        server.wait()


def opened(browser: Browser, address: str, size: dict[str, int] = WIDE, scheme: str = "light") -> Page:
    """Open a page of a visitor of its own, once it shows a plan."""
    page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
    page.set_default_timeout(LONGEST_MS)
    page.goto(address)
    page.get_by_text(LAST_LINE).wait_for()
    page.locator("[data-testid=stMetricValue]").first.wait_for()
    return page


def take(page: Page, name: str) -> None:
    """Take a picture, with few colours, for it is kept in the repository."""
    page.wait_for_timeout(1500)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(COLOURS)
    picture.save(PICTURES / f"{name}.png", optimize=True)
    print(f"docs/pictures/{name}.png")


def go_to(page: Page, name: str) -> None:
    """Turn to a page by the navigation."""
    page.get_by_role("link", name=name).click()


def move(page: Page, lever: int, key: str) -> float:
    """Move a slider by a step and wait for its answer, which has a key of its own [s]."""
    answer = "[class*='st-key-answer-']"
    before = page.locator(answer).first.get_attribute("class")
    began = time.perf_counter()
    page.locator("[data-testid=stSlider] input[type=range]").nth(lever).press(key)
    while (found := page.locator(answer)).count() != 1 or found.first.get_attribute("class") == before:
        page.wait_for_timeout(20)
    return time.perf_counter() - began


def measured(page: Page) -> None:
    """Print the median time of moves of a price and of a latency, without those answered before."""
    for what, label in (("price", "GB200 NVL72, buy"), ("latency", "p95 at most")):
        labels = page.locator("[data-testid=stSlider] label").all_inner_texts()
        lever = next((i for i, text in enumerate(labels) if label in text), None)
        if lever is None:
            continue
        times = [move(page, lever, "ArrowLeft") for _ in range(7)] + [move(page, lever, "ArrowRight") for _ in range(8)]
        new = sorted(times, reverse=True)[:MOVES]
        print(f"{what} slider, {len(times)} moves: median {statistics.median(new):.2f} s, most {max(times):.2f} s")


def explore(page: Page) -> None:
    """Draw a frontier, and show the plan of its second point."""
    go_to(page, "Explore")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("The study has come to its end").wait_for(timeout=LONGEST_STUDY_MS)
    page.get_by_role("combobox", name="Plan of a point").click()
    page.get_by_role("option").nth(1).click()
    page.get_by_role("button", name="Open this plan").wait_for()
    take(page, "dashboard_explore")
def tables(page: Page) -> None:
    """Take a picture of the tables of a spec, with a power that is none."""
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


def main() -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    with served() as address, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for kind in ("cold", "warm"):
            began = time.perf_counter()
            page = opened(browser, address)
            print(f"first figures, {kind}: {time.perf_counter() - began:.2f} s")
        take(page, "dashboard_plan")
        take(opened(browser, address, PHONE), "dashboard_phone")
        take(opened(browser, f"{address}?lang=zh", WIDE, "dark"), "dashboard_zh_dark")
        go_to(page, "Hours & places")
        page.get_by_text("Sites by longitude").wait_for()
        take(page, "dashboard_hours")
        explore(page)
        tables(opened(browser, address))
        go_to(page, "Serving & training")
        page.get_by_text("Operators on the roofline").wait_for()
        page.set_viewport_size(TALL)
        take(page, "dashboard_running")
        page.set_viewport_size(WIDE)
        go_to(page, "Catalog & accuracy")
        page.get_by_text(re.compile("of [0-9,]+ figures")).wait_for()
        take(page, "dashboard_catalog")
        go_to(page, "Compare")
        page.get_by_role("button", name="Save").click()
        go_to(page, "What if")
        page.get_by_text("Answered in").wait_for()
        measured(page)
        take(page, "dashboard_whatif")
        browser.close()


if __name__ == "__main__":
    main()
