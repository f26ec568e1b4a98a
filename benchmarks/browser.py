"""Serve the dashboard of this checkout and open it in a browser; shared by benchmarks/dashboard.py and docs/build_dashboard_pictures.py.

Needs the extra `test` and a Chromium on the path. The server works in a folder of its own, so that no work of yours is touched.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

HOME = Path(__file__).resolve().parent.parent
WIDE = {"width": 1200, "height": 1250}
LONGEST_MS = 120_000
LAST_LINE = re.compile("(catalog|目录) [0-9a-f]{12}")


@contextmanager
def served(works: str | None = None) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Serve the dashboard on a free port: its address, and the process of its server; `works`: a folder of works in place of an empty one."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ("--server.headless", "true", "--server.port", str(port))
    command = [sys.executable, "-m", "planner.cli", "dashboard", *options]
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FLOPWATT_DASHBOARD": works or folder, "PYTHONPATH": str(HOME)}
        server = subprocess.Popen(command, cwd=HOME, env=environment, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            next(line for line in server.stdout if "http://" in line)
            yield f"http://localhost:{port}/", server
        finally:
            server.terminate()
            try:
                server.wait(timeout=5)
            except subprocess.TimeoutExpired:  # it waits for its visitors
                server.kill()
                server.wait()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the Chromium on the path."""
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def opened(browser: Browser, address: str, size: dict[str, int] = WIDE, scheme: str = "light") -> Page:
    """Open a page of a visitor of its own, once it shows a plan."""
    page = visited(browser, address, size, scheme)
    page.get_by_text(LAST_LINE).wait_for()
    page.locator("[data-testid=stMetricValue]").first.wait_for()
    return page


def visited(browser: Browser, address: str, size: dict[str, int] = WIDE, scheme: str = "light") -> Page:
    """Open a page of a visitor of its own."""
    page = browser.new_context(viewport=size, color_scheme=scheme).new_page()
    page.set_default_timeout(LONGEST_MS)
    page.goto(address)
    return page


def go_to(page: Page, name: str) -> None:
    """Turn to a page by the navigation."""
    page.get_by_role("link", name=name).click()
