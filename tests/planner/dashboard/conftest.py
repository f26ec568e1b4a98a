"""A server of the dashboard and a browser that visits it, for tests in a real browser; skipped where there is no Chromium on the path."""

import socket
import subprocess
import sys

import pytest

from planner.dashboard.state import store
from tests.planner.dashboard.browsing import CHROMIUM, LONGEST_MS, QUIET


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    options = ("--server.headless", "true", "--server.port", str(port))
    command = [sys.executable, "-m", "planner.cli", "dashboard", *options]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(store.FOLDER, str(tmp_path_factory.mktemp("works")))
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


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@pytest.fixture
def visit(address, browser):
    """A function that opens an address in a context of its own; in the end nothing may have failed or been asked of others."""
    errors, asked, contexts = [], set(), []

    def visited(query: str = "", **options):
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(LONGEST_MS)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: asked.add(request.url))
        page.goto(query if query.startswith("http") else address + query)
        return page

    yield visited
    for context in contexts:
        context.close()
    assert not errors
    assert not {url for url in asked if not url.startswith((address, "data:", "blob:", "about:"))}
