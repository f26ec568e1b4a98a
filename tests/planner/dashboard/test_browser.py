"""The page in a real browser: what it draws, keeps, downloads and asks for, and how it reads.

Needs a Chromium on the path, and is skipped without one. Playwright and axe are part of the extra `test`: where there is a Chromium they
must be there too.
"""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest

from planner.dashboard import sources
from planner.plan import TABLES
from tests.planner.dashboard.browsing import CHROMIUM, answered, chosen, figures, settled, upload

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on the path")
if CHROMIUM is not None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import TimeoutError as PlaywrightTimeout

TINY = json.loads((Path(__file__).parent / "tiny.json").read_text())
HOSTILE = (
    "![i](http://evil.example/i.png) [l](http://evil.example/l) <img src=http://evil.example/h> $\\frac{a}{b}$ :red[r]"
)
NO_FIGURE = re.compile(r"\bNaN\b|\de[+-]\d|(?<![\w.,])-0(?:\.0+)?(?![\d.,])|Infinity|undefined")
ENGLISH_SENTENCE = re.compile(r"[A-Za-z]+(?: [a-z]+){4,}")  # five words in a row
DRAWN = "[data-testid=stVegaLiteChart] canvas, [data-testid=stVegaLiteChart] svg"


def test_charts_are_drawn_and_files_come_down_and_go_up_again(visit):
    page = answered(visit())
    assert page.get_by_role("heading", name=sources.stored_plan()["name"]).count() == 1
    page.get_by_role("button", name="Present, share, export").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Tables (CSV)").click()
    with zipfile.ZipFile(io.BytesIO(download.value.path().read_bytes())) as archive:
        assert {f"{table}.csv" for table in TABLES} <= set(archive.namelist())
    with page.expect_download() as download:
        page.get_by_role("button", name="Plan (JSON)").click()
    page.keyboard.press("Escape")
    assert not NO_FIGURE.search(page.locator("main").inner_text())
    before = figures(page)
    page.get_by_role("link", name="Operations").click()
    page.locator("[aria-label^='Chips by site']").first.wait_for(state="attached")
    settled(page)
    assert page.locator(DRAWN).count() >= page.locator("[data-testid=stVegaLiteChart]").count() > 2
    assert not NO_FIGURE.search(page.locator("main").inner_text())
    page.locator("[data-testid=stVegaLiteChart]").first.click(position={"x": 150, "y": 50})  # the second bar
    page.get_by_text("alone:").wait_for()
    other = answered(visit())
    upload(other, ("plan.json", download.value.path().read_bytes()))
    other.get_by_text(re.compile("Verified:")).wait_for()
    assert figures(other) == before


def test_an_edit_is_in_the_address_and_on_a_phone_its_plan_in_sight(visit, tmp_path):
    phone = answered(visit(viewport={"width": 390, "height": 844}))
    upload(phone, ("tiny.json", json.dumps({**TINY, "name": HOSTILE}).encode()))
    phone.get_by_text("No plan for this spec yet").wait_for()
    phone.get_by_test_id("stExpandSidebarButton").click()
    phone.get_by_role("link", name="Change").click()
    phone.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    phone.get_by_text("Change figures and solve").first.click()
    phone.get_by_role("textbox", name="requests per second").fill("25")
    phone.get_by_role("button", name="Solve", exact=True).click()
    found = figures(phone)
    box = phone.locator("[class*=st-key-risk-]").first.bounding_box()
    assert 0 <= box["y"] < 844 and phone.evaluate("document.documentElement.scrollWidth") <= 390
    again = answered(visit(phone.url))  # another visitor with the address
    assert figures(again) == found
    assert again.get_by_text("20 → 25").count() == 1
    again.reload()
    assert figures(answered(again)) == found
    assert "id=" in again.url
    assert not again.locator("main img, main a, .katex, .stMarkdownColoredText").evaluate_all(
        "nodes => nodes.filter(node => node.host !== location.host).map(node => node.outerHTML)"
    )


