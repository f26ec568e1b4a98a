"""Find the stored plans of a folder that a read-only dashboard shows. No Streamlit here, and no solver.

A name leads to a file of the folder itself alone; each plan is verified when it is first opened, and again after its file has changed.
"""

from __future__ import annotations

import gzip
import os
import zlib
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from planner.errors import SpecError
from planner.plan import Plan, parse_plan

READONLY = "FLOPWATT_READONLY"
"""Variable of the environment that names the folder; set by `flopwatt dashboard --readonly DIR`."""
ENDINGS = (".json", ".json.gz")
MOST_HELD = 64
"""Plans that are held in memory."""
MOST_BYTES = 100_000_000
"""Of a plan, unpacked."""


class Held(NamedTuple):
    """A plan of the folder, and what its verification found."""

    plan: Plan
    findings: tuple[str, ...]


def folder() -> Path | None:
    """Return the folder whose plans are shown; None for a dashboard that solves."""
    named = os.environ.get(READONLY)
    return Path(named) if named else None


def files() -> dict[str, Path]:
    """List the files of the folder that may hold plans, by name without ending; none where the folder is gone."""
    home = folder()
    if home is None or not home.is_dir():
        return {}
    found = sorted(path for path in home.iterdir() if path.name.endswith(ENDINGS) and path.is_file())
    return {path.name.removesuffix(".gz").removesuffix(".json"): path for path in found}


def plans() -> dict[str, Plan]:
    """Read the plans of the folder by name; files that are none are left out."""
    found = {name: _read(*_state(path)) for name, path in files().items()}
    return {name: plan for name, plan in found.items() if plan is not None}


def opened(name: str) -> Held | None:
    """Read a plan and verify it; None for a name that no plan has."""
    path = files().get(name)
    return None if path is None else _verified(*_state(path))


def _state(path: Path) -> tuple[Path, int, int]:
    """Tell one state of a file from another."""
    status = path.stat()
    return path, status.st_mtime_ns, status.st_size


@lru_cache(maxsize=MOST_HELD)
def _read(path: Path, changed: int, size: int) -> Plan | None:
    try:
        content = path.read_bytes()
        if path.suffix == ".gz":
            with gzip.open(path) as packed:
                content = packed.read(MOST_BYTES + 1)
        return parse_plan(content) if len(content) <= MOST_BYTES else None
    except (OSError, EOFError, ValueError, zlib.error, SpecError):
        return None


@lru_cache(maxsize=MOST_HELD)
def _verified(path: Path, changed: int, size: int) -> Held | None:
    from planner.verify.plan import verify_plan

    plan = _read(path, changed, size)
    return None if plan is None else Held(plan, tuple(map(str, verify_plan(plan) if plan.has_answer else ())))
