"""The config of a model: from a made-up cache, and from a local server that stands in for the hub."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from planner.errors import SpecError
from planner.ways_in import hub
from planner.ways_in.hub import hub_config

CONFIG = {"model_type": "llama", "hidden_size": 64}
COMMIT = "0123456789abcdef"


def cached(folder, name="org/own", commit=COMMIT, config=CONFIG):
    place = folder / f"models--{name.replace('/', '--')}"
    (place / "refs").mkdir(parents=True, exist_ok=True)
    (place / "refs" / "main").write_text(commit)
    (place / "snapshots" / commit).mkdir(parents=True)
    (place / "snapshots" / commit / "config.json").write_text(json.dumps(config))


@pytest.fixture
def server():
    """A hub: `org/own` is there, `org/shut` is gated and open to the token "key", all else is missing; `asked` lists the requests."""
    asked = []

    class Hub(BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            shut = self.path.startswith("/org/shut/") and self.headers.get("Authorization") != "Bearer key"
            known = self.path in ("/org/own/resolve/main/config.json", "/org/shut/resolve/main/config.json")
            body = json.dumps(CONFIG).encode()
            if self.path.startswith("/org/page/"):
                known, body = True, b"<html>"
            self.send_response(401 if shut else 200 if known else 500 if "broken" in self.path else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            """Print nothing."""

    running = HTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", asked
    running.shutdown()
    running.server_close()


def test_the_cache_is_read_first_and_the_hub_is_not_asked(tmp_path, server):
    address, asked = server
    cached(tmp_path / "hub")
    assert hub_config("hf:org/own", {"HF_HOME": str(tmp_path), "HF_ENDPOINT": address}) == (CONFIG, "cache")
    assert hub_config("org/own", {"HF_HUB_CACHE": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"}) == (CONFIG, "cache")
    assert not asked


def test_the_revision_main_counts_and_without_it_any_snapshot(tmp_path):
    cached(tmp_path, commit="aa", config={"n": 1})
    cached(tmp_path, commit="bb", config={"n": 2})
    environment = {"HF_HUB_CACHE": str(tmp_path)}
    assert hub_config("org/own", environment)[0] == {"n": 2}
    (tmp_path / "models--org--own" / "refs" / "main").write_text("../../../etc")
    assert hub_config("org/own", environment)[0]["n"] in (1, 2)


def test_one_request_is_sent_with_the_token(tmp_path, server):
    address, asked = server
    environment = {"HF_HOME": str(tmp_path), "HF_ENDPOINT": address}
    assert hub_config("hf:org/own", environment) == (CONFIG, "hub")
    assert asked == [("/org/own/resolve/main/config.json", None)]
    (tmp_path / "token").write_text("key\n")
    assert hub_config("hf:org/shut", environment) == (CONFIG, "hub")
    assert hub_config("hf:org/shut", {**environment, "HF_TOKEN": "key"}) == (CONFIG, "hub")


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("hf:org/shut", "org/shut is gated: accept its licence"),
        ("hf:org/none", "the hub has no model org/none"),
        ("hf:org/broken", "out of reach (HTTP 500)"),
        ("hf:org/page", "is no JSON object"),
        ("hf:name", "expected a model as hf:ORG/NAME"),
        ("hf:../etc", "expected a model as hf:ORG/NAME"),
    ],
)
def test_each_way_to_fail_is_said_apart(tmp_path, server, model, words):
    with pytest.raises(SpecError) as caught:
        hub_config(model, {"HF_HOME": str(tmp_path), "HF_ENDPOINT": server[0]})
    assert words in str(caught.value)


def test_a_hub_out_of_reach_and_one_that_hangs_are_offline(tmp_path, monkeypatch):
    home = {"HF_HOME": str(tmp_path)}
    with pytest.raises(SpecError, match="out of reach"):
        hub_config("org/own", {**home, "HF_ENDPOINT": "http://127.0.0.1:1"})
    with pytest.raises(SpecError, match="HF_HUB_OFFLINE forbids"):
        hub_config("org/own", {**home, "HF_HUB_OFFLINE": "1"})
    with pytest.raises(SpecError, match="out of reach"):
        hub_config("org/own", {**home, "HF_ENDPOINT": "file:///etc"})
    import socket

    monkeypatch.setattr(hub, "TIMEOUT_S", 0.2)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        with pytest.raises(SpecError, match="out of reach"):
            hub_config("org/own", {**home, "HF_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}"})
