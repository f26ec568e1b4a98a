"""A report proves itself: the plan comes out of it as it went in, and any digit that is changed is found."""

import json
import random
import re

import pytest

from planner.cli.main import main
from planner.dashboard import sources
from planner.errors import SpecError
from planner.exit_codes import BROKEN, OK
from planner.plan import parse_plan
from planner.report.outputs import html
from planner.report.outputs.proof import compared, differences

pytest.importorskip("vl_convert")
CHIPS = f"{sources.stored_plan().totals['chips']:,} chips"
FEW = 40  # digits that are changed one by one


@pytest.fixture(scope="module")
def page():
    return html.html_page(sources.stored_plan())


def codes(page: str) -> list[str]:
    return [message.code for _, message in compared(page, parse_plan(page)).findings]


def test_the_plan_inside_is_the_plan(page):
    assert parse_plan(page).document == sources.stored_plan().document
    assert parse_plan(page.encode()).document == sources.stored_plan().document


def test_an_untouched_report_agrees_with_its_plan(page):
    check = compared(page, parse_plan(page))
    assert not check.findings and not check.unchecked


def test_one_changed_digit_is_found_wherever_a_reader_sees_it(page):
    seen = page.partition("<body>")[0], page.partition("<body>")[2].partition("<script")[0]
    places = [found.start() for found in re.finditer(r"(?<=[>\s,.])\d", seen[1])]
    for at in random.Random(7).sample(places, FEW):
        place = len(seen[0]) + len("<body>") + at
        changed = page[:place] + str(9 - int(page[place])) + page[place + 1 :]
        found = differences(changed, page)
        assert [where for where, _ in found] == [f"line {page.count(chr(10), 0, place) + 1}"]
    check = compared(changed, parse_plan(page))
    assert [(where, message.code) for where, message in check.findings] == [(found[0][0], "report.line_differs")]


def test_a_digit_is_found_where_charts_cannot_be_drawn(page, monkeypatch):
    monkeypatch.setattr(html, "drawing_versions", lambda: "altair 0, vl-convert-python 0")
    check = compared(page, parse_plan(page))
    assert not check.findings and [each.code for each in check.unchecked] == ["report.charts_unchecked"]
    assert codes(page.replace(CHIPS, f"1{CHIPS}")) == ["report.line_differs"]
    chart = page.index("<figure")
    place = next(found.start() + chart for found in re.finditer(r"(?<=>)\d", page[chart:]))
    assert codes(page[:place] + str(9 - int(page[place])) + page[place + 1 :]) == ["report.digest_differs"]


def test_a_page_of_another_version_is_held_against_its_digest(page, monkeypatch):
    monkeypatch.setattr(html, "GENERATOR", "flopwatt 9.9")
    check = compared(page, parse_plan(page))
    assert not check.findings and [each.code for each in check.unchecked] == ["report.another_version"]
    assert codes(page.replace(CHIPS, f"1{CHIPS}")) == ["report.digest_differs"]


def test_a_page_without_a_plan_is_refused():
    with pytest.raises(SpecError) as refused:
        parse_plan("<!doctype html><html></html>", "page.html")
    assert "page.html" in str(refused.value) and "flopwatt report" in str(refused.value)


def test_a_hostile_text_ends_no_element():
    document = {**sources.stored_plan().document, "name": "</script><script>alert(1)</script>"}
    page = html.html_page(parse_plan(json.dumps(document)), with_charts=False)
    assert page.count("<script") == 1 == page.count("</script>")
    assert parse_plan(page)["name"] == document["name"]


def test_the_command_writes_beside_the_plan_and_verify_proves_the_page(tmp_path, capsys, tiny):
    plan, spec = tmp_path / "plan.json", tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()))
    assert main(["plan", str(spec), "-q", "--format", "json", "--output", str(plan)]) == OK
    assert main(["report", str(plan)]) == OK
    page = (tmp_path / "plan.html").read_text()
    assert main(["verify", str(tmp_path / "plan.html")]) == OK
    (tmp_path / "plan.html").write_text(page.replace('<td class="number">1</td>', '<td class="number">2</td>', 1))
    capsys.readouterr()
    assert main(["verify", str(tmp_path / "plan.html")]) == BROKEN
    assert 'says "2' in capsys.readouterr().out
    (tmp_path / "plan.html").write_text(page)
    assert main(["show", str(tmp_path / "plan.html"), "--format", "json"]) == OK
    assert json.loads(capsys.readouterr().out) == json.loads(plan.read_text())
