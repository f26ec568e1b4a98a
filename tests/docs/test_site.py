"""The site names every page, and the commands of the tutorial answer as it says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from planner.cli.main import main
from planner.exit_codes import OK

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def pages(level: Any) -> Iterator[str]:
    """Yield the files that the navigation names."""
    for entry in level if isinstance(level, list) else level.values():
        if isinstance(entry, str):
            yield entry
        else:
            yield from pages(entry)


def test_the_navigation_names_every_page_once():
    named = list(pages(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]))
    files = (path.relative_to(DOCS) for path in DOCS.rglob("*.md"))
    assert sorted(named) == sorted(path.as_posix() for path in files if path.parts[0] not in ("decisions", "lab"))


def commands(page: str) -> list[list[str]]:
    blocks = re.findall(r"```sh\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    return [line[1:] for line in lines if line and line[0] == "flopwatt"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def test_the_tutorial_runs_from_its_first_command_to_its_last(folder, capsys):
    found = commands("tutorial.md")
    assert [command[0] for command in found] == [
        "init", "check", "plan", "show", "plan", "compare", "verify", "stale", "robust",
    ]  # fmt: skip
    for command in found:
        assert main(command) == OK, command
        printed = capsys.readouterr()
        assert printed.out or "--output" in command, command
        assert "Traceback" not in printed.err
    assert json.loads((folder / "plan.json").read_text())["status"] in ("optimal", "within_gap")
