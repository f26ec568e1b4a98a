"""Check that every name that a benchmark takes from the packages exists, so that scripts that run rarely keep up with renames."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import scale

FOLDER = Path(scale.__file__).parent
OURS = ("catalog", "models", "solvers", "planner", "tests", "benchmarks")
SCRIPTS = sorted(path.name for path in FOLDER.glob("*.py"))


def missing(source: str) -> list[str]:
    """List imports of our packages, also inside functions, and attributes of modules so imported, that do not exist."""
    tree, wrong, modules = ast.parse(source), [], {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            try:
                home = importlib.import_module(node.module)
            except ImportError as error:
                wrong.append(f"line {node.lineno}: {error}")
                continue
            for name in node.names:
                value = getattr(home, name.name, None) or _submodule(f"{node.module}.{name.name}")
                if value is None:
                    wrong.append(f"line {node.lineno}: {node.module} has no {name.name}")
                elif isinstance(value, ModuleType):
                    modules[name.asname or name.name] = value
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = modules.get(node.value.id)
            if module is not None and not hasattr(module, node.attr):
                wrong.append(f"line {node.lineno}: {module.__name__} has no {node.attr}")
    return wrong


def _submodule(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


@pytest.mark.parametrize("script", SCRIPTS)
def test_names_of_our_packages_exist(script):
    assert missing((FOLDER / script).read_text(encoding="utf-8")) == []


def test_names_that_are_gone_are_found():
    source = (
        "from planner.pipeline import no_such\nfrom planner.nowhere import x\nfrom planner import pipeline\n"
        "def f():\n    from solvers import mip\n    return pipeline.solve, mip.absent\n"
    )
    assert [line.partition(":")[0] for line in missing(source)] == ["line 1", "line 2", "line 6"]


@pytest.mark.parametrize("stage", [*scale.STAGES, *scale.WITHIN])
def test_the_stages_that_are_timed_are_functions(stage):
    module, name = (scale.STAGES | scale.WITHIN)[stage]
    assert callable(getattr(importlib.import_module(module), name))
