"""Check a release: build it, install the wheel into an empty environment, plan an example there, and write notes for those who upgrade.

    python .ci/release.py [--tag]

Everything stands in dist/: sdist, wheel and UPGRADE-VERSION.md. `--tag` ends with 1, and says why, where the changelog has no dated
section of the version, or the version is one of development: such a version is built and checked, but never tagged.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOR_UPGRADES = ("Changed", "Removed", "Fixed")


def version_of(source: str) -> str:
    """Read the version from the text of planner/version.py."""
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if not found:
        raise ValueError("planner/version.py states no __version__")
    return found[1]


def sections(changelog: str) -> dict[str, str]:
    """Split a changelog into its versions: the name in brackets to the text below its heading."""
    parts = re.split(r"^## \[([^\]]+)\]", changelog, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def obstacles(version: str, changelog: str) -> list[str]:
    """List what stands against a tag, each with its remedy."""
    found = sections(changelog)
    lines = []
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        lines.append(f"planner/version.py: {version} is a version of development; set the version to release")
    elif not re.match(r" - \d{4}-\d{2}-\d{2}$", found.get(version, "").split("\n")[0]):
        lines.append(f"CHANGELOG.md: no section `## [{version}] - YYYY-MM-DD`; rename [Unreleased] to it")
    if re.search(r"^- ", found.get("Unreleased", ""), re.MULTILINE):
        lines.append("CHANGELOG.md: [Unreleased] lists changes; move them into the section of the version")
    return lines


def upgrade_notes(version: str, changelog: str) -> str:
    """Extract what those who upgrade must know: what changed, was removed and was fixed, of the version or else of [Unreleased]."""
    found = sections(changelog)
    text = found.get(version, found.get("Unreleased", ""))
    parts = re.split(r"^### (\w+)\n", text, flags=re.MULTILINE)
    by_kind = dict(zip(parts[1::2], parts[2::2]))
    kept = [f"## {kind}\n\n{by_kind[kind].strip()}\n" for kind in FOR_UPGRADES if by_kind.get(kind, "").strip()]
    return "\n".join([f"# Upgrading to {version}\n", *(kept or ["Nothing changed for those who upgrade.\n"])])


def example_of(readme: str) -> str:
    """Return the complete spec that the README prints."""
    found = re.search(r"^```json\n(.*?)^```", readme, re.MULTILINE | re.DOTALL)
    if not found:
        raise ValueError("README.md prints no spec")
    return found[1]


def ran(*command: str | Path, cwd: Path) -> str:
    """Run a command without any path of this interpreter, and return what it printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env=kept | {"PYTHONNOUSERSITE": "1"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def check_wheel(wheel: Path, version: str) -> None:
    """Install a wheel into an empty environment, and plan and verify the README's spec there."""
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        venv.create(home / "venv", with_pip=True)
        python, command = home / "venv/bin/python", home / "venv/bin/flopwatt"
        pins = ["--constraint", ROOT / "constraints.txt"]
        ran(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins, wheel, cwd=home)
        said = ran(command, "--version", cwd=home).strip()
        if version not in said.split():
            raise ValueError(f"{wheel.name} says {said!r} instead of {version}")
        (home / "spec.json").write_text(example_of((ROOT / "README.md").read_text(encoding="utf-8")), encoding="utf-8")
        ran(command, "plan", "spec.json", "--format", "json", "--output", "plan.json", cwd=home)
        print(ran(command, "verify", "plan.json", cwd=home).splitlines()[0])


def main(tag: bool) -> int:
    """Build, check and, where asked for, tag the release."""
    version = version_of((ROOT / "planner/version.py").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    target = ROOT / "dist"
    print(ran(sys.executable, "-m", "build", "--outdir", target, ROOT, cwd=ROOT).strip().splitlines()[-1])
    check_wheel(target / f"flopwatt-{version}-py3-none-any.whl", version)
    notes = target / f"UPGRADE-{version}.md"
    notes.write_text(upgrade_notes(version, changelog), encoding="utf-8")
    print(f"written: {notes.relative_to(ROOT)}")
    against = obstacles(version, changelog)
    if against:
        print("\n".join(["not to be tagged:", *against]))
        return int(tag)
    command = ["git", "tag", "--annotate", f"v{version}", "--message", f"flopwatt {version}"]
    if tag:
        subprocess.run(command, cwd=ROOT, check=True)
    print(("tagged: " if tag else "to tag it: make release TAG=1, which runs ") + " ".join(command[:4]))
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Build and check a release.")
    parser.add_argument("--tag", action="store_true", help="tag it, if nothing stands against it")
    sys.exit(main(parser.parse_args().tag))
