"""Check the library as a user has it: a wheel or an editable install, imported from any directory, guarded against foreign packages.

Each test builds and installs for real, without a network: hatchling makes the wheels, pip installs them into environments of
their own that see the dependencies of the running one, and nothing else of it.
"""

import ast
import os
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("planner", "models", "solvers", "catalog")
CLIENT = """
import planner

plan: planner.Plan = planner.solve("spec.json")
findings: int = len(planner.verify_plan(plan))
"""

pytest.importorskip("hatchling", reason="wheels are built with hatchling, of the extra `test`")


def run(*command, cwd, path=(), check=True):
    """Run a command in a clean environment: none of our paths, no user site."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PIP_", "VIRTUAL_ENV"))}
    extra = {"PYTHONPATH": os.pathsep.join(map(str, path))} if path else {}
    done = subprocess.run(
        list(map(str, command)),
        check=False,
        cwd=cwd,
        env=kept | extra | {"PYTHONNOUSERSITE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def build(project, target, version="standard"):
    """Build a wheel of the project with hatchling."""
    code = "import sys; from hatchling.builders.wheel import WheelBuilder as B; print(*B(sys.argv[1]).build(directory=sys.argv[2], versions=[sys.argv[3]]))"
    return Path(run(sys.executable, "-c", code, project, target, version, cwd=target).stdout.strip())


class Environment:
    """A virtual environment that sees the dependencies of the running Python.

    A folder named in a .pth file is on the path, but .pth files inside it are not read, so that an editable install of the running
    Python stays out.
    """

    def __init__(self, home):
        venv.create(home, with_pip=False, symlinks=True)
        self.python = home / "bin" / "python"
        self.site = next(home.glob("lib/python*/site-packages"))
        self.elsewhere = home / "elsewhere"
        self.elsewhere.mkdir()
        folders = [folder for folder in sys.path if Path(folder).name in ("site-packages", "dist-packages")]
        (self.site / "zz_dependencies.pth").write_text("\n".join(folders))

    def pip(self, *arguments):
        run(
            sys.executable,
            "-m",
            "pip",
            "--python",
            self.python,
            "--disable-pip-version-check",
            *arguments,
            cwd=self.elsewhere,
        )
        return self

    def install(self, wheel, *options):
        return self.pip("install", "--quiet", "--no-deps", "--no-index", "--no-compile", *options, wheel)

    def run(self, code, path=(), check=True, cwd=None):
        return run(self.python, "-c", code, cwd=cwd or self.elsewhere, path=path, check=check)

    def refusal(self, path=(), cwd=None):
        """Return the last line of the error when `import planner` is refused."""
        done = self.run("import planner", path=path, check=False, cwd=cwd)
        assert done.returncode == 1, "the import went through"
        return done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def editable(tmp_path_factory):
    return build(ROOT, tmp_path_factory.mktemp("editable"), "editable")


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """Build a wheel of somebody else with a package called `models`, which leaves a trace when it runs."""
    project = tmp_path_factory.mktemp("foreign")
    (project / "models").mkdir()
    (project / "models" / "__init__.py").write_text('print("foreign code ran")\n')
    (project / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "model-zoo"\nversion = "1.0"\n[tool.hatch.build.targets.wheel]\npackages = ["models"]\n'
    )
    return build(project, tmp_path_factory.mktemp("foreign-wheel"))


@pytest.fixture(scope="module")
def installed(tmp_path_factory, wheel):
    return Environment(tmp_path_factory.mktemp("installed")).install(wheel)


@pytest.fixture(scope="module")
def linked(tmp_path_factory, editable):
    return Environment(tmp_path_factory.mktemp("linked")).install(editable)


# -- what ships ----------------------------------------------------------------------------------------------------------


def test_the_wheel_holds_the_four_packages_whole_and_nothing_else(wheel):
    shipped = set(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in shipped if ".dist-info/" not in name} == set(PACKAGES)
    ours = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
    }
    ours = {name for name in ours if "__pycache__" not in name and not name.endswith(".pyc")}
    assert ours <= shipped
    assert {f"{package}/py.typed" for package in PACKAGES} <= shipped
    assert {
        f"catalog/data/{kind}.json"
        for kind in ("chips", "systems", "architectures", "regions", "tariffs", "offers", "sources")
    } <= shipped


# -- importing it --------------------------------------------------------------------------------------------------------

USE = """
import sys, planner
print(planner.__file__)
print(sorted(planner.__all__), planner.check_spec(sys.argv[1] if sys.argv[1:] else SPEC))
print(len(planner.solve(SPEC)["fleet"]), "solvers" in sys.modules)
"""
SPEC = """SPEC = {"name": "s", "workloads": [{"name": "w", "kind": "serving", "architecture": "Llama-3.1-8B", "demand": {"requests_per_s": 20},
  "lengths": {"input": 500, "output": 100}, "origins": [{"region": "us-virginia", "share": 1}], "precision": ["fp8"]}],
  "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}], "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}]}
