"""Every public function of `models` states its equation's units, its reference, and an example.

pytest runs the examples themselves, those of the other packages too (`--doctest-modules` in pyproject.toml).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest

import models

PREFIX = "models."
MODULES = sorted(
    info.name.removeprefix(PREFIX) for info in pkgutil.walk_packages(models.__path__, PREFIX) if not info.ispkg
)
MENTIONED = ("[", "Reference", ">>>")
# Modules of records, types and examples, without a public function.
WITHOUT_FUNCTIONS = {
    "queueing.arrivals",
    "serving.examples",
    "serving.steady_state",
    "reinforcement.constants",
    "training.constants",
    "training.examples",
}


def public_functions() -> list[tuple[str, object]]:
    found = []
    for name in MODULES:
        module = importlib.import_module(f"models.{name}")
        for attribute, function in vars(module).items():
            if (
                inspect.isfunction(function)
                and function.__module__ == module.__name__
                and not attribute.startswith("_")
            ):
                found.append((f"{name}.{attribute}", function))
    return found


FUNCTIONS = public_functions()


def test_the_walk_reaches_every_module():
    root = Path(models.__path__[0])
    files = {
        ".".join(file.relative_to(root).with_suffix("").parts)
        for file in root.rglob("*.py")
        if file.name != "__init__.py"
    }
    assert set(MODULES) == files
    assert {name.rpartition(".")[0] for name, _ in FUNCTIONS} == files - WITHOUT_FUNCTIONS


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_public_functions_state_units_reference_and_example(name, function):
    text = inspect.getdoc(function) or ""
    missing = [word for word in MENTIONED if word not in text]
    assert not missing, f"models.{name}: docstring lacks {missing}"


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[name for name, _ in FUNCTIONS])
def test_public_functions_are_typed(name, function):
    signature = inspect.signature(function)
    bare = [p.name for p in signature.parameters.values() if p.annotation is inspect.Parameter.empty]
    assert not bare and signature.return_annotation is not inspect.Signature.empty, (
        f"models.{name}: no type for {bare or 'the result'}"
    )


def test_a_function_without_reference_would_be_noticed():
    def bare(x: float) -> float:
        """Twice x [1]."""
        return 2 * x

    assert [word for word in MENTIONED if word not in inspect.getdoc(bare)] == ["Reference", ">>>"]
