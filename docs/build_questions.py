"""Write what commands print into docs/questions: each block below a comment `<!-- prints: COMMAND -->`. Run by `make docs`.

The comment may go on with `| from TEXT` and `| to TEXT`: the block begins with the first line that starts with the one, and ends before the
next line that starts with the other. Commands run in this folder's parent, in this process.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from contextlib import chdir, redirect_stdout
from pathlib import Path

from planner.cli.main import main

HOME = Path(__file__).resolve().parents[1]
PAGES = HOME / "docs" / "questions"
BLOCK = re.compile(r"<!-- prints: flopwatt (?P<command>[^|\n]*?)(?: \| from (?P<first>[^|\n]*?))?(?: \| to (?P<last>[^|\n]*?))? -->\n```text\n(?:.*?\n)??```\n", re.S)


def printed(command: str, first: str | None = None, last: str | None = None) -> str:
    """Return what a command prints, from the line that starts with `first` to before the next that starts with `last`. Raises SystemExit."""
    stream = io.StringIO()
    with chdir(HOME), redirect_stdout(stream):
        code = main([*shlex.split(command)])
    lines = [line.rstrip() for line in stream.getvalue().splitlines()]
    begin = next((place for place, line in enumerate(lines) if line.startswith(first or "")), None)
    if code or begin is None:
        raise SystemExit(f"flopwatt {command}: exit code {code}, no line that starts with {first!r}")
    end = next((place for place, line in enumerate(lines) if place > begin and last and line.startswith(last)), len(lines))
    return "\n".join(lines[begin:end]).rstrip("\n")


def with_output(text: str) -> str:
    """Return the text of a page with what its commands print now."""

    def block(found: re.Match[str]) -> str:
        comment = found[0].partition("\n")[0]
        return f"{comment}\n```text\n{printed(found['command'], found['first'], found['last'])}\n```\n"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    for page in sorted(PAGES.glob("*.md")):
        page.write_text(with_output(page.read_text(encoding="utf-8")), encoding="utf-8")