def test_back_turns_to_the_scenario_before_and_on_to_the_one_after(visit):
    page = answered(visit("?base=mixed_fleet"))
    chosen(page, "quality")
    page.wait_for_url(re.compile("base=quality"))
    page.go_back()
    page.get_by_role("heading", name=sources.stored_plan()["name"]).wait_for()
    assert "base=mixed_fleet" in settled(page).url
    page.go_forward()
    page.get_by_role("heading", name=sources.plan_of_example("quality")["name"]).wait_for()
    assert "base=quality" in settled(page).url


def test_an_address_and_a_link_show_nothing_of_other_uploads_and_a_dead_one_says_so(visit):
    page = answered(visit())
    upload(page, ("tiny.json", json.dumps({**TINY, "name": "a secret"}).encode()))
    page.get_by_text("No plan for this spec yet").wait_for()
    page.wait_for_url(re.compile("base=upload"))
    own = settled(page).url
    assert [cookie["sameSite"] for cookie in page.context.cookies() if cookie["name"] == "flopwatt"] == ["Strict"]
    chosen(page, "quality")
    page.wait_for_url(re.compile("base=quality"))
    other = settled(visit(page.url))
    other.get_by_role("combobox", name="Scenario").click()
    names = other.get_by_role("option").all_inner_texts()
    assert "quality" in names and not [name for name in names if "secret" in name]
    page.reload()
    settled(page).get_by_role("combobox", name="Scenario").click()
    page.get_by_role("option", name="a secret (uploaded)", exact=True).click()
    page.wait_for_url(own)
    assert settled(visit(own)).get_by_role("heading", name="a secret").count() == 1
    dead = settled(visit("?base=upload&id=0123456789abcdef0123"))
    assert dead.locator("h2").all_inner_texts() == ["This address leads to nothing here"]


def test_what_is_saved_after_a_bookmark_was_opened_is_there_at_the_next_visit(visit):
    bookmark = settled(visit("?base=owning")).url
    for name in ("first", "second"):
        page = settled(visit(bookmark))
        page.get_by_role("link", name="Change").click()
        page.get_by_role("link", name="Compare").click()
        page.get_by_label("Name of the scenario").fill(name)
        page.get_by_role("button", name="Save", exact=True).click()
        page.get_by_text(name, exact=True).first.wait_for()
    page = settled(visit(bookmark))
    page.get_by_role("link", name="Change").click()
    page.get_by_role("link", name="Compare").click()
    for name in ("first", "second"):
        page.get_by_text(name, exact=True).first.wait_for()


def test_a_cell_of_a_table_is_an_edit_in_the_address(visit):
    page = answered(visit())
    page.get_by_role("link", name="Change").click()
    page.get_by_role("link", name="Spec").click()
    page.get_by_role("tab", name="Sites").click()
    table = page.locator("[data-testid=stDataFrame]:visible").first
    table.locator("canvas").first.wait_for()
    settled(page)
    table.click(position={"x": 160, "y": 52})  # the power of the first site
    page.keyboard.press("Enter")
    cell = page.locator("#portal textarea").first
    cell.fill("7 MW")
    cell.press("Enter")
    page.wait_for_url(re.compile(r"set=sites(%5B|\[)0(%5D|\])\.power%3D7\+MW"))
    assert not page.locator("[data-testid=stAlert]").count()


def test_a_click_on_the_map_shows_a_site_alone_on_every_page(visit):
    page = answered(visit())
    page.get_by_role("link", name="Operations").click()
    page.get_by_text("Hours & places", exact=True).first.click()
    sites = page.locator(f"{DRAWN} .mark-symbol.role-mark path[aria-label*='us-texas']")
    sites.click()
    page.get_by_role("heading", name="What is served in us-texas, hour by hour").wait_for()
    page.locator("[aria-label^='us-texas over hours']").first.wait_for(state="attached")  # its days and hours
    page.get_by_text("Deployments", exact=True).first.click()
    page.get_by_text("Below, us-texas alone:").wait_for()
    page.get_by_role("button", name="Hours & places").or_(
        page.get_by_role("radio", name="Hours & places")
    ).first.click()
    page.get_by_role("button", name="Show all sites").click()
    page.get_by_role("heading", name="What is served, hour by hour").wait_for()


