"""Keep the work of visitors between visits, in files named by a random id. No Streamlit here.

Who knows an id reads the work that it names. Files go by age and by the bytes of all, those that were looked at longest ago first; to
look at one writes nothing but the time.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import secrets
import tempfile
import threading
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from catalog.units import DAY_S
from planner.dashboard.state.earlier import of_version_1

MOST_FOLDER_BYTES = 4_000_000_000
"""Of all works together, compressed."""
MOST_AGE_S = 365 * DAY_S
"""Since a work was last written or looked at."""
MOST_BYTES = 8_000_000
"""Of one work, compressed; plans are left out of a larger one."""
_ID = re.compile(r"[A-Za-z0-9_-]{16,64}")
FOLDER = "FLOPWATT_DASHBOARD"  # variable of the environment that names another folder
VERSION = 2
_ENDING = ".json.gz"
_LOCK = threading.RLock()  # visitors are threads of one server


def folder() -> Path:
    """Return the folder of the works: of the user's cache, unless FLOPWATT_DASHBOARD names another."""
    named = os.environ.get(FOLDER)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(named) if named else Path(cache) / "flopwatt" / "dashboard"


def new_id() -> str:
    """Draw an id that cannot be guessed."""
    return secrets.token_urlsafe(16)


def is_id(name: str) -> bool:
    """Tell whether a text can be an id."""
    return _ID.fullmatch(name) is not None


def save(name: str, work: dict[str, Any]) -> bool:
    """Write a work under its id, and remove works that are too old or too many. Returns whether it could be written."""
    if not is_id(name):
        return False
    content = _packed(work)
    if len(content) > MOST_BYTES:
        content = _packed({**work, "plans": []})
    with _LOCK:
        try:
            home = folder()
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=home, suffix=".new", delete=False) as file:
                try:
                    file.write(content)
                    file.flush()
                    os.replace(file.name, home / f"{name}{_ENDING}")
                except OSError:
                    os.unlink(file.name)
                    raise
        except OSError:
            return False
        _evict(home)
    return True


def load(name: str) -> dict[str, Any] | None:
    """Read the work of an id, and note the time; None where there is none, or none that this release reads."""
    if not is_id(name):
        return None
    path = folder() / f"{name}{_ENDING}"
    try:
        work: dict[str, Any] = json.loads(gzip.decompress(path.read_bytes()))
    except (OSError, ValueError, EOFError, zlib.error):
        return None
    with suppress(OSError):
        os.utime(path)
    if not isinstance(work, dict):
        return None
    if work.get("version") == 1:
        try:
            return of_version_1(work)
        except (AttributeError, KeyError, TypeError, ValueError):
            return None
    return work if work.get("version") == VERSION else None


def update(name: str, change: Callable[[dict[str, Any] | None], dict[str, Any]]) -> bool:
    """Write what `change` makes of the work under an id, nobody else writing meanwhile. Returns whether it could be written."""
    with _LOCK:
        return save(name, change(load(name)))


def _evict(home: Path) -> None:
    """Remove works beyond `MOST_AGE_S` and `MOST_FOLDER_BYTES`, those that were looked at longest ago first."""
    found = []
    for path in home.glob(f"*{_ENDING}"):
        with suppress(OSError):  # another server removed the file meanwhile
            stat = path.stat()
            found.append((stat.st_mtime, stat.st_size, path))
    held, oldest = 0, time.time() - MOST_AGE_S
    for looked_at, size, path in sorted(found, reverse=True):
        held += size
        if looked_at < oldest or held > MOST_FOLDER_BYTES:
            with suppress(OSError):
                path.unlink()


def _packed(work: dict[str, Any]) -> bytes:
    return gzip.compress(json.dumps({**work, "version": VERSION}).encode(), compresslevel=3, mtime=0)
