"""Every message has a text in every language, with the same arguments, and no code stands in two files."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from string import Formatter

import pytest

import catalog
import planner.messages as messages
from catalog.errors import Wrong, did_you_mean
from catalog.lookup import shipped_catalog
from models.training.step import BREAKDOWN
from planner.messages import DEFAULT, LANGUAGES, Message, Said, enumerated, named, of_row, said_of, texts, translated

HOME = Path(messages.__file__).parent
CATALOG = Path(catalog.__file__).parent / "messages"
SOURCES = [*HOME.parent.rglob("*.py"), *CATALOG.parent.rglob("*.py")]


@pytest.fixture(scope="module")
def trees() -> list[ast.Module]:
    """Parse the source of planner and catalog once; at collection it would stay in memory for the whole run."""
    return [ast.parse(path.read_text("utf-8")) for path in SOURCES]


def places(text: str) -> set[str]:
    """Return the names of the arguments that a text has room for."""
    return {name for _, name, _, _ in Formatter().parse(text) if name is not None}


@pytest.mark.parametrize("language", [language for language in LANGUAGES if language != DEFAULT])
def test_every_language_has_every_code_with_the_same_arguments(language):
    assert texts(language).keys() == texts(DEFAULT).keys()
    wrong = [code for code, text in texts(DEFAULT).items() if places(texts(language)[code]) != places(text)]
    assert not wrong


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_code_stands_in_two_files(language):
    counts = Counter(
        code
        for path in (CATALOG / f"{language}.json", *(HOME / language).glob("*.json"))
        for code in json.loads(path.read_text("utf-8"))
    )
    assert not [code for code, count in counts.items() if count > 1]


def test_a_message_comes_back_from_its_row():
    message = Message.of("list.more", count=3)
    assert of_row(message.row()) == message
    assert message.text("zh") != message.text()


def test_a_row_of_another_release_is_no_message():
    assert of_row({"code": "no.such", "arguments": {}}) is None
    assert of_row({"code": "list.more", "arguments": {}}) is None


def test_an_unknown_code_is_an_error():
    with pytest.raises(KeyError):
        Message.of("no.such")


def test_every_code_in_the_source_has_a_text(trees):
    codes, starts = codes_of_source(trees)
    assert len(codes) > 500
    assert not codes - texts(DEFAULT).keys()
    assert not [start for start in starts if not any(code.startswith(start) for code in texts(DEFAULT))]


def test_every_call_hands_over_the_arguments_that_its_text_needs(trees):
    """Calls that name their code and every argument; one with `**` may hand over any."""
    says = ("Message.of", "Wrong", "say", "t")
    wrong, checked = [], 0
    for path, tree in zip(SOURCES, trees, strict=True):
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and call.args and ast.unparse(call.func) in says):
                continue
            given = {keyword.arg for keyword in call.keywords}
            code = call.args[0]
            either = [code.body, code.orelse] if isinstance(code, ast.IfExp) else [code]
            named = [part.value for part in either if isinstance(part, ast.Constant) and part.value in texts(DEFAULT)]
            for each in named if None not in given else ():
                checked += 1
                wrong += [(path.name, call.lineno, each)] if places(texts(DEFAULT)[each]) - given else []
    assert checked > 1500 and not wrong


def test_every_text_is_used(trees):
    """A code stands in the source as a whole, without its last word, or by the part that is put together there."""
    topics = tuple({code.partition(".")[0] + "." for code in texts(DEFAULT)})
    first = [node.values[0] for tree in trees for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    starts = [str(part.value) for part in first if isinstance(part, ast.Constant) and part.value.startswith(topics)]
    words = {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    starts += [
        f"{topic.value}."
        for tree in trees
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[-1] == "named"
        for topic in call.args[:1]
        if isinstance(topic, ast.Constant)
    ]
    ends = {word for word in words if word.isidentifier()}
    unused = {
        code
        for code in texts(DEFAULT)
        if not code.startswith(tuple(starts))
        and not words & {code, code.rpartition("_")[0], code.rpartition(".")[0]}
        and code.partition(".")[2] not in ends
    }
    assert not unused


def test_the_catalog_says_what_is_wrong_by_codes(trees):
    """What its readers report is `Wrong`, and no English sentence."""
    sentences = [
        ast.unparse(call.args[-1])
        for path, tree in zip(SOURCES, trees, strict=True)
        if CATALOG.parent in path.parents
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("problem", "missing")
        and len(call.args) > 1
        and isinstance(call.args[-1], ast.Constant | ast.JoinedStr)
    ]
    assert not sentences


def codes_of_source(trees: list[ast.Module]) -> tuple[set[str], set[str]]:
    """Return the codes of `Message.of`, and of findings that `say` records, in the source: those that stand whole, and the beginnings of those put together by name."""
    codes, starts = set(), set()
    for tree in trees:
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and call.args):
                continue
            says = isinstance(call.func, ast.Attribute) and call.func.attr == "say" and len(call.args) > 1
            is_said = ast.unparse(call.func) in ("Message.of", "Wrong", "say")
            code = call.args[1] if says else call.args[0] if is_said else None
            parts = list(ast.walk(code)) if code else []
            specs = [part.format_spec for part in parts if isinstance(part, ast.FormattedValue) and part.format_spec]
            forms = {id(part) for spec in specs for part in ast.walk(spec)}
            for part in parts:
                if id(part) in forms:
                    continue
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and "." in part.value.strip("."):
                    codes.add(part.value)
                if isinstance(part, ast.JoinedStr) and isinstance(part.values[0], ast.Constant):
                    starts.add(str(part.values[0].value))
    return codes - starts, starts


def test_notes_of_the_catalog_are_those_of_its_data():
    """A note is translated by the path of its figure; where the data say something else, the table is stale."""
    said = {code.removeprefix("note."): text for code, text in texts(DEFAULT).items() if code.startswith("note.")}
    records = shipped_catalog()
    for path, text in said.items():
        kind, name, figure = path.split("/")
        record = records.get(kind, name)
        assert {**record.claimed, **record.figures}[figure].note == text
    assert said


def test_every_part_of_a_step_has_a_text():
    assert all(f"part.{name}" in texts(language) for name in BREAKDOWN for language in LANGUAGES)


def test_names_in_a_list_are_a_message_each_part_of_which_is_said():
    assert enumerated(["a", "b", "c"]) == "a, b and c" and enumerated(["a", "b"], "or") == "a or b"
    assert translated(enumerated([named("part", "host"), "b", "c"]), "zh") == f"{texts('zh')['part.host']}、b 与 c"


def test_a_name_without_a_text_stays_as_it_is():
    assert named("part", "kv_memory") == "kv memory" and isinstance(named("part", "kv_memory"), Said)
    assert named("part", "of tomorrow") == "of tomorrow" and not isinstance(named("part", "of tomorrow"), Said)


def test_what_is_wrong_with_a_record_is_said_in_every_language():
    hint = did_you_mean(["chips"])
    assert hint == '; close names: "chips"'
    said = said_of(Wrong("catalog.unknown_kind", close=hint))
    assert said == 'unknown kind of record; close names: "chips"'
    assert translated(said, "zh") == '未知的条目类别；相近名称："chips"'
    assert said_of("a text of the user") == "a text of the user"
