"""Read plans that were stored as files: `NAME.json` or `NAME.json.gz`, as `plan --format json` writes them. No Streamlit here, and no solver."""

from __future__ import annotations

import gzip
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from planner.errors import SpecError
from planner.plan import Plan, parse_plan

ENDINGS = (".json", ".json.gz")
MOST_HELD = 64
"""Plans that are held in memory."""


class Held(NamedTuple):
    """A stored plan, and what its verification found."""

    plan: Plan
    findings: tuple[str, ...]


class State(NamedTuple):
    """A file as it is now: a later state of it is read anew."""

    path: Path
    changed_ns: int
    size: int

    @classmethod
    def of(cls, path: Path) -> State:
        """Look at a file. Raises OSError."""
        status = path.stat()
        return cls(path, status.st_mtime_ns, status.st_size)


def packed(plan: Plan) -> bytes:
    """Write a plan as the contents of `NAME.json.gz`."""
    return gzip.compress(plan.to_json().encode(), mtime=0)


@lru_cache(maxsize=MOST_HELD)
def read(state: State) -> Plan | None:
    """Read a plan; None for a file that holds none, or that is gone."""
    try:
        return parse_plan(state.path.read_bytes())
    except (OSError, SpecError):
        return None


@lru_cache(maxsize=MOST_HELD)
def verified(state: State) -> Held | None:
    """Read a plan and verify it; None for a file that holds none."""
    from planner.verify.plan import verify_plan

    plan = read(state)
    return None if plan is None else Held(plan, tuple(map(str, verify_plan(plan) if plan.has_answer else ())))
