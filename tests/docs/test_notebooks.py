"""Notebooks of the documentation run from the first cell to the last, in an empty folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(path.name for path in FOLDER.glob("*.ipynb"))


def test_there_are_notebooks():
    assert {"first_plan.ipynb", "sweep.ipynb"} <= set(NOTEBOOKS)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    document = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    space: dict[str, object] = {"__name__": "__main__"}
    for cell in document["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None, "outputs are not kept in the repository"
            exec(compile("".join(cell["source"]), f"{name} {cell['id']}", "exec"), space)  # noqa: S102
    assert not list(tmp_path.iterdir())
    shown = space.get("plan") or space.get("chart")
    assert shown is not None
