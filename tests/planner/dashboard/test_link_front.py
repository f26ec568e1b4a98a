"""The page of a plan link as a browser gets it: one answer of HTML, without a script, a session or a word of its owner."""

import asyncio
import gzip
import html
import json
from urllib.parse import urlencode

import pytest

pytest.importorskip("starlette")

from planner.dashboard import sources
from planner.dashboard.frozen import front, links, shelf
from planner.dashboard.state import store
from planner.messages import languages
from planner.report.locale import Words
from planner.report.outputs.html import html_page
from planner.report.outputs.proof import compared
from tests.planner.dashboard.test_links import ANN, files, later


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv(store.FOLDER, str(tmp_path))
    return tmp_path / links.HOME


@pytest.fixture(scope="module")
def plan():
    return sources.plan_of_example("owning")


@pytest.fixture(scope="module")
def report(plan):
    return html_page(plan, "en")


def asked(method: str = "GET", path: str = "/", packs: bool = True, **query) -> tuple[int, dict[str, str], str]:
    """Ask for an address: status, headers and text; status 0 where the request goes on to Streamlit. `packs`: the browser takes gzip."""
    sent, accepts = [], [(b"accept-encoding", b"br, gzip" if packs else b"identity")]

    async def streamlit(scope, receive, send):
        await send({"type": "http.response.start", "status": 0, "headers": []})
        await send({"type": "http.response.body", "body": gzip.compress(b"")})

    async def receive():
        return {"type": "http.request"}

    async def send(message):
        sent.append(message)

    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": urlencode(query).encode(),
        "headers": accepts,
    }
    asyncio.run(front.Front(streamlit)(scope, receive, send))
    headers = {key.decode(): value.decode() for key, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], headers, (gzip.decompress(body) if packs else body).decode()


def test_a_client_that_takes_no_gzip_gets_the_page_as_it_is(plan):
    name = links.make(plan, ANN)
    packed, plain = asked(link=name), asked(link=name, packs=False)
    assert packed[2] == plain[2] and "<html" in plain[2][:200]
    assert packed[1]["content-encoding"] == "gzip" and "content-encoding" not in plain[1]


@pytest.mark.parametrize("language", languages())
def test_a_link_is_its_report_with_a_bar_above_it(home, plan, report, language):
    name = links.make(plan, ANN, title="A <title>", author="Ann & Co", report=("en", report))
    before = files(home)
    status, headers, text = asked(link=name, lang=language)
    bar = text[text.index("<header") : text.index("</header>\n") + len("</header>\n")]
    assert status == 200 and text.replace(bar, "") == html_page(plan, language)
    assert "A &lt;title&gt;" in bar and "Ann &amp; Co" in bar and ANN not in text
    for view in ("mine", "live", "save"):
        assert f'href="?link={name}&amp;lang={language}&amp;view={view}"' in bar
    assert "default-src 'none'" in headers["content-security-policy"] and "<script>" not in text
    assert files(home) == before


def test_without_a_language_the_link_opens_in_that_of_its_author(plan):
    name = links.make(plan, ANN, report=("zh", html_page(plan, "zh")))
    assert '<html lang="zh">' in asked(link=name)[2] and '<html lang="en">' in asked(link=name, lang="en")[2]
    assert '<html lang="en">' in asked(link=name, lang="xx")[2]


def test_the_saved_file_proves_itself(plan, report):
    name = links.make(plan, ANN, title="A title", report=("en", report))
    status, headers, text = asked(link=name, view="save")
    assert status == 200 and headers["content-disposition"].startswith("attachment") and text == report
    assert not compared(text, plan).findings


@pytest.mark.parametrize("over", ["unknown", "expired", "removed", "damaged"])
@pytest.mark.parametrize("language", languages())
def test_a_link_that_is_over_says_so_and_nothing_else(home, plan, report, monkeypatch, over, language):
    name = links.make(plan, ANN, title="a secret", report=("en", report))
    if over == "unknown":
        name = store.new_id()
    elif over == "expired":
        later(monkeypatch, 91 * 86_400)
    elif over == "removed":
        links.remove(name, ANN)
    else:
        (home / f"{name}.json.gz").write_bytes(b"")
    for view in ({}, {"view": "save"}):
        status, _, text = asked(link=name, lang=language, **view)
        assert status == (410 if over in ("expired", "removed") else 404)
        body = text[text.index("<main>") : text.index("</main>")]
        words = html.escape(Words(language)(f"links.dead.{over}", date="|")).partition("|")[0]
        assert body.startswith(f"<main><h1>{Words(language)('links.dead')}</h1><p>{words}") and len(body) < 200
        assert "secret" not in text and "<a " not in text


def test_a_report_that_is_damaged_is_written_anew_from_the_plan(home, plan, report):
    name = links.make(plan, ANN, report=("en", report))
    for content in (b"", b"<script>", gzip.compress(report.encode())[:-9]):
        (home / f"{name}.html.gz").write_bytes(content)
        front._page.cache_clear()
        assert asked(link=name, view="save")[2] == report and asked(link=name)[0] == 200


def test_requests_for_anything_else_go_on_to_streamlit(home, plan, report, monkeypatch):
    name = links.make(plan, ANN, report=("en", report))
    for query in ({}, {"base": "quality"}, {"link": name, "view": "live"}, {"link": name, "view": "mine"}):
        assert asked(**query)[0] == 0
    assert asked("POST", link=name)[0] == asked(path="/whatif", link=name)[0] == 0
    assert asked("HEAD", link=name)[0] == 200
    monkeypatch.setenv(shelf.READONLY, str(home))
    assert asked(link=name)[0] == 0


@pytest.mark.parametrize("name", ["..", "../../etc/passwd", "a\0" * 10, "", json.dumps({}), "<script>" * 4])
def test_a_forged_id_is_answered_without_repeating_it(name):
    status, _, text = asked(link=name)
    assert status == 404 and "script" not in text.replace("default-src", "") and "passwd" not in text
