"""The HTML page and the workbook hold what the plan says, need nothing else, and show texts as text."""

import io
import re
import zipfile
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

from planner.cli.main import main
from planner.dashboard import sources
from planner.exit_codes import USAGE
from planner.plan import Plan
from planner.report.outputs import excel, html
from planner.report.outputs.sections import csv_tables, sections_of
from planner.report.report import headline

pytest.importorskip("vl_convert")
pytest.importorskip("xlsxwriter")

PLAN = sources.stored_plan()
HOSTILE = "<script>alert(1)</script><img src=http://evil.example/x> =1+1 \x1b[2J"


class Read(HTMLParser):
    """Tags, addresses and texts of a page."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.links, self.texts = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        data = dict(attrs).get("type") == "application/json"  # no browser runs it
        self.tags.append("data" if tag == "script" and data else tag)
        self.links += [
            value
            for name, value in attrs
            if (name, (value or "")[:1]) != ("href", "#") and name in ("src", "href", "xlink:href", "action", "srcset")
        ]

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture(scope="module")
def page():
    return html.html_page(PLAN)


def test_the_page_needs_nothing_else_and_holds_charts_and_tables(page):
    read = Read(page)
    assert not {"script", "link", "img", "iframe", "object"} & set(read.tags)
    assert not read.links and not re.search(r"url\((?!#)|@import|@font-face", page)
    sites = {row["site"] for row in PLAN["schedule"] if row["energy_j"] > 0}
    assert read.tags.count("svg") == 3 + 2 * len(sites) == page.count("<figure role=")
    assert read.tags.count("table") == len(sections_of(PLAN))
    words = " ".join(read.texts)
    assert PLAN["name"] in words and headline(PLAN) in words
    assert all(f"{row['count']:,}" in words or str(row["count"]) in words for row in PLAN["fleet"])
    assert not re.search(r"\bNaN\b|undefined", words)


def test_a_hostile_name_is_a_text():
    document = {**PLAN.document, "name": HOSTILE, "spec": {**PLAN["spec"], "note": HOSTILE}}
    page = html.html_page(Plan(document))
    read = Read(page)
    assert not {"script", "img"} & set(read.tags) and "\x1b" not in page
    assert any("<script>alert(1)</script>" in text for text in read.texts)


def sheets(plan: Plan) -> dict[str, list]:
    """The cells of each sheet: numbers as float, texts as str."""
    space = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
    with zipfile.ZipFile(io.BytesIO(excel.workbook(plan))) as book:
        shared = ["".join(item.itertext()) for item in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))]
        names = [
            item.get("name") for item in ElementTree.fromstring(book.read("xl/workbook.xml")).iter(f"{space}sheet")
        ]
        found = {}
        for i, name in enumerate(names, 1):
            root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{i}.xml"))
            assert not list(root.iter(f"{space}f"))  # no formula
            found[name] = [
                shared[int(cell.findtext(f"{space}v"))] if cell.get("t") == "s" else float(cell.findtext(f"{space}v"))
                for cell in root.iter(f"{space}c")
                if cell.findtext(f"{space}v") is not None
            ]
    return found


def test_the_workbook_holds_every_table_with_numbers_as_numbers():
    found = sheets(PLAN)
    assert set(found) == {"overview", *csv_tables(PLAN)}
    totals = {f"{each:.12g}" for each in found["overview"] if isinstance(each, float)}  # a workbook keeps 16 digits
    assert f"{PLAN['totals']['cost']:.12g}" in totals and PLAN["name"] in found["overview"]
    assert {row["count"] for row in PLAN["fleet"]} <= set(found["fleet"])
    written = {f"{each:.12g}" for each in found["cost_lines"] if isinstance(each, float)}
    assert {f"{row['amount']:.12g}" for row in PLAN["cost_lines"]} <= written
    document = {**PLAN.document, "name": "=1+1", "fleet": [{**PLAN["fleet"][0], "site": "=cmd|' /c calc'!A0"}]}
    assert "=cmd|' /c calc'!A0" in sheets(Plan(document))["fleet"]


def test_the_command_writes_the_page_or_says_what_is_missing(tiny, tmp_path, monkeypatch, capsys):
    import json

    spec, file = tmp_path / "spec.json", tmp_path / "plan.html"
    spec.write_text(json.dumps(tiny()))
    assert main(["plan", str(spec), "--format", "html", "--output", str(file), "-q"]) == 0
    assert file.read_text().startswith("<!doctype html>") and "<svg" in file.read_text()
    monkeypatch.setattr(html, "can_draw", lambda: False)
    assert main(["plan", str(spec), "--format", "html"]) == USAGE
    assert "vl-convert-python" in capsys.readouterr().err