"""


@pytest.mark.parametrize("kind", ["installed", "linked"])
def test_it_is_imported_and_used_from_any_directory(kind, request):
    environment = request.getfixturevalue(kind)
    file, names, solved = environment.run(SPEC + USE).stdout.strip().splitlines()
    home = environment.site if kind == "installed" else ROOT
    assert Path(file) == home / "planner" / "__init__.py"
    for name in ("Plan", "PlanSpec", "SpecError", "check_spec", "load_plan", "load_spec", "solve", "verify_plan"):
        assert f"'{name}'" in names
    assert solved == "1 True"
    assert run(
        environment.site.parents[2] / "bin" / "flopwatt", "--version", cwd=environment.elsewhere
    ).stdout.startswith("flopwatt ")


def test_started_inside_the_tree_all_four_come_from_the_tree(installed):
    # the tree comes first on the path then: that is one whole flopwatt too, and no foreign one
    assert (
        installed.run("import planner, models; print(planner.__file__, models.__file__)", cwd=ROOT).stdout.count(
            str(ROOT)
        )
        == 2
    )


def test_the_import_stays_light(installed):
    heavy = "{'numpy', 'scipy', 'pulp', 'highspy', 'networkx', 'pydantic', 'pandas', 'streamlit', 'altair', 'solvers', 'models'} & set(sys.modules)"
    assert installed.run(f"import sys, planner; print({heavy})").stdout.strip() == "set()"


def test_a_name_that_is_not_there_is_an_attribute_error(installed):
    done = installed.run("import planner; planner.slove", check=False)
    assert "AttributeError: module 'planner' has no attribute 'slove'" in done.stderr
    assert "'solve'" in installed.run("import planner; print(dir(planner))").stdout


def test_an_installed_dashboard_has_the_examples_with_their_plans(installed):
    code = "from planner.dashboard import sources as s; print(s.EXAMPLES, len(s.examples()), s.plan_of_example('owning').status)"
    home, count, status = installed.run(code).stdout.split()
    assert Path(home) == installed.site / "planner" / "dashboard" / "data" / "examples"
    assert int(count) == len(list((ROOT / "examples").glob("*.json"))) and status == "within_gap"


# -- the guard -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["installed", "linked"])
def test_a_foreign_package_earlier_on_the_path_is_refused(kind, request, foreign, tmp_path):
    environment = request.getfixturevalue(kind)
    Environment(tmp_path / "other").pip(
        "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", tmp_path / "zoo", foreign
    )
    done = environment.run("import planner", path=[tmp_path / "zoo"], check=False)
    message = done.stderr.strip().splitlines()[-1]
    assert message.startswith("ImportError: flopwatt needs its own package 'models'")
    assert str(tmp_path / "zoo" / "models") in message and "of the distribution model-zoo" in message
    assert "environment of its own" in message and "Rename or remove" in message
    assert "foreign code ran" not in done.stdout


def test_a_module_beside_the_users_script_is_refused_by_its_file(installed, tmp_path):
    (tmp_path / "catalog.py").write_text("")
    assert str(tmp_path / "catalog.py") in installed.refusal(cwd=tmp_path)
    (tmp_path / "catalog.py").unlink()
    (tmp_path / "solvers").mkdir()  # a folder without __init__.py does not hide ours
    installed.run("import planner", cwd=tmp_path)


def test_a_foreign_package_that_was_imported_before_is_refused(installed, foreign, tmp_path):
    Environment(tmp_path / "other").pip(
        "install", "--quiet", "--no-deps", "--no-index", "--no-compile", "--target", tmp_path / "zoo", foreign
    )
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'zoo')!r}); import models; sys.path.pop(0); import planner"
    done = installed.run(code, check=False)
    assert str(tmp_path / "zoo" / "models") in done.stderr.splitlines()[-1]


def test_a_foreign_wheel_that_overwrites_ours_is_refused_and_the_remedy_works(wheel, foreign, tmp_path):
    environment = Environment(tmp_path / "env").install(wheel).install(foreign)
    message = environment.refusal()
    assert message.startswith("ImportError: flopwatt's own package 'models'")
    assert str(environment.site / "models") in message and "of the distribution model-zoo" in message
    assert "Uninstall that one and reinstall flopwatt" in message
    environment.pip("uninstall", "--quiet", "--yes", "model-zoo")
    assert "it is not there. Reinstall flopwatt" in environment.refusal()
    environment.install(wheel, "--force-reinstall")
    environment.run(SPEC + "import planner; planner.check_spec(SPEC)")


def test_a_foreign_wheel_beside_an_editable_install_is_refused_and_the_remedy_works(editable, foreign, tmp_path):
    environment = Environment(tmp_path / "env").install(editable).install(foreign)
    message = environment.refusal()
    assert (
        str(environment.site / "models") in message
        and str(ROOT / "models") in message
        and "of the distribution model-zoo" in message
    )
    environment.pip("uninstall", "--quiet", "--yes", "model-zoo")
    environment.run(SPEC + "import planner; planner.check_spec(SPEC)")


# -- types ---------------------------------------------------------------------------------------------------------------


def test_public_functions_are_annotated():
    bare = []
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for function in _public_functions(ast.parse(file.read_text(encoding="utf-8")).body):
                arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
                if function.returns is None or any(
                    a.annotation is None and a.arg not in ("self", "cls") for a in arguments
                ):
                    bare.append(f"{file.relative_to(ROOT)}:{function.lineno} {function.name}")
    assert bare == []


def _public_functions(body):
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _public_functions(node.body)
        elif isinstance(node, ast.FunctionDef) and not node.name.startswith("_"):
            yield node


def test_the_static_names_are_the_names_at_run_time():
    tree = ast.parse((ROOT / "planner" / "__init__.py").read_text(encoding="utf-8"))
    static = next(
        node.body for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    seen = {alias.name: f"{node.module}" for node in static for alias in node.names}
    import planner

    assert seen == planner._MODULES and sorted(seen) == sorted(planner.__all__)


def test_a_client_is_checked_by_mypy(installed, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed")
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "wrong.py").write_text('import planner\nplanner.slove\nplan: int = planner.solve("spec.json")\n')
    check = (
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--python-executable",
        installed.python,
        "--cache-dir",
        tmp_path / "cache",
    )
    assert "Success" in run(*check, "client.py", cwd=tmp_path).stdout
    found = run(*check, "wrong.py", cwd=tmp_path, check=False).stdout
    assert (
        re.search(r'wrong.py:2: error: Module has no attribute "slove"', found)
        and "wrong.py:3: error: Incompatible types" in found
    )
