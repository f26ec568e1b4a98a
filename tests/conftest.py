"""Specs that many tests start from, plans solved once per run, and the profiles of Hypothesis."""

from __future__ import annotations

import copy
import gc
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

for library in ("OPENBLAS", "OMP", "MKL"):  # tests run side by side, and their matrices are small
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A test never fails for being slow. `ci` draws the same examples on every run; a test that states its own number of examples keeps it,
# or a third of it (`few_of`).
settings.register_profile("dev", deadline=None, max_examples=100)
settings.register_profile("ci", deadline=None, max_examples=20, derandomize=True, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") == "true" else "dev"))

ALL_CASES = bool(os.environ.get("FLOPWATT_ALL_CASES"))
long_run = pytest.mark.long
NEVER_LEFT_OUT = "tests/house/"
MORE_AT_NIGHT = ("ALL_CASES", "CASES", "TIMES", "few_of")
"""Names by which a module draws more cases with FLOPWATT_ALL_CASES=1."""

ROOT = Path(__file__).resolve().parent.parent
LONG_RUNS = ROOT / "tests/long_runs.txt"

TINY = {
    "name": "tiny",
    "workloads": [
        {
            "name": "chat",
            "kind": "serving",
            "architecture": "Llama-3.2-1B",
            "demand": {"requests_per_s": 30},
            "lengths": {"input": 500, "output": 200},
            "origins": [{"region": "us-virginia", "share": 1}],
            "slo": {"ttft": {"p95": "2 s"}, "tpot": {"p95": "60 ms"}},
            "precision": ["bf16"],
            "disaggregation": "never",
        }
    ],
    "sites": [{"region": "us-virginia", "systems": ["DGX H100"]}],
    "offers": [{"system": "DGX H100", "how": "buy", "price": "310000 USD"}],
    "simplicity": {"within": 0},
    "solver": {"gap": 1e-6},
}


def few_of(count: int) -> int:
    """Return how many examples of `count` a test draws: a third, and at least three; all with FLOPWATT_ALL_CASES=1."""
    return count if ALL_CASES else max(count // 3, min(count, 3))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--measurements",
        metavar="DIR",
        type=Path,
        help="folder with training.csv and serving.csv; tests that need them skip without it",
    )
    parser.addoption(
        "--hourly",
        metavar="DIR",
        type=Path,
        help="folder with hourly prices and carbon; tests that need them skip without it",
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Name a failed test at once, so that a run which a time limit ends says what it found."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        print(f"\nFAILED {report.nodeid}", flush=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests of `long_runs.txt`, and skip long ones unless all cases are asked for; mark what draws more cases then.

    Raises UsageError for a rule of the house in the list, or a name that no test of the whole suite has.
    """
    listed = {line for line in LONG_RUNS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    if rules := sorted(name for name in listed if name.startswith(NEVER_LEFT_OUT)):
        raise pytest.UsageError(
            f"tests/long_runs.txt names rules of the house, which every run checks: {', '.join(rules)}"
        )
    skipped = pytest.mark.skip(reason="takes long; runs with FLOPWATT_ALL_CASES=1")
    for item in items:
        if item.nodeid in listed:
            item.add_marker(long_run)
        if not ALL_CASES and item.get_closest_marker("long") is not None:
            item.add_marker(skipped)
        if any(hasattr(getattr(item, "module", None), name) for name in MORE_AT_NIGHT):
            item.add_marker(pytest.mark.drawn)
    if config.args == config.getini("testpaths") and (unknown := listed - {item.nodeid for item in items}):
        raise pytest.UsageError(f"tests/long_runs.txt names tests that are not there: {', '.join(sorted(unknown)[:5])}")


def pytest_collection_finish() -> None:
    """Exempt what collection made from garbage collection: half a million objects that stay to the end took a sixth of the time.

    Of what tests make, little is in cycles; looking for them at every 700 new objects took another 4 %.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


@pytest.fixture(scope="session")
def measurements(request: pytest.FixtureRequest) -> Path:
    """The folder of published measurements."""
    return _given(request, "--measurements")


@pytest.fixture(scope="session")
def hourly(request: pytest.FixtureRequest) -> Path:
    """The folder of hourly series."""
    return _given(request, "--hourly")


def _given(request: pytest.FixtureRequest, option: str) -> Path:
    folder = request.config.getoption(option)
    if folder is None:
        pytest.skip(f"needs {option} DIR")
    return folder


@pytest.fixture(scope="session")
def root() -> Path:
    """The folder that holds the four packages."""
    return ROOT


@pytest.fixture(scope="session")
def tiny() -> Callable[..., dict[str, Any]]:
    """`tiny(limits={...})`: a spec of one site, one system and one workload, solved in a fraction of a second, with changes.

    The best plan counts, not one of fewer parts, so that tests may compare values.
    """

    def spec(**changes: Any) -> dict[str, Any]:
        return copy.deepcopy({**TINY, **changes})

    return spec


@pytest.fixture(scope="session")
def small_spec(root: Path) -> dict[str, Any]:
    """One site, one system, a serving and a training workload, and a limit of every kind."""
    return json.loads((root / "tests/golden/small_spec.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="session")
def small_plan(small_spec: dict[str, Any]):
    import planner

    return planner.solve(copy.deepcopy(small_spec))


@pytest.fixture(scope="session")
def main_plan(root: Path):
    """The plan of the main example."""
    import planner

    return planner.solve(root / "examples/mixed_fleet.json")
