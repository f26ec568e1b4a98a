"""Write the tables of a plan as a workbook, a sheet each, with an overview first."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Mapping
from typing import Any

from planner.escape import terminal
from planner.plan import Plan
from planner.report.outputs.sections import csv_tables
from planner.report.report import opening

MOST_NAME = 31  # characters of a sheet's name
_FORMULA = re.compile(
    r"^'(?=\s*[=+@\uff1d\uff0b\uff20\uff0d-])"
)  # what a cell of CSV has before a text that looks like a formula
WIDEST = 60  # characters of a column


def workbook(plan: Plan) -> bytes:
    """Write an overview and the tables of `csv_tables` as sheets. Raises ImportError without XlsxWriter."""
    return _book({"overview": _overview(plan)} | {name: _cells(text) for name, text in csv_tables(plan).items()})


def book(tables: Mapping[str, str]) -> bytes:
    """Write CSV texts as sheets, by their names. Raises ImportError without XlsxWriter."""
    return _book({name: _cells(text) for name, text in tables.items()})


def _cells(text: str) -> list[list[Any]]:
    return list(csv.reader(io.StringIO(text)))


def _book(sheets: Mapping[str, list[list[Any]]]) -> bytes:
    """Write sheets; numbers are numbers, no text is a formula, and the first row stays in view."""
    import xlsxwriter

    file = io.BytesIO()
    book = xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    bold = book.add_format({"bold": True})
    for name, rows in sheets.items():
        sheet = book.add_worksheet(name[:MOST_NAME])
        for i, row in enumerate(rows):
            for j, cell in enumerate(row):
                _write(sheet, i, j, cell, bold if i == 0 else None)
        for j in range(max(map(len, rows), default=0)):
            width = max(len(str(row[j])) for row in rows if j < len(row))
            sheet.set_column(j, j, min(width + 2, WIDEST))
        sheet.freeze_panes(1, 0)
    book.close()
    return file.getvalue()


def _overview(plan: Plan) -> list[list[Any]]:
    """List name, verdict, how sure it is, totals and versions."""
    opened = opening(plan)
    rows: list[list[Any]] = [["what", "value"], ["name", opened.name], ["answer", opened.verdict]]
    rows += [["odds", text] for text in (opened.odds, opened.promise) if text]
    rows += [["coverage", opened.coverage]] if opened.coverage else []
    rows += [[name, value] for name, value in (plan.document["totals"] or {}).items()]
    rows += [["currency", plan.document["spec"].get("currency", "USD")], ["catalog", plan.document["catalog_digest"]]]
    return rows + [[name, version] for name, version in plan.document["versions"].items()]


def _write(sheet: Any, row: int, column: int, cell: Any, form: Any) -> None:
    number = cell if isinstance(cell, (int, float)) else _number(str(cell))
    if number is not None:
        sheet.write_number(row, column, number, form)
    elif str(cell):
        sheet.write_string(row, column, _FORMULA.sub("", terminal(str(cell))), form)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None
