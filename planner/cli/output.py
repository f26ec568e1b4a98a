"""Output of a command: to standard output or a file, in the asked format."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from planner.plan import Plan, write_whole


def emit(arguments: argparse.Namespace, plan: Plan, render) -> None:
    if arguments.output and arguments.output.endswith("/") and arguments.format == "csv":
        from planner.report.report import csv_tables

        for name, text in csv_tables(plan).items():
            write_whole(Path(arguments.output) / f"{name}.csv", text)
        return
    write_out(arguments, render(arguments.format))


def write_out(arguments: argparse.Namespace, text: str) -> None:
    if arguments.output and arguments.output.endswith("/"):
        raise IsADirectoryError(None, "is a folder; only `plan --format csv` writes one, name a file", arguments.output)
    if arguments.output and arguments.output != "-":
        write_whole(Path(arguments.output), text)
    else:
        sys.stdout.write(text)
        sys.stdout.flush()


def rows_as(form: str, rows: list[dict[str, Any]]) -> str:
    from planner.tables import as_csv, as_markdown, as_text

    if form == "json":
        return json.dumps(rows, indent=1, allow_nan=False) + "\n"
    return {"csv": as_csv, "md": as_markdown, "table": as_text}[form](rows)
