"""Figures of a plan are added by `sum_of`: the built-in `sum` rounds otherwise from Python 3.12 on. It counts only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("models", *(f"planner/{name}" for name in (
    "candidates", "evaluate", "formulate", "interpret", "limits", "money", "problem", "resolve", "robust", "scenarios", "solving", "spec",
)))  # fmt: skip
WHOLE = ("len", "int", "bool", "any", "all", "comb")  # functions that return whole numbers


def counts(node: ast.AST) -> bool:
    """Tell whether an expression is plainly a whole number."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.BoolOp):
        return all(map(counts, node.values))
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in WHOLE
    return isinstance(node, ast.Compare)


def sums(tree: ast.AST) -> Iterator[int]:
    """Yield the line of each call of `sum` that adds anything but counts."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "sum":
            parts = node.args[0]
            if isinstance(parts, ast.Call) and isinstance(parts.func, ast.Name) and parts.func.id == "map":
                counted = getattr(parts.args[0], "id", "") in WHOLE
            else:
                counted = isinstance(parts, (ast.GeneratorExp, ast.ListComp)) and counts(parts.elt)
            if not counted:
                yield node.lineno


def test_figures_of_a_plan_are_added_from_left_to_right():
    found = [
        f"{file.relative_to(ROOT)}:{line}: use models.arrays.sum_of"
        for folder in FOLDERS
        for file in sorted((ROOT / folder).rglob("*.py"))
        for line in sums(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert found == []


def test_what_is_refused():
    assert list(sums(ast.parse("sum(a.cost for a in b)\nsum(1 for a in b)\nsum(map(len, b))\nsum(values)"))) == [1, 4]
