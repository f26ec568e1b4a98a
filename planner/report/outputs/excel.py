"""Write the tables of a plan as a workbook, a sheet each, with an overview first."""

from __future__ import annotations

import csv
import io
import math
import re
from typing import Any

from planner.escape import terminal
from planner.plan import Plan
from planner.report.report import csv_tables, headline

MOST_NAME = 31  # characters of a sheet's name
_FORMULA = re.compile(r"^'(?=\s*[=+@-])")  # what a cell of CSV has before a text that looks like a formula
WIDEST = 60  # characters of a column


def workbook(plan: Plan) -> bytes:
    """Write the tables of `csv_tables` as sheets; numbers are numbers, and no text is a formula. Raises ImportError without XlsxWriter."""
    import xlsxwriter

    file = io.BytesIO()
    book = xlsxwriter.Workbook(file, {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False})
    bold = book.add_format({"bold": True})
    sheets = {"overview": _overview(plan)} | {
        name: list(csv.reader(io.StringIO(text))) for name, text in csv_tables(plan).items()
    }
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
    """List name, verdict, totals and versions."""
    rows: list[list[Any]] = [["what", "value"], ["name", plan.document["name"]], ["answer", headline(plan)]]
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
