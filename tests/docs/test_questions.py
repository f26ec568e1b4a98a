"""The pages of docs/questions show what their commands print, and each has commands and an answer to how sure it is."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "questions").glob("*.md"))


@pytest.fixture(scope="module")
def builder():
    spec = spec_from_file_location("build_questions", ROOT / "docs" / "build_questions.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", [page.stem for page in PAGES if page.stem != "README"])
def test_a_page_shows_what_its_commands_print(builder, page, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    text = (ROOT / "docs" / "questions" / f"{page}.md").read_text(encoding="utf-8")
    assert builder.with_output(text) == text
    assert len(builder.BLOCK.findall(text)) == text.count("<!-- prints:") > 0
    shown = {line.split("  #")[0].split(" --full")[0].strip() for line in text.splitlines() if line.startswith("flopwatt ")}
    for command in re.findall(r"<!-- prints: (flopwatt [^|\n]*?)(?: \||-->| -->)", text):
        assert command.split(" --full")[0].strip() in shown, command
    assert "## How sure" in text


def test_blocks_side_by_side_do_not_swallow_each_other(builder, monkeypatch):
    monkeypatch.setattr(builder, "printed", lambda command, first=None, last=None: f"{command} {first} {last}")
    text = "<!-- prints: flopwatt a b | from c -->\n```text\n```\nbetween\n<!-- prints: flopwatt d | from e | to f -->\n```text\nold\n```\n"
    found = builder.with_output(text)
    assert "\na b c None\n" in found and "between" in found and "\nd e f\n" in found and "old" not in found
    assert builder.with_output(found) == found


def test_the_first_page_lists_all_others():
    first = (ROOT / "docs" / "questions" / "README.md").read_text(encoding="utf-8")
    assert all(f"({page.name})" in first for page in PAGES if page.stem != "README") and len(PAGES) == 7
