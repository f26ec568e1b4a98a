"""The command where something that it needs is missing: memory, packages."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from planner.cli import resources
from planner.cli.main import main

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v holds on Linux")
@pytest.mark.parametrize("kib", [120_000, 200_000, 280_000])
def test_too_little_memory_is_told_at_once(kib, tmp_path, tiny):
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()))
    command = [sys.executable, "-m", "planner.cli", "plan", str(spec), "-q"]
    environment = {key: value for key, value in os.environ.items() if key not in resources.THREADS}
    run = subprocess.run(
        ["sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh", *command], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert run.returncode == 5 and run.stderr.startswith("out of memory in the ") and run.stderr.count("\n") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit -v holds on Linux")
def test_the_catalog_needs_no_arrays():
    command = [sys.executable, "-m", "planner.cli", "catalog", "list"]
    run = subprocess.run(["sh", "-c", 'ulimit -v 120000; exec "$@"', "sh", *command], cwd=ROOT, capture_output=True)
    assert run.returncode == 0


@pytest.mark.parametrize("package", resources.DEPENDENCIES)
def test_a_missing_package_is_named(package, tmp_path, tiny):
    """A finder that knows no such package, as where it is not installed."""
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny()))
    hide = f"""
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {package!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Hidden())
from planner.cli.main import main
sys.exit(main(["plan", {str(spec)!r}, "-q", "--output", {str(tmp_path / "plan")!r}, "--solver", "pulp"]))
"""
    run = subprocess.run([sys.executable, "-c", hide], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "Traceback" not in run.stderr
    assert run.returncode == 0 or ((run.returncode, run.stderr.count("\n")) == (2, 1) and f'"{package}"' in run.stderr)


def test_the_packages_are_those_of_the_project():
    stated = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert [text.split(">")[0] for text in stated] == list(resources.DEPENDENCIES)


def test_a_thousand_offers_keep_the_time_limit(tmp_path, tiny):
    offers = [{**tiny()["offers"][0], "price": f"{310_000 + i} USD", "supply": 100 + i} for i in range(1000)]
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps(tiny(offers=offers, solver={"time_limit": "2 s"})))
    began = time.process_time()  # that of a busy machine would say little
    assert main(["plan", str(spec), "-q", "--output", os.devnull]) in (0, 5)
    assert time.process_time() - began < 90  # 23 s; candidates of each offer took many minutes
