"""Check that every path, name and link on the pages, and every file that a source mentions, exists; and that the glossary is in order."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("catalog", "models", "solvers", "planner")
TOP = (*PACKAGES, "tests", "benchmarks", "docs", "examples")
PAGES = ["README.md", "CONTRIBUTING.md", *sorted(str(p.relative_to(ROOT)) for p in ROOT.glob("docs/**/*.md"))]
GUIDES = {
    "CONTRIBUTING.md": 50,
    "docs/architecture.md": 80,
    "docs/glossary.md": 130,
}  # page -> places that it names at least
README_LINES = 150
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8").splitlines()
    if line.startswith("| ") and not line.startswith("| term ")
]


@cache
def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def in_code(page: str) -> list[str]:
    """List what stands in backticks in running text."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text(page), flags=re.DOTALL))


def places(page: str) -> list[tuple[str, str]]:
    """List (path, name after `::` or "") of everything in backticks that looks like a place in the repository."""
    found = [entry.partition("::") for entry in in_code(page)]
    return [
        (path.rstrip("/"), name)
        for path, _, name in found
        if re.fullmatch(r"[\w./-]+", path) and "/" in path and path.split("/")[0] in TOP
    ]


@cache
def defined(path: str) -> frozenset[str]:
    """Collect what a file defines at its top level, and what its classes define as `Class.name`."""

    def names(body: list[ast.stmt]) -> Iterator[str]:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                yield node.name
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                yield from (target.id for target in targets if isinstance(target, ast.Name))

    body = ast.parse(text(path)).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    return frozenset([*names(body), *(f"{c.name}.{name}" for c in classes for name in names(c.body))])


def dotted_exists(dotted: str) -> bool:
    """Tell whether `a.b.c` is a package, a module, or a name that one of them defines; `planner.solve` is a public name."""
    parts = dotted.split(".")
    for cut in range(len(parts), 0, -1):
        module, name = ROOT.joinpath(*parts[:cut]), ".".join(parts[cut:])
        file = next((f for f in (module.with_suffix(".py"), module / "__init__.py") if f.is_file()), None)
        if file:
            known = defined(str(file.relative_to(ROOT)))
            return not name or name in known or (parts[0] == "planner" and cut == 1 and name in public_names())
    return False


@cache
def public_names() -> frozenset[str]:
    import planner

    return frozenset(planner.__all__)


# -- the pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES)
def test_every_place_that_a_page_names_exists(page):
    gone = [path for path, _ in places(page) if not (ROOT / path).exists()]
    assert gone == []
    wrong = [f"{path}::{name}" for path, name in places(page) if name and name not in defined(path)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_a_page_names_exists(page):
    dotted = [entry for entry in in_code(page) if re.fullmatch(rf"(?:{'|'.join(PACKAGES)})(?:\.\w+)+", entry)]
    assert [entry for entry in dotted if not dotted_exists(entry)] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text(page))
    own = [link for link in links if "://" not in link]
    assert [link for link in own if not ((ROOT / page).parent / link).exists()] == []


def anchors(page: str) -> set[str]:
    """Collect the anchors of a page's headings as GitHub forms them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", text(page), flags=re.DOTALL), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_every_anchor_of_a_link_is_a_heading(page):
    links = re.findall(r"\]\(((?!\w+://)[^)#\s]*)#([^)\s]+)\)", text(page))
    wrong = []
    for target, anchor in links:
        file = ((ROOT / page).parent / target).resolve() if target else ROOT / page
        if file.suffix == ".md" and anchor not in anchors(str(file.relative_to(ROOT))):
            wrong.append(f"{target}#{anchor}")
    assert wrong == []


def test_the_readme_stays_short():
    lines = len(text("README.md").splitlines())
    assert lines <= README_LINES, f"README.md: {lines} lines, at most {README_LINES}"


@pytest.mark.parametrize("page", GUIDES)
def test_the_guides_are_read(page):
    assert len(places(page)) >= GUIDES[page]


def test_a_wrong_place_is_noticed():
    assert "Limit.grown" in defined("planner/limits/limit.py") and "Limit.shrunk" not in defined(
        "planner/limits/limit.py"
    )
    assert (
        dotted_exists("planner.solve") and dotted_exists("models.economics.annuity") and dotted_exists("solvers.model")
    )
    assert not dotted_exists("planner.solved") and not dotted_exists("models.economics.no_such_name")


# -- the glossary --------------------------------------------------------------------------------------------------------


def test_terms_are_alphabetical_and_unique():
    terms = [row[0].casefold() for row in ROWS]
    assert terms == sorted(set(terms))


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_each_term_has_a_definition_a_unit_and_a_file(row):
    _, meaning, unit, where = row
    assert meaning.endswith(".") and unit
    assert (ROOT / re.fullmatch(r"`([\w/]+\.py)(?:::[\w.]+)?`", where)[1]).is_file()
