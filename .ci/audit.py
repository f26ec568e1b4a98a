"""Look up the installed packages in the list of known vulnerabilities by pip-audit.

Ends with 0 if packages were looked up and none is vulnerable, with 1 if one is or if pip-audit failed, and with 77 and the word
*skipped* if nothing could be looked up; `--skip-allowed` turns 77 into 0, for machines without a network.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

SKIPPED = 77
"""Exit code of an audit that looked nothing up: neither a success nor a finding."""

UNREACHABLE = (
    "connection",
    "timeout",
    "timed out",
    "name resolution",
    "max retries",
    "http",
    "ssl",
    "proxy",
    "service",
)


def judged(code: int, output: str, errors: str) -> tuple[int, list[str]]:
    """Judge a run of pip-audit by its exit code, its JSON and its messages: the exit code to end with, and lines to print."""
    try:
        packages = json.loads(output)["dependencies"]
    except (ValueError, KeyError, TypeError):
        last = next((line for line in reversed(errors.splitlines()) if line.strip()), f"exit code {code}")
        if any(word in errors.casefold() for word in UNREACHABLE):
            return SKIPPED, [f"audit skipped: the data are out of reach ({last.strip()[:200]})"]
        return 1, [f"audit failed: {last.strip()[:200]}"]
    looked_up = [package for package in packages if "skip_reason" not in package]
    if not looked_up:
        reason = packages[0]["skip_reason"] if packages else "no package is installed"
        return SKIPPED, [f"audit skipped: none of {len(packages)} packages could be looked up ({reason})"]
    lines = [
        f"{package['name']} {package['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no release'}"
        for package in looked_up
        for found in package["vulns"]
    ]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    lines += [f"not looked up: {', '.join(unknown)}"] if unknown else []
    vulnerable = sum(bool(package["vulns"]) for package in looked_up)
    return int(vulnerable > 0), [*lines, f"audit: {vulnerable} of {len(looked_up)} packages are vulnerable"]


def main(command: Sequence[str], skip_allowed: bool = False) -> int:
    """Run pip-audit on the environment of this interpreter."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    code, lines = judged(ran.returncode, ran.stdout, ran.stderr)
    print("\n".join(lines))
    return 0 if skip_allowed and code == SKIPPED else code


if __name__ == "__main__":
    arguments = ["--format", "json", "--progress-spinner", "off", "--skip-editable", "--timeout", "15"]
    sys.exit(main([sys.executable, "-m", "pip_audit", *arguments], skip_allowed="--skip-allowed" in sys.argv[1:]))
