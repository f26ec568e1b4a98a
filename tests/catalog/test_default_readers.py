"""Check that something reads each default of the catalog: a figure that nothing reads changes no plan, whatever it says."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from catalog import Catalog

LEAST_FIXED = 4  # letters of a computed name that are written out; less would fit any name


def patterns(source: str) -> Iterator[str]:
    """Yield a regular expression for each text in the code, and for each name put together, such as f"exchange_{code}"."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.escape(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
            if sum(len(part) for part in parts if part is not None) >= LEAST_FIXED:
                yield "".join(r"\w+" if part is None else re.escape(part) for part in parts)


def unread(names: list[str], sources: list[str]) -> list[str]:
    """List the names that no text in the code gives."""
    known = {pattern for source in sources for pattern in patterns(source)}
    plain = known & set(names)
    computed = [re.compile(pattern) for pattern in known if r"\w+" in pattern]
    return [name for name in names if name not in plain and not any(p.fullmatch(name) for p in computed)]


@pytest.fixture(scope="module")
def sources(root):
    return [path.read_text(encoding="utf-8") for path in sorted((root / "planner/resolve").rglob("*.py"))]


def test_every_default_has_a_reader(sources):
    assert unread(list(Catalog.load().names("defaults")), sources) == []


def test_a_default_without_one_is_found():
    code = 'def f(ledger, code, n):\n    return ledger.default("pue_default"), ledger.default(f"exchange_{code}"), f"{n}"\n'
    assert unread(["pue_default", "exchange_cny", "residual_fraction"], [code]) == ["residual_fraction"]
    assert unread(["pue_default"], ["# pue_default\n"]) == ["pue_default"]
