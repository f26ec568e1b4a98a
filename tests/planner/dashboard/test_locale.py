"""The texts: every language has the same keys and places to fill, every key is used, and none is missing."""

import ast
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard import sources
from planner.errors import SpecError
from planner.exit_codes import EXIT_BY_STATUS
from planner.messages import Said, languages, named, texts, translated
from planner.messages import said as said_in
from planner.report.story import story

HOME = Path(__file__).resolve().parents[3]
CODE = "\n".join(
    path.read_text() for folder in ("dashboard", "report") for path in (HOME / "planner" / folder).rglob("*.py")
)


def test_every_code_that_a_page_or_a_chart_asks_for_has_a_text():
    asked = set(re.findall(r'\bt\(\s*"([a-z0-9_.]+)"', CODE))
    assert len(asked) > 300 and asked <= set(texts("en"))


def test_every_status_of_a_plan_has_a_text():
    assert {f"{topic}.{name}" for name in EXIT_BY_STATUS for topic in ("status", "page_status")} <= set(texts("en"))


# -- sentences of plans ------------------------------------------------------------------------------------------------

OTHERS = [code for code in languages() if code != "en"]

LATIN_SENTENCE = re.compile(r"[A-Za-z]+(?: [a-z]+){4,}")  # five words in a row


def test_every_reason_to_drop_a_candidate_is_a_message(small_plan):
    reasons = {reason for counts in small_plan["dropped"].values() for reason in counts}
    assert len(reasons) > 5 and reasons == set(small_plan["dropped_message"])


def test_what_the_stored_plan_says_are_messages():
    """Reasons of assumptions are tested below, of every example."""
    plan = sources.stored_plan()
    said = [said_in(row, name) for row in plan["limits"] for name in ("name", "note") if row[name]]
    said += [said_in(row, "words") for row in plan["runner_up"]]
    assert said and not [text for text in said if not isinstance(text, Said)]


@pytest.mark.parametrize("language", OTHERS)
def test_why_a_plan_is_as_it_is_is_told_without_an_english_sentence(language):
    told = story(sources.stored_plan(), whole=True)
    clauses = [translated(clause, language) for _, clauses in told for clause in clauses]
    assert len(clauses) > 5
    assert not [clause for clause in clauses if LATIN_SENTENCE.search(clause) or clause.isascii()]


def test_titles_and_assumptions_of_the_examples_are_messages():
    """Reasons that a spec states itself are the user's words and stay as they are."""
    unknown = set()
    for path in sources.examples().values():
        document = json.loads(path.read_text())
        title, name = sources.title_of(document["name"]), named("example", path.stem)
        assert (title, name) == (document["name"], path.stem.replace("_", " "))
        unknown |= {text for text in (title, name) if not isinstance(text, Said)}
        own = json.dumps(document)
        for assumption in sources.resolved(document).assumptions:
            if not isinstance(assumption.reason, Said) and json.dumps(assumption.reason)[1:-1] not in own:
                unknown.add(assumption.reason)
    assert not unknown


SAYS_WHAT_IS_WRONG = ("Issue", "ValueError", "UnitError", "SpecError", "add_problem", "wrong")
PASSED_ON = ("{error}", "{words}, got {shown(given)}")  # messages of other functions, which are collected there


def messages(folder: str) -> set[str]:
    """The messages on wrong specs that the code of a folder writes, with a text in each place to fill."""
    found = set()
    for path in (HOME / "planner" / folder).rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call) or not call.args:
                continue
            name = getattr(call.func, "id", getattr(call.func, "attr", ""))
            if name in SAYS_WHAT_IS_WRONG and (message := _filled(call.args[-1])) and " " in message:
                found.add(message)
    return found


def _filled(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if not isinstance(node, ast.JoinedStr) or any(passed in ast.unparse(node) for passed in PASSED_ON):
        return None
    parts = (part.value if isinstance(part, ast.Constant) else _sample(ast.unparse(part.value)) for part in node.values)
    return "".join(map(str, parts))


def _sample(code: str) -> str:
    """Text for a place that the code fills: spans and close names hold words of ours."""
    if "close" in code or "did_you_mean" in code:
        return '; close names: "x"'
    return "; known here: x" if code == "known" else "from 1 W to 2 W" if code in ("span", "self.span") else "x"


@pytest.mark.parametrize(
    "folder",
    ["spec", "resolve", "dashboard", "calibration", "cli", "estimate", "evaluate", "plan", "problem", "studies"],
)
def test_what_is_wrong_in_a_spec_is_a_message(folder):
    assert not messages(folder)


WRONG = (-1, 0, 1e30, "x", "3 MB", [], {}, None, True, "-3 MW", "1e9 USD", "0 s", [1], {"a": 1})


def parts_of(value, path=()):
    """The places of a document, each with the list or object that holds it."""
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield path, key
        yield from parts_of(each, (*path, key))


@given(draw=st.data())
def test_an_example_with_a_wrong_part_is_refused_by_messages(draw):
    name = draw.draw(st.sampled_from(["mixed_fleet", "national_stack", "quality"]))
    document = json.loads(sources.examples()[name].read_text())
    path, key = draw.draw(st.sampled_from(list(parts_of(document))))
    holder = document
    for part in path:
        holder = holder[part]
    change = draw.draw(st.sampled_from(["remove", "rename", *WRONG]))
    if change == "remove" or (change == "rename" and isinstance(holder, list)):
        del holder[key]
    elif change == "rename":
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[key] = change
    try:
        sources.resolved(document)
    except SpecError as error:
        assert not {problem.message for problem in error.problems if not isinstance(problem.message, Said)}


@pytest.mark.parametrize("language", OTHERS)
def test_translations_hold_no_english_sentence(language):
    for key, text in texts(language).items():
        assert not LATIN_SENTENCE.search(text), key
