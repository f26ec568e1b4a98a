"""Find the config.json of a model of the Hugging Face hub: in the cache on this disk, else by one request.

Places of the cache and of a file on the hub: https://huggingface.co/docs/huggingface_hub/guides/manage-cache (layout of `models--ORG--NAME`).
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from planner.errors import Issue, SpecError
from planner.messages import Message

PREFIX = "hf:"
TIMEOUT_S = 5.0
MOST_BYTES = 5_000_000
ENDPOINT = "https://huggingface.co"
REVISION = "main"
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def hub_config(model: str, environment: Mapping[str, str] | None = None) -> tuple[dict[str, Any], str]:
    """Return (config, where it was found: "cache" or "hub") of ORG/NAME, with or without `hf:`.

    `environment`: HF_HUB_CACHE, HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and HF_TOKEN as the hub's own library reads them.
    Raises SpecError, with another sentence for a model that is gated, for one that does not exist, and for a hub out of reach.
    """
    environment = os.environ if environment is None else environment
    name = model.removeprefix(PREFIX)
    if not _NAME.fullmatch(name) or ".." in name:
        raise _refused("ways_in.hub_name", name=name)
    if (cached := _cached(name, environment)) is not None:
        return _parsed(cached, name), "cache"
    if environment.get("HF_HUB_OFFLINE", "").lower() in ("1", "on", "yes", "true"):
        raise _refused("ways_in.hub_told_offline", name=name, folder=str(_cache_folder(environment)))
    return _parsed(_fetched(name, environment), name), "hub"


def _cache_folder(environment: Mapping[str, str]) -> Path:
    if folder := environment.get("HF_HUB_CACHE"):
        return Path(folder).expanduser()
    return _home(environment) / "hub"


def _home(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("HF_HOME") or "~/.cache/huggingface").expanduser()


def _cached(name: str, environment: Mapping[str, str]) -> bytes | None:
    """Read the file of the revision that `refs/main` names, else of the newest snapshot that has it."""
    folder = _cache_folder(environment) / f"models--{name.replace('/', '--')}"
    snapshots = folder / "snapshots"
    try:
        commit = (folder / "refs" / REVISION).read_text(encoding="utf-8").strip()
        places = [snapshots / commit / "config.json"] if re.fullmatch(r"[0-9a-zA-Z]+", commit) else []
    except OSError:
        places = []
    if not places or not places[0].is_file():
        places = sorted(snapshots.glob("*/config.json"), key=lambda path: path.stat().st_mtime, reverse=True)
    return places[0].read_bytes() if places else None


def _fetched(name: str, environment: Mapping[str, str]) -> bytes:
    """Ask the hub once. Raises SpecError that says which of gated, missing and unreachable it is."""
    from urllib.error import HTTPError, URLError
    from urllib.request import Request, urlopen

    endpoint = environment.get("HF_ENDPOINT", ENDPOINT).rstrip("/")
    if not endpoint.startswith(("http://", "https://")):
        raise _refused(
            "ways_in.hub_unreachable", name=name, host=endpoint, reason=Message.of("ways_in.hub_address").text()
        )
    request = Request(f"{endpoint}/{name}/resolve/{REVISION}/config.json")
    if token := _token(environment):
        request.add_unredirected_header("Authorization", f"Bearer {token}")
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:
            content: bytes = answer.read(MOST_BYTES)
            return content
    except HTTPError as error:
        if error.code in (401, 403):
            raise _refused("ways_in.hub_gated", name=name) from None
        if error.code == 404:
            raise _refused("ways_in.hub_missing", name=name) from None
        raise _refused("ways_in.hub_unreachable", name=name, host=endpoint, reason=f"HTTP {error.code}") from None
    except (URLError, OSError, ValueError) as error:
        reason = str(getattr(error, "reason", error))
        raise _refused("ways_in.hub_unreachable", name=name, host=endpoint, reason=reason) from None


def _token(environment: Mapping[str, str]) -> str:
    if token := environment.get("HF_TOKEN"):
        return token.strip()
    try:
        return (_home(environment) / "token").read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def _parsed(content: bytes, name: str) -> dict[str, Any]:
    try:
        config = json.loads(content)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise _refused("ways_in.hub_not_config", name=name)
    return config


def _refused(code: str, **arguments: str) -> SpecError:
    return SpecError([Issue("--model", Message.of(code, **arguments).text())])
