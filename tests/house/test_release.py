"""Hold the parts of a release: pinned versions for all that pyproject.toml asks for, notes and tags from the changelog, a container file."""

from __future__ import annotations

import importlib.util
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CHANGELOG = """# Changelog

## [Unreleased]

## [1.2.0] - 2030-01-02

### Added

- a new command

### Changed

- a figure moved

### Fixed

- a crash

## [1.1.0] - 2029-01-02

### Removed

- an old command
"""


def script(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / ".ci" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def release():
    return script("release")


def plain(name):
    return re.sub(r"[-_.]+", "-", name).casefold()


def pinned():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def asked_for():
    every = [*PROJECT["dependencies"], *(line for lines in PROJECT["optional-dependencies"].values() for line in lines)]
    return [line for line in every if not line.startswith("flopwatt[")]


def test_every_dependency_and_extra_is_pinned_within_its_bounds():
    packaging = pytest.importorskip("packaging.requirements")
    versions = {plain(name): version for name, version in pinned().items()}
    wanted = [packaging.Requirement(line) for line in asked_for()]
    assert len(wanted) > 20
    assert [str(want) for want in wanted if not want.specifier.contains(versions.get(plain(want.name), "0"))] == []


def test_pins_name_no_folder_and_no_host():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    assert lines and script("constraints").pins(lines) == lines
    assert script("constraints").pins(["b==1.0", "ours @ file:///home/a", "-e .", "A==2.0.post1"]) == [
        "A==2.0.post1",
        "b==1.0",
    ]


def test_notes_hold_what_moves_for_those_who_upgrade(release):
    notes = release.upgrade_notes("1.2.0", CHANGELOG)
    assert notes == "# Upgrading to 1.2.0\n\n## Changed\n\n- a figure moved\n\n## Fixed\n\n- a crash\n"
    assert "an old command" in release.upgrade_notes("1.1.0", CHANGELOG)


def test_a_version_is_tagged_with_a_dated_section_only(release):
    assert release.obstacles("1.2.0", CHANGELOG) == []
    assert [line.split(":")[0] for line in release.obstacles("1.3.0.dev0", CHANGELOG)] == ["planner/version.py"]
    assert "no section `## [1.3.0]" in release.obstacles("1.3.0", CHANGELOG)[0]
    pending = CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n### Added\n\n- one more\n")
    assert "[Unreleased] lists changes" in release.obstacles("1.2.0", pending)[0]
    assert "no section" in release.obstacles("1.2.0", CHANGELOG.replace(" - 2030-01-02", ""))[0]


def test_the_spec_of_the_readme_and_the_version_are_found(release):
    assert (
        json.loads(release.example_of((ROOT / "README.md").read_text(encoding="utf-8")))["name"] == "chat in Virginia"
    )
    from planner.version import __version__

    assert release.version_of((ROOT / "planner/version.py").read_text(encoding="utf-8")) == __version__


def test_the_container_copies_what_the_wheel_is_built_from():
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    copied = {name for line in re.findall(r"^COPY (.+) \S+$", text, re.MULTILINE) for name in line.split()}
    shipped = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"][
        "wheel"
    ]
    assert {
        *shipped["packages"],
        PROJECT["readme"],
        *PROJECT["license-files"],
        "pyproject.toml",
        "constraints.txt",
    } == copied
    assert all((ROOT / name).exists() for name in copied)
    assert 'ENTRYPOINT ["flopwatt"]' in text and "'.[dashboard]'" in text
