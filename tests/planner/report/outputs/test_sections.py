"""Every table of a plan is in every output: the terminal, Markdown, HTML, CSV, the workbook and the dashboard."""

import re
from typing import get_type_hints

import pytest

from planner.dashboard import sources
from planner.dashboard.views.plan_sections import VIEWS
from planner.plan.rows.document import PlanDocument
from planner.report.outputs import html
from planner.report.outputs.chapters import CHAPTERS, chapters_of
from planner.report.outputs.parts import PARTS
from planner.report.outputs.sections import SECTIONS, csv_tables, sections_of, tables_of
from planner.report.report import opening, render

ELSEWHERE = {"notes", "reasons"}  # lists of sentences, which every output writes as a chapter
LISTS = [name for name, hint in get_type_hints(PlanDocument).items() if "list[" in str(hint)]


@pytest.fixture(scope="module")
def plan():
    return sources.stored_plan()


def test_every_list_of_the_plan_document_belongs_to_one_section():
    stored = [name for one in SECTIONS for name in one.stored]
    assert len(stored) == len(set(stored))
    assert set(stored) | ELSEWHERE == set(LISTS) and not ELSEWHERE & set(stored)


def test_keys_are_unique_and_views_are_of_sections():
    keys = [one.key for one in SECTIONS]
    assert len(keys) == len(set(keys)) and set(keys) >= VIEWS.keys()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_terminal_markdown_and_html_hold_every_heading_and_the_odds(plan, language):
    headings = [table.heading for table in sections_of(plan, language)]
    texts = {form: render(plan, form, language) for form in ("table", "md")}
    texts["html"] = html.html_page(plan, language, with_charts=False)
    opened = opening(plan, language)
    assert headings and opened.odds and opened.verdict and opened.totals
    for form, text in texts.items():
        assert not [heading for heading in headings if heading not in text], form
        where = {part: text.find(getattr(opened, part)[:20]) for part in ("verdict", "odds", "totals")}
        assert 0 < where["verdict"] < where["odds"] < where["totals"], (form, where)


def test_csv_holds_a_table_for_every_section_with_rows(plan):
    tables = csv_tables(plan)
    for one in SECTIONS:
        filled = any(rows for _, rows in one.tables(plan))
        names = one.stored or (one.key,)
        assert not filled or any(tables.get(name) for name in names) or len(one.tables(plan)) > 1, one.key


def test_every_section_and_every_chapter_belongs_to_one_part():
    registered = [*SECTIONS, *CHAPTERS]
    assert {each.part for each in registered} <= set(PARTS)
    assert len({each.key for each in CHAPTERS}) == len(CHAPTERS)


@pytest.mark.parametrize("name", sources.examples())
def test_the_parts_share_out_the_headings_of_a_report(name):
    """Each heading of the Markdown comes from the sections and chapters of exactly one part."""
    plan = sources.plan_of_example(name)
    headings = re.findall(r"(?m)^## (.*)$", render(plan, "md"))
    parts = {
        part: [heading for heading, _ in chapters_of(plan, part=part)]
        + [table.heading for one in SECTIONS if one.part == part for table in tables_of(one, plan)]
        for part in PARTS
    }
    assert headings and sorted(headings) == sorted(heading for found in parts.values() for heading in found)
    assert len(headings) == len(set(headings))
