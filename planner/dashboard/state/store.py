"""Keep the work of visitors between visits, in files named by a random id. No Streamlit here.

Who knows an id reads the work that it names. Opening it makes a copy under a new id, so that two visitors never write into one file.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import tempfile
from pathlib import Path
from typing import Any

MOST_WORKS = 200
MOST_BYTES = 8_000_000
"""Of one work, compressed; plans are left out of a larger one."""
_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
FOLDER = "FLOPWATT_DASHBOARD"  # variable of the environment that names another folder


def folder() -> Path:
    """Return the folder of the works: of the user's cache, unless FLOPWATT_DASHBOARD names another."""
    named = os.environ.get(FOLDER)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache) / "flopwatt" / "dashboard"


def new_id() -> str:
    """Draw an id that cannot be guessed."""
    return secrets.token_urlsafe(16)


def save(name: str, work: dict[str, Any]) -> bool:
    """Write a work under its id, and remove the oldest beyond `MOST_WORKS`. Returns whether it could be written."""
    if not _ID.fullmatch(name):
        return False
    content = _packed(work)
    if len(content) > MOST_BYTES:
        content = _packed({**work, "plans": []})
    try:
        home = folder()
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home, suffix=".new", delete=False) as file:
            file.write(content)
        os.replace(file.name, home / f"{name}.json.gz")
        works = sorted(home.glob("*.json.gz"), key=lambda path: path.stat().st_mtime, reverse=True)
        for old in works[MOST_WORKS:]:
            old.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def load(name: str) -> dict[str, Any] | None:
    """Read the work of an id; None where there is none, or none that this release reads."""
    if not _ID.fullmatch(name):
        return None
    try:
        work: dict[str, Any] = json.loads(gzip.decompress((folder() / f"{name}.json.gz").read_bytes()))
    except (OSError, ValueError, EOFError):
        return None
    return work if isinstance(work, dict) and work.get("version") == VERSION else None


VERSION = 1


def _packed(work: dict[str, Any]) -> bytes:
    return gzip.compress(json.dumps({**work, "version": VERSION}).encode(), compresslevel=3, mtime=0)
