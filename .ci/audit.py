"""Look up the installed packages in the list of known vulnerabilities by pip-audit; without that list say so, and end well.

Ends with 1 if a package has a known vulnerability, or if pip-audit failed for another reason than a list out of reach.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

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
            return 0, [f"audit skipped: the data are out of reach ({last.strip()[:200]})"]
        return 1, [f"audit failed: {last.strip()[:200]}"]
    looked_up = [package for package in packages if "skip_reason" not in package]
    if not looked_up:
        reason = packages[0]["skip_reason"] if packages else "no package is installed"
        return 0, [f"audit skipped: none of {len(packages)} packages could be looked up ({reason})"]
    lines = [
        f"{package['name']} {package['version']}: {found['id']}, fixed in {', '.join(found['fix_versions']) or 'no release'}"
        for package in looked_up
        for found in package["vulns"]
    ]
    unknown = [package["name"] for package in packages if "skip_reason" in package]
    lines += [f"not looked up: {', '.join(unknown)}"] if unknown else []
    vulnerable = sum(bool(package["vulns"]) for package in looked_up)
    return int(vulnerable > 0), [*lines, f"audit: {vulnerable} of {len(looked_up)} packages are vulnerable"]


def main(command: Sequence[str]) -> int:
    """Run pip-audit on the environment of this interpreter."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    code, lines = judged(ran.returncode, ran.stdout, ran.stderr)
    print("\n".join(lines))
    return code


if __name__ == "__main__":
    arguments = ["--format", "json", "--progress-spinner", "off", "--skip-editable", "--timeout", "15"]
    sys.exit(main([sys.executable, "-m", "pip_audit", *arguments]))
