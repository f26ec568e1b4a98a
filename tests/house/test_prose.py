"""Count turns of phrase that hide their noun, in docstrings and comments of the packages."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("catalog", "models", "solvers", "planner")
VAGUE = re.compile(r"\b(?:those\s+of|what\s+is|so\s+many)\b", re.IGNORECASE)
MOST_VAGUE = 20
"""Most "those of", "what is" and "so many" in docstrings of the packages; the count only falls."""


def sources() -> Iterator[tuple[str, str]]:
    """Yield (path, text) of every source file of the packages."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def docstrings(source: str) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield ast.get_docstring(node) or ""


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield (line, text) of every comment."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")


def test_docstrings_name_what_they_mean():
    found = Counter({path: sum(len(VAGUE.findall(text)) for text in docstrings(source)) for path, source in sources()})
    assert found.total() <= MOST_VAGUE, found.most_common(10)


def test_no_comment_begins_with_of():
    found = [
        f"{path}:{line}" for path, source in sources() for line, text in comments(source) if text.startswith("of ")
    ]
    assert found == []


def test_both_are_found_where_they_stand():
    assert len(VAGUE.findall("Those of a pool; what\nis left; so many")) == 3 and not VAGUE.findall("what it is")
    assert [line for line, text in comments("a = 1  # of a chip\n# often\n") if text.startswith("of ")] == [1]
