"""Write verdicts as one HTML page that needs nothing beside it."""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

from planner.escape import markdown, terminal
from planner.messages import DEFAULT, say, translated
from planner.report.outputs.html import STYLE
from planner.tables import as_html


def in_markdown(text: str) -> str:
    """Write a cell of a table in Markdown, a line of a shell as code."""
    shell = text.startswith(("python3 ", "flopwatt ")) and "`" not in text
    return f"`{text.replace('|', chr(92) + '|')}`" if shell else markdown(text)


def page(lines: Sequence[str], sections: Sequence[tuple[str, list[dict[str, Any]]]], language: str = DEFAULT) -> str:
    """Write a page of sentences and tables, which are in its language already."""
    title = html.escape(translated(say("audit.heading"), language))
    body = [f"<p>{html.escape(terminal(line))}</p>" for line in lines]
    body += [f'<div class="wide">{as_html(heading, rows)}</div>' for heading, rows in sections]
    return (
        f'<!doctype html>\n<html lang="{language}">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n" + "\n".join(body) + "\n</body>\n</html>\n"
    )
