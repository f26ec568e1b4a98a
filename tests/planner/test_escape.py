"""Texts of a user are shown as text, on every target."""

from __future__ import annotations

import csv
import io
import json
import re
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner import escape
from planner.cli.main import main
from planner.dashboard import answers, headline
from planner.errors import Issue
from planner.report.locale import Words
from planner.report.outputs.sections import csv_tables
from planner.report.report import render
from planner.tables import as_csv, as_markdown, as_text

HOSTILE = "=cmd|'/c calc'!A0 \x1b]0;owned\x07 <img src=x> [a](http://b) **c** `d` $e$ :red[f] \u202eg\n# h"
STARTS = (
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "\t=1+1",
    "\r=1+1",
    " =1+1",
    "=1\n",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(A1)",
    " \uff1d1",
)


@pytest.fixture(scope="module")
def hostile_plan(tiny):
    """A plan of a spec whose every free text is hostile."""
    workload = {**tiny()["workloads"][0], "name": f"{HOSTILE} chat"}
    return planner.solve(tiny(name=HOSTILE, note=HOSTILE, workloads=[workload]))


@given(st.text())
def test_a_terminal_gets_one_line_without_controls(text):
    shown = escape.terminal(text)
    assert shown.splitlines() in ([shown], [])
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)


@pytest.mark.parametrize(
    "text", ["Größe 規模", "a-b_c", "一　二", "us-virginia", "sites[0].power", "price_usd_per_mwh", "50 %"]
)
def test_usual_names_stay_as_they_are(text):
    assert {escape.terminal(text), escape.markdown(text), escape.page(text), escape.csv_cell(text)} == {text}


@given(st.text())
def test_no_markup_is_left_without_a_backslash(text):
    for shown in (escape.markdown(text), escape.page(text)):
        plain = re.sub(r"\\[^\w\s]", "·", shown)  # what is left without everything that is escaped
        assert not re.search(r"[`*<>|~&!]|\[(?![0-9]+\])|\]\(", plain)
        assert not re.match(r"\s*([#=]|[+-]([\s-]|$)|[0-9]+[.)](\s|$))", plain)
    assert not re.search(r"\$|:[a-zA-Z]", re.sub(r"\\[^\w\s]", "·", escape.page(text)))


@pytest.mark.parametrize("text", ["http://a.example", "see https://a.example/b", "www.a.example", "a@b.example"])
def test_the_page_makes_no_link_of_an_address(text):
    """Streamlit looks for links where the escapes are read already."""
    read = re.sub(r"\\([^\w\s])", r"\1", escape.page(text))
    assert not re.search(r"https?://|www\.|\w@\w", read) and read.replace("\u2060", "") == text


@pytest.mark.parametrize("text", STARTS)
def test_a_cell_is_no_formula(text):
    assert not escape.csv_cell(text).startswith(
        ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20", "\t", "\r", " ")
    )
    assert next(csv.reader(io.StringIO(as_csv([{text: text}])))) == [escape.csv_cell(text)]


@pytest.mark.parametrize("text", ["-30%", "+4", "-1.5e-3", "-12 %"])
def test_a_number_in_a_cell_stays(text):
    assert escape.csv_cell(text) == text


def test_tables_show_texts_as_text():
    rows = [{HOSTILE: HOSTILE, "nested": {HOSTILE: [HOSTILE]}}]
    assert len(as_text(rows).splitlines()) == 3 and "\x1b" not in as_text(rows)
    assert len(as_markdown(rows).splitlines()) == 3 and "<img" not in as_markdown(rows).replace("\\<", "")
    for row in csv.reader(io.StringIO(as_csv(rows))):
        assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) or "\x1b" in cell for cell in row)


def test_a_problem_stays_on_its_line():
    assert len(str(Issue(HOSTILE, HOSTILE)).splitlines()) == 1 and "\x1b" not in str(Issue("", HOSTILE))


def test_a_plan_shows_no_markup_of_its_spec(hostile_plan):
    text = render(hostile_plan, "table")
    assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text and "\n# h" not in text
    plain = re.sub(r"\\[^\w\s]", "", render(hostile_plan, "md"))
    assert "\x1b" not in plain and "\n# h" not in plain
    assert not re.search(r"<img|\[a\]|\*\*c\*\*|`d`", plain)


def test_the_downloads_hold_no_formula_of_its_spec(hostile_plan):
    found = {file.label: file for file in answers.downloads(hostile_plan, "plan")}
    with zipfile.ZipFile(io.BytesIO(found["download.csv"].data)) as bundle:
        tables = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert tables.keys() == {f"{name}.csv" for name in csv_tables(hostile_plan)}
    cells = [cell for text in tables.values() for row in csv.reader(io.StringIO(text)) for cell in row]
    assert any("owned" in cell for cell in cells)
    assert not [cell for cell in cells if cell.startswith(("=", "@", "+", "-")) and not escape._NUMBER.fullmatch(cell)]
    assert not [cell for cell in cells if "\x1b" in cell]


def test_the_headlines_of_the_page_show_names_as_text(hostile_plan):
    for metric in headline.workload_metrics(hostile_plan, Words()):
        for text in (metric.label, metric.help):
            assert not re.search(r"<img|\[a\]|\*\*c\*\*|`d`|\$e\$|:red", re.sub(r"\\[^\w\s]", "", text))


def test_errors_and_progress_show_no_controls(tiny, tmp_path, capsys):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny(**{"x\x1b[2J": 1})))
    assert main(["check", str(spec)]) == 3
    assert main(["check", str(tmp_path / "no\x1b[2J.json")]) == 2
    assert main(["check", str(spec), "--set", "a.\x1b[2J.b"]) == 3
    assert "\x1b" not in capsys.readouterr().err
