"""Check the comparison of the notes of a plan with those of its spec resolved again."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from planner.facts import Fact
from planner.messages import Message
from planner.verify.claims.earlier import made_by_another
from planner.verify.claims.record import check_notes
from planner.verify.findings import Report
from planner.version import RELEASE, __version__


def published(figure):
    return Fact("workloads[0].architecture", Message.of("anchor.prefill", architecture="A", chip="C", published=figure, predicted=1.0, low=1.0, high=1.0))  # fmt: skip


def row(fact, **changes):
    return {
        "path": fact.path,
        "code": fact.message.code,
        "arguments": {**fact.message.arguments, **changes},
        "source": fact.source,
        "text": fact.message.text(),
    }


def said(facts, rows, release=__version__):
    report = Report()
    check_notes(report, SimpleNamespace(notes=facts), {"notes": rows, "versions": {"flopwatt": release}})
    return {finding.message.message.code for finding in report.found}


NOTES = (published(18_471.0), published(26_156.0))


def test_two_notes_of_one_place_and_code_hold():
    assert said(NOTES, [row(fact) for fact in NOTES]) == set()


@pytest.mark.parametrize(
    "rows, code",
    [
        ([row(NOTES[0])], "verify.note_missing"),
        ([row(NOTES[0]), row(NOTES[1]), row(published(3.0))], "verify.note_not_true"),
        ([row(NOTES[0]), row(NOTES[0])], "verify.row_twice"),
        ([row(NOTES[0]), row(NOTES[1], predicted=2.0)], "verify.says"),
    ],
)
def test_notes_that_lack_differ_or_stand_twice_are_found(rows, code):
    assert code in said(NOTES, rows)


def test_other_words_are_found_in_a_plan_of_this_release():
    rows = [row(fact) | {"text": "other words"} for fact in NOTES]
    assert said(NOTES, rows) == {"verify.says"} and said(NOTES, rows, "0.2.0") == set()


def test_versions_of_development_count_as_the_release_that_they_lead_to():
    rows = [row(fact) | {"text": "other words"} for fact in NOTES]
    assert said(NOTES, rows, f"{RELEASE}.dev0") == {"verify.says"} and said(NOTES, rows, "0.2.0.dev0") == set()
    assert not made_by_another({"versions": {"flopwatt": f"{RELEASE}.dev7"}})
    assert made_by_another({"versions": {"flopwatt": "9.9.dev0"}}) and made_by_another(
        {"versions": {"tokenwatt": RELEASE}}
    )
