"""Answer a request for a plan link with one page of HTML: the report as it was frozen, or why there is none. No script runs for it.

A browser shows the report at once, where a page of Streamlit loads a megabyte of scripts and asks for a session first. With `view` in the
address the request goes on to Streamlit: `live` for the plan with charts that answer to clicks, `mine` to take it over.
"""

from __future__ import annotations

import gzip
import html
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from planner.dashboard.frozen import links, shelf
from planner.dashboard.frozen.links import LINK, Opened, Record, day
from planner.messages import DEFAULT, languages
from planner.report.locale import Words

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

VIEW, LIVE, MINE = "view", "live", "mine"
SAVE = "save"
"""View of the report alone, as a file that `flopwatt verify` proves."""
LANGUAGE = "lang"
HEADERS = {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
STYLE = "display:flex;flex-wrap:wrap;gap:.4rem 1.2rem;align-items:baseline;border-bottom:1px solid #8886;padding-bottom:.6rem"
DEAD = (
    '<!doctype html>\n<html lang="{language}"><head><meta charset="utf-8"><title>{title}</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1"><style>:root {{ color-scheme: light dark }} '
    "body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }}</style></head>"
    "<body><main><h1>{title}</h1><p>{words}</p></main></body></html>\n"
)
BODY = "<body>\n"


class Front:
    """Answers requests for plan links, and passes all others on."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        from starlette.concurrency import run_in_threadpool
        from starlette.requests import Request
        from starlette.responses import Response

        if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not scope["path"].endswith("/"):
            await self.app(scope, receive, send)
            return
        query = dict(Request(scope).query_params)
        if LINK not in query or query.get(VIEW) in (LIVE, MINE) or shelf.folder() is not None:
            await self.app(scope, receive, send)
            return
        status, content = await run_in_threadpool(answer, query)
        headers = {**HEADERS, "vary": "accept-encoding"}
        if "gzip" in Request(scope).headers.get("accept-encoding", ""):
            headers["content-encoding"] = "gzip"
        else:
            content = gzip.decompress(content)
        if query.get(VIEW) == SAVE and status == HTTPStatus.OK:
            headers["content-disposition"] = 'attachment; filename="plan.html"'
        await Response(content, status, headers)(scope, receive, send)


def answer(query: Mapping[str, str]) -> tuple[int, bytes]:
    """Write the page of a link, packed by gzip, with the status of the answer."""
    found = links.opened(query[LINK])
    record = found.record
    language = query.get(LANGUAGE, (record.language if record else "") or DEFAULT)
    language = language if language in languages() else DEFAULT
    if found.plan is None or record is None:
        gone = found.over in ("expired", "removed")
        return (HTTPStatus.GONE if gone else HTTPStatus.NOT_FOUND), gzip.compress(_dead(found, language).encode())
    if query.get(VIEW) == SAVE:
        return HTTPStatus.OK, gzip.compress(_report(record, language).encode())
    return HTTPStatus.OK, _page(record, language)


def _dead(found: Opened, language: str) -> str:
    t = Words(language)
    words = t(f"links.dead.{found.over}", date=day(found.record.until_s) if found.record else "")
    return DEAD.format(language=language, title=html.escape(t("links.dead")), words=html.escape(words))


@lru_cache(maxsize=64)
def _page(record: Record, language: str) -> bytes:
    """Write the report with a bar above it."""
    return gzip.compress(
        _report(record, language).replace(BODY, BODY + _bar(record, language), 1).encode(), compresslevel=3
    )


def _report(record: Record, language: str) -> str:
    """Read the report as it was frozen, or write it from the frozen plan in another language."""
    if record.language == language and (found := links.report_of(record)) is not None:
        return found
    from planner.report.outputs.html import html_page

    plan = links.opened(record.id).plan
    assert plan is not None  # it was there just now, or this is a page of the moment
    return html_page(plan, language)


def _bar(record: Record, language: str) -> str:
    """Write who froze the plan and when, and what can be done with it."""
    t = Words(language)
    given = {"date": day(record.made_s), "until": day(record.until_s)}
    made = t("links.made_by", author=record.author, **given) if record.author else t("links.made", **given)
    ways = [(t(f"links.{view}"), _address(record, language, view)) for view in (MINE, LIVE, SAVE)]
    ways += [(name, _address(record, code)) for code, name in languages().items() if code != language]
    shown = " ".join(
        f'<a href="{html.escape(address)}" rel="nofollow">{html.escape(words)}</a>' for words, address in ways
    )
    title = f"<strong>{html.escape(record.title)}</strong>" if record.title else ""
    return f'<header style="{STYLE}">{title}<span>{html.escape(made)}</span><span>{shown}</span></header>\n'


def _address(record: Record, language: str, view: str = "") -> str:
    query: dict[str, Any] = {LINK: record.id, LANGUAGE: language, **({VIEW: view} if view else {})}
    return f"?{urlencode(query)}"
