"""Hold an HTML report against the plan inside it: write the page again, and compare the two line by line."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from itertools import zip_longest

from planner.messages import DEFAULT, LANGUAGES, Message, say
from planner.plan import Plan
from planner.report.outputs import html

MOST = 20  # lines that differ and are named; further ones are counted
_TAG = re.compile(r"<[^>]*>")
_FIGURE = re.compile(r"\n<figure .*?</figure>", re.DOTALL)
SHOWN = 60  # characters of a line from the first that differs


@dataclass(frozen=True, slots=True)
class PageCheck:
    """What of a report differs from its plan, and what could not be compared."""

    findings: list[tuple[str, Message]]
    """Place on the page and what differs there."""
    unchecked: list[Message]


def compared(page: str, plan: Plan) -> PageCheck:
    """Compare a report with the page that this version writes of the plan inside it.

    Written by the same version, every line must be equal; charts are compared if the same versions of the packages that draw them are
    installed. A page of another version may be worded differently, so only its own digest is recomputed.
    """
    findings = _of_digest(page)
    if html.generator_of(page) != html.GENERATOR:
        return PageCheck(findings, [] if findings else [Message.of("report.another_version")])
    language = _language(page)
    if html.can_draw() and html.drawn_by(page) == html.drawing_versions():
        return PageCheck(differences(page, html.html_page(plan, language)) or findings, [])
    found = differences(_without_charts(page), _without_charts(html.html_page(plan, language, with_charts=False)))
    return PageCheck(found or findings, [Message.of("report.charts_unchecked")])


def _of_digest(page: str) -> list[tuple[str, Message]]:
    head, ended, body = page.partition("</head>")
    stated = html.stated_digest(head)
    if ended and stated == hashlib.sha256(body.encode("utf-8", errors="surrogatepass")).hexdigest():
        return []
    return [("head", Message.of("report.digest_differs"))]


def _language(page: str) -> str:
    found = re.search(r'<html lang="([a-z]+)"', page)
    return found[1] if found and found[1] in LANGUAGES else DEFAULT


def _without_charts(page: str) -> str:
    """Drop the charts and the head, which states the digest of the page with its charts."""
    return _FIGURE.sub("", page.partition("</head>")[2])


def differences(page: str, expected: str) -> list[tuple[str, Message]]:
    """Name the lines that differ, each from its first different character on."""
    found = [
        (say("report.line", number=at), _difference(given, right))
        for at, (given, right) in enumerate(
            zip_longest(page.splitlines(), expected.splitlines(), fillvalue=""), start=1
        )
        if given != right
    ]
    more = len(found) - MOST
    return found[:MOST] + ([(say("report.page"), Message.of("report.more_lines", count=more))] if more > 0 else [])


def _difference(given: str, right: str) -> Message:
    """Quote both lines from the start of the word in which they differ."""
    same = next((at for at, (a, b) in enumerate(zip(given, right)) if a != b), min(len(given), len(right)))
    begin = max(given.rfind(">", 0, same), given.rfind(" ", 0, same)) + 1
    shown = [_TAG.sub(" ", text[begin : begin + SHOWN]).strip() for text in (given, right)]
    return Message.of("report.line_differs", given=shown[0], expected=shown[1])
