"""Each function that makes coefficients, and each block of rows of the program, is named in the tests of its own folder."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("planner/formulate", "planner/money")


def public_functions(tree: ast.Module) -> Iterator[str]:
    """Yield the public functions of a file, and the public methods of its classes."""
    for node in tree.body:
        parts = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (part.name for part in parts if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"))


def rows_of(tree: ast.Module) -> Iterator[str]:
    """Yield the names of the rows that a file adds to the program, where it states them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_rows"):
            yield from (a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str))


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_function_is_named(folder):
    tests = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")))
    made = [
        name
        for path in sorted((ROOT / folder).rglob("*.py"))
        for name in public_functions(ast.parse(path.read_text("utf-8")))
    ]
    assert len(made) > 10
    assert sorted(set(made) - set(re.findall(r"\w+", tests))) == []


def test_every_block_of_rows_is_named():
    tests = "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "tests/solvers/model").rglob("test_*.py")))
    rows = {
        row for path in (ROOT / "solvers/model").rglob("*.py") for row in rows_of(ast.parse(path.read_text("utf-8")))
    }
    assert len(rows) > 30
    assert sorted(row for row in rows if f'"{row}"' not in tests) == []


def test_functions_and_methods_are_seen():
    tree = ast.parse("class A:\n    def b(self): ...\n    def _c(self): ...\ndef d(): ...\ndef _e(): ...")
    assert list(public_functions(tree)) == ["b", "d"]


def test_rows_are_seen():
    assert list(rows_of(ast.parse('p.add_rows("a", 0.0)\np.add_linking_rows("b", part)\np.add_rows(name)'))) == [
        "a",
        "b",
    ]
