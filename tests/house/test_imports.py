"""Check who may import whom, read off the syntax trees, and how light `import planner` is.

The order of the planner's folders is a contract of import-linter in pyproject.toml (`make lint`).
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

PACKAGES = ("catalog", "models", "solvers", "planner")
ALLOWED = {  # package -> modules of ours that it may import, besides its own
    "catalog": (),
    "models": ("catalog.units",),
    "solvers": (),
    "planner": ("catalog", "models", "solvers"),
}
SOLVERS = ("highspy", "pulp")
KNOW_A_SOLVER = {  # file -> why it imports one
    "solvers/backends/cbc.py": "one mixed-integer program, handed to CBC through PuLP",
    "solvers/backends/highs.py": "programs and their answers in the form of HiGHS",
    "solvers/backends/highs_run.py": "one mixed-integer program, handed to HiGHS",
    "solvers/backends/persistent_lp.py": "linear programs that stay loaded in HiGHS between solves",
    "solvers/backends/plain_lp.py": "one linear program from arrays, with its duals",
    "solvers/backends/warm_started_lp.py": "one linear program, re-solved in HiGHS under other bounds and costs",
    "solvers/branch_and_bound/relaxation.py": "the relaxation at the nodes of our own search, warm-started in HiGHS",
}
HEAVY = ("streamlit", "pandas", "altair", "highspy", "pulp", "networkx", "scipy", "ray")


@cache
def imported(source: str, module: str) -> tuple[tuple[int, str], ...]:
    """List (line, full name) of every import in the source of `module`, also inside functions; `from a import b` as `a.b`."""
    return tuple(_imported(source, module))


def _imported(source: str, module: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.split(".")[: -node.level] if node.level else []
            home = ".".join([*parts, *filter(None, [node.module])])
            yield from ((node.lineno, f"{home}.{name.name}") for name in node.names)
        elif (
            isinstance(node, ast.Call)
            and any("import" in word for word in dotted(node.func))
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield node.lineno, str(node.args[0].value)  # import_module("a.b"), __import__("a")


def dotted(node: ast.expr) -> Iterator[str]:
    """Yield the words of a name such as `importlib.import_module`, the last one first."""
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def within(name: str, modules: tuple[str, ...]) -> bool:
    return any(name == module or name.startswith(f"{module}.") for module in modules)


def sources(root: Path, package: str) -> Iterator[tuple[Path, str]]:
    for path in sorted((root / package).rglob("*.py")):
        module = ".".join(path.relative_to(root).with_suffix("").parts)
        yield path, module


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_it_may(root, package):
    wrong = [
        f"{path.relative_to(root)}:{line} imports {name}"
        for path, module in sources(root, package)
        for line, name in imported(path.read_text(encoding="utf-8"), module)
        if within(name, (*PACKAGES, "app", "tests", "benchmarks")) and not within(name, (package, *ALLOWED[package]))
    ]
    assert not wrong, wrong


def test_only_these_files_know_a_solver(root):
    users = {
        str(path.relative_to(root))
        for package in PACKAGES
        for path, module in sources(root, package)
        for _, name in imported(path.read_text(encoding="utf-8"), module)
        if within(name, SOLVERS)
    }
    assert users == set(KNOW_A_SOLVER)


def module_graph(files: dict[str, str]) -> nx.DiGraph:
    """Draw an edge from each module to each module of `files` (module -> source) that it imports, imports for types included."""
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for module, source in files.items():
        for _, name in imported(source, module):
            target = name if name in files else name.rpartition(".")[0]
            if target in files and target != module:
                graph.add_edge(module, target)
    return graph


def cycles(graph: nx.DiGraph) -> list[list[str]]:
    return [sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1]


def test_no_module_imports_itself_through_others(root):
    files = {
        module.removesuffix(".__init__"): path.read_text(encoding="utf-8")
        for package in PACKAGES
        for path, module in sources(root, package)
    }
    graph = module_graph(files)
    assert graph.number_of_edges() > len(files)  # the reader of imports resolves them
    assert cycles(graph) == []


def test_a_cycle_through_a_typing_import_is_found():
    files = {
        "a.one": "from a.two import f",
        "a.two": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from a import three",
        "a.three": "def g():\n    import a.one",
        "a.four": "import a.one",
    }
    assert cycles(module_graph(files)) == [["a.one", "a.three", "a.two"]]


def test_the_app_imports_only_the_planner(root):
    if not (root / "app.py").exists():
        pytest.skip("there is no dashboard yet")
    names = [name for _, name in imported((root / "app.py").read_text(encoding="utf-8"), "app")]
    assert names and all(within(name, ("planner", "__future__")) for name in names), names


def test_the_reader_of_imports_sees_all_kinds():
    source = "import a.b\nfrom c import d\nfrom . import e\nfrom ..f import g\ndef h():\n    import i\n    importlib.import_module('j.k')\n"
    assert {name for _, name in imported(source, "x.y.z")} == {"a.b", "c.d", "x.y.e", "x.f.g", "i", "j.k"}
    assert within("catalog.units.KILO", ("catalog.units",)) and not within("catalog.unitsets", ("catalog.units",))


@pytest.fixture(scope="module")
def fresh(root):
    """Run code in a new interpreter; return the modules that are loaded afterwards."""

    def run(code: str) -> set[str]:
        program = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)))"
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60, check=True
        )
        return set(json.loads(done.stdout))

    return run


def test_import_planner_is_light(fresh):
    loaded = fresh("import planner")
    assert "planner" in loaded
    assert not loaded & {*HEAVY}


def test_reading_and_checking_a_spec_needs_no_solver(fresh):
    loaded = fresh("import planner; planner.check_spec('examples/mixed_fleet.json')")
    assert "planner.resolve.resolver" in loaded and not loaded & {*SOLVERS, "streamlit", "pandas", "altair"}


def test_verifying_a_plan_needs_no_scipy_module_that_loads_all_others(fresh):
    loaded = fresh("import planner.pipeline, planner.verify.plan")
    assert "planner.verify.plan" in loaded and not loaded & {"scipy.signal", "scipy.stats", "scipy.optimize"}


def test_every_public_name_resolves_and_the_marks_stand(root):
    import importlib

    import planner

    for name in planner.__all__:
        assert getattr(planner, name) is not None
    with pytest.raises(AttributeError):
        planner.no_such_name  # noqa: B018
    for package in PACKAGES:
        module = importlib.import_module(package)
        assert f"flopwatt:{package}" == module.IDENTITY
        assert Path(module.__file__).parent == root / package


@pytest.mark.parametrize("package", ["catalog", "models", "solvers"])
def test_a_foreign_package_of_our_name_is_refused_with_the_remedy(root, tmp_path, package):
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text("")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(root)!r}]; import planner"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode != 0
    message = done.stderr.strip().splitlines()[-1]
    assert (
        message.startswith("ImportError") and str(tmp_path / package) in message and "environment of its own" in message
    )


def test_files_stay_readable(root):
    long = {
        str(path.relative_to(root)): lines
        for package in PACKAGES
        for path, _ in sources(root, package)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 500
    }
    alone = {"planner/probe.py"}  # copied to a server without the package (tests/house/test_sizes.py)
    assert set(long) <= alone, long
    bare = [
        str(path.relative_to(root))
        for package in PACKAGES
        for path, _ in sources(root, package)
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not bare, f"without a docstring that says what lives there: {bare}"


def test_import_planner_takes_at_most_twice_as_long_as_its_ground(root):
    """The measured form of the two tests above; far from the limit, so that a busy machine does not matter."""
    done = subprocess.run(
        [sys.executable, "benchmarks/import_time.py"], cwd=root, capture_output=True, text=True, timeout=120, check=True
    )
    figures = json.loads(done.stdout)
    assert set(figures) == {"planner_s", "base_s", "ratio"} and figures["ratio"] == pytest.approx(
        figures["planner_s"] / figures["base_s"], rel=0.05
    )
    assert figures["ratio"] <= 2


def test_variants_load_no_part_of_scipy_that_is_slow_to_import(fresh):
    loaded = fresh("import planner.solving.variants")
    assert "planner.candidates.search" in loaded
    assert not loaded & {"scipy.signal", "scipy.stats", "scipy.optimize", "networkx", "highspy", "pulp"}
