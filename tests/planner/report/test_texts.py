"""What a plan says stands in the messages, in every language: no sentence in the code, and none in English on a Chinese page."""

import ast
import json
import re
from pathlib import Path

import pytest

import planner.report
from planner.dashboard import sources
from planner.messages import texts
from planner.plan import Plan, load_plan
from planner.report.outputs.html import html_page
from planner.report.outputs.sections import sections_of
from planner.report.page import one_page
from planner.report.report import headline, render

HOME = Path(planner.report.__file__).parent
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
TREES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(HOME.rglob("*.py"))}
SENTENCE = re.compile(
    r"[A-Za-z]{2,}[^A-Za-z{}\n]* [A-Za-z]{2,}|\{\} [a-z]{2,}|[a-z]{2,} \{\}"
)  # two words, or one beside a figure
INTERNAL = {
    "flopwatt {}",  # name and version of the program that wrote a page
    *(
        "supply of ",
        "size of ",
        "power in {}",
        "connection of {}",
        "{} from ",
        "supply of {} ({})",
    ),  # names of limits in plans of earlier releases
    *("spare parts", "early exit"),  # keys of components of the cost
    *("{} {} ms", "max(datum.begin, datum.end)"),  # a figure, and an expression of a chart
}
MARKUP = re.compile(r"<[a-z]+|[;:{] |https?:")


def strings(tree):
    """Yield the texts of a module, with {} in each place to fill; docstrings and parts of other texts left out."""
    apart = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            apart.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            apart |= {id(part) for part in node.values}
        if isinstance(node, ast.FormattedValue) and node.format_spec:
            apart |= {id(part) for part in ast.walk(node.format_spec)}
    for node in ast.walk(tree):
        if id(node) in apart:
            continue
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def test_no_sentence_stands_in_the_code_of_reports():
    found = {
        (path.name, text)
        for path, tree in TREES.items()
        for text in strings(tree)
        if SENTENCE.search(text) and text not in INTERNAL and not MARKUP.search(text)
    }
    assert not found


def test_every_key_of_a_row_has_a_head():
    keys = {key for row in rows_in_code() for key in row}
    assert len(keys) > 100 and not {key for key in keys if f"head.{key}" not in texts("en")}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_two_columns_of_a_row_have_one_head(language):
    """Two columns with one head would be one column."""
    heads = texts(language)
    rows = [[heads[f"head.{key}"] for key in row] for row in rows_in_code()]
    assert not [row for row in rows if len(row) != len(set(row))]


def rows_in_code():
    """List the keys of each row: rows are dicts of several keys in functions of tables, and their keys are columns."""
    return [
        [key.value for key in row.keys if isinstance(key, ast.Constant) and key.value]
        for path, tree in TREES.items()
        if "charts" not in path.parts
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.returns and "Row" in ast.unparse(function.returns)
        for row in ast.walk(function)
        if isinstance(row, ast.Dict)
    ]


@pytest.fixture(scope="module")
def plans():
    """Return plans of several kinds: stored, of earlier releases, robust, without an answer."""
    stored = sources.stored_plan()
    ended = json.loads(json.dumps(stored.document))
    ended["solver"]["ended_by"], ended["status"] = "time", "limit"
    robust = load_plan(GOLDEN / "robust_plan_of_schema_1.json")
    return {"stored": stored, "ended": Plan(ended), "robust": robust}


def own_words(plan):
    """Return the words of the user and of sources, which stay as they are; all words of a plan that was made before texts had codes."""
    if not any("name_message" in row for row in plan.document["limits"]):
        return json.dumps(plan.document, ensure_ascii=False)
    noted = [row.get("reason_message", {}).get("arguments", {}).get("source") for row in plan.document["assumptions"]]
    return json.dumps([plan.document["spec"], plan.document["provenance"], noted], ensure_ascii=False)


ENGLISH = re.compile(r"[A-Za-z]{3,}(?: [a-z]{2,}){2,}")  # three words in a row


@pytest.mark.parametrize("name", ["stored", "ended", "robust"])
@pytest.mark.parametrize("write", [lambda plan: render(plan, "md", "zh"), lambda plan: one_page(plan, language="zh")])
def test_a_chinese_report_holds_no_english_sentence(plans, name, write):
    plan = plans[name]
    text, own = write(plan), own_words(plan)
    assert re.search("[\u4e00-\u9fff]", text)
    assert not {found for found in ENGLISH.findall(text) if found not in own}


def test_heads_headings_and_remarks_are_said_in_chinese(plans):
    english, chinese = (sections_of(plans["stored"], language) for language in ("en", "zh"))
    assert len(english) == len(chinese) > 10
    for ours, theirs in zip(english, chinese, strict=True):
        assert ours.heading != theirs.heading and len(ours.rows) == len(theirs.rows)
        assert bool(ours.remark) == bool(theirs.remark) and (not ours.remark or ours.remark != theirs.remark)


def test_a_page_of_html_states_its_language(plans, monkeypatch):
    pytest.importorskip("altair")
    monkeypatch.setattr("planner.report.outputs.html._svg", lambda spec: "<svg/>")
    page = html_page(plans["stored"], "zh")
    assert '<html lang="zh">' in page and headline(plans["stored"]) not in page
