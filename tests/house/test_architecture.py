"""Check docs/architecture.md and CONTRIBUTING.md against the code: files and names exist, tables match the tree."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/architecture.md", "CONTRIBUTING.md")
TOP = ("catalog", "models", "solvers", "planner", "tests", "benchmarks", "docs", "examples")
MARKS = ("<!-- features by stage: checked by tests/house/test_architecture.py -->\n", "<!-- end -->")

STAGES = (
    "planner/spec", "planner/problem", "planner/resolve", "planner/evaluate", "planner/candidates", "planner/formulate", "solvers/model",
    "planner/interpret", "planner/limits", "planner/verify", "planner/solving", "planner/report",
)  # fmt: skip
FEATURES = {  # feature -> how the names of its files begin: the feature, or a part of it
    "lines": ("line",),
    "electricity": ("electricity",),
    "phases": ("phase",),
    "quality": ("quality", "choice"),
    "preemption": ("preemption",),
    "storage": ("storage",),
    "spread": ("spread", "failover", "zone_failure"),
    "porting": ("porting",),
    "robust": ("robust", "scenario"),
    "apis": ("api",),
    "prices": ("prices", "price_"),
}


def text(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def in_code(page: str) -> list[str]:
    """List what stands in backticks in running text."""
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text(page), flags=re.DOTALL))


def paths(page: str) -> list[tuple[str, str]]:
    """List (path, name after `::` or "") of everything in backticks that looks like a place in the repository."""
    found = [entry.partition("::") for entry in in_code(page)]
    return [
        (path.rstrip("/"), name)
        for path, _, name in found
        if re.fullmatch(r"[\w./-]+", path) and "/" in path and path.split("/")[0] in TOP
    ]


def defined(source: str) -> set[str]:
    """Collect top-level functions, classes and assigned names."""
    found = set()
    for node in ast.parse(source).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_place_that_a_page_names_exists(page):
    places = paths(page)
    assert len(places) > 30
    gone = [path for path, _ in places if not (ROOT / path).exists()]
    assert gone == []
    wrong = [f"{path}::{name}" for path, name in places if name and name not in defined(text(path))]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text(page))
    assert links and [link for link in links if not ((ROOT / page).parent / link).exists()] == []


def test_every_folder_of_the_packages_has_a_row():
    section = text("docs/architecture.md").partition("## Folders")[2].partition("\n## ")[0]
    named = {
        path
        for row in re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
        for path in re.findall(r"`(.*?)/`", row)
    }
    inits = [file for top in ("solvers", "planner") for file in (ROOT / top).glob("*/__init__.py")]
    folders = {str(file.parent.relative_to(ROOT)) for file in inits}
    assert named == folders | {"catalog", "models", "solvers"}


def features_by_stage() -> str:
    """Build the table of docs/architecture.md from the files that exist."""
    rows = [["feature", *(stage.removeprefix("planner/") for stage in STAGES)], ["---"] * (len(STAGES) + 1)]
    for feature, starts in FEATURES.items():
        row = [feature]
        for stage in STAGES:
            files = [file.name for file in (ROOT / stage).glob("*.py") if file.name.startswith(starts)]
            files += [
                f"{file.parent.name}/"
                for file in (ROOT / stage).glob("*/__init__.py")
                if file.parent.name.startswith(starts)
            ]
            row.append(", ".join(f"`{name}`" for name in sorted(files)))
        rows.append(row)
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def test_the_table_of_features_is_that_of_the_files():
    table = text("docs/architecture.md").partition(MARKS[0])[2].partition(MARKS[1])[0].strip() + "\n"
    assert table == features_by_stage(), f"write it anew:\n{features_by_stage()}"


def test_the_order_of_imports_is_that_of_the_contract():
    section = text("docs/architecture.md").partition("## Imports run one way")[2]
    listed = section.partition("```\n")[2].partition("```")[0].splitlines()
    contracts = tomllib.loads(text("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract.get("containers") == ["planner"])
    assert [set(line.replace(".py", "").split()) for line in listed] == [
        set(layer.replace("|", " ").split()) for layer in reversed(layers)
    ]