def test_a_point_of_a_frontier_is_clicked_and_becomes_the_scenario(visit):
    page = visit()
    upload(page, ("tiny.json", json.dumps(TINY).encode()))
    page.get_by_text("No plan for this spec yet").wait_for()
    page.get_by_role("link", name="Reasons").click()
    page.get_by_text("Frontier", exact=True).first.click()
    page.get_by_role("combobox", name="Against").click()
    page.get_by_role("option", name="demand").click()
    page.get_by_role("slider", name="Points").press("Home")
    page.get_by_role("button", name="Start").click()
    page.get_by_text("The study has come to its end").wait_for()
    points = page.locator(f"{DRAWN} .mark-symbol.role-mark path")
    points.nth(2).wait_for()
    assert points.count() == 3 and not NO_FIGURE.search(page.locator("main").inner_text())
    points.last.click()
    page.get_by_role("button", name="Open this plan").click()
    page.wait_for_url(re.compile("[?&]set=workloads"))


def test_figures_are_found_with_their_source_and_errors_by_chip(visit):
    page = visit()
    page.get_by_role("link", name="Evidence").click()
    page.get_by_text("Figures", exact=True).first.click()
    page.get_by_role("textbox", name="Search").fill("H200 hbm_bytes_per_s")
    page.get_by_role("textbox", name="Search").press("Enter")
    page.get_by_text(re.compile(r"^\d of [0-9,]+ figures")).wait_for()
    page.get_by_text("Accuracy", exact=True).click()
    page.locator(DRAWN).first.wait_for()
    assert page.locator(f"{DRAWN} .mark-symbol path").count() > 100
    page.get_by_text("Own figures", exact=True).click()
    record = {"chips": [{"name": "H200", "figures": {"tdp_w": "700 mW"}}]}
    page.locator("input[type=file]").set_input_files(
        [{"name": "own.json", "mimeType": "application/json", "buffer": json.dumps(record).encode()}]
    )
    page.get_by_text("catalog.chips[0].figures.tdp_w").wait_for()
    assert not NO_FIGURE.search(settled(page).locator("main").inner_text())


def english_sentences(page) -> list[str]:
    return [text for text in settled(page).locator("main").inner_text().splitlines() if ENGLISH_SENTENCE.search(text)]


def test_the_pages_in_chinese_hold_no_english_sentence(visit):
    page = visit("?lang=zh")
    page.get_by_text("是：").or_(page.get_by_text("风险")).first.wait_for()
    assert "lang=zh" in page.url and not english_sentences(page)
    page.get_by_role("link", name="调整").click()
    page.get_by_text("修改数字并求解").first.click()
    page.get_by_role("textbox", name="输出 token").first.fill("3 MB")
    page.get_by_role("button", name="求解", exact=True).click()
    page.get_by_text("应为每秒 token 数").first.wait_for()
    assert not english_sentences(page)
    for name, shown in (
        ("问题", "电力"),
        ("比较", "保存"),
        ("理由", "为何"),
        ("运行", "部署"),
        ("性能", "屋顶线"),
        ("依据", "假设"),
    ):
        page.get_by_role("link", name=name).click()
        page.get_by_text(shown).first.wait_for()
        assert not english_sentences(page), name
    upload(page, ("tiny.json", json.dumps(TINY).encode()), button="上传")
    page.wait_for_url(re.compile("base=upload"))  # it has arrived
    page.get_by_role("link", name="调整").click()
    try:
        page.get_by_text("内作答").wait_for()
    except PlaywrightTimeout:
        pytest.fail(f"no answer at {page.url}: {page.inner_text('body')}")
    page.locator("[data-testid=stSlider] input[type=range]").first.press("ArrowRight")
    page.get_by_text("改动前后的机群").wait_for()
    assert not english_sentences(page)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(visit, scheme):
    page = answered(visit(color_scheme=scheme))
    found = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in Axe().run(page).response["violations"]
    }
    assert not found
