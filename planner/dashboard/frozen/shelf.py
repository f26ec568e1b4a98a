"""Find the stored plans of a folder that a read-only dashboard shows. No Streamlit here, and no solver.

A name leads to a file of the folder itself alone; each plan is verified when it is first opened, and again after its file has changed.
"""

from __future__ import annotations

import os
from pathlib import Path

from planner.dashboard.frozen.stored import ENDINGS, Held, State, read, verified
from planner.plan import Plan

READONLY = "FLOPWATT_READONLY"
"""Variable of the environment that names the folder; set by `flopwatt dashboard --readonly DIR`."""


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
    found = {name: read(State.of(path)) for name, path in files().items()}
    return {name: plan for name, plan in found.items() if plan is not None}


def opened(name: str) -> Held | None:
    """Read a plan and verify it; None for a name that no plan has."""
    path = files().get(name)
    return None if path is None else verified(State.of(path))
