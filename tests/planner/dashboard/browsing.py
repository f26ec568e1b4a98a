"""Look at a page in a browser: wait until it stands still, read its figures, upload to it, choose a scenario."""

import re
import shutil

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
QUIET = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync")
LONGEST_MS = 60_000
STILL = 4  # looks in a row that find the same text


def settled(page):
    """Wait until the text of the page stands still; parts of it are drawn some time after the script has ended."""
    page.locator("[data-testid=stApp][data-test-script-state=notRunning]").wait_for(state="attached")
    texts = [""]
    while len(texts) < STILL or len(set(texts[-STILL:])) > 1 or not texts[-1]:
        page.wait_for_timeout(200)
        texts.append(page.locator("main").inner_text())
        assert len(texts) < LONGEST_MS / 200
    return page


def answered(page):
    """Wait until the page shows how sure a plan is, or why there is none, and stands still."""
    page.locator("[class*=st-key-risk-], [data-testid=stAlert]").first.wait_for()
    return settled(page)


def figures(page) -> list[str]:
    """The headline figures, once they stand still."""
    page.get_by_text(re.compile("catalog [0-9a-f]{12}")).wait_for()  # the last line of a plan
    page.locator("[data-testid=stMetricValue]").first.wait_for()
    return settled(page).locator("[data-testid=stMetricValue]").all_inner_texts()


def upload(page, *files: tuple[str, bytes], button: str = "Upload"):
    page.get_by_role("button", name=button).first.click()
    page.locator("input[type=file]").set_input_files(
        [{"name": name, "mimeType": "application/json", "buffer": content} for name, content in files]
    )


def chosen(page, name: str):
    page.get_by_role("combobox", name="Scenario").click()
    page.get_by_role("option", name=name, exact=True).click()
    return settled(page)
