"""The page in a real browser: charts are drawn, a file comes down, and nothing is asked of any other host.

Needs Playwright and a Chromium on the path; skipped without them.
"""

import io
import shutil
import socket
import subprocess
import sys
import zipfile

import pytest

from planner.dashboard import sources
from planner.plan import TABLES

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
playwright = pytest.importorskip("playwright.sync_api")
pytest.importorskip("streamlit")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")

QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
LONGEST_MS = 60_000


@pytest.fixture
def address():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ("--server.headless", "true", "--server.port", str(port))
    command = [sys.executable, "-m", "planner.cli", "dashboard", *options]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    for line in server.stdout:
        if "http://" in line:
            break
    else:
        pytest.fail("the server ended before it listened")
    yield f"http://localhost:{port}/"
    server.terminate()
    server.wait(timeout=30)
    server.stdout.close()


def test_the_page_works_in_a_browser_and_asks_nobody_else(address):
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        page = browser.new_page()
        errors, asked = [], set()
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.add(request.url))
        page.goto(address)
        page.get_by_text("The second choice at each site").wait_for(timeout=LONGEST_MS)
        page.locator("[aria-label^='Chips by site']").first.wait_for(state="attached", timeout=LONGEST_MS)
        assert page.get_by_text(sources.stored_plan()["name"]).count() == 1
        assert page.locator("[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg").count() >= 2
        with page.expect_download() as download:
            page.get_by_role("button", name="Tables (CSV)").click()
        with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as archive:
            assert {f"{table}.csv" for table in TABLES} <= set(archive.namelist())
        page.get_by_text("中文").click()
        page.get_by_text("求解", exact=True).wait_for(timeout=LONGEST_MS)
        assert page.url.endswith("?lang=zh")
        browser.close()
    assert not errors
    strangers = {url for url in asked if not url.startswith((address, "data:", "blob:", "about:"))}
    assert not strangers
