"""`--format xlsx` writes what CSV has as sheets, of every command that prints CSV, and is refused where no one could read it."""

from __future__ import annotations

import csv
import io
import json
import zipfile
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

from planner.cli import output
from planner.cli.main import main
from planner.exit_codes import INVALID, OK, USAGE

pytest.importorskip("xlsxwriter")
SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def cells(data: bytes, sheet: int = 1) -> list[list[str | float]]:
    """Read the rows of a sheet: numbers as float, texts as str, an empty cell as an empty text."""
    with zipfile.ZipFile(io.BytesIO(data)) as book:
        shared = ["".join(item.itertext()) for item in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))]
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{sheet}.xml"))
    rows = []
    for row in root.iter(f"{SPACE}row"):
        values = {}
        for cell in row.iter(f"{SPACE}c"):
            text = cell.findtext(f"{SPACE}v")
            column = "".join(letter for letter in cell.get("r") if letter.isalpha())
            values[column] = shared[int(text)] if cell.get("t") == "s" else float(text)
        rows.append(list(values.values()))
    return rows


@pytest.mark.parametrize("command", [["check"], ["sensitivity", "--vary", "offers[0].price=-10%:+10%"], ["plan"]])
def test_a_workbook_holds_what_csv_prints(command, tiny, tmp_path, capsys):
    spec, book = tmp_path / "spec.json", tmp_path / "answer.xlsx"
    spec.write_text(json.dumps(tiny()))
    asked = [command[0], str(spec), *command[1:], "-q"]
    assert main([*asked, "--format", "csv"]) == OK
    printed = list(csv.reader(io.StringIO(capsys.readouterr().out)))
    assert main([*asked, "--format", "xlsx", "--output", str(book)]) == OK
    rows = cells(book.read_bytes(), 2 if command == ["plan"] else 1)  # of a plan the overview comes first
    assert rows[0] == printed[0]
    for row, line in zip(rows[1:], printed[1:], strict=True):  # a workbook keeps 16 digits
        filled = [text for text in line if text]
        assert [str(cell) for cell in row if isinstance(cell, str)] == [text for text in filled if not is_number(text)]
        assert [cell for cell in row if isinstance(cell, float)] == pytest.approx(
            [float(text) for text in filled if is_number(text)], rel=1e-14
        )


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def test_a_terminal_a_folder_and_a_missing_package_are_refused(tiny, tmp_path, capsys, monkeypatch):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()))
    assert main(["plan", str(spec), "--format", "xlsx", "--output", f"{tmp_path}/folder/"]) == USAGE
    terminal = SimpleNamespace(isatty=lambda: True, write=lambda text: None, flush=lambda: None)
    with monkeypatch.context() as patch:
        patch.setattr(output.sys, "stdout", terminal)
        assert main(["check", str(spec), "--format", "xlsx"]) == INVALID
    assert "--output FILE.xlsx" in capsys.readouterr().err
    monkeypatch.setattr(output, "find_spec", lambda name: None)
    assert main(["check", str(spec), "--format", "xlsx", "--output", str(tmp_path / "x.xlsx")]) == INVALID
    assert "flopwatt[xlsx]" in capsys.readouterr().err
