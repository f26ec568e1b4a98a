"""Print the answer of a command, to standard output or a file, in the asked format."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from planner.cli.streams import check_standard_output, print_data, print_out
from planner.errors import Issue, SpecError
from planner.escape import terminal
from planner.exit_codes import LIMIT, OK
from planner.files import check_folder, check_writable, write_file
from planner.messages import Message
from planner.plan import Plan

XLSX = "xlsx"  # the format of workbooks: what stands in CSV, as sheets
PAGE_COLUMNS = 100  # columns of a page that is not printed on a terminal


def take_workbook(arguments: argparse.Namespace) -> None:
    """Let a command that is asked for a workbook write CSV, which `write_out` puts into sheets. Raises SpecError.

    Refused where XlsxWriter is missing, and on a terminal, which shows no workbook.
    """
    arguments.as_workbook = getattr(arguments, "format", None) == XLSX
    if not arguments.as_workbook:
        return
    if find_spec("xlsxwriter") is None:
        raise SpecError([Issue("--format", Message.of("cli.workbook_extra").text())])
    if arguments.output in (None, "-") and sys.stdout is not None and sys.stdout.isatty():
        raise SpecError([Issue("--format", Message.of("cli.workbook_needs_file").text())])
    arguments.format = "csv"


def check_outputs(arguments: argparse.Namespace) -> None:
    """Test, before any work, that every place that a command is asked to write can be written. Raises OSError.

    --output names a file unless a command says otherwise: a folder if it ends with "/" in one of `folder_formats`, or always with
    `output_is_folder`.
    """
    if not hasattr(arguments, "output"):
        return
    output, form = arguments.output, XLSX if getattr(arguments, "as_workbook", False) else arguments.format
    may_be_folder = form in getattr(arguments, "folder_formats", ())
    if getattr(arguments, "output_is_folder", False):
        check_standard_output()
        check_folder(output)
    elif not output or output == "-":
        check_standard_output()
    elif not output.endswith("/"):
        check_writable(output)
    elif may_be_folder:
        check_folder(output)
    else:
        raise IsADirectoryError(None, Message.of("cli.is_a_folder").text(), output)
    for name in ("chart", "rows"):
        if path := getattr(arguments, name, None):
            check_writable(path)
    if folder := getattr(arguments, "plans", None):
        check_folder(folder)


def emit(arguments: argparse.Namespace, plan: Plan, render: Callable[[str], str]) -> None:
    """Write a plan; as CSV into a folder, one file per table."""
    if arguments.output and arguments.output.endswith("/"):
        from planner.report.outputs.sections import csv_tables

        for name, text in csv_tables(plan).items():
            write_file(Path(arguments.output) / f"{name}.csv", text)
        return
    write_out(arguments, render(arguments.format))


def write_out(arguments: argparse.Namespace, text: str) -> None:
    """Write a text to the file of --output, or to standard output; where a workbook is asked for, its CSV as a sheet."""
    if getattr(arguments, "as_workbook", False):
        from planner.report.outputs.excel import book

        write_data(arguments, book({"answer": text}))
    elif arguments.output and arguments.output != "-":
        write_file(arguments.output, text)
    else:
        print_out(text)


def write_data(arguments: argparse.Namespace, data: bytes) -> None:
    """Write bytes to the file of --output, or to standard output."""
    if arguments.output and arguments.output != "-":
        write_file(arguments.output, data)
    else:
        print_data(data)


def terminal_page(arguments: argparse.Namespace) -> tuple[int, bool]:
    """Return the columns of a page, and whether its headings may be bold: a terminal's own, or 100 and plain elsewhere."""
    shown = not (arguments.output and arguments.output != "-") and sys.stdout is not None and sys.stdout.isatty()
    if not shown:
        return PAGE_COLUMNS, False
    return shutil.get_terminal_size((PAGE_COLUMNS, 1)).columns, os.environ.get("TERM", "dumb") != "dumb"


def said_if_left_out(document: Mapping[str, Any]) -> int:
    """Say what an answer leaves out because a limit ended the search, and return the exit code."""
    if not document["not_tried"]:
        return OK
    print(terminal(document["not_tried_words"]), file=sys.stderr)
    return LIMIT


def as_json(document: Any) -> str:
    """Format a JSON document; a number that JSON cannot hold is a bug and raises ValueError."""
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def rows_as(form: str, rows: list[dict[str, Any]]) -> str:
    """Format rows as JSON, CSV, Markdown or a table for a terminal."""
    from planner.tables import as_csv, as_markdown, as_text

    if form == "json":
        return as_json(rows)
    return {"csv": as_csv, "md": as_markdown, "table": as_text}[form](rows)
