"""Print the answer of a command, to standard output or a file, in the asked format."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from planner.plan import Plan, write_whole


def emit(arguments: argparse.Namespace, plan: Plan, render: Callable[[str], str]) -> None:
    """Write a plan; as CSV into a folder, one file per table."""
    if arguments.output and arguments.output.endswith("/") and arguments.format == "csv":
        from planner.report.report import csv_tables

        for name, text in csv_tables(plan).items():
            write_whole(Path(arguments.output) / f"{name}.csv", text)
        return
    write_out(arguments, render(arguments.format))


def write_out(arguments: argparse.Namespace, text: str) -> None:
    """Write a text to the file of --output, or to standard output."""
    if arguments.output and arguments.output.endswith("/"):
        raise IsADirectoryError(None, "is a folder; only `plan --format csv` writes one, name a file", arguments.output)
    if arguments.output and arguments.output != "-":
        write_whole(Path(arguments.output), text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def as_json(document: Any) -> str:
    """Format a JSON document; a number that JSON cannot hold is a bug and raises ValueError."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def rows_as(form: str, rows: list[dict[str, Any]]) -> str:
    """Format rows as JSON, CSV, Markdown or a table for a terminal."""
    from planner.tables import as_csv, as_markdown, as_text

    if form == "json":
        return as_json(rows)
    return {"csv": as_csv, "md": as_markdown, "table": as_text}[form](rows)
