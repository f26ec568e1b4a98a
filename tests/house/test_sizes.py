"""Check that folders, files, functions and classes stay small enough to read in one sitting."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGES = ("catalog", "models", "solvers", "planner")
MAX_FILES_IN_FOLDER = 25
MAX_FILE_LINES = 500
MAX_FUNCTION_LINES = 80
MAX_CLASS_LINES = 250
MAX_PARAMETERS = 10
ALONE = {"planner/probe.py": 700}  # files that are copied to a server without the package, and so cannot be split

Function = ast.FunctionDef | ast.AsyncFunctionDef


def line_count(node: Function | ast.ClassDef) -> int:
    """Count the lines from `def` or `class` to the end of the body; decorators stand above."""
    return (node.end_lineno or node.lineno) - node.lineno + 1


def parameter_count(node: Function) -> int:
    """Count parameters, `*args` and `**kwargs` as one each; the receiver `self` or `cls` is none."""
    arguments = node.args
    named = [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    receiver = named[:1] in (["self"], ["cls"])
    return len(named) - receiver + (arguments.vararg is not None) + (arguments.kwarg is not None)


def too_large(source: str, name: str) -> Iterator[str]:
    """Yield a message for each function and class in the source of a file that exceeds a limit, and for the file itself."""
    lines, most = len(source.splitlines()), ALONE.get(name, MAX_FILE_LINES)
    if lines > most:
        yield f"{name}: {lines} lines, at most {most} in a file"
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef) and line_count(node) > MAX_CLASS_LINES:
            yield f"{name}::{node.name}: {line_count(node)} lines, at most {MAX_CLASS_LINES} in a class"
        if isinstance(node, Function):
            if line_count(node) > MAX_FUNCTION_LINES:
                yield f"{name}::{node.name}: {line_count(node)} lines, at most {MAX_FUNCTION_LINES} in a function"
            if parameter_count(node) > MAX_PARAMETERS:
                yield f"{name}::{node.name}: {parameter_count(node)} parameters, at most {MAX_PARAMETERS} in a function"


def crowded_folders(folder: Path) -> Iterator[str]:
    """Yield a message for each folder, this one included, with too many Python files in it."""
    for place in (folder, *sorted(p for p in folder.rglob("*") if p.is_dir())):
        files = len(list(place.glob("*.py")))
        if files > MAX_FILES_IN_FOLDER:
            yield f"{place}: {files} Python files, at most {MAX_FILES_IN_FOLDER} in a folder"


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_hold_few_files(root, package):
    found = list(crowded_folders(root / package))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("package", PACKAGES)
def test_files_functions_and_classes_are_short(root, package):
    files = sorted((root / package).rglob("*.py"))
    assert files
    found = [
        message
        for path in files
        for message in too_large(path.read_text(encoding="utf-8"), path.relative_to(root).as_posix())
    ]
    assert not found, "\n".join(found)


def body(lines: int) -> str:
    return "".join(f"    x{i} = {i}\n" for i in range(lines))


@pytest.mark.parametrize(
    "header, name, most", (("def f():", "f", MAX_FUNCTION_LINES), ("class C:", "C", MAX_CLASS_LINES))
)
def test_one_line_more_than_allowed_is_named_with_its_figure(header, name, most):
    assert not list(too_large(f"{header}\n{body(most - 1)}", "a.py"))
    (message,) = too_large(f"{header}\n{body(most)}", "a.py")
    assert message.startswith(f"a.py::{name}: {most + 1} lines")


def test_a_long_file_is_named_with_its_figure():
    assert not list(too_large("x = 1\n" * MAX_FILE_LINES, "a.py"))
    assert list(too_large("x = 1\n" * (MAX_FILE_LINES + 1), "a.py")) == [
        f"a.py: {MAX_FILE_LINES + 1} lines, at most {MAX_FILE_LINES} in a file"
    ]


@pytest.mark.parametrize(
    "header, count",
    (
        ("def f(a, /, b, *, c)", 3),
        ("def f(a, *rest, b, **others)", 4),
        ("async def f(a)", 1),
        ("def f(self, a)", 1),
        ("def f(cls, *, a, b)", 2),
    ),
)
def test_parameters_are_counted_without_the_receiver(header, count):
    (function,) = ast.parse(f"{header}: pass").body
    assert parameter_count(function) == count


def test_a_function_within_a_function_counts_too():
    many = ", ".join(f"p{i}" for i in range(MAX_PARAMETERS + 1))
    (message,) = too_large(f"def outer():\n    def inner({many}): pass\n", "a.py")
    assert message == f"a.py::inner: {MAX_PARAMETERS + 1} parameters, at most {MAX_PARAMETERS} in a function"


def test_a_crowded_folder_is_named_with_its_figure(tmp_path):
    (tmp_path / "inside").mkdir()
    for i in range(MAX_FILES_IN_FOLDER + 1):
        (tmp_path / "inside" / f"m{i}.py").touch()
    (message,) = crowded_folders(tmp_path)
    assert message.startswith(f"{tmp_path / 'inside'}: {MAX_FILES_IN_FOLDER + 1} Python files")
